"""A rigid body: mass, inertia, where it is at the start, the points on it that have names, and its corners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from carom.arguments import judged, numpy_for, plain_numbers
from carom.mechanisms.rotations import axes_with, quaternion
from carom.state import Numbers, reals

_THIN = 1e-9  # two principal moments may be this little (relative) below the third: a lamina


@dataclass(frozen=True, eq=False)
class Frame:
    """A point of a body with axes of its own: in the plane turned by an angle, in space with `axis` as third axis.

    Example:
        >>> hub = carom.Frame((0.0, 0.0, 0.1), axis=(1, 0, 0))
    """

    point: Any
    angle: float = 0.0
    axis: Any = (0.0, 0.0, 1.0)
    across: Any = None

    def axes(self, dimension: int) -> Any:
        """The axes as columns, in those of the body."""
        if dimension == 2:
            xp = numpy_for(self.angle)
            c, s = xp.cos(self.angle), xp.sin(self.angle)
            return xp.array([[c, -s], [s, c]])
        across = None if self.across is None else plain_numbers(self.across, "Frame: across", size=3)
        return axes_with(plain_numbers(self.axis, "Frame: axis", size=3), across, "Frame")


@dataclass(frozen=True, eq=False)
class RigidBody:
    """A rigid body, in the plane (inertia is one number) or in space (three principal moments, or a matrix).

    Args:
        mass: of the body.
        inertia: about its centre of mass, in its own axes.
        position: of its centre of mass at the start.
        rotation: at the start: the angle in the plane; in space a quaternion (w, x, y, z), a rotation vector or a
            rotation matrix from body axes to those of space.
        velocity: of the centre of mass at the start.
        spin: angular velocity at the start; in space in body axes.
        markers: named points of the body (or `carom.Frame`s), in its axes.
        corners: points of the body with which it touches planes, in its axes.
        radius: by which corners are rounded, a number or one per corner; a ball is one corner with its radius.
        name: for joints to refer to; bodies without one are "body 0", "body 1", ...

    Example:
        >>> rod = carom.RigidBody(1.0, 1 / 12, position=(0.5, 0.0), markers={"end": (0.5, 0.0)}, name="rod")
        >>> top = carom.RigidBody(1.0, (1.0, 2.0, 2.5), spin=(0.0, 10.0, 0.01))
    """

    mass: float
    inertia: Any
    position: Any = None
    rotation: Any = None
    velocity: Any = None
    spin: Any = None
    markers: Mapping[str, Any] = field(default_factory=dict)
    corners: Any = None
    radius: Any = 0.0
    name: str = ""

    def __post_init__(self):
        what = f"RigidBody '{self.name}'" if self.name else "RigidBody"
        plain_numbers(self.mass, f"{what}: mass", size=1, positive=True)
        _judge_inertia(reals(self.inertia, f"{what}: inertia", "a number, three, or a matrix"), what)
        corners = () if self.corners is None else self.corners
        plain_numbers(self.radius, f"{what}: radius", size=len(corners), of="corner", nonnegative=True)
        if not isinstance(self.name, str) or "." in self.name or self.name == "ground":
            msg = f"{what}: a name must be text without '.' and must not be 'ground'"
            raise ValueError(msg)
        if not isinstance(self.markers, Mapping):
            msg = f"{what}: markers must be a dictionary of names and points, got {type(self.markers).__name__}"
            raise TypeError(msg)
        d = self.dimension
        for name in ("position", "velocity", "spin"):
            self._vector(name, 1 if (d, name) == (2, "spin") else d)
        points = {f"marker '{k}'": m.point if isinstance(m, Frame) else m for k, m in self.markers.items()}
        for name, point in {**points, **{f"corners[{i}]": c for i, c in enumerate(corners)}}.items():
            if np.shape(point) != (d,):
                msg = f"{what}: {name} must be a point of {d} numbers, got {point!r}"
                raise ValueError(msg)
            plain_numbers(point, f"{what}: {name}", size=d)

    @property
    def dimension(self) -> int:
        """2 in the plane, 3 in space."""
        return 2 if np.ndim(self.inertia) == 0 else 3

    def _vector(self, name: str, size: int) -> Any:
        value = getattr(self, name)
        if value is None:
            return np.zeros(size)
        array = plain_numbers(value, f"RigidBody '{self.name}': {name}", size=size)
        if array.ndim == 0 and size > 1:
            msg = f"RigidBody '{self.name}': {name} must be {size} numbers, got {value!r}"
            raise ValueError(msg)
        return array.reshape(size)

    @property
    def rounded(self) -> list[tuple[Any, Any]]:
        """The corners with their radii."""
        corners = () if self.corners is None else self.corners
        xp = numpy_for(self.radius)
        return list(zip(corners, xp.broadcast_to(xp.asarray(self.radius, float), (len(corners),))))

    @property
    def coordinates(self) -> Any:
        """(x, y, angle), or place and quaternion."""
        x, xp = self._vector("position", self.dimension), numpy_for(self.position, self.rotation)
        if self.dimension == 2:
            return xp.append(x, self._vector("rotation", 1))
        turned = (1.0, 0.0, 0.0, 0.0) if self.rotation is None else self.rotation
        return xp.concatenate([x, quaternion(turned, f"RigidBody '{self.name}': rotation")])

    @property
    def velocities(self) -> Any:
        """Velocity of the centre and angular velocity."""
        d, xp = self.dimension, numpy_for(self.velocity, self.spin)
        return xp.concatenate([self._vector("velocity", d), self._vector("spin", 1 if d == 2 else 3)])

    @property
    def tensor(self) -> Any:
        """The inertia as a matrix, in the plane one by one."""
        J, xp = reals(self.inertia, "inertia", "numbers"), numpy_for(self.inertia)
        return J if J.ndim == 2 else xp.diag(xp.atleast_1d(J))

    def marker(self, name: str) -> Frame:
        """A named point as a frame; without a name the centre of mass."""
        if not name:
            return Frame(np.zeros(self.dimension))
        found = self.markers[name]
        return found if isinstance(found, Frame) else Frame(reals(found, f"marker '{name}'", "a point"))

    @classmethod
    def rod(cls, mass: float, length: float, radius: float = 0.0, dimension: int = 2, **options: Any) -> RigidBody:
        """A uniform rod along its first axis, with its ends "left" and "right" as corners and markers.

        In the plane it is thin, in space (`dimension` 3) a cylinder with half balls of its radius about both ends.

        Example:
            >>> stick = carom.RigidBody.rod(1.0, 2.0, position=(0.0, 1.0))
            >>> baton = carom.RigidBody.rod(1.0, 2.0, radius=0.05, dimension=3, position=(0.0, 0.0, 1.0))
        """
        if dimension not in (2, 3):
            msg = f"RigidBody.rod: dimension must be 2 (plane) or 3 (space), got {dimension!r}"
            raise ValueError(msg)
        half = 0.5 * plain_numbers(length, "RigidBody.rod: length", size=1, positive=True)
        ends = half * np.eye(dimension)[0] * np.array([[-1.0], [1.0]])
        markers = {"left": ends[0], "right": ends[1], **options.pop("markers", {})}
        inertia = mass * half**2 / 3
        if dimension == 3:
            r = plain_numbers(radius, "RigidBody.rod: radius of a rod in space", size=1, positive=True)
            balls = mass * 2 * r / (3 * half + 2 * r)
            along = (0.5 * (mass - balls) + 0.4 * balls) * r**2
            across = 0.5 * along + inertia + balls * (0.2 * r**2 + 2 / 3 * half**2 + 0.75 * half * r)
            inertia = numpy_for(along).stack([along, across, across])
        return cls(mass, inertia, markers=markers, corners=ends, radius=radius, **options)

    @classmethod
    def box(cls, mass: float, sides: Numbers, **options: Any) -> RigidBody:
        """A uniform box with two sides (in the plane) or three, its four or eight corners among its data.

        Example:
            >>> dice = carom.RigidBody.box(1.0, (0.1, 0.1, 0.1), position=(0.0, 0.0, 1.0))
        """
        l = plain_numbers(sides, "RigidBody.box: sides", positive=True)
        if l.shape not in ((2,), (3,)):
            msg = f"RigidBody.box: sides must be two or three numbers, got {sides!r}"
            raise ValueError(msg)
        signs = np.stack(np.meshgrid(*[[-0.5, 0.5]] * l.size, indexing="ij"), -1).reshape(-1, l.size)
        J = mass / 12 * (l @ l - l**2) if l.size == 3 else mass * (l @ l) / 12
        return cls(mass, J, corners=signs * l, **options)

    @classmethod
    def polygon(cls, mass: float, vertices: Any, **options: Any) -> RigidBody:
        """A uniform polygon in the plane, given by its vertices anticlockwise; its axes begin in its centre of mass.

        Example:
            >>> wedge = carom.RigidBody.polygon(1.0, [(0, 0), (1, 0), (0, 1)])
        """
        a = np.asarray(vertices, float)
        if a.ndim != 2 or a.shape[1] != 2 or len(a) < 3:
            msg = f"RigidBody.polygon: vertices must be at least three points of the plane, got shape {a.shape}"
            raise ValueError(msg)
        b = np.roll(a, -1, axis=0)
        cross = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
        if not cross.sum() > 0:
            msg = "RigidBody.polygon: vertices must go round the polygon anticlockwise"
            raise ValueError(msg)
        centre = ((a + b) * cross[:, None]).sum(0) / (3 * cross.sum())
        a, b = a - centre, b - centre
        cross = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
        J = mass * (cross * ((a * a).sum(1) + (a * b).sum(1) + (b * b).sum(1))).sum() / (6 * cross.sum())
        return cls(mass, J, corners=a, **options)


def _judge_inertia(J: Any, what: str) -> None:
    if J.shape not in ((), (3,), (3, 3)):
        msg = f"{what}: inertia must be one number (plane), three principal moments or a matrix (space), got {J}"
        raise ValueError(msg)
    if J.ndim == 0:
        plain_numbers(J, f"{what}: inertia", positive=True)
    else:
        judged(J, lambda array: _judge_tensor(array, what))


def _judge_tensor(J: np.ndarray, what: str) -> None:
    if not np.isfinite(J).all():
        msg = f"{what}: inertia must be finite, got {J.tolist()}"
        raise ValueError(msg)
    if J.ndim == 2 and np.abs(J - J.T).max() > 1e-9 * np.abs(J).max():
        msg = f"{what}: inertia must be a symmetric matrix"
        raise ValueError(msg)
    low, middle, high = np.sort(np.linalg.eigvalsh(J) if J.ndim == 2 else J)
    if not low > 0:
        msg = f"{what}: moments of inertia must be positive, got {low:g}"
        raise ValueError(msg)
    if low + middle < high * (1 - _THIN):
        msg = (
            f"{what}: no body has the principal moments {low:g}, {middle:g}, {high:g}: none may exceed the sum of the "
            "other two"
        )
        raise ValueError(msg)
