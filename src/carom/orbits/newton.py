"""Newton's method on a return map, with one more condition: a given parameter, or a place along a branch.

A point is z = (x, p): what returns, and one parameter. All differences are measured in units of `scale`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

_NEGLIGIBLE = (1e-7, 1e-9, 1e-11, 1e-13)  # relative size of singular values of directions that return as they were
_LARGE = 1e3  # singular values beyond it do not make others negligible
NOISE = 1e-6  # relative size of corrections that may be rounding and truncation
_STALLED = 0.9  # ratio of successive corrections, above which, twice, only noise is left
_SHORTEST = 1 / 16  # part of a correction that is tried


class Image(NamedTuple):
    """Where a point returns to, after which time, moved by how much in coordinates that need not return.

    `slopes` are the derivatives of `end` with respect to (x, p); `status` is that of the run.
    """

    end: np.ndarray
    period: float
    shift: np.ndarray
    slopes: np.ndarray
    status: int

    @property
    def jacobian(self) -> np.ndarray:
        """The derivative of the return map."""
        return self.slopes[:, :-1]


def no_image(n: int) -> Image:
    """That of a point with n unknowns where the map is not to be evaluated."""
    return Image(np.full(n, np.nan), np.nan, np.zeros(0), np.full((n, n + 1), np.nan), 0)


class Found(NamedTuple):
    """A point that returns, its image, the images that were needed, and the size of the next correction."""

    z: np.ndarray
    image: Image
    iterations: int
    error: float


class NotFoundError(Exception):
    """Newton's method ended without an orbit: at `z`, where its next correction would be of size `error`."""

    def __init__(self, z: np.ndarray, image: Image, iterations: int, error: float):
        super().__init__(f"correction {error:.1e} after {iterations} iterations")
        self.z, self.image, self.iterations, self.error = z, image, iterations, error


def defect(image: Image, z: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """How far a point moves, in units of the scale."""
    return (image.end - z[:-1]) / scale[:-1]


def rows(image: Image, scale: np.ndarray) -> np.ndarray:
    """The derivative of the defect, in units of the scale: a row per equation."""
    slopes = image.slopes - np.eye(*image.slopes.shape)
    return slopes * scale / scale[:-1, None]


def corrected(
    image_of: Callable[[np.ndarray], Image],
    z: np.ndarray,
    normal: np.ndarray,
    scale: np.ndarray,
    tol: float = 1e-10,
    most: int = 20,
) -> Found:
    """The point that returns, on the plane through z with this normal (in units of the scale).

    Corrections are shortened where the run fails or the point moves further than before. They end when they,
    and what they leave of the equations, are smaller than `tol`, or so small that only noise keeps them from shrinking.
    """
    z, level = np.array(z, float), normal @ (z / scale)
    image, last, slow = image_of(z), np.inf, 0
    for k in range(1, most + 1):
        if image.status or not np.isfinite(image.slopes).all():
            raise NotFoundError(z, image, k, np.inf)
        moves = defect(image, z, scale)
        equations = np.vstack([rows(image, scale), normal])
        step, error = _correction(equations, np.append(moves, normal @ (z / scale) - level))
        slow = slow + 1 if error > _STALLED * last else 0
        if error <= tol or (error <= NOISE and slow == 2):
            return Found(z, image, k, error)
        last, part = error, 1.0
        while True:
            trial = image_of(z + part * step * scale)
            fine = not trial.status and np.isfinite(trial.end).all()
            nearer = fine and _size(defect(trial, z + part * step * scale, scale)) <= 2 * _size(moves)
            if nearer or part <= _SHORTEST:
                break
            part /= 2
        z, image = z + part * step * scale, trial
    raise NotFoundError(z, image, most, last)


def _correction(equations: np.ndarray, moves: np.ndarray) -> tuple[np.ndarray, float]:
    """The shortest correction, and the larger of its size and of what it leaves.

    Directions in which points return as they were are left alone. Beside large multipliers others look like them, but
    without those the equations do not hold.
    """
    part = min(1.0, _LARGE / float(np.linalg.norm(equations, 2)))
    step, left = np.zeros_like(moves), np.inf
    for negligible in _NEGLIGIBLE:
        step = -np.linalg.lstsq(equations, moves, rcond=part * negligible)[0]
        left = _size(equations @ step + moves)
        if left <= NOISE:
            break
    return step, max(_size(step), left)


def _size(x: np.ndarray) -> float:
    return float(np.max(np.abs(x)))


def scales(q: np.ndarray, v: np.ndarray, period: float) -> np.ndarray:
    """A size per unknown: its own, but not less than a hundredth of what moves in a period, or than its largest kin."""
    far = max(np.max(np.abs(q), initial=0.0), period * np.max(np.abs(v)))
    fast = max(np.max(np.abs(v)), far / period)
    sizes = np.maximum(np.abs(q), 0.01 * far), np.maximum(np.abs(v), 0.01 * fast)
    return np.concatenate(sizes) if far else np.ones(len(q) + len(v))
