"""Projected Gauss-Seidel relaxation [Studer2008 (23)]."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.names import register
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.contact_solver import AbstractContactSolver, ContactResult, refuse_settings
from carom.solvers.pjor import relax


@register
class PSOR(AbstractContactSolver):
    """Projected Gauss-Seidel: law after law, `P_i <- prox(P_i - r_i (G P + c)_i)` with `r_i = relaxation / G_ii`.

    A law that acts in a plane has one r for both directions, from the trace of its block.

    Args:
        tol: wanted residual, relative to the impulses.
        max_iter: sweeps after which the step counts as failed.
        relaxation: in (0, 2); 1 is Gauss-Seidel.

    Example:
        >>> method = carom.MoreauMidpoint(solver=carom.PSOR(tol=1e-10))
    """

    tol: float = 1e-12
    max_iter: int = 20000
    relaxation: float = 1.0

    needs_matrix: ClassVar[bool] = True

    def __check_init__(self):
        refuse_settings(self, "tol")
        if isinstance(self.relaxation, (int, float)) and not 0 < self.relaxation < 2:
            msg = f"PSOR: relaxation must lie in (0, 2), got {self.relaxation}"
            raise ValueError(msg)

    def solve(self, problem: ContactProblem, guess: Array) -> ContactResult:
        """Solve from a guess."""
        P = jnp.where(problem.taking_part, guess, 0.0)
        return self.go_on(problem, P, problem.residual(P, problem.equation(P)))

    def go_on(self, problem: ContactProblem, P: Array, residual: Array) -> ContactResult:
        """Solve from P, of which the residual is known."""
        r = self.relaxation / problem.diagonal
        laws = problem.laws.law_of_row
        law_of_row = jnp.asarray(laws)

        def one_law(i: Array, P: Array) -> Array:
            return jnp.where(law_of_row == i, problem.project(P - r * problem.velocity(P), P), P)

        def sweep(P: Array) -> Array:
            return jax.lax.fori_loop(0, max(laws) + 1, one_law, P)

        return relax(problem, sweep, P, residual, self)
