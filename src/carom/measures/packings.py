"""How bodies are packed and mixed: contacts per body, filled part of space, fabric, Lacey's index."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from carom.measures.contacts import WORLD, pair_groups, row_of, touching
from carom.pairs import CellList
from carom.solution import Solution
from carom.state import reals
from carom.systems.system import System

_SLICES = 200  # of a sphere that a region cuts


def coordination(sol: Solution, t: float | None = None, gap: float = 0.0) -> Int[np.ndarray, " bodies"]:
    """How many others (and walls) each body touches, with a gap of at most `gap`, in the saved row at t (None: last).

    The coordination number of a packing is the mean over its bodies, or over those away from walls.

    Example:
        >>> carom.measures.coordination(sol, gap=1e-3).mean()
    """
    found, count = touching(sol, t, gap), pair_groups(sol.system)[0].bodies.count
    ends = np.concatenate([found.a, found.b])
    return np.bincount(ends[ends != WORLD], minlength=count)


def fabric(sol: Solution, t: float | None = None, gap: float = 0.0) -> Float[np.ndarray, "d d"]:
    """The mean of n n^T over the normals n of the contacts between bodies: its trace is 1, without order it is 1 / d.

    Example:
        >>> np.linalg.eigvalsh(carom.measures.fabric(sol))
    """
    n = touching(sol, t, gap).inner.normal
    return n.T @ n / max(len(n), 1)


def packing_fraction(sol: Solution, region: Any = None, t: float | None = None) -> float:
    """The part of a region that disks or spheres fill, in the saved row at t (None: the last); overlaps count twice.

    Args:
        sol: a run of disks or spheres.
        region: lower and upper corner of a box, `((x0, y0), (x1, y1))`; None for the whole of a periodic box.
        t: a time of the run.

    Example:
        >>> carom.measures.packing_fraction(sol, region=((5, 5), (35, 20)))
    """
    x, radii = places_and_radii(sol, row_of(sol, t))
    d = x.shape[1]
    if region is None:
        filled = np.sum(radii**d) * (np.pi if d == 2 else 4 * np.pi / 3)
        return float(filled / np.prod(_periods(sol.system, d)))
    lower, upper = (np.asarray(reals(corner, "region", "two corners of a box")) for corner in region)
    if lower.shape != (d,) or upper.shape != (d,) or not np.all(lower < upper):
        msg = f"region must be two corners of a box, {d} numbers each, the lower one first, got {region!r}"
        raise ValueError(msg)
    low, high = lower - x, upper - x
    cut = _cut_disks(low, high, radii) if d == 2 else _cut_spheres(low, high, radii)
    return float(np.sum(cut) / np.prod(upper - lower))


def mixing_index(sol: Solution, kind: Bool[np.ndarray, " bodies"], size: float, t: float | None = None) -> float:
    """Lacey's mixing index of two kinds of bodies: 0 where they are apart, 1 where they are mixed at random.

    `(s0^2 - s^2) / (s0^2 - sr^2)` with the variance s^2 of the share of one kind over square cells, weighted by the
    bodies in them, s0^2 that of separate kinds and sr^2 that of a random mixture [Lacey1954].

    Args:
        sol: a run of many bodies.
        kind: which bodies are of the first kind.
        size: width of the cells: some three to five diameters.
        t: a time of the run; the saved row at it or before it is taken (None: the last).

    Example:
        >>> carom.measures.mixing_index(sol, kind=sol.q[0, 0::3] < 0, size=8.0)
    """
    x, chosen = places_and_radii(sol, row_of(sol, t))[0], np.asarray(kind)
    if chosen.shape != x.shape[:1] or chosen.dtype != bool or chosen.all() or not chosen.any():
        msg = f"kind must be True or False for each of the {len(x)} bodies, and some of both"
        raise ValueError(msg)
    if not size > 0:
        msg = f"size must be positive, got {size}"
        raise ValueError(msg)
    _, cell = np.unique(np.floor(x / size).astype(int), axis=0, return_inverse=True)
    bodies, own = np.bincount(cell.ravel()), np.bincount(cell.ravel(), weights=chosen)
    p, n = chosen.mean(), len(x)
    variance = np.sum(bodies * (own / bodies - p) ** 2) / n
    apart, at_random = p * (1 - p), p * (1 - p) * len(bodies) / n
    return float((apart - variance) / (apart - at_random)) if apart > at_random else 1.0


def places_and_radii(sol: Solution, row: int) -> tuple[np.ndarray, np.ndarray]:
    """The places of disks or spheres in a saved row, and their radii."""
    groups = pair_groups(sol.system)
    bodies, d = groups[0].bodies, groups[0].shape.dimension
    radii = np.zeros(bodies.count)
    for group in groups:
        if not group.shape.radii:
            msg = (
                "this measure needs disks or spheres: carom.shapes.disk, carom.shapes.sphere or Shape(..., radii=True)"
            )
            raise ValueError(msg)
        radii[np.asarray(group.bodies.rows)] = np.asarray(group.data)
    return sol.q[row].reshape(bodies.count, -1)[:, :d], radii


def _periods(system: System, d: int) -> list[float]:
    searches = [group.search for group in pair_groups(system)]
    lengths = searches[0].box.lengths if isinstance(searches[0], CellList) else ()
    if len(lengths) != d or any(length is None for length in lengths):
        msg = "packing_fraction: bodies move in no periodic box: give region=((x0, y0), (x1, y1))"
        raise ValueError(msg)
    return [float(length) for length in lengths if length is not None]


def _cut_disks(low: np.ndarray, high: np.ndarray, r: np.ndarray) -> np.ndarray:
    """The areas of disks of radius r around the origin between corners, from those of four quadrants."""

    def quadrant(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The signed area of a disk between the axes and the lines at x and y."""
        sign = np.sign(x) * np.sign(y)
        x, y = np.minimum(np.abs(x), r), np.minimum(np.abs(y), r)
        bend = np.minimum(np.sqrt(r**2 - y**2), x)  # up to here the disk is higher than y
        return sign * (y * bend + _under(x, r) - _under(bend, r))

    (x0, y0), (x1, y1) = low.T, high.T
    return quadrant(x1, y1) - quadrant(x0, y1) - quadrant(x1, y0) + quadrant(x0, y0)


def _under(x: np.ndarray, r: np.ndarray) -> np.ndarray:
    """The area under a circle of radius r from 0 to x."""
    whole = np.where(r > 0, r, 1.0)
    return 0.5 * (x * np.sqrt(np.maximum(r**2 - x**2, 0.0)) + r**2 * np.arcsin(np.clip(x / whole, -1, 1)))


def _cut_spheres(low: np.ndarray, high: np.ndarray, r: np.ndarray) -> np.ndarray:
    """The volumes of spheres between corners: slices by Gauss' rule, those not cut exactly."""
    inside = np.all((low <= -r[:, None]) & (high >= r[:, None]), axis=1)
    node, weight = np.polynomial.legendre.leggauss(_SLICES)
    bottom, top = np.maximum(low[:, 2], -r), np.minimum(high[:, 2], r)
    half = np.maximum(0.5 * (top - bottom), 0.0)
    cut = np.zeros(len(r))
    for x, w in zip(node, weight):
        z = 0.5 * (top + bottom) + half * x
        cut += w * half * _cut_disks(low[:, :2], high[:, :2], np.sqrt(np.maximum(r**2 - z**2, 0.0)))
    return np.where(inside, 4 * np.pi / 3 * r**3, cut)
