r"""Contact by spring and dashpot without tension: the exponent 1 of James2020 (1), whose force jumps at contact.

    f = k d^exponent + c d'   while d > 0 and f > 0, else 0,    d = -gap

The force jumps from 0 to c d' when a contact begins, and a contact ends when the force vanishes, before the overlap d
does. It is no time derivative of a function of q, so that no numerical dissipation and no change of variables stands
for it.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.arguments import numbers
from carom.state import Numbers
from carom.systems.contact import NO_FORCE, FrictionElements
from carom.systems.laws import positive_power


class SpringDashpot(eqx.Module):
    """Contacts that push with `k d^exponent + c d'` (d the overlap) and never pull.

    Args:
        gap: `gap(q)`, one entry per contact, negative where bodies overlap; velocities must be the rates of q.
        stiffness: k, a number or one per contact.
        damping: c, a number or one per contact.
        exponent: of the spring: 1 linear, 3/2 Hertz.

    `force` is a force of a `System` for any method. `switches` lets `carom.EventCapturing` end its steps where contacts
    begin and end, so that its order is kept; with `carom.gauss(s)`, whose stages lie within the step. Bodies that touch
    at rest at the start are on neither side of such an event: leave a gap between them, 1e-9 of a diameter, say.

    Example:
        >>> wall = carom.SpringDashpot(lambda q: q[:1], stiffness=100.0, damping=4.0)
        >>> ball = carom.System(1.0, forces={"wall": wall.force}, friction=wall.switches)
        >>> method = carom.EventCapturing(carom.gauss(2))
        >>> sol = carom.simulate(ball, carom.State([0.05], [-1.0]), method, t1=0.8, h=0.02)
    """

    gap: Callable[[Array], Array]
    stiffness: Array
    damping: Array
    exponent: float = eqx.field(static=True)

    def __init__(self, gap: Callable[[Array], Array], stiffness: Numbers, damping: Numbers, exponent: float = 1.0):
        if not callable(gap):
            msg = f"SpringDashpot: gap must be a function of q, got {type(gap).__name__}"
            raise TypeError(msg)
        if not exponent >= 1:
            msg = f"SpringDashpot: exponent must be at least 1, got {exponent}"
            raise ValueError(msg)
        self.gap, self.exponent = gap, float(exponent)
        self.stiffness = numbers(stiffness, "SpringDashpot: stiffness", positive=True)
        self.damping = numbers(damping, "SpringDashpot: damping", nonnegative=True)

    def push(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Overlaps, and what spring and dashpot would push with, tension included."""
        d, rate = jax.jvp(lambda x: -jnp.atleast_1d(self.gap(x)), (q,), (v,))
        return d, self.stiffness * positive_power(d, self.exponent) + self.damping * rate

    def force(self, t: Array, q: Array, v: Array) -> Array:
        """The generalised force, a force of a `System`."""
        del t
        d, f = self.push(q, v)
        pushing = jnp.where((d > 0) & (f > 0), f, 0.0)
        return jax.vjp(lambda x: jnp.atleast_1d(self.gap(x)), q)[1](pushing)[0]

    @property
    def switches(self) -> FrictionElements:
        """The `friction` of a `System`: elements without force whose signs change where a contact begins or ends."""
        return FrictionElements(self.signs, NO_FORCE)

    def signs(self, q: Array, v: Array) -> Array:
        """Overlaps, and forces with tension."""
        return jnp.concatenate(self.push(q, v))
