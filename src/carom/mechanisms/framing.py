"""From what a user writes of joints, springs and planes to frames on bodies, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from carom.arguments import did_you_mean, is_traced, names_of, numpy_for, plain_numbers
from carom.mechanisms.body import Frame, RigidBody
from carom.mechanisms.joints import Joint
from carom.mechanisms.poses import Side
from carom.mechanisms.rotations import axes_with, plane_rotation, space_rotation

GROUND = "ground"


@dataclass(frozen=True)
class Fixed:
    """A frame fixed to a body: its number, point, axes, and angle in the plane."""

    body: int
    point: Any
    axes: Any
    angle: Any


class Scene:
    """The bodies as they stand at the start, by name; the ground is the last one."""

    def __init__(self, bodies: Sequence[RigidBody]):
        self.bodies = bodies
        self.dimension = bodies[0].dimension
        self.number = {body.name: i for i, body in enumerate(bodies)} | {GROUND: len(bodies)}
        d, each = self.dimension, [body.coordinates for body in bodies]
        turn = plane_rotation if d == 2 else space_rotation
        matrices = [turn(c[2] if d == 2 else c[3:]) for c in each]
        self.place = [*(c[:d] for c in each), np.zeros(d)]
        self.turn = [*matrices, np.eye(d)]
        self.angle = [*(c[2] if d == 2 else 0.0 for c in each), 0.0]

    def find(self, side: Any, who: str) -> tuple[int, str]:
        """Body and marker of "body.marker"."""
        body, _, marker = str(side).partition(".")
        if body not in self.number:
            msg = f"{who}: there is no body '{body}'; there are {names_of(list(self.number))}"
            raise ValueError(msg + did_you_mean(body, self.number))
        i = self.number[body]
        known = self.bodies[i].markers if i < len(self.bodies) else {}
        if marker and marker not in known:
            msg = f"{who}: '{body}' has no marker '{marker}'; it has {names_of(list(known))}"
            raise ValueError(msg + did_you_mean(marker, known))
        return i, marker

    def vector(self, value: Any, who: str, name: str) -> Any:
        """A point or direction in space."""
        array = plain_numbers(value, f"{who}: {name}", size=self.dimension)
        if array.ndim == 0:
            msg = f"{who}: {name} must be {self.dimension} numbers, got {value!r}"
            raise ValueError(msg)
        return array

    def body(self, name: Any, who: str) -> int:
        """The number of a body that is meant as a whole."""
        i, marker = self.find(name, who)
        if marker:
            msg = f"{who}: name a body, not a marker, got '{name}'"
            raise ValueError(msg)
        return i

    def plane(self, normal: Any, offset: Any, who: str, name: str = "normal") -> tuple[Any, Any]:
        """The unit normal of the plane `normal . x = offset`, and its offset along it."""
        array = self.vector(normal, who, name)
        size = numpy_for(array).linalg.norm(array)
        if not is_traced(array) and not size > 0:
            msg = f"{who}: {name} must not be zero, got {normal!r}"
            raise ValueError(msg)
        return array / size, plain_numbers(offset, f"{who}: offset", size=1) / size

    def direction(self, value: Any, who: str, name: str) -> Any:
        """A vector of length one."""
        return self.plane(value, 0.0, who, name)[0]

    def sides(self, joint: Joint) -> tuple[Fixed, Fixed]:
        """The two frames of a joint."""
        who = str(joint)
        found = [self.find(side, who) for side in (joint.a, joint.b)]
        if found[0][0] == found[1][0]:
            msg = f"{who}: a joint needs two different bodies"
            raise ValueError(msg)
        axes, angle = self._joint_axes(joint, who)
        marked = [self._marked(i, marker) for i, marker in found]
        at = None if joint.at is None else self.vector(joint.at, who, "at")
        if at is None:
            points = [m for m in marked if m is not None]
            if not points:
                msg = f"{who}: give the point of the joint, at=, or name markers as in '{joint.a}.end'"
                raise ValueError(msg)
            at = self._in_space(points[0])
        return tuple(
            self._on(i, at, axes, angle) if m is None else self._with_axes(m, found[k][1], axes, angle)
            for k, ((i, _), m) in enumerate(zip(found, marked))
        )  # pyright: ignore

    def _joint_axes(self, joint: Joint, who: str) -> tuple[Any, Any]:
        if self.dimension == 2:
            x = self.direction((1.0, 0.0) if joint.axis is None else joint.axis, who, "axis")
            angle = numpy_for(x).arctan2(x[1], x[0])
            return Frame((0, 0), angle).axes(2), angle
        z = self.vector((0.0, 0.0, 1.0) if joint.axis is None else joint.axis, who, "axis")
        x = None if joint.across is None else self.vector(joint.across, who, "across")
        return axes_with(z, x, who), 0.0

    def _marked(self, i: int, marker: str) -> Fixed | None:
        if not marker:
            return None
        frame = self.bodies[i].marker(marker)
        return Fixed(i, frame.point, frame.axes(self.dimension), frame.angle)

    def _in_space(self, f: Fixed) -> Any:
        return self.place[f.body] + self.turn[f.body] @ f.point

    def _on(self, i: int, at: Any, axes: Any, angle: Any) -> Fixed:
        R = self.turn[i]
        return Fixed(i, R.T @ (at - self.place[i]), R.T @ axes, angle - self.angle[i])

    def _with_axes(self, f: Fixed, marker: str, axes: Any, angle: Any) -> Fixed:
        """A marker that is only a point takes its axes from the joint."""
        if isinstance(self.bodies[f.body].markers[marker], Frame):
            return f
        return Fixed(f.body, f.point, self.turn[f.body].T @ axes, angle - self.angle[f.body])

    def end(self, given: Any, who: str) -> Fixed:
        """The end of a spring: a body, a marker, or a point of the ground."""
        if not isinstance(given, str):
            return self._on(len(self.bodies), self.vector(given, who, "an end"), np.eye(self.dimension), 0.0)
        i, marker = self.find(given, who)
        return self._marked(i, marker) or Fixed(i, np.zeros(self.dimension), np.eye(self.dimension), 0.0)

    def apart(self, a: Fixed, b: Fixed) -> Any:
        """The distance of two frames at the start."""
        d = self._in_space(b) - self._in_space(a)
        return numpy_for(d).linalg.norm(d)


def rows(values: Sequence[Any]) -> Any:
    """One row per value."""
    return jnp.asarray(numpy_for(*values).stack([numpy_for(x).asarray(x, float) for x in values]))


def stacked(frames: Sequence[Fixed]) -> Side:
    """One row per frame."""
    arrays = (rows([getattr(f, name) for f in frames]) for name in ("point", "axes", "angle"))
    return Side(tuple(f.body for f in frames), *arrays)
