"""Matrices of systems of bodies: blocks of pairs, blocks of single bodies, a diagonal; their products and solves.

    A = M^{-1} S,   S x = sum over bonds (a, b) of K (x_b - x_a) at b and its opposite at a + blocks x + diagonal x

with symmetric d x d blocks K and M diagonal. A x = b is solved as S x = M b by conjugate gradients, preconditioned with
the blocks of S on its diagonal; for complex symmetric S the same recurrence without conjugation is COCG [van der
Vorst and Melissen 1990]. Newton's directions need few digits: what a solve leaves, the next update removes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from carom.solvers.bonds import AbstractBonds, Columns
from carom.solvers.roots import repeated, stored

_MOST = 1000  # iterations


class PairTerm(eqx.Module):
    """Blocks of one set of bonds; `bodies` are those it joins, `blocks` the upper triangles row by row, per kind."""

    bodies: Any
    bonds: AbstractBonds
    blocks: list[Columns]
    dimension: int = eqx.field(static=True)

    def spread(self) -> PairTerm:
        """With blocks as products read them."""
        return eqx.tree_at(lambda term: term.blocks, self, self.bonds.spread_bonds(self.blocks))

    def reads(self, x: Columns) -> Columns:
        """What a product reads of a vector."""
        own = x if self.has_all else [column[self.bodies._slice] for column in x]
        return [self.bonds.spread(column) for column in own[: self.dimension]]

    @property
    def has_all(self) -> bool:
        """Whether it joins all bodies."""
        return len(self.bodies) == self.bodies.count

    def times(self, total: Columns, x: Columns) -> Columns:
        """Add the product of blocks with a vector, both spread."""
        sums = self.bonds.acting(_product, self.blocks, x)
        return [*map(self._added, total, sums), *total[self.dimension :]]

    def add_diagonal(self, own: Columns, c: int) -> Columns:
        """Add its blocks (spread) on the diagonal of the matrix to those of all, upper triangles with c rows."""
        own = list(own)
        for (i, j), part in zip(_entries(self.dimension), self.bonds.at_ends(self.blocks)):
            own[_place(i, j, c)] = self._added(own[_place(i, j, c)], part)
        return own

    def _added(self, whole: Array, part: Array) -> Array:
        """Add entries of its bodies to those of all."""
        if self.has_all:
            return whole + part.reshape(whole.shape)
        return whole.at[self.bodies._slice].add(part.reshape(-1))


class PairBlocks(eqx.Module):
    """M^{-1} times the sum of pair terms, blocks of bodies and a diagonal.

    Vectors are held by columns, one array per coordinate of a body; `own` are the blocks of bodies, as upper triangles
    row by row, or None.
    """

    terms: tuple[PairTerm, ...]
    own: Columns | None
    diagonal: Columns
    mass: Columns

    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n = sum(column.size for column in self.diagonal)
        return n, n

    def __add__(self, other: PairBlocks) -> PairBlocks:
        """The sum of two matrices with the same pairs and masses."""
        return eqx.tree_at(_numbers, self, jax.tree.map(jnp.add, _numbers(self), _numbers(other)))

    def scaled(self, factor: Array) -> PairBlocks:
        """The matrix times a number."""
        return eqx.tree_at(_numbers, self, jax.tree.map(lambda x: factor * x, _numbers(self)))

    def plus_diagonal(self, d: Array) -> PairBlocks:
        """The matrix plus diag(d)."""
        more = [a + m * b for a, m, b in zip(self.diagonal, self.mass, self._columns(d))]
        return eqx.tree_at(lambda m: m.diagonal, self, more)

    def __matmul__(self, x: Array) -> Array:
        """Matrix times vector."""
        matrix = self._spread()
        return _joined([y / m for y, m in zip(matrix._symmetric(matrix._columns(x)), matrix.mass)])

    def solve(self, b: Array, accuracy: ArrayLike = 1e-4) -> Array:
        """Solve to a few digits: what is left of b is at most this part of it."""
        matrix = self._spread()
        inverse = matrix._inverse_blocks()
        kind = jnp.result_type(b, *jax.tree.leaves(_numbers(self)))
        right = [(m * x).astype(kind) for m, x in zip(matrix.mass, matrix._columns(b))]

        def solve(_: Any, r: Columns) -> Columns:
            given = matrix._reads, matrix._product, lambda z: _product(inverse, z)
            return conjugate_gradients(*given, r, jnp.asarray(accuracy))

        return _joined(jax.lax.custom_linear_solve(matrix._symmetric, right, solve, symmetric=True))

    def dense(self) -> Array:
        """All entries, for who asks."""
        return jax.vmap(self.__matmul__, out_axes=1)(jnp.eye(self.shape[0]))

    def _columns(self, x: Array) -> Columns:
        return [column.reshape(self.mass[0].shape) for column in columns_of(x, len(self.diagonal))]

    def _spread(self) -> PairBlocks:
        """As products read it: on a lattice all is held in its shape (XLA loops over the shape that it is given)."""
        terms = tuple(term.spread() for term in self.terms)
        forms = {term.bonds.form if term.has_all else None for term in terms}
        form = forms.pop() if len(forms) == 1 else None
        own, diagonal, mass = jax.tree.map(lambda x: x.reshape(form or -1), (self.own, self.diagonal, self.mass))
        matrix = PairBlocks(terms, own, diagonal, mass)
        blocks = [term.blocks for term in terms]
        return eqx.tree_at(lambda m: [term.blocks for term in m.terms], matrix, stored(blocks))

    def _reads(self, x: Columns) -> list[Columns]:
        """What products read of a vector, term by term."""
        return [term.reads(x) for term in self.terms]

    def _product(self, x: Columns, reads: list[Columns]) -> Columns:
        """S x, with blocks that are spread."""
        total = [own * column for own, column in zip(self.diagonal, x)]
        if self.own is not None:
            total = [t + y for t, y in zip(total, _product(self.own, x))]
        for term, own in zip(self.terms, reads):
            total = term.times(total, own)
        return total

    def _symmetric(self, x: Columns) -> Columns:
        return self._product(x, self._reads(x))

    def _inverse_blocks(self) -> Columns:
        """The inverses of the blocks on the diagonal of the matrix (spread), upper triangles row by row."""
        c = len(self.diagonal)
        entries = [self.diagonal[i] if i == j else jnp.zeros_like(self.diagonal[i]) for i, j in _entries(c)]
        if self.own is not None:
            entries = [a + b for a, b in zip(entries, self.own)]
        for term in self.terms:
            entries = term.add_diagonal(entries, c)
        return _inverted(entries, c)


def columns_of(x: Array, c: int) -> Columns:
    """A flat vector of bodies with c entries each, one array per entry."""
    rows = x.reshape(-1, c)
    return [rows[:, i] for i in range(c)]


def _joined(x: Columns) -> Array:
    return jnp.stack([column.reshape(-1) for column in x], 1).reshape(-1)


def _numbers(matrix: PairBlocks) -> list[Any]:
    return [*(term.blocks for term in matrix.terms), *([] if matrix.own is None else [matrix.own]), matrix.diagonal]


def conjugate_gradients(
    reads: Callable[[Columns], Any],
    product: Callable[[Columns, Any], Columns],
    precondition: Callable[[Columns], Columns],
    b: Columns,
    accuracy: Array,
) -> Columns:
    """x with |b - A x| below a part of |b|, for a symmetric A (complex ones too); where it breaks down, the last x.

    For real ones the size of a residual is that in which the inverse of the preconditioner measures it.

    The product of A and p is `product(p, reads(p))`: what it reads is stored, XLA would make it again at every entry.
    """
    weighed = not any(jnp.iscomplexobj(column) for column in b)

    def size(r: Columns, rho: Array) -> Array:
        return jnp.abs(rho) if weighed else _size(r)

    def goes_on(loop: tuple[Any, ...]) -> Array:
        _, _, _, _, rho, left, k = loop
        return (left > goal) & (k < _MOST) & (rho != 0)

    def improve(loop: tuple[Any, ...]) -> tuple[Any, ...]:
        x, r, p, read, rho, _, k = loop
        s = product(p, read)
        alpha = rho / _dot(p, s)
        x, r = _moved(x, alpha, p), _moved(r, -alpha, s)
        z = precondition(r)
        new = _dot(r, z)
        p = _moved(z, new / rho, p)
        return x, r, p, reads(p), new, size(r, new), k + 1

    z = precondition(b)
    rho = _dot(b, z)
    goal = accuracy**2 * size(b, rho)
    start = (jax.tree.map(jnp.zeros_like, b), b, z, reads(z), rho, size(b, rho), jnp.zeros((), jnp.int32))
    return repeated(goes_on, improve, start)[0]


def _dot(x: Columns, y: Columns) -> Array:
    """The sum of products, nothing conjugated."""
    return sum(jnp.dot(a.reshape(-1), b.reshape(-1)) for a, b in zip(x, y))  # pyright: ignore


def _size(x: Columns) -> Array:
    return sum(jnp.vdot(a, a).real for a in x)  # pyright: ignore


def _moved(x: Columns, by: Array, along: Columns) -> Columns:
    return [a + by * b for a, b in zip(x, along)]


def _entries(d: int) -> list[tuple[int, int]]:
    """The entries of the upper triangle of a d x d block, row by row."""
    return [(i, j) for i in range(d) for j in range(i, d)]


def _place(i: int, j: int, d: int) -> int:
    """Where the upper triangle of a d x d block, row by row, has the entry (i, j)."""
    low, high = min(i, j), max(i, j)
    return low * d - low * (low - 1) // 2 + high - low


def _product(blocks: Columns, x: Columns) -> Columns:
    c = len(x)
    return [sum(blocks[_place(i, j, c)] * x[j] for j in range(c)) for i in range(c)]  # pyright: ignore


def _inverted(blocks: Columns, c: int) -> Columns:
    """The inverses of symmetric blocks, by sweeps along the diagonal, all bodies at once."""
    swept = list(blocks)
    for k in range(c):
        pivot, row = 1.0 / swept[_place(k, k, c)], [swept[_place(k, j, c)] for j in range(c)]
        for i, j in _entries(c):
            if k not in (i, j):
                swept[_place(i, j, c)] = swept[_place(i, j, c)] - row[i] * row[j] * pivot
        for j in range(c):
            swept[_place(k, j, c)] = row[j] * pivot
        swept[_place(k, k, c)] = -pivot
    return [-x for x in swept]
