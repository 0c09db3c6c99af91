"""What every contact solver is and what it returns."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from carom.plain import call
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.roots import rooted
from carom.solvers.small import is_small, solve_rolled, solve_small
from carom.state import Status, reals

_LITTLE = 1e-10  # damping that a second iteration makes up for


class ContactResult(eqx.Module):
    """What a solver found; `unsolved` where it is the best of what was not good enough, and the step goes on.

    `pushed` are the velocities that the impulses bring about, and G P + c of closed contacts, where a solver knows
    them.
    """

    P: Float[Array, " m"]
    residual: Array
    iterations: Array
    status: Array
    unsolved: Array | None = None
    pushed: tuple[Array, Array] | None = None

    def after(self, before: Array) -> ContactResult:
        """This result of a repeated solve, in need of rescue if the one before, of the given status, was."""
        status = jnp.where(before == Status.NEEDS_RESCUE, before, self.status)
        return eqx.tree_at(lambda r: r.status, self, status)

    @classmethod
    def without_laws(cls) -> ContactResult:
        """The result of a system without laws."""
        zero = jnp.zeros((), jnp.int32)
        return cls(jnp.zeros(0), jnp.zeros(()), zero, zero)


class AbstractContactSolver(eqx.Module):
    """A solver of contact problems: give `solve`, and say whether it needs the Delassus matrix itself.

    What it finds has the derivative of the projective equations [Studer2008 (19)] with the modes held. Without a matrix
    it has none: differentiating such a solve is refused.
    """

    needs_matrix: ClassVar[bool]
    is_lean: ClassVar[bool] = False

    __repr__ = call

    def __call__(self, problem: ContactProblem, guess: Array) -> ContactResult:
        """Solve from a guess of the impulses; refused where no matrix may be formed and one is needed."""
        if self.needs_matrix and not problem.G.has_matrix:
            msg = f"{type(self).__name__} needs the Delassus matrix, which is not formed here: use solver=carom.PJOR()"
            raise TypeError(msg)
        return rooted(_solution, _attached, (self, problem, guess))

    def objection(self, listed: bool) -> str | None:
        """Why steps of a system with (or without) listed pairs of bodies cannot be solved; None if they can."""
        if not (listed and self.needs_matrix):
            return None
        hint = "use solver=carom.AcceleratedGaussSeidel()"
        return f"{type(self).__name__} needs the Delassus matrix, which is not formed of listed pairs: {hint}"

    def lean(self) -> AbstractContactSolver:
        """The same without what it rarely needs; a problem that needs it has the status `NEEDS_RESCUE`."""
        return self

    @abc.abstractmethod
    def solve(self, problem: ContactProblem, guess: Array) -> ContactResult:
        """Solve from a guess of the impulses."""


Given = tuple[AbstractContactSolver, ContactProblem, Array]


def _solution(given: Given) -> ContactResult:
    return _solved_by(*given)


@eqx.filter_jit
def _solved_by(solver: AbstractContactSolver, problem: ContactProblem, guess: Array) -> ContactResult:
    """`solver.solve`, traced once for problems of one shape: a step of event capturing has two, a third of it."""
    return solver.solve(problem, guess)


def _attached(found: ContactResult, given: Given, still: Given) -> ContactResult:
    """One Newton step on the projective equations, with the modes and the Jacobian of the answer."""
    solver, problem, _ = given
    if not problem.G.has_matrix:
        msg = f"{type(solver).__name__} has no derivative where no Delassus matrix is formed"
        raise TypeError(msg)
    P = found.P - direction_once(jacobian(still[1], found.P), problem.equation(found.P))
    return eqx.tree_at(lambda result: result.P, found, P)


def direction(J: Array, defect: Array) -> Array:
    """J^{-1} defect of rows that may depend on each other: unknowns dropped, or (many rows) a little damping."""
    if is_small(J):
        return solve_small(J, defect[:, None])[:, 0]
    return jnp.linalg.solve(J + _LITTLE * jnp.asarray(np.eye(defect.size)), defect)


def direction_once(J: Array, defect: Array) -> Array:
    """The same with less to compile, for a derivative at the answer."""
    return solve_rolled(J, defect[:, None])[:, 0] if is_small(J) else direction(J, defect)


def jacobian(problem: ContactProblem, P: Array) -> Array:
    """Generalised Jacobian of the projective equations, column by column."""
    identity = jnp.asarray(np.eye(P.size))
    x = P - problem.velocity(P) / problem.diagonal
    dx = identity - problem.G.dense() / problem.diagonal[:, None]

    def column(dx: Array, dP: Array) -> Array:
        return dP - jax.jvp(problem.project, (x, P), (dx, dP))[1]

    return jax.vmap(column, in_axes=1, out_axes=1)(dx, identity)


def refuse_settings(solver: Any, *tolerances: str) -> None:
    """Raise, by name, unless a solver's tolerances are positive and `max_iter` is a whole number."""
    kind = type(solver).__name__
    for name in tolerances:
        value = getattr(solver, name)
        array = reals(value, f"{kind}: {name}", "a positive number")
        if isinstance(array, np.ndarray) and not (array.ndim == 0 and 0 < array < np.inf):
            msg = f"{kind}: {name} must be a positive number, got {value}"
            raise ValueError(msg)
    if isinstance(solver.max_iter, bool) or not isinstance(solver.max_iter, (int, np.integer)) or solver.max_iter < 1:
        msg = f"{kind}: max_iter must be a whole number of at least 1, got {solver.max_iter!r}"
        raise ValueError(msg)


def solved(residual: Array, tol: Array | float) -> Array:
    """The status that belongs to a residual."""
    failure = jnp.where(jnp.isfinite(residual), Status.CONTACT_NOT_SOLVED, Status.NOT_FINITE)
    return jnp.where(residual <= tol, Status.OK, failure).astype(jnp.int32)
