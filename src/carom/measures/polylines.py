"""The directed Hausdorff distance of two polylines in the maximum metric, exact to rounding.

Along a segment the distance to the other polyline is the least of convex functions and changes no faster than the
point moves. Three bounds follow for a piece [p, r] of length l, with the distances d_p, d_r at its ends:

    (d_p + d_r + l) / 2,     max(|p - s|, |r - s|) for any segment s,     the bound of the piece it was cut from

Pieces that cannot exceed the largest distance found so far are dropped, the others cut where the first bound peaks.
Distances of points come from a tree of boxes around runs of equally long segments, many points at once.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

_AT_ONCE = 4096  # points searched together
_NEIGHBOURS = (-2, -1, 0, 1)  # segments around a point's time, tried before the tree
_ROUNDING = 4 * float(np.finfo(float).eps)  # of the largest coordinate


class Polyline:
    """Segments, and a tree of boxes around runs of 2^k parts of them, from the whole down to single parts.

    Long segments are cut into parts, so that runs of equally many parts are equally long.
    """

    def __init__(self, vertices: np.ndarray):
        self.t, self.begin, self.end = vertices[:, 0], vertices[:-1], vertices[1:]
        corners, self.owner = _evenly(vertices)
        low, high = np.minimum(corners[:-1], corners[1:]), np.maximum(corners[:-1], corners[1:])
        self.levels = [(low, high)]
        while len(low) > 1:
            starts = np.arange(0, len(low), 2)
            low, high = np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)
            self.levels.append((low, high))
        self.levels.reverse()

    def distance(self, points: np.ndarray, segments: np.ndarray) -> np.ndarray:
        """Distance of each point to its segment."""
        return to_segment(points, self.begin[segments], self.end[segments])

    def around(self, points: np.ndarray) -> list[np.ndarray]:
        """Segments near the time of each point."""
        at = np.searchsorted(self.t, points[:, 0])
        return [np.clip(at + k, 0, len(self.begin) - 1) for k in _NEIGHBOURS]

    def nearest(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distance of each point, and a segment that has it."""
        least, segment = np.full(len(points), np.inf), np.zeros(len(points), int)

        def improve(i: np.ndarray, value: np.ndarray, candidate: np.ndarray) -> None:
            order = np.flatnonzero(value < least[i])
            order = order[np.argsort(-value[order], kind="stable")]  # of repeated indices the last assignment stays
            least[i[order]], segment[i[order]] = value[order], candidate[order]

        i, box = np.arange(len(points)), np.zeros(len(points), int)
        for neighbour in self.around(points):
            improve(i, self.distance(points, neighbour), neighbour)
        for depth, (low, high) in enumerate(self.levels):
            near = np.maximum(low[box] - points[i], points[i] - high[box]).max(axis=1)
            i, box = i[near < least[i]], box[near < least[i]]
            run = 2 ** (len(self.levels) - 1 - depth)
            middle = self.owner[np.minimum(box * run + run // 2, len(self.owner) - 1)]
            improve(i, self.distance(points[i], middle), middle)
            i, box = np.repeat(i, 2), np.column_stack([2 * box, 2 * box + 1]).ravel()
            exists = box * (run // 2) < len(self.owner)
            i, box = i[exists], box[exists]
        return least, segment


def directed_distance(a: np.ndarray, b: np.ndarray) -> float:
    """Largest distance of a point of a to b."""
    target = Polyline(b)
    resolution = _ROUNDING * max(np.abs(a).max(), np.abs(b).max())
    p, r = a[:-1], a[1:]
    above = np.full(len(p), np.inf)
    for segment in target.around(0.5 * (p + r)):
        above = np.minimum(above, np.maximum(target.distance(p, segment), target.distance(r, segment)))

    known = np.minimum(np.append(above, np.inf), np.append(np.inf, above))  # vertices: bounds, then distances
    best = 0.0
    order = np.argsort(-known)
    for part in np.split(order, np.arange(_AT_ONCE, len(order), _AT_ONCE)):
        part = part[known[part] > best + resolution]
        known[part], _ = target.nearest(a[part])
        best = max(best, known[part].max(initial=0.0))

    return _refine(target, (p, r, known[:-1], known[1:], above), best, resolution)


def _refine(target: Polyline, pieces: tuple[np.ndarray, ...], best: float, resolution: float) -> float:
    """Cut pieces (p, r, d_p, d_r, bound) until none can exceed the largest distance found, the highest bounds first."""
    portions = [pieces]
    while portions:
        p, r, at_p, at_r, above = portions.pop()
        length = np.abs(r - p).max(axis=1)
        above = np.minimum(above, 0.5 * (at_p + at_r + length))
        hopeful = np.flatnonzero(above > best + resolution)
        hopeful = hopeful[np.argsort(above[hopeful])]
        later, now = hopeful[:-_AT_ONCE], hopeful[-_AT_ONCE:]
        if len(later):
            portions.append((p[later], r[later], at_p[later], at_r[later], above[later]))
        if len(now) == 0:
            continue
        p, r, at_p, at_r, above = p[now], r[now], at_p[now], at_r[now], above[now]
        share = np.clip(0.5 + 0.5 * (at_r - at_p) / length[now], 0.25, 0.75)
        m = p + share[:, None] * (r - p)
        at_m, segment = target.nearest(m)
        best = max(best, at_m.max())
        to_p, to_m, to_r = (target.distance(x, segment) for x in (p, m, r))
        halves = (
            (p, m, at_p, at_m, np.minimum(above, np.maximum(to_p, to_m))),
            (m, r, at_m, at_r, np.minimum(above, np.maximum(to_m, to_r))),
        )
        portions.append(tuple(np.concatenate(both) for both in zip(*halves)))
    return float(best)


def _evenly(vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertices with cuts of long segments among them, and the segment that follows each but the last."""
    step = np.diff(vertices, axis=0)
    length = np.abs(step).max(axis=1)
    parts = np.maximum(np.ceil(length * len(length) / max(length.sum(), 1e-300)), 1).astype(int)
    owner = np.repeat(np.arange(len(parts)), parts)
    first = np.repeat(np.cumsum(parts) - parts, parts)
    share = (np.arange(len(owner)) - first) / parts[owner]
    return np.concatenate([vertices[owner] + share[:, None] * step[owner], vertices[-1:]]), owner


def to_segment(p: np.ndarray, b0: np.ndarray, b1: np.ndarray) -> np.ndarray:
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
    with np.errstate(over="ignore"):
        return np.clip(np.divide(x, y, out=np.zeros_like(x), where=y != 0), 0.0, 1.0)
