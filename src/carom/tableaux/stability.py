"""Linear stability of a Runge-Kutta method on Dahlquist's equation (Jay1998 sec. 5.1, James2020 (74)).

The functions take the bare arrays ``A`` and ``b``; `carom.tableaux.Tableau` offers them as methods.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

#: Coefficients of P and Q below this are round-off (the leading one of ``gauss(8)`` is 2e-9).
NEGLIGIBLE = 1e-14
#: Angles of the points ``y = tan(angle)`` at which ``|R(iy)|`` is looked at.
ANGLES = np.linspace(0.0, np.pi / 2, 2001)[1:-1]


def polynomials(A: Array, b: Array) -> tuple[Array, Array]:
    """Ascending coefficients of P and Q in ``R = P / Q``, James2020 (74), without negligible leading ones."""
    return _trimmed(np.poly(A - b)), _trimmed(np.poly(A))


def _trimmed(polynomial: NDArray) -> Array:
    coefficients = np.asarray(np.real(polynomial), dtype=np.float64)
    last = np.flatnonzero(np.abs(coefficients) > NEGLIGIBLE)[-1]
    return coefficients[: last + 1]


def stability_function(A: Array, b: Array, z: ArrayLike) -> NDArray[np.complex128]:
    """``R(z) = det(I - zA + z 1 b^T) / det(I - zA)``, James2020 (74), for an array of any shape."""
    points = np.asarray(z, dtype=np.complex128)[..., None, None]
    identity = np.eye(len(b))
    numerator = np.linalg.det(identity - points * (A - b))
    return numerator / np.linalg.det(identity - points * A)


def stability_at_infinity(A: Array, b: Array) -> float:
    """The limit of R(z) for large ``|z|``; infinite where the numerator has the higher degree."""
    P, Q = polynomials(A, b)
    if len(Q) == len(b) + 1:
        return float(1.0 - b @ np.linalg.solve(A, np.ones(len(b))))
    if len(P) > len(Q):
        return float("inf")
    return float(P[-1] / Q[-1]) if len(P) == len(Q) else 0.0


def is_A_stable(A: Array, b: Array, tol: float = 1e-8) -> bool:
    """Whether ``|R(z)| <= 1`` in the left half plane, Jay1998 (26).

    By the maximum principle it is enough that no pole lies there and that ``|R(iy)| <= 1``, which is tested at
    1999 points of the imaginary axis and at infinity.
    """
    _, Q = polynomials(A, b)
    poles = np.roots(Q[::-1])
    if np.any(poles.real <= 0):
        return False
    on_axis = np.abs(stability_function(A, b, 1j * np.tan(ANGLES)))
    return bool(on_axis.max() <= 1 + tol and abs(stability_at_infinity(A, b)) <= 1 + tol)


def is_L_stable(A: Array, b: Array, tol: float = 1e-8) -> bool:
    """Whether the method is A-stable and R vanishes at infinity, Jay1998 (26)-(27)."""
    return abs(stability_at_infinity(A, b)) <= tol and is_A_stable(A, b, tol)
