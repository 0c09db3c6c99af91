"""What keeps found in all lanes of a batch, as arrays with a row per lane and names for their other dimensions."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import jax
import numpy as np

from carom.keep.base import AbstractKeep, ring_of
from carom.keep.keeps import RECENT, Keeps
from carom.keep.places import AbstractInstants, Final, Section
from carom.keep.totals import AbstractTotal, Count, Peak
from carom.state import Status, shortened

REFUSED = -1  # status of a cell whose numbers cannot run


class Table(NamedTuple):
    """Numbers of every lane; `dims` names the dimensions after the first."""

    dims: tuple[str, ...]
    values: np.ndarray


Tables = dict[str, Table]


def tables(keeps: Keeps, carry: Any, goes_back: bool, failed: dict[int, str]) -> Tables:
    """Everything that was kept, NaN in lanes that failed, and beside it status and number of steps.

    Lanes that came to their end, but of which a function of the user's makes no numbers, join those that `failed`.
    """
    kept = memories(carry, goes_back)
    status = carry.status.astype(np.int32)
    found: Tables = {}
    for name, plain in plain_names(keeps).items():
        keep, memory = keeps.entries[name], kept[name]
        if isinstance(keep, AbstractTotal):
            memory, told = _finished(keep, memory, status == Status.OK, plain)
            failed |= told
            status[list(told)] = REFUSED
        for more, table in table_of(keep, memory, carry).items():
            values = np.asarray(table.values, float)
            found["_".join(filter(None, (plain, more)))] = Table(tuple(d.format(plain) for d in table.dims), values)
    bad = status != Status.OK
    if bad.any():
        found = {name: Table(dims, _without(bad, values)) for name, (dims, values) in found.items()}
    found["status"] = Table((), status)
    found["steps"] = Table((), np.where(carry.status < 0, 0, carry.counts.values[:, 0]))
    return found


def memories(carry: Any, goes_back: bool) -> Any:
    """What keeps know after the last step of every lane; the carry is on the host."""
    if not goes_back:
        return carry.kept
    lanes = np.arange(len(carry.k))
    return jax.tree.map(lambda x: x[lanes, carry.k % RECENT], carry.kept)


def _without(bad: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.where(bad.reshape(-1, *(1,) * (values.ndim - 1)), np.nan, values)


def _finished(keep: AbstractTotal, memory: Any, good: np.ndarray, name: str) -> tuple[Any, dict[int, str]]:
    """What a keep makes of lanes that came to their end, stacked, NaN for others (None if it is nothing at all).

    And of which lanes it makes no numbers, and why.
    """
    found, told, like = {}, {}, None
    for i in np.flatnonzero(good).tolist():
        try:
            one = jax.tree.map(_number, keep.finished(jax.tree.map(lambda x, i=i: x[i], memory)), is_leaf=_is_none)
        except Exception as error:
            told[i] = f"{name}: finish ended with {type(error).__name__}: {error}"
            continue
        shapes = jax.tree.structure(one), [x.shape for x in jax.tree.leaves(one)]
        like = like or shapes
        if shapes == like:
            found[i] = one
        else:
            told[i] = f"{name}: finish returned numbers of another shape than in other cells"
    if like is None:
        return None, told
    empty = jax.tree.unflatten(like[0], [np.full(shape, np.nan) for shape in like[1]])
    return jax.tree.map(lambda *x: np.stack(x), *(found.get(i, empty) for i in range(len(good)))), told


def _number(x: Any) -> np.ndarray:
    if np.asarray(x).dtype.kind not in "biuf":
        msg = f"numbers were expected, got {shortened(x)}"
        raise TypeError(msg)
    return np.asarray(x, float)


def _is_none(x: Any) -> bool:
    return x is None


def plain_names(keeps: Keeps) -> dict[str, str]:
    """Names in the dataset: that of the kind where there is one of it and no other name was given."""
    kinds = [one.kind for one in keeps.entries.values()]
    alone = {f"{kind} 0": kind for kind in kinds if kinds.count(kind) == 1}
    return {name: alone.get(name, name.replace(" ", "_")) for name in keeps.entries}


def result_names(keeps: Keeps) -> list[str]:
    """Names of all results, but for the endings that come from a dictionary of the user's own reduction."""
    found = []
    for name, plain in plain_names(keeps).items():
        keep = keeps.entries[name]
        endings = ("_t", "_q", "_v") if isinstance(keep, (Final, AbstractInstants, Section)) else ("",)
        found += [f"{plain}{ending}" for ending in (("", "_t", "_index") if isinstance(keep, Peak) else endings)]
    return found


