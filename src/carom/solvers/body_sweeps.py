"""Sweeps over closed contacts of bodies: impulses colour by colour, and with them the velocities of bodies.

Extrapolated alike, velocities need no new sum; they are summed anew where somebody looks. Products of a
sweep are taken over impulses in units of the root of energy.
"""

from __future__ import annotations

from functools import reduce

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from carom.solvers.body_directions import BodyDirections, added
from carom.solvers.closed_contacts import Closed
from carom.solvers.contact_problem import TINY, ContactProblem
from carom.solvers.sweeps import AbstractSweeps
from carom.solvers.tasks import Look, Meet, Push, Relax

Iterate = tuple[tuple[Array, ...], Array]

_IMPULSES = 1e3  # times what contacts would need alone: larger ones loosen no tolerance
_LOADS = 100.0  # of all that bodies carry: a contact that was pressed more presses against another


class BodySweeps(AbstractSweeps):
    """The closed contacts of all groups."""

    W: BodyDirections
    groups: tuple[Closed, ...]
    diagonal: Float[Array, " m"]
    root_M: Float[Array, "N f"]
    most: Float[Array, ""]

    @classmethod
    def of(cls, problem: ContactProblem, W: BodyDirections, masses: Array, closed: type[Closed] = Closed) -> BodySweeps:
        """The sweeps of a problem."""
        found, first, root_M = [], 0, jnp.sqrt(masses)
        for k, group in enumerate(W.groups):
            found.append(closed.of(W, k, problem, slice(first, first + group.count), root_M))
            first += group.count
        alone = jnp.where(problem.taking_part, jnp.abs(problem.c) / jnp.sqrt(problem.diagonal), 0.0)
        return cls(W, tuple(found), problem.diagonal, root_M, _IMPULSES * jnp.max(alone, initial=0.0))

    def start(self, P: Array) -> Iterate:
        """Impulses in blocks, and the velocities they bring about."""
        return self._with_velocities(tuple(group.gathered(jnp.sqrt(self.diagonal) * P) for group in self.groups))

    def trusted(self, x: Iterate) -> Iterate:
        """None where contacts press against each other: what a squeeze left is no guess."""
        blocks, u = x
        carried = jnp.sum(jnp.sqrt(jnp.sum((self.root_M * u) ** 2, axis=1)))
        pressed = reduce(jnp.maximum, (jnp.max(jnp.abs(P), initial=0.0) for P in jax.tree.leaves(blocks)))
        return jax.tree.map(lambda x: jnp.where(pressed > _LOADS * carried, 0.0, x), x)

    def sweep(self, x: Iterate, old: Iterate, beta: Array) -> tuple[Iterate, Iterate, Array, Array]:
        """After all colours, one after the other."""
        return self.round(x, old, beta)

    def round(
        self, x: Iterate, old: Iterate, beta: Array, seen: Array | None = None, r: Array | float = 1.0
    ) -> tuple[Iterate, Iterate, Array, Array]:
        """After all blocks, each of which sees the velocities that those before it left, or others."""
        found, products = [], []
        u, u_old = self.groups[0].ahead(x[1], old[1], beta)
        for group, P, P_old in zip(self.groups, x[0], old[0]):
            both, u, own = group.over(Relax(beta, r), (P, P_old), u, seen)
            found, products = [*found, both], [*products, own]
        (new, before), (size, turn) = zip(*found), map(added, zip(*products))
        return (new, u), (before, u_old), size, turn

    def fresh(self, x: Iterate) -> Iterate:
        """With velocities summed anew."""
        return self._with_velocities(x[0])

    def residual(self, x: Iterate) -> Array:
        """The residual, as that of a problem with a matrix, but for how far impulses count."""
        found = [group.over(Look(), (P,), x[1])[2] for group, P in zip(self.groups, x[0])]
        defect, size = (reduce(jnp.maximum, of_groups) for of_groups in zip(*found))
        return jnp.where(defect < jnp.inf, defect / (jnp.minimum(size, self.most) + TINY), jnp.nan)

    def impulses(self, x: Iterate) -> Array:
        """The impulses in their order."""
        return self._in_rows(x[0]) / jnp.sqrt(self.diagonal)

    def pushed(self, x: Iterate) -> tuple[Array, Array]:
        """The velocities of bodies, and of closed contacts: who asks them need not hold all directions for it."""
        met = tuple(group.over(Meet(), (P,), x[1])[0][0] for group, P in zip(self.groups, x[0]))
        return (x[1] / self.root_M).ravel(), self._in_rows(met) * jnp.sqrt(self.diagonal)

    def _in_rows(self, blocks: tuple[Array, ...]) -> Array:
        """Rows of the problem, from blocks."""
        found = jnp.zeros_like(self.diagonal)
        for group, x in zip(self.groups, blocks):
            found = group.scattered(x, found)
        return found

    def _with_velocities(self, P: tuple[Array, ...]) -> Iterate:
        u = jnp.zeros((self.W.bodies, self.W.dof))
        for group, own in zip(self.groups, P):
            u = group.over(Push(), (own,), u)[1]
        return P, u
