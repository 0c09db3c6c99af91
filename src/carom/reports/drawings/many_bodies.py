"""Drawings of many disks and spheres: coloured by where they began, with a mark that shows how disks turn."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from carom.models.many_bodies import drum_radius, hopper_height, random_radii, width_of_box
from carom.models.registry import registry
from carom.reports.drawings.register import drawing
from carom.reports.shapes import Circles, Drawing, Line, Shape, ground, stack, wall

_MARKED = 400  # bodies whose turning is shown
_MOST = 4000  # bodies that are drawn


def _drawn(model: str) -> Callable[..., Any]:
    """Register a drawing from the arguments of its model, those not given as usual, as many bodies as there are."""
    usual = {name: p.default for name, p in inspect.signature(registry[model]).parameters.items()}

    def enter(fn: Callable[..., Drawing]) -> Callable[..., Drawing]:
        drawing(model)(lambda q, a: fn(q, usual | a | {"count": q.shape[1] // 3}))
        return fn

    return enter


def _disks(q: np.ndarray, a: dict[str, Any]) -> tuple[list[Shape], str]:
    """Two colours for the two halves of the start, and marks on disks; and what was left out."""
    kept = slice(0, a["count"], -(-a["count"] // _MOST))
    x, y, angle = np.moveaxis(q.reshape(len(q), -1, 3)[:, kept], 2, 0)
    radii = random_radii(a["count"], a["smallest"], a["seed"])[kept]
    left = x[0] < np.median(x[0])
    halves = ((left, "blue"), (~left, "orange"))
    shapes: list[Shape] = [Circles(stack(x[:, half], y[:, half]), radii[half], colour) for half, colour in halves]
    if a["count"] <= _MARKED:
        ends = np.full((len(q), 3 * x.shape[1], 2), np.nan)
        ends[:, 0::3] = stack(x, y)
        ends[:, 1::3] = stack(x + radii * np.cos(angle), y + radii * np.sin(angle))
        shapes.append(Line(ends, "ink", 1.0))
    thinned = "" if kept.step == 1 else f", one of {kept.step} bodies drawn"
    return shapes, f"coloured by the half they began in{thinned}"


@_drawn("disks_in_drum")
def drum(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Disks in a drum."""
    shapes, caption = _disks(q, a)
    R, angle = drum_radius(a["count"], a["smallest"], a["seed"], a["filling"]), np.linspace(0.0, 2 * np.pi, 200)
    return Drawing([Line(stack(R * np.cos(angle), R * np.sin(angle)), "grey", 2.0), *shapes], caption)


@_drawn("disks_in_box")
def in_box(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Disks between two walls."""
    shapes, caption = _disks(q, a)
    width, top = width_of_box(a["count"], a["width"]), float(q[:, 1::3].max())
    sides = [wall(0.0, top, 0.0, right=False), wall(0.0, top, width), ground(0.0, width)]
    return Drawing([*sides, *shapes], caption)


@_drawn("column_collapse")
def column(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Disks beside a wall."""
    shapes, caption = _disks(q, a)
    beside = wall(0.0, float(q[:, 1::3].max()), 0.0, right=False)
    return Drawing([ground(0.0, float(q[:, 0::3].max()) + 1.0), beside, *shapes], caption)


@_drawn("heap")
def heap(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Disks on a floor."""
    shapes, caption = _disks(q, a)
    return Drawing([ground(float(q[:, 0::3].min()) - 1.0, float(q[:, 0::3].max()) + 1.0), *shapes], caption)


@_drawn("hopper")
def hopper(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Disks that leave a hopper."""
    shapes, caption = _disks(q, a)
    half, height = 0.5 * a["opening"], hopper_height(a["count"], a["opening"], a["angle"])
    top = half + height * np.tan(a["angle"])
    walls = [Line(np.array([[side * half, 0.0], [side * top, height]]), "grey", 2.0) for side in (-1, 1)]
    floor = ground(float(q[:, 0::3].min()) - 1, float(q[:, 0::3].max()) + 1, -2.0 * a["opening"])
    return Drawing([*walls, floor, *shapes], caption)


@_drawn("spheres_in_box")
def spheres(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Spheres seen from the side, those in front over those behind."""
    x, y, z = np.moveaxis(q.reshape(len(q), -1, 3), 2, 0)
    order = np.argsort(-y[0])
    radii = random_radii(a["count"], a["smallest"], a["seed"])
    shade = (y.max() - y) / (np.ptp(y) or 1.0)
    circles = Circles(stack(x[:, order], z[:, order]), radii[order], "blue", shade=shade[:, order])
    return Drawing([ground(float(x.min()) - 1, float(x.max()) + 1), circles], "seen from the side, darker in front")
