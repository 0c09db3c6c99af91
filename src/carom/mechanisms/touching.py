"""Corners of bodies against planes, and limits of joints, as unilateral contacts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.bodies import Bodies
from carom.mechanisms.holding import Coordinates
from carom.mechanisms.poses import poses, spins
from carom.shapes import tangents


@dataclass(frozen=True, eq=False)
class Plane:
    """The half space `normal . x >= offset`, of the ground or carried by a body, against the corners of bodies.

    Args:
        normal: where the free side is, in the axes of the body that carries the plane.
        offset: of the plane along its normal.
        of: the body that carries it.
        touches: the bodies whose corners touch it; all (but the carrier) that have corners by default.
        friction: Coulomb's mu.
        restitution: of the normal direction, in [0, 1].

    Example:
        >>> floor = carom.Plane((0, 1), friction=0.3, restitution=0.5)
    """

    normal: Any
    offset: float = 0.0
    of: str = "ground"
    touches: Sequence[str] | None = None
    friction: float = 0.0
    restitution: float = 0.0


class Corners(eqx.Module):
    """Points of bodies, rounded by radii, above planes of other bodies."""

    bodies: Bodies
    body: tuple[int, ...] = eqx.field(static=True)
    carrier: tuple[int, ...] = eqx.field(static=True)
    point: Array
    radius: Array
    normal: Array
    offset: Array

    def _arms(self, q: Array) -> tuple[Any, Array, Array, Array]:
        """Poses, normals in space, and arms from the centres of both bodies to the points of contact."""
        at = poses(q, self.bodies)
        rows, under = np.asarray(self.body), np.asarray(self.carrier)
        n = jnp.einsum("kij,kj->ki", at.turn[under], self.normal)
        arm = jnp.einsum("kij,kj->ki", at.turn[rows], self.point) - self.radius[:, None] * n
        return at, n, arm, at.place[rows] + arm - at.place[under]

    def gap(self, q: Array) -> Array:
        """How far the lowest points are above the planes."""
        _, n, _, below = self._arms(q)
        return jnp.sum(n * below, 1) - self.offset

    def slip(self, q: Array, v: Array) -> Array:
        """The velocities with which they slide along the planes."""
        at, n, arm, below = self._arms(q)
        d = n.shape[1]
        still = jnp.zeros((1, self.bodies.dof - d))
        spin = jnp.concatenate([spins(self.bodies, at, v), still])
        speed = jnp.concatenate([self.bodies.velocities(v)[:, :d], jnp.zeros((1, d))])

        def of_point(rows: Any, arm: Array) -> Array:
            turning = jnp.cross(spin[rows], arm) if d == 3 else spin[rows] * jnp.stack([-arm[:, 1], arm[:, 0]], 1)
            return speed[rows] + turning

        relative = of_point(np.asarray(self.body), arm) - of_point(np.asarray(self.carrier), below)
        if d == 2:
            return n[:, 1] * relative[:, 0] - n[:, 0] * relative[:, 1]
        return jnp.einsum("kij,kj->ki", jax.vmap(tangents)(n), relative)


class Limits(eqx.Module):
    """Coordinates of joints above their lowest, and below their highest values."""

    coordinates: Coordinates
    which: tuple[int, ...] = eqx.field(static=True)
    sign: Array
    bound: Array
    middle: Array | None

    def __call__(self, q: Array) -> Array:
        """What is left up to the limits; of angles that do not count turns from between both of them."""
        if self.middle is None:
            return self.sign * (self.coordinates(q)[np.asarray(self.which)] - self.bound)
        x = self.middle + self.coordinates.beyond(q, self.middle)
        return self.sign * (x[np.asarray(self.which)] - self.bound)
