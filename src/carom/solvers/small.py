"""Small dense systems without LAPACK: a custom call costs about 1 us, more than a 6 x 6 elimination."""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from carom.solvers.roots import rarely as rarely

_UNROLL_UP_TO = 10
_REDUNDANT = 1e-12  # a pivot this much smaller than its row's first diagonal entry belongs to a redundant row


def solve_small(A: Float[Array, "m m"], B: Float[Array, "m k"]) -> Float[Array, "m k"]:
    """A^{-1} B by elimination along the diagonal, from the last row to the first.

    Meant for positive definite matrices and for the equations of contact problems, whose diagonal entries are good
    pivots. A redundant row (vanishing pivot) leaves its unknown at zero, one solution of a consistent singular system;
    large matrices (`is_small`) must be regular.
    """
    if not is_small(A):
        return jnp.linalg.solve(A, B)
    left, right, rows = A, B, []
    for k in reversed(range(A.shape[0])):
        pivot = left[k, k]
        regular = jnp.abs(pivot) > _REDUNDANT * jnp.abs(A[k, k])
        inverse = jnp.where(regular, 1.0 / jnp.where(regular, pivot, 1.0), 0.0)
        row, value, column = left[k, :k] * inverse, right[k] * inverse, left[:k, k, None]
        rows.append((row, value))
        left, right = left[:k, :k] - column * row, right[:k] - column * value
    X: list[Array] = []
    for row, value in reversed(rows):
        X.append(value - sum((row[j] * x for j, x in enumerate(X)), jnp.zeros(())))
    return jnp.stack(X)


def is_small(A: Array) -> bool:
    """Whether eliminations are written out row by row."""
    return A.shape[0] <= _UNROLL_UP_TO


def times(A: Array, B: Array) -> Array:
    """A B for a vector or a matrix B with few rows, as a sum that fuses with its neighbours; a product is a call."""
    if not 0 < B.shape[0] <= _UNROLL_UP_TO:
        return A @ B
    if B.ndim == 1:
        products = A * B
        return functools.reduce(jnp.add, [products[..., j] for j in range(B.size)])
    return functools.reduce(jnp.add, [A[..., j, None] * B[j] for j in range(B.shape[0])])


def inverse_small(A: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """A^{-1} of a positive definite matrix."""
    return solve_small(A, jnp.asarray(np.eye(A.shape[0])))


def solve_rolled(A: Float[Array, "m m"], B: Float[Array, "m k"]) -> Float[Array, "m k"]:
    """The same elimination as a loop: less to compile, slower to run."""
    m = A.shape[0]
    rows, diagonal = np.arange(m)[:, None], jnp.sum(jnp.where(np.eye(m, dtype=bool), A, 0.0), axis=1)

    def eliminate(i: Array, table: Array) -> Array:
        k = m - 1 - i
        pivot = table[k, k]
        regular = jnp.abs(pivot) > _REDUNDANT * jnp.abs(diagonal[k])
        row = table[k] * jnp.where(regular, 1.0 / jnp.where(regular, pivot, 1.0), 0.0)
        return jnp.where(rows == k, row, table - table[:, k][:, None] * row)

    return jax.lax.fori_loop(0, m, eliminate, jnp.concatenate([A, B], axis=1))[:, m:]


class Factors(eqx.Module):
    """A regular matrix for many solves: its inverse where it is small, which fuses with its neighbours, or its LU."""

    inverse: Array | None
    lu: tuple[Array, Array] | None

    @classmethod
    def of(cls, A: Float[Array, "m m"]) -> Factors:
        """Factorise."""
        if len(A) < 2:
            return cls(1.0 / A, None)
        return cls(jnp.linalg.inv(A), None) if is_small(A) else cls(None, jax.scipy.linalg.lu_factor(A))

    def solve(self, b: Float[Array, " m"]) -> Float[Array, " m"]:
        """A^{-1} b."""
        return times(self.inverse, b) if self.inverse is not None else jax.scipy.linalg.lu_solve(self.lu, b)  # pyright: ignore
