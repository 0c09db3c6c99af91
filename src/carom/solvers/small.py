"""Small dense systems without LAPACK: a custom call costs about 1 us, more than a 6 x 6 elimination."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_UNROLL_UP_TO = 10
_FUSE_UP_TO = 256
_REDUNDANT = 1e-12  # a pivot this much smaller than its row's first diagonal entry belongs to a redundant row


def solve_small(A: Float[Array, "m m"], B: Float[Array, "m k"]) -> Float[Array, "m k"]:
    """A^{-1} B by elimination along the diagonal, from the last row to the first.

    Meant for positive definite matrices and for the equations of contact problems, whose diagonal entries are good
    pivots. A redundant row (vanishing pivot) leaves its unknown at zero, one solution of a consistent singular system.
    """
    m = A.shape[0]
    if m > _UNROLL_UP_TO:
        return jnp.linalg.solve(A, B)
    table = jnp.concatenate([A, B], axis=1)
    for k in reversed(range(m)):
        pivot = table[k, k]
        regular = jnp.abs(pivot) > _REDUNDANT * jnp.abs(A[k, k])
        row = table[k] * jnp.where(regular, 1.0 / jnp.where(regular, pivot, 1.0), 0.0)
        table = jnp.where(np.arange(m)[:, None] == k, row, table - table[:, k : k + 1] * row)
    return table[:, m:]


def times(A: Float[Array, "m n"], x: Float[Array, " n"]) -> Float[Array, " m"]:
    """A x, for small matrices as a sum that is fused with its surroundings."""
    return jnp.sum(A * x, axis=1) if A.size <= _FUSE_UP_TO else A @ x


def inverse_small(A: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """A^{-1} of a positive definite matrix."""
    return solve_small(A, jnp.asarray(np.eye(A.shape[0])))


def solve_rolled(A: Float[Array, "m m"], B: Float[Array, "m k"]) -> Float[Array, "m k"]:
    """The same as `solve_small`, the elimination as a loop: less to compile, slower to run."""
    m = A.shape[0]
    rows, diagonal = np.arange(m)[:, None], jnp.diag(A)

    def eliminate(i: Array, table: Array) -> Array:
        k = m - 1 - i
        pivot = table[k, k]
        regular = jnp.abs(pivot) > _REDUNDANT * jnp.abs(diagonal[k])
        row = table[k] * jnp.where(regular, 1.0 / jnp.where(regular, pivot, 1.0), 0.0)
        return jnp.where(rows == k, row, table - table[:, k][:, None] * row)

    return jax.lax.fori_loop(0, m, eliminate, jnp.concatenate([A, B], axis=1))[:, m:]
