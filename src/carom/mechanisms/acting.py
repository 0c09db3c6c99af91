"""Springs and dampers between points, and what acts on the coordinates of joints: springs, dampers, motors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import plain_numbers
from carom.bodies import Bodies
from carom.mechanisms.holding import Coordinates
from carom.mechanisms.poses import Side, poses, rate

_NO_FORCE = 1e-60  # squared, so that the limit has a derivative where there is none


@dataclass(frozen=True, eq=False)
class Spring:
    """A spring, a damper or both between two points: names of bodies, "body.marker", or points of the ground.

    Args:
        a: one end.
        b: the other end.
        stiffness: force per length.
        length: at which it is relaxed.
        damping: force per velocity.

    Example:
        >>> strut = carom.Spring("wheel.hub", (0.0, 1.0), stiffness=1e4, length=0.4, damping=300.0)
    """

    a: Any
    b: Any
    stiffness: float = 0.0
    length: float = 0.0
    damping: float = 0.0

    def __post_init__(self):
        for name in ("stiffness", "length", "damping"):
            plain_numbers(getattr(self, name), f"Spring: {name}", size=1, nonnegative=True)


class Lengths(eqx.Module):
    """The lengths of springs."""

    bodies: Bodies
    a: Side
    b: Side

    def __call__(self, q: Array) -> Array:
        """One per spring."""
        at = poses(q, self.bodies)
        d = self.b.at(at).point - self.a.at(at).point
        squares = jnp.sum(d * d, 1)
        apart = squares > 0
        return jnp.where(apart, jnp.sqrt(jnp.where(apart, squares, 1.0)), 0.0)

    def beyond(self, q: Array, origin: Array) -> Array:
        """How much longer than `origin`."""
        return self(q) - origin


class Elastic(eqx.Module):
    """The energy of springs on some measure x(q)."""

    measure: Lengths | Coordinates
    stiffness: Array
    rest: Array

    def __call__(self, q: Array) -> Array:
        """sum of k (x - rest)^2 / 2."""
        return 0.5 * jnp.sum(self.stiffness * self.measure.beyond(q, self.rest) ** 2)


def moving(bodies: Bodies, measure: Any, q: Array, v: Array) -> tuple[Array, Array, Callable[[Array], Array]]:
    """x(q), its rate, and the map from forces along x to those along the velocities."""

    def of(u: Array) -> tuple[Array, Array]:
        x, speed = jax.jvp(measure, (q,), (rate(bodies, q, u),))
        return speed, x

    speed, pull, x = jax.vjp(of, v, has_aux=True)
    return x, speed, lambda f: pull(f)[0]


class Damping(eqx.Module):
    """Dampers on some measure x(q)."""

    bodies: Bodies
    measure: Callable[..., Any]
    damping: Array

    def __call__(self, t: Array, q: Array, v: Array) -> Array:
        """-c x'."""
        del t
        _, speed, pull = moving(self.bodies, self.measure, q, v)
        return pull(-self.damping * speed)


class Motors(eqx.Module):
    """Forces and torques on coordinates of joints: None, a number, or a function of (t, x, rate)."""

    bodies: Bodies
    coordinates: Coordinates
    drives: tuple[Any, ...]

    def __call__(self, t: Array, q: Array, v: Array) -> Array:
        """The forces along the velocities."""
        x, speed, pull = moving(self.bodies, self.coordinates, q, v)
        return pull(jnp.stack([_driven(drive, t, x[i], speed[i]) for i, drive in enumerate(self.drives)]))


class Rubbing(eqx.Module):
    """Dry friction along coordinates of joints, from the forces that these joints carry."""

    bodies: Bodies
    coordinates: Coordinates
    which: tuple[int, ...] = eqx.field(static=True)
    rows: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    friction: tuple[Any, ...]

    def slip(self, q: Array, v: Array) -> Array:
        """The rates of the coordinates."""
        return jax.jvp(self.coordinates, (q,), (rate(self.bodies, q, v),))[1][np.asarray(self.which)]

    def limit(self, t: Array, q: Array, v: Array, lam: Array) -> Array:
        """mu, which may depend on the rate, times the force across the axis."""
        del t
        rates = self.slip(q, v)
        mu = [jnp.asarray(f(rates[i]) if callable(f) else f, float) for i, f in enumerate(self.friction)]
        carried = [jnp.sqrt(jnp.sum(lam[np.asarray(own)] ** 2) + _NO_FORCE) for own in self.rows]
        return jnp.stack(mu) * jnp.stack(carried)


def _driven(drive: Any, t: Array, x: Array, speed: Array) -> Array:
    if callable(drive):
        return jnp.asarray(drive(t, x, speed), float)
    return jnp.zeros(()) if drive is None else jnp.asarray(drive, float)
