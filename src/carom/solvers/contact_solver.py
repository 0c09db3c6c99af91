"""What every contact solver is and what it returns."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from carom.solvers.contact_problem import ContactProblem
from carom.state import Status, reals


class ContactResult(eqx.Module):
    """What a solver found; `unsolved` where it is the best of what was not good enough, and the step goes on."""

    P: Float[Array, " m"]
    residual: Array
    iterations: Array
    status: Array
    unsolved: Array | None = None

    @classmethod
    def without_laws(cls) -> ContactResult:
        """The result of a system without laws."""
        zero = jnp.zeros((), jnp.int32)
        return cls(jnp.zeros(0), jnp.zeros(()), zero, zero)


class AbstractContactSolver(eqx.Module):
    """A solver of contact problems: give `solve`, and say whether it needs the Delassus matrix itself."""

    needs_matrix: ClassVar[bool]

    def __call__(self, problem: ContactProblem, guess: Array) -> ContactResult:
        """Solve from a guess of the impulses; refused where no matrix may be formed and one is needed."""
        if self.needs_matrix and not problem.G.has_matrix:
            msg = f"{type(self).__name__} needs the Delassus matrix, which is not formed here: use solver=carom.PJOR()"
            raise TypeError(msg)
        return self.solve(problem, guess)

    @abc.abstractmethod
    def solve(self, problem: ContactProblem, guess: Array) -> ContactResult:
        """Solve from a guess of the impulses."""


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
