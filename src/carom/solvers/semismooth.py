"""Semismooth Newton on the projective equations [Studer2008 (19)]; behind it interior points and enumeration."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.names import register
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.contact_solver import (
    AbstractContactSolver,
    ContactResult,
    direction,
    jacobian,
    refuse_settings,
    solved,
)
from carom.solvers.enumeration import can_be_enumerated, consistent_modes
from carom.solvers.interior_point import InteriorPoint
from carom.solvers.psor import PSOR
from carom.solvers.roots import rarely, repeated
from carom.state import Status

_DAMPING = (1e-12, 1e-2)  # least and most damping
_DAMPED = 30  # damped iterations
_ROUNDING = 1e-15  # a residual that no iteration improves


@register
class SemismoothNewton(AbstractContactSolver):
    """Newton on `P - prox(P - r (G P + c)) = 0`, differentiated row by row: finite, and exact to rounding.

    With intervals the equation is piecewise linear: once the modes are right, one iteration solves it. If Newton has
    not converged after `max_iter` iterations, as happens where laws depend on each other, `fallback` goes on from the
    best impulses so far, and damped iterations (Levenberg and Marquardt: the Jacobian plus a part of the identity as
    large as the residual) polish what it found. Where Coulomb friction can make
    the problem ambiguous or unsolvable (Painleve) and at most four contacts are closed, all modes are tried, and none
    or more than one consistent mode is an error.

    Args:
        tol: wanted residual, relative to the impulses.
        max_iter: Newton iterations before the others take over.
        fallback: the solver that goes on where Newton fails; by default interior points, with elements `PSOR`.
        enumerate_modes: whether doubtful problems are enumerated.
        enough: residual that counts as solved where nothing reaches `tol`: laws that depend on each other may
            contradict each other a little, and the impulses that settle this are only as good.
        rescue: whether anything follows Newton's iterations; without, there is a third of the program, and a problem
            that they leave unsolved or doubtful ends the run. A run of one trajectory begins so by itself, and goes on
            with the rescue where it is needed.

    Example:
        >>> method = carom.MoreauMidpoint(solver=carom.SemismoothNewton(tol=1e-11))
    """

    tol: float = 1e-12
    max_iter: int = 12
    fallback: AbstractContactSolver | None = None
    enumerate_modes: bool = True
    enough: float = 1e-8
    rescue: bool = True

    needs_matrix: ClassVar[bool] = True

    def __check_init__(self):
        refuse_settings(self, "tol", "enough")

    @property
    def is_lean(self) -> bool:  # pyright: ignore
        """Whether it leaves to others what it rarely needs."""
        return not self.rescue

    def lean(self) -> SemismoothNewton:
        """Newton's iterations alone."""
        return dataclasses.replace(self, rescue=False)

    def solve(self, problem: ContactProblem, guess: Array) -> ContactResult:
        """Solve from a guess."""
        P = guess = jnp.where(problem.taking_part, guess, 0.0)
        defect = problem.equation(P)
        residual = first = problem.residual(P, defect)

        def running(loop):
            _, _, residual, k = loop
            improvable = (residual > self.tol) | ((k == 0) & (residual > _ROUNDING))  # one iteration reaches rounding
            return improvable & (k < self.max_iter)

        def newton(loop):
            P, defect, _, k = loop
            P = P - direction(jacobian(problem, P), defect)
            defect = problem.equation(P)
            return P, defect, problem.residual(P, defect), k + 1

        P, _, residual, k = repeated(running, newton, (P, defect, residual, jnp.zeros((), jnp.int32)))
        better = residual <= first
        found = ContactResult(
            jnp.where(better, P, guess), jnp.where(better, residual, first), k, jnp.zeros((), jnp.int32)
        )
        trouble = ~(found.residual <= self.tol)
        enumerable = self.enumerate_modes and can_be_enumerated(problem.laws)
        doubtful = jnp.any(problem.active & problem.doubtful) if enumerable else jnp.asarray(False)

        if not self.rescue:
            known = jnp.where(jnp.isnan(found.residual), Status.NOT_FINITE, Status.NEEDS_RESCUE)
            status = jnp.where(trouble | doubtful, known, Status.OK).astype(jnp.int32)
            return eqx.tree_at(lambda r: r.status, found, status)

        def rescued(found: ContactResult) -> ContactResult:
            best = self.fallback_for(problem)(problem, found.P)
            best = self.damped(problem, best)
            status = solved(best.residual, self.enough)
            result = ContactResult(best.P, best.residual, k + best.iterations, status)
            failed = status == Status.CONTACT_NOT_SOLVED
            return consistent_modes(problem, result, doubtful | failed) if enumerable else result

        return rarely(trouble | doubtful, rescued, found)

    def fallback_for(self, problem: ContactProblem) -> AbstractContactSolver:
        """What goes on where Newton's iterations fail."""
        if self.fallback is not None:
            return self.fallback
        cones = problem.laws.contacts > 0 and not problem.laws.elements
        return InteriorPoint(self.tol) if cones else PSOR(self.tol)

    def damped(self, problem: ContactProblem, start: ContactResult) -> ContactResult:
        """The best of what damped Newton iterations find from `start`."""
        identity = jnp.asarray(np.eye(start.P.size))

        def running(loop):
            _, _, best, k = loop
            return (best.residual > self.tol) & (k < _DAMPED)

        def iterate(loop):
            P, residual, best, k = loop
            J = jacobian(problem, P) + jnp.clip(residual, *_DAMPING) * identity
            P = P - jnp.linalg.solve(J, problem.equation(P))
            residual = problem.residual(P, problem.equation(P))
            found = ContactResult(P, residual, best.iterations + 1, best.status)
            return P, residual, jax.tree.map(lambda a, b: jnp.where(residual < best.residual, a, b), found, best), k + 1

        first = (start.P, start.residual, start, jnp.zeros((), jnp.int32))
        return repeated(running, iterate, first)[2]
