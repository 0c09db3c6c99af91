r"""Projected gradient steps over all contacts at once, in units of the root of energy: the rounds of `APGD`.

    P <- prox(P - (G P + c) / (L S^2)),   S^2 = diag(G)

L follows the largest curvature `dP.G dP / dP.S^2 dP` met, and sinks slowly: where a step finds a larger one, it was
too long, and extrapolation starts anew.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from carom.solvers.body_sweeps import BodySweeps
from carom.solvers.contact_problem import TINY, ContactProblem
from carom.solvers.sweeps import AbstractSweeps

_FIRST = 2.0  # L of the first step
_SINKS = 0.99


class BodyDescent(AbstractSweeps):
    """Steps over closed contacts of bodies; an iterate holds impulses, velocities of bodies, and L."""

    contacts: BodySweeps

    def start(self, P: Array) -> Any:
        """Impulses in blocks, and the velocities they bring about."""
        return (*self.contacts.start(P), jnp.asarray(_FIRST))

    def trusted(self, x: Any) -> Any:
        """That of the contacts."""
        return (*self.contacts.trusted(x[:2]), x[2])

    def sweep(self, x: Any, old: Any, beta: Array) -> tuple[Any, Any, Array, Array]:
        """After a step of all contacts."""
        y, L = x[1] + beta * (x[1] - old[1]), x[2]
        new, before, *products = self.contacts.round(x[:2], old[:2], beta, y, 1.0 / L)
        return _judged(new, (*before, L), jnp.sum((new[1] - y) ** 2), *products)

    def fresh(self, x: Any) -> Any:
        """With velocities summed anew."""
        return (*self.contacts.fresh(x[:2]), x[2])

    def residual(self, x: Any) -> Array:
        """The residual."""
        return self.contacts.residual(x[:2])

    def impulses(self, x: Any) -> Array:
        """The impulses in their order."""
        return self.contacts.impulses(x[:2])

    def pushed(self, x: Any) -> tuple[Array, Array]:
        """The velocities of bodies and of closed contacts."""
        return self.contacts.pushed(x[:2])


class Descent(AbstractSweeps):
    """Steps over all rows of a problem; an iterate holds P, G P + c, and L."""

    problem: ContactProblem

    def start(self, P: Array) -> Any:
        """The impulses and what they bring about."""
        return P, self.problem.velocity(P), jnp.asarray(_FIRST)

    def sweep(self, x: Any, old: Any, beta: Array) -> tuple[Any, Any, Array, Array]:
        """After a step of all rows."""
        P, v = (now + beta * (now - before) for now, before in zip(x[:2], old[:2]))
        step = P - v / (x[2] * self.problem.diagonal)
        new = self.problem.project(step, step)
        velocity, down = self.problem.velocity(new), P - new
        curved = jnp.sum(down * (v - velocity))
        products = (jnp.sum(self.problem.diagonal * down * z) for z in (down, new - x[0]))
        return _judged((new, velocity), x, curved, *products)

    def fresh(self, x: Any) -> Any:
        """With velocities found anew."""
        return x[0], self.problem.velocity(x[0]), x[2]

    def residual(self, x: Any) -> Array:
        """The residual."""
        P, v, _ = x
        return self.problem.residual(P, P - self.problem.project(P - v / self.problem.diagonal, P))

    def impulses(self, x: Any) -> Array:
        """The impulses."""
        return x[0]


def _judged(new: tuple[Any, Any], x: Any, curved: Array, size: Array, turn: Array) -> tuple[Any, Any, Array, Array]:
    """An iterate with the next L, the one before, products of the round; a step that was too long counts as a turn."""
    L, curvature = x[2], curved / (size + TINY)
    return (*new, jnp.maximum(_SINKS * L, curvature)), x, size, jnp.where(curvature > 1.001 * L, jnp.inf, turn)
