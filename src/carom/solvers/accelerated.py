r"""Rounds over contacts, extrapolated: what solvers without a matrix repeat until the residual is small.

With a round S of a solver and Nesterov's weights,

    Q = S(Y),   Y <- Q + beta (Q - P),   beta = (theta - 1) / theta',   theta' = (1 + sqrt(1 + 4 theta^2)) / 2,

P <- Q. theta starts anew where a round turns against the motion, (Y - Q) . (Q - P) > 0, or where the squared change
of a round |Y - Q|^2 exceeds four times the smallest since the last start: without the second rule it diverges on large
problems with friction. Where it goes in circles, 600 rounds without a smaller residual, as many follow without it.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.solvers.contact_problem import ContactProblem
from carom.solvers.contact_solver import ContactResult
from carom.solvers.roots import repeated
from carom.solvers.sweeps import AbstractSweeps
from carom.state import Status

_BETWEEN_LOOKS = 10  # rounds
_PATIENCE = 60  # looks
_GUARD = 4.0  # times the smallest squared change


def accelerated(
    problem: ContactProblem, sweeps: AbstractSweeps, guess: Array, tol: float, max_iter: int
) -> ContactResult:
    """Solve from a guess; of all looked at, the impulses with the smallest residual."""

    def look(loop: Any) -> Any:
        path, best, least, idle, k, _ = loop
        x, now = sweeps.looked(path.x)
        more = (now > tol) & (k < max_iter)
        trust = idle < _PATIENCE
        count = jnp.where(more, jnp.minimum(_BETWEEN_LOOKS, max_iter - k), 0)
        best = jax.tree.map(lambda a, b: jnp.where(now < least, a, b), x, best)
        path = jax.lax.fori_loop(0, count, lambda _, path: path.ahead(sweeps, trust), path.at(x))
        idle = jnp.where((now < least) & trust, 0, (idle + 1) % (2 * _PATIENCE))
        return path, best, jnp.fmin(now, least), idle, k + count, more

    x, none = sweeps.start(jnp.where(problem.taking_part, guess, 0.0)), jnp.zeros((), jnp.int32)
    loop = (Path.of(x), x, jnp.asarray(jnp.inf), none, none, jnp.asarray(True))
    _, x, residual, _, k, _ = repeated(lambda loop: loop[-1], look, loop)
    status = jnp.where(jnp.isfinite(residual), Status.OK, Status.NOT_FINITE).astype(jnp.int32)
    return ContactResult(sweeps.impulses(x), residual, k, status, residual > tol)


class Path(eqx.Module):
    """Where the iteration stands: x, the x before, the weight of their difference, theta, and the smallest change."""

    x: Any
    old: Any
    beta: Array
    theta: Array
    least: Array

    @classmethod
    def of(cls, x: Any) -> Path:
        """At a start."""
        return cls(x, x, jnp.zeros(()), jnp.ones(()), jnp.asarray(jnp.inf))

    def at(self, x: Any) -> Path:
        """The same at an x that is nearly equal."""
        return Path(x, self.old, self.beta, self.theta, self.least)

    def ahead(self, sweeps: AbstractSweeps, trust: Array) -> Path:
        """After one more round, the next one extrapolated where that may be trusted."""
        x, size, turn = sweeps.sweep(self.x, self.old, self.beta)
        lost = (turn > 0) | (size > _GUARD * self.least)
        theta = 0.5 * (1.0 + jnp.sqrt(1.0 + 4.0 * self.theta**2))
        beta = jnp.where(trust & ~lost, (self.theta - 1.0) / theta, 0.0)
        least = jnp.where(lost, size, jnp.minimum(self.least, size))
        return Path(x, self.x, beta, jnp.where(lost, 1.0, theta), least)
