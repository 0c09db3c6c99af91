"""Newton's method with backtracking, on residuals measured in units of the tolerance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

PyTree = Any


class Newton(eqx.Module):
    """Settings of the implicit solves.

    Args:
        tol: wanted relative accuracy of the solution of a step; rounding limits are added to it.
        max_iter: iterations after which the step counts as failed.
        strategy: "full" differentiates the coupled stage equations; "shared" uses one Jacobian for all stages and
            solves one small (or tridiagonal) system per eigenvalue of the Runge-Kutta matrix; "auto" takes "full" for
            small dense systems.
    """

    tol: float = 1e-13
    max_iter: int = eqx.field(default=200, static=True)
    strategy: str = eqx.field(default="auto", static=True)

    def __check_init__(self):
        if self.strategy not in ("auto", "full", "shared"):
            msg = f"Newton: strategy must be 'auto', 'full' or 'shared', got '{self.strategy}'"
            raise ValueError(msg)
        if self.max_iter < 1:
            msg = f"Newton: max_iter must be at least 1, got {self.max_iter}"
            raise ValueError(msg)


class Root(eqx.Module):
    """Where Newton's method got to; `aux` is what the residual function returned beside the residual at `x`."""

    x: PyTree
    aux: PyTree
    converged: Array
    error: Array
    iterations: Array
    evaluations: Array


_SMALLEST_DAMPING = 1.0 / 256.0
_ROUNDING = 1e3  # updates this many tolerances large that no longer shrink are rounding


def newton(
    residual: Callable[[PyTree], tuple[PyTree, PyTree]],
    direction: Callable[[PyTree, PyTree], PyTree],
    norm: Callable[[PyTree], Array],
    x: PyTree,
    max_iter: int,
) -> Root:
    """Solve `residual(x) = 0`.

    `direction(x, r)` approximates `J^{-1} r`; `norm` measures residuals and updates in units of the tolerance. A step
    that does not lower the residual is halved. The error left after an update d is estimated as
    `ratio / (1 - ratio) |d|` with the ratio of successive updates; the iteration ends when that is below 1.
    """

    def running(c):
        _, _, _, _, last, _, done, k, _ = c
        return ~done & (k < max_iter) & jnp.isfinite(last)

    def iterate(c):
        x, r, aux, alpha, last, error, _, k, count = c
        d = direction(x, r)
        size = norm(d)
        trial = jax.tree.map(lambda a, b: a - alpha * b, x, d)
        r_trial, aux_trial = residual(trial)
        better = (norm(r_trial) <= jnp.maximum(norm(r), 1.0)) | (alpha <= _SMALLEST_DAMPING)
        ratio = jnp.where(k > 0, size / jnp.maximum(last, 1e-300), 1.0)
        left = jnp.where(ratio < 1.0, ratio / jnp.maximum(1.0 - ratio, 1e-16), jnp.inf) * size
        whole = alpha == 1.0
        settled = (size <= 1.0) | (whole & (left <= 1.0)) | (whole & (k > 2) & (ratio > 0.5) & (size <= _ROUNDING))
        x, r, aux = jax.tree.map(lambda a, b: jnp.where(better, a, b), (trial, r_trial, aux_trial), (x, r, aux))
        error = jnp.where(better, jnp.minimum(left, size), error)
        alpha = jnp.where(better, 1.0, 0.5 * alpha)
        last = jnp.where(better, size, last)
        return x, r, aux, alpha, last, error, better & settled & jnp.isfinite(size), k + better, count + 1

    r, aux = residual(x)
    zero, huge = jnp.zeros((), jnp.int32), jnp.asarray(jnp.finfo(float).max)
    start = (x, r, aux, jnp.ones(()), huge, huge, jnp.asarray(False), zero, zero + 1)
    x, r, aux, _, _, error, done, k, count = jax.lax.while_loop(running, iterate, start)
    return Root(x, aux, done, error, k, count)
