"""Chains of force and velocities of many disks, drawn over them."""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.measures.contacts import WORLD, contact_forces, pair_groups
from carom.measures.packings import places_and_radii
from carom.reports.drawings.register import Draw, draw
from carom.reports.provenance import origin_of
from carom.reports.shapes import Drawing, Line
from carom.solution import Solution

_MOST_ROWS = 50  # saved rows whose forces are found once more
_MOST_BODIES = 4000
_MOST_LINES = 300  # of a kind in a frame
_WIDTHS = {1.0: 1.0, 2.0: 2.5, 4.0: 4.5}  # of chains that carry more than so many mean forces
_ARROW = 4.0  # mean radii that the mean of the fastest moves are drawn long


def with_forces(run: Solution) -> Draw:
    """The drawing of a run of disks with the chains of force through them and their velocities, for `carom.report`.

    Forces are those of at most 50 saved rows, each found once more (`carom.measures.contact_forces`); the thickest
    lines carry more than four times the mean.

    Example:
        >>> carom.report(sol, "run.html", drawing=carom.reports.with_forces(sol))
    """
    group = pair_groups(run.system)[0]
    if not group.shape.radii or group.shape.dimension != 2 or group.bodies.count > _MOST_BODIES:
        msg = f"with_forces draws disks in the plane (carom.shapes.disk), {_MOST_BODIES} at most"
        raise ValueError(msg)

    def drawn(q: np.ndarray, arguments: dict[str, Any]) -> Drawing:
        picture = draw(origin_of(run)[0], q, arguments, run.labels)
        rows = np.searchsorted(np.sort(run.t), np.linspace(run.t.min(), run.t.max(), len(q)), side="right") - 1
        shown = f"{picture.caption}; red: contact forces above their mean; thin: velocities"
        return Drawing([*picture.shapes, Line(_moves(run, q, rows), "ink", 1.0, held=True), *_chains(run, rows)], shown)

    return drawn


def _chains(run: Solution, rows: np.ndarray) -> list[Line]:
    """Contact forces of frames, those of the last of the chosen rows, one line for each width."""
    chosen = np.unique(np.linspace(0, len(run) - 1, min(len(run), _MOST_ROWS)).astype(int))
    of_frame = chosen[np.searchsorted(chosen, rows, side="right") - 1].tolist()
    segments = {row: _segments(run, row) for row in chosen.tolist()}
    return [
        Line(_padded([segments[row][k] for row in of_frame]), "red", width, held=True)
        for k, width in enumerate(_WIDTHS.values())
    ]


def _segments(run: Solution, row: int) -> list[np.ndarray]:
    """Lines (n, 2, 2) from centre to centre (or wall) of contacts that carry much, by how much they carry."""
    found, radii = contact_forces(run, run.t[row]), places_and_radii(run, row)[1]
    carried = found.pressure
    mean = carried[carried > 0].mean() if np.any(carried > 0) else np.inf
    r_a, r_b = radii[found.a], np.where(found.b == WORLD, 0.0, radii[found.b])
    lines = np.stack([found.point + r_a[:, None] * found.normal, found.point - r_b[:, None] * found.normal], axis=1)
    bounds = [*_WIDTHS, np.inf]
    order = np.argsort(-carried)
    lines, carried = lines[order], carried[order]
    return [lines[(carried > a * mean) & (carried <= b * mean)][:_MOST_LINES] for a, b in zip(bounds, bounds[1:])]


def _padded(frames: list[np.ndarray]) -> np.ndarray:
    """Segments of all frames as one broken line each, as long as the longest."""
    points = np.full((len(frames), 3 * max(1, *map(len, frames)), 2), np.nan)
    for own, lines in zip(points, frames):
        own[0 : 3 * len(lines) : 3], own[1 : 3 * len(lines) : 3] = lines[:, 0], lines[:, 1]
    return points


def _moves(run: Solution, q: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Velocities of some bodies as lines from their centres, of one scale in all frames."""
    bodies = pair_groups(run.system)[0].bodies
    some = slice(0, None, -(-bodies.count // _MOST_LINES))
    x, v = (all_of.reshape(len(rows), bodies.count, -1)[:, some, :2] for all_of in (q, run.v[rows]))
    fastest = np.mean(np.max(np.linalg.norm(v, axis=2), axis=1)) or 1.0
    points = np.full((len(rows), 3 * x.shape[1], 2), np.nan)
    points[:, 0::3] = x
    points[:, 1::3] = x + _ARROW * np.mean(places_and_radii(run, 0)[1]) / fastest * v
    return points
