"""Accelerated projected gradient descent [Mazhar, Heyn, Negrut, Tasora 2015], with Coulomb's law itself.

All contacts take a step along their gradient at once: no colours are needed. The radii of friction follow from the
normal impulses of the step, as in the sweeps of `carom.solvers.gauss_seidel`, not from a cone that lifts what slips.
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
from carom.solvers.descents import BodyDescent, Descent
from carom.solvers.directions import DelassusMap
from carom.solvers.kernels import fitting
from carom.solvers.sweeps import AbstractSweeps


@register
class APGD(AbstractContactSolver):
    """Accelerated projected gradient descent, for listed pairs of `carom.Bodies` and for contact problems of any form.

    It needs more rounds than `AcceleratedGaussSeidel`, each of which has no order of contacts. A step that is not
    solved to `tol` within `max_iter` rounds goes on with the best impulses found; such steps are counted
    (`sol.stats["unsolved"]`) and warned of.

    Args:
        tol: wanted residual, relative to the impulses.
        max_iter: most rounds.

    Example:
        >>> method = carom.MoreauMidpoint(solver=carom.APGD(tol=1e-4))
    """

    tol: float = 1e-4
    max_iter: int = 2000

    needs_matrix: ClassVar[bool] = False

    def __check_init__(self):
        refuse_settings(self, "tol")

    def objection(self, listed: bool) -> str | None:
        """Steps with a few contacts are solved with a matrix."""
        told = "APGD solves contacts of listed pairs of bodies (carom.CellList or carom.Fixed)"
        return None if listed else f"{told}: use solver=carom.SemismoothNewton()"

    def solve(self, problem: ContactProblem, guess: Array) -> ContactResult:
        """Solve from a guess; of all looked at, the impulses with the smallest residual."""
        return fitting(lambda of: accelerated(problem, _descent_of(problem, of), guess, self.tol, self.max_iter))


def _descent_of(problem: ContactProblem, closed: type[Closed]) -> AbstractSweeps:
    G = problem.G
    if isinstance(G, DelassusMap) and isinstance(G.W, BodyDirections) and isinstance(G.W_M, BodyDirections):
        return BodyDescent(BodySweeps.of(problem, G.W, G.W_M.masses, closed))
    return Descent(problem)
