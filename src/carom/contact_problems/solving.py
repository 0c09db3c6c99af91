"""Solve a contact problem and say how well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.contact_problems.problem import GlobalProblem, LocalProblem
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.contact_solver import AbstractContactSolver, ContactResult
from carom.solvers.gauss_seidel import AcceleratedGaussSeidel
from carom.solvers.semismooth import SemismoothNewton
from carom.state import Status

_DENSE_UP_TO = 1000  # rows: an iteration of Newton's method is then a fraction of a second
_MOST_DENSE = 20000  # rows


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
        solver: any of carom's; by default `SemismoothNewton` up to 1000 rows and `AcceleratedGaussSeidel` beyond.
        guess: impulses to start from, in the order of the problem; zero by default.

    Example:
        >>> result = carom.contact_problems.solve(carom.contact_problems.read("x.hdf5"), carom.SemismoothNewton())
    """
    local = problem.local() if isinstance(problem, GlobalProblem) else problem
    if not isinstance(local, LocalProblem):
        msg = f"solve: problem must be what carom.contact_problems.read returns, got a {type(problem).__name__}"
        raise TypeError(msg)
    m, rows = local.q.size, local.laws.rows
    if solver is None:
        sparse = rows > _DENSE_UP_TO and not local.laws.bilateral
        solver = AcceleratedGaussSeidel() if sparse else SemismoothNewton()
    if solver.needs_matrix and rows > _MOST_DENSE:
        need = 8e-9 * rows**2
        msg = f"solve: {type(solver).__name__} needs a matrix of {need:.0f} GB here: use AcceleratedGaussSeidel()"
        raise ValueError(msg)
    start = np.zeros(m) if guess is None else np.asarray(guess, float)
    if start.shape != (m,):
        msg = f"solve: guess must have {m} numbers, got an array of shape {start.shape}"
        raise ValueError(msg)
    start = np.concatenate([start, np.zeros(rows - m)])[local.order]
    found, u = _solved(solver, local.posed(), jnp.asarray(start))
    P, velocity = np.zeros(rows), np.zeros(rows)
    P[local.order], velocity[local.order] = found.P, u
    return Result(
        velocity[:m],
        P[:m],
        P[m:],
        float(found.residual),
        natural_map(local, P[:m], velocity[:m]),
        int(found.iterations),
        Status(int(found.status)),
    )


@eqx.filter_jit
def _solved(solver: AbstractContactSolver, problem: ContactProblem, guess: Array) -> tuple[ContactResult, Array]:
    found = solver(problem, guess)
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
