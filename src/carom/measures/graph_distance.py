"""Errors of functions that jump: distance of filled-in graphs, grid norms, error of one step [Acary2012 sec. 2.1].

Letters: a graph is a polyline (t, x), one row per vertex, t never decreasing; a jump is two vertices at one time.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from carom.measures.polylines import directed_distance
from carom.methods.base import AbstractMethod
from carom.running.compiled import compiled
from carom.state import Numbers, State, lift
from carom.systems.system import System

Graph = np.ndarray


def filled_graph(t: Numbers, right: Numbers, left: Numbers | None = None) -> Graph:
    """The filled-in graph (20) of values at the times t, straight in between; jumps become vertical segments.

    Args:
        t: times, one per row; a time may occur twice.
        right: values, or right limits where the function jumps.
        left: left limits, if they differ.

    Example:
        >>> graph = carom.measures.filled_graph(sol.t, sol.v)
    """
    t, right = np.asarray(t, float), np.asarray(right, float)
    right = right.reshape(len(t), -1)
    if np.any(np.diff(t) < 0) or not (np.isfinite(t).all() and np.isfinite(right).all()):
        msg = "filled_graph: times must not decrease, and all values be finite"
        raise ValueError(msg)
    vertices = np.column_stack([t, right])
    if left is None:
        return vertices
    before = np.column_stack([t, np.asarray(left, float).reshape(len(t), -1)])
    return np.stack([before, vertices], axis=1).reshape(-1, vertices.shape[1])


def graph_distance(a: Graph, b: Graph) -> float:
    """Hausdorff distance of two graphs in the metric max(|t - s|, |x - y|) with the largest entry of x - y (20).

    Exact to rounding, whatever the dimension; 1e5 vertices with many jumps take seconds.

    Example:
        >>> carom.measures.graph_distance(carom.measures.filled_graph(sol.t, sol.v), exact)
    """
    a, b = (np.asarray(g, float) for g in (a, b))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or min(len(a), len(b)) < 2:
        msg = f"graph_distance: needs two graphs of one dimension and two rows at least, got {a.shape} and {b.shape}"
        raise ValueError(msg)
    return max(directed_distance(a, b), directed_distance(b, a))


def grid_norm(error: Numbers, h: float | Numbers, p: float = 1.0) -> float:
    """The norm (21) of errors at grid points, `(sum h |e_i|^p)^(1/p)`, or the largest one for p = inf.

    Args:
        error: one row per grid point; of several columns the largest entry counts.
        h: step size, or one per grid point.
        p: 1, 2, inf or any number of at least 1.

    Example:
        >>> carom.measures.grid_norm(sol.v - exact, sol.h, p=1)
    """
    sizes = np.abs(np.asarray(error, float))
    sizes = sizes.reshape(len(sizes), -1).max(axis=1)
    return float(sizes.max() if np.isinf(p) else np.sum(np.asarray(h) * sizes**p) ** (1 / p))


def local_error(
    system: System, method: AbstractMethod, exact: Callable[[float], tuple[Numbers, Numbers]], t: float, h: float
) -> tuple[np.ndarray, np.ndarray]:
    """(e_q, e_v) of (22): what one step of size h from the exact solution at t misses.

    Example:
        >>> e_q, e_v = carom.measures.local_error(ball, carom.MoreauTheta(), carom.models.exact.bouncing_ball, 0.9, 0.2)
    """
    step = _one_step(lift(system), lift(method), State(*exact(t), t=t), jnp.asarray(h, float))
    q, v = (np.atleast_1d(np.asarray(x, float)) for x in exact(t + h))
    return q - np.asarray(step.q), v - np.asarray(step.v)


@compiled
def _one_step(system: System, method: AbstractMethod, state: State, h) -> State:
    return method.step(system, state, method.init(system, state), h).state
