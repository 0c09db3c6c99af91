"""Small arrays whose numbers are vectors over lanes: where numbers lie, sums, computed places, small linear systems."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from typing import Any

import jax
import numpy as np

from carom.running.lane_numbers import (
    UnknownOperationError,
    Value,
    absolute,
    add,
    apart,
    both,
    computed,
    constant,
    div,
    each,
    either,
    eq,
    equal,
    ge,
    gt,
    known,
    larger,
    le,
    mul,
    ne,
    select,
    smaller,
    sub,
)

_PLACES = 2048  # numbers that are looked at for one: of longer tables arrays know where they lie
RULES: dict[str, Callable[..., Any]] = {}


def rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Note a rule for these operations: equation and arrays to arrays."""

    def note(fn: Callable[..., Any]) -> Callable[..., Any]:
        RULES.update(dict.fromkeys(names, fn))
        return fn

    return note


def _refuse(is_so: bool, what: str) -> None:
    if is_so:
        raise UnknownOperationError(what)


# ---- where numbers lie ----------------------------------------------------------------------------------------------


@rule("broadcast_in_dim")
def _(_: Any, x: Value, *__: Any, shape: Any, broadcast_dimensions: Any, **___: Any) -> Value:
    widened = [1] * len(shape)
    for size, axis in zip(x.shape, broadcast_dimensions):
        widened[axis] = size
    return np.broadcast_to(x.reshape(widened), shape)


@rule("reshape", "squeeze", "expand_dims")
def _(equation: Any, x: Value, **_: Any) -> Value:
    return x.reshape(equation.outvars[0].aval.shape)


@rule("transpose")
def _(_: Any, x: Value, permutation: Any) -> Value:
    return x.transpose(permutation)


@rule("rev")
def _(_: Any, x: Value, dimensions: Any) -> Value:
    return np.flip(x, dimensions)


@rule("slice")
def _(_: Any, x: Value, start_indices: Any, limit_indices: Any, strides: Any) -> Value:
    return x[tuple(itertools.starmap(slice, zip(start_indices, limit_indices, strides or [1] * x.ndim)))]


@rule("concatenate")
def _(_: Any, *given: Value, dimension: int) -> Value:
    return np.concatenate(given, axis=dimension)


@rule("stack")
def _(_: Any, *given: Value, axis: int = 0, **__: Any) -> Value:
    return np.stack(given, axis=axis)


@rule("unstack")
def _(equation: Any, x: Value, axis: int = 0, **_: Any) -> list[Value]:
    return [np.take(x, [k], axis).reshape(v.aval.shape) for k, v in enumerate(equation.outvars)]


@rule("split")
def _(_: Any, x: Value, sizes: Any, axis: int) -> list[Value]:
    return np.split(x, np.cumsum(sizes)[:-1], axis)


@rule("pad")
def _(_: Any, x: Value, filling: Value, padding_config: Any) -> Value:
    for axis, (low, high, gap) in enumerate(padding_config):
        n = x.shape[axis] + gap * max(x.shape[axis] - 1, 0)
        sizes = [max(low, 0) + n + max(high, 0) if i == axis else m for i, m in enumerate(x.shape)]
        found, lead = np.broadcast_to(filling, sizes).copy(), (slice(None),) * axis
        found[(*lead, slice(max(low, 0), max(low, 0) + n, gap + 1))] = x
        x = found[(*lead, slice(max(-low, 0), sizes[axis] + min(high, 0)))]
    return x


@rule("iota")
def _(_: Any, *__: Any, dtype: Any, shape: Any, dimension: int, **___: Any) -> Value:
    return constant(np.indices(shape)[dimension].astype(dtype))


# ---- sums -----------------------------------------------------------------------------------------------------------

_REDUCTIONS = {
    "reduce_sum": add, "reduce_prod": mul, "reduce_max": larger, "reduce_min": smaller, "reduce_or": either,
    "reduce_and": both,
}  # fmt: skip


@rule(*_REDUCTIONS)
def _(equation: Any, x: Value, axes: Any, **more: Any) -> Value:
    pair, aval = _REDUCTIONS[equation.primitive.name], equation.outvars[0].aval
    if not x.size:
        return constant(computed(equation.primitive, {"axes": axes, **more}, np.empty(x.shape, aval.dtype)))
    kept = [i for i in range(x.ndim) if i not in axes]
    rows = x.transpose([*kept, *axes]).reshape(aval.size, -1)
    return apart([reduce(pair, row) for row in rows], aval.shape)


@rule("cumsum")
def _(_: Any, x: Value, axis: int, reverse: bool) -> Value:
    rows = np.moveaxis(x, axis, 0).copy()
    for before, i in itertools.pairwise(range(len(rows))[::-1] if reverse else range(len(rows))):
        rows[i, ...] = each(add, rows.shape[1:], rows[before, ...], rows[i, ...])
    return np.moveaxis(rows, 0, axis)


