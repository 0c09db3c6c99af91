"""Matrices of systems of bodies: blocks of pairs, blocks of single bodies, a diagonal; their products and solves.

    A = M^{-1} S,   S x = sum over bonds (a, b) of K (x_b - x_a) at b and its opposite at a + blocks x + diagonal x

with symmetric d x d blocks K and M diagonal. A x = b is solved as S x = M b by conjugate gradients, preconditioned with
the blocks of S on its diagonal; for complex symmetric S the same recurrence without conjugation is COCG [van der
Vorst and Melissen 1990]. Newton's directions need few digits: what a solve leaves, the next update removes.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from carom.solvers.bonds import AbstractBonds
from carom.solvers.roots import repeated

Columns = list[Array]
_ACCURACY = 1e-4  # of a solve, relative: each update of Newton's method gains as much
_MOST = 1000  # iterations


class PairTerm(eqx.Module):
    """Blocks of one set of bonds; `bodies` are those it joins, `blocks` the upper triangles row by row, per kind."""

    bodies: Any
    bonds: AbstractBonds
    blocks: list[Columns]
    dimension: int = eqx.field(static=True)

    def columns(self, x: Array) -> Columns:
        """The entries of its bodies, one array per dimension."""
        rows = self.bodies.positions(x)
        return [rows[:, i] for i in range(self.dimension)]

    def add(self, whole: Float[Array, "N c"], columns: Columns) -> Array:
        """Add entries of its bodies to those of all."""
        rows = jnp.stack(columns, 1)
        if rows.shape == whole.shape:
            return whole + rows
        return whole.at[self.bodies._slice, : self.dimension].add(rows)

    def times(self, whole: Float[Array, "N c"], x: Array) -> Array:
        """Add the product with a vector."""
        kinds = zip(*(self.bonds.ends(column) for column in self.columns(x)))
        d, pulled = self.dimension, []
        for blocks, ends in zip(self.blocks, kinds):
            w = [b - a for a, b in ends]
            pulled.append([sum(blocks[_place(i, j, d)] * w[j] for j in range(d)) for i in range(d)])
        return self.add(whole, [self.bonds.onto([(-f[i], f[i]) for f in pulled]) for i in range(d)])

    def add_diagonal(self, own: Float[Array, "N c c"]) -> Array:
        """Add its blocks on the diagonal of the matrix."""
        d = self.dimension
        entries = [self.bonds.onto([(k[p], k[p]) for k in self.blocks]) for p in range(d * (d + 1) // 2)]
        block = jnp.stack([jnp.stack([entries[_place(i, j, d)] for j in range(d)], 1) for i in range(d)], 1)
        return own.at[self.bodies._slice, :d, :d].add(block)


class PairBlocks(eqx.Module):
    """M^{-1} times the sum of pair terms, blocks of bodies (N, c, c) and a diagonal."""

    terms: tuple[PairTerm, ...]
    own: Float[Array, "N c c"]
    diagonal: Array
    mass: Array

    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.diagonal.size, self.diagonal.size

    def __add__(self, other: PairBlocks) -> PairBlocks:
        """The sum of two matrices with the same pairs and masses."""
        return eqx.tree_at(_numbers, self, jax.tree.map(jnp.add, _numbers(self), _numbers(other)))

    def scaled(self, factor: Array) -> PairBlocks:
        """The matrix times a number."""
        return eqx.tree_at(_numbers, self, jax.tree.map(lambda x: factor * x, _numbers(self)))

    def plus_diagonal(self, d: Array) -> PairBlocks:
        """The matrix plus diag(d)."""
        return eqx.tree_at(lambda m: m.diagonal, self, self.diagonal + self.mass * d)

    def __matmul__(self, x: Array) -> Array:
        """Matrix times vector."""
        return self._symmetric(x) / self.mass

    def solve(self, b: Array) -> Array:
        """Solve to a few digits."""
        inverse, right = self._inverse_blocks(), self.mass * b
        kind = jnp.result_type(right, self.diagonal)
        return jax.lax.custom_linear_solve(
            self._symmetric,
            right.astype(kind),
            lambda product, r: conjugate_gradients(product, lambda z: self._times_blocks(inverse, z), r),
            symmetric=True,
        )

    def dense(self) -> Array:
        """All entries, for who asks."""
        return jax.vmap(self.__matmul__, out_axes=1)(jnp.eye(self.shape[0]))

    def _symmetric(self, x: Array) -> Array:
        rows = x.reshape(self.own.shape[:2])
        total = (self.diagonal * x).reshape(rows.shape) + _product(self.own, rows)
        for term in self.terms:
            total = term.times(total, x)
        return total.reshape(-1)

    def _inverse_blocks(self) -> Array:
        blocks = self.own
        for term in self.terms:
            blocks = term.add_diagonal(blocks.astype(jnp.result_type(blocks, *jax.tree.leaves(term.blocks))))
        return _inverted(blocks + self.diagonal.reshape(*blocks.shape[:2], 1) * jnp.eye(blocks.shape[1]))

    def _times_blocks(self, blocks: Array, x: Array) -> Array:
        return _product(blocks, x.reshape(blocks.shape[:2])).reshape(-1)


def _numbers(matrix: PairBlocks) -> list[Any]:
    return [*(term.blocks for term in matrix.terms), matrix.own, matrix.diagonal]


def conjugate_gradients(product: Any, precondition: Any, b: Array) -> Array:
    """x with |b - A x| below a part of |b|, for a symmetric A (complex ones too); where it breaks down, the last x."""
    goal = _ACCURACY * jnp.linalg.norm(b)

    def goes_on(loop: tuple[Array, ...]) -> Array:
        _, r, _, rho, k = loop
        return (jnp.linalg.norm(r) > goal) & (k < _MOST) & (rho != 0)

    def improve(loop: tuple[Array, ...]) -> tuple[Array, ...]:
        x, r, p, rho, k = loop
        s = product(p)
        alpha = rho / jnp.sum(p * s)
        x, r = x + alpha * p, r - alpha * s
        z = precondition(r)
        new = jnp.sum(r * z)
        return x, r, z + new / rho * p, new, k + 1

    z = precondition(b)
    start = (jnp.zeros_like(b), b, z, jnp.sum(b * z), jnp.zeros((), jnp.int32))
    return repeated(goes_on, improve, start)[0]


def _place(i: int, j: int, d: int) -> int:
    """Where the upper triangle of a d x d block, row by row, has the entry (i, j)."""
    low, high = min(i, j), max(i, j)
    return low * d - low * (low - 1) // 2 + high - low


def _product(blocks: Float[Array, "N c c"], rows: Float[Array, "N c"]) -> Array:
    return sum(blocks[:, :, j] * rows[:, j, None] for j in range(rows.shape[1]))  # pyright: ignore


def _inverted(blocks: Float[Array, "N c c"]) -> Array:
    """The inverses of symmetric blocks, by elimination along the diagonal, all bodies at once."""
    c = blocks.shape[1]
    for k in range(c):
        pivot = 1.0 / blocks[:, k, k]
        row, column = blocks[:, k, :] * pivot[:, None], blocks[:, :, k]
        swept = blocks - column[:, :, None] * row[:, None, :]
        swept = swept.at[:, k, :].set(row).at[:, :, k].set(-column * pivot[:, None])
        blocks = swept.at[:, k, k].set(pivot)
    return blocks
