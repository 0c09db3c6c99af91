"""Directions of contacts of bodies: each acts on one body or on two, by small blocks; no matrix is formed.

Letters: N bodies of f velocities each, K contacts of R = 1 + directions rows each (the normal first), W rows of the
directions, P impulses, u velocities. Rows of a problem are ordered as in `carom.solvers.contact_laws`; here impulses of
one group of contacts have the shape (R, K), velocities of bodies (N, f), and every entry of W is an array of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from carom.solvers.directions import AbstractDirections

_NO_MATRIX = "contacts of many bodies have directions of which no matrix is formed"


class Colours(eqx.Module):
    """Contacts in an order in which those of a colour stand together: where each begins, and how many it may have."""

    starts: Int[Array, " colours"]
    sizes: tuple[int, ...] = eqx.field(static=True)


Columns = Sequence[Array]  # an array of K entries for each row, or each velocity of a body
Rows = Sequence[Columns]  # W of one side: an array of K entries for each row and velocity


class Side(eqx.Module):
    """What contacts are to one of their bodies: its number (N or more where there is none), and their rows of W."""

    body: Int[Array, " K"]
    rows: Rows

    def own(self, of_bodies: Float[Array, "N f"]) -> Columns:
        """What belongs to the bodies, zero where there is none."""
        return columns(of_bodies.at[self.body].get(mode="fill", fill_value=0.0))

    def push(self, P: Float[Array, "R K"]) -> Float[Array, "K f"]:
        """What impulses are to the bodies."""
        return jnp.stack(push_of(self.rows, P), axis=1)


def added(terms: Iterable[Array]) -> Array:
    """Their sum, one after the other.

    `jnp.sum` along a short axis rounds differently where it is compiled for another number of contacts.
    """
    return reduce(jnp.add, terms)


def columns(x: Float[Array, "K f"]) -> Columns:
    """An array for each velocity."""
    return [x[:, i] for i in range(x.shape[1])]


def velocity_of(sides: Iterable[Rows], own: Iterable[Columns]) -> list[Array]:
    """Relative velocities, row by row, from those of the bodies of each side."""
    both = list(zip(sides, own))
    return [added(x * v for rows, u in both for x, v in zip(rows[r], u)) for r, _ in enumerate(both[0][0])]


def push_of(rows: Rows, P: Iterable[Array]) -> list[Array]:
    """What impulses are to the bodies of one side."""
    P = list(P)
    return [added(x * p for x, p in zip(column, P)) for column in zip(*rows)]


class Blocks(eqx.Module):
    """The directions of a group of contacts; within a colour no body occurs twice."""

    sides: tuple[Side, ...]
    colours: Colours

    @property
    def count(self) -> int:
        """K."""
        return self.sides[0].body.shape[0]

    @property
    def directions(self) -> int:
        """Directions of friction."""
        return len(self.sides[0].rows) - 1

    def velocity(self, u: Float[Array, "N f"]) -> list[Array]:
        """Relative velocities, from those of the bodies."""
        return velocity_of((side.rows for side in self.sides), [side.own(u) for side in self.sides])


class BodyDirections(AbstractDirections):
    """W of several groups of contacts of the same bodies; with masses M it is W M^{-1}."""

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
        return len(self.groups[0].sides[0].rows[0])

    def cut(self, v: Array) -> Float[Array, "N f"]:
        """A vector by bodies."""
        return v.reshape(self.bodies, self.dof)

    def velocity(self, v: Array) -> Array:
        """W v."""
        u = self._over(self.cut(v))
        return self.stacked(tuple(group.velocity(u) for group in self.groups))

    def force(self, P: Array) -> Array:
        """W^T P."""
        total = jnp.zeros((self.bodies, self.dof))
        for group, own in zip(self.groups, self.by_group(P)):
            for side in group.sides:
                total = total.at[side.body].add(side.push(own), mode="drop")
        return self._over(total).ravel()

    def over(self, M: Array) -> BodyDirections:
        """W M^{-1} for a mass that is a number or one per velocity."""
        return BodyDirections(self.groups, self.bodies, self.cut(jnp.broadcast_to(M, (self.bodies * self.dof,))))

    def products(self, other: AbstractDirections) -> Array:
        """W_i . other_i."""
        assert isinstance(other, BodyDirections)
        per_mass, found = self._over(other._over(jnp.ones((self.bodies, self.dof)))), []
        for group, its in zip(self.groups, other.groups):
            weights = [side.own(per_mass) for side in group.sides]
            squares = [jax.tree.map(jnp.multiply, a.rows, b.rows) for a, b in zip(group.sides, its.sides)]
            found.append(velocity_of(squares, weights))
        return self.stacked(tuple(found))

    def summed(self, x: Array) -> Array:
        """The sum of rows; on a CPU body by body: the same to the last bit whatever the number of empty places."""

        def by_bodies(x: Array) -> Array:
            total = jnp.zeros(self.bodies)
            for group, own in zip(self.groups, self.by_group(x)):
                total = total.at[group.sides[0].body].add(added(own), mode="drop")
            return jnp.sum(total)

        return jax.lax.platform_dependent(x, cpu=by_bodies, default=jnp.sum)

    def places(self, k: int, contact: Int[Array, " B"]) -> Int[Array, "R B"]:
        """Which rows contacts of group k have; beyond all rows for one that it has not."""
        counts, own = [group.count for group in self.groups], self.groups[k]
        sizes = [group.count * group.directions for group in self.groups]
        first, row = sum(counts[:k]), sum(counts) + sum(sizes[:k])
        rows = [first + contact, *(row + own.directions * contact + j for j in range(own.directions))]
        return jnp.where(contact < own.count, jnp.stack(rows), sum(counts) + sum(sizes))

    def by_group(self, x: Array) -> tuple[Float[Array, "R K"], ...]:
        """Rows by group."""
        found, first, row = [], 0, sum(group.count for group in self.groups)
        for group in self.groups:
            size = group.count * group.directions
            normal, friction = x[first : first + group.count], x[row : row + size]
            found.append(jnp.vstack([normal, friction.reshape(group.count, group.directions).T]))
            first, row = first + group.count, row + size
        return tuple(found)

    def stacked(self, groups: Sequence[Sequence[Array] | Array]) -> Array:
        """Rows in their order, from those by group."""
        friction = (jnp.stack(list(g[1:]), axis=1).ravel() for g in groups if len(g) > 1)
        return jnp.concatenate([*(g[0] for g in groups), *friction])

    def taken(self, rows: slice) -> BodyDirections:
        """Refused."""
        del rows
        raise TypeError(_NO_MATRIX)

    def sizes(self) -> BodyDirections:
        """|W|."""
        return BodyDirections(jax.tree.map(jnp.abs, self.groups), self.bodies, self.M)

    def dense(self) -> Array:
        """Refused."""
        raise TypeError(_NO_MATRIX)

    def _over(self, of_bodies: Float[Array, "N f"]) -> Float[Array, "N f"]:
        return of_bodies if self.M is None else of_bodies / self.M
