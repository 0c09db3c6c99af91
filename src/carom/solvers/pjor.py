"""Projected Jacobi relaxation [Studer2008 (22)]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array

from carom.names import register
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.contact_solver import AbstractContactSolver, ContactResult, refuse_settings, solved
from carom.solvers.roots import repeated


@register
class PJOR(AbstractContactSolver):
    """Projected Jacobi: all rows at once, `P <- prox(P - r (G P + c))` with `1 / r_i = sum_j |G_ij|`.

    With these r the linear part does not expand: the eigenvalues of `diag(r) G` lie in [0, 1].

    Args:
        tol: wanted residual, relative to the impulses.
        max_iter: sweeps after which the step counts as failed.

    Example:
        >>> method = carom.MoreauMidpoint(solver=carom.PJOR(tol=1e-10))
    """

    tol: float = 1e-12
    max_iter: int = 20000

    needs_matrix: ClassVar[bool] = False

    def __check_init__(self):
        refuse_settings(self, "tol")

    def solve(self, problem: ContactProblem, guess: Array) -> ContactResult:
        """Solve from a guess."""
        taken = problem.taking_part
        coupling = problem.laws.shared(problem.G.row_sums(taken), jnp.max)
        r = jnp.where(taken, 1.0 / jnp.maximum(coupling, 1e-290), 0.0)

        def sweep(P: Array) -> Array:
            return problem.project(P - r * problem.velocity(P), P)

        P = jnp.where(taken, guess, 0.0)
        return relax(problem, sweep, P, problem.residual(P, problem.equation(P)), self)


def relax(
    problem: ContactProblem, sweep: Callable[[Array], Array], P: Array, residual: Array, settings: Any
) -> ContactResult:
    """Repeat `sweep` until the shared residual falls to `settings.tol`."""

    def running(loop):
        _, residual, k = loop
        return (residual > settings.tol) & (k < settings.max_iter)

    def body(loop):
        P, _, k = loop
        P = sweep(P)
        return P, problem.residual(P, problem.equation(P)), k + 1

    P, residual, k = repeated(running, body, (P, residual, jnp.zeros((), jnp.int32)))
    return ContactResult(P, residual, k, solved(residual, settings.tol))
