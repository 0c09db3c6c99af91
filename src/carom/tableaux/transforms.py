"""New tableaux from old: the symplectic partner and the adjoint."""

from dataclasses import replace

import numpy as np

from carom.names import register
from carom.tableaux.order import verified_order
from carom.tableaux.tableau import SAME, Tableau


@register
def conjugate(tableau: Tableau) -> Tableau:
    """The symplectic partner: the A* with ``b_i a*_ij + b_j a_ji = b_i b_j``, Jay1998 (35).

    Weights and nodes are shared with the partner, so the rows of A* sum to c only where D(1) holds. The order is
    computed afresh: the partner of a method of order p may have a lower one.
    """
    b = tableau.b
    if np.any(b == 0):
        msg = f"conjugate needs weights without zeros; {tableau.name} has b = {b.tolist()}"
        raise ValueError(msg)
    A = b * (1 - tableau.A.T / b[:, None])
    A[np.abs(A) < 1e-16] = 0.0
    row_sums_are_c = bool(np.abs(A.sum(axis=1) - tableau.c).max() <= SAME)
    partner = replace(
        tableau, A=A, b_hat=None, order=1, name=f"conjugate({tableau.name})", row_sums_are_c=row_sums_are_c
    )
    return replace(partner, order=verified_order(partner))


@register
def adjoint(tableau: Tableau) -> Tableau:
    """The method that steps back: ``a*_ij = b_{s+1-j} - a_{s+1-i,s+1-j}``, Jay1998 (37); its order is the same."""
    A = tableau.b[::-1] - tableau.A[::-1, ::-1]
    A[np.abs(A) < 1e-16] = 0.0
    b_hat = tableau.b_hat[::-1] if tableau.b_hat is not None and len(tableau.b_hat) == tableau.stages else None
    return replace(tableau, A=A, b=tableau.b[::-1], c=1 - tableau.c[::-1], b_hat=b_hat, name=f"adjoint({tableau.name})")
