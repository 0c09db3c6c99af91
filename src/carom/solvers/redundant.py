"""Linear equations of constraints that may depend on each other: multipliers of least squares and least length."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.solvers.roots import held, rarely
from carom.solvers.small import inverse_small, is_small, solve_rolled, times

_DAMPING = 1e-9  # of the multipliers' matrix, refined away: leaves least-squares multipliers for redundant rows
_REFINEMENTS = 4
_DEPENDENT = 1e-10  # squared sine of the angle between a row and the others, under which it depends on them
_DOUBTFUL = 1e-3  # of rows in their own order: a dependence that the last k hardly share leaves pivots of eps^(1/(k+1))
_IDLE = 1e-9
_CLEAR, _PURIFICATIONS = 1e-9, 40  # x^2 (1 - x)^2 of what is nearly zero or one
_WRITTEN_OUT = 3  # rows: beyond, a loop compiles faster and runs as fast


def masked(S: Array, rows: Array) -> Array:
    """S on the active rows, the identity elsewhere."""
    both = rows[:, None] & rows[None, :]
    return jnp.where(both, S, jnp.asarray(np.eye(S.shape[0])))


@jax.jit
def multipliers(S: Array, b: Array, rows: Array) -> Array:
    """S lam = b on the active rows, of least squares and least length where rows are redundant.

    Traced once: a step of event capturing needs it seven times, a tenth of all its operations.
    """
    if S.shape[0] == 0:
        return b
    return jnp.where(rows, _refined(masked(S, rows), jnp.where(rows, b, 0.0)), 0.0)


def within_range(S: Array, b: Array, rows: Array) -> Array:
    """The part of b on the active rows that S can reach, continued to all rows: S lam of least squares.

    Done twice: what b has beyond the range makes lam as large as the inverse of the damping.
    """
    active = masked(S, rows)
    inverse = inverse_small(_damped(active))
    for _ in range(2):
        b = times(S, jnp.where(rows, _refine(inverse, active, jnp.where(rows, b, 0.0)), 0.0))
    return b


@jax.custom_jvp
def _refined(S: Array, b: Array) -> Array:
    return _refine(_damped_inverse(S), S, b)


@_refined.defjvp
def _refined_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (S, b), (dS, db) = primals, tangents
    inverse = _damped_inverse(S)
    lam = _refine(inverse, S, b)
    return lam, _refine(inverse, S, db - dS @ lam)


def _damped(S: Array) -> Array:
    return jnp.where(np.eye(S.shape[0], dtype=bool), S + _DAMPING * S, S)


def _damped_inverse(S: Array) -> Array:
    return solve_rolled(_damped(S), jnp.asarray(np.eye(S.shape[0])))


def _refine(inverse: Array, S: Array, b: Array) -> Array:
    """S lam = b from the inverse of a damped S."""

    def improve(_, lam: Array) -> Array:
        return lam + times(inverse, b - times(S, lam))

    return jax.lax.fori_loop(0, 1 + _REFINEMENTS, improve, jnp.zeros_like(b), unroll=b.size <= _WRITTEN_OUT)


def redundancy(S: Array, rows: Array) -> Array:
    """How many active rows depend on the others."""
    if S.shape[0] < 2:
        return jnp.zeros((), jnp.int32)
    table = masked(S, rows)
    size = jnp.sqrt(jnp.where(jnp.diag(table) > 0, jnp.diag(table), 1.0))
    return _lost(table / (size[:, None] * size))


def dependent(D: Array) -> Array:
    """How many rows of D depend on the others, whatever their lengths; rows of zeros do."""
    return _lost(_angles(D)) if len(D) else jnp.zeros((), jnp.int32)


def doubtful(D: Array) -> Array:
    """Whether some rows of D, two or more of them, may depend on others; wrong only where five hardly share in it."""
    return _doubtful(_angles(D))


def _angles(D: Array) -> Array:
    """The cosines of the angles between the rows of D."""
    length = jnp.sqrt(jnp.sum(D * D, axis=1, keepdims=True))
    rows = D / jnp.where(length > 0, length, 1.0)
    return held(times(rows, rows.T))


def _doubtful(gram: Array) -> Array:
    """Whether a pivot of a positive matrix with unit diagonal is small, rows taken in their order."""
    if not is_small(gram):
        factor = jnp.linalg.cholesky(gram, symmetrize_input=False)
        return ~jnp.all(jnp.diagonal(factor) ** 2 > _DOUBTFUL)  # a minimum may pass over NaN
    clear = gram[0, 0] > _DOUBTFUL
    while gram.shape[0] > 1:
        row = gram[0, 1:] / jnp.where(clear, gram[0, 0], 1.0)
        gram = gram[1:, 1:] - gram[1:, :1] * row
        clear = clear & (gram[0, 0] > _DOUBTFUL)
    return ~clear


def idle(S: Array) -> tuple[Array, Array]:
    """The projection on multipliers that S maps to zero, in units of S: `size P size`, size^2 its diagonal; its rank.

    P has the eigenvectors of the normalised S, with a one where its eigenvalue is below _IDLE and zero elsewhere: X =
    d (S + d)^{-1} with a small d, and its fourth power where all eigenvalues of X are near one or zero. What is left of
    a zero must be small beside that of S, since S + idle(S) takes its place. That has an inverse, which gives the
    shortest multipliers, each counted in units of the motion that it brings about.
    """
    size = jnp.sqrt(jnp.where(jnp.diagonal(S) > 0, jnp.diagonal(S), 1.0))
    both = size[:, None] * size
    X = _IDLE * jnp.linalg.inv(S / both + _IDLE * jnp.asarray(np.eye(S.shape[0])))
    X2 = X @ X
    P = rarely(~(jnp.sum((X - X2) ** 2) < _CLEAR), lambda _, X: _purified(X), X2 @ X2, X)
    return jnp.round(jnp.trace(P)).astype(jnp.int32), both * P


def _purified(P: Array) -> Array:
    """Eigenvalues between zero and one taken to that which is nearer."""
    purer = lambda _, P: P @ P @ (3.0 * jnp.asarray(np.eye(len(P))) - 2.0 * P)  # noqa: E731
    return jax.lax.fori_loop(0, _PURIFICATIONS, purer, P)


def _lost(gram: Array) -> Array:
    """How many rows of a positive matrix with unit diagonal depend on others."""
    count = lambda _, gram: gram.shape[0] - _rank(gram)  # noqa: E731
    return rarely(_doubtful(gram), count, jnp.zeros((), jnp.int32), gram)


def _rank(gram: Array) -> Array:
    """The number of pivots of a positive matrix with unit diagonal that do not vanish, the largest first."""

    def eliminate(_, found: tuple[Array, Array]) -> tuple[Array, Array]:
        table, count = found
        diagonal = jnp.diagonal(table)
        k = jnp.argmax(diagonal)
        there = diagonal[k] > _DEPENDENT
        column = jnp.where(there, table[k] / jnp.sqrt(jnp.where(there, diagonal[k], 1.0)), 0.0)
        return table - column[:, None] * column, count + there

    start = (gram, jnp.zeros((), jnp.int32))
    return jax.lax.fori_loop(0, gram.shape[0], eliminate, start)[1]
