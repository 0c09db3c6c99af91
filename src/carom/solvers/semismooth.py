"""Semismooth Newton on the projective equations [Studer2008 (19)], with PSOR and enumeration of the modes behind it."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.solvers.contact_problem import ContactProblem, ContactResult
from carom.solvers.enumeration import consistent_modes
from carom.solvers.psor import PSOR
from carom.solvers.small import rarely, solve_small
from carom.state import Status


class SemismoothNewton(eqx.Module):
    """Newton on `P - prox(P - r (G P + c)) = 0`, differentiated row by row: finite, and exact to rounding.

    With intervals the equation is piecewise linear: once the modes are right, one iteration solves it. If Newton has
    not converged after `max_iter` iterations, `fallback` goes on from there. Where Coulomb friction can make
    the problem ambiguous or unsolvable (Painleve) and at most four contacts are closed, all modes are tried, and none
    or more than one consistent mode is an error.

    Args:
        tol: wanted residual, relative to the impulses.
        max_iter: Newton iterations before the fallback takes over.
        fallback: what goes on when Newton cycles.
        enumerate_modes: whether doubtful problems are enumerated.

    Example:
        >>> method = carom.MoreauMidpoint(solver=carom.SemismoothNewton(tol=1e-11))
    """

    tol: float = 1e-12
    max_iter: int = 12
    fallback: PSOR = PSOR()
    enumerate_modes: bool = True

    def __call__(self, problem: ContactProblem, P: Array) -> ContactResult:
        """Solve from the guess P."""
        P = jnp.where(problem.taking_part, P, 0.0)
        defect = problem.equation(P)
        residual = problem.residual(P, defect)

        def running(loop):
            _, _, residual, k = loop
            improvable = (residual > self.tol) | ((k == 0) & (residual > 0))  # one iteration reaches rounding
            return improvable & (k < self.max_iter)

        def newton(loop):
            P, defect, _, k = loop
            P = P - solve_small(jacobian(problem, P), defect[:, None])[:, 0]
            defect = problem.equation(P)
            return P, defect, problem.residual(P, defect), k + 1

        P, _, residual, k = jax.lax.while_loop(running, newton, (P, defect, residual, jnp.zeros((), jnp.int32)))
        trouble = ~(residual <= self.tol)
        found = ContactResult(P, residual, k, jnp.zeros((), jnp.int32))
        enumerable = self.enumerate_modes and problem.laws.directions == 1 and problem.laws.elements == 0
        doubtful = jnp.any(problem.active & problem.doubtful) if enumerable else jnp.asarray(False)

        def rescue(found: ContactResult) -> ContactResult:
            fallback = eqx.tree_at(lambda s: s.tol, self.fallback, jnp.asarray(self.tol))
            result = fallback.go_on(problem, found.P, found.residual)
            result = eqx.tree_at(lambda x: x.iterations, result, found.iterations + result.iterations)
            failed = result.status == Status.CONTACT_NOT_SOLVED
            return consistent_modes(problem, result, doubtful | failed) if enumerable else result

        return rarely(trouble | doubtful, rescue, found)


def jacobian(problem: ContactProblem, P: Array) -> Array:
    """Generalised Jacobian of the projective equations, column by column."""
    identity = jnp.asarray(np.eye(P.size))
    x = P - problem.velocity(P) / problem.diagonal
    dx = identity - problem.G / problem.diagonal[:, None]

    def column(dx: Array, dP: Array) -> Array:
        return dP - jax.jvp(problem.project, (x, P), (dx, dP))[1]

    return jax.vmap(column, in_axes=1, out_axes=1)(dx, identity)
