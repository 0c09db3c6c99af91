"""What a tableau or a pair of tableaux preserves (Jay1998 secs. 5, 6 and 8)."""

from itertools import zip_longest

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import ArrayLike, NDArray

from carom.tableaux.order import check_shared_quadrature
from carom.tableaux.tableau import SAME, Tableau
from carom.tableaux.transforms import adjoint

Array = NDArray[np.float64]


def is_symplectic_pair(first: Tableau, second: Tableau) -> bool:
    """Whether ``b_i a_ij^(2) + b_j a_ji^(1) - b_i b_j = 0``, Jay1998 (35)."""
    check_shared_quadrature([first, second])
    b = first.b
    defect = b[:, None] * second.A + (b[:, None] * first.A).T - np.outer(b, b)
    return bool(np.abs(defect).max() <= SAME)


def are_symmetrically_conjugate(first: Tableau, second: Tableau) -> bool:
    """Whether ``a_{s+1-i,s+1-j}^(3) + a_ij^(4) = b_j = b_{s+1-j}``, Jay1998 (37)."""
    check_shared_quadrature([first, second])
    b = first.b
    defect = first.A[::-1, ::-1] + second.A - b
    return bool(max(np.abs(defect).max(), np.abs(b - b[::-1]).max()) <= SAME)


def is_explosive(tableau: Tableau) -> bool:
    """Whether ``|R(z)| > 1`` for Re z > 0, Jay1998 (31): the adjoint, with ``R*(-z) = 1/R(z)``, is A-stable."""
    return adjoint(tableau).is_A_stable


def is_unconditionally_explosive(tableau: Tableau) -> bool:
    """Whether the method is explosive and R grows without bound, Jay1998 (31)-(32): the adjoint is L-stable."""
    return adjoint(tableau).is_L_stable


def is_algebraically_stable(tableau: Tableau) -> bool:
    """Whether ``b >= 0`` and the matrix of Jay1998 Definition 6.6 is nonnegative definite; implies B-stability."""
    eigenvalues = np.linalg.eigvalsh(tableau.algebraic_stability_matrix)
    return bool(tableau.b.min() >= 0 and eigenvalues.min() >= -SAME)


def is_dilatative(tableau: Tableau) -> bool:
    """Whether the method is symmetrically conjugate to an algebraically stable one (Jay1998 before Theorem 6.8)."""
    return is_algebraically_stable(adjoint(tableau))


def legendre_matrix(tableau: Tableau) -> Array:
    """``W``: ``w_ij = P_{j-1}(c_i)``, orthonormal shifted Legendre polynomials (Jay1998 Lemma 8.1)."""
    degrees = np.arange(tableau.stages)
    values = legendre.legvander(2 * tableau.c - 1, tableau.stages - 1)
    return np.asarray(values * np.sqrt(2 * degrees + 1), dtype=np.float64)


def w_transform(tableau: Tableau) -> Array:
    """``X = W^T B A W`` of Jay1998 Lemma 8.1."""
    W = legendre_matrix(tableau)
    return (W.T * tableau.b) @ tableau.A @ W


def oscillator_matrix(first: Tableau, second: Tableau, mu: ArrayLike) -> Array:
    """The matrix of one step of the harmonic oscillator, Jay1998 (30), for an array of ``mu = lambda h``."""
    check_shared_quadrature([first, second])
    s, step = first.stages, np.asarray(mu, dtype=np.float64)[..., None, None]
    Z = np.zeros((s, s))
    stages = np.eye(2 * s) + step * np.block([[Z, -first.A], [second.A, Z]])
    ones = np.kron(np.eye(2), np.ones((s, 1)))
    weights = np.block([[np.zeros(s), first.b], [-first.b, np.zeros(s)]])
    return np.eye(2) + step * (weights @ np.linalg.solve(stages, np.broadcast_to(ones, (*stages.shape[:-1], 2))))


def interval_of_periodicity(first: Tableau, second: Tableau, mu_max: float = 50.0, points: int = 5000) -> float:
    """The m with the interval of periodicity ``]-m, m[`` (Jay1998 Definition 5.3); inf if larger than ``mu_max``.

    A real 2x2 matrix with determinant one has distinct eigenvalues of modulus one where the discriminant
    ``(M11 - M22)^2 + 4 M12 M21`` is negative. It stops being so where M12 or M21 changes its sign, unless both do at
    the same place (M = +1 or -1 there, which Definition 5.3 allows). The two lists of sign changes are compared, so
    that gaps narrower than a cell of the grid are seen (``]3.1404, 3.1424[`` for Lobatto IIIA-B with five stages).
    """
    grid = np.linspace(0.0, mu_max, points + 1)[1:]
    M = oscillator_matrix(first, second, grid)
    hyperbolic = (M[:, 0, 0] - M[:, 1, 1]) ** 2 + 4 * M[:, 0, 1] * M[:, 1, 0] > 1e-9
    failed = np.flatnonzero(hyperbolic | (np.abs(np.linalg.det(M) - 1) > 1e-9))
    last = failed[0] if failed.size else points - 1
    roots = [_sign_changes(first, second, entry, grid[: last + 1]) for entry in ((0, 1), (1, 0))]
    for pair in zip_longest(*roots, fillvalue=np.inf):
        if abs(pair[0] - pair[1]) > 1e-9:
            return float(min(pair))
    if failed.size:
        return float(grid[last - 1]) if last else 0.0
    return float("inf")


def is_P_stable(first: Tableau, second: Tableau | None = None) -> bool:
    """Whether the pair (or the method alone) is periodic for every step up to mu = 50, Jay1998 Definition 5.3."""
    return interval_of_periodicity(first, second or first) == float("inf")


def _sign_changes(first: Tableau, second: Tableau, entry: tuple[int, int], grid: Array) -> list[float]:
    """The places, by bisection, where an entry of M(mu) changes its sign between neighbours of a grid."""

    def positive(mu: ArrayLike) -> NDArray[np.bool_]:
        return oscillator_matrix(first, second, mu)[(..., *entry)] > 0

    signs, places = positive(grid), []
    for cell in np.flatnonzero(signs[1:] != signs[:-1]):
        start, end = grid[cell], grid[cell + 1]
        for _ in range(60):
            middle = 0.5 * (start + end)
            start, end = (middle, end) if positive(middle) == signs[cell] else (start, middle)
        places.append(float(end))
    return places
