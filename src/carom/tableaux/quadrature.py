"""Tableaux from their W-transform, in 60-digit arithmetic, rounded once at the end.

With ``w_ij = P_{j-1}(c_i)`` (orthonormal shifted Legendre polynomials) a quadrature formula fulfils
``W^T B W = D``, a diagonal matrix, and ``X = W^T B A W`` is known in closed form for the classical families
(Jay1998 Lemma 8.1; Hairer and Wanner, Solving ODEs II, sec. IV.5). So ``A = W D^-1 X D^-1 W^T B``, a product of
known matrices with no linear system to solve, and ``b_i = 1 / (W D^-1 W^T)_ii``.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

DIGITS = 60
NEWTON_STEPS = 6
#: Numbers below this are zeros that 60-digit arithmetic has missed.
ZERO = Decimal("1e-40")

Rounded = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def from_w_transform(
    nodal: Mapping[int, int], last_norm: Fraction, s: int, X: Callable[[int], NDArray[np.object_]]
) -> Rounded:
    """The arrays A, b, c of the s-stage method with W-transform ``X(s)``.

    Args:
        nodal: Legendre coefficients ``{degree: coefficient}`` of the polynomial whose roots are the nodes.
        last_norm: The last diagonal entry of D; the others are one.
        s: Number of stages.
        X: Gives the W-transform ``W^T B A W`` as an object array of Decimals; called inside the 60-digit context.
    """
    with localcontext() as context:
        context.prec = DIGITS
        x = _roots(nodal)
        W = np.array([_orthonormal_values(root, s) for root in x], dtype=object)
        W_over_D = W.copy()
        W_over_D[:, -1] *= Decimal(last_norm.denominator) / last_norm.numerator
        b = 1 / (W * W_over_D).sum(axis=1)
        A = W_over_D @ X(s) @ W_over_D.T * b
        c = (x + 1) / 2
        return _rounded(A), _rounded(b), _rounded(c)


def gauss_transform(s: int) -> NDArray[np.object_]:
    """The W-transform of Gauss: 1/2 in the corner, ``zeta_k = 1 / (2 sqrt(4k^2 - 1))`` beside the diagonal."""
    X = np.full((s, s), Decimal(0), dtype=object)
    X[0, 0] = Decimal(1) / 2
    for k in range(1, s):
        zeta = 1 / (2 * Decimal(4 * k * k - 1).sqrt())
        X[k, k - 1], X[k - 1, k] = zeta, -zeta
    return X


def _roots(nodal: Mapping[int, int]) -> NDArray[np.object_]:
    """Roots on [-1, 1] of a Legendre series, from float64 and polished by Newton's method."""
    degree = max(nodal)
    coefficients = np.zeros(degree + 1)
    for k, coefficient in nodal.items():
        coefficients[k] = coefficient
    roots = []
    for guess in np.sort(legendre.legroots(coefficients).real):
        root = Decimal(float(guess))
        for _ in range(NEWTON_STEPS):
            P, dP = _legendre_values(root, degree)
            value = sum((a * P[k] for k, a in nodal.items()), Decimal(0))
            root -= value / sum((a * dP[k] for k, a in nodal.items()), Decimal(0))
        roots.append(root)
    return np.array(roots, dtype=object)


def _legendre_values(x: Decimal, degree: int) -> tuple[list[Decimal], list[Decimal]]:
    """Legendre polynomials up to ``degree`` and their derivatives at x, by the three-term recurrence."""
    P, dP = [Decimal(1), x], [Decimal(0), Decimal(1)]
    for n in range(1, degree):
        P.append(((2 * n + 1) * x * P[n] - n * P[n - 1]) / (n + 1))
        dP.append(dP[n - 1] + (2 * n + 1) * P[n])
    return P, dP


def _orthonormal_values(x: Decimal, count: int) -> list[Decimal]:
    P, _ = _legendre_values(x, count)
    return [Decimal(2 * k + 1).sqrt() * P[k] for k in range(count)]


def _rounded(values: NDArray[np.object_]) -> NDArray[np.float64]:
    return np.vectorize(lambda value: 0.0 if abs(value) < ZERO else float(value), otypes=[np.float64])(values)
