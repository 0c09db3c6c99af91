"""Step sizes from the gap between energy and pseudo-energy [Marazzato2019 Remark 8, done right].

The gap (18), `w M w / 8`, must stay below `eps` times the pseudo-energy. A step that breaks the bound is retried from
the same state with half its size (halving only the next step stalls: the jump tends to minus the one before). No
smaller step can bring the gap under that of the state it starts from, so after `halvings` the step is taken as it is.
After every accepted step the size is doubled back towards h: trying costs less than waiting for a margin.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from carom.arguments import numbers
from carom.methods.base import AbstractMethod, Gives
from carom.names import register
from carom.state import Carry, Info, Row, State, Status
from carom.stepping.base import SAME, AbstractStepping, Aim, after, take
from carom.systems.system import System


@register
class EnergyGap(AbstractStepping):
    """Halve the step until the gap (18) is at most `eps` times the pseudo-energy, double back afterwards.

    Args:
        eps: bound on the gap relative to the pseudo-energy.
        h: the largest step, tried first.
        halvings: the most halvings of h; a step at this size is accepted whatever its gap.

    Example:
        >>> stepping = carom.EnergyGap(eps=3e-4, h=0.0048)
    """

    eps: Array
    h: Array
    halvings: int = eqx.field(static=True)

    needs = frozenset({Gives.MOMENTUM_JUMP, Gives.WHOLE_STEPS})
    remedy = "Raise h, or lower halvings"

    def __init__(self, eps: ArrayLike, h: ArrayLike, halvings: int = 10):
        self.eps = numbers(eps, "EnergyGap: eps", positive=True)
        self.h = numbers(h, "EnergyGap: h", positive=True)
        if not isinstance(halvings, int) or halvings < 0:
            msg = f"EnergyGap: halvings must be a whole number of at least 0, got {halvings!r}"
            raise ValueError(msg)
        self.halvings = halvings

    @property
    def longest(self) -> float:
        """The size tried first."""
        return float(np.asarray(self.h))

    def init(self, system: System, method: AbstractMethod, state: State, ends: Array) -> Array:
        """The number of halvings of h: none."""
        del system, method, state, ends
        return jnp.zeros((), jnp.int64)

    def attempt(self, system: System, method: AbstractMethod, carry: Carry) -> tuple[Carry, Row]:
        """One step, kept if its gap is small enough."""
        halved, t, end = carry.stepping, carry.state.t, carry.ends[carry.segment + 1]
        size = self.h * 0.5**halved
        lands = end - t <= size * (1 + SAME)
        h = jnp.where(end - t < size * (1 - SAME), end - t, size)
        tried = take(system, method, carry, Aim.at(system, carry, h, jnp.where(lands, end, t + h), lands))
        gap, bound = self._gap(system, tried.ahead.state, tried.info)
        least = halved >= self.halvings
        ok = ((gap <= bound) | least) & (tried.status == Status.OK)
        halve = ~ok & ~least
        status = jnp.where(halve, Status.OK, tried.status)
        return after(system, carry, tried, ok, halved + halve - (ok & (halved > 0)), status)

    def _gap(self, system: System, s: State, info: Info) -> tuple[Any, Any]:
        """The gap (18) and its bound."""
        w = info.extra["jump"]
        gap = 0.25 * system.kinetic_energy(s.t, s.q, w)
        energy = system.kinetic_energy(s.t, s.q, s.v) + system.potential_energy(s.t, s.q)
        return gap, self.eps * jnp.abs(energy - gap)
