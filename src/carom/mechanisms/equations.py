"""What joints hold: equations of the frames A and B of a joint in space, zero when fulfilled, and its coordinate.

A frame is a point with axes (columns of a matrix); z is the axis of a joint, in the plane it is x. Every function is
that of one joint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array


class At(NamedTuple):
    """A frame in space: a point, axes as columns, and in the plane the angle, which counts whole turns too."""

    point: Array
    axes: Array
    angle: Array


def _apart(A: At, B: At) -> Array:
    return B.point - A.point


def _aligned(A: At, B: At) -> Array:
    """The third axes are parallel."""
    return jnp.sum(A.axes[:, :2] * B.axes[:, 2:], 0)


def _unturned(A: At, B: At) -> Array:
    """All axes are parallel."""
    if A.point.size == 2:
        return (A.axes[:, 0] @ B.axes[:, 1])[None]
    return jnp.sum(A.axes * jnp.roll(B.axes, -1, 1), 0)


def _beside(A: At, B: At) -> Array:
    """B lies on the line of A."""
    across = A.axes[:, 1:] if A.point.size == 2 else A.axes[:, :2]
    return jnp.sum(across * _apart(A, B)[:, None], 0)


def revolute(A: At, B: At) -> Array:
    """A point, in space an axis too."""
    return _apart(A, B) if A.point.size == 2 else jnp.concatenate([_apart(A, B), _aligned(A, B)])


def prismatic(A: At, B: At) -> Array:
    """On a line without turning."""
    return jnp.concatenate([_beside(A, B), _unturned(A, B)])


def cylindrical(A: At, B: At) -> Array:
    """On a line along the same axis."""
    return jnp.concatenate([_beside(A, B), _aligned(A, B)])


def spherical(A: At, B: At) -> Array:
    """A point."""
    return _apart(A, B)


def universal(A: At, B: At) -> Array:
    """A point, and two axes across each other."""
    return jnp.append(_apart(A, B), A.axes[:, 2] @ B.axes[:, 0])


def planar(A: At, B: At) -> Array:
    """In a plane along the same normal."""
    return jnp.append(_aligned(A, B), A.axes[:, 2] @ _apart(A, B))


def slot(A: At, B: At) -> Array:
    """On a line."""
    return _beside(A, B)


def rigid(A: At, B: At) -> Array:
    """Everything."""
    return jnp.concatenate([_apart(A, B), _unturned(A, B)])


def distance(A: At, B: At, length: Array) -> Array:
    """How much too long, near the length."""
    d = _apart(A, B)
    return ((d @ d - length**2) / (2 * length))[None]


def screw(A: At, B: At, pitch: Array) -> Array:
    """Along the same axis, by one pitch per turn."""
    lead = pitch / (2 * jnp.pi)
    return jnp.append(cylindrical(A, B), lead * jnp.sin(along(A, B) / lead - turned(A, B)))


def turned(A: At, B: At) -> Array:
    """The angle of B about the axis of A; in space between -pi and pi."""
    if A.point.size == 2:
        return B.angle - A.angle
    x = B.axes[:, 0]
    return jnp.arctan2(A.axes[:, 1] @ x, A.axes[:, 0] @ x)


def along(A: At, B: At) -> Array:
    """The place of B on the axis of A."""
    return (A.axes[:, 0] if A.point.size == 2 else A.axes[:, 2]) @ _apart(A, B)


class Kind(NamedTuple):
    """What a kind of joint holds, how many rows that is in the plane and in space, and its coordinate if it has one.

    The first rows, `pressed` of them in the plane and in space, are those of the force that a joint with friction has.
    """

    residual: Callable[..., Array]
    plane: int
    space: int
    coordinate: Callable[..., Any] | None = None
    pressed: tuple[int, int] = (0, 0)

    def rows(self, dimension: int) -> int:
        """How many rows one joint has."""
        return self.plane if dimension == 2 else self.space


KINDS = {
    "revolute": Kind(revolute, 2, 5, turned, (2, 3)),
    "prismatic": Kind(prismatic, 2, 5, along, (1, 2)),
    "cylindrical": Kind(cylindrical, 0, 4, along, (0, 2)),
    "spherical": Kind(spherical, 0, 3),
    "universal": Kind(universal, 0, 4),
    "planar": Kind(planar, 0, 3),
    "slot": Kind(slot, 1, 2, along, (1, 2)),
    "rigid": Kind(rigid, 3, 6),
    "distance": Kind(distance, 1, 1),
    "screw": Kind(screw, 0, 5, along),
}