@rule("argmax", "argmin")
def _(equation: Any, x: Value, axes: Any, index_dtype: Any) -> Value:
    better = gt if equation.primitive.name == "argmax" else lambda x, y: gt(y, x)
    rows = np.moveaxis(x, axes[0], 0)
    found = np.empty(rows.shape[1:], object)
    for j in np.ndindex(found.shape):
        best, where = rows[(0, *j)], np.dtype(index_dtype).type(0)
        for i in range(1, len(rows)):
            wins = _first_nan(rows[(i, *j)], best, better(rows[(i, *j)], best))
            best, where = select(wins, rows[(i, *j)], best), select(wins, np.dtype(index_dtype).type(i), where)
        found[j] = where
    return found


def _first_nan(x: Any, y: Any, otherwise: Any) -> Any:
    """True where x alone is NaN, and False where y is."""
    if x.dtype.kind != "f":
        return otherwise
    return both(eq(y, y), either(ne(x, x), otherwise))


@rule("dot_general")
def _(equation: Any, a: Value, b: Value, dimension_numbers: Any, **_: Any) -> Value:
    (ca, cb), (ba, bb) = dimension_numbers
    _refuse(len({x.aval.dtype for x in (*equation.invars, *equation.outvars)}) > 1, "a product of two kinds of numbers")
    fa, fb = ([i for i in range(x.ndim) if i not in (*c, *s)] for x, c, s in ((a, ca, ba), (b, cb, bb)))
    batch, m, n = ([x.shape[i] for i in axes] for x, axes in ((a, ba), (a, fa), (b, fb)))
    left = a.transpose([*ba, *fa, *ca]).reshape(*batch, int(np.prod(m)), -1)
    right = b.transpose([*bb, *fb, *cb]).reshape(*batch, int(np.prod(n)), -1)
    found = np.empty([*batch, int(np.prod(m)), int(np.prod(n))], object)
    zero = equation.outvars[0].aval.dtype.type(0)
    for *i, j, k in np.ndindex(found.shape):
        found[(*i, j, k)] = reduce(add, map(mul, left[(*i, j)], right[(*i, k)]), zero)
    return found.reshape([*batch, *m, *n])


# ---- places that are computed ---------------------------------------------------------------------------------------


def _clipped(start: Any, most: int) -> Any:
    return smaller(larger(start, start.dtype.type(0)), start.dtype.type(most))


def _chosen(x: Value, starts: Sequence[Any], sizes: Sequence[int]) -> Value:
    """The block of these sizes that begins at `starts`."""
    for axis, (start, size) in enumerate(zip(starts, sizes)):
        most = x.shape[axis] - size
        at = _clipped(start, most)
        _refuse_places([at], most * size * x.size // x.shape[axis])
        parts = [np.take(x, range(k, k + size), axis) for k in range(most + 1)]
        x = reduce(lambda found, k: _where(equal(at, k), parts[k], found), range(1, most + 1), parts[0])  # noqa: B023
    return x


def _refuse_places(at: Iterable[Any], choices: int) -> None:
    """Raise where one of so many numbers has to be chosen, or where its place may be too small a number to tell."""
    _refuse(any(x.dtype.itemsize < 4 for x in at), "places in short numbers")
    _refuse(choices > _PLACES and not all(map(known, at)), "a long table")


def _where(condition: Any, a: Value, b: Value) -> Value:
    return each(partial(select, condition), a.shape, a, b)


@rule("dynamic_slice")
def _(_: Any, x: Value, *starts: Value, slice_sizes: Any, **__: Any) -> Value:
    return _chosen(x, [s[()] for s in starts], slice_sizes)


@rule("dynamic_update_slice")
def _(_: Any, x: Value, new: Value, *starts: Value) -> Value:
    begins = [range(n - m + 1) for n, m in zip(x.shape, new.shape)]
    at = [_clipped(s[()], len(b) - 1) for s, b in zip(starts, begins)]
    return _put(x, new, begins, dict(enumerate(at)), lambda _, new: new)


def _put(x: Value, new: Value, begins: Sequence[range], at: dict[int, Any], combined: Callable[..., Any]) -> Value:
    """x with a block in it that begins at one of these places: where the numbers `at` say so."""
    _refuse_places(at.values(), new.size * int(np.prod([len(places) for places in begins])))
    found = x.copy()
    for corner in itertools.product(*begins):
        here = reduce(both, [equal(start, corner[axis]) for axis, start in at.items()], np.bool_(True))
        if known(here) and not here:
            continue
        block = tuple(slice(k, k + m) for k, m in zip(corner, new.shape))
        found[block] = _where(here, each(combined, new.shape, found[block], new), found[block])
    return found


@rule("gather")
def _(
    equation: Any, x: Value, indices: Value, dimension_numbers: Any, slice_sizes: Any, mode: Any, **more: Any
) -> Value:
    numbers, aval, empty = dimension_numbers, equation.outvars[0].aval, more["fill_value"]
    gone = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    batch = [i for i in range(len(aval.shape)) if i not in numbers.offset_dims]
    found = np.empty(aval.shape, object)
    for b in np.ndindex(indices.shape[:-1]):
        starts: list[Any] = [np.int64(0)] * x.ndim
        for axis, where in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims):
            starts[axis] = np.int64(b[where])
        inside: Any = np.bool_(True)
        for axis, start in zip(numbers.start_index_map, indices[b]):
            starts[axis], most = start, start.dtype.type(x.shape[axis] - slice_sizes[axis])
            inside = both(inside, both(ge(start, start.dtype.type(0)), le(start, most)))
        part = _chosen(x, starts, slice_sizes)
        if mode == jax.lax.GatherScatterMode.FILL_OR_DROP:
            part = _where(inside, part, np.broadcast_to(constant(aval.dtype.type(empty)), part.shape))
        place: list[Any] = [slice(None)] * len(aval.shape)
        for axis, k in zip(batch, b):
            place[axis] = k
        part = part.reshape([n for i, n in enumerate(part.shape) if i not in gone])
        found[tuple(place)] = part if part.ndim else part[()]
    return found


