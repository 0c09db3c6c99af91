"""Lobatto IIIA, IIIB, IIIC, IIIC* and IIID methods with any number of stages (Jay1998 sec. 8).

The five families share nodes and weights. Their W-transforms differ only in the last row and column (Lemma 8.1 and
sec. 8.1), so a family is three numbers: the factors of ``zeta_{s-1} sigma`` below and beside the last diagonal
entry, and the factor of ``sigma / (2s - 2)`` in that entry.
"""

from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from carom.names import register
from carom.tableaux.quadrature import from_w_transform, gauss_transform
from carom.tableaux.tableau import Tableau, checked_count

#: Family: (below, beside, in) the last diagonal entry of the W-transform.
FAMILIES = {
    "lobatto_iiia": (1, 0, 0),
    "lobatto_iiib": (0, 1, 0),
    "lobatto_iiic": (1, 1, 1),
    "lobatto_iiic_star": (1, 1, -1),
    "lobatto_iiid": (1, 1, 0),
}


@register
def lobatto_iiia(s: int) -> Tableau:
    """Lobatto IIIA: collocation C(s), first stage explicit, stiffly accurate, symmetric. Trapezoidal rule for s = 2.

    Example:
        >>> method = carom.IRK(carom.lobatto_iiia(3))
    """
    return _checked("lobatto_iiia", s)


@register
def lobatto_iiib(s: int) -> Tableau:
    """Lobatto IIIB: D(s), symmetric, symplectic partner of IIIA. For s = 2 the rows sum to 1/2, 1/2, not to c.

    Example:
        >>> method = carom.IRK(carom.lobatto_iiib(3))
    """
    return _checked("lobatto_iiib", s)


@register
def lobatto_iiic(s: int) -> Tableau:
    """Lobatto IIIC: C(s-1), D(s-1), L-stable and algebraically stable; for dissipative forces.

    Example:
        >>> method = carom.IRK(carom.lobatto_iiic(3))
    """
    return _checked("lobatto_iiic", s)


@register
def lobatto_iiic_star(s: int) -> Tableau:
    """Lobatto IIIC*: C(s-1), D(s-1), the adjoint of IIIC, unconditionally explosive; for exciting forces.

    Example:
        >>> method = carom.IRK(carom.lobatto_iiic_star(3))
    """
    return _checked("lobatto_iiic_star", s)


@register
def lobatto_iiid(s: int) -> Tableau:
    """Lobatto IIID: the mean of IIIC and IIIC*, symmetric and symplectic (Jay1998 sec. 8.1).

    Example:
        >>> method = carom.IRK(carom.lobatto_iiid(3))
    """
    return _checked("lobatto_iiid", s)


def _checked(family: str, s: int) -> Tableau:
    return _lobatto(family, checked_count(f"{family}(s): s", s, 2))


@cache
def _lobatto(family: str, s: int) -> Tableau:
    below, beside, corner = FAMILIES[family]
    norm = Fraction(2 * s - 1, s - 1)  # sigma = sum b_i P_{s-1}(c_i)^2, Jay1998 Lemma 8.1

    def transform(s: int) -> NDArray[np.object_]:
        sigma = Decimal(norm.numerator) / norm.denominator
        X = gauss_transform(s)
        X[-1, -2] *= sigma * below
        X[-2, -1] *= sigma * beside
        X[-1, -1] += corner * sigma / (2 * s - 2)
        return X

    A, b, c = from_w_transform({s: 1, s - 2: -1}, norm, s, transform)
    own_rows = family == "lobatto_iiib" and s == 2
    return Tableau(A, b, c, order=2 * s - 2, name=f"{family}({s})", row_sums_are_c=not own_rows)
