"""Errors of functions that jump: distance of filled-in graphs, grid norms, error of one step [Acary2012 sec. 2.1].

Letters: a graph is a polyline (t, x), one row per vertex, t never decreasing; a jump is two vertices at one time.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from carom.methods.base import AbstractMethod
from carom.state import Numbers, State, lift
from carom.systems.system import System

Graph = np.ndarray
_PAIRS = 200_000  # pairs treated at once
_ROUNDS = 80


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

    Exact to rounding for polylines: pairs of boxes around runs of segments are refined where they can still matter.

    Example:
        >>> carom.measures.graph_distance(carom.measures.filled_graph(sol.t, sol.v), exact)
    """
    a, b = (np.asarray(g, float) for g in (a, b))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or min(len(a), len(b)) < 2:
        msg = f"graph_distance: needs two graphs of one dimension and two rows at least, got {a.shape} and {b.shape}"
        raise ValueError(msg)
    return max(_directed(a, b), _directed(b, a))


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


@eqx.filter_jit
def _one_step(system: System, method: AbstractMethod, state: State, h) -> State:
    return method.step(system, state, method.init(system, state), h).state


# ---- the directed distance: largest over a of the smallest over b ---------------------------------------------------


def _directed(a: Graph, b: Graph) -> float:
    """Supremum over the points of a of their distance to b: depth first through both trees of boxes."""
    a, b = _evenly(a), _evenly(b)
    levels_a, levels_b = _boxes(a), _boxes(b)
    deepest = max(len(levels_a), len(levels_b)) - 1
    best = 0.0
    portions = [(0, np.zeros(1, int), np.zeros(1, int))]
    while portions:
        depth, i, j = portions.pop()
        at_a, at_b = min(depth, len(levels_a) - 1), min(depth, len(levels_b) - 1)
        i, j, best = _prune(i, j, *_box_distances(levels_a[at_a], levels_b[at_b], i, j), best)
        if depth == deepest:
            best = _refine(a[i], a[i + 1], b[j], b[j + 1], i, best)
            continue
        if at_a + 1 < len(levels_a):
            i, j = _children(i, j, len(levels_a[at_a + 1]))
        if at_b + 1 < len(levels_b):
            j, i = _children(j, i, len(levels_b[at_b + 1]))
        middle = np.median(i) if len(i) > _PAIRS else np.inf
        for part in (i > middle, i <= middle):
            if part.any():
                portions.append((depth + 1, i[part], j[part]))
    return best


def _evenly(graph: Graph) -> Graph:
    """The same graph with long segments cut, so that runs of equally many segments are equally long."""
    step = np.diff(graph, axis=0)
    length = np.abs(step).max(axis=1)
    parts = np.maximum(np.ceil(length * len(length) / max(length.sum(), 1e-300)), 1).astype(int)
    first = np.repeat(np.cumsum(parts) - parts, parts)
    u = (np.arange(parts.sum()) - first) / np.repeat(parts, parts)
    cut = np.repeat(graph[:-1], parts, axis=0) + u[:, None] * np.repeat(step, parts, axis=0)
    return np.concatenate([cut, graph[-1:]])


def _boxes(graph: Graph) -> list[np.ndarray]:
    """Boxes (low, high) around runs of 2^k segments, from the whole graph down to single segments."""
    box = np.stack([np.minimum(graph[:-1], graph[1:]), np.maximum(graph[:-1], graph[1:])], axis=1)
    levels = [box]
    while len(box) > 1:
        padded = box if len(box) % 2 == 0 else np.concatenate([box, box[-1:]])
        first, second = padded[0::2], padded[1::2]
        box = np.stack([np.minimum(first[:, 0], second[:, 0]), np.maximum(first[:, 1], second[:, 1])], axis=1)
        levels.append(box)
    return levels[::-1]


