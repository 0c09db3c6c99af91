"""Colours for pairs: no body twice in a colour, so that all pairs of a colour can be worked on at once."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.pairs.lists import COLOURS, Capacity, Need, Pairs, tried_colours
from carom.sorting import sorted_by, starts_of

_BITS = 27  # of a body's number
_BODY = np.uint32(2**_BITS - 1)
_TURNS = 31  # later ones count as this
_A, _B = 0x9E3779B1, 0x85EBCA77
_A_INVERSE, _B_INVERSE = (pow(x, -1, 2**_BITS) for x in (_A, _B))


def coloured(pairs: Pairs, capacity: Capacity) -> Pairs:
    """The list sorted by (colour, a): pairs are coloured greedily in a fixed order, each with the lowest colour.

    The first pairs of all bodies come first, those of one turn in a random order of the bodies. Colours depend on the
    pairs alone, not on the capacity. About as many are needed as the busiest body has pairs.

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
    need = Need(pairs.need.candidates, pairs.need.pairs, count)
    trouble = pairs.trouble | (COLOURS * short).astype(jnp.int32)
    a, b = (jnp.where(by_colour <= tried, x[rank], N) for x in (pairs.a, pairs.b))
    return replace(pairs, a=a, b=b, rank=rank, starts=starts[: sizes.size + 1], trouble=trouble, need=need)


def _colours(pairs: Pairs, words: int) -> Array:
    """A colour for every pair: in every round those pairs take one that come first among the pairs of both bodies."""
    N, P = pairs.reference.shape[0], pairs.a.shape[0]
    me, word = jnp.arange(N, dtype=jnp.int32), jnp.arange(words, dtype=jnp.int32)[:, None]
    first_a, own_key = starts_of(pairs.a, N), _shuffled(me)
    key = _turn(jnp.arange(P, dtype=jnp.int32) - first_a[pairs.a]) | _shuffled(pairs.a)
    b, key = sorted_by(pairs.b, key)
    first_b = starts_of(b, N)

    def unfinished(carry: tuple[Array, ...]) -> Array:
        return jnp.any(carry[0] < first_a[1:])

    def round_of(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        at_a, at_b, used, colour = carry
        as_a, as_b, other = at_a < first_a[1:], at_b < first_b[1:], key[jnp.minimum(at_b, P - 1)]
        up = as_a & (~as_b | (_turn(at_a - first_a[:-1]) | own_key < other))
        partner = jnp.where(up, pairs.b[jnp.minimum(at_a, P - 1)], _unshuffled(other))
        partner = jnp.where(up | as_b, partner, me)
        agreed = (partner[partner] == me) & (partner != me)
        free = ~(used | used[:, partner])
        lowest = free & (~free + 1)
        bit = jax.lax.population_count(lowest - 1).astype(jnp.int32)
        own = jnp.min(jnp.where(free != 0, 32 * word + bit, 32 * words), 0)
        used = jnp.where(agreed & (own >> 5 == word), used | lowest, used)
        colour = colour.at[jnp.where(agreed & up, at_a, P + me)].set(own, mode="drop", unique_indices=True)
        return at_a + (agreed & up), at_b + (agreed & ~up), used, colour

    start = first_a[:-1], first_b[:-1], jnp.zeros((words, N), jnp.uint32), jnp.zeros(P, jnp.int32)
    return jax.lax.while_loop(unfinished, round_of, start)[3]


def _turn(number: Array) -> Array:
    """The upper bits of a key, from the place of a pair among those of its first body."""
    return jnp.minimum(number, _TURNS).astype(jnp.uint32) << _BITS


def _shuffled(body: Array) -> Array:
    """A one-to-one map of numbers of bodies without visible order."""
    x = (body.astype(jnp.uint32) * np.uint32(_A)) & _BODY
    return ((x ^ (x >> 14)) * np.uint32(_B)) & _BODY


def _unshuffled(key: Array) -> Array:
    x = (key * np.uint32(_B_INVERSE)) & _BODY
    return (((x ^ (x >> 14)) * np.uint32(_A_INVERSE)) & _BODY).astype(jnp.int32)
