"""The search for many bodies: only those in neighbouring cells of a grid are compared.

Bodies are sorted by cell; cells are half as wide as bodies may be apart. Cells along axis 0 form a row, so that five
neighbouring cells of a row are one range of the sorted bodies. Rows stand one after the other on a ring of places;
where they are too many for it, they are spread over it (the golden ratio times the row's number), so that no table
grows with the extent of the state. Cells that share a place cost time, never a pair: distances decide, and a pair that
was met twice is kept once.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from carom.arguments import is_traced, plain_numbers
from carom.pairs.boxes import AbstractBox, Columns, Open
from carom.pairs.lists import CANDIDATES, PAIRS, Capacity, Need, Pairs, buckets, listed
from carom.pairs.searches import AbstractSearch
from carom.sorting import running_sum, sorted_by, starts_of

_SPREAD = (0x9E3779B1, 0x7F4A7C15)
_GUESS = {1: (4, 2, 4), 2: (8, 4, 12), 3: (24, 8, 20)}  # candidates and pairs per body, colours
_BESIDE = 2  # cells that lie within reach on either side


class CellList(AbstractSearch):
    """The pairs whose centres are nearer than `reach + skin`, found by sorting bodies into cells of that size.

    Args:
        reach: the largest distance of two centres at which bodies may touch; or one per body (its diameter), where two
            bodies may touch at the mean of theirs.
        skin: how much farther the list looks: it stays valid until bodies have moved half of it.
        box: None (open), `carom.Periodic` or `carom.LeesEdwards`.

    Example:
        >>> carom.CellList(reach=2 * r.max(), skin=0.15 * r.min())
    """

    reach: Array
    skin: Array
    box: AbstractBox

    def __init__(self, reach: Any, skin: Any, box: AbstractBox | None = None):
        diameters = plain_numbers(reach, "CellList: reach", positive=True, of="body")
        margin = plain_numbers(skin, "CellList: skin", positive=True, size=1)
        if box is not None and not isinstance(box, AbstractBox):
            msg = f"CellList: box must be None, carom.Periodic or carom.LeesEdwards, got {type(box).__name__}"
            raise TypeError(msg)
        self.box = Open() if box is None else box
        far = diameters.max() + margin
        for k, length in enumerate(self.box.lengths):
            if length is not None and not is_traced(far, length) and float(length) < 2 * far:
                msg = (
                    f"CellList: lengths[{k}] = {float(length):g} of the box must be at least twice reach + skin = "
                    f"{float(far):g}: otherwise a body may touch two images of another"
                )
                raise ValueError(msg)
        self.reach, self.skin = jnp.asarray(diameters), jnp.asarray(margin).reshape(())

    def capacity(self, count: int, dimension: int) -> Capacity:
        """Room for a dense packing of bodies of about equal size."""
        if dimension not in _GUESS:
            msg = f"CellList: bodies must have one, two or three coordinates of position, got {dimension}"
            raise ValueError(msg)
        candidates, pairs, colours = _GUESS[dimension]
        return Capacity(candidates * count + 64, pairs * count + 64, (count // 2 + 1,) * colours)

    def find(self, positions: Float[Array, "bodies d"], t: Any, capacity: Capacity) -> Pairs:
        """The list of pairs at time t."""
        N, d = positions.shape
        self.box.refuse_dimension(d)
        if self.reach.ndim and self.reach.shape[0] != N:
            msg = f"CellList: reach has {self.reach.shape[0]} entries, one per body, but there are {N} bodies"
            raise ValueError(msg)
        seen = jnp.where(jnp.isfinite(positions), positions, 0.0)
        grid = _grid(self.box, tuple(seen.T), t, jnp.max(self.reach) + self.skin)
        first, last = _ranges(grid)
        i, j, within, candidates = _expanded(first, last, capacity.candidates)
        near = within & (i != j) & self._near(seen[grid.order].T, self._diameters(grid.order), i, j, t)
        a, b, count, met = _kept(grid.order, i, j, near, capacity.pairs)
        trouble = CANDIDATES * (candidates > capacity.candidates) + PAIRS * (met > capacity.pairs)
        unseen = jnp.maximum(1.0, candidates / capacity.candidates)
        need = Need(candidates, unseen * met, jnp.zeros(0, jnp.int32))
        return listed(a, b, count, positions, t, trouble, need)

    def stale(self, pairs: Pairs, positions: Float[Array, "bodies d"], t: Any) -> Array:
        """Whether two bodies may have come nearer by more than the skin."""
        return ~(self.nearer(pairs.reference, pairs.time, positions, t) <= self.skin)

    def nearer(self, before: Float[Array, "bodies d"], t0: Any, after: Float[Array, "bodies d"], t1: Any) -> Array:
        """How much nearer two bodies or their images come at most; a motion common to all does not count."""
        moves, slip = list((after - before).T), jnp.zeros((), after.dtype)
        offset, first = self.box.offset_at(t1), self.box.offset_at(t0)
        if offset is not None and first is not None:
            slip = offset - first
            moves[0] = moves[0] - jnp.floor(before[:, 1] / self.box.lengths[1]) * slip  # pyright: ignore
        own = [x - 0.5 * (jnp.max(x) + jnp.min(x)) for x in moves]
        return 2 * jnp.sqrt(jnp.max(sum(x * x for x in own))) + jnp.abs(slip)

    def _diameters(self, order: Array) -> Array:
        return self.reach[order] if self.reach.ndim else self.reach

    def _near(self, x: Array, reach: Array, i: Array, j: Array, t: Any) -> Array:
        away = self.box.nearest_of(tuple(axis[j] - axis[i] for axis in x), t)
        far = (0.5 * (reach[i] + reach[j]) if reach.ndim else reach) + self.skin
        return sum(y * y for y in away) <= far * far


class _Grid(NamedTuple):
    """Bodies sorted by the place of their cell, whose number along every axis is in `cell`.

    `cells` are the numbers of cells of periodic axes, `strides` those of places from row to row (0: rows are spread),
    and `above` is the cell of axis 0 that is beside a body in the image of the box above, where images are sheared.
    """

    order: Array
    place: Array
    cell: tuple[Array, ...]
    cells: tuple[Array | None, ...]
    strides: tuple[Array, ...]
    above: Array | None

    def places(self, cell: Array, row: Sequence[Array]) -> Array:
        """Where on the ring the cell number `cell` of a row is."""
        return _place(cell, row, self.strides, buckets(self.order.shape[0]))


def _grid(box: AbstractBox, x: Columns, t: Any, far: Array) -> _Grid:
    """Cells a little wider than half of `far`, as quotients are rounded."""
    N, G = x[0].shape[0], buckets(x[0].shape[0])
    home, offset = box.home(x, t), box.offset_at(t)
    found = [_cells(y, box.period(axis), far, G) for axis, y in enumerate(home)]
    cell, cells = zip(*found)
    strides = _strides(cell, G)
    place, order = sorted_by(_place(cell[0], cell[1:], strides, G), jnp.arange(N, dtype=jnp.int32))
    above, length = None, box.period(0)
    if offset is not None and length is not None:
        above = _cells((home[0] - offset) % length, length, far, G)[0][order]
    return _Grid(order, place, tuple(c[order] for c in cell), cells, strides, above)


def _cells(x: Array, length: Array | None, far: Array, G: int) -> tuple[Array, Array | None]:
    """In which cell of an axis bodies are, and how many it has if it is periodic; beyond `limit` cells all are one."""
    limit = 2**30 if far.dtype == jnp.float64 else 2**16
    least = far / _BESIDE * (1 + 4 * limit * np.finfo(far.dtype).eps)
    if length is None:
        return jnp.clip(jnp.floor((x - x[0]) / least), -limit, limit).astype(jnp.int32), None
    n = jnp.clip(jnp.floor(length / least), 1, min(limit, G // 2)).astype(jnp.int32)
    return jnp.clip(jnp.floor(x * (n / length)).astype(jnp.int32), 0, n - 1), n


def _strides(cell: Sequence[Array], G: int) -> tuple[Array, ...]:
    """Places from one row to the next along each further axis, with those beside it left free; 0 where G is too few."""
    ends = [(jnp.max(c).astype(float) - jnp.min(c) + 1 + _BESIDE) for c in cell]
    sizes = list(itertools.accumulate(ends, jnp.multiply))
    return tuple(jnp.where(sizes[-1] <= G, size, 0).astype(jnp.int32) for size in sizes[:-1])


def _place(cell: Array, row: Sequence[Array], strides: Sequence[Array], G: int) -> Array:
    if not row:
        return cell & (G - 1)
    spread = sum((r.astype(jnp.uint32) * np.uint32(s) for r, s in zip(row, _SPREAD)), jnp.zeros((), jnp.uint32))
    spread = (spread >> (33 - G.bit_length())).astype(jnp.int32)
    in_order = sum((r * s for r, s in zip(row[1:], strides[1:])), row[0] * strides[0])
    return (jnp.where(strides[0] > 0, in_order, spread) + cell) & (G - 1)


def _ranges(grid: _Grid) -> tuple[Array, Array]:
    """Ranges of sorted bodies to which every body is compared, (N, ranges): later ones in its row, rows after it."""
    N, n = grid.place.shape[0], grid.cells[0]
    start, later = starts_of(grid.place, buckets(N)), jnp.arange(1, N + 1, dtype=jnp.int32)

    def between(row: Sequence[Array], low: Array, high: Array) -> tuple[Array, Array]:
        one, two = grid.places(low, row), grid.places(high, row)
        return start[one], start[two + 1] + jnp.where(two < one, N, 0)

    ranges = []
    for offset in _rows_after(len(grid.cell) - 1):
        own, (row, c) = not any(offset), _beside(grid, offset)
        low, high = c if own else c - _BESIDE, c + _BESIDE
        if n is not None:
            up = high >= n
            begin, end = between(row, jnp.where(up, 0, low + n), jnp.where(up, jnp.minimum(high - n, n - 1), n - 1))
            ranges.append((begin, jnp.where(up | (low < 0), end, begin)))
            low, high = jnp.maximum(low, 0), jnp.minimum(high, n - 1)
        begin, end = between(row, low, high)
        ranges.append((later if own else begin, end))
    first, last = (jnp.stack(x, 1) for x in zip(*ranges))
    return first, last


def _beside(grid: _Grid, offset: tuple[int, ...]) -> tuple[list[Array], Array]:
    """The row `offset` from every body's own, and the cell in it that is beside the body."""
    row, c = [], grid.cell[0]
    for cell, n, step in zip(grid.cell[1:], grid.cells[1:], offset):
        row.append(cell + step if n is None else (cell + step) % n)
    if grid.above is not None and offset[0]:
        c = jnp.where(grid.cell[1] + offset[0] >= grid.cells[1], grid.above, c)  # pyright: ignore[reportOperatorIssue]
    return row, c


