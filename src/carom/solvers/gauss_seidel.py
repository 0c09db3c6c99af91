r"""Projected Gauss-Seidel over sparse rows, colour by colour, with extrapolation.

A sweep S updates the contacts of one colour at once, the normal impulse first and friction with the velocities that
this leaves. Nesterov's extrapolation `y = P + b (P - P_old)`, `P <- S(y)`, is given up and begun anew where the sweep
turns against it, or where the squared change of a sweep exceeds four times the smallest so far: without the second
rule it diverges on large problems with friction. Where it goes in circles, 600 sweeps without a smaller residual, as
many follow without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.solvers.contact_laws import Laws
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.contact_solver import AbstractContactSolver, ContactResult, refuse_settings, solved
from carom.solvers.sparse import SparseDelassus

_BETWEEN_LOOKS = 10  # sweeps
_PATIENCE = 60  # looks
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
        colours = by_colour(problem, problem.G)

        def sweep(P: Array) -> Array:
            return jax.lax.scan(lambda P, colour: (updated(P, *colour), None), P, colours)[0]

        def running(loop):
            _, _, residual, _, k = loop
            return (residual > self.tol) & (k < self.max_iter)

        def look(loop):
            path, best, least, idle, k = loop
            trust = idle < _PATIENCE
            path = jax.lax.fori_loop(0, _BETWEEN_LOOKS, lambda _, path: path.ahead(problem, sweep, trust), path)
            residual = problem.residual(path.P, problem.equation(path.P))
            better = residual < least
            best, least = jnp.where(better, path.P, best), jnp.where(better, residual, least)
            idle = jnp.where(better & trust, 0, (idle + 1) % (2 * _PATIENCE))
            return path, best, least, idle, k + _BETWEEN_LOOKS

        P, none = jnp.where(problem.taking_part, guess, 0.0), jnp.zeros((), jnp.int32)
        loop = (Path(P, P, jnp.ones(()), jnp.asarray(jnp.inf)), P, problem.residual(P, problem.equation(P)), none, none)
        _, P, residual, _, k = jax.lax.while_loop(running, look, loop)
        return ContactResult(P, residual, k, solved(residual, self.tol))


class Path(eqx.Module):
    """Where the iteration stands: impulses, the point of the next sweep, the weight of that, the smallest change."""

    P: Array
    y: Array
    theta: Array
    least: Array

    def ahead(self, problem: ContactProblem, sweep: Callable[[Array], Array], trust: Array) -> Path:
        """After one more sweep, extrapolated where that may be trusted."""
        P = sweep(self.y)
        change = self.y - P
        size = jnp.sum(problem.diagonal * change**2)
        lost = (jnp.sum(problem.diagonal * change * (P - self.P)) > 0) | (size > _GUARD * self.least)
        theta = 0.5 * (1.0 + jnp.sqrt(1.0 + 4.0 * self.theta**2))
        b = jnp.where(trust & ~lost, (self.theta - 1.0) / theta, 0.0)
        least = jnp.where(lost, size, jnp.minimum(self.least, size))
        return Path(P, P + b * (P - self.P), jnp.where(lost, 1.0, theta), least)


def by_colour(problem: ContactProblem, G: SparseDelassus) -> tuple[ContactProblem, Array, Array]:
    """For every colour its own laws, their rows, and the velocity of slip that a unit of normal impulse brings."""
    contacts, n, directions = G.colours, problem.laws.contacts, next(iter(problem.laws.directions))
    there, normals = contacts < n, np.arange(n)
    slips = (n + contacts[..., None] * directions + jnp.arange(directions)).reshape(contacts.shape[0], -1)
    slips = jnp.where(jnp.repeat(there, directions, axis=1), slips, problem.laws.rows)
    rows = jnp.concatenate([jnp.where(there, contacts, problem.laws.rows), slips], axis=1)
    own = ContactProblem(
        SparseDelassus(G.columns[rows], G.values[rows], contacts),
        problem.diagonal[rows],
        problem.c[rows],
        active=problem.active[contacts] & there,
        friction=problem.friction[contacts],
        limits=jnp.zeros((contacts.shape[0], 0, 2)),
        laws=Laws([(contacts.shape[1], directions)]),
    )
    return own, rows, G.entries(n + np.arange(n * directions), np.repeat(normals, directions))[slips - n]


def updated(P: Array, own: ContactProblem, rows: Array, cross: Array) -> Array:
    """P after one colour: its normal impulses, then its friction."""
    n, directions = own.laws.contacts, next(iter(own.laws.directions))
    old, u = P[rows], own.velocity(P)
    normal = own.project(old - u / own.diagonal, old)[:n]
    push = jnp.repeat(normal - old[:n], directions)
    half = jnp.concatenate([normal, old[n:] - (u[n:] + cross * push) / own.diagonal[n:]])
    return P.at[rows].set(own.project(half, half), mode="drop")
