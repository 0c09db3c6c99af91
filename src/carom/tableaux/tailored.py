"""The two-stage method whose numerical dissipation imitates Kuwabara-Kono damping (James2020 sec. 3.4).

`tailored_coefficients` and `tailored_part` use plain arithmetic on their arguments, so that floats, NumPy numbers and
traced JAX numbers all work: the damping may be differentiated or vary from run to run without a new compilation.
"""

from math import isfinite, sqrt
from typing import Any

import numpy as np

from carom.names import register
from carom.tableaux.tableau import Tableau

SQRT2, SQRT3, SQRT6 = sqrt(2.0), sqrt(3.0), sqrt(6.0)

Pair = tuple[Any, Any]
Matrix = tuple[Pair, Pair]


def tailored_coefficients(C11: Any) -> tuple[Matrix, Pair]:
    """The coefficients A and b of James2020 (64)-(66); ``C11 = gamma / (2h)`` by (58)."""
    alpha = SQRT6 / 2 * C11 + 5 * SQRT3 / 2 * C11**2  # (64)
    a11 = 1 / 4 + C11 + alpha  # (66)
    a12 = 1 / 4 - SQRT3 / 6 - alpha + SQRT2 * C11
    a21 = 1 / 4 + SQRT3 / 6 + alpha + SQRT2 * C11
    a22 = 1 / 4 + C11 - alpha
    return ((a11, a12), (a21, a22)), (1 / 2 + SQRT6 * C11, 1 / 2 - SQRT6 * C11)  # (65)


def tailored_part(C11: Any, eta: Any) -> Matrix:
    """The matrix for a second force part that is damped by its own ``gamma_part = eta h``.

    On ``x'' = g(x) + l(x)``, with A for ``x' = v`` and g, this matrix for l and the weights b shared, the method solves
    ``x'' = g + l + gamma Dg x' + gamma_part Dl x' + O(h^3)`` with ``gamma = 2 C11 h`` (carom's own derivation; the
    paper, after (60), leaves it open). The velocity is recovered by
    ``x' = v + h (C11 g + (eta - C11) l) + h^2/2 C11^2 D(g + l) v``, which is (69) where ``eta = 2 C11``.
    The matrix is ``A + (eta - 2 C11) 1 w^T`` with ``w = (c2 - 1/2, 1/2 - c1) / (c2 - c1)``: w sums to one and
    ``w . c = 1/2``.
    """
    ((a11, a12), (a21, a22)), _ = tailored_coefficients(C11)
    shift, (w1, w2) = eta - 2 * C11, midpoint_weights(C11)
    return (a11 + shift * w1, a12 + shift * w2), (a21 + shift * w1, a22 + shift * w2)


def midpoint_weights(C11: Any) -> Pair:
    """w with ``w . 1 = 1`` and ``w . c = 1/2``: the stage values of a function, weighted so, are its value half-way."""
    ((a11, a12), (a21, a22)), _ = tailored_coefficients(C11)
    return SQRT3 * (a21 + a22 - 1 / 2), SQRT3 * (1 / 2 - a11 - a12)  # c2 - c1 = 1 / sqrt(3) for every C11


@register
def tailored(C11: float) -> Tableau:
    """The tableau for a number ``C11 >= 0``; A-stable; ``C11 = 0`` gives the coefficients of ``gauss(2)``.

    As a method for the undamped equation it has order 1 (4 if ``C11 = 0``); for the damped one, (56), order 3.
    """
    value = float(C11)
    if not (isfinite(value) and value >= 0):
        msg = f"tailored(C11): C11 = gamma / (2h) must be a finite number >= 0; got {C11!r}"
        raise ValueError(msg)
    A, b = tailored_coefficients(value)
    return Tableau(np.array(A), np.array(b), np.sum(A, axis=1), order=1 if value else 4, name=f"tailored({value!r})")
