"""The record of a Runge-Kutta method: coefficients as data, properties computed from them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from carom.tableaux import stability

Array = NDArray[np.float64]

#: Two coefficients closer than this are the same number.
SAME = 1e-13


@dataclass(frozen=True, eq=False)
class Tableau:
    """Coefficients of a Runge-Kutta method, checked when built, equal and hashable by content.

    Attributes:
        A: Matrix of the stages, ``(s, s)``.
        b: Weights; they sum to one.
        c: Nodes: stage i belongs to the time ``t0 + c[i] h``.
        order: Order on smooth ordinary differential equations.
        name: The call that rebuilds the tableau, see `carom.tableaux.from_name`.
        b_hat: Weights of an embedded method of lower order, or None; one more than stages where it also uses the
            rate at the end of the step.
        row_sums_are_c: True where the rows of ``A`` must sum to ``c``, which is then checked. Methods that share
            nodes with a partner (Jay1998 (20b)) may have other row sums: Lobatto IIIB with two stages, for one.

    Example:
        >>> heun = carom.Tableau([[0, 0], [1, 0]], [0.5, 0.5], [0, 1], order=2, name="heun")
    """

    A: Array
    b: Array
    c: Array
    order: int
    name: str
    b_hat: Array | None = None
    row_sums_are_c: bool = True

    def __post_init__(self) -> None:
        for field in ("A", "b", "c", "b_hat"):
            if getattr(self, field) is not None:
                object.__setattr__(self, field, _frozen(getattr(self, field), f"{self.name}: {field}"))
        self._check()

    def _check(self) -> None:
        s = len(self.b)
        if self.A.shape != (s, s) or self.b.shape != (s,) or self.c.shape != (s,):
            shapes = [self.A.shape, self.b.shape, self.c.shape]
            msg = f"{self.name}: A, b, c need shapes (s, s), (s,), (s,); got {shapes}"
            raise ValueError(msg)
        if self.b_hat is not None and self.b_hat.shape not in ((s,), (s + 1,)):
            msg = f"{self.name}: b_hat needs shape ({s},) like b, or ({s + 1},); got {self.b_hat.shape}"
            raise ValueError(msg)
        for field, weights in (("b", self.b), ("b_hat", self.b_hat)):
            if weights is not None and abs(weights.sum() - 1) > SAME * s:
                msg = f"{self.name}: {field} must sum to 1; it sums to {weights.sum()!r}"
                raise ValueError(msg)
        if self.row_sums_are_c and np.abs(self.A.sum(axis=1) - self.c).max() > SAME * s * (1 + np.abs(self.A).max()):
            msg = f"{self.name}: the rows of A must sum to c (or declare row_sums_are_c=False)"
            raise ValueError(msg)
        if not isinstance(self.order, int) or self.order < 1:
            msg = f"{self.name}: order must be an integer >= 1; got {self.order!r}"
            raise ValueError(msg)

    def _content(self) -> tuple:
        b_hat = None if self.b_hat is None else self.b_hat.tobytes()
        return (self.name, self.order, self.A.tobytes(), self.b.tobytes(), self.c.tobytes(), b_hat)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tableau) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def __repr__(self) -> str:
        return f"<{self.name}: {self.stages} stages, order {self.order}>"

    @property
    def stages(self) -> int:
        """The number of stages s."""
        return len(self.b)

    @property
    def is_explicit(self) -> bool:
        """Whether every stage needs earlier stages only."""
        return not np.triu(self.A).any()

    @property
    def first_stage_explicit(self) -> bool:
        """Whether the first stage is the starting value, Jay1998 (21a)."""
        return not self.A[0].any()

    @property
    def is_stiffly_accurate(self) -> bool:
        """Whether the last stage is the result, condition (S) of Jay1998 sec. 4.2."""
        return _same(self.A[-1], self.b)

    @property
    def is_symmetric(self) -> bool:
        """Whether the method is its own adjoint, Jay1998 (36)."""
        return _same(self.A[::-1, ::-1] + self.A, self.b) and _same(self.b, self.b[::-1])

    @property
    def algebraic_stability_matrix(self) -> Array:
        """The matrix ``b_i a_ij + b_j a_ji - b_i b_j`` of Jay1998 Definition 6.6."""
        BA = self.b[:, None] * self.A
        return BA + BA.T - np.outer(self.b, self.b)

    @property
    def is_symplectic(self) -> bool:
        """Whether the method alone (both partners equal) is symplectic, Jay1998 (35)."""
        return _same(self.algebraic_stability_matrix, 0.0)

    @property
    def is_invertible(self) -> bool:
        """Whether A is an invertible matrix."""
        singular_values = np.linalg.svd(self.A, compute_uv=False)
        return bool(singular_values[-1] > 1e-12 * singular_values[0])

    def B(self, p: int) -> float:
        """Largest residual of B: ``sum b_i c_i^(k-1) = 1/k``, k = 1..p (Jay1998 sec. 4.2)."""
        return _largest(self.b @ self.c ** (k - 1) - 1 / k for k in range(1, p + 1))

    def C(self, q: int) -> float:
        """Largest residual of C: ``sum_j a_ij c_j^(k-1) = c_i^k / k``, k = 1..q (Jay1998 sec. 4.2)."""
        return _largest(self.A @ self.c ** (k - 1) - self.c**k / k for k in range(1, q + 1))

    def D(self, r: int) -> float:
        """Largest residual of D: ``sum_i b_i c_i^(k-1) a_ij = b_j (1 - c_j^k) / k``, k = 1..r (Jay1998 sec. 4.2)."""
        b, c = self.b, self.c
        return _largest((b * c ** (k - 1)) @ self.A - b * (1 - c**k) / k for k in range(1, r + 1))

    def stability_function(self, z: ArrayLike) -> NDArray[np.complex128]:
        """``R(z)`` by James2020 (74), for an array of any shape."""
        return stability.stability_function(self.A, self.b, z)

    @property
    def stability_at_infinity(self) -> float:
        """The limit of R(z) for large ``|z|``."""
        return stability.stability_at_infinity(self.A, self.b)

    @property
    def is_A_stable(self) -> bool:
        """Whether ``|R(z)| <= 1`` in the left half plane, Jay1998 (26)."""
        return stability.is_A_stable(self.A, self.b)

    @property
    def is_L_stable(self) -> bool:
        """Whether the method is A-stable and R vanishes at infinity, Jay1998 (27)."""
        return stability.is_L_stable(self.A, self.b)


def checked_count(name: str, value: object, least: int) -> int:
    """``value`` as an int, or a ValueError that names the argument and says what was expected."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        msg = f"{name} must be an integer >= {least}; got {value!r}"
        raise ValueError(msg)
    return int(value)


def _frozen(values: ArrayLike, label: str) -> Array:
    array = np.array(values, dtype=np.float64) + 0.0  # + 0.0 turns -0.0 into 0.0, so that equal means equal bytes
    if not np.isfinite(array).all():
        msg = f"{label} must be finite; got {array.tolist()}"
        raise ValueError(msg)
    array.flags.writeable = False
    return array


def _same(left: Array, right: Array | float) -> bool:
    return bool(np.abs(left - right).max() <= SAME)


def _largest(residuals) -> float:
    return float(max((np.abs(residual).max() for residual in residuals), default=0.0))
