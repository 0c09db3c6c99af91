"""Sweeps over contacts of bodies: impulses colour by colour, and with them the velocities u = M^{-1} W^T P of bodies.

    P_i <- prox(P_i - (W_i u + c_i) / G_ii),   u <- u + M^{-1} W_i^T dP_i

Extrapolated alike, u needs no new sum. Products are those of kinetic energy, taken over the bodies: they do not depend
on the room of lists.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from carom.solvers.body_directions import BodyDirections, Side, velocity_of
from carom.solvers.contact_problem import ContactProblem, nearest
from carom.solvers.sweeps import AbstractSweeps

Iterate = tuple[tuple[Array, ...], Array]


class BodySweeps(AbstractSweeps):
    """Contacts by colours, and the masses of bodies."""

    W: BodyDirections
    W_M: BodyDirections
    colours: tuple[Colour, ...]

    @classmethod
    def of(cls, problem: ContactProblem, W: BodyDirections, W_M: BodyDirections) -> BodySweeps:
        """The sweeps of a problem; what a colour has of the next ones is left alone."""
        found, first = [], 0
        for group, over, c, diagonal in zip(W.groups, W_M.groups, W.by_group(problem.c), W.by_group(problem.diagonal)):
            own, cut = slice(first, first + group.count), group.colours.cut
            numbers = zip(*(cut(x) for x in (c, diagonal, problem.active[own], problem.friction[own])))
            bodies = [cut(side.body) for side in group.sides]
            rows = [[cut(side.rows) for side in blocks.sides] for blocks in (group, over)]
            ends = jnp.append(group.colours.starts[1:], group.count)
            for k, (c_k, diagonal_k, active_k, friction_k) in enumerate(numbers):
                there = jnp.arange(active_k.size) < ends[k] - group.colours.starts[k]
                its = [jnp.where(there, body[k], W.bodies + jnp.arange(there.size)) for body in bodies]
                own_side, over_mass = (tuple(Side(b, r[k]) for b, r in zip(its, side)) for side in rows)
                found.append(Colour(own_side, over_mass, c_k, diagonal_k, active_k & there, friction_k))
            first += group.count
        return cls(W, W_M, tuple(found))

    def start(self, P: Array) -> Iterate:
        """Impulses by colours, and the velocities they bring about."""
        parts = zip(self.W.groups, self.W.by_group(P))
        return tuple(part for group, own in parts for part in group.colours.cut(own)), self.W.cut(self.W_M.force(P))

    def sweep(self, x: Iterate) -> Iterate:
        """After all colours, one after the other."""
        P, u = x
        found = []
        for own, colour in zip(P, self.colours):
            new, u = colour.relaxed(own, u)
            found.append(new)
        return tuple(found), u

    def impulses(self, x: Iterate) -> Array:
        """The impulses in their order."""
        rest, groups = list(x[0]), []
        for group in self.W.groups:
            count = len(group.colours.sizes)
            groups.append(group.colours.joined(tuple(rest[:count]), group.count))
            rest = rest[count:]
        return self.W.stacked(tuple(groups))

    def products(self, old: Iterate, y: Iterate, new: Iterate) -> tuple[Array, Array]:
        """Squared change and turn, in units of energy."""
        down, ahead, M = y[1] - new[1], new[1] - old[1], self.W_M.masses
        return jnp.sum(M * down * down), jnp.sum(M * down * ahead)


class Colour(eqx.Module):
    """Contacts of one colour with what relaxing them takes; impulses are arrays (R, K)."""

    W: tuple[Side, ...]
    W_M: tuple[Side, ...]
    c: Float[Array, "R K"]
    diagonal: Float[Array, "R K"]
    active: Array
    friction: Array

    def relaxed(self, P: Array, u: Array) -> tuple[Array, Array]:
        """Impulses, and velocities of bodies (N, f)."""
        own = [side.own(u) for side in self.W]
        x = P - (velocity_of(self.W, own) + self.c) / self.diagonal
        normal = jnp.where(self.active & (x[0] > 0), x[0], 0.0)
        a = (self.friction * normal)[:, None]
        new = jnp.vstack([normal, nearest(x[1:].T, -a, a).T]) if len(x) > 1 else normal[None]
        for side, v in zip(self.W_M, own):
            u = u.at[side.body].set(v + side.push(new - P), mode="drop", unique_indices=True)
        return new, u
