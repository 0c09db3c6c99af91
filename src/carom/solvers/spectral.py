"""Extreme eigenvalues without matrices: Lanczos for symmetric operators, growth of a linear map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

_TINY = 1e-300


def start_vector(n: int) -> Array:
    """A fixed vector without symmetries, so that results repeat."""
    return jax.random.normal(jax.random.key(7), (n,))


def lanczos(
    apply: Callable[[Array], Array], inner: Callable[[Array, Array], Array], start: Array, steps: int
) -> tuple[Array, Array]:
    """Diagonal and off-diagonal of the Lanczos matrix of `apply`, self-adjoint in the product `inner`."""

    def body(k: int, loop: tuple[Array, Array, Array, Array, Array]) -> tuple[Array, ...]:
        x_old, x, alpha, beta, last = loop
        y = apply(x) - last * x_old
        a = inner(x, y)
        y = y - a * x
        size = jnp.sqrt(jnp.maximum(inner(y, y), 0.0))
        return x, y / jnp.maximum(size, _TINY), alpha.at[k].set(a), beta.at[k].set(size), size

    x = start / jnp.sqrt(jnp.maximum(inner(start, start), _TINY))
    zero = jnp.zeros(steps)
    _, _, alpha, beta, _ = jax.lax.fori_loop(0, steps, body, (jnp.zeros_like(x), x, zero, zero, jnp.zeros(())))
    return alpha, beta


def largest_ritz_value(alpha: Any, beta: Any) -> float:
    """Largest eigenvalue of the Lanczos matrix, up to the first breakdown, raised by its residual bound."""
    alpha, beta = np.asarray(alpha), np.asarray(beta)
    scale = np.max(np.abs(alpha)) + np.max(beta)
    breakdown = np.flatnonzero(beta <= 1e-10 * scale)
    m = int(breakdown[0]) + 1 if breakdown.size else alpha.size
    T = np.diag(alpha[:m]) + np.diag(beta[: m - 1], 1) + np.diag(beta[: m - 1], -1)
    values, vectors = np.linalg.eigh(T)
    residual = 0.0 if breakdown.size else beta[m - 1] * abs(vectors[-1, -1])
    return float(values[-1] + min(residual, residual**2 / max(values[-1] - values[-2], _TINY) if m > 1 else residual))


def growth(step: Callable[[Any], Any], size: Callable[[Any], Array], start: Any, steps: Array) -> tuple[Array, Array]:
    """Logarithms of the size of `step^k(start)` relative to the start, at k = steps // 2 and k = steps."""

    def body(k: Array, loop: tuple[Any, Array, Array]) -> tuple[Any, Array, Array]:
        y, total, half = loop
        y = step(y)
        norm = size(y)
        total = total + jnp.log(norm)
        y = jax.tree.map(lambda x: x / norm, y)
        return y, total, jnp.where(k + 1 == steps // 2, total, half)

    norm = size(start)
    zero = jnp.zeros(())
    start = jax.tree.map(lambda x: x / norm, start)
    _, total, half = jax.lax.fori_loop(0, steps, body, (start, zero, zero))
    return half, total
