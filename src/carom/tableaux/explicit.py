"""Explicit tables, classical ones and ones made for half-explicit use on constrained systems."""

from functools import cache

import numpy as np

from carom.names import register
from carom.tableaux.tableau import Tableau, checked_count

SQRT6 = 6**0.5

#: Rows below the diagonal and weights.
CLASSICAL: dict[int, tuple[list[list[float]], list[float]]] = {
    1: ([], [1.0]),
    2: ([[1 / 2]], [0.0, 1.0]),
    3: ([[1 / 3], [-1.0, 2.0]], [0.0, 3 / 4, 1 / 4]),
    4: ([[1 / 2], [0.0, 1 / 2], [0.0, 0.0, 1.0]], [1 / 6, 1 / 3, 1 / 3, 1 / 6]),
    5: (
        [
            [1 / 5],
            [3 / 40, 9 / 40],
            [44 / 45, -56 / 15, 32 / 9],
            [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
            [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
            [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
        ],
        [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0],
    ),
}
#: Weights of embedded methods of order p - 1 (trapezoidal rule for p = 1), for p = 5 those of Dormand and Prince; a
#: last one more than stages is that of the rate at the end. For p = 4 of order 2: of order 3 on these nodes is only
#: Simpson's rule itself, and the estimate would not see forces of time alone.
EMBEDDED: dict[int, list[float]] = {
    1: [1 / 2, 1 / 2],
    2: [1.0, 0.0],
    3: [1 / 2, 0.0, 1 / 2],
    4: [1 / 24, 11 / 24, 11 / 24, 1 / 24],
    5: [5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40],
}
#: Brasey and Hairer's five stages, order 4 on index-2 systems (Hairer and Wanner, ODEs II, sec. VII.6).
BRASEY_HAIRER_4: tuple[list[list[float]], list[float]] = (
    [
        [3 / 10],
        [(1 + SQRT6) / 30, (11 - 4 * SQRT6) / 30],
        [(-79 - 31 * SQRT6) / 150, (-1 - 4 * SQRT6) / 30, (24 + 11 * SQRT6) / 25],
        [(14 + 5 * SQRT6) / 6, (-8 + 7 * SQRT6) / 6, (-9 - 7 * SQRT6) / 4, (9 - SQRT6) / 4],
    ],
    [0.0, 0.0, (16 - SQRT6) / 36, (16 + SQRT6) / 36, 1 / 9],
)


@register
def explicit(p: int) -> Tableau:
    """The explicit method of order p = 1..5.

    Euler; explicit midpoint; Brasey and Hairer's three stages (an ordinary third-order table that keeps order 3 when
    used half-explicitly, which Kutta's does not); the classical fourth-order table; Dormand and Prince 5(4), whose
    last stage is the result. All carry embedded weights ``b_hat``.
    """
    return _explicit(_checked_order("explicit", p, 5))


@register
def half_explicit(p: int) -> Tableau:
    """The explicit table of order p = 1..4 that keeps this order half-explicitly on systems of index 2."""
    return _half_explicit(_checked_order("half_explicit", p, 4))


def _checked_order(function: str, p: int, most: int) -> int:
    order = checked_count(f"{function}(p): p", p, 1)
    if order > most:
        msg = f"{function}(p): p must be an integer from 1 to {most}; got {p!r}"
        raise ValueError(msg)
    return order


@cache
def _explicit(p: int) -> Tableau:
    return _from_rows(*CLASSICAL[p], p, f"explicit({p})", np.array(EMBEDDED[p]))


@cache
def _half_explicit(p: int) -> Tableau:
    rows, weights = BRASEY_HAIRER_4 if p == 4 else CLASSICAL[p]
    return _from_rows(rows, weights, p, f"half_explicit({p})", None if p == 4 else np.array(EMBEDDED[p]))


def _from_rows(
    rows: list[list[float]], weights: list[float], order: int, name: str, b_hat: np.ndarray | None
) -> Tableau:
    A = np.zeros((len(weights), len(weights)))
    for i, row in enumerate(rows, start=1):
        A[i, : len(row)] = row
    return Tableau(A, np.array(weights), A.sum(axis=1), order=order, name=name, b_hat=b_hat)
