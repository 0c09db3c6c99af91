"""The modified equation of a tableau to second order (James2020 secs. 3.1 and 3.3).

A method with coefficients A, b solves ``y' = f + h F1 + h^2 F2 + O(h^3)``, (47)-(48). The constants (49)-(51), printed
for two stages, are here for any number of them; ``c`` in the formulas is the row sum of A, as in the paper.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carom.tableaux.tableau import Tableau


def C11(tableau: Tableau) -> float:
    """``b . c - 1/2``, James2020 (49)."""
    return float(tableau.b @ _row_sums(tableau) - 1 / 2)


def C21(tableau: Tableau) -> float:
    """``b . c^2 - 1/3``, James2020 (50)."""
    return float(tableau.b @ _row_sums(tableau) ** 2 - 1 / 3)


def C22(tableau: Tableau) -> float:
    """``2 b . A c - 1/3``, James2020 (51)."""
    return float(2 * tableau.b @ tableau.A @ _row_sums(tableau) - 1 / 3)


def lambda1(tableau: Tableau) -> float:
    """The factor of ``h^2 Dg g`` in James2020 (55)."""
    return C22(tableau) - 2 * C11(tableau) - C11(tableau) ** 2


def lambda2(tableau: Tableau) -> float:
    """The factor of ``h^2 D^2g (x', x')`` in James2020 (55)."""
    return (C21(tableau) + C22(tableau) - 3 * C11(tableau)) / 2


def imitated_damping(tableau: Tableau, h: float) -> float:
    """The gamma of ``x'' = g(x) + gamma Dg(x) x'`` that the method imitates on ``x'' = g(x)``, James2020 (58)."""
    return 2 * C11(tableau) * h


def first_correction(tableau: Tableau, f: Callable[[Any], Any], y: Any) -> Any:
    """``F1(y) = C11 Df(y) f(y)``, James2020 (29) and (48), by one forward derivative of JAX."""
    import jax

    _, derivative = jax.jvp(f, (y,), (f(y),))
    return C11(tableau) * derivative


def _row_sums(tableau: Tableau) -> NDArray[np.float64]:
    return tableau.A.sum(axis=1)
