"""The lists of pairs that a run begins with, made on the host: their room follows from what is found."""

from __future__ import annotations

import os
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.pairs import Capacity, Pairs, grown, memory, tight
from carom.pairs.lists import NOT_FINITE
from carom.state import State
from carom.systems.listed_pairs import PairData
from carom.systems.pair_interactions import PairInteractions
from carom.systems.wall_interactions import WallInteractions

_MOST_BYTES = 0.5  # of the machine's memory


def first_pairs(system: Any, state: State, epoch: Any, rooms: Any = None) -> PairData | None:
    """The lists of a run that begins at a state, with room for somewhat more; None for a system without lists.

    `rooms` are those the lists of this run had before.
    """
    if not system.has_lists:
        return None
    t, groups = np.asarray(epoch, float), system.pair_groups
    lists, rooms = zip(
        *(_first_list(group, state, t, room) for group, room in zip(groups, rooms or [None] * len(groups)))
    )
    bare = PairData(lists, (), jnp.zeros(()), jnp.zeros(()), jnp.zeros((), jnp.int64), jnp.zeros(2), rooms)
    seen = system.since(epoch, bare)
    force = tuple(_no_force(seen, group, state) for group in seen.pair_groups)
    return eqx.tree_at(lambda p: p.force, bare, force)


def with_lists(system: Any, state: State) -> Any:
    """The system with the lists of pairs of a state, where it needs some and has none."""
    if not system.has_lists or system.pairs is not None:
        return system
    return system.since(system.epoch, first_pairs(system, state, system.epoch))


def _first_list(group: Any, state: State, t: Any, given: Capacity | None) -> tuple[Pairs | None, Capacity | None]:
    if not group.is_listed:
        return None, None
    x = group.positions(state.q)
    room = given or group.search.capacity(*x.shape)
    while True:
        refuse_memory(room, *x.shape)
        found = _find(group, x, t, room)
        if not int(found.trouble) & ~NOT_FINITE:
            break
        room = grown(room, found)
    room = given or tight(found)
    return _find(group, x, t, room), room


@eqx.filter_jit
def _find(group: Any, x: Array, t: Any, room: Capacity) -> Pairs:
    return group.listed(group.search.find(x, t, room), room)


def _no_force(system: Any, group: Any, state: State) -> Array:
    if isinstance(group, (PairInteractions, WallInteractions)):
        return group.no_history
    rate = jax.eval_shape(system.rate, state.t, state.q, state.v)
    args = (system.given, state.t, state.q)
    contacts = jax.eval_shape(lambda: group.gaps(*args)).shape[0]
    friction = group.has_friction and jax.eval_shape(lambda r: group.slip_rates(*args, r, state.v), rate).shape[1]
    return jnp.zeros((1 + int(friction), contacts))


def refuse_memory(room: Capacity, count: int, dimension: int) -> None:
    """Raise where lists would take more than half of the machine's memory."""
    wanted, there = memory(room, count, dimension), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if wanted > _MOST_BYTES * there:
        msg = (
            f"the list of pairs would take {wanted / 1e9:.1f} GB of {there / 1e9:.1f}: lower reach or skin, or the step"
        )
        raise MemoryError(msg)