def _rows_after(dimensions: int) -> list[tuple[int, ...]]:
    """One of every two opposite offsets, and none."""
    offsets = itertools.product(range(-_BESIDE, _BESIDE + 1), repeat=dimensions)
    return [o for o in offsets if o >= (0,) * dimensions]


def _expanded(first: Array, last: Array, room: int) -> tuple[Array, Array, Array, Array]:
    """All (body, other body) of the ranges one after the other: two arrays of `room` entries, which count, how many."""
    (N, ranges), length = first.shape, (last - first).reshape(-1)
    end = running_sum(length)
    begin, about = end - length, jnp.sum(length.astype(float))
    entry = jnp.arange(room, dtype=jnp.int32)
    which = running_sum(jnp.zeros(room, jnp.int32).at[begin].add(1, mode="drop")) - 1
    other = entry + (first.reshape(-1) - begin)[which]
    other = jnp.clip(jnp.where(other >= N, other - N, other), 0, N - 1)
    return which // ranges, other, entry < end[-1], jnp.where(about < 2**30, end[-1], about)


def _kept(order: Array, i: Array, j: Array, near: Array, room: int) -> tuple[Array, Array, Array, Array]:
    """The pairs that are near, once each and sorted, how many they are, and how many were met."""
    N = order.shape[0]
    entry, met = _wanted(near, room)
    i, j = (_at(order, _at(x, entry, N), N) for x in (i, j))
    a, b = sorted_by(jnp.minimum(i, j), jnp.maximum(i, j))
    again = jnp.concatenate([jnp.zeros(1, bool), (a[1:] == a[:-1]) & (b[1:] == b[:-1])]) & (a < N)

    def once() -> tuple[Array, Array, Array]:
        entry, count = _wanted((a < N) & ~again, room)
        return _at(a, entry, N), _at(b, entry, N), count

    return *jax.lax.cond(jnp.any(again), once, lambda: (a, b, jnp.minimum(met, room))), met


def _wanted(wanted: Array, room: int) -> tuple[Array, Array]:
    """The numbers of the wanted entries in `room` places, one too large after them; and how many are wanted."""
    number, entry = running_sum(wanted), jnp.arange(wanted.shape[0], dtype=jnp.int32)
    place = jnp.where(wanted, jnp.minimum(number - 1, room), room)
    numbers = jnp.full(room + 1, wanted.shape[0], jnp.int32).at[place].set(entry, mode="promise_in_bounds")
    return numbers[:room], number[-1]


def _at(x: Array, entry: Array, otherwise: int) -> Array:
    return x.at[entry].get(mode="fill", fill_value=otherwise)
