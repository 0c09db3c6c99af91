"""Projected Jacobi relaxation [Studer2008 (22)]."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.solvers.contact_problem import ContactProblem, ContactResult
from carom.state import Status


class PJOR(eqx.Module):
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

    def __call__(self, problem: ContactProblem, P: Array) -> ContactResult:
        """Solve from the guess P."""
        taken = problem.taking_part
        coupling = jnp.sum(jnp.abs(problem.delassus) * taken, axis=1)
        r = jnp.where(taken, 1.0 / jnp.maximum(coupling, 1e-290), 0.0)

        def sweep(P: Array) -> Array:
            return problem.project(P - r * problem.velocity(P), P)

        return relax(problem, sweep, jnp.where(taken, P, 0.0), self.tol, self.max_iter)


def relax(problem: ContactProblem, sweep, P: Array, tol: Array | float, max_iter: int) -> ContactResult:
    """Repeat `sweep` until the shared residual falls to `tol`."""

    def running(loop):
        _, residual, k = loop
        return (residual > tol) & (k < max_iter)

    def body(loop):
        P, _, k = loop
        P = sweep(P)
        return P, problem.residual(P), k + 1

    start = (P, problem.residual(P), jnp.zeros((), jnp.int32))
    P, residual, k = jax.lax.while_loop(running, body, start)
    return ContactResult(P, residual, k, jnp.where(residual <= tol, Status.OK, Status.CONTACT_NOT_SOLVED).astype(jnp.int32))
