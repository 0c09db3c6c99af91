"""Branches of periodic orbits by pseudo-arclength: through folds, and to where multipliers cross the unit circle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import root_scalar

from carom.orbits.newton import Found, Image, NotFoundError, corrected, rows

_GROWS = 1.5
_EASY = 4  # iterations; where a point took no more, the next is sought further away
_SHORTEST = 1e-4  # of the step asked for
_SHARP = 1e-12  # of the step: to which a special point is located


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

    def onward(self, a: Point, s: float) -> Point:
        """The point at the distance s from a, along its tangent."""
        guess = a.z + s * a.tangent * self.scale
        return point(corrected(self.image_of, guess, a.tangent, self.scale, self.tol), self.scale, a.tangent)

    def points(self, first: Point, most: int) -> Iterator[tuple[Point, float]]:
        """The points after the first, each with its distance from the one before, while the parameter is in range.

        Raises `NotFoundError` where the branch cannot be followed on.
        """
        here, s = first, self.step
        low, high = self.within
        for _ in range(most):
            while True:
                try:
                    new = self.onward(here, s)
                    break
                except NotFoundError:
                    s /= 2
                    if s < _SHORTEST * self.step:
                        raise
            if not low <= new.z[-1] <= high:
                yield self.at_end(here, new, np.clip(new.z[-1], low, high))
                return
            yield new, s
            here, s = new, min(self.step, _GROWS * s if new.found.iterations <= _EASY else s)

    def at_end(self, a: Point, b: Point, p: float) -> tuple[Point, float]:
        """The point between two others where the parameter has a given value, with its distance from the first."""
        guess = a.z + (p - a.z[-1]) / (b.z[-1] - a.z[-1]) * (b.z - a.z)
        up = np.append(np.zeros(len(guess) - 1), 1.0)
        end = point(corrected(self.image_of, guess, up, self.scale, self.tol), self.scale, a.tangent)
        return end, float(a.tangent @ ((end.z - a.z) / self.scale))

    def located(self, a: Point, b: Point, s: float, test: Callable[[Point], float]) -> Point:
        """The point where a function changes its sign between a and b, which is s further on.

        Where orbits in between cannot be found, it is the neighbour with the smaller value.
        """
        try:
            found = root_scalar(lambda x: test(self.onward(a, x)), bracket=(0.0, s), xtol=_SHARP * s)
            return self.onward(a, found.root)
        except NotFoundError:
            return min(a, b, key=lambda at: abs(test(at)))


def fold(at: Point) -> float:
    """Changes its sign where the branch turns back."""
    return float(at.tangent[-1])


def flip(at: Point) -> float:
    """Changes its sign where a multiplier passes -1: the period doubles."""
    J = at.found.image.jacobian
    return float(np.linalg.det(J + np.eye(len(J))))
