"""Lists of pairs in a run, and the data of their pairs: what a step reads, and what is moved when a list changes.

A list is made for the bodies where they are, and holds all pairs nearer than `reach + margin`. It serves as long as no
two bodies have come nearer by more than the margin, which is the search's skin, or more where a single step moves
bodies farther than that.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from carom.pairs import Capacity, CellList, Pairs, grown, moved, padded
from carom.pairs.lists import NOT_FINITE
from carom.running.compiled import compiled
from carom.solvers.body_directions import BodyDirections
from carom.state import State

_AHEAD = 1.01  # of what the step ahead is known to move bodies
_MORE = 1.2  # of what a step moved bodies that left its list


class PairData(eqx.Module):
    """The lists of a system's groups of pairs (None for those without), and what is remembered of each pair.

    Groups are those of contacts, then those of the potential. `found` are the lists, `force` the mean forces of the
    last step (R, K) of contacts, the history (R, K) of interactions, `margin` how far lists look beyond the reach
    of bodies, `least` the margin that the next lists must have, `unsolved` the steps that were not solved well enough,
    `depths` the largest penetration of all steps and the sum of their means.
    """

    found: tuple[Pairs | None, ...]
    force: tuple[Array, ...]
    margin: Array
    least: Array
    unsolved: Array
    depths: Float[Array, 2]
    capacity: tuple[Capacity | None, ...] = eqx.field(static=True)

    @property
    def lists(self) -> tuple[tuple[Pairs | None, tuple[int, ...]], ...]:
        """What groups know of their lists: the pairs, and the most of every colour."""
        return tuple((pairs, room.colours if room else ()) for pairs, room in zip(self.found, self.capacity))

    def forces(self, W: BodyDirections) -> Array:
        """The forces of the last step, in the order of rows."""
        return W.stacked(self.force)

    def after(self, W: BodyDirections, forces: Array, unsolved: Array | None, depths: tuple[Array, Array]) -> PairData:
        """The same lists after a step, solved or not, with its largest and its mean penetration."""
        count = self.unsolved if unsolved is None else self.unsolved + unsolved
        deepest = jnp.stack([jnp.maximum(self.depths[0], depths[0]), self.depths[1] + depths[1]])
        where = lambda p: (p.force, p.unsolved, p.depths)  # noqa: E731
        return eqx.tree_at(where, self, (W.by_group(forces), count, deepest))

    @property
    def trouble(self) -> Array:
        """The bits of `Pairs.trouble` of all lists."""
        return reduce(jnp.bitwise_or, (p.trouble for p in self.found if p is not None))

    def with_room(self, rooms: tuple[Capacity | None, ...]) -> PairData:
        """The same lists and data with more room."""
        lists, force = [], []
        for found, own, room in zip(self.found, self.force, rooms):
            longer = (found, own.T) if found is None or room is None else padded(found, own.T, room)
            lists.append(longer[0])
            force.append(longer[1].T)
        return PairData(tuple(lists), tuple(force), self.margin, self.least, self.unsolved, self.depths, rooms)


def stale(system: Any, state: State, pairs: PairData, h: Array) -> Array:
    """Whether lists lack a pair for want of room, or may lack one here or after a step h with these velocities."""
    rate = system.rate(state.t, state.q, state.v)
    wanted = (pairs.least > pairs.margin) | (pairs.trouble != 0)
    return wanted | left(system, state.t, state.q, pairs) | left(system, state.t + h, state.q + h * rate, pairs)


def left(system: Any, t: Array, q: Array, pairs: PairData) -> Array:
    """Whether lists may lack a pair there; never without numbers."""
    now = [
        _search(group, pairs.margin).stale(found, group.positions(q), system.epoch + t)
        for group, found in _lists(system, pairs)
    ]
    return jnp.any(jnp.stack(now)) & jnp.all(jnp.isfinite(q))


def relisted(system: Any, state: State, pairs: PairData, h: Array) -> PairData:
    """New lists for bodies where they are, that serve for a step of size h as far as velocities tell."""
    ahead = state.moved(state.t + h, state.q + h * system.rate(state.t, state.q, state.v), state.v)
    margin = jnp.maximum(pairs.least, _AHEAD * _nearer(system, state, ahead))
    lists, force = [], []
    for group, old, own, room in zip(system.pair_groups, pairs.found, pairs.force, pairs.capacity):
        if old is None or room is None:
            lists.append(None)
            force.append(own)
            continue
        search = _search(group, margin)
        new = group.listed(search.find(group.positions(state.q), system.epoch + state.t, room), room)
        lists.append(new)
        force.append(moved(old, new, own.T).T)
    kept = (pairs.unsolved, pairs.depths, pairs.capacity)
    return PairData(tuple(lists), tuple(force), margin, jnp.zeros_like(margin), *kept)


def lists_at(system: Any, state: State, pairs: PairData, h: Array) -> PairData:
    """Lists of bodies at a state that a run went through, for a step of size h; `pairs` are those of another state."""
    while True:
        found = _relisted(system, state, pairs, h)
        if not int(found.trouble) & ~NOT_FINITE:
            return found
        rooms = (one and room and grown(room, one) for one, room in zip(found.found, pairs.capacity))
        pairs = pairs.with_room(tuple(rooms))


_relisted = compiled(relisted)


def listed_energies(system: Any, t: Any, q: Any, v: Any, pairs: PairData) -> tuple[Array, Array]:
    """Kinetic and potential energy of rows, each with lists of its own."""
    while True:
        kinetic, potential, trouble = _energies(system, t, q, v, pairs)
        short = np.flatnonzero(np.asarray(trouble) & ~NOT_FINITE)
        if not short.size:
            return kinetic, potential
        row = short[0]
        pairs = lists_at(system, State(q[row], v[row], t[row]), pairs, jnp.zeros(()))


@compiled
def _energies(system: Any, t: Any, q: Any, v: Any, pairs: PairData) -> tuple[Array, Array, Array]:
    def one(row: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        t, q, v = row
        found = relisted(system, State(q, v, t), pairs, jnp.zeros(()))
        seen = system.since(system.epoch, found)
        return seen.kinetic_energy(t, q, v), seen.potential_energy(t, q), found.trouble

    return jax.lax.map(one, (jnp.asarray(t), jnp.asarray(q), jnp.asarray(v)))


def wider(system: Any, before: State, after: State, pairs: PairData) -> PairData:
    """The same lists after a step that left them: the next ones look as far as it went, and farther than these."""
    least = _MORE * jnp.maximum(_nearer(system, before, after), pairs.margin)
    return eqx.tree_at(lambda p: p.least, pairs, least)


def _nearer(system: Any, before: State, after: State) -> Array:
    """How much nearer two bodies come at most."""
    near = []
    for group in system.pair_groups:
        if isinstance(getattr(group, "search", None), CellList):
            ends = ((group.positions(state.q), system.epoch + state.t) for state in (before, after))
            near.append(group.search.nearer(*(x for end in ends for x in end)))
    return jnp.max(jnp.stack([jnp.zeros(()), *near]))


def _lists(system: Any, pairs: PairData) -> list[tuple[Any, Pairs]]:
    return [(group, found) for group, found in zip(system.pair_groups, pairs.found) if found is not None]


def _search(group: Any, margin: Array) -> Any:
    """A group's search with the margin as its skin, if that is larger."""
    if not isinstance(group.search, CellList):
        return group.search
    return eqx.tree_at(lambda s: s.skin, group.search, jnp.maximum(group.search.skin, margin))
