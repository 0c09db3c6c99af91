"""The three things a drawing is made of: lines, circles and springs, as NumPy arrays over all frames."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

#: Words for colours; the page knows what they look like in light and dark.
COLOURS = ("ink", "grey", "blue", "orange", "green", "red", "purple")


@dataclass(frozen=True)
class Line:
    """A polyline `points` of shape (frames, n, 2), or (n, 2) if it never moves; `fill` makes it a polygon."""

    points: Any
    colour: str = "ink"
    width: float = 2.0
    fill: bool = False
    dashed: bool = False


@dataclass(frozen=True)
class Circles:
    """Circles at `points` of shape (frames, n, 2) or (n, 2); `shade` (frames, n) in [0, 1] colours them."""

    points: Any
    radius: Any = 1.0
    colour: str = "blue"
    fill: bool = True
    shade: Any = None


@dataclass(frozen=True)
class Spring:
    """A zigzag between two points, `points` of shape (frames, 2, 2)."""

    points: Any
    colour: str = "grey"
    width: float = 1.5
    coils: int = 9


Shape = Line | Circles | Spring


@dataclass(frozen=True)
class Drawing:
    """Shapes and a caption that says what was enlarged or left out.

    Example:
        >>> Drawing([Circles(points(q[:, 0], 0.0), 0.1), ground(-1, 1)], "a ball")
    """

    shapes: list[Shape]
    caption: str = ""

    def seen_from(self, x: np.ndarray, y: np.ndarray | float = 0.0) -> Drawing:
        """The same drawing with the eye moving along (x, y), one entry per frame."""
        eye = stack(x, np.broadcast_to(y, np.shape(x)))[:, None, :]
        return Drawing([replace(s, points=framed(s.points) - eye) for s in self.shapes], self.caption)


def framed(points: Any) -> np.ndarray:
    """Points with a leading axis of frames (of length 1 for what never moves)."""
    array = np.asarray(points, float)
    return array[None] if array.ndim == 2 else array


def stack(x: Any, y: Any) -> np.ndarray:
    """Coordinates x and y, broadcast, as an array with a last axis of two."""
    return np.stack(np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float)), axis=-1)


def chain(*points: Any) -> np.ndarray:
    """Points of shape (frames, 2) or (2,), one after the other, as a polyline (frames, n, 2)."""
    frames = max((len(p) for p in map(np.asarray, points) if p.ndim == 2), default=1)
    return np.stack([np.broadcast_to(np.asarray(p, float), (frames, 2)) for p in points], axis=1)


def turned(angle: Any, x: Any, y: Any) -> np.ndarray:
    """The vectors (x, y) turned by `angle`, one per frame."""
    c, s = np.cos(angle), np.sin(angle)
    return stack(x * c - y * s, x * s + y * c)


def box(centre: Any, angle: Any, half_width: float, half_height: float) -> np.ndarray:
    """The outline of a turned rectangle, closed: (frames, 5, 2)."""
    corners = [(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)]
    return chain(*(centre + turned(angle, a * half_width, b * half_height) for a, b in corners))


def ground(left: float, right: float, y: float = 0.0, below: bool = True) -> Line:
    """A wall along x, hatched on its solid side."""
    n = 24
    depth = (right - left) / 60 * (-1 if below else 1)
    x = np.linspace(left, right, n + 1)
    zigzag = [(left, y)]
    for a, b in zip(x[:-1], x[1:]):
        zigzag += [(b, y), (a, y + depth), (b, y)]
    return Line(np.array(zigzag), "grey", 1.2)


def wall(bottom: float, top: float, x: float = 0.0, right: bool = True) -> Line:
    """A wall along y, hatched on its solid side."""
    flat = ground(bottom, top, 0.0, not right)
    return Line(np.asarray(flat.points)[:, ::-1] * [1, 1] + [x, 0.0], "grey", 1.2)