def _children(i: np.ndarray, j: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Both halves of every i, paired with its j; the last run may have one half only."""
    i, j = np.concatenate([2 * i, 2 * i + 1]), np.concatenate([j, j])
    return i[i < size], j[i < size]


def _box_distances(box_a: np.ndarray, box_b: np.ndarray, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest distance of points of two boxes."""
    (low_a, high_a), (low_b, high_b) = box_a[i].swapaxes(0, 1), box_b[j].swapaxes(0, 1)
    near = np.maximum(np.maximum(low_b - high_a, low_a - high_b), 0.0).max(axis=1)
    return near, np.maximum(high_b - low_a, high_a - low_b).max(axis=1)


def _prune(i, j, near, far, best) -> tuple[np.ndarray, np.ndarray, float]:
    """Drop pairs that are not nearest for any point of i, and runs i that cannot exceed the best lower bound."""
    if len(i) == 0:
        return i, j, best
    order = np.argsort(i, kind="stable")
    i, j, near, far = i[order], j[order], near[order], far[order]
    starts = np.flatnonzero(np.diff(i, prepend=-1))
    run = np.cumsum(np.diff(i, prepend=i[0]) != 0)
    least_far = np.minimum.reduceat(far, starts)[run]
    best = max(best, float(np.minimum.reduceat(near, starts).max()))
    keep = (near <= least_far) & (least_far >= best)
    return i[keep], j[keep], best


def _refine(a0, a1, b0, b1, piece: np.ndarray, best: float) -> float:
    """Bisect pieces [a0, a1] of segments: distances to a segment are convex along a piece, so ends bound them."""
    for _ in range(_ROUNDS):
        if len(piece) == 0:
            break
        piece = np.unique(piece, return_inverse=True)[1]
        at_0, at_1 = _to_segments(a0, b0, b1), _to_segments(a1, b0, b1)
        length = np.abs(a1 - a0).max(axis=1)
        above = np.full(piece.max() + 1, np.inf)
        ends = np.full((2, piece.max() + 1), np.inf)
        np.minimum.at(above, piece, np.maximum(at_0, at_1))
        np.minimum.at(ends[0], piece, at_0)
        np.minimum.at(ends[1], piece, at_1)
        best = max(best, float(ends.max()))
        lowest = 0.5 * (at_0 + at_1 - length)
        keep = (above[piece] > best * (1 + 4e-16) + 1e-300) & (lowest <= above[piece])
        a0, a1, b0, b1, piece = a0[keep], a1[keep], b0[keep], b1[keep], piece[keep]
        middle = 0.5 * (a0 + a1)
        a0, a1 = np.concatenate([a0, middle]), np.concatenate([middle, a1])
        b0, b1 = np.concatenate([b0, b0]), np.concatenate([b1, b1])
        piece = np.concatenate([2 * piece, 2 * piece + 1])
    return best


def _to_segments(p: np.ndarray, b0: np.ndarray, b1: np.ndarray) -> np.ndarray:
    """Distance of each point to its segment, in chunks."""
    parts = [
        _to_segment(p[k : k + _PAIRS], b0[k : k + _PAIRS], b1[k : k + _PAIRS]) for k in range(0, max(len(p), 1), _PAIRS)
    ]
    return np.concatenate(parts)


def _to_segment(p: np.ndarray, b0: np.ndarray, b1: np.ndarray) -> np.ndarray:
    """Least max_k |r_k - u d_k| over u in [0, 1]: at an end, where an entry vanishes, or where two are equal."""
    r, d = (p - b0).T, (b1 - b0).T
    candidates = [np.zeros(len(p)), np.ones(len(p)), *(_ratio(r[k], d[k]) for k in range(len(r)))]
    for k, l in combinations(range(len(r)), 2):
        candidates += [_ratio(r[k] - r[l], d[k] - d[l]), _ratio(r[k] + r[l], d[k] + d[l])]
    least = np.full(len(p), np.inf)
    for u in candidates:
        least = np.minimum(least, np.abs(r - u * d).max(axis=0))
    return least


def _ratio(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.clip(np.divide(x, y, out=np.zeros_like(x), where=y != 0), 0.0, 1.0)
