r"""The contact problem of one step: `-(G P + c)_i in N_{A_i}(P_i)` for every law i [Studer2008 (18)].

Rows (`carom.solvers.contact_laws`) are normal (half-line), tangential (interval or disk of radius mu P_N), of friction
elements (given interval or disk), or bilateral (whole line). Every candidate contact is always there; open ones are
masked.

Letters: P impulses, W rows of the directions, G = W M^{-1} W^T (Delassus), r step of the projection, a friction radius.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from carom.solvers.contact_laws import Block, Laws
from carom.solvers.directions import AbstractDelassus, AbstractDirections, delassus

CONSTRAINT, IMPRESSED = np.int32(0), np.int32(1)
TINY = 1e-290
_IMPULSES = 1e6  # times what each law would need alone: larger ones loosen no tolerance


class ContactProblem(eqx.Module):
    """Data of (18): Delassus map and its diagonal, offsets, sets."""

    G: AbstractDelassus
    diagonal: Float[Array, " m"]
    c: Float[Array, " m"]
    active: Bool[Array, " contacts"]
    friction: Float[Array, " contacts"]
    limits: Float[Array, "elements 2"]
    laws: Laws

    def velocity(self, P: Array) -> Float[Array, " m"]:
        """G P + c = gamma_E + eps gamma_B [Studer2008 (30), sign corrected]."""
        return self.G @ P + self.c

    def radius(self, P: Array) -> Float[Array, " contacts"]:
        """Radius mu P_N of the friction sets."""
        normal = P[: self.laws.contacts]
        return self.friction * jnp.where(normal > 0, normal, 0.0)

    def project(self, x: Array, P: Array) -> Array:
        """Project every row [Studer2008 (20)]: the nearest point of its set, friction radii taken from P."""
        normal, tangential, elements, bilateral = self.laws.split(x)
        a = jnp.where(self.active, self.radius(P), 0.0)[:, None]
        parts = [jnp.where(self.active & (normal > 0), normal, 0.0)]
        parts += [nearest(y, -a[b.laws], a[b.laws]).ravel() for b, y in zip(self.laws.tangential, tangential)]
        parts += [nearest(y, *self.interval(b)).ravel() for b, y in zip(self.laws.sliders, elements)]
        return jnp.concatenate([*parts, bilateral])

    def interval(self, block: Block) -> tuple[Array, Array]:
        """Lowest and highest impulses of friction elements."""
        return self.limits[block.laws, :1], self.limits[block.laws, 1:]

    def equation(self, P: Array) -> Array:
        """P - prox(P - r (G P + c)) with r_i = 1 / G_ii, zero at the solution [Studer2008 (19)]."""
        return P - self.project(P - self.velocity(P) / self.diagonal, P)

    def residual(self, P: Array, defect: Array) -> Array:
        """Largest defect of (19), relative to the impulses, both in units of the square root of energy.

        Impulses count up to a bound: where no impulses fulfil the laws, as between walls that squeeze a body, they grow
        without end, and so would what is allowed.
        """
        weight = jnp.sqrt(self.diagonal)
        alone = jnp.where(self.taking_part, jnp.abs(self.c) / weight, 0.0)
        size = jnp.max(weight * jnp.abs(P) + alone, initial=0.0)
        if self.laws.elements:
            least = self.project(jnp.zeros_like(P), jnp.zeros_like(P))  # of springs that are never slack
            alone = alone + weight * jnp.abs(least)
        size = jnp.minimum(size, _IMPULSES * jnp.max(alone, initial=0.0))
        return jnp.max(weight * jnp.abs(defect), initial=0.0) / (size + TINY)

    @property
    def taking_part(self) -> Bool[Array, " m"]:
        """Rows of closed contacts, of friction elements and of bilateral constraints."""
        laws = self.laws
        return laws.by_row(self.active, self.active, jnp.ones(laws.elements, bool), jnp.ones(laws.bilateral, bool))

    @property
    def doubtful(self) -> Bool[Array, " contacts"]:
        """Contacts with `G_NN <= mu |G_NT|`, Painleve's condition: existence or uniqueness may fail."""
        return jnp.concatenate([jnp.zeros(0, bool), *(self._doubts(block) for block in self.laws.contact_blocks)])

    def _doubts(self, block: Block) -> Array:
        if block.directions != 1:
            return jnp.zeros(block.laws.stop - block.laws.start, bool)
        normal, cross = (self.G.entries(block.laws, columns) for columns in (block.laws, block.rows))
        return normal <= self.friction[block.laws] * jnp.abs(cross)

    def modes(self, P: Array) -> Array:
        """Mode of every law, read off the prox at the solution [Studer2008 sec. 4].

        0 is the constraint mode (closed, sticking), 1 the impressed mode; one-dimensional friction that slips carries
        the sign of the slip velocity. Friction of an open contact counts as 1.
        """
        x = P - self.velocity(P) / self.diagonal
        normal, tangential, elements, _ = self.laws.split(x)
        closed = self.active & (normal > 0)
        rough, a = closed & (self.friction > 0), self.radius(P)[:, None]
        modes = [jnp.where(closed, CONSTRAINT, IMPRESSED)]
        for b, y in zip(self.laws.tangential, tangential):
            modes.append(jnp.where(rough[b.laws], _mode(y, -a[b.laws], a[b.laws]), IMPRESSED))
        modes += [_mode(y, *self.interval(b)) for b, y in zip(self.laws.sliders, elements)]
        return jnp.concatenate(modes).astype(jnp.int32)


def contact_problem(W: AbstractDirections, W_M: AbstractDirections, laws: Laws, **data: Array) -> ContactProblem:
    """The problem with directions W and the velocities `W_M.force(P)` that impulses bring about: G = W M^{-1} W^T."""
    return posed(delassus(W, W_M), W.products(W_M), laws, **data)


def posed(G: AbstractDelassus, diagonal: Array, laws: Laws, **data: Array) -> ContactProblem:
    """The problem with G, of which the diagonal is known.

    A law that acts in a plane has one entry of the diagonal for both directions, the trace of its block: the r of its
    projection then stays below the inverse of the block's largest eigenvalue.
    """
    diagonal = laws.shared(diagonal, jnp.sum)
    return ContactProblem(G, jnp.where(diagonal > 0, diagonal, 1.0), laws=laws, **data)


def nearest(x: Array, low: Array, high: Array) -> Array:
    """Nearest point of an interval (one column) or a disk of radius `high` (two columns).

    Written with `where`, whose derivative at the border is that of one side: `clip` would take the mean of both.
    """
    if x.shape[1] == 1:
        return jnp.where(x < low, low, jnp.where(x > high, high, x))
    size = jnp.sqrt(jnp.maximum(jnp.sum(x * x, axis=1, keepdims=True), TINY))
    return jnp.where(size > high, x * (high / size), x)


def _mode(x: Array, low: Array, high: Array) -> Array:
    if x.shape[1] == 2:
        return jnp.where(jnp.sum(x * x, axis=1) < high[:, 0] ** 2, CONSTRAINT, IMPRESSED)
    sticks = (low < x) & (x < high)
    return jnp.where(sticks, CONSTRAINT, jnp.where(x >= high, -IMPRESSED, IMPRESSED))[:, 0]
