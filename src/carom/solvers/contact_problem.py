r"""The contact problem of one step: `-(G P + c)_i in N_{A_i}(P_i)` for every law i [Studer2008 (18)].

Rows come in four groups: normal (half-line), tangential (interval or disk of radius mu P_N), friction elements (given
interval or disk), bilateral (whole line). Every candidate contact is always there; open ones are masked.

Letters: P impulses, W rows of the directions, G = W M^{-1} W^T (Delassus), r step of the projection, a friction radius.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from carom.solvers.small import times
from carom.state import Status, reals

CONSTRAINT, IMPRESSED = np.int32(0), np.int32(1)
_TINY = 1e-290


class Laws(eqx.Module):
    """How many laws of each kind there are, and in how many directions they act."""

    contacts: int = eqx.field(static=True)
    directions: int = eqx.field(static=True)
    elements: int = eqx.field(static=True)
    element_directions: int = eqx.field(static=True)
    bilateral: int = eqx.field(static=True)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Rows of each group."""
        return self.contacts, self.contacts * self.directions, self.elements * self.element_directions, self.bilateral

    @property
    def rows(self) -> int:
        """Rows of the contact problem."""
        return sum(self.sizes)

    @property
    def count(self) -> int:
        """Laws that have a mode: all but the bilateral ones."""
        return self.contacts * (2 if self.directions else 1) + self.elements

    def split(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """Rows as normal, (contacts, directions), (elements, directions), bilateral."""
        n, t, e, _ = self.sizes
        tangential = x[n : n + t].reshape(self.contacts, self.directions)
        elements = x[n + t : n + t + e].reshape(self.elements, self.element_directions)
        return x[:n], tangential, elements, x[n + t + e :]

    def shared(self, x: Array, reduce: Callable[..., Array]) -> Array:
        """Rows where both directions of a law that acts in a plane have one value, `reduce` of the two."""
        normal, tangential, elements, bilateral = self.split(x)
        groups = [g for g in (tangential, elements) if g.size]
        both = [jnp.broadcast_to(reduce(g, axis=1, keepdims=True), g.shape).ravel() for g in groups]
        return jnp.concatenate([normal, *both, bilateral])

    @property
    def law_of_row(self) -> tuple[int, ...]:
        """The law each row belongs to, a contact's friction right after its normal; bilateral rows stand alone."""
        step = 2 if self.directions else 1
        normal = [step * i for i in range(self.contacts)]
        tangential = [step * i + 1 for i in range(self.contacts) for _ in range(self.directions)]
        first = step * self.contacts
        elements = [first + i for i in range(self.elements) for _ in range(self.element_directions)]
        return (*normal, *tangential, *elements, *(first + self.elements + i for i in range(self.bilateral)))


class ContactProblem(eqx.Module):
    """Data of (18): Delassus matrix and its diagonal, offsets, sets."""

    G: Float[Array, "m m"]
    diagonal: Float[Array, " m"]
    c: Float[Array, " m"]
    active: Bool[Array, " contacts"]
    friction: Float[Array, " contacts"]
    limits: Float[Array, "elements 2"]
    laws: Laws

    def velocity(self, P: Array) -> Float[Array, " m"]:
        """G P + c = gamma_E + eps gamma_B [Studer2008 (30), sign corrected]."""
        return times(self.G, P) + self.c

    def radius(self, P: Array) -> Float[Array, " contacts"]:
        """Radius mu P_N of the friction sets."""
        normal = P[: self.laws.contacts]
        return self.friction * jnp.where(normal > 0, normal, 0.0)

    def project(self, x: Array, P: Array) -> Array:
        """Project every row [Studer2008 (20)]: the nearest point of its set, friction radii taken from P."""
        normal, tangential, elements, bilateral = self.laws.split(x)
        parts = [jnp.where(self.active & (normal > 0), normal, 0.0)]
        if self.laws.directions:
            a = jnp.where(self.active, self.radius(P), 0.0)[:, None]
            parts.append(_nearest(tangential, -a, a).ravel())
        if self.laws.elements:
            parts.append(_nearest(elements, self.limits[:, :1], self.limits[:, 1:]).ravel())
        return jnp.concatenate([*parts, bilateral])

    def equation(self, P: Array) -> Array:
        """P - prox(P - r (G P + c)) with r_i = 1 / G_ii, zero at the solution [Studer2008 (19)]."""
        return P - self.project(P - self.velocity(P) / self.diagonal, P)

    def residual(self, P: Array, defect: Array) -> Array:
        """Largest defect of (19), relative to the impulses, both in units of the square root of energy."""
        weight = jnp.sqrt(self.diagonal)
        size = weight * jnp.abs(P) + jnp.where(self.taking_part, jnp.abs(self.c) / weight, 0.0)
        return jnp.max(weight * jnp.abs(defect), initial=0.0) / (jnp.max(size, initial=0.0) + _TINY)

    @property
    def taking_part(self) -> Bool[Array, " m"]:
        """Rows of closed contacts, of friction elements and of bilateral constraints."""
        always = jnp.ones(self.laws.rows - self.laws.sizes[0] - self.laws.sizes[1], bool)
        return jnp.concatenate([self.active, jnp.repeat(self.active, self.laws.directions), always])

    @property
    def doubtful(self) -> Bool[Array, " contacts"]:
        """Contacts with `G_NN <= mu |G_NT|`, Painleve's condition: existence or uniqueness may fail."""
        n = self.laws.contacts
        if self.laws.directions != 1:
            return jnp.zeros(n, bool)
        normal, cross = jnp.diagonal(self.G)[:n], jnp.abs(jnp.diagonal(self.G[:n, n : 2 * n]))
        return normal <= self.friction * cross

    def modes(self, P: Array) -> Array:
        """Mode of every law, read off the prox at the solution [Studer2008 sec. 4].

        0 is the constraint mode (closed, sticking), 1 the impressed mode; one-dimensional friction that slips carries
        the sign of the slip velocity. Friction of an open contact counts as 1.
        """
        x = P - self.velocity(P) / self.diagonal
        normal, tangential, elements, _ = self.laws.split(x)
        closed = self.active & (normal > 0)
        modes = [jnp.where(closed, CONSTRAINT, IMPRESSED)]
        if self.laws.directions:
            a = self.radius(P)[:, None]
            rough = closed & (self.friction > 0)
            modes.append(jnp.where(rough, _mode(tangential, -a, a), IMPRESSED))
        if self.laws.elements:
            modes.append(_mode(elements, self.limits[:, :1], self.limits[:, 1:]))
        return jnp.concatenate(modes).astype(jnp.int32)


def contact_problem(W: Array, M_inv_W: Array, laws: Laws, **data: Array) -> ContactProblem:
    """The problem with directions W (one row each): G = W M^{-1} W^T.

    A law that acts in a plane has one entry of the diagonal for both directions, the trace of its block: the r of its
    projection then stays below the inverse of the block's largest eigenvalue.
    """
    G = times(W, M_inv_W)
    diagonal = laws.shared(jax.vmap(times)(W, M_inv_W.T), jnp.sum)
    return ContactProblem(G, jnp.where(diagonal > 0, diagonal, 1.0), laws=laws, **data)


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


class ContactResult(eqx.Module):
    """What a solver found."""

    P: Float[Array, " m"]
    residual: Array
    iterations: Array
    status: Array

    @classmethod
    def without_laws(cls) -> ContactResult:
        """The result of a system without laws."""
        zero = jnp.zeros((), jnp.int32)
        return cls(jnp.zeros(0), jnp.zeros(()), zero, zero)


def _nearest(x: Array, low: Array, high: Array) -> Array:
    """Nearest point of an interval (one column) or a disk of radius `high` (two columns).

    Written with `where`, whose derivative at the border is that of one side: `clip` would take the mean of both.
    """
    if x.shape[1] == 1:
        return jnp.where(x < low, low, jnp.where(x > high, high, x))
    size = jnp.sqrt(jnp.maximum(jnp.sum(x * x, axis=1, keepdims=True), _TINY))
    return jnp.where(size > high, x * (high / size), x)


def _mode(x: Array, low: Array, high: Array) -> Array:
    if x.shape[1] == 2:
        return jnp.where(jnp.sum(x * x, axis=1) < high[:, 0] ** 2, CONSTRAINT, IMPRESSED)
    sticks = (low < x) & (x < high)
    return jnp.where(sticks, CONSTRAINT, jnp.where(x >= high, -IMPRESSED, IMPRESSED))[:, 0]
