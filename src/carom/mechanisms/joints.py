"""Joints as data: which bodies, where, along which axis. What each kind holds is in `carom.mechanisms.equations`.

A side of a joint is the name of a body, `"body.marker"`, or `"ground"`. A side without a marker has its point at `at`,
and its axes as `axis` says, both in space as the bodies stand at the start. Markers that are a `carom.Frame` bring
their own axes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from carom.arguments import is_traced, plain_numbers, real
from carom.state import Numbers, reals


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint of two bodies; the functions of `carom.joints` make them.

    Where a joint lets one angle or one displacement free, its coordinate x is that of b against a, and these act on it.

    Args:
        kind: of the joint.
        a: first body.
        b: second body.
        at: the point of the joint at the start.
        axis: its axis at the start.
        across: the second axis of a universal joint.
        numbers: what the kind needs besides: a length, a pitch, teeth.
        limits: (lowest, highest) of x, contacts with `restitution`; of a hinge in space less than a turn apart.
        restitution: of the limits, in [0, 1].
        stiffness: of a spring that is relaxed at x = `rest`; of a hinge in space it acts the nearer way round.
        rest: see there.
        damping: force or torque -damping x'.
        motor: force or torque, a number or a function `motor(t, x, rate)`.
        friction: Coulomb's mu against the force that the joint carries across its axis, of a hinge times the radius of
            its pin; or a function `friction(rate)` (Stribeck).
        name: for messages, multipliers and gears.
    """

    kind: str
    a: str
    b: str
    at: Any = None
    axis: Any = None
    across: Any = None
    numbers: tuple[float, ...] = ()
    limits: tuple[float, float] | None = None
    restitution: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0
    motor: float | Callable[..., Any] | None = None
    friction: float | Callable[..., Any] = 0.0
    name: str = ""

    def __post_init__(self):
        for name in ("stiffness", "damping", "friction", "rest", "motor"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                plain_numbers(value, f"{self}: {name}", size=1, nonnegative=name not in ("rest", "motor"))
        if self.limits is not None and not is_traced(self.limits):
            ends = reals(self.limits, f"{self}: limits", "(lowest, highest)")
            if ends.shape != (2,) or not ends[0] < ends[1]:
                msg = f"{self}: limits must be (lowest, highest), got {self.limits!r}"
                raise ValueError(msg)

    def __str__(self) -> str:
        return f"{self.kind} joint" + (f" '{self.name}'" if self.name else "") + f" of '{self.a}' and '{self.b}'"

    def called(self, name: str) -> Joint:
        """The same joint with a name."""
        return replace(self, name=name)


def revolute(a: str, b: str, *, at: Any = None, axis: Any = None, **more: Any) -> Joint:
    """A hinge: one point in common, and in space the axis; b turns against a.

    Example:
        >>> hinge = carom.joints.revolute("ground", "rod", at=(0, 0), limits=(-1.0, 1.0), restitution=0.5)
    """
    return Joint("revolute", a, b, at, axis, **more)


def prismatic(a: str, b: str, *, at: Any = None, axis: Any = None, **more: Any) -> Joint:
    """A slider: b moves along the axis of a and does not turn.

    Example:
        >>> guide = carom.joints.prismatic("ground", "piston", at=(0, 0), axis=(1, 0), damping=0.1)
    """
    return Joint("prismatic", a, b, at, axis, **more)


def cylindrical(a: str, b: str, *, at: Any = None, axis: Any = None, **more: Any) -> Joint:
    """In space: b moves along an axis of a and turns about it.

    Example:
        >>> sleeve = carom.joints.cylindrical("ground", "sleeve", at=(0, 0, 0), axis=(0, 0, 1))
    """
    return Joint("cylindrical", a, b, at, axis, **more)


def spherical(a: str, b: str, *, at: Any = None, **more: Any) -> Joint:
    """In space: a ball joint, one point in common.

    Example:
        >>> shoulder = carom.joints.spherical("trunk", "arm", at=(0, 0, 1))
    """
    return Joint("spherical", a, b, at, **more)


def universal(a: str, b: str, *, at: Any = None, axis: Any = None, across: Any = None, **more: Any) -> Joint:
    """In space: one point in common, and an axis of a stays across an axis of b (Cardan, Hooke).

    Example:
        >>> cross = carom.joints.universal("shaft", "wheel", at=(0, 0, 0), axis=(1, 0, 0), across=(0, 1, 0))
    """
    return Joint("universal", a, b, at, axis, across, **more)


def planar(a: str, b: str, *, at: Any = None, axis: Any = None, **more: Any) -> Joint:
    """In space: b stays in a plane of a, of which `axis` is the normal.

    Example:
        >>> table = carom.joints.planar("ground", "plate", at=(0, 0, 0), axis=(0, 0, 1))
    """
    return Joint("planar", a, b, at, axis, **more)


def slot(a: str, b: str, *, at: Any = None, axis: Any = None, **more: Any) -> Joint:
    """A pin in a slot: a point of b stays on a line of a.

    Example:
        >>> fork = carom.joints.slot("fork", "pin", at=(1, 0), axis=(1, 0))
    """
    return Joint("slot", a, b, at, axis, **more)


def rigid(a: str, b: str, *, at: Any = None, **more: Any) -> Joint:
    """The two bodies move as one; the multipliers are the internal forces.

    Example:
        >>> weld = carom.joints.rigid("beam", "plate", at=(0, 0, 0))
    """
    return Joint("rigid", a, b, at, **more)


def distance(a: str, b: str, *, length: float | None = None, **more: Any) -> Joint:
    """A massless bar between two markers; by default as long as it is at the start.

    Example:
        >>> bar = carom.joints.distance("left.top", "right.top", length=0.5)
    """
    return Joint("distance", a, b, numbers=() if length is None else (real(length),), **more)


def screw(a: str, b: str, *, pitch: float, at: Any = None, axis: Any = None, **more: Any) -> Joint:
    """In space: b moves by `pitch` along the axis for every turn about it; the coordinate is the displacement.

    Example:
        >>> jack = carom.joints.screw("ground", "nut", pitch=0.01, at=(0, 0, 0), axis=(0, 0, 1))
    """
    turn = plain_numbers(pitch, "screw: pitch", size=1)
    if not is_traced(turn) and not turn:
        msg = "screw: pitch must not be zero: such a joint is a hinge"
        raise ValueError(msg)
    return Joint("screw", a, b, at, axis, numbers=(turn,), **more)


def gear(first: str, second: str, *, teeth: Numbers, **more: Any) -> Joint:
    """Coordinates x of two joints, by their names, are tied: n1 x1 + n2 x2 keeps its value; `teeth` are n1 and n2.

    Wheels that mesh from outside have positive teeth both, an inner ring a negative number. A rack is a prismatic
    joint with teeth per length, times 2 pi.

    Example:
        >>> pair = carom.joints.gear("axle 1", "axle 2", teeth=(20, 45))
    """
    n = plain_numbers(teeth, "gear: teeth", size=2)
    if n.shape != (2,) or (not is_traced(n) and not n.all()):
        msg = f"gear: teeth must be two numbers other than zero, got {teeth!r}"
        raise ValueError(msg)
    return Joint("gear", first, second, numbers=tuple(n), **more)


def rolling(
    body: str, *, radius: float, axis: Any = None, normal: Any = None, offset: float = 0.0, **more: Any
) -> Joint:
    """A ball, or a thin disk with an `axis` at the start, rolls on the plane `normal . x = offset` without slipping.

    Its height is a constraint, that its lowest point does not slip a nonholonomic one. In the plane a disk.

    Example:
        >>> coin = carom.joints.rolling("coin", radius=0.1, axis=(0, 1, 0))
    """
    r = plain_numbers(radius, "rolling: radius", size=1, positive=True)
    return Joint("rolling", "ground", body, normal, axis, numbers=(r, real(offset)), **more)
