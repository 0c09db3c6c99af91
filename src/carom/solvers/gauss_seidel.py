r"""Projected Gauss-Seidel over sparse rows, colour by colour, with extrapolation.

A sweep S updates the contacts of one colour at once, the normal impulse first and friction with the velocities that
this leaves. Nesterov's extrapolation `y = P + b (P - P_old)`, `P <- S(y)`, is given up and begun anew where the sweep
turns against it, or where the squared change of a sweep exceeds four times the smallest so far: without the second
rule it diverges on large problems with friction.
"""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.solvers.contact_laws import Laws
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.contact_solver import AbstractContactSolver, ContactResult, refuse_settings, solved
from carom.solvers.sparse import SparseDelassus

_BETWEEN_LOOKS = 10  # sweeps
_GUARD = 4.0  # times the smallest squared change


class AcceleratedGaussSeidel(AbstractContactSolver):
    """Extrapolated Gauss-Seidel for contact problems with a sparse matrix.

    Args:
        tol: wanted residual, relative to the impulses.
        max_iter: sweeps after which the problem counts as not solved.

    Example:
        >>> result = carom.contact_problems.solve(problem, carom.contact_problems.AcceleratedGaussSeidel(tol=1e-6))
    """

    tol: float = 1e-8
    max_iter: int = 20000

    needs_matrix: ClassVar[bool] = False

    def __check_init__(self):
        refuse_settings(self, "tol")

    def solve(self, problem: ContactProblem, guess: Array) -> ContactResult:
        """Solve from a guess; of all looked at, the impulses with the smallest residual."""
        if not isinstance(problem.G, SparseDelassus) or problem.laws.elements or problem.laws.bilateral:
            msg = "AcceleratedGaussSeidel solves sparse problems of contacts alone: use SemismoothNewton or PSOR here"
            raise TypeError(msg)
        colours = by_colour(problem)

        def sweep(P: Array) -> Array:
            return jax.lax.scan(lambda P, colour: (updated(P, *colour), None), P, colours)[0]

        def running(loop):
            _, best, k = loop
            return (best[1] > self.tol) & (k < self.max_iter)

        def look(loop):
            path, best, k = loop
            path = jax.lax.fori_loop(0, _BETWEEN_LOOKS, lambda _, path: extrapolated(problem, sweep, *path), path)
            P = path[0]
            residual = problem.residual(P, problem.equation(P))
            better = residual < best[1]
            return path, (jnp.where(better, P, best[0]), jnp.where(better, residual, best[1])), k + _BETWEEN_LOOKS

        P = jnp.where(problem.taking_part, guess, 0.0)
        path, one = (P, P, jnp.ones(()), jnp.asarray(jnp.inf)), jnp.zeros((), jnp.int32)
        start = (path, (P, problem.residual(P, problem.equation(P))), one)
        _, (P, residual), k = jax.lax.while_loop(running, look, start)
        return ContactResult(P, residual, k, solved(residual, self.tol))


def extrapolated(problem: ContactProblem, sweep, P: Array, y: Array, theta: Array, least: Array) -> tuple[Array, ...]:
    """One sweep from y, and the next y."""
    new = sweep(y)
    change = y - new
    size = jnp.sum(problem.diagonal * change**2)
    lost = (jnp.sum(problem.diagonal * change * (new - P)) > 0) | (size > _GUARD * least)
    next_theta = 0.5 * (1.0 + jnp.sqrt(1.0 + 4.0 * theta**2))
    b = jnp.where(lost, 0.0, (theta - 1.0) / next_theta)
    return new, new + b * (new - P), jnp.where(lost, 1.0, next_theta), jnp.where(lost, size, jnp.minimum(least, size))


def by_colour(problem: ContactProblem) -> tuple[ContactProblem, Array, Array]:
    """For every colour its own laws, their rows, and the velocity of slip that a unit of normal impulse brings."""
    G, laws, contacts = problem.G, problem.laws, problem.G.colours
    n, directions = laws.contacts, next(iter(laws.directions))
    slips = n + contacts[..., None] * directions + jnp.arange(directions)
    rows = jnp.concatenate([contacts, slips.reshape(*contacts.shape[:1], -1)], axis=1)
    rows = jnp.where(jnp.concatenate([contacts < n, jnp.repeat(contacts < n, directions, axis=1)], axis=1), rows, laws.rows)
    m = jnp.arange(laws.rows)
    owner = jnp.concatenate([m[:n], jnp.repeat(m[:n], directions)])
    own = ContactProblem(
        SparseDelassus(G.columns[rows], G.values[rows], contacts),
        problem.diagonal[rows],
        problem.c[rows],
        active=problem.active[contacts] & (contacts < n),
        friction=problem.friction[contacts],
        limits=jnp.zeros((contacts.shape[0], 0, 2)),
        laws=Laws([(contacts.shape[1], directions)]),
    )
    return own, rows, G.entries(m, owner)[rows]


def updated(P: Array, own: ContactProblem, rows: Array, cross: Array) -> Array:
    """P after one colour: its normal impulses, then its friction."""
    n, directions = own.laws.contacts, next(iter(own.laws.directions))
    old, u = P[rows], own.velocity(P)
    normal = own.project(old - u / own.diagonal, old)[:n]
    push = jnp.repeat(normal - old[:n], directions)
    half = jnp.concatenate([normal, old[n:] - (u[n:] + cross[n:] * push) / own.diagonal[n:]])
    return P.at[rows].set(own.project(half, half), mode="drop", unique_indices=False)
