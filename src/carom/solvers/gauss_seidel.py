r"""Gauss-Seidel by colours, with extrapolation: contact problems of many rows, without a dense matrix.

Contacts of one colour do not act on each other: all are relaxed at once, `P_i <- prox(P_i - (G P + c)_i / G_ii)`,
and one colour after the other is a sweep; `carom.solvers.accelerated` repeats it.
"""

from __future__ import annotations

from typing import ClassVar

from jaxtyping import Array

from carom.names import register
from carom.solvers.accelerated import accelerated
from carom.solvers.body_directions import BodyDirections
from carom.solvers.body_sweeps import BodySweeps
from carom.solvers.closed_contacts import Closed
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.contact_solver import AbstractContactSolver, ContactResult, refuse_settings
from carom.solvers.directions import DelassusMap
from carom.solvers.kernels import fitting
from carom.solvers.sparse import SparseDelassus
from carom.solvers.sparse_sweeps import SparseSweeps
from carom.solvers.sweeps import AbstractSweeps

_REFUSED = "AcceleratedGaussSeidel solves contacts of listed pairs of bodies (carom.CellList or carom.Fixed)"


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
        return fitting(lambda closed: accelerated(problem, sweeps_of(problem, closed), guess, self.tol, self.max_iter))


def sweeps_of(problem: ContactProblem, closed: type[Closed] = Closed) -> AbstractSweeps:
    """The sweeps that a problem's map offers, or a refusal."""
    G, laws = problem.G, problem.laws
    if isinstance(G, DelassusMap) and isinstance(G.W, BodyDirections) and isinstance(G.W_M, BodyDirections):
        return BodySweeps.of(problem, G.W, G.W_M.masses, closed)
    if isinstance(G, SparseDelassus) and not laws.elements and not laws.bilateral:
        return SparseSweeps.of(problem, G)
    msg = f"{_REFUSED} and sparse problems of contacts alone: use SemismoothNewton or PSOR here"
    raise TypeError(msg)
