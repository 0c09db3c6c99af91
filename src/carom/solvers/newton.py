"""Newton's method with backtracking, on residuals measured in units of the tolerance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.names import register

PyTree = Any


@register
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
        _, _, _, facts = c
        _, last, _, _, done, k, _ = facts
        return (done == 0) & (k < max_iter) & jnp.isfinite(last)

    def iterate(c):
        x, r, aux, facts = c
        alpha, last, error, defect, _, k, count = facts
        d = direction(x, r)
        size = norm(d)
        trial = jax.tree.map(lambda a, b: a - alpha * b, x, d)
        r_trial, aux = residual(trial)
        defect_trial = norm(r_trial)
        better = (defect_trial <= jnp.maximum(defect, 1.0)) | (alpha <= _SMALLEST_DAMPING)
        ratio = jnp.where(k > 0, size / jnp.maximum(last, 1e-300), 1.0)
        left = jnp.where(ratio < 1.0, ratio / jnp.maximum(1.0 - ratio, 1e-16) * size, jnp.inf)
        whole = alpha == 1.0
        settled = (size <= 1.0) | (whole & (left <= 1.0)) | (whole & (k > 2) & (ratio > 0.5) & (size <= _ROUNDING))
        x, r = jax.tree.map(lambda a, b: jnp.where(better, a, b), (trial, r_trial), (x, r))
        done = better & settled & jnp.isfinite(size)
        after = (1.0, size, jnp.minimum(left, size), defect_trial, done, k + 1)
        before = (0.5 * alpha, last, error, defect, done, k)
        chosen = [jnp.where(better, a, b) for a, b in zip(after, before)]
        return x, r, aux, jnp.stack([*chosen, count + 1])

    r, aux = residual(x)
    huge = float(jnp.finfo(float).max)
    start = (x, r, aux, jnp.stack([1.0, huge, huge, norm(r), 0.0, 0.0, 1.0]))
    x, r, aux, (_, _, error, _, done, k, count) = jax.lax.while_loop(running, iterate, start)
    return Root(x, aux, done > 0, error, k.astype(jnp.int32), count.astype(jnp.int32))
