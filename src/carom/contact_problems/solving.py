"""Solve a contact problem and say how well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.contact_problems.problem import GlobalProblem, LocalProblem
from carom.running.compiled import compiled
from carom.solvers.contact_laws import Laws
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.contact_solver import AbstractContactSolver, ContactResult
from carom.solvers.gauss_seidel import AcceleratedGaussSeidel
from carom.solvers.semismooth import SemismoothNewton
from carom.state import Status, reals

_FEW = 100  # rows that Newton's method solves at once
_SOME = 1000  # rows of which a matrix is factorised in a fraction of a second
_MOST = 20000  # rows of which a matrix is formed at all


@dataclass(frozen=True, eq=False)
class Result:
    """What `solve` found, in the order of the problem: contact by contact, the normal row first.

    Attributes:
        velocity: relative velocities u, computed from the impulses.
        impulse: impulses r. Where contacts are redundant, others bring about the same velocities.
        multiplier: impulses of equality constraints.
        residual: carom's own, largest row, relative to the impulses, in units of the square root of energy.
        natural_map: `|r - P_K(r - rho (u + mu |u_T| e_N))| / rho` over all contacts, relative to |q|, with rho the
            inverse of the largest diagonal entry of a contact's block.
        iterations: of the solver.
        status: `carom.Status.OK`, or how the solver failed.
    """

    velocity: np.ndarray
    impulse: np.ndarray
    multiplier: np.ndarray
    residual: float
    natural_map: float
    iterations: int
    status: Status


def solve(
    problem: LocalProblem | GlobalProblem, solver: AbstractContactSolver | None = None, guess: Any = None
) -> Result:
    """Solve a contact problem.

    Args:
        problem: what `read` returns, or a `LocalProblem` or `GlobalProblem` of your own.
        solver: any of carom's; by default `SemismoothNewton` up to 100 rows and `AcceleratedGaussSeidel(tol=1e-10)`
            beyond; up to 1000 rows the other goes on where one fails.
        guess: impulses to start from, in the order of the problem; zero by default.

    Example:
        >>> result = carom.contact_problems.solve(carom.contact_problems.read("x.hdf5"), carom.SemismoothNewton())
    """
    local = problem.local() if isinstance(problem, GlobalProblem) else problem
    if not isinstance(local, LocalProblem):
        msg = f"solve: problem must be what carom.contact_problems.read returns, got a {type(problem).__name__}"
        raise TypeError(msg)
    m, rows = local.q.size, local.laws.rows
    start = np.zeros(m) if guess is None else reals(guess, "solve: guess", "numbers")
    if start.shape != (m,):
        msg = f"solve: guess must have {m} numbers, got an array of shape {start.shape}"
        raise ValueError(msg)
    P = jnp.asarray(np.concatenate([start, np.zeros(rows - m)])[local.order])
    solvers = _usual(local.laws) if solver is None else (solver,)
    found, u, iterations = _attempted(solvers, local.posed(), P)
    r, velocity = np.zeros(rows), np.zeros(rows)
    r[local.order], velocity[local.order] = found.P, u
    near = natural_map(local, r[:m], velocity[:m])
    return Result(velocity[:m], r[:m], r[m:], float(found.residual), near, iterations, Status(int(found.status)))


def _attempted(
    solvers: Sequence[AbstractContactSolver], problem: ContactProblem, P: Array
) -> tuple[ContactResult, Array, int]:
    """What the first solver that does not give up finds, each from where the last ended; velocities; all iterations."""
    first, *others = solvers
    _refuse_too_large(first, P.size)
    found, u = _solved(first, problem, P)
    if int(found.status) != Status.CONTACT_NOT_SOLVED or not others:
        return found, u, int(found.iterations)
    later, u, iterations = _attempted(others, problem, found.P)
    return later, u, iterations + int(found.iterations)


def _usual(laws: Laws) -> tuple[AbstractContactSolver, ...]:
    """Newton's method for few rows, Gauss-Seidel for more, each followed by the other where it may help."""
    newton, sweeps = SemismoothNewton(), AcceleratedGaussSeidel(tol=1e-10, max_iter=20000)
    if laws.bilateral:
        return (newton,)
    if laws.rows <= _FEW:
        return (newton, sweeps)
    return (sweeps, newton) if laws.rows <= _SOME else (sweeps,)


def _refuse_too_large(solver: AbstractContactSolver, rows: int) -> None:
    if solver.needs_matrix and rows > _MOST:
        name, need = type(solver).__name__, 8e-9 * rows**2
        msg = f"solve: {name} needs a matrix of {need:.0f} GB here: use carom.AcceleratedGaussSeidel()"
        raise ValueError(msg)


@compiled
def _solved(solver: AbstractContactSolver, problem: ContactProblem, guess: Array) -> tuple[ContactResult, Array]:
    found = solver(problem, guess)
    if found.unsolved is not None:
        status = jnp.where(found.unsolved & (found.status == Status.OK), Status.CONTACT_NOT_SOLVED, found.status)
        found = eqx.tree_at(lambda f: f.status, found, status.astype(jnp.int32))
    return found, problem.velocity(found.P)


def natural_map(problem: LocalProblem, r: np.ndarray, u: np.ndarray) -> float:
    """How far impulses and velocities are from Coulomb's law, as `Result` says; zero for a solution.

    The impulses are not weighted with one number for all: where W is large, even zero impulses would pass.
    """
    d, mu = problem.dimension, problem.mu
    stiffness = np.max(problem.W.diagonal().reshape(-1, d), axis=1)[:, None]
    stiffness = np.where(stiffness > 0, stiffness, 1.0)
    r, u = r.reshape(-1, d), u.reshape(-1, d)
    shifted = u.copy()
    shifted[:, 0] += mu * np.linalg.norm(u[:, 1:], axis=1)
    defect = stiffness * (r - _on_cone(r - shifted / stiffness, mu))
    return float(np.linalg.norm(defect) / (np.linalg.norm(problem.q) + np.finfo(float).tiny))


def _on_cone(x: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Nearest points of the cones |x_T| <= mu x_N."""
    normal, size = x[:, 0], np.linalg.norm(x[:, 1:], axis=1)
    on_border = np.maximum((normal + mu * size) / (1 + mu**2), 0.0)
    inside = size <= mu * normal
    n = np.where(inside, normal, on_border)
    t = np.where(inside, 1.0, mu * n / np.where(size > 0, size, 1.0))
    return np.concatenate([n[:, None], t[:, None] * x[:, 1:]], axis=1)
