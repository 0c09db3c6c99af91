"""The order of a method, verified: by rooted trees, by simplifying assumptions, by Jay's Theorem 4.5."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from carom.tableaux import trees
from carom.tableaux.tableau import Tableau

TOLERANCE = 1e-12


def order_by_trees(tableau: Tableau, max_order: int = 8) -> int:
    """The largest p <= ``max_order`` for which all rooted-tree conditions up to order p hold (200 trees for p = 8)."""
    return trees.largest_order([tableau.A], tableau.b, max_order, TOLERANCE)


def additive_order_by_trees(tableaux: Sequence[Tableau], max_order: int = 4) -> int:
    """The order of an additive method: one tableau for each part of the right-hand side, the weights shared.

    The conditions are those of trees whose branches are coloured by the parts; their number grows quickly with
    ``max_order``.
    """
    check_shared_quadrature(tableaux)
    return trees.largest_order([tableau.A for tableau in tableaux], tableaux[0].b, max_order, TOLERANCE)


def order_by_simplifying_assumptions(tableau: Tableau) -> int:
    """The order ``min(p, q + r + 1, 2q + 2)`` that B(p), C(q), D(r) guarantee (Butcher); at least this is reached."""
    p, q, r = largest_B(tableau), largest_C(tableau), largest_D(tableau)
    return min(p, q + r + 1, 2 * q + 2)


def verified_order(tableau: Tableau) -> int:
    """The order by trees up to 8 and, above that, what the simplifying assumptions guarantee."""
    by_trees = order_by_trees(tableau)
    return max(by_trees, order_by_simplifying_assumptions(tableau)) if by_trees == 8 else by_trees


def CC(first: Tableau, second: Tableau, Q: int) -> float:
    """Largest residual of ``C^m C^n (Q)``: ``sum a_ij^m a_jl^n c_l^(k-2) = c_i^k / (k (k-1))``, k = 2..Q."""
    c, product = first.c, first.A @ second.A
    residuals = [product @ c ** (k - 2) - c**k / (k * (k - 1)) for k in range(2, Q + 1)]
    return float(max((np.abs(residual).max() for residual in residuals), default=0.0))


def DD(first: Tableau, second: Tableau, R: int) -> float:
    """Largest residual of ``D^m D^n (R)`` of Jay1998 sec. 4.2, k = 2..R."""
    b, c, product = first.b, first.c, first.A @ second.A
    residuals = [
        (b * c ** (k - 2)) @ product - (b / k - b * c / (k - 1) + b * c**k / (k * (k - 1))) for k in range(2, R + 1)
    ]
    return float(max((np.abs(residual).max() for residual in residuals), default=0.0))


def largest_B(tableau: Tableau) -> int:
    """The largest p with B(p)."""
    return _largest(tableau.B, 2 * tableau.stages)


def largest_C(tableau: Tableau) -> int:
    """The largest q with C(q)."""
    return _largest(tableau.C, 2 * tableau.stages)


def largest_D(tableau: Tableau) -> int:
    """The largest r with D(r)."""
    return _largest(tableau.D, 2 * tableau.stages)


def largest_CC(first: Tableau, second: Tableau) -> int:
    """The largest Q with ``C^m C^n (Q)``; 1 where even Q = 2 fails."""
    return _largest(lambda Q: CC(first, second, Q), 2 * first.stages)


def largest_DD(first: Tableau, second: Tableau) -> int:
    """The largest R with ``D^m D^n (R)``; 1 where even R = 2 fails."""
    return _largest(lambda R: DD(first, second, R), 2 * first.stages)


def satisfies_21(first: Tableau, others: Sequence[Tableau]) -> bool:
    """Jay1998 (21): a zero first row of A^1, equal products A^1 A^n, and (N; b^T) of full rank."""
    product = first.A @ others[0].A
    equal = all(np.abs(first.A @ other.A - product).max() <= TOLERANCE for other in others)
    stacked = np.vstack([product[1:], first.b])
    return first.first_stage_explicit and equal and bool(np.linalg.matrix_rank(stacked, tol=1e-10) == first.stages)


class SparkOrder(NamedTuple):
    """What Theorem 4.5 says: local errors ``O(h^(mu+1))`` in y and ``O(h^(nu+1))`` in z, u; global order ``nu``."""

    mu: int
    nu: int


def theorem_4_5_order(first: Tableau, others: Sequence[Tableau], linear_in_u: bool = False) -> SparkOrder:
    """The order of a SPARK method on constrained systems by Jay1998 Theorems 4.5 and 4.6.

    Args:
        first: The tableau (1), which the positions use.
        others: The tableaux (2), (3), ..., for the force parts.
        linear_in_u: Whether the forces are linear in the multipliers.

    Raises:
        ValueError: If a hypothesis of Theorem 4.3 fails: (20), (S1), (21) or ``C^1 C^n (2)``.
    """
    _check_theorem_4_3(first, others)
    every = [first, *others]
    p = largest_B(first)
    q_each, r_each = [largest_C(t) for t in every], [largest_D(t) for t in every]
    q, r, r_others = min(q_each), min(r_each), min(r_each[1:])
    kappa = min(q_m + r_m for q_m, r_m in zip(q_each, r_each))
    Q = min(largest_CC(first, other) for other in others)
    R = min(largest_DD(first, other) for other in others)
    mu = min(p, 2 * q + 2, q + r + 2, kappa + 1, Q + r_others, 2 * Q - 1 + linear_in_u, Q + R)
    return SparkOrder(mu, min(mu, 2 * Q - 2 + linear_in_u))


def check_shared_quadrature(tableaux: Sequence[Tableau]) -> None:
    """Raise a ValueError unless all tableaux share weights and nodes, Jay1998 (20)."""
    first = tableaux[0]
    for other in tableaux[1:]:
        shared = other.stages == first.stages and np.allclose(
            [other.b, other.c], [first.b, first.c], rtol=0, atol=1e-13
        )
        if not shared:
            msg = f"{first.name} and {other.name} do not share weights and nodes, Jay1998 (20)"
            raise ValueError(msg)


def _check_theorem_4_3(first: Tableau, others: Sequence[Tableau]) -> None:
    check_shared_quadrature([first, *others])
    hypotheses = {
        "(S1), a stiffly accurate first tableau": first.is_stiffly_accurate,
        "(21)": satisfies_21(first, others),
        "C1Cn(2)": all(CC(first, other, 2) <= TOLERANCE for other in [first, *others]),
    }
    for hypothesis, holds in hypotheses.items():
        if not holds:
            msg = f"Theorem 4.3 needs {hypothesis}; it fails for {first.name} with {[other.name for other in others]}"
            raise ValueError(msg)


def _largest(residual: Callable[[int], float], most: int) -> int:
    """The largest k in 0..most whose residual vanishes (residuals do not shrink with k)."""
    k = 0
    while k < most and residual(k + 1) <= TOLERANCE:
        k += 1
    return k
