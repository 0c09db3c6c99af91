"""What time-stepping schemes for contact share: the report of a step, and the way back onto bilateral constraints."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.methods.projection import projected
from carom.solvers.body_directions import BodyDirections
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.contact_solver import ContactResult
from carom.solvers.directions import AbstractDirections
from carom.solvers.small import inverse_small, times
from carom.state import Info
from carom.systems.contact_rows import ContactRows, events
from carom.systems.system import System

TOUCHING = 1e-9  # of what free motion adds to a gap in a step: a gap as small is closed, whatever its sign


def report(
    rows: ContactRows, problem: ContactProblem, result: ContactResult, before: Array, mode: Array, h: Array
) -> Info:
    """Impulses, work, modes and events of a step."""
    P, laws = result.P, rows.laws
    free = P.size - laws.bilateral
    gamma_E = problem.velocity(P) - rows.restitution * rows.gamma  # Studer2008 (30), sign corrected
    return Info(
        status=result.status,
        residual=result.residual,
        iterations=result.iterations,
        impulse=P[:free],
        mode=mode,
        event=events(laws, before, mode),
        work=laws.by_law(0.5 * P * (rows.gamma + gamma_E)),
        multiplier=-P[free:] / h if laws.bilateral else None,
    )


def summary(rows: ContactRows, problem: ContactProblem, result: ContactResult) -> Info:
    """A step of many bodies in a few numbers: of single contacts nothing is stored."""
    P, W = result.P, rows.W
    assert isinstance(W, BodyDirections)
    defect = problem.equation(P)
    gamma_E = problem.velocity(P) - rows.restitution * rows.gamma
    return Info(
        status=result.status,
        residual=result.residual,
        iterations=result.iterations,
        work=W.summed(0.5 * P * (rows.gamma + gamma_E))[None],
        extra={
            "contacts": jnp.sum(problem.active).astype(float),
            "penetration": jnp.max(jnp.where(problem.active, -rows.gap, 0.0), initial=0.0),
            "velocity_defect": jnp.max(problem.diagonal * jnp.abs(defect), initial=0.0),
        },
    )


def onto_constraints(
    system: System, t: Array, q: Array, u: Array, rows: ContactRows, W_M: AbstractDirections
) -> tuple[Array, Array]:
    """Move q and u along M^{-1} W^T until g(t, q) = 0 and dg/dt = 0: no drift, whatever the number of steps."""
    first = rows.laws.rows - rows.laws.bilateral
    W, M_inv_W = rows.W.dense()[first:], W_M.dense()[first:].T
    inverse = times(M_inv_W, inverse_small(times(W, M_inv_W)))

    def left(x: Array, v: Array) -> tuple[Array, Array]:
        return jax.jvp(system.constraint, (t, x), (jnp.ones_like(t), system.rate(t, x, v)))

    return projected(system, t, q, u, left, lambda r: times(inverse, r))
