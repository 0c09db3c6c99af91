"""Gauss and Radau IIA methods with any number of stages."""

from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from carom.names import register
from carom.tableaux.quadrature import from_w_transform, gauss_transform
from carom.tableaux.tableau import Tableau, checked_count


@register
def gauss(s: int) -> Tableau:
    """The s-stage Gauss method: order 2s, symmetric, symplectic, A-stable. For s = 1 the implicit midpoint rule.

    Example:
        >>> method = carom.IRK(carom.gauss(3))
    """
    return _gauss(checked_count("gauss(s): s", s, 1))


@register
def radau_iia(s: int) -> Tableau:
    """The s-stage Radau IIA method: order 2s - 1, L-stable, stiffly accurate. For s = 1 implicit Euler.

    Example:
        >>> method = carom.IRK(carom.radau_iia(2))
    """
    return _radau_iia(checked_count("radau_iia(s): s", s, 1))


@cache
def _gauss(s: int) -> Tableau:
    A, b, c = from_w_transform({s: 1}, Fraction(1), s, gauss_transform)
    return Tableau(A, b, c, order=2 * s, name=f"gauss({s})")


@cache
def _radau_iia(s: int) -> Tableau:
    A, b, c = from_w_transform({s: 1, s - 1: -1}, Fraction(1), s, _radau_iia_transform)
    return Tableau(A, b, c, order=2 * s - 1, name=f"radau_iia({s})")


def _radau_iia_transform(s: int) -> NDArray[np.object_]:
    """The transform of Gauss with 1/(4s - 2) added in the last corner (Hairer and Wanner, ODEs II, sec. IV.5)."""
    X = gauss_transform(s)
    X[-1, -1] += 1 / Decimal(4 * s - 2)
    return X
