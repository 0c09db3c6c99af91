"""A branch of periodic orbits over a parameter: orbits side by side, folds, flips, grazing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from carom.arguments import plain_numbers, whole
from carom.orbits.arclength import Course, Point, flip, fold, point
from carom.orbits.grazing import grazes, reached, touch
from carom.orbits.newton import NotFoundError, corrected, scales
from carom.orbits.orbit import Orbit, refuse_if_unrepeated
from carom.orbits.return_map import image
from carom.state import reals, shortened

_TOL = 1e-10
_LAST = 5  # orbits, that tell what a branch comes to
_TESTS = {"fold": fold, "flip": flip}
_NONE = "no orbit was found further on"
_STROBE = "an impact came to the time of the guess: begin at another t"


class Special(NamedTuple):
    """A fold, a flip or grazing: the value of the parameter, and the orbit there."""

    kind: str
    value: float
    orbit: Orbit


@dataclass(frozen=True)
class Branch:
    """Orbits in the order of a branch.

    Attributes:
        parameter: name of the parameter that was followed.
        values: its value at every orbit.
        orbits: the orbits.
        specials: folds, flips and grazing in between, in order.
        ends: why it was not followed further at its two ends.
    """

    parameter: str
    values: np.ndarray
    orbits: list[Orbit]
    specials: list[Special]
    ends: tuple[str, str]

    @property
    def q(self) -> np.ndarray:
        """Coordinates on the section, (orbits, coordinates)."""
        return np.stack([orbit.state.q for orbit in self.orbits])

    @property
    def v(self) -> np.ndarray:
        """Velocities on the section, (orbits, velocities)."""
        return np.stack([orbit.state.v for orbit in self.orbits])

    @property
    def period(self) -> np.ndarray:
        """Periods."""
        return np.array([orbit.period for orbit in self.orbits])

    @property
    def multipliers(self) -> np.ndarray:
        """Multipliers, (orbits, unknowns), the largest first."""
        return np.stack([orbit.multipliers for orbit in self.orbits])

    @property
    def stable(self) -> np.ndarray:
        """Which orbits are stable."""
        return np.array([orbit.stable for orbit in self.orbits])

    def __repr__(self) -> str:
        special = ", ".join(f"{s.kind} at {s.value:.8g}" for s in self.specials) or "no fold, flip or grazing"
        low, high = self.values.min(), self.values.max()
        return f"<Branch: {len(self.orbits)} orbits, {self.parameter} from {low:g} to {high:g}, {special}>"


class _Side(NamedTuple):
    """What was found on one side of the first orbit."""

    points: list[Point]
    specials: list[tuple[str, Point]]
    end: str


def followed(orbit: Orbit, parameter: str, within: Any, step: float, most: int) -> Branch:
    """The branch through an orbit, both ways."""
    way = orbit.way
    way.family.refuse_unknown(parameter)
    low, high = _range(within)
    value = float(way.family.parameters[parameter])
    if not low <= value <= high:
        msg = f"within must contain the parameter's present value, {parameter} = {value:g}, got ({low:g}, {high:g})"
        raise ValueError(msg)
    step = float(plain_numbers(step, "step", size=1, positive=True).reshape(()))
    whole(most, "most", 1)
    along = way.family.nowhere | {parameter: np.ones(())}

    def way_at(p: float) -> Any:
        return way._replace(family=way.family.at(parameter, p))

    if way.section is None:
        for end in (low, high):
            way.span(way_at(end).family.parameters)
    x, n = np.asarray(way.unknowns(orbit.state)), len(way.kept)
    scale = np.append(scales(x[:n], x[n:], orbit.period), high - low)
    course = Course(lambda z: image(way_at(z[-1]), z[:-1], along), scale, _TOL, (low, high), step)
    up = np.append(np.zeros(len(x)), 1.0)
    first = point(corrected(course.image_of, np.append(x, value), up, scale, _TOL), scale, up)
    orbit_at = lambda at: Orbit.of(way_at(at.z[-1]), at.found)  # noqa: E731
    sides = [_side(course, orbit_at, first._replace(tangent=sign * first.tangent), most) for sign in (-1.0, 1.0)]
    points = [*reversed(sides[0].points), first, *sides[1].points]
    specials = [*reversed(sides[0].specials), *sides[1].specials]
    orbits = [orbit_at(at) for at in points]
    for i in (0, -1):
        refuse_if_unrepeated(orbits[i], f" at {parameter} = {points[i].z[-1]:.6g}")
    return Branch(
        parameter,
        np.array([at.z[-1] for at in points]),
        orbits,
        [Special(kind, float(at.z[-1]), orbit_at(at)) for kind, at in specials],
        (sides[0].end, sides[1].end),
    )


def _side(course: Course, orbit_at: Any, first: Point, most: int) -> _Side:
    """Points and special points on one side of the first."""
    here, points, special, end = first, [], [], f"{most} orbits"
    touched = [touch(orbit_at(first))]
    ahead = course.points(first, most)
    while True:
        try:
            new, s = next(ahead, (None, 0.0))
        except NotFoundError:
            why = reached(touched[-_LAST:], [first, *points][-_LAST:], course)
            special += [("grazing", here)] if why == "grazing" else []
            end = _STROBE if why == "strobe" and orbit_at(here).way.section is None else _NONE
            break
        if new is None:
            end = end if len(points) == most else "the end of the range"
            break
        touched.append(touch(orbit_at(new)))
        grazing = grazes(orbit_at, touched[-2:])
        tests = _TESTS if grazing is None else {"grazing": grazing}  # multipliers jump where an impact comes or goes
        found = [(kind, at) for kind, test in tests.items() if (at := course.located(here, new, s, test))]
        special += sorted(found, key=lambda one: float(np.abs((one[1].z - here.z) / course.scale).max()))
        points.append(new)
        here = new
    return _Side(points, special, end)


def _range(within: Any) -> tuple[float, float]:
    ends = reals(within, "within", "a pair of numbers, the smaller first")
    if ends.shape != (2,) or not np.isfinite(ends).all() or not ends[0] < ends[1]:
        msg = f"within must be a pair of numbers, the smaller first, got {shortened(within)}"
        raise ValueError(msg)
    return float(ends[0]), float(ends[1])
