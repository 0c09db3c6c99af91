"""Drawings of many disks and spheres: coloured by where they began, with a mark that shows how disks turn."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from carom.models.many_bodies import drum_radius, hopper_height, random_radii, width_of_box
from carom.models.registry import registry
from carom.reports.drawings.register import drawing
from carom.reports.shapes import Circles, Drawing, Line, Shape, floor, ground, stack, wall

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
    below = ground(float(q[:, 0::3].min()) - 1, float(q[:, 0::3].max()) + 1, -2.0 * a["opening"])
    return Drawing([*walls, below, *shapes], caption)


@_drawn("spheres_in_box")
def spheres(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Spheres in their box, in two colours for the two halves of the start."""
    places = q.reshape(len(q), -1, 3)
    radii = random_radii(a["count"], a["smallest"], a["seed"])
    low = places[0, :, 2] < np.median(places[0, :, 2])
    halves = [Circles(places[:, half], radii[half], colour) for half, colour in ((low, "blue"), (~low, "orange"))]
    width = a["width"] or 2.0 * max(1, round(a["count"] ** (1 / 3))) + 1.0
    corners = np.array([[0, 0], [width, 0], [width, width], [0, width], [0, 0]], float)
    top = float(places[..., 2].max())
    rims = [Line(np.column_stack([corners, np.full(5, z)]), "grey", 1.2) for z in (0.0, top)]
    posts = [Line(np.array([[x, y, 0.0], [x, y, top]]), "grey", 1.2) for x, y in corners[:4]]
    return Drawing(
        [floor((0.0, width), (0.0, width)), *rims, *posts, *halves], "coloured by the layer they began in; drag to turn"
    )
