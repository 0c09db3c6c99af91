"""The register of drawings, and the drawing of a system nobody has drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from carom.reports.drawings.points import plane_of
from carom.reports.shapes import Circles, Drawing, Line, stack

Draw = Callable[[np.ndarray, dict[str, Any]], Drawing]
register: dict[str, Draw] = {}
_MOST_BARS = 200


def drawing(*models: str) -> Callable[[Draw], Draw]:
    """Register a drawing for these models, a function of the coordinates in all frames and of the model's arguments.

    The times of the frames are the argument `t`.

    Example:
        >>> @drawing("my_ball")
        ... def my_ball(q, a):
        ...     return Drawing([Circles(stack(0.0, q[:, :1]), 0.1)])
    """

    def enter(fn: Draw) -> Draw:
        register.update(dict.fromkeys(models, fn))
        return fn

    return enter


def draw(model: str | None, q: np.ndarray, arguments: dict[str, Any], labels: tuple[str, ...] = ()) -> Drawing:
    """The drawing of a model; where there is none, a point in the plane of x and y (or z), or bars of the coordinates.

    Example:
        >>> draw("falling_mass", np.ones((50, 1)), {}).shapes
    """
    fn = register.get(model or "")
    if fn is not None:
        return fn(np.asarray(q, float), arguments)
    plane = plane_of(labels)
    return bars(q, arguments) if plane is None else path_in_plane(*q[:, list(plane)].T)


def path_in_plane(x: np.ndarray, y: np.ndarray) -> Drawing:
    """A point and the path it takes."""
    size = 0.02 * max(np.ptp(x), np.ptp(y), 1e-300)
    path = stack(x, y)
    return Drawing([Line(path, "grey", 1.0), Circles(path[:, None], size, "blue")], "the point (x, y) and its path")


def bars(q: np.ndarray, arguments: dict[str, Any]) -> Drawing:
    """Every coordinate as a bead on a rod: the drawing of any system."""
    del arguments
    kept = np.unique(np.linspace(0, q.shape[1] - 1, min(q.shape[1], _MOST_BARS)).round().astype(int))
    height = np.nanmax(np.abs(q), initial=0.0) or 1.0
    x = np.linspace(-1.0, 1.0, len(kept)) * height * 1.6 if len(kept) > 1 else np.zeros(1)
    y = q[:, kept]
    rods = np.full((len(q), 3 * len(kept), 2), np.nan)
    rods[:, 0::3] = stack(x, np.zeros_like(y))
    rods[:, 1::3] = stack(x, y)
    edge = np.array([x[0] - 0.1 * height, x[-1] + 0.1 * height])
    shapes = [
        Line(stack(edge, [0.0, 0.0]), "grey", 1.0),
        Line(rods, "blue", 2.0),
        Circles(stack(x, y), min(0.06, 1.2 / len(kept)) * height, "blue"),
    ]
    return Drawing(shapes, "coordinates as bars", to_scale=False)
