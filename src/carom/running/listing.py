"""Lists of pairs in the loop: found before the first step, made anew where they no longer serve, made roomier.

Looks stand outside `vmap`: inside, both branches of a condition would run in every step.
"""

from __future__ import annotations

import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import users_frame
from carom.pairs import Capacity, grown, with_spare_colours
from carom.pairs.lists import NOT_FINITE
from carom.state import Carry, Row, State, Status
from carom.systems.body_contacts import PairContacts
from carom.systems.first_lists import refuse_memory
from carom.systems.listed_pairs import PairData, left, relisted, stale, wider
from carom.systems.pair_interactions import PairInteractions
from carom.systems.system import System

_ROUNDING = 1e-12  # of the coordinates: an overlap as small is none


def looked(problem: Any, carry: Carry, axes: Any) -> Carry:
    """The carry with lists that serve for the step ahead, or with a status that says which room they lack."""
    if axes is None:
        return jax.lax.cond(_is_stale(problem, carry), lambda c: _relisted(problem, c), lambda c: c, carry)
    lanes = (axes, eqx.if_array(0))
    flags = eqx.filter_vmap(_is_stale, in_axes=lanes)(problem, carry)

    def some(c: Carry) -> Carry:
        new = eqx.filter_vmap(_relisted, in_axes=lanes)(problem, c)
        return jax.vmap(lambda flag, a, b: jax.tree.map(lambda x, y: jnp.where(flag, x, y), a, b))(flags, new, c)

    return jax.lax.cond(jnp.any(flags), some, lambda c: c, carry)


def _is_stale(problem: Any, carry: Carry) -> Array:
    system = problem.system.since(carry.epoch, carry.pairs)
    goes_on = ~carry.done & (carry.status == Status.OK)
    return goes_on & stale(system, carry.state, carry.pairs, problem.stepping.ahead(carry))


def _relisted(problem: Any, carry: Carry) -> Carry:
    system, old = problem.system.since(carry.epoch, carry.pairs), carry.pairs
    new = relisted(system, carry.state, old, problem.stepping.ahead(carry))
    enough = new.trouble == 0
    told = eqx.tree_at(_notes, old, _notes(new))
    pairs = jax.tree.map(lambda a, b: jnp.where(enough, a, b), new, told)
    failure = jnp.where(new.trouble & NOT_FINITE, Status.NOT_FINITE, Status.LIST_FULL)
    status = jnp.where(enough, carry.status, failure).astype(carry.status.dtype)
    return eqx.tree_at(lambda c: (c.pairs, c.status), carry, (pairs, status))


def _notes(pairs: PairData) -> list[Any]:
    return [x for found in pairs.found if found is not None for x in (found.trouble, found.need)]


def within_lists(problem: Any, old: Carry, new: Carry, row: Row) -> tuple[Carry, Row]:
    """A step that left the lists is not kept: it is repeated with lists that look farther."""
    system = problem.system.since(old.epoch, old.pairs)
    lost = (new.status == Status.OK) & left(system, new.state.t, new.state.q, old.pairs)
    back = eqx.tree_at(lambda c: c.pairs, old, wider(system, old.state, new.state, old.pairs))
    rejected = eqx.tree_at(lambda c: c.values, new.counts, new.counts.values + jnp.array([-1, 1, 0, 0]))
    back = eqx.tree_at(lambda c: (c.counts, c.work, c.kept), back, (rejected, new.work, new.kept), is_leaf=_is_none)
    carry = jax.tree.map(lambda a, b: jnp.where(lost, a, b), back, new)
    k = jnp.where(lost, old.k, row.k)
    return carry, eqx.tree_at(lambda r: (r.k, r.keep), row, (k, row.keep & ~lost))


def _is_none(x: Any) -> bool:
    return x is None


# ---- the host's side ------------------------------------------------------------------------------------------------


def warn_of_overlaps(system: System, state: State, pairs: PairData | None, epoch: Any) -> None:
    """Say so where listed bodies begin inside each other."""
    seen = system if pairs is None else system.since(epoch, pairs)
    for part in seen.potential.values():
        if isinstance(part, PairInteractions):
            _warn_of_deep_overlap(part, state)
    if pairs is None:
        return
    for group in seen.contact_groups:
        gaps = np.asarray(group.gaps(seen.given, jnp.zeros(()), state.q))
        rounding = _ROUNDING * (1.0 + np.abs(state.q).max())
        if isinstance(group, PairContacts) and gaps.size and gaps.min() < -rounding:
            i = int(np.argmin(gaps))
            a, b = (int(side[i]) for side in group.numbers)
            others = int((gaps < 0).sum()) - 1
            msg = f"bodies {a} and {b} overlap at the start by {-gaps[i]:.3g}, and {others} other pairs by less"
            warnings.warn(msg, stacklevel=users_frame())


def _warn_of_deep_overlap(part: PairInteractions, state: State) -> None:
    """Soft bodies overlap where they push each other, but not by more than a radius."""
    overlaps, (numbers, ends) = part.overlaps(state.q), (part.bonds.numbers, part.ends())
    for overlap, (a, b), (own, other) in zip(overlaps, numbers, ends):
        least = 0.5 * jnp.minimum(part.law.length(own, own), part.law.length(other, other))
        deep = np.asarray((overlap > least) & (a < len(part.bodies)))
        if deep.any():
            i = int(np.argmax(deep))
            pair, depth = [int(np.ravel(x)[i]) for x in (a, b)], float(np.ravel(overlap)[i])
            msg = f"bodies {pair[0]} and {pair[1]} overlap at the start by {depth:.3g}, more than a radius"
            warnings.warn(f"{msg} ({int(deep.sum())} such pairs): check places and radii", stacklevel=users_frame())


def stacked_pairs(found: list[PairData]) -> PairData:
    """The first lists of the lanes of a batch, stacked, all with the room that the fullest needs."""
    rooms = tuple(
        None if one is None else Capacity.largest(own)
        for one, own in zip(found[0].capacity, zip(*(p.capacity for p in found)))
    )
    return jax.tree.map(lambda *x: jnp.stack(x), *(pairs.with_room(rooms) for pairs in found))


def roomier(carry: Carry) -> Carry:
    """The carry of a run (or batch) that stopped for want of room, with more of it; as it was where memory lacks."""
    pairs, rooms = carry.pairs, []
    for found, room in zip(pairs.found, pairs.capacity):
        rooms.append(None if found is None else with_spare_colours(grown(room, found)))
    try:
        for found, room in zip(pairs.found, rooms):
            if found is not None:
                refuse_memory(room, *found.reference.shape[-2:])
    except MemoryError:
        return carry
    more = lambda p: p.with_room(tuple(rooms))  # noqa: E731
    new = jax.vmap(more)(pairs) if carry.k.ndim else more(pairs)
    status = jnp.where(carry.status == Status.LIST_FULL, Status.OK, carry.status).astype(carry.status.dtype)
    return eqx.tree_at(lambda c: (c.pairs, c.status), carry, (new, status))
