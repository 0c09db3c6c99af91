"""The constraints of all joints together: joints of one kind are computed at once, rows come in the order of joints."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.bodies import Bodies
from carom.mechanisms.equations import KINDS, At
from carom.mechanisms.picking import picked
from carom.mechanisms.poses import Poses, Side, poses, spins
from carom.shapes import tangents


class Alike(eqx.Module):
    """The joints of one kind."""

    kind: str = eqx.field(static=True)
    a: Side
    b: Side
    numbers: Array

    @property
    def joined(self) -> list[tuple[int, ...]]:
        """The two bodies of each."""
        return list(zip(self.a.body, self.b.body))

    def residuals(self, A: At, B: At) -> Array:
        """What they hold, one after another."""
        return jax.vmap(KINDS[self.kind].residual)(A, B, *self.numbers.T).reshape(-1)

    def coordinates(self, A: At, B: At) -> Array:
        """The coordinate of each."""
        coordinate = KINDS[self.kind].coordinate
        return jnp.zeros(0) if coordinate is None else jax.vmap(coordinate)(A, B)


def framed(groups: Sequence[Alike], bodies: Poses) -> list[tuple[Alike, At, At]]:
    """The groups and the frames of their joints, all of which are found at once."""
    if not groups:
        return []
    sides = [side for group in groups for side in (group.a, group.b)]
    ends = np.cumsum([0, *(len(side.body) for side in sides)]).tolist()
    at = Side.joined(sides).at(bodies)
    each = [At(*(x[i:j] for x in at)) for i, j in zip(ends, ends[1:])]
    return list(zip(groups, each[::2], each[1::2]))


class Coordinates(eqx.Module):
    """The coordinates x of all joints that have one, in the order of joints."""

    bodies: Bodies
    groups: tuple[Alike, ...]
    order: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, q: Array) -> Array:
        """The angle or displacement of each."""
        at = poses(q, self.bodies)
        found = [group.coordinates(A, B) for group, A, B in framed(self.groups, at)]
        return picked(jnp.concatenate([jnp.zeros(0), *found]), self.order)

    @property
    def turning(self) -> np.ndarray:
        """Which are angles that do not count turns."""
        kinds = [group.kind for group in self.groups for _ in group.joined]
        return np.array([self.bodies.dof == 6 and kinds[i] == "revolute" for i in self.order], bool)

    def beyond(self, q: Array, origin: Array) -> Array:
        """x - origin; of angles that do not count turns the nearer way round."""
        apart, turning = self(q) - origin, self.turning
        return apart - 2 * np.pi * jnp.round(apart / (2 * np.pi)) * turning if turning.any() else apart


def touching(joined: Sequence[tuple[int, ...]], bodies: Bodies) -> np.ndarray:
    """Which velocities act on rows that join these bodies; the ground comes after the last."""
    table = np.zeros((len(joined), bodies.count + 1), bool)
    for i, row in enumerate(joined):
        table[i, list(row)] = True
    return np.repeat(table[:, :-1], bodies.dof, 1)


class Gears(eqx.Module):
    """Coordinates that are tied by pairs; the sine takes away whole turns."""

    pairs: tuple[tuple[int, int], ...] = eqx.field(static=True)
    teeth: Array
    phase: Array

    def residuals(self, x: Array) -> Array:
        """sin(n1 x1 + n2 x2 - phase), as an angle of the faster one."""
        turns = jnp.sum(self.teeth * x[np.asarray(self.pairs)], 1) - self.phase
        return jnp.sin(turns) / jnp.max(jnp.abs(self.teeth), 1)


class Rolling(eqx.Module):
    """Balls (axis zero) and thin disks that roll on planes."""

    bodies: Bodies
    which: tuple[int, ...] = eqx.field(static=True)
    radius: Array
    axis: Array
    normal: Array
    offset: Array

    def lever(self, at: Poses) -> Array:
        """From the lowest point to the centre, in units of the radius."""
        if self.bodies.dof == 3:
            return self.normal
        e = jnp.einsum("kij,kj->ki", at.turn[np.asarray(self.which)], self.axis)
        up = self.normal - jnp.sum(self.normal * e, 1, keepdims=True) * e
        return up / jnp.sqrt(jnp.sum(up * up, 1, keepdims=True))

    def heights(self, at: Poses) -> Array:
        """How far the lowest points are above their planes."""
        lowest = at.place[np.asarray(self.which)] - self.radius[:, None] * self.lever(at)
        return jnp.sum(self.normal * lowest, 1) - self.offset

    @property
    def touches(self) -> np.ndarray:
        """Which velocities let a point slip."""
        return np.repeat(touching([(i,) for i in self.which], self.bodies), self.normal.shape[1] - 1, 0)

    def __call__(self, q: Array, v: Array) -> Array:
        """The velocities with which the lowest points slip."""
        at, rows = poses(q, self.bodies), np.asarray(self.which)
        d = self.normal.shape[1]
        speed, spin = self.bodies.velocities(v)[rows, :d], spins(self.bodies, at, v)[rows]
        n = self.normal
        if d == 2:
            return n[:, 1] * speed[:, 0] - n[:, 0] * speed[:, 1] + self.radius * spin[:, 0]
        slip = speed - jnp.cross(spin, self.radius[:, None] * self.lever(at))
        return jnp.einsum("kij,kj->ki", jax.vmap(tangents)(n), slip).reshape(-1)


class Holding(eqx.Module):
    """g(q) of all joints."""

    bodies: Bodies
    groups: tuple[Alike, ...]
    gears: Gears | None
    rolling: Rolling | None
    coordinates: Coordinates
    order: tuple[int, ...] = eqx.field(static=True)

    @property
    def touches(self) -> np.ndarray:
        """Which velocities act on each row."""
        d = 2 if self.bodies.dof == 3 else 3
        rows = [pair for group in self.groups for pair in group.joined for _ in range(KINDS[group.kind].rows(d))]
        if self.gears is not None:
            driven = [pair for group in self.coordinates.groups for pair in group.joined]
            driven = [driven[i] for i in self.coordinates.order]
            rows += [driven[i] + driven[j] for i, j in self.gears.pairs]
        if self.rolling is not None:
            rows += [(i,) for i in self.rolling.which]
        return touching([rows[i] for i in self.order], self.bodies)

    def __call__(self, q: Array) -> Array:
        """One number per row."""
        at = poses(q, self.bodies)
        rows = [group.residuals(A, B) for group, A, B in framed(self.groups, at)]
        if self.gears is not None:
            rows.append(self.gears.residuals(self.coordinates(q)))
        if self.rolling is not None:
            rows.append(self.rolling.heights(at))
        return picked(jnp.concatenate(rows), self.order)
