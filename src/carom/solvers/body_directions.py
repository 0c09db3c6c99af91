"""Directions of contacts of bodies: each acts on one body or on two, by small blocks; no matrix is formed.

Letters: N bodies of f velocities each, K contacts of R = 1 + directions rows each (the normal first), W rows of the
directions, P impulses, u velocities. Rows of a problem are ordered as in `carom.solvers.contact_laws`; here an array of
one group of contacts has the shape (R, K): contacts last and bodies first is what compiled sweeps are fastest with (at
1e4 disks 21 ns per contact, with contacts first 88).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from carom.solvers.directions import AbstractDirections

_NO_MATRIX = "contacts of many bodies have directions of which no matrix is formed"


class Colours(eqx.Module):
    """Contacts in an order in which those of a colour stand together: where each begins, and how many it may have."""

    starts: Int[Array, " colours"]
    sizes: tuple[int, ...] = eqx.field(static=True)


class Side(eqx.Module):
    """What contacts are to one of their bodies: its number (N or more where there is none), and their rows of W."""

    body: Int[Array, " K"]
    rows: Float[Array, "R f K"]

    def own(self, of_bodies: Float[Array, "N f"]) -> Float[Array, "K f"]:
        """What belongs to the bodies, zero where there is none."""
        return of_bodies.at[self.body].get(mode="fill", fill_value=0.0)

    def velocity(self, own: Float[Array, "K f"]) -> Float[Array, "R K"]:
        """What the velocities of the bodies add to the relative ones."""
        return added(self.rows[:, i] * own[:, i] for i in range(own.shape[1]))

    def push(self, P: Float[Array, "R K"]) -> Float[Array, "K f"]:
        """What impulses are to the bodies."""
        return jnp.stack([added(row * p for row, p in zip(axis, P)) for axis in jnp.swapaxes(self.rows, 0, 1)], axis=1)

    def over(self, M: Float[Array, "N f"]) -> Side:
        """The rows over the masses of the bodies."""
        return Side(self.body, self.rows / M.at[self.body].get(mode="fill", fill_value=1.0).T)


def added(terms: Iterable[Array]) -> Array:
    """Their sum, one after the other.

    `jnp.sum` along a short axis rounds differently where it is compiled for another number of contacts.
    """
    return reduce(jnp.add, terms)


def velocity_of(sides: tuple[Side, ...], own: list[Array]) -> Float[Array, "R K"]:
    """Relative velocities, from those of the bodies of each side."""
    return added(side.velocity(v) for side, v in zip(sides, own))


class Blocks(eqx.Module):
    """The directions of a group of contacts; within a colour no body occurs twice."""

    sides: tuple[Side, ...]
    colours: Colours

    @property
    def count(self) -> int:
        """K."""
        return self.sides[0].rows.shape[2]

    @property
    def directions(self) -> int:
        """Directions of friction."""
        return self.sides[0].rows.shape[0] - 1

    def velocity(self, own: list[Array]) -> Float[Array, "R K"]:
        """Relative velocities, from those of the bodies of each side."""
        return velocity_of(self.sides, own)

    def changed(self, change: Callable[[Side], Side]) -> Blocks:
        """The same with other sides."""
        return Blocks(tuple(change(side) for side in self.sides), self.colours)


class BodyDirections(AbstractDirections):
    """W of several groups of contacts of the same bodies; W M^{-1} keeps the masses M."""

    groups: tuple[Blocks, ...]
    bodies: int = eqx.field(static=True)
    M: Float[Array, "N f"] | None = None

    has_matrix = False

    @property
    def masses(self) -> Float[Array, "N f"]:
        """M, of W M^{-1}."""
        assert self.M is not None
        return self.M

    @property
    def dof(self) -> int:
        """Velocities per body."""
        return self.groups[0].sides[0].rows.shape[1]

    def cut(self, v: Array) -> Float[Array, "N f"]:
        """A vector by bodies."""
        return v.reshape(self.bodies, self.dof)

    def velocity(self, v: Array) -> Array:
        """W v."""
        u = self.cut(v)
        return self.stacked(tuple(group.velocity([side.own(u) for side in group.sides]) for group in self.groups))

    def force(self, P: Array) -> Array:
        """W^T P."""
        total = jnp.zeros((self.bodies, self.dof))
        for group, own in zip(self.groups, self.by_group(P)):
            for side in group.sides:
                total = total.at[side.body].add(side.push(own), mode="drop")
        return total.ravel()

    def over(self, M: Array) -> BodyDirections:
        """W M^{-1} for a mass that is a number or one per velocity."""
        masses = self.cut(jnp.broadcast_to(M, (self.bodies * self.dof,)))
        return BodyDirections(self._changed(lambda side: side.over(masses)), self.bodies, masses)

    def products(self, other: AbstractDirections) -> Array:
        """W_i . other_i."""
        assert isinstance(other, BodyDirections)
        found = []
        for group, its in zip(self.groups, other.groups):
            rows = ((a.rows[:, i] * b.rows[:, i]) for a, b in zip(group.sides, its.sides) for i in range(self.dof))
            found.append(added(rows))
        return self.stacked(tuple(found))

    def summed(self, x: Array) -> Array:
        """The sum of rows, body by body: the same to the last bit whatever the number of empty places."""
        total = jnp.zeros(self.bodies)
        for group, own in zip(self.groups, self.by_group(x)):
            total = total.at[group.sides[0].body].add(added(own), mode="drop")
        return jnp.sum(total)

    def by_group(self, x: Array) -> tuple[Float[Array, "R K"], ...]:
        """Rows by group."""
        found, first, row = [], 0, sum(group.count for group in self.groups)
        for group in self.groups:
            size = group.count * group.directions
            normal, friction = x[first : first + group.count], x[row : row + size]
            found.append(jnp.vstack([normal, friction.reshape(group.count, group.directions).T]))
            first, row = first + group.count, row + size
        return tuple(found)

    def stacked(self, groups: tuple[Array, ...]) -> Array:
        """Rows in their order, from those by group."""
        return jnp.concatenate([*(g[0] for g in groups), *(g[1:].T.ravel() for g in groups)])

    def taken(self, rows: slice) -> BodyDirections:
        """Refused."""
        del rows
        raise TypeError(_NO_MATRIX)

    def sizes(self) -> BodyDirections:
        """|W|."""
        return BodyDirections(self._changed(lambda s: Side(s.body, jnp.abs(s.rows))), self.bodies, self.M)

    def dense(self) -> Array:
        """Refused."""
        raise TypeError(_NO_MATRIX)

    def _changed(self, change: Callable[[Side], Side]) -> tuple[Blocks, ...]:
        return tuple(group.changed(change) for group in self.groups)
