r"""Interior points of Coulomb's cones, for contact problems whose laws depend on each other.

With the change of variable of De Saxce, `w = G P + c + mu |(G P + c)_T| n` [Acary, Cadoux, Lemarechal, Malick 2011],
Coulomb's law is a complementarity of second-order cones, `P in K`, `w in K*`, `P w = 0`. In the variables `y = (mu P_N,
P_T)` and `z = (w_N / mu, w_T)` both cones are that of Lorentz, `y_0 >= |y_T|`, and with the product of Jordan, `y o z =
(y z, y_0 z_T + z_0 y_T)`, the law is `y o z = 0`. Each iteration solves

    z + dz = Q (y + dy) + c~ + |w_T| e,        (y + dy) o (z + dz) = sigma m e,      m = y z / contacts

linearised, once for sigma = 0 and once with the sigma and the second-order term that this predicts (Mehrotra), and goes
99 % of the way to the border of the cones. Redundant laws leave their impulses in the middle of what is possible.
"""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.solvers.contact_laws import Laws
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.contact_solver import AbstractContactSolver, ContactResult, solved
from carom.solvers.roots import repeated

_TO_THE_BORDER = 0.99
_EXHAUSTED = 1e-28  # of the first m: nothing is gained beyond
_TINY = 1e-290
_BILATERAL_DAMPING = 1e-13  # of the diagonal: bilateral rows may depend on each other


class InteriorPoint(AbstractContactSolver):
    """Primal-dual interior points: some twenty iterations, also where laws are redundant and almost contradict.

    What `SemismoothNewton` calls where its own iterations fail, and polishes: alone they may end at a residual of 1e-3.
    Not for friction elements.
    """

    tol: float = 1e-12
    max_iter: int = 60

    needs_matrix: ClassVar[bool] = True

    def solve(self, problem: ContactProblem, guess: Array) -> ContactResult:
        """Solve; the guess counts only if it is the better one in the end."""
        cones, P = Cones.of(problem), guess
        residual = problem.residual(P, problem.equation(P))

        def running(loop):
            _, _, _, best, m, first, k = loop
            return (best > self.tol) & (k < self.max_iter) & (m > _EXHAUSTED * first) & jnp.isfinite(m)

        def iterate(loop):
            y, z, best_P, best, _, first, k = loop
            y, z = cones.closer(y, z)
            P = cones.impulses(y)
            residual = problem.residual(P, problem.equation(P))
            better = residual < best
            return y, z, jnp.where(better, P, best_P), jnp.where(better, residual, best), cones.mean(y, z), first, k + 1

        y, z = cones.start()
        m = cones.mean(y, z)
        start = (y, z, P, jnp.where(jnp.isfinite(residual), residual, jnp.inf), m, m, jnp.zeros((), jnp.int32))
        _, _, P, residual, _, _, k = repeated(running, iterate, start)
        return ContactResult(P, residual, k, solved(residual, self.tol))


class Cones(eqx.Module):
    """The problem in the variables y and z, contact by contact (normal, tangential), then bilateral rows.

    All cones have the most directions of any. Contacts that take no part, tangential rows without friction and those
    of cones with fewer directions are decoupled, with the solution y = 0.
    """

    Q: Array
    c: Array
    scale: Array
    coupled: Array
    laws: Laws

    @classmethod
    def of(cls, problem: ContactProblem) -> Cones:
        """Scale and reorder a contact problem."""
        laws, rows = problem.laws, _order(problem.laws)
        rough = problem.active & (problem.friction > 0)
        scale = _by_contact(laws, jnp.where(rough, problem.friction, 1.0), jnp.ones_like(problem.friction), 1.0)
        coupled = _by_contact(laws, problem.active, rough, True) & (rows >= 0)
        Q = problem.G.dense()[rows][:, rows] / scale[:, None] / scale
        Q = jnp.where(coupled[:, None] & coupled, Q, jnp.asarray(np.eye(scale.size)))
        free = np.where(np.arange(scale.size) < scale.size - laws.bilateral, 0.0, _BILATERAL_DAMPING)
        return cls(
            Q + jnp.diag(free * jnp.diag(Q)),
            jnp.where(coupled, problem.c[rows] / scale, _unit(laws)),
            scale,
            coupled,
            laws,
        )

    def impulses(self, y: Array) -> Array:
        """P in the order of the contact problem."""
        P = jnp.where(self.coupled, y / self.scale, 0.0)
        rows = _order(self.laws)
        return jnp.zeros(self.laws.rows).at[rows[rows >= 0]].set(P[rows >= 0])

    def start(self) -> tuple[Array, Array]:
        """Both in the middle of their cones, as large as the problem."""
        size = jnp.linalg.norm(jnp.where(self.coupled, self.c, 0.0)) + _TINY
        stiffness = jnp.sum(jnp.where(self.coupled, jnp.diag(self.Q), 0.0)) / jnp.maximum(jnp.sum(self.coupled), 1)
        return _unit(self.laws) * size / (stiffness + _TINY), _unit(self.laws) * size

    def mean(self, y: Array, z: Array) -> Array:
        """How far from complementarity."""
        return jnp.sum(self.cones(y) * self.cones(z)) / max(self.laws.contacts, 1)

    def cones(self, x: Array) -> Array:
        """The rows of the contacts, one line each."""
        cones = x[..., : x.shape[-1] - self.laws.bilateral]
        return cones.reshape(-1, 1 + max(self.laws.directions, default=0))

    def closer(self, y: Array, z: Array) -> tuple[Array, Array]:
        """One iteration."""
        bilateral = y.size - self.laws.bilateral
        w = self.Q @ y + self.c
        slip = jnp.linalg.norm(self.cones(w)[:, 1:], axis=1)
        defect = w + _by_contact(self.laws, slip, jnp.zeros_like(slip), 0.0) - z
        Y, Z, m = _arrow(self.cones(y)), _arrow(self.cones(z)), self.mean(y, z)
        identity, product = jnp.asarray(np.eye(y.size))[:bilateral], _jordan(self.cones(y), self.cones(z))
        A = jnp.concatenate([_times(Z, identity) + _times(Y, self.Q[:bilateral]), self.Q[bilateral:]])
        from_defect = _times(Y, defect[:bilateral, None])[:, 0]

        def aim(_, last: tuple[Array, ...]) -> tuple[Array, ...]:
            dy, dz, sigma, _ = last
            target = sigma * m * self.cones(_unit(self.laws)) - product - _jordan(self.cones(dy), self.cones(dz))
            dy = jnp.linalg.solve(A, jnp.concatenate([target.ravel() - from_defect, -w[bilateral:]]))
            dz = jnp.where(np.arange(y.size) < bilateral, self.Q @ dy + defect, 0.0)
            alpha = _room(self.cones(jnp.stack([y, z])), self.cones(jnp.stack([dy, dz])))
            sigma = jnp.minimum(self.mean(y + alpha * dy, z + alpha * dz) / (m + _TINY), 1.0) ** 3
            return dy, dz, sigma, alpha

        zero = jnp.zeros(())
        dy, dz, _, alpha = jax.lax.fori_loop(0, 2, aim, (jnp.zeros_like(y), jnp.zeros_like(z), zero, zero))
        return y + alpha * dy, z + alpha * dz


