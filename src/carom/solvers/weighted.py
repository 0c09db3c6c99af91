"""Iterations that stop on the size of their update, and the implicit function they define."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.solvers.newton import PyTree, Root

_ROUNDING = 1e3  # updates this many tolerances large that no longer shrink are rounding
_GROWTH = 1e6  # an update this much larger than the smallest one so far means divergence


def iterate(
    residual: Callable[[PyTree], tuple[PyTree, PyTree]],
    direction: Callable[[PyTree, PyTree], PyTree],
    size: Callable[[PyTree, PyTree], Array],
    x: PyTree,
    max_iter: int,
) -> Root:
    """`x <- x - direction(x, residual(x))` until the error left, estimated from successive updates, is below 1.

    `size(d, x)` measures the update d that led to x in units of the tolerance. No line search: rows scaled by 1/h^2
    carry rounding noise that would stop it. `aux` of the result belongs to the last but one iterate.
    """

    def running(c):
        _, _, _, smallest, last, done, k = c
        return ~done & (k < max_iter) & ~(last > _GROWTH * smallest) & ~jnp.isnan(last)

    def step(c):
        x, _, _, smallest, last, _, k = c
        r, aux = residual(x)
        d = direction(x, r)
        x = jax.tree.map(jnp.subtract, x, d)
        now = size(d, x)
        ratio = jnp.where(k > 0, now / jnp.maximum(last, 1e-300), 1.0)
        error = jnp.where(ratio < 1.0, ratio / jnp.maximum(1.0 - ratio, 1e-16) * now, jnp.inf)
        settled = (now <= 1.0) | (error <= 1.0) | ((k > 2) & (ratio > 0.5) & (now <= _ROUNDING))
        return x, aux, jnp.minimum(error, now), jnp.minimum(smallest, now), now, settled & jnp.isfinite(now), k + 1

    inf = jnp.asarray(jnp.inf)
    aux = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(residual, x)[1])
    start = (x, aux, inf, inf, jnp.asarray(0.0), jnp.asarray(False), jnp.zeros((), jnp.int32))
    x, aux, error, _, _, done, k = jax.lax.while_loop(running, step, start)
    return Root(x, aux, done, error, k, k)


def implicit(residual: Callable[[Array], Array], solve: Callable[[Array], Root], x: Array) -> Root:
    """The root that `solve` finds from `x`, differentiated as the implicit function of `residual = 0`.

    The iterations themselves are never differentiated: derivatives of a step are exact to rounding.
    """

    def solved(_, start: Array) -> tuple[Array, tuple[PyTree, ...]]:
        root = solve(start)
        counts = (root.converged, root.iterations, root.evaluations)
        return root.x, (root.aux, root.error, *(x.astype(start.dtype) for x in counts))

    def tangent(linear: Callable[[Array], Array], y: Array) -> Array:
        return jnp.linalg.solve(jax.jacfwd(linear)(jnp.zeros_like(y)), y)

    x, (aux, error, converged, *counts) = jax.lax.custom_root(residual, x, solved, tangent, has_aux=True)
    return Root(x, aux, converged > 0, error, *(count.astype(jnp.int32) for count in counts))
