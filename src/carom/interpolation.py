"""Hermite interpolation between the ends of steps, from the equations of motion there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

Field = Callable[[Array, Array, Array], tuple[Array, Array]]


def jet(field: Field, t: Array, q: Array, v: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """First and second derivatives of (q, v) along a field."""
    slope = field(t, q, v)
    return slope, jax.jvp(field, (t, q, v), (jnp.ones_like(t), *slope))[1]


def hermite(t0: Any, t1: Any, y0: Any, y1: Any, d0: Any, d1: Any, t: Any) -> Any:
    """Cubic Hermite interpolation at t between (t0, y0) and (t1, y1) with slopes d0, d1; broadcasts over rows."""
    width, x = _within(t0, t1, t)
    return (
        (1 + 2 * x) * (1 - x) ** 2 * y0
        + x * (1 - x) ** 2 * width * d0
        + x * x * (3 - 2 * x) * y1
        - x * x * (1 - x) * width * d1
    )


def quintic(t0: Any, t1: Any, start: tuple[Any, Any, Any], end: tuple[Any, Any, Any], t: Any) -> Any:
    """Hermite interpolation of order 6 between (y, y', y'') at the start and at the end."""
    (y0, d0, s0), (y1, d1, s1) = start, end
    width, x = _within(t0, t1, t)
    bend0, bend1 = (y1 - y0 - width * d0 - 0.5 * width**2 * s0), (d1 - d0 - width * s0) * width
    rest = width**2 * (s1 - s0)
    a, b, c = 10 * bend0 - 4 * bend1 + 0.5 * rest, -15 * bend0 + 7 * bend1 - rest, 6 * bend0 - 3 * bend1 + 0.5 * rest
    return y0 + x * width * d0 + 0.5 * (x * width) ** 2 * s0 + x**3 * (a + x * (b + x * c))


def _within(t0: Any, t1: Any, t: Any) -> tuple[Any, Any]:
    width = t1 - t0
    return width, (t - t0) / (np.where(width > 0, width, 1.0) if isinstance(width, np.ndarray) else width)


def between(ends: Any, jets: Any, times: np.ndarray) -> list[np.ndarray]:
    """Q and v between rows (t, q, v) and the next ones, with the derivatives of `_jets`.

    The second derivative of a stiff motion is mostly rounding and truncation errors; where it would correct the cubic
    by more than the cubic corrects the straight line, it is left out.
    """
    start, end = ends
    (slope0, bend0), (slope1, bend1) = jax.tree.map(np.asarray, jets)
    a, b, t = start[0][:, None], end[0][:, None], times[:, None]
    values = []
    for i in (0, 1):
        y0, y1 = start[1 + i], end[1 + i]
        secant = (y1 - y0) / np.where(b > a, b - a, 1.0)
        line = y0 + (t - a) * secant
        if slope0[i] is None:
            values.append(line)
            continue
        cubic = hermite(a, b, y0, y1, slope0[i], slope1[i], t)
        if bend0 is None:
            values.append(cubic)
            continue
        fine = quintic(a, b, (y0, slope0[i], bend0[i]), (y1, slope1[i], bend1[i]), t)
        better = np.abs(fine - cubic).max(1) <= np.abs(cubic - line).max(1)
        values.append(np.where(better[:, None], fine, cubic))
    return values


def lowest(y0: Array, y1: Array, d0: Array, d1: Array) -> Array:
    """The bottom of a cubic that falls at first and rises in the end."""
    rest = y1 - y0
    cubic, square = d0 + d1 - 2 * rest, 3 * rest - 2 * d0 - d1
    root = square + jnp.sqrt(jnp.maximum(square**2 - 3 * cubic * d0, 0.0))
    x = jnp.clip(-d0 / jnp.where(root > 0, root, 1.0), 0.0, 1.0)
    return y0 + x * (d0 + x * (square + x * cubic))
