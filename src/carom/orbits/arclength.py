"""Branches of periodic orbits by pseudo-arclength: through folds, and to where multipliers cross the unit circle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from scipy.optimize import root_scalar

from carom.orbits.newton import NOISE, Found, Image, NotFoundError, corrected, no_image, rows

_GROWS = 1.5
_EASY = 5  # iterations; where a point took no more, the next is sought further away
_SHORTEST = 1e-4  # of the step asked for
_SHARP = 1e-12  # of the step, or of the range: to which a special point, or the end, is located
_ZERO = 1e-2  # of its values nearby: what a test function leaves at a point that it locates


class Point(NamedTuple):
    """A point of a branch and the direction of the branch there."""

    found: Found
    tangent: np.ndarray

    @property
    def z(self) -> np.ndarray:
        """What returns, and the parameter."""
        return self.found.z


def point(found: Found, scale: np.ndarray, along: np.ndarray) -> Point:
    """The point with the tangent that points `along`."""
    tangent = np.linalg.svd(rows(found.image, scale))[2][-1]
    return Point(found, tangent if tangent @ along >= 0 else -tangent)


class Course(NamedTuple):
    """The way along a branch: the map, the units, the tolerance, the range of the parameter, the longest step."""

    image_of: Callable[[np.ndarray], Image]
    scale: np.ndarray
    tol: float
    within: tuple[float, float]
    step: float

    def near(self, guess: np.ndarray, normal: np.ndarray, s: float, along: np.ndarray) -> Point:
        """The point on the plane through a guess, not further from it than s, with its parameter in the range."""
        slack = _SHARP * (self.within[1] - self.within[0])

        def image_of(z: np.ndarray) -> Image:
            inside = self.within[0] - slack <= z[-1] <= self.within[1] + slack
            close = np.linalg.norm((z - guess) / self.scale) <= s + NOISE
            return self.image_of(z) if inside and close else no_image(len(z) - 1)

        return point(corrected(image_of, guess, normal, self.scale, self.tol), self.scale, along)

    def onward(self, a: Point, s: float) -> Point:
        """The point at the distance s from a, along its tangent."""
        return self.near(a.z + s * a.tangent * self.scale, a.tangent, s, a.tangent)

    def room(self, a: Point) -> float:
        """The distance along the tangent to the end of the range."""
        rate = a.tangent[-1] * self.scale[-1]
        return float((self.within[int(rate > 0)] - a.z[-1]) / rate) if rate else np.inf

    def to_end(self, a: Point, s: float) -> Point:
        """The point at the end of the range, which lies at the distance s along the tangent of a."""
        guess = a.z + s * a.tangent * self.scale
        guess[-1] = self.within[int(a.tangent[-1] > 0)]
        return self.near(guess, np.append(np.zeros(len(guess) - 1), 1.0), s, a.tangent)

    def points(self, first: Point, most: int) -> Iterator[tuple[Point, float]]:
        """The points after the first, each with its distance from the one before, while the parameter is in range.

        Raises `NotFoundError` where the branch cannot be followed on.
        """
        here, s, room = first, self.step, self.room(first)
        for _ in range(most if room > _SHARP else 0):
            while True:
                try:
                    new = self.onward(here, s) if s < room else self.to_end(here, room)
                    break
                except NotFoundError:
                    s = min(s, room) / 2
                    if s < _SHORTEST * self.step:
                        raise
            yield new, float(here.tangent @ ((new.z - here.z) / self.scale))
            if s >= room:
                return
            s = min(self.step, _GROWS * s if new.found.iterations <= _EASY else s)
            here, room = new, self.room(new)

    def located(self, a: Point, b: Point, s: float, test: Callable[[Point], float]) -> Point | None:
        """The point where a function passes zero between a and b, which is s further on; None where it leaps.

        Where points in between cannot be found, it is the best of those that were.
        """
        known = {0.0: (a, test(a)), s: (b, test(b))}

        def value(x: float) -> float:
            if x not in known:
                low, high = max(k for k in known if k < x), min(k for k in known if k > x)
                start, chord = known[low][0].z, known[high][0].z - known[low][0].z
                guess, far = start + (x - low) / (high - low) * chord, float(np.linalg.norm(chord / self.scale))
                found = self.near(guess, a.tangent, far, a.tangent)
                known[x] = found, test(found)
            return known[x][1]

        ends = value(0.0), value(s)
        if s <= 0 or not -np.inf < min(ends) < 0 < max(ends) < np.inf:
            return None
        with suppress(NotFoundError):
            value(root_scalar(value, bracket=(0.0, s), xtol=_SHARP * s).root)
        found, left = min(known.values(), key=lambda one: abs(one[1]))
        return found if abs(left) <= _ZERO * max(map(abs, ends)) else None


def fold(at: Point) -> float:
    """Changes its sign where the branch turns back."""
    return float(at.tangent[-1])


def flip(at: Point) -> float:
    """Changes its sign where a multiplier passes -1: the period doubles."""
    J = at.found.image.jacobian
    return float(np.linalg.det(J + np.eye(len(J))))
