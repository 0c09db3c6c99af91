"""Drawings of many disks and spheres: coloured by where they began, with a mark that shows how disks turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.models.many_bodies import drum_radius, hopper_height, random_radii, width_of_box
from carom.reports.drawings.register import drawing
from carom.reports.shapes import Circles, Drawing, Line, Shape, ground, stack, wall

_MARKED = 400  # bodies whose turning is shown
_MOST = 4000  # bodies that are drawn


def _disks(q: np.ndarray, a: dict[str, Any]) -> tuple[list[Shape], np.ndarray, str]:
    """Two colours for the two halves of the start, marks on disks; the radii; and what was left out."""
    count = int(a["count"])
    kept = slice(0, count, -(-count // _MOST))
    x, y, angle = np.moveaxis(q.reshape(len(q), count, 3)[:, kept], 2, 0)
    radii = random_radii(count, float(a["smallest"]), int(a["seed"]))[kept]
    left = x[0] < np.median(x[0])
    shapes: list[Shape] = [
        Circles(stack(x[:, half], y[:, half]), radii[half], colour)
        for half, colour in ((left, "blue"), (~left, "orange"))
    ]
    if count <= _MARKED:
        ends = np.full((len(q), 3 * x.shape[1], 2), np.nan)
        ends[:, 0::3] = stack(x, y)
        ends[:, 1::3] = stack(x + radii * np.cos(angle), y + radii * np.sin(angle))
        shapes.append(Line(ends, "ink", 1.0))
    thinned = "" if kept.step == 1 else f", one of {kept.step} bodies drawn"
    return shapes, radii, f"coloured by the half they began in{thinned}"


def _around(radius: float) -> Line:
    angle = np.linspace(0.0, 2 * np.pi, 200)
    return Line(stack(radius * np.cos(angle), radius * np.sin(angle)), "grey", 2.0)


@drawing("disks_in_drum")
def drum(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Disks in a drum."""
    shapes, _, caption = _disks(q, a)
    return Drawing(
        [_around(drum_radius(int(a["count"]), a["smallest"], int(a["seed"]), a["filling"])), *shapes], caption
    )


@drawing("disks_in_box")
def in_box(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Disks between two walls."""
    shapes, _, caption = _disks(q, a)
    width, top = width_of_box(int(a["count"]), a["width"]), float(q.reshape(len(q), -1, 3)[:, :, 1].max())
    sides = [wall(0.0, top, 0.0, right=False), wall(0.0, top, width), ground(0.0, width)]
    return Drawing([*sides, *shapes], caption)


@drawing("column_collapse", "heap")
def on_floor(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Disks on a floor; a column stands beside a wall."""
    shapes, _, caption = _disks(q, a)
    x, y = np.moveaxis(q.reshape(len(q), -1, 3)[:, :, :2], 2, 0)
    floor = ground(min(float(x.min()), 0.0) - 1.0, float(x.max()) + 1.0)
    beside = [wall(0.0, float(y.max()), 0.0, right=False)] if "columns" in a and x.min() > 0 else []
    return Drawing([floor, *beside, *shapes], caption)


@drawing("hopper")
def hopper(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Disks that leave a hopper."""
    shapes, _, caption = _disks(q, a)
    half, height = 0.5 * a["opening"], hopper_height(int(a["count"]), a["opening"], a["angle"])
    top = half + height * np.tan(a["angle"])
    walls = [Line(np.array([[side * half, 0.0], [side * top, height]]), "grey", 2.0) for side in (-1, 1)]
    x = q.reshape(len(q), -1, 3)[:, :, 0]
    return Drawing([*walls, ground(float(x.min()) - 1, float(x.max()) + 1, -2.0 * a["opening"]), *shapes], caption)


@drawing("spheres_in_box")
def spheres(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Spheres seen from the side, those in front over those behind."""
    count = int(a["count"])
    x, y, z = np.moveaxis(q.reshape(len(q), count, 3), 2, 0)
    order = np.argsort(-y[0])
    radii = random_radii(count, float(a["smallest"]), int(a["seed"]))
    shade = (y.max() - y) / (np.ptp(y) or 1.0)
    circles = Circles(stack(x[:, order], z[:, order]), radii[order], "blue", shade=shade[:, order])
    return Drawing([ground(float(x.min()) - 1, float(x.max()) + 1), circles], "seen from the side, darker in front")
