"""Which laws a contact problem has: groups of contacts and of friction elements, and the order of their rows.

The one place that fixes the order, of rows as of stored columns. Contacts are numbered through the user's list of
`Contacts`, elements through that of `FrictionElements`.

* Rows (`impulse`): the normals of all contacts; their tangential directions, contact by contact; the directions of the
  elements, element by element; bilateral constraints (stored apart, as `multiplier`).
* Laws (`mode`, `event`, `work`): all contacts; the friction of those that have directions, in their order; elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array


class Group(NamedTuple):
    """So many contacts or elements in a row with equally many directions of friction."""

    size: int
    directions: int


class Block(NamedTuple):
    """The friction of a group: the contacts (or elements) it belongs to, its rows, its directions."""

    laws: slice
    rows: slice
    directions: int


def _merged(groups: Iterable[tuple[int, int]]) -> tuple[Group, ...]:
    """Neighbours with equally many directions as one group."""
    runs = groupby((Group(*g) for g in groups if g[0]), lambda g: g.directions)
    return tuple(Group(sum(g.size for g in run), directions) for directions, run in runs)


class Laws(eqx.Module):
    """Groups of contacts and of friction elements, each a pair (size, directions), and the bilateral constraints.

    Contacts may have names, one each ("" for none).
    """

    contact_groups: tuple[Group, ...] = eqx.field(static=True, converter=_merged)
    element_groups: tuple[Group, ...] = eqx.field(static=True, converter=_merged, default=())
    bilateral: int = eqx.field(static=True, default=0)
    names: tuple[str, ...] = eqx.field(static=True, default=())

    @property
    def contacts(self) -> int:
        """How many contacts."""
        return sum(g.size for g in self.contact_groups)

    @property
    def elements(self) -> int:
        """How many friction elements."""
        return sum(g.size for g in self.element_groups)

    @property
    def rows(self) -> int:
        """Rows of the contact problem."""
        friction = (g.size * g.directions for g in (*self.contact_groups, *self.element_groups))
        return self.contacts + sum(friction) + self.bilateral

    @property
    def count(self) -> int:
        """Laws that have a mode: all but the bilateral ones."""
        return self.contacts + self.frictions + self.elements

    @property
    def frictions(self) -> int:
        """Contacts with friction."""
        return sum(g.size for g in self.contact_groups if g.directions)

    @property
    def directions(self) -> frozenset[int]:
        """Numbers of directions that occur: 0 for contacts without friction, 1 along a line, 2 in a plane."""
        return frozenset(g.directions for g in (*self.contact_groups, *self.element_groups))

    @property
    def contact_blocks(self) -> list[Block]:
        """The groups of contacts, with and without friction."""
        return list(_blocks(self.contact_groups, self.contacts))

    @property
    def tangential(self) -> list[Block]:
        """The groups of contacts with friction."""
        return [block for block in self.contact_blocks if block.directions]

    @property
    def sliders(self) -> list[Block]:
        """The groups of friction elements."""
        own = sum(g.size * g.directions for g in self.element_groups)
        return list(_blocks(self.element_groups, self.rows - self.bilateral - own))

    @property
    def owners(self) -> np.ndarray:
        """The contact to which each friction law of contacts belongs."""
        return np.concatenate([np.arange(self.contacts)[b.laws] for b in self.tangential] or [np.zeros(0, int)])

    @property
    def contact_of_law(self) -> np.ndarray:
        """The number under which users meet each law: that of its contact; elements are counted on behind them."""
        n = self.contacts
        return np.concatenate([np.arange(n), self.owners, n + np.arange(self.elements)])

    @property
    def law_of_row(self) -> tuple[int, ...]:
        """The law each row belongs to, a contact's friction right after its normal; bilateral rows stand alone."""
        n, rough = self.contacts, np.zeros(self.contacts, int)
        rough[self.owners] = 1
        normal = np.arange(n) + np.cumsum(rough) - rough
        parts = [normal, *(np.repeat(normal[b.laws] + 1, b.directions) for b in self.tangential)]
        first = n + self.frictions
        parts += [first + np.repeat(np.arange(self.elements)[b.laws], b.directions) for b in self.sliders]
        alone = first + self.elements + np.arange(self.bilateral)
        return tuple(np.concatenate([*parts, alone]).tolist())

    def cones(self, directions: int) -> np.ndarray:
        """Rows contact by contact, the normal first, then its directions; -1 where it has fewer than so many."""
        rows = np.full((self.contacts, 1 + directions), -1)
        rows[:, 0] = np.arange(self.contacts)
        for block in self.tangential:
            rows[block.laws, 1 : 1 + block.directions] = np.arange(self.rows)[block.rows].reshape(-1, block.directions)
        return rows

    def split(self, x: Array) -> tuple[Array, list[Array], list[Array], Array]:
        """Rows as normal ones, friction of contacts and elements (each block (laws, directions)), and bilateral."""
        blocks = (self.tangential, self.sliders)
        tangential, elements = ([x[b.rows].reshape(-1, b.directions) for b in kind] for kind in blocks)
        return x[: self.contacts], tangential, elements, x[self.rows - self.bilateral :]

    def by_row(self, normal: Array, tangential: Array, elements: Array, bilateral: Array) -> Array:
        """Rows from one value per contact, for its normal and for its tangential row, per element, per constraint."""
        friction = [jnp.repeat(tangential[b.laws], b.directions) for b in self.tangential]
        friction += [jnp.repeat(elements[b.laws], b.directions) for b in self.sliders]
        return jnp.concatenate([normal, *friction, bilateral])

    def shared(self, x: Array, reduce: Callable[..., Array]) -> Array:
        """Rows where both directions of a law that acts in a plane have one value, `reduce` of the two."""
        normal, tangential, elements, bilateral = self.split(x)
        groups = (*tangential, *elements)
        both = [jnp.broadcast_to(reduce(g, axis=1, keepdims=True), g.shape).ravel() for g in groups]
        return jnp.concatenate([normal, *both, bilateral])

    def by_law(self, x: Array) -> Array:
        """Rows summed over each law that has a mode."""
        normal, tangential, elements, _ = self.split(x)
        return jnp.concatenate([normal, *(jnp.sum(g, axis=1) for g in (*tangential, *elements))])

    def with_friction(self, x: Array) -> Array:
        """Of one value per contact those of contacts with friction."""
        return jnp.concatenate([x[:0], *(x[b.laws] for b in self.tangential)])

    def on_contacts(self, x: Array) -> Array:
        """One value per contact from those of contacts with friction; zero or False for the others."""
        parts, first = [x[:0]], 0
        for group in self.contact_groups:
            own = group.size if group.directions else 0
            parts += [x[first : first + own], jnp.zeros(group.size - own, x.dtype)]
            first += own
        return jnp.concatenate(parts)

    def called(self, i: int) -> str:
        """Name or number of a contact."""
        return self.names[i] if self.names and self.names[i] else str(i)

    @property
    def called_laws(self) -> list[str]:
        """Names or numbers of all laws: of contacts, of their friction, of friction elements."""
        n = self.contacts
        friction = [f"{self.called(i)} friction" for i in self.contact_of_law[n : n + self.frictions]]
        return [*map(self.called, range(n)), *friction, *(f"element {i}" for i in range(self.elements))]


def _blocks(groups: tuple[Group, ...], row: int) -> Iterator[Block]:
    first = 0
    for size, directions in groups:
        yield Block(slice(first, first + size), slice(row, row + size * directions), directions)
        first, row = first + size, row + size * directions
