"""Colours for pairs: no body twice in a colour, so that all pairs of a colour can be worked on at once."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.pairs.lists import COLOURS, PAIRS, Capacity, Need, Pairs, tried_colours
from carom.sorting import sorted_by, starts_of

_A, _B = 0x9E3779B1, 0x85EBCA77
_A_INVERSE, _B_INVERSE = (np.uint32(pow(x, -1, 2**32)) for x in (_A, _B))


def coloured(pairs: Pairs, capacity: Capacity) -> Pairs:
    """The list sorted by (colour, a): pairs are coloured greedily in a fixed random order, each with the lowest colour.

    Colours depend on the pairs alone, not on the capacity. About as many are needed as the busiest body has pairs.

    Example:
        >>> pairs = coloured(search.find(x, t, capacity), capacity)
        >>> first = slice(pairs.starts[0], pairs.starts[1])
    """
    sizes = np.asarray(capacity.colours, np.int32)
    N, tried = pairs.reference.shape[0], tried_colours(capacity)
    by_colour, rank = sorted_by(jnp.where(pairs.valid, _colours(pairs, tried // 32), tried + 1), pairs.rank)
    starts = starts_of(by_colour, tried + 1)
    count = starts[1:] - starts[:-1]
    short = jnp.any(count[: sizes.size] > sizes) | (starts[-1] > starts[sizes.size])
    room = jnp.max(starts[: sizes.size] + sizes)
    need = Need(pairs.need.candidates, pairs.need.pairs, count)
    trouble = pairs.trouble | (COLOURS * short + PAIRS * (room > pairs.a.shape[0])).astype(jnp.int32)
    a, b = (jnp.where(by_colour <= tried, x[rank], N) for x in (pairs.a, pairs.b))
    return replace(pairs, a=a, b=b, rank=rank, starts=starts[: sizes.size + 1], trouble=trouble, need=need)


def _colours(pairs: Pairs, words: int) -> Array:
    """A colour for every pair: in every round those pairs take one that come first among the pairs of both bodies."""
    N, P = pairs.reference.shape[0], pairs.a.shape[0]
    body = jnp.concatenate([pairs.a, pairs.b])
    body, order = sorted_by(body, _shuffled(jnp.tile(pairs.rank.astype(jnp.uint32), 2)))
    pair = _unshuffled(order).astype(jnp.int32)
    other = pairs.a[pair] + pairs.b[pair] - body
    first, me = starts_of(body, N), jnp.arange(N, dtype=jnp.int32)
    word = jnp.arange(words, dtype=jnp.int32)[:, None]

    def unfinished(carry: tuple[Array, ...]) -> Array:
        return jnp.any(carry[0] < first[1:])

    def round_of(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        head, used, colour = carry
        at = jnp.minimum(head, 2 * P - 1)
        partner = jnp.where(head < first[1:], other[at], me)
        agreed = (partner[partner] == me) & (partner != me)
        free = ~(used | used[:, partner])
        lowest = free & (~free + 1)
        bit = jax.lax.population_count(lowest - 1).astype(jnp.int32)
        own = jnp.min(jnp.where(free != 0, 32 * word + bit, 32 * words), 0)
        used = jnp.where(agreed & (own >> 5 == word), used | lowest, used)
        mine = jnp.where(agreed & (me < partner), pair[at], P + me)
        colour = colour.at[mine].set(own, mode="drop", unique_indices=True)
        return head + agreed, used, colour

    start = first[:-1], jnp.zeros((words, N), jnp.uint32), jnp.zeros(P, jnp.int32)
    return jax.lax.while_loop(unfinished, round_of, start)[2]


def _shuffled(x: Array) -> Array:
    """A one-to-one map of 32-bit numbers without visible order."""
    x = x * np.uint32(_A)
    return (x ^ (x >> 16)) * np.uint32(_B)


def _unshuffled(x: Array) -> Array:
    x = x * _B_INVERSE
    return (x ^ (x >> 16)) * _A_INVERSE