def _order(laws: Laws) -> np.ndarray:
    """Rows of the contact problem, contact by contact, bilateral ones last; -1 where a cone has fewer directions."""
    rows = laws.cones(max(laws.directions, default=0))
    return np.concatenate([rows.ravel(), np.arange(laws.rows - laws.bilateral, laws.rows)])


def _by_contact(laws: Laws, normal: Array, tangential: Array, bilateral: float) -> Array:
    """A vector from one value per contact for its normal row, one for its tangential rows, and one for the rest."""
    across = jnp.repeat(tangential[:, None], max(laws.directions, default=0), axis=1)
    both = jnp.concatenate([normal[:, None], across], axis=1)
    return jnp.concatenate([both.ravel(), jnp.full(laws.bilateral, bilateral, both.dtype)])


def _unit(laws: Laws) -> Array:
    """e: one on the axis of every cone."""
    return _by_contact(laws, jnp.ones(laws.contacts), jnp.zeros(laws.contacts), 0.0)


def _jordan(x: Array, y: Array) -> Array:
    """Products x o y of the lines."""
    return jnp.concatenate([jnp.sum(x * y, axis=1, keepdims=True), x[:, :1] * y[:, 1:] + y[:, :1] * x[:, 1:]], axis=1)


def _arrow(x: Array) -> Array:
    """Matrices of y -> x o y, one for each line: x_0 I + e x^T + x e^T - 2 x_0 e e^T."""
    e = np.eye(x.shape[1])[0]
    scalar = x[:, :1, None]
    return scalar * np.eye(x.shape[1]) + e[:, None] * x[:, None] + x[:, :, None] * e - 2 * scalar * np.outer(e, e)


def _times(blocks: Array, rows: Array) -> Array:
    """A block-diagonal matrix times rows."""
    n, d, _ = blocks.shape
    return (blocks @ rows.reshape(n, d, -1)).reshape(n * d, -1)


def _room(x: Array, dx: Array) -> Array:
    """How far x may go along dx, at most 1: 99 % of the way to the border of the nearest cone."""
    length = lambda a: jnp.sqrt(jnp.sum(a[:, 1:] ** 2, axis=1))  # noqa: E731
    a = dx[:, 0] ** 2 - jnp.sum(dx[:, 1:] ** 2, axis=1)
    b = x[:, 0] * dx[:, 0] - jnp.sum(x[:, 1:] * dx[:, 1:], axis=1)
    c = (x[:, 0] - length(x)) * (x[:, 0] + length(x))
    root = jnp.sqrt(jnp.maximum(b * b - a * c, 0.0))
    q = -(b + jnp.where(b < 0, -root, root))
    crossings = jnp.stack([_ratio(q, a), _ratio(c, q), _ratio(-x[:, 0], dx[:, 0])])
    crossings = jnp.where(b * b - a * c >= 0, crossings, crossings.at[:2].set(jnp.inf))
    first = jnp.min(jnp.where(crossings > 0, crossings, jnp.inf), initial=jnp.inf)
    return jnp.minimum(1.0, _TO_THE_BORDER * first)


def _ratio(a: Array, b: Array) -> Array:
    return jnp.where(b != 0, a / jnp.where(b != 0, b, 1.0), jnp.inf)
