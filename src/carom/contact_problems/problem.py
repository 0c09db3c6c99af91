r"""Contact problems with Coulomb friction as others write them, contact by contact with the normal row first.

Find impulses r and relative velocities u of n contacts with

    u = W r + q,    K* \ni u + mu |u_T| e_N  \perp  r \in K = {|r_T| <= mu r_N}

(local form), or with the velocities v of bodies, `M v = H r + f`, `u = H^T v + w` (global form). Equality constraints
have multipliers l: `u = W r + V l + q`, `V^T r + R l + s = 0`, or `M v = H r + G l + f`, `G^T v + b = 0`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from carom.solvers.contact_laws import Laws
from carom.solvers.contact_problem import ContactProblem, posed
from carom.solvers.sparse import SparseDelassus
from carom.state import reals

_AT_ONCE = 256  # columns that are divided by the mass


@dataclass(frozen=True, eq=False, kw_only=True)
class _Described:
    """What files say besides the problem: texts, a solution and guesses by FCLIB's letters (u, r, v, l)."""

    info: dict[str, str] = field(default_factory=dict)
    solution: dict[str, np.ndarray] = field(default_factory=dict)
    guesses: tuple[dict[str, np.ndarray], ...] = ()


@dataclass(frozen=True, eq=False)
class LocalProblem(_Described):
    """u = W r + q for n contacts, a normal and one or two tangential rows each.

    Args:
        W: Delassus matrix, sparse (SciPy) or not; it need not be symmetric and is taken as it is.
        q: relative velocities without impulses.
        mu: friction, a number or one for each contact.
        dimension: 2 (one tangential row) or 3 (two).
        V, R, s: equality constraints `V^T r + R l + s = 0`, which push with V l.
        info, solution, guesses: what a file says besides.

    Example:
        >>> problem = carom.contact_problems.LocalProblem(W=np.eye(2), q=[-1.0, 0.5], mu=0.3, dimension=2)
    """

    W: Any
    q: Any
    mu: Any
    dimension: int
    V: Any = None
    R: Any = None
    s: Any = None

    def __post_init__(self):
        W = _matrix(self, "W")
        n = _contacts(self, W.shape[0], "rows of W")
        _vectors(self, q=W.shape[0], mu=n)
        _shaped(self, "W", W.shape[0], W.shape[0])
        if self.R is not None or self.V is not None:
            constraints = _matrix(self, "R").shape[0]
            _matrix(self, "V")
            _shaped(self, "R", constraints, constraints)
            _shaped(self, "V", W.shape[0], constraints)
            _vectors(self, s=constraints)

    @property
    def laws(self) -> Laws:
        """Contacts and equality constraints in the order of carom's solvers."""
        return Laws([(self.mu.size, self.dimension - 1)], bilateral=0 if self.R is None else self.R.shape[0])

    @property
    def order(self) -> np.ndarray:
        """Rows in the order of carom's solvers: all normals, then friction contact by contact, then constraints."""
        beyond = self.q.size + np.arange(self.laws.bilateral)
        return np.concatenate([np.argsort(self.laws.cones(self.dimension - 1).ravel()), beyond])

    def posed(self) -> ContactProblem:
        """As carom's solvers take it."""
        matrix, c, order, m = self.W, self.q, self.order, self.q.size
        if self.R is not None:
            matrix, c = sparse.block_array([[self.W, self.V], [self.V.T, self.R]]), np.concatenate([self.q, self.s])
        rows = sparse.csr_array(matrix)[order][:, order]
        rows.sum_duplicates()
        contact = np.where(order < m, order // self.dimension, order - m + self.mu.size)
        return posed(
            SparseDelassus.of(rows.indptr, rows.indices, rows.data, contact),
            jnp.asarray(rows.diagonal()),
            self.laws,
            c=jnp.asarray(c[order]),
            active=jnp.ones(self.mu.size, bool),
            friction=jnp.asarray(self.mu),
            limits=jnp.zeros((0, 2)),
        )


@dataclass(frozen=True, eq=False)
class GlobalProblem(_Described):
    """M v = H r + f, u = H^T v + w.

    Args:
        M: mass, sparse (SciPy) or not.
        H: directions, one column for each row of the contacts.
        f: impulses of all other forces and M times the velocities before.
        w: what is added to the relative velocities.
        mu: friction, a number or one for each contact.
        dimension: 2 or 3.
        G, b: equality constraints `G^T v + b = 0`.
        info, solution, guesses: what a file says besides.

    Example:
        >>> problem = carom.contact_problems.GlobalProblem(
        ...     M=np.eye(2), H=np.eye(2), f=[-1.0, 0.5], w=[0, 0], mu=0.3, dimension=2
        ... )
    """

    M: Any
    H: Any
    f: Any
    w: Any
    mu: Any
    dimension: int
    G: Any = None
    b: Any = None

    def __post_init__(self):
        M, H = _matrix(self, "M"), _matrix(self, "H")
        n = _contacts(self, H.shape[1], "columns of H")
        _vectors(self, f=M.shape[0], w=H.shape[1], mu=n)
        _shaped(self, "M", M.shape[0], M.shape[0])
        _shaped(self, "H", M.shape[0], H.shape[1])
        if self.G is not None:
            _shaped(self, "G", M.shape[0], _matrix(self, "G").shape[1])
            _vectors(self, b=self.G.shape[1])

    def local(self) -> LocalProblem:
        """Reduced by M^{-1}: W = H^T M^{-1} H, q = H^T M^{-1} f + w."""
        m, A = self.H.shape[1], sparse.csc_array(self.H)
        if self.G is not None:
            A = sparse.csc_array(sparse.hstack([A, self.G]))
        D = sparse.csr_array(A.T @ self.over_mass(A))
        c = A.T @ self.over_mass(self.f)
        beyond = {} if self.G is None else {"V": D[:m, m:], "R": D[m:, m:], "s": c[m:] + self.b}
        return LocalProblem(D[:m, :m], c[:m] + self.w, self.mu, self.dimension, **beyond)

    def over_mass(self, x: Any) -> Any:
        """M^{-1} x."""
        try:
            factors = splu(sparse.csc_array(self.M))
        except RuntimeError:
            msg = "GlobalProblem: M is singular, so that no local form exists"
            raise ValueError(msg) from None
        if not sparse.issparse(x):
            return factors.solve(x)
        parts = (x[:, k : k + _AT_ONCE].toarray() for k in range(0, x.shape[1], _AT_ONCE))
        return sparse.hstack([sparse.csc_array(factors.solve(part)) for part in parts])


def _matrix(problem: Any, name: str) -> Any:
    """A field as a sparse matrix of finite numbers, in the format it has."""
    value, kind = getattr(problem, name), type(problem).__name__
    if not sparse.issparse(value):
        dense = np.asarray(reals(value, f"{kind}: {name}", "a matrix"))
        if dense.ndim != 2:
            msg = f"{kind}: {name} must be a matrix, got an array of shape {dense.shape}"
            raise ValueError(msg)
        value = sparse.csr_array(dense)
    if not np.all(np.isfinite(value.data)):
        msg = f"{kind}: {name} has entries that are NaN or infinite"
        raise ValueError(msg)
    object.__setattr__(problem, name, value)
    return value


def _contacts(problem: Any, rows: int, what: str) -> int:
    kind = type(problem).__name__
    if problem.dimension not in (2, 3):
        msg = f"{kind}: dimension must be 2 or 3, got {problem.dimension!r}"
        raise ValueError(msg)
    if rows % problem.dimension or not rows:
        msg = f"{kind}: {rows} {what} are no whole number of contacts, at least one, with {problem.dimension} each"
        raise ValueError(msg)
    return rows // problem.dimension


def _vectors(problem: Any, **sizes: int) -> None:
    """Fields as vectors of the given sizes."""
    kind = type(problem).__name__
    for name, size in sizes.items():
        value = np.asarray(reals(getattr(problem, name), f"{kind}: {name}", "numbers"))
        if value.ndim == 0 and name == "mu":
            value = np.full(size, float(value))
        if value.shape != (size,):
            msg = f"{kind}: {name} must have {size} numbers, got an array of shape {value.shape}"
            raise ValueError(msg)
        if not np.all(np.isfinite(value)) or (name == "mu" and np.any(value < 0)):
            wanted = "finite and not negative" if name == "mu" else "finite"
            msg = f"{kind}: {name} must be {wanted}"
            raise ValueError(msg)
        object.__setattr__(problem, name, value)


def _shaped(problem: Any, name: str, rows: int, columns: int) -> None:
    shape = getattr(problem, name).shape
    if shape != (rows, columns):
        msg = f"{type(problem).__name__}: {name} must be {rows} by {columns}, got {shape[0]} by {shape[1]}"
        raise ValueError(msg)