@singledispatch
def table_of(keep: AbstractKeep, memory: Any, carry: Any) -> Tables:
    """What one keep found, by the ending of its name; the carry is on the host."""
    del memory, carry
    msg = f"carom.sweep does not know how to lay out {type(keep).__name__}; use carom.keep.reduce"
    raise TypeError(msg)


@table_of.register
def _(keep: Final, memory: Any, carry: Any) -> Tables:
    del keep, memory
    return _places(user_times(carry, carry.state.t), carry.state.q, carry.state.v, ())


@table_of.register(AbstractInstants)
@table_of.register(Section)
def _(keep: Any, memory: Any, carry: Any) -> Tables:
    del keep
    ring = ring_of(memory)
    assert ring is not None
    rows, n = _in_order(ring), carry.state.q.shape[-1]
    return _places(user_times(carry, rows[..., 0]), rows[..., 1 : n + 1], rows[..., n + 1 :], ("{}_number",))


@table_of.register
def _(keep: Peak, memory: Any, carry: Any) -> Tables:
    del keep
    return {
        "": Table((), memory.value),
        "t": Table((), user_times(carry, memory.t)),
        "index": Table((), memory.index),
    }


@table_of.register
def _(keep: Count, memory: Any, carry: Any) -> Tables:
    del keep, carry
    return {"": Table((), memory)}


@table_of.register
def _(keep: AbstractTotal, memory: Any, carry: Any) -> Tables:
    del keep, carry
    leaves = jax.tree_util.tree_leaves_with_path(memory)
    endings = [jax.tree_util.keystr(path, simple=True, separator="_") for path, _ in leaves]
    return {
        ending: Table(tuple(f"{{}}_{ending}_{i}".replace("__", "_") for i in range(x.ndim - 1)), x)
        for ending, (_, x) in zip(endings, leaves)
    }


def _places(t: np.ndarray, q: np.ndarray, v: np.ndarray, dims: tuple[str, ...]) -> Tables:
    return {"t": Table(dims, t), "q": Table((*dims, "coordinate"), q), "v": Table((*dims, "velocity_number"), v)}


def _in_order(ring: Any) -> np.ndarray:
    """The places of every lane from the oldest to the newest; NaN before them where there are fewer than room."""
    rows, count = ring.rows, ring.count
    room = rows.shape[1]
    number = count[:, None] - room + np.arange(room)
    ordered = np.take_along_axis(rows, (number % room)[..., None], axis=1)
    ordered[number < 0] = np.nan
    return ordered


def user_times(carry: Any, elapsed: np.ndarray) -> np.ndarray:
    """The user's times, from elapsed ones; ends of segments are exact."""
    shape = (-1,) + (1,) * (elapsed.ndim - 1)
    times = carry.instants[:, 0].reshape(shape) + elapsed
    for end, instant in zip(carry.ends.T, carry.instants.T):
        times = np.where(elapsed == end.reshape(shape), instant.reshape(shape), times)
    return times


def widened(table: Table, sizes: dict[str, int]) -> Table:
    """The table with room for the longest states; NaN where others end."""
    room = [sizes.get(dim, n) - n for dim, n in zip(table.dims, table.values.shape[1:])]
    if not any(room):
        return table
    return Table(table.dims, np.pad(table.values, [(0, 0), *((0, n) for n in room)], constant_values=np.nan))
