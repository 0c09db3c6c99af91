"""The one loop: compiled chunks of attempts.

A chunk is one compiled program that runs attempts until a row limit, an attempt limit, the end, or a failure. Every
attempt leaves at most one row, one packed vector. A batch is the same loop around `vmap(attempt)`. The host's side
is `carom.running.run`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.keep.base import Taken
from carom.keep.keeps import RECENT
from carom.methods.base import AbstractMethod
from carom.running.compiled import blank, compiled, compiled_hastily, traced_once
from carom.running.crossing import bisected, inside_step, looks, number_at
from carom.running.listing import looked, within_lists
from carom.state import Carry, Counts, Row, State, Status
from carom.stepping.base import AbstractStepping
from carom.systems.features import NONSMOOTH, Feature
from carom.systems.system import System

_BUFFER_BYTES = 32e6
_TOGETHER = {24: 8, 32: 4, 48: 6, 64: 2}  # rows up to so wide are written so many at once, in as few pieces as may be
SMALL = 64  # numbers: XLA calls arrays up to this small, 512 bytes
_NARROW = 1000  # numbers in a row; writing fewer costs less than deciding not to
traces = 0


class Problem(NamedTuple):
    """What stays the same during a run."""

    system: System
    method: AbstractMethod
    stepping: AbstractStepping
    stop: Any
    save_every: Any
    keeps: Any = None


class Start(NamedTuple):
    """Where a run begins (of a batch: where its lanes begin)."""

    state: State
    instants: Any
    pairs: Any = None


class Layout(eqx.Module):
    """Names and shapes of the columns of a packed row."""

    names: tuple[str, ...] = eqx.field(static=True)
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    @classmethod
    def of(cls, row: Row) -> Layout:
        """Read the layout off a row (of one lane)."""
        columns = row.columns
        return cls(tuple(columns), tuple(tuple(leaf.shape) for leaf in columns.values()))

    @property
    def width(self) -> int:
        """Numbers per row."""
        return sum(int(np.prod(shape)) for shape in self.shapes)


def pack(row: Row) -> Array:
    """A row as one float64 vector."""
    return jnp.concatenate([jnp.ravel(leaf).astype(jnp.float64) for leaf in jax.tree.leaves(row)])


def attempt(problem: Problem, carry: Carry) -> tuple[Carry, Row]:
    """One attempt of the stepping, the stop condition, and the decision what to keep."""
    return kept(problem, carry, *step(problem, carry))


def step(problem: Problem, carry: Carry) -> tuple[Carry, Row]:
    """One attempt of the stepping, and the stop condition."""
    system = problem.system.since(carry.epoch, carry.pairs)
    new, row = problem.stepping.attempt(system, problem.method, carry)
    if carry.pairs is not None:
        new, row = within_lists(problem, carry, new, row)
    if carry.work is not None:
        new = eqx.tree_at(lambda c: c.work, new, worked(carry.work, row), is_leaf=lambda x: x is None)
    if not system.energy_is_seen and hides_nan(system, new.state):
        lost = row.keep & jnp.isnan(system.potential_energy(new.state.t, new.state.q))
        status = jnp.where(lost, Status.NOT_FINITE, new.status).astype(new.status.dtype)
        new = eqx.tree_at(lambda c: c.status, new, status)
    if problem.stop is not None:
        new, row = end_where_negative(problem, system, carry, new, row)
    return new, row


def kept(problem: Problem, old: Carry, new: Carry, row: Row) -> tuple[Carry, Row]:
    """What an attempt leaves in the memories of keeps, and whether its row is written."""
    keeps, stepping = problem.keeps, problem.stepping
    if keeps is not None:
        parts = (problem.system.since(old.epoch, new.pairs), problem.method, stepping, old.state, new.state)
        memories = keeps.after(old.kept, old.k, Taken(*parts, row, row.keep))
        lost = keeps.not_finite(memories, new.k, stepping)
        status = new.status if lost is None else jnp.where(lost, Status.NOT_FINITE, new.status).astype(new.status.dtype)
        new = eqx.tree_at(lambda c: (c.kept, c.status), new, (memories, status), is_leaf=lambda x: x is None)
        row = keeps.row(row, problem.method)
    event = jnp.any(row.info.event != 0) if row.info.event is not None else False
    due = (jax.lax.rem(row.k, problem.save_every) == 0) | event | new.done
    return new, eqx.tree_at(lambda r: r.keep, row, row.keep & due)


def hides_nan(system: System, state: State) -> bool:
    """Whether the energy may be NaN where its gradient is finite: a constant that is, chosen by `jnp.where`."""
    written = str(jax.make_jaxpr(system.potential_energy)(state.t, state.q))
    return "nan" in written or "inf" in written


def worked(totals: Array, row: Row) -> Array:
    """The work of all laws after the latest steps, with that of a row that is kept."""
    if row.info.work is None:
        return totals
    n = totals.size
    if n == 1:
        return totals + jnp.where(row.keep, jnp.sum(row.info.work), 0.0)
    total = totals[jax.lax.rem(row.k + n - 1, n)] + jnp.sum(row.info.work)
    return jnp.where(row.keep & (np.arange(n) == jax.lax.rem(row.k, n)), total, totals)


def end_where_negative(problem: Problem, system: System, old: Carry, new: Carry, row: Row) -> tuple[Carry, Row]:
    """End the run where `stop(t, q, v)` first turns negative inside this step; a stop that becomes NaN is an error."""
    a, b = old.state, new.state
    between = inside_step(system, problem.method, a, b, row)

    def value(t: Array) -> Array:
        return number_at(problem.stop, system, between(t))

    def cut(first: tuple[Array, Array]) -> tuple[Carry, Row]:
        t = bisected(lambda t: ~(value(t) >= 0), *first)
        s = between(t)
        status = jnp.where(jnp.isnan(value(t)), Status.NOT_FINITE, Status.OK).astype(new.status.dtype)
        carry = eqx.tree_at(lambda c: (c.state, c.done, c.status), new, (s, jnp.asarray(True), status))
        v = system.outer_velocity(s.t, s.q, s.v)
        ended = eqx.tree_at(lambda r: (r.t, r.h, r.q, r.v), row, (s.t, s.t - a.t, s.q, v))
        return carry, ended if row.info.v_minus is None else eqx.tree_at(lambda r: r.info.v_minus, ended, v)

    times, values = looks(value, a.t, b.t)
    over = jnp.append(False, ~(values[1:] >= 0))
    first = jnp.argmax(over)
    crossed = row.keep & jnp.any(over) & (new.status == Status.OK) & (b.t > a.t)
    bracket = (times[jnp.maximum(first - 1, 0)], times[first])
    return jax.lax.cond(crossed, cut, lambda _: (new, row), bracket)


def _advance(
    problem: Problem,
    carry: Carry,
    start: Start | None,
    limits: Any,
    rows: int,
    lanes: int | None,
    axes: Any,
) -> tuple[Carry, Any, Layout, Any]:
    """Run attempts until `limits = (rows, attempts, fresh)`, the end, or a failure; from the start if `fresh`.

    Returns the carry, a buffer of packed rows (one per lane), the layout of a row, and in one vector the numbers of
    rows filled and of attempts made, whether any lane can go on, and whether any failed.
    """
    global traces  # noqa: PLW0603
    traces += 1
    if start is not None:
        given = carry
        carry = jax.lax.cond(limits[2] > 0, lambda: begin(problem, start, axes), lambda: given)
    one_attempt = attempt if carry.pairs is None else masked_attempt
    if lanes is not None:
        one_attempt = eqx.filter_vmap(masked_attempt, in_axes=(axes, eqx.if_array(0)))
    if carry.pairs is not None:
        one_attempt = _with_lists(one_attempt, axes)
    tried, (_, row) = traced_once(one_attempt, problem, carry)
    lane = row if lanes is None else jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), row)
    layout = Layout.of(lane)
    room = max(1, min(rows, int(_BUFFER_BYTES / (8 * layout.width * (lanes or 1)))))
    turn = batch_turn if lanes is not None else narrow_turn if layout.width <= _NARROW else wide_turn
    spare = together(layout.width) if turn is narrow_turn else 0
    shape = (room + spare, layout.width) if lanes is None else (room, lanes, layout.width)
    buffer = jax.lax.empty(shape, jnp.float64)  # to fill it with zeros takes as long as a short run
    most_rows = jnp.minimum(limits[0], room)
    first = carry.kept

    def alive(c: Carry) -> Array:
        return jnp.any(~c.done & (c.status == Status.OK))

    def running(loop):
        carry, _, counts = loop  # rows written, attempts made
        goes_on = alive(carry) & (counts[0] < most_rows) & (counts[1] < limits[1])
        if carry.pairs is not None:
            goes_on = goes_on & jnp.all(carry.status != Status.LIST_FULL)
        crowded = None if problem.keeps is None else problem.keeps.crowded(first, carry.kept)
        return goes_on if crowded is None else goes_on & ~crowded

    body = partial(turn, partial(tried, problem), running)
    carry, buffer, counts = jax.lax.while_loop(running, body, (carry, buffer, jnp.zeros(2, jnp.int64)))
    failed = jnp.any(carry.status != Status.OK)
    return carry, buffer, layout, jnp.append(counts, jnp.stack([alive(carry), failed]).astype(counts.dtype))


advance = compiled(_advance)
advance_by_emitters = compiled(_advance, {})
advance_hastily = compiled_hastily(_advance)


def narrow_turn(tried: Any, running: Any, loop: Any) -> Any:
    """Attempts until they have left a few rows, which are written together; till then columns lie in small arrays.

    They are a loop of their own, which does not touch the buffer and holds small arrays only, and of kernels outside
    it there are few. XLA then runs all of them one after the other, without its thread pool.
    """
    carry, buffer, counts = loop
    rows, width = counts[0], buffer.shape[1]
    few = together(width)
    borders = list(range(SMALL // few, width, SMALL // few)) if few > 1 else []

    def one(inner):
        carry, packed, counts, _ = inner
        new, row = tried(carry)
        emitted = row.keep | (row.k < carry.k)
        packed = [_put(some, x, counts[0] - rows) for some, x in zip(packed, jnp.split(pack(row), borders))]
        counts = _counted(counts, emitted)
        return new, packed, counts, running((new, None, counts)) & (counts[0] - rows < few)

    start = (carry, jnp.split(jnp.zeros((few, width)), borders, axis=1), counts, jnp.asarray(True))
    carry, packed, counts, _ = jax.lax.while_loop(lambda inner: inner[3], one, start)
    return carry, jax.lax.dynamic_update_slice_in_dim(buffer, jnp.concatenate(packed, axis=1), rows, 0), counts


def together(width: int) -> int:
    """How many rows of this width are written together."""
    return next((few for widest, few in _TOGETHER.items() if width <= widest), 1)


def wide_turn(tried: Any, running: Any, loop: Any) -> Any:
    """One attempt; a row that is not kept is not written."""
    del running
    carry, buffer, counts = loop
    new, row = tried(carry)
    emitted = row.keep | (row.k < carry.k)
    buffer = jax.lax.cond(emitted, lambda b, r: _put(b, pack(r), counts[0]), lambda b, _: b, buffer, row)
    return new, buffer, _counted(counts, emitted)


def batch_turn(tried: Any, running: Any, loop: Any) -> Any:
    """One attempt of all lanes; their rows are written if any of them is kept."""
    del running
    carry, buffer, counts = loop
    new, row = tried(carry)
    emitted = jnp.any(row.keep | (row.k < carry.k))
    return new, _put(buffer, jax.vmap(pack)(row), counts[0]), _counted(counts, emitted)


_put = partial(jax.lax.dynamic_update_index_in_dim, axis=0)


def _counted(counts: Array, emitted: Array) -> Array:
    return counts + jnp.stack([emitted.astype(counts.dtype), jnp.ones((), counts.dtype)])


def _with_lists(one_attempt: Any, axes: Any) -> Any:
    """Attempts that look at the lists of pairs first."""
    return lambda problem, carry: one_attempt(problem, looked(problem, carry, axes))


def masked_attempt(problem: Problem, carry: Carry) -> tuple[Carry, Row]:
    """An attempt that leaves a finished lane as it is."""
    new, row = step(problem._replace(method=problem.method.among_lanes()), carry)
    alive = ~carry.done & (carry.status == Status.OK)
    old = eqx.tree_at(lambda c: c.kept, carry, None, is_leaf=lambda x: x is None)
    new = jax.tree.map(lambda a, b: jnp.where(alive, a, b), new, old)
    row = eqx.tree_at(lambda r: (r.k, r.keep), row, (jnp.where(alive, row.k, carry.k), row.keep & alive))
    return kept(problem, carry, new, row)


def begin(problem: Problem, start: Start, axes: Any = None) -> Carry:
    """The carry of a run that has not begun; of a batch, if `axes` names the batched parts of the problem."""
    if axes is None:
        return _begin(problem, *start)
    return eqx.filter_vmap(_begin, in_axes=(axes, *(eqx.if_array(0),) * 3))(problem, *start)


first_carry = compiled(begin)
blank_carry = blank(begin)


def _begin(problem: Problem, state: State, instants: Any, pairs: Any) -> Carry:
    epoch, ends = instants[0], problem.system.turned(instants - instants[0])
    system, t = problem.system.since(epoch, pairs), ends[0]
    state = state.moved(t, state.q, system.inner_velocity(t, state.q, state.v))
    memory = problem.method.init(system, state)
    stepping = problem.stepping.init(system, problem.method, state, ends)
    zero = jnp.zeros((), jnp.int64)
    done = ends[-1] <= ends[0]
    recent = RECENT if problem.stepping.goes_back else 1
    work = jnp.zeros(recent) if (NONSMOOTH | {Feature.PAIR_MEMORY}) & system.features else None
    kept = None if problem.keeps is None else problem.keeps.init(system, state, problem.stepping)
    more = (zero, zero, jnp.int32(Status.OK), done, Counts.zero(), work, kept, pairs)
    carry = Carry(state, memory, stepping, ends, instants, *more)
    return jax.tree.map(jnp.asarray, carry)
