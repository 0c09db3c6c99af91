r"""Gauss-Seidel by colours, with extrapolation: contact problems of many rows, without a dense matrix.

Contacts of one colour do not act on each other: all are relaxed at once, `P_i <- prox(P_i - (G P + c)_i / G_ii)`,
and one colour after the other is a sweep S. With Nesterov's extrapolation,

    Q = S(Y),   Y <- Q + beta (Q - P),   beta = (theta - 1) / theta',   theta' = (1 + sqrt(1 + 4 theta^2)) / 2,

P <- Q. theta starts anew where the sweep turns against the motion, (Y - Q) . (Q - P) > 0, or where the squared change
of a sweep |Y - Q|^2 exceeds four times the smallest since the last start: without the second rule it diverges on large
problems with friction. Where it goes in circles, 600 sweeps without a smaller residual, as many follow without it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.names import register
from carom.solvers.body_directions import BodyDirections
from carom.solvers.body_sweeps import BodySweeps
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.contact_solver import AbstractContactSolver, ContactResult, refuse_settings
from carom.solvers.directions import DelassusMap
from carom.solvers.roots import repeated
from carom.solvers.sparse import SparseDelassus
from carom.solvers.sparse_sweeps import SparseSweeps
from carom.solvers.sweeps import AbstractSweeps
from carom.state import Status

_BETWEEN_LOOKS = 10  # sweeps
_PATIENCE = 60  # looks
_REFUSED = "AcceleratedGaussSeidel solves contacts of listed pairs of bodies (carom.CellList or carom.Fixed)"
_GUARD = 4.0  # times the smallest squared change


@register
class AcceleratedGaussSeidel(AbstractContactSolver):
    """Extrapolated Gauss-Seidel, for listed pairs of `carom.Bodies` and for sparse contact problems.

    A step that is not solved to `tol` within `max_iter` sweeps goes on with the best impulses found; such steps are
    counted (`sol.stats["unsolved"]`) and warned of.

    Args:
        tol: wanted residual, relative to the impulses.
        max_iter: most sweeps.

    Example:
        >>> method = carom.MoreauMidpoint(solver=carom.AcceleratedGaussSeidel(tol=1e-4))
    """

    tol: float = 1e-4
    max_iter: int = 1000

    needs_matrix: ClassVar[bool] = False

    def __check_init__(self):
        refuse_settings(self, "tol")

    def objection(self, listed: bool) -> str | None:
        """Steps with a few contacts are solved with a matrix."""
        return None if listed else f"{_REFUSED}: use solver=carom.SemismoothNewton()"

    def solve(self, problem: ContactProblem, guess: Array) -> ContactResult:
        """Solve from a guess; of all looked at, the impulses with the smallest residual."""
        sweeps = _sweeps_of(problem)

        def look(loop: Any) -> Any:
            path, best, least, idle, k, _ = loop
            P = sweeps.impulses(path.x)
            now = problem.residual(P, problem.equation(P))
            more = (now > self.tol) & (k < self.max_iter)
            trust = idle < _PATIENCE
            count = jnp.where(more, _BETWEEN_LOOKS, 0)
            path = jax.lax.fori_loop(0, count, lambda _, path: path.ahead(sweeps, trust), path)
            idle = jnp.where((now < least) & trust, 0, (idle + 1) % (2 * _PATIENCE))
            return path, jnp.where(now < least, P, best), jnp.fmin(now, least), idle, k + count, more

        P, none = jnp.where(problem.taking_part, guess, 0.0), jnp.zeros((), jnp.int32)
        loop = (Path.at(sweeps.start(P)), P, jnp.asarray(jnp.inf), none, none, jnp.asarray(True))
        _, P, residual, _, k, _ = repeated(lambda loop: loop[-1], look, loop)
        status = jnp.where(jnp.isfinite(residual), Status.OK, Status.NOT_FINITE).astype(jnp.int32)
        return ContactResult(P, residual, k, status, residual > self.tol)


class Path(eqx.Module):
    """Where the iteration stands: x, the point y of the next sweep, the weight of that, the smallest change."""

    x: Any
    y: Any
    theta: Array
    least: Array

    @classmethod
    def at(cls, x: Any) -> Path:
        """At a start."""
        return cls(x, x, jnp.ones(()), jnp.asarray(jnp.inf))

    def ahead(self, sweeps: AbstractSweeps, trust: Array) -> Path:
        """After one more sweep, extrapolated where that may be trusted."""
        x = sweeps.sweep(self.y)
        size, turn = sweeps.products(self.x, self.y, x)
        lost = (turn > 0) | (size > _GUARD * self.least)
        theta = 0.5 * (1.0 + jnp.sqrt(1.0 + 4.0 * self.theta**2))
        beta = jnp.where(trust & ~lost, (self.theta - 1.0) / theta, 0.0)
        y = jax.tree.map(lambda new, old: new + beta * (new - old), x, self.x)
        least = jnp.where(lost, size, jnp.minimum(self.least, size))
        return Path(x, y, jnp.where(lost, 1.0, theta), least)


def _sweeps_of(problem: ContactProblem) -> AbstractSweeps:
    """The sweeps that a problem's map offers, or a refusal."""
    G, laws = problem.G, problem.laws
    if isinstance(G, DelassusMap) and isinstance(G.W, BodyDirections) and isinstance(G.W_M, BodyDirections):
        return BodySweeps.of(problem, G.W, G.W_M)
    if isinstance(G, SparseDelassus) and not laws.elements and not laws.bilateral:
        return SparseSweeps.of(problem, G)
    msg = f"{_REFUSED} and sparse problems of contacts alone: use SemismoothNewton or PSOR here"
    raise TypeError(msg)
