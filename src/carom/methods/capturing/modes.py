"""Modes of all laws: contacts closed or open, friction that sticks or slips, and in which direction it slips."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.solvers.contact_laws import Laws
from carom.solvers.contact_problem import CONSTRAINT, IMPRESSED


class Modes(eqx.Module):
    """Modes of the laws.

    `closed` belongs to the contacts; `stuck` to the friction laws, those of contacts first, then friction elements;
    `heading` to the rows: the sign of slip of friction along a line, the direction in which friction in a plane began.
    """

    closed: Array
    stuck: Array
    heading: Array
    laws: Laws

    @classmethod
    def of_numbers(cls, laws: Laws, mode: Array) -> Modes:
        """The modes that `numbers` wrote down."""
        n = laws.contacts
        signs = by_row(laws, mode[n:].astype(float))
        return cls(mode[:n] == CONSTRAINT, mode[n:] == CONSTRAINT, signs, laws)

    @property
    def carried(self) -> Array:
        """Friction laws that can transmit a force: not those of open contacts."""
        return jnp.concatenate([self.laws.with_friction(self.closed), jnp.ones(self.laws.elements, bool)])

    @property
    def held(self) -> Array:
        """Rows without relative acceleration: closed, sticking, bilateral."""
        friction = by_row(self.laws, self.stuck & self.carried)
        between = friction[self.laws.contacts : self.laws.rows - self.laws.bilateral]
        return jnp.concatenate([self.closed, between, jnp.ones(self.laws.bilateral, bool)])

    @property
    def slipping(self) -> Array:
        """Rows of friction that slides."""
        return by_row(self.laws, ~self.stuck & self.carried)

    @property
    def numbers(self) -> Array:
        """Mode of every law as in `ContactProblem.modes`: 0 held; 1 or the sign of slip otherwise."""
        slips = jnp.where(self.carried, self.signs, IMPRESSED)
        friction = jnp.where(self.stuck & self.carried, CONSTRAINT, slips)
        return jnp.concatenate([jnp.where(self.closed, CONSTRAINT, IMPRESSED), friction]).astype(jnp.int32)

    @property
    def signs(self) -> Array:
        """Sign of slip of friction along a line; 1 in a plane."""
        backward = ~in_plane(self.laws) & (totals(self.laws, self.heading) < 0)
        return jnp.where(backward, -IMPRESSED, IMPRESSED)

    def directions(self, gamma: Array, noise: Array) -> Array:
        """Unit directions of slip by row: the heading along a line, in a plane that of gamma where it is no noise."""
        laws = self.laws
        size = by_row(laws, lengths(laws, gamma))
        flat = by_row(laws, in_plane(laws))
        known = flat & (size > noise)
        return jnp.where(known, gamma / jnp.where(known, size, 1.0), self.heading)


def in_plane(laws: Laws) -> Array:
    """Friction laws that act in a plane."""
    blocks = (*laws.tangential, *laws.sliders)
    flat = [np.full(b.laws.stop - b.laws.start, b.directions == 2) for b in blocks]
    return jnp.asarray(np.concatenate([np.zeros(0, bool), *flat]))


def by_row(laws: Laws, x: Array) -> Array:
    """One value per friction law on its rows; zero or False on the other rows."""
    k = laws.frictions
    normal, bilateral = jnp.zeros(laws.contacts, x.dtype), jnp.zeros(laws.bilateral, x.dtype)
    return laws.by_row(normal, laws.on_contacts(x[:k]), x[k:], bilateral)


def totals(laws: Laws, x: Array) -> Array:
    """Sum over the rows of every friction law."""
    return laws.by_law(x)[laws.contacts :]


def lengths(laws: Laws, x: Array) -> Array:
    """Length of the rows of every friction law."""
    _, tangential, elements, _ = laws.split(x)
    return jnp.concatenate([*(_length(g) for g in (*tangential, *elements)), jnp.zeros(0)])


def units(laws: Laws, x: Array) -> Array:
    """Friction rows over their length; zero where that is zero."""
    size = by_row(laws, lengths(laws, x))
    return x / jnp.where(size > 0, size, 1.0)


def _length(x: Array) -> Array:
    if x.shape[1] == 1:
        return jnp.abs(x[:, 0])
    squared = jnp.sum(x * x, axis=1)
    return jnp.where(squared > 0, jnp.sqrt(jnp.where(squared > 0, squared, 1.0)), 0.0)
