"""Jacobians with structure: tridiagonal by three directional derivatives, dense otherwise."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float


class Tridiagonal(eqx.Module):
    """A tridiagonal matrix; `lower[0]` and `upper[-1]` are zero.

    Example:
        >>> mass = carom.Tridiagonal(jnp.array([0.0, 0.1, 0.1]), jnp.ones(3), jnp.array([0.1, 0.1, 0.0]))
    """

    lower: Float[Array, " n"]
    diagonal: Float[Array, " n"]
    upper: Float[Array, " n"]

    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.diagonal.shape[-1], self.diagonal.shape[-1]

    @classmethod
    def symmetric(cls, diagonal: Array, off: Array) -> Tridiagonal:
        """From the diagonal (n) and the entries beside it (n - 1)."""
        return cls(jnp.pad(off, (1, 0)), jnp.asarray(diagonal), jnp.pad(off, (0, 1)))

    def dense(self) -> Array:
        """All entries."""
        return jnp.diag(self.diagonal) + jnp.diag(self.lower[1:], -1) + jnp.diag(self.upper[:-1], 1)

    def pivots(self) -> Array:
        """The diagonal D of L D L^T; all positive if and only if a symmetric matrix is positive definite."""

        def next_pivot(last: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
            lower, diagonal, above = row
            pivot = diagonal - lower * above / last
            return pivot, pivot

        above = jnp.pad(self.upper[:-1], (1, 0))
        return jax.lax.scan(next_pivot, jnp.ones(()), (self.lower, self.diagonal, above))[1]

    def __add__(self, other: Tridiagonal) -> Tridiagonal:
        """Entrywise sum."""
        return jax.tree.map(jnp.add, self, other)

    def scaled(self, factor: Array) -> Tridiagonal:
        """The matrix times a number."""
        return jax.tree.map(lambda x: factor * x, self)

    def plus_diagonal(self, d: Array) -> Tridiagonal:
        """The matrix plus diag(d)."""
        return Tridiagonal(self.lower, self.diagonal + d, self.upper)

    def __matmul__(self, x: Array) -> Array:
        """Matrix times vector."""
        below = jnp.pad(x[:-1], (1, 0))
        above = jnp.pad(x[1:], (0, 1))
        return self.lower * below + self.diagonal * x + self.upper * above

    def solve(self, b: Array, accuracy: ArrayLike = 0.0) -> Array:
        """Solve by LAPACK (CPU) or cuSPARSE (GPU), O(n); exact, whatever accuracy is asked for."""
        del accuracy
        return jax.lax.linalg.tridiagonal_solve(self.lower, self.diagonal, self.upper, b[:, None])[:, 0]


def acceleration_jacobian(diagonal: Array, beside: Array, mass: Array) -> Tridiagonal:
    """-M^{-1} H for a symmetric tridiagonal H and a diagonal mass."""
    inverse = -1.0 / jnp.broadcast_to(mass, diagonal.shape)
    return Tridiagonal(inverse * jnp.pad(beside, (1, 0)), inverse * diagonal, inverse * jnp.pad(beside, (0, 1)))


def tridiagonal_jacobian(f: Callable[[Array], Array], x: Float[Array, " n"]) -> Tridiagonal:
    """Jacobian of a function that couples neighbours only, from three directional derivatives.

    Columns j = 0, 1, 2 (mod 3) do not overlap in any row, so probing with their three indicator vectors reveals every
    entry.
    """
    index = jnp.arange(x.shape[0])
    derivative = jax.linearize(f, x)[1]
    probe = [derivative((index % 3 == c).astype(x.dtype)) for c in range(3)]

    def column(shift: int) -> Array:
        colour = (index + shift) % 3
        return jnp.where(colour == 0, probe[0], jnp.where(colour == 1, probe[1], probe[2]))

    last = index == x.shape[0] - 1
    return Tridiagonal(jnp.where(index == 0, 0.0, column(-1)), column(0), jnp.where(last, 0.0, column(1)))
