"""Lists of pairs of bodies, of fixed size, and what happens to the data of pairs when a list changes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from carom.sorting import starts_of

CANDIDATES, PAIRS, COLOURS, NOT_FINITE = 1, 2, 4, 8
_MARGIN = 1.25
_GRAIN = 4  # colours


class Capacity(NamedTuple):
    """How many entries lists have room for; part of a compiled program, never of its result.

    `candidates` are pairs of bodies in neighbouring cells, `pairs` those near enough to be listed, and `colours` holds
    the largest number of pairs of every colour.
    """

    candidates: int
    pairs: int
    colours: tuple[int, ...]

    @classmethod
    def largest(cls, rooms: Iterable[Capacity]) -> Capacity:
        """Room for every one of several lists."""
        candidates, pairs, colours = zip(*rooms)
        return cls(max(candidates), max(pairs), tuple(map(max, itertools.zip_longest(*colours, fillvalue=0))))


class Need(eqx.Module):
    """What room a list needs; where one capacity was too small, what follows from it is an estimate."""

    candidates: Float[Array, ""]
    pairs: Float[Array, ""]
    colours: Int[Array, " colours"]


class Pairs(eqx.Module):
    """The pairs of bodies that may touch, each once, with a < b; entries beyond `count` are a = b = number of bodies.

    A list as a search finds it is sorted by (a, b) and is one group; a coloured one is sorted by (colour, a), and no
    body appears twice in a colour. Group k are the entries from `starts[k]` to `starts[k + 1]`. `rank` is the place of
    every pair in the order (a, b). `trouble` holds the bits CANDIDATES, PAIRS, COLOURS (a capacity was too small, the
    list is incomplete and `need` says what is needed) and NOT_FINITE (a position is NaN or infinite).
    """

    a: Int[Array, " pairs"]
    b: Int[Array, " pairs"]
    rank: Int[Array, " pairs"]
    starts: Int[Array, " groups_and_one"]
    count: Int[Array, ""]
    reference: Float[Array, "bodies d"]
    time: Float[Array, ""]
    trouble: Int[Array, ""]
    need: Need

    @property
    def valid(self) -> Array:
        """Which entries are pairs."""
        return self.a < self.reference.shape[0]


def listed(a: Array, b: Array, count: Any, positions: Array, t: Any, trouble: Any, need: Need) -> Pairs:
    """The list of the pairs (a, b), sorted by them."""
    rank, count = jnp.arange(a.shape[0], dtype=jnp.int32), jnp.asarray(count, jnp.int32)
    starts = jnp.stack([jnp.zeros_like(count), count])
    trouble = jnp.asarray(trouble + NOT_FINITE * ~jnp.isfinite(positions).all(), jnp.int32)
    return Pairs(a, b, rank, starts, count, positions, jnp.asarray(t, positions.dtype), trouble, need)


def moved(old: Pairs, new: Pairs, data: Any) -> Any:
    """Data of the pairs of `old` (arrays with one row per entry) for those of `new`; zero for pairs `old` lacks.

    Example:
        >>> impulse = moved(pairs, search.find(x, t, capacity), impulse)
    """
    at, found = _places(old, new)

    def rows(x: Array) -> Array:
        return jnp.where(found.reshape(-1, *[1] * (x.ndim - 1)), x[at], jnp.zeros((), x.dtype))

    return jax.tree.map(rows, data)


def _places(old: Pairs, new: Pairs) -> tuple[Array, Array]:
    """Where the pairs of `new` stand in `old`, and whether they do: by halving what `old` has of the same body a."""
    N, P = old.reference.shape[0], old.a.shape[0]
    entry = jnp.zeros(P, jnp.int32).at[old.rank].set(jnp.arange(P, dtype=jnp.int32), unique_indices=True)
    b, first = old.b[entry], starts_of(old.a, N)
    begin, end = first[jnp.minimum(new.a, N)], first[jnp.minimum(new.a + 1, N)]

    def halved(_: Array, within: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = within
        middle = (low + high) // 2
        before = b[jnp.minimum(middle, P - 1)] < new.b
        return jnp.where(before, jnp.minimum(middle + 1, high), low), jnp.where(before, high, middle)

    halvings = 32 - jax.lax.clz(jnp.max(first[1:] - first[:-1]))
    place, _ = jax.lax.fori_loop(0, halvings, halved, (begin, end))
    found = (place < end) & (b[jnp.minimum(place, P - 1)] == new.b)
    return entry[jnp.minimum(place, P - 1)], found


def padded(pairs: Pairs, data: Any, capacity: Capacity) -> tuple[Pairs, Any]:
    """A list and the data of its pairs with the shapes of a larger `capacity`; entries keep their places."""
    N, P = pairs.reference.shape[0], pairs.a.shape[0]

    def longer(x: Array, size: int, fill: Any = 0) -> Array:
        more = jnp.full((size - x.shape[0], *x.shape[1:]), fill, x.dtype)
        return jnp.concatenate([x, more])

    room, colours = capacity.pairs, pairs.need.colours
    starts = pairs.starts
    if colours.size:
        colours = longer(colours, tried_colours(capacity) + 1)
        starts = longer(starts, len(capacity.colours) + 1, starts[-1])
    rank = jnp.concatenate([pairs.rank, jnp.arange(P, room, dtype=jnp.int32)])
    need = Need(pairs.need.candidates, pairs.need.pairs, colours)
    larger = replace(pairs, a=longer(pairs.a, room, N), b=longer(pairs.b, room, N), rank=rank, starts=starts, need=need)
    return larger, jax.tree.map(lambda x: longer(x, room), data)


def tried_colours(capacity: Capacity) -> int:
    """How many colours are tried before a list is given up: whole words of bits."""
    return 32 * -(-len(capacity.colours) // 32)


def grown(capacity: Capacity, pairs: Pairs) -> Capacity:
    """The capacity with which to repeat a search that found it too small, with a margin; for batches too.

    Example:
        >>> while int(pairs.trouble) & (CANDIDATES | PAIRS | COLOURS):
        ...     capacity = grown(capacity, pairs)
        ...     pairs = coloured(search.find(x, t, capacity), capacity)
    """
    need = jax.tree.map(np.asarray, pairs.need)
    candidates, most = _enough(capacity.candidates, need.candidates), _enough(capacity.pairs, need.pairs)
    filled = np.any(need.colours, tuple(range(need.colours.ndim - 1)))
    count = max(len(capacity.colours), 1 + np.max(np.flatnonzero(filled), initial=0)) if filled.size else 0
    return Capacity(candidates, most, (pairs.reference.shape[-2] // 2 + 1,) * count)


def tight(pairs: Pairs) -> Capacity:
    """The room that a complete coloured list needs, with a margin and two colours more; for batches too.

    More room costs memory, less of it a new program.

    Example:
        >>> capacity = tight(coloured(search.find(x, t, capacity), capacity))
    """
    return with_spare_colours(grown(Capacity(16, 16, ()), pairs))


def with_spare_colours(room: Capacity) -> Capacity:
    """The same room and two to five colours more, so that not every new one needs a new program; none without."""
    count = len(room.colours)
    return room._replace(colours=room.colours[:1] * (_GRAIN * -(-(count + 2) // _GRAIN)))


def _enough(size: int, need: Any) -> int:
    return max(size, math.ceil(_MARGIN * float(np.max(need))) + 8)


def memory(capacity: Capacity, bodies: int, dimension: int) -> int:
    """Bytes that a coloured list and finding it take together at most, data of pairs not counted.

    Example:
        >>> memory(search.capacity(10**6, 2), 10**6, 2) / 10**6  # bytes per body
    """
    words, ranges = tried_colours(capacity) // 32, 5 ** (dimension - 1) + 1
    searching = 22 * capacity.candidates + (60 + 30 * ranges) * bodies
    colouring = 54 * capacity.pairs + (24 + 12 * words) * bodies
    return 32 * capacity.pairs + max(searching, colouring) + 8 * dimension * bodies


def buckets(bodies: int) -> int:
    """Number of places to which cells are assigned: a power of two, eight to sixteen per body."""
    return max(32, 8 << max(0, bodies - 1).bit_length())
