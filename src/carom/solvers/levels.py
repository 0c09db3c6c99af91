"""Linear equations whose unknowns lie in levels of which only neighbours meet: block by block along the levels.

Letters: K levels, w unknowns of the widest one; A matrix of the equations, of which three blocks a level are there.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_ENDS = 16  # unknowns from which levels are tried
_SMALL = 6  # unknowns of a level up to which its inverse is written out: a call of LAPACK takes longer


def levels_of(meets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The level of every unknown, so that unknowns that meet lie in one level or in neighbours.

    Levels count the steps from unknowns at an end, of those tried the ones with the narrowest levels, by weight; parts
    that do not meet follow each other.
    """
    meets = meets | meets.T
    level, many = np.full(len(meets), -1), len(meets) + 1
    while (level < 0).any():
        far = _steps_from(meets, int(np.argmin(np.where(level < 0, meets.sum(1), many))))
        ends = np.flatnonzero(meets[far == far.max()].any(0))[:_ENDS]
        tried = [_steps_from(meets, int(end)) for end in ends]
        widths = [np.bincount(steps[steps >= 0], weights[steps >= 0]).max() for steps in tried]
        steps = tried[int(np.argmin(widths))]
        level = np.where(steps < 0, level, steps + level.max() + 1)
    return level


def _steps_from(meets: np.ndarray, start: int) -> np.ndarray:
    """How many steps every unknown is away from `start` and those that meet no others, -1 if there is no way."""
    steps, front, count = np.full(len(meets), -1), ~(meets & ~meets[start]).any(1), 0
    while front.any():
        steps[front] = count
        front, count = meets[front].any(0) & (steps < 0), count + 1
    return steps


def table_of(level: np.ndarray) -> np.ndarray:
    """The unknowns of every level, (K, w), filled up with their number."""
    counts = np.bincount(level)
    table = np.full((counts.size, counts.max()), level.size)
    order = np.argsort(level, kind="stable")
    slot = np.arange(level.size) - np.repeat(np.cumsum(counts) - counts, counts)
    table[level[order], slot] = order
    return table


class Factorised(eqx.Module):
    """The inverse of A, as factors: S_k = A_kk - A_k,k-1 S_k-1^{-1} A_k-1,k of every level and their neighbours.

    Unknowns in the order of a mechanism's bodies, each constraint in the last level that it touches: then the matrix of
    every beginning is that of a mechanism too, and has an inverse.
    """

    inverse: Float[Array, "K w w"]
    below: Float[Array, "K w w"]
    above: Float[Array, "K w w"]
    table: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    @classmethod
    def of(cls, linear: Callable[[Array], Array], level: np.ndarray) -> Factorised:
        """Of x -> A x, seen from directions of which each touches every third level only."""
        table = table_of(level)
        below, middle, above = _blocks(linear, table, level.size)
        filled = jnp.asarray((table == level.size)[:, :, None] * np.eye(table.shape[1]))

        def eliminate(X: Array, row: tuple[Array, Array, Array]) -> tuple[Array, tuple[Array, Array, Array]]:
            left, own, right = row
            inverse = inverted(own - left @ X)
            X = inverse @ right
            return X, (inverse, left, X)

        start = jnp.zeros(middle.shape[1:])
        factors = jax.lax.scan(eliminate, start, (below, middle + filled, above))[1]
        return cls(*factors, tuple(map(tuple, table.tolist())))

    def solve(self, b: Array) -> Array:
        """A^{-1} b."""
        table = np.asarray(self.table)
        down = lambda last, row: (row[0] @ (row[2] - row[1] @ last),) * 2  # noqa: E731
        up = lambda last, row: (row[1] - row[0] @ last,) * 2  # noqa: E731
        none = jnp.zeros(table.shape[1])
        y = jax.lax.scan(down, none, (self.inverse, self.below, jnp.pad(b, (0, 1))[table]))[1]
        x = jax.lax.scan(up, none, (self.above, y), reverse=True)[1]
        return x.reshape(-1)[_places(table, b.size)]


def inverted(A: Array) -> Array:
    """A^{-1}, by elimination with the largest pivot of each column where A is small."""
    if A.shape[0] > _SMALL:
        return jnp.linalg.inv(A)
    w = A.shape[0]
    table, rows = jnp.concatenate([A, jnp.eye(w)], 1), np.arange(w)
    for k in range(w):
        p = jnp.argmax(jnp.where(rows >= k, jnp.abs(table[:, k]), -1.0))
        row = table[p] / table[p, k]
        table = jnp.where((rows == p)[:, None], table[k], table)
        table = jnp.where((rows == k)[:, None], row, table - jnp.where(rows == k, 0.0, table[:, k])[:, None] * row)
    return table[:, w:]


class Cut(eqx.Module):
    """A matrix whose entries couple neighbouring levels only, for products with many vectors."""

    blocks: Float[Array, "K w 3w"]
    table: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    ndim = 2

    @classmethod
    def of(cls, M: Array, level: np.ndarray) -> Cut:
        """M without what is far from its diagonal, in the order of levels."""
        table = table_of(level)
        M = jnp.pad(M, ((0, 1), (0, 1)))
        return cls(M[table[:, :, None], _beside(table, len(level))[:, None, :]], tuple(map(tuple, table.tolist())))

    def __matmul__(self, x: Array) -> Array:
        """Matrix times vector."""
        table = np.asarray(self.table)
        near = jnp.pad(x, (0, 1))[_beside(table, x.size)]
        return jnp.einsum("kij,kj->ki", self.blocks, near).reshape(-1)[_places(table, x.size)]


def _beside(table: np.ndarray, size: int) -> np.ndarray:
    """The unknowns of every level and its neighbours, (K, 3 w)."""
    around = np.pad(table, ((1, 1), (0, 0)), constant_values=size)
    return np.concatenate([around[:-2], around[1:-1], around[2:]], 1)


def _places(table: np.ndarray, size: int) -> np.ndarray:
    """Where in the table every unknown is."""
    place = np.zeros(size + 1, int)
    place[table] = np.arange(table.size).reshape(table.shape)
    return place[:-1]


def _blocks(linear: Callable[[Array], Array], table: np.ndarray, size: int) -> list[Array]:
    """A_k,k-1, A_kk and A_k,k+1 of every level."""
    (K, w), level = table.shape, np.arange(len(table))[:, None]
    seeds = np.zeros((3, w, size + 1))
    seeds[level % 3, np.arange(w), table] = 1.0
    seen = jax.vmap(linear)(jnp.asarray(seeds[..., :-1].reshape(3 * w, size))).reshape(3, w, size)
    seen = jnp.pad(seen, ((0, 0), (0, 0), (0, 1)))
    blocks = []
    for beside in (-1, 0, 1):
        other = level + beside
        there = (other >= 0) & (other < K)
        columns = there & (table[np.clip(other, 0, K - 1)[:, 0]] < size)
        values = seen[(other % 3)[:, :, None], np.arange(w), table[:, :, None]]
        blocks.append(jnp.where(columns[:, None, :], values, 0.0))
    return blocks