@rule("scatter", "scatter-add", "scatter_add")
def _(equation: Any, x: Value, indices: Value, updates: Value, dimension_numbers: Any, mode: Any, **more: Any) -> Value:
    numbers, found = dimension_numbers, x
    is_set, own = equation.primitive.name == "scatter", more.get("update_jaxpr")
    _refuse(is_set and own is not None and own.outvars[0] is not own.invars[1], "a function of places")
    combined = (lambda _, new: new) if is_set else add
    gone = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    batch = [i for i in range(updates.ndim) if i not in numbers.update_window_dims]
    for b in np.ndindex(indices.shape[:-1]):
        place: list[Any] = [slice(None)] * updates.ndim
        for axis, k in zip(batch, b):
            place[axis] = k
        window = updates[(*place, ...)]
        sizes = iter(window.shape)
        block = [1 if i in gone else next(sizes) for i in range(x.ndim)]
        begins = [range(1)] * x.ndim
        for axis, where in zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims):
            begins[axis] = range(b[where], b[where] + 1)
        at = {}
        for axis, start in zip(numbers.scatter_dims_to_operand_dims, indices[b]):
            begins[axis] = range(x.shape[axis] - block[axis] + 1)
            at[axis] = _clipped(start, len(begins[axis]) - 1) if mode == jax.lax.GatherScatterMode.CLIP else start
        found = _put(found, window.reshape(block), begins, at, combined)
    return found


# ---- small linear systems -------------------------------------------------------------------------------------------


def _less(total: Any, a: Any, b: Any) -> Any:
    return sub(total, mul(a, b))


@rule("triangular_solve")
def _(_: Any, a: Value, b: Value, left_side: bool, lower: bool, unit_diagonal: bool, **more: Any) -> Value:
    _refuse(a.ndim > 2, "a batch of small linear systems")
    if more["transpose_a"]:
        a, lower = a.T, not lower
    if not left_side:
        a, b, lower = a.T, b.T, not lower
    n, x = len(a), b.copy()
    for i, k in itertools.product(range(n) if lower else range(n)[::-1], range(b.shape[1])):
        for j in range(i) if lower else range(i + 1, n):
            x[i, k] = _less(x[i, k], a[i, j], x[j, k])
        x[i, k] = x[i, k] if unit_diagonal else div(x[i, k], a[i, i])
    return x if left_side else x.T


@rule("lu")
def _(_: Any, a: Value, **__: Any) -> list[Value]:
    """Elimination with pivots: the factors, which rows were exchanged, and their order."""
    _refuse(a.ndim > 2, "a batch of small linear systems")
    a, (m, n) = a.copy(), a.shape
    pivots, order = np.empty(min(m, n), object), constant(np.arange(m, dtype=np.int32))
    for k in range(min(m, n)):
        best, where = absolute(a[k, k]), np.int32(k)
        for i in range(k + 1, m):
            wins = gt(absolute(a[i, k]), best)
            best, where = select(wins, absolute(a[i, k]), best), select(wins, np.int32(i), where)
        pivots[k] = where
        for i in range(k + 1, m):
            for rows in (a, order[:, None]):
                rows[k], rows[i] = (_where(equal(where, i), x, y) for x, y in ((rows[i], rows[k]), (rows[k], rows[i])))
        pivot = select(equal(a[k, k], 0), a[k, k].dtype.type(1), a[k, k])
        for i in range(k + 1, m):
            a[i, k] = div(a[i, k], pivot)
            a[i, k + 1 :] = apart([_less(x, a[i, k], y) for x, y in zip(a[i, k + 1 :], a[k, k + 1 :])], (n - k - 1,))
    return [a, pivots, order]


@rule("sort")
def _(_: Any, *given: Value, num_keys: int, **__: Any) -> list[Value]:
    """By the first, of one dimension."""
    _refuse(given[0].ndim > 1 or num_keys > 1, "lists to sort by several keys or in a batch")
    rows = [x.copy() for x in given]
    for end in range(len(rows[0]) - 1, 0, -1):
        for i in range(end):
            a, b = rows[0][i], rows[0][i + 1]
            wrong = _first_nan(a, b, gt(a, b))
            for row in rows:
                row[i], row[i + 1] = select(wrong, row[i + 1], row[i]), select(wrong, row[i], row[i + 1])
    return rows
