r"""Rounds over contacts, extrapolated: what solvers without a matrix repeat until the residual is small.

With a round S of a solver and Nesterov's weights,

    Q = S(Y),   Y <- Q + beta (Q - P),   beta = (theta - 1) / theta',   theta' = (1 + sqrt(1 + 4 theta^2)) / 2,

P <- Q. theta starts anew where a round turns against the motion, (Y - Q) . (Q - P) > 0, or where the squared change
of a round |Y - Q|^2 exceeds four times the smallest since the last start: without the second rule it diverges on large
problems with friction. After the first hundred rounds a start begins with ten rounds without extrapolation, in which
contacts settle that open, stick or slip: otherwise piles of a thousand disks go in circles at residuals of 1e-5. Where
they go in circles all the same, 600 rounds without a smaller residual, as many follow without extrapolation.
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
_HURRY, _REST = 100, 10  # rounds until starts begin with plain rounds, and how many these are


def accelerated(
    problem: ContactProblem, sweeps: AbstractSweeps, guess: Array, tol: float, max_iter: int
) -> ContactResult:
    """Solve from a guess; of all looked at, the impulses with the smallest residual."""
    start = Search.of(sweeps, jnp.where(problem.taking_part, guess, 0.0))
    goes_on = lambda search: (search.now > tol) & (search.k < max_iter)  # noqa: E731
    found = repeated(goes_on, lambda search: search.ahead(sweeps, max_iter), start)
    status = jnp.where(jnp.isfinite(found.least), Status.OK, Status.NOT_FINITE).astype(jnp.int32)
    P, pushed = sweeps.impulses(found.best), sweeps.pushed(found.best)
    return ContactResult(P, found.least, found.k, status, found.least > tol, pushed)


class Search(eqx.Module):
    """A path and the best of it: the residual seen last and the least, looks without a smaller one, rounds so far."""

    path: Path
    best: Any
    now: Array
    least: Array
    idle: Array
    k: Array

    @classmethod
    def of(cls, sweeps: AbstractSweeps, P: Array) -> Search:
        """At a start."""
        x, none = sweeps.trusted(sweeps.start(P)), jnp.zeros((), jnp.int32)
        now = sweeps.residual(x)
        return cls(Path.of(x), x, now, jnp.fmin(now, jnp.inf), none, none)

    def ahead(self, sweeps: AbstractSweeps, max_iter: int) -> Search:
        """After some more rounds, and a look."""
        trust, rest = self.idle < _PATIENCE, jnp.where(self.k < _HURRY, 0, _REST)
        count = self._count(max_iter)
        path = jax.lax.fori_loop(0, count, lambda _, path: path.ahead(sweeps, trust, rest), self.path)
        x = sweeps.fresh(path.x)
        now = sweeps.residual(x)
        best = jax.tree.map(lambda a, b: jnp.where(now < self.least, a, b), x, self.best)
        idle = jnp.where((now < self.least) & trust, 0, (self.idle + 1) % (2 * _PATIENCE))
        return Search(path.at(x), best, now, jnp.fmin(now, self.least), idle, self.k + count)

    def _count(self, max_iter: int) -> Array | int:
        """Rounds until the next look. A GPU does not wait for a number that is known."""
        if isinstance(max_iter, int) and max_iter % _BETWEEN_LOOKS == 0:
            return _BETWEEN_LOOKS
        return jnp.minimum(_BETWEEN_LOOKS, max_iter - self.k)


class Path(eqx.Module):
    """Where the iteration stands.

    x, the x before, the weight of their difference, theta, the smallest change, plain rounds to come.
    """

    x: Any
    old: Any
    beta: Array
    theta: Array
    least: Array
    rest: Array

    @classmethod
    def of(cls, x: Any) -> Path:
        """At a start."""
        return cls(x, x, jnp.zeros(()), jnp.ones(()), jnp.asarray(jnp.inf), jnp.zeros((), jnp.int32))

    def at(self, x: Any) -> Path:
        """The same at an x that is nearly equal."""
        return eqx.tree_at(lambda path: path.x, self, x)

    def ahead(self, sweeps: AbstractSweeps, trust: Array, rest: Array) -> Path:
        """After one more round; the next is extrapolated where that may be trusted, `rest` rounds after a new start."""
        x, old, size, turn = sweeps.sweep(self.x, self.old, self.beta)
        lost = ((turn > 0) | (size > _GUARD * self.least)) & (self.rest == 0)
        rest = jnp.where(lost, rest, jnp.maximum(self.rest - 1, 0)).astype(jnp.int32)
        plain = lost | (rest > 0)
        theta = 0.5 * (1.0 + jnp.sqrt(1.0 + 4.0 * self.theta**2))
        beta = jnp.where(trust & ~plain, (self.theta - 1.0) / theta, 0.0)
        least = jnp.where(plain, size, jnp.minimum(self.least, size))
        return Path(x, old, beta, jnp.where(plain, 1.0, theta), least, rest)
