"""Rows on the host: appended in chunks as the loop packs them, and looked at by column."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any, overload

import numpy as np

from carom.state import Carry, Clock, Numbers, State, reals

_LOOK_BACK = 4  # rows a stepping may still take back


class Column:
    """A recorded column as an attribute."""

    def __init__(self, doc: str):
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, solution: None, owner: type) -> Column: ...
    @overload
    def __get__(self, solution: object, owner: type) -> np.ndarray: ...
    def __get__(self, solution: Any, owner: type) -> Any:
        """The column of a solution; those that were not recorded are told by `Solution.__getattr__`."""
        if solution is None:
            return self
        try:
            return solution.columns[self.name]
        except KeyError:
            raise AttributeError(self.name) from None


def times_in_order(save_at: Numbers, t0: float, t1: float) -> np.ndarray:
    """The times of `save_at` in a run from t0 to t1, refused if the run does not come by in their order."""
    times = np.atleast_1d(np.asarray(reals(save_at, "save_at", "a list of times")))
    if times.ndim != 1 or not times.size or not np.all((times >= min(t0, t1)) & (times <= max(t0, t1))):
        msg = f"save_at must be times between {t0:g} and {t1:g}, got {times}"
        raise ValueError(msg)
    if np.any(np.diff(times) * (t1 - t0) < 0):
        msg = f"save_at must be times in the order of the run, from {t0:g} to {t1:g}, got {times}"
        raise ValueError(msg)
    return times


class RowStore:
    """The rows of one trajectory on the host: appended in chunks, rows taken back by the stepping dropped."""

    def __init__(self, start: State):
        self.start = start
        self.fields = _fields(("k", "keep", "t", "h", "q", "v"), ((), (), (), (), start.q.shape, start.v.shape))
        self.chunks: list[np.ndarray] = []
        self.wanted: np.ndarray | None = None
        self.newest = 0.0
        self.first: dict[str, np.ndarray] = {}  # row 0 of a stored run
        self.happened: Any = None

    def append(self, rows: np.ndarray) -> None:
        """Add a chunk. A kept row replaces all rows from its k on; a row not kept takes back all rows after its k."""
        if not len(rows):
            return
        k, keep = rows[:, 0], rows[:, 1] > 0
        drop_from = np.where(keep, k, k + 1)
        later = np.minimum.accumulate(np.append(drop_from[1:], np.inf)[::-1])[::-1]
        while self.chunks and self.chunks[-1][-1, 0] >= drop_from.min():
            kept = self.chunks[-1][self.chunks[-1][:, 0] < drop_from.min()]
            self.chunks[-1:] = [kept] if len(kept) else []
        self.add(rows[keep & (k < later)])

    def add(self, rows: np.ndarray) -> None:
        """Add rows that follow the ones there."""
        if len(rows):
            self.chunks.append(rows)
            self.newest = rows[-1, 0]
        if self.wanted is not None:
            self._thin(self.wanted)

    def _thin(self, wanted: np.ndarray) -> None:
        """Keep only rows that bracket one of these times (and the newest few, which may be taken back)."""
        rows = np.concatenate(self.chunks) if self.chunks else np.zeros((0, 1))
        if len(rows) <= _LOOK_BACK:
            return
        t = rows[:, self.fields["t"][0]].ravel()
        needed = np.zeros(len(rows), bool)
        after = np.searchsorted(t, wanted)
        needed[np.clip(after, 0, len(t) - 1)] = True
        needed[np.clip(after - 1, 0, len(t) - 1)] = True
        needed[-_LOOK_BACK:] = True
        if "event" in self.fields:
            needed |= np.any(rows[:, self.fields["event"][0]] != 0, axis=1)
        self.chunks = [rows[needed]]

    def latest(self) -> str:
        """Step size and contacts of the newest row, in words for the progress bar."""
        if not self.chunks:
            return ""
        row = self.chunks[-1][-1]
        closed = f", {int(np.sum(row[self.fields['mode'][0]] == 0))} laws closed" if "mode" in self.fields else ""
        return f"h = {float(row[self.fields['h'][0]][0]):.2g}{closed}"

    def snapshot(self, carry: Carry) -> Columns:
        """The columns of the rows stored so far, the start as row 0."""
        return Columns(self.start, self.fields, tuple(self.chunks), carry, self.first)


class Columns(Mapping[str, np.ndarray]):
    """Stored rows by column; a column is put together when it is first asked for.

    Rows hold the time since the start, the column `elapsed`; `t` is the user's.
    """

    def __init__(
        self,
        start: State,
        fields: Fields,
        chunks: tuple[np.ndarray, ...],
        carry: Carry,
        first: Mapping[str, np.ndarray],
    ):
        names = {"t": "elapsed"}
        self.fields = {names.get(name, name): place for name, place in fields.items() if name != "keep"}
        self.start, self.chunks, self.carry, self.first = start, chunks, carry, first
        self.known: dict[str, np.ndarray] = {}

    @functools.cached_property
    def clock(self) -> Clock:
        """From elapsed times to those of the user."""
        return Clock.of(self.carry)

    def __getitem__(self, name: str) -> np.ndarray:
        if name == "t" and name not in self.known:
            self.known[name] = self.clock.time(self.clock.turned(self["elapsed"]))
        if name not in self.known:
            place, shape = self.fields[name]
            first = self._first(name, shape)
            rows = np.concatenate([first.reshape(1, -1), *(chunk[:, place] for chunk in self.chunks)])
            values = rows.reshape(len(rows), *shape)
            values = self.clock.turned(values) if name == "elapsed" else values
            self.known[name] = values.astype(int) if name in _WHOLE else values
        return self.known[name]

    @property
    def count(self) -> int:
        """Rows, the start among them."""
        return 1 + sum(len(chunk) for chunk in self.chunks)

    def row(self, name: str, i: int) -> np.ndarray:
        """Row `i` of a column, flat; the column is not put together for it."""
        place, shape = self.fields[name]
        if i == 0:
            return self._first(name, shape).ravel()
        chunk = next(chunk for chunk in self.chunks if (i := i - len(chunk)) <= 0)
        return chunk[i - 1, place]

    def _first(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Row 0: as it was stored, else the start."""
        if name in self.first:
            return self.first[name]
        return np.asarray(getattr(self.start, name)) if name in ("q", "v") else np.zeros(shape)

    def __iter__(self) -> Iterator[str]:
        return iter(("t", *self.fields))

    def __len__(self) -> int:
        return 1 + len(self.fields)

    def __or__(self, others: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {**self, **others}


def append(stores: list[RowStore], layout: Any, rows: np.ndarray) -> None:
    """Add a chunk of every lane, (rows, lanes, width); lanes in which nothing is dropped need no closer look."""
    if len(stores[0].fields) != len(layout.names):
        fields = _fields(layout.names, layout.shapes)
        for store in stores:
            store.fields = fields
    k = rows[:, :, 0]
    before = np.concatenate([[[store.newest for store in stores]], k[:-1]])
    follows = np.all((k > before) & (rows[:, :, 1] > 0), axis=0)
    for lane, store in enumerate(stores):
        (store.add if follows[lane] else store.append)(rows[:, lane])


def restored(start: State, columns: Mapping[str, np.ndarray], happened: Any) -> RowStore:
    """The rows of a stored run, and events that they do not tell; several rows of one step lie between its ends."""
    store, shapes = RowStore(start), tuple(values.shape[1:] for values in columns.values())
    store.fields = _fields(tuple(columns), shapes)
    rows = np.concatenate([values.reshape(len(values), -1).astype(float) for values in columns.values()], axis=1)
    store.first = {"elapsed" if name == "t" else name: values[0] for name, values in columns.items()}
    store.happened = happened
    store.add(rows[1:])
    return store


Fields = dict[str, tuple[slice, tuple[int, ...]]]


@functools.lru_cache
def _fields(names: tuple[str, ...], shapes: tuple[tuple[int, ...], ...]) -> Fields:
    """Where each field stands in a packed row, and its shape."""
    ends = itertools.accumulate(math.prod(shape) for shape in shapes)
    return {n: (slice(end - math.prod(shape), end), shape) for n, shape, end in zip(names, shapes, ends)}


_WHOLE = ("k", "status", "iterations", "evaluations", "mode", "event", "order")
