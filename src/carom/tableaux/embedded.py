r"""The embedded companion of a tableau: what one step tells about its own error.

With the rates F_i of the stages, f_0 at the start and f_1 at the end of the step,

    error of one step ~ h (e_0 f_0 + sum_i e_i F_i + e_1 f_1) = O(h^power).

Where a tableau carries embedded weights, `e = b - b_hat`. Otherwise e_1 = 0 and e is the divided difference over the
nodes {0, c_1, ..., c_s}, scaled to sum |e| = 1: it vanishes on polynomials of degree n - 2 for n nodes, so that
`power = n`, or q + 2 if the stage order q is too low for that (Jay1998 (38) is the case of Lobatto nodes; with the
filter (I - h e_0 J)^{-1} and Radau nodes it is the estimate of Hairer and Wanner, ODEs II, (IV.8.19)). One node more,
the end of the step, would leave nothing of it for Gauss methods on linear systems: f then is a polynomial of degree s.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from carom.tableaux.order import largest_C
from carom.tableaux.tableau import SAME, Array, Tableau


@dataclass(frozen=True)
class Embedded:
    """Weights of the rates at start, stages and end; the estimate falls like `h^power`."""

    weights: Array
    power: int

    @property
    def filter(self) -> float:
        """Weight at the node 0, with which implicit methods damp the stiff part of the estimate."""
        return float(np.abs(self.weights[:2]).max())


@cache
def embedded(tableau: Tableau) -> Embedded | None:
    """The companion of a tableau; None where nodes repeat and no embedded weights are known."""
    if tableau.b_hat is not None:
        lower = np.append(tableau.b_hat, np.zeros(tableau.stages + 1 - len(tableau.b_hat)))
        weights = np.concatenate([[0.0], np.append(tableau.b, 0.0) - lower])
        nodes = np.append(tableau.c, 1.0)
        missed = (j for j in range(1, tableau.order) if abs(lower @ nodes ** (j - 1) - 1 / j) > SAME)
        return Embedded(weights, max(2, next(missed, tableau.order)))
    first = int(np.abs(tableau.c).min() <= SAME)  # the start is a stage
    x = np.concatenate([[0.0], tableau.c])[first:]
    gaps = x[:, None] - x + np.eye(len(x))
    if len(x) < 2 or np.abs(gaps).min() <= SAME:
        return None
    weights = np.zeros(tableau.stages + 2)
    weights[first:-1] = 1.0 / np.prod(gaps, axis=1)
    return Embedded(weights / np.abs(weights).sum(), min(len(x), largest_C(tableau) + 2))
