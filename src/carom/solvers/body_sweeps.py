"""Sweeps over closed contacts of bodies: impulses colour by colour, and with them the velocities of bodies.

Extrapolated alike, velocities need no new sum; they are summed anew where somebody looks. Products of a
sweep are taken over impulses in units of the root of energy.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from carom.solvers.body_directions import BodyDirections
from carom.solvers.closed_contacts import Closed
from carom.solvers.contact_problem import TINY, ContactProblem
from carom.solvers.sweeps import AbstractSweeps
from carom.solvers.tasks import Look, Push, Relax

Iterate = tuple[tuple[Array, ...], Array]


class BodySweeps(AbstractSweeps):
    """The closed contacts of all groups."""

    W: BodyDirections
    groups: tuple[Closed, ...]

    @classmethod
    def of(cls, problem: ContactProblem, W: BodyDirections, masses: Array) -> BodySweeps:
        """The sweeps of a problem."""
        found, first, root_M = [], 0, jnp.sqrt(masses)
        for k, group in enumerate(W.groups):
            found.append(Closed.of(W, k, problem, slice(first, first + group.count), root_M))
            first += group.count
        return cls(W, tuple(found))

    def start(self, P: Array) -> Iterate:
        """Impulses in blocks, and the velocities they bring about."""
        P_blocks = tuple(group.gathered(P) for group in self.groups)
        return P_blocks, self.summed(P_blocks)

    def sweep(self, x: Iterate, old: Iterate, beta: Array) -> tuple[Iterate, Iterate, Array, Array]:
        """After all colours, one after the other."""
        return self.round(x, old, beta)

    def round(
        self, x: Iterate, old: Iterate, beta: Array, seen: Array | None = None, r: Array | float = 1.0
    ) -> tuple[Iterate, Iterate, Array, Array]:
        """After all blocks, each of which sees the velocities that those before it left, or others."""
        found, u, products = [], x[1] + beta * (x[1] - old[1]), jnp.zeros(2)
        for group, P, P_old in zip(self.groups, x[0], old[0]):
            both, u, own = group.over(Relax(beta, r), (P, P_old), u, seen)
            found, products = [*found, both], products + jnp.sum(own.reshape(2, -1), axis=1)
        new, before = zip(*found)
        return (new, u), (before, x[1]), products[0], products[1]

    def looked(self, x: Iterate) -> tuple[Iterate, Array]:
        """With velocities summed anew, and the residual."""
        u = self.summed(x[0])
        found = [group.over(Look(), (P,), u)[2] for group, P in zip(self.groups, x[0])]
        defect, size = (jnp.max(jnp.stack([jnp.max(of_group[k]) for of_group in found])) for k in range(2))
        return (x[0], u), defect / (size + TINY)

    def summed(self, P: tuple[Array, ...]) -> Array:
        """The velocities that impulses bring about."""
        u = jnp.zeros((self.W.bodies, self.W.dof))
        for group, own in zip(self.groups, P):
            u = group.over(Push(), (own,), u)[1]
        return u

    def impulses(self, x: Iterate) -> Array:
        """The impulses in their order."""
        found = jnp.zeros(sum(group.count * (1 + group.directions) for group in self.W.groups))
        for group, P in zip(self.groups, x[0]):
            found = group.scattered(P, found)
        return found
