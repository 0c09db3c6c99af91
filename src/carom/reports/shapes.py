"""What a drawing is made of: lines, circles, springs, arrows and solids, as NumPy arrays over all frames.

Points have two components, or three in a drawing of bodies in space, which the reader can turn (z points upward).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

#: Words for colours; the page knows what they look like in light and dark.
COLOURS = ("ink", "grey", "blue", "orange", "green", "red", "purple")


@dataclass(frozen=True)
class Line:
    """A polyline `points` of shape (frames, n, 2), or (n, 2) if it never moves; `fill` makes it a polygon.

    Points that are NaN part it. One that never moves and has a point for every frame is a path: the way so far shows
    more. What is `held` jumps from frame to frame, else points move on straight lines between frames. In space points
    have three components, and nothing is filled.
    """

    points: Any
    colour: str = "ink"
    width: float = 2.0
    fill: bool = False
    dashed: bool = False
    held: bool = False


@dataclass(frozen=True)
class Circles:
    """Circles at `points` of shape (frames, n, 2) or (n, 2), spheres where these have three components.

    `shade` (frames, n) in [0, 1] colours them, `alpha` (frames, n) in [0, 1] lets them fade.
    """

    points: Any
    radius: Any = 1.0
    colour: str = "blue"
    fill: bool = True
    shade: Any = None
    alpha: Any = None
    held: bool = False


@dataclass(frozen=True)
class Arrows:
    """Arrows from `points` along `vectors`, both (frames, n, 2) or (frames, n, 3): forces, velocities."""

    points: Any
    vectors: Any
    colour: str = "red"
    width: float = 2.0


@dataclass(frozen=True)
class Solid:
    """A body in space: corners (n, 3) and convex faces (lists of corners) in its own axes, and where these are.

    `position` (frames, 3) is that of the origin of the axes, `quaternion` (frames, 4) turns them, scalar part first.

    Example:
        >>> Solid.brick(x, quaternions, (0.2, 0.1, 0.05))
        >>> Solid.cylinder(x, quaternions, radius=0.1, length=0.5)
    """

    corners: Any
    faces: Any
    position: Any
    quaternion: Any
    colour: str = "blue"

    @classmethod
    def brick(cls, position: Any, quaternion: Any, half: Any, colour: str = "blue") -> Solid:
        """A box with half-lengths along its own axes."""
        signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
        faces = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
        return cls(signs * np.asarray(half, float), faces, position, quaternion, colour)

    @classmethod
    def cylinder(cls, position: Any, quaternion: Any, radius: float, length: float, colour: str = "blue") -> Solid:
        """A cylinder around its own z axis."""
        n = _SIDES
        turn = 2 * np.pi * np.arange(n) / n
        rim = radius * stack(np.cos(turn), np.sin(turn))
        corners = np.concatenate([np.column_stack([rim, np.full(n, z)]) for z in (-0.5 * length, 0.5 * length)])
        sides = [[i, (i + 1) % n, n + (i + 1) % n, n + i] for i in range(n)]
        ends = [list(range(n))[::-1], list(range(n, 2 * n))]
        return cls(corners, [*sides, *ends], position, quaternion, colour)


_SIDES = 20


@dataclass(frozen=True)
class Touches:
    """Where contacts of a drawing are, in the order of the system's contacts, and which way their forces push.

    `points` (frames, n, 2) or (n, 2), `normals` likewise, with a third component in space. Friction acts along
    `tangents`, left out the normals turned clockwise by a right angle; in space they are a tuple of two such arrays.
    Friction elements come behind the contacts, with their direction as normal. A report draws contact points, forces
    and impacts there.
    """

    points: Any
    normals: Any
    tangents: Any = None


@dataclass(frozen=True)
class Spring:
    """A zigzag between two points, `points` of shape (frames, 2, 2), or (frames, 2, 3) in space."""

    points: Any
    colour: str = "grey"
    width: float = 1.5
    coils: int = 9


Shape = Line | Circles | Spring | Arrows | Solid


@dataclass(frozen=True)
class Drawing:
    """Shapes and a caption that says what was enlarged or left out; `touches` say where contact forces act.

    A drawing `to_scale`, in which all lengths are those of the system, gets a bar that shows a length.

    Example:
        >>> Drawing([Circles(points(q[:, 0], 0.0), 0.1), ground(-1, 1)], "a ball")
    """

    shapes: Sequence[Shape]
    caption: str = ""
    touches: Touches | None = None
    to_scale: bool = True

    @property
    def in_space(self) -> bool:
        """Whether it can be turned."""
        return any(isinstance(s, Solid) or np.shape(s.points)[-1] == 3 for s in self.shapes)

    def seen_from(self, x: np.ndarray, y: np.ndarray | float = 0.0) -> Drawing:
        """The same drawing of lines and circles with the eye moving along (x, y), one entry per frame."""
        eye = stack(x, np.broadcast_to(y, np.shape(x)))[:, None, :]
        touches = self.touches and replace(self.touches, points=framed(self.touches.points) - eye)
        shapes = [s if isinstance(s, Solid) else replace(s, points=framed(s.points) - eye) for s in self.shapes]
        return Drawing(shapes, self.caption, touches, self.to_scale)


def framed(points: Any) -> np.ndarray:
    """Points with a leading axis of frames (of length 1 for what never moves)."""
    array = np.asarray(points, float)
    return array[None] if array.ndim == 2 else array


def places(shape: Any) -> np.ndarray:
    """All points of a shape in all frames, (n, dim)."""
    if isinstance(shape, Solid):
        turned = turned_in_space(np.atleast_2d(shape.quaternion), shape.corners)
        return (np.atleast_2d(shape.position)[:, None] + turned).reshape(-1, 3)
    points = framed(shape.points)
    tips = [points + framed(shape.vectors)] if isinstance(shape, Arrows) else []
    return np.concatenate([points, *tips]).reshape(-1, points.shape[-1])


def turned_in_space(quaternion: Any, vectors: Any) -> np.ndarray:
    """Vectors (n, 3) turned by quaternions (frames, 4), scalar part first, of any length but 0: (frames, n, 3)."""
    quaternion = np.asarray(quaternion, float)
    w, *u = np.moveaxis(quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True), -1, 0)
    axis = np.stack(u, axis=-1)[:, None, :]
    vectors = np.asarray(vectors, float)[None]
    across = 2 * np.cross(axis, vectors)
    return vectors + w[:, None, None] * across + np.cross(axis, across)


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


def floor(x: tuple[float, float], y: tuple[float, float], z: float = 0.0, lines: int = 8) -> Line:
    """A net of lines in the plane of height z, for drawings in space."""
    pieces = []
    for a, b, along in ((x, y, False), (y, x, True)):
        for place in np.linspace(*a, lines + 1):
            ends = [(place, b[0], z), (place, b[1], z)]
            pieces += [(q, p, r) if along else (p, q, r) for p, q, r in ends] + [(np.nan,) * 3]
    return Line(np.array(pieces), "grey", 0.7)


def wall(bottom: float, top: float, x: float = 0.0, right: bool = True) -> Line:
    """A wall along y, hatched on its solid side."""
    flat = ground(bottom, top, 0.0, not right)
    return Line(np.asarray(flat.points)[:, ::-1] * [1, 1] + [x, 0.0], "grey", 1.2)
