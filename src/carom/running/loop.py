"""The one loop: compiled chunks of attempts.

A chunk is one compiled program that runs attempts until a row limit, an attempt limit, the end, or a failure. Every
attempt leaves at most one row, one packed vector. A batch is the same loop around `vmap(attempt)`. The host's side
is `carom.running.run`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.interpolation import hermite, jet, quintic
from carom.methods.base import AbstractMethod
from carom.running.compiled import blank, compiled, traced_once
from carom.state import Carry, Counts, Row, State, Status
from carom.stepping.base import AbstractStepping
from carom.systems.system import System

_BUFFER_BYTES = 32e6
_BISECTIONS = 60
_LOOKS = 4  # parts of a step at whose ends, and between them, the stop condition is looked at
_RECENT = 8  # steps, more than a stepping goes back
_NARROW = 1000  # numbers in a row; writing fewer costs less than deciding not to
traces = 0


class Problem(NamedTuple):
    """What stays the same during a run."""

    system: System
    method: AbstractMethod
    stepping: AbstractStepping
    stop: Any
    save_every: Any


class Start(NamedTuple):
    """Where a run begins (of a batch: where its lanes begin)."""

    state: State
    instants: Any


class Layout(eqx.Module):
    """Names and shapes of the columns of a packed row."""

    names: tuple[str, ...] = eqx.field(static=True)
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    @classmethod
    def of(cls, row: Row) -> Layout:
        """Read the layout off a row (of one lane)."""
        leaves = jax.tree_util.tree_flatten_with_path(row)[0]
        names = tuple(
            jax.tree_util.keystr(path, simple=True, separator=".").removeprefix("info.") for path, _ in leaves
        )
        return cls(names, tuple(tuple(leaf.shape) for _, leaf in leaves))

    @property
    def width(self) -> int:
        """Numbers per row."""
        return sum(int(np.prod(shape)) for shape in self.shapes)


def pack(row: Row) -> Array:
    """A row as one float64 vector."""
    return jnp.concatenate([jnp.ravel(leaf).astype(jnp.float64) for leaf in jax.tree.leaves(row)])


def attempt(problem: Problem, carry: Carry) -> tuple[Carry, Row]:
    """One attempt of the stepping, the stop condition, and the decision what to keep."""
    system = problem.system.since(carry.epoch)
    new, row = problem.stepping.attempt(system, problem.method, carry)
    if carry.work is not None:
        new = eqx.tree_at(lambda c: c.work, new, worked(carry.work, row), is_leaf=lambda x: x is None)
    if not system.energy_is_seen and hides_nan(system, new.state):
        lost = row.keep & jnp.isnan(system.potential_energy(new.state.t, new.state.q))
        status = jnp.where(lost, Status.NOT_FINITE, new.status).astype(new.status.dtype)
        new = eqx.tree_at(lambda c: c.status, new, status)
    if problem.stop is not None:
        new, row = end_where_negative(problem, system, carry, new, row)
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
    """End the run where `stop(t, q, v)` first turns negative inside this step, on the Hermite interpolant.

    Looked at are points inside the step, and between them the bottoms of the cubics through values and slopes of
    `stop` there; a stop that becomes NaN is an error.
    """
    a, b = old.state, new.state
    v_b = b.v if row.info.v_minus is None else row.info.v_minus
    between = interpolant(system, problem.method.field(system, row.info.mode), a, b, v_b)

    def value(t: Array) -> Array:
        s = between(t)
        v = system.outer_velocity(s.t, s.q, s.v)
        return jnp.asarray(problem.stop(system.given, t=s.t, q=s.q, v=v), float).reshape(())

    def bisect(_, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = 0.5 * (low + high)
        over = ~(value(middle) >= 0)
        return jnp.where(over, low, middle), jnp.where(over, middle, high)

    def cut(first: tuple[Array, Array]) -> tuple[Carry, Row]:
        t = jax.lax.fori_loop(0, _BISECTIONS, bisect, first)[1]
        s = between(t)
        status = jnp.where(jnp.isnan(value(t)), Status.NOT_FINITE, Status.OK).astype(new.status.dtype)
        carry = eqx.tree_at(lambda c: (c.state, c.done, c.status), new, (s, jnp.asarray(True), status))
        v = system.outer_velocity(s.t, s.q, s.v)
        return carry, eqx.tree_at(lambda r: (r.t, r.h, r.q, r.v), row, (s.t, s.t - a.t, s.q, v))

    times, over = first_negative(value, a.t, b.t)
    first = jnp.argmax(over)
    crossed = row.keep & jnp.any(over) & (new.status == Status.OK) & (b.t > a.t)
    bracket = (times[jnp.maximum(first - 1, 0)], times[first])
    return jax.lax.cond(crossed, cut, lambda _: (new, row), bracket)


def first_negative(value: Any, a: Array, b: Array) -> tuple[Array, Array]:
    """Times in (a, b] in order, after a itself, and where a function of time is not positive or zero there."""
    grid = a + (b - a) * jnp.linspace(0.0, 1.0, _LOOKS + 1)
    y, slope = jax.vmap(lambda t: jax.jvp(value, (t,), (jnp.ones_like(t),)))(grid)
    width = (b - a) / _LOOKS
    fall, rise = width * slope[:-1], width * slope[1:]
    cubic, square = 2 * (y[:-1] - y[1:]) + fall + rise, 3 * (y[1:] - y[:-1]) - 2 * fall - rise
    root = square + jnp.sqrt(jnp.maximum(square**2 - 3 * cubic * fall, 0.0))
    turns = (fall < 0) & (rise > 0) & (root > 0)
    bottom = jnp.clip(jnp.where(turns, -fall / jnp.where(turns, root, 1.0), 0.5), 0.0, 1.0)
    inner = grid[:-1] + width * bottom
    times = jnp.append(grid[0], jnp.stack([inner, grid[1:]], axis=1).ravel())
    found = jnp.stack([jax.vmap(value)(inner), y[1:]], axis=1).ravel()
    return times, jnp.append(False, ~(found >= 0))


def interpolant(system: System, field: Any, a: State, b: State, v_b: Array) -> Callable[[Array], State]:
    """The state at any time of a step: of order 6 where the forces are known, else cubic in q and linear in v."""
    if field is None:
        slopes = system.rate(a.t, a.q, a.v), system.rate(b.t, b.q, v_b)

        def between(t: Array) -> State:
            q = hermite(a.t, b.t, a.q, b.q, *slopes, t)
            return b.moved(t, q, a.v + (t - a.t) / (b.t - a.t) * (v_b - a.v))

        return between
    inner = ((system.beside(a.t, 1), a.q, a.v), (system.beside(b.t, -1), b.q, v_b))  # forces may jump at ends
    before, after = (list(zip((q, v), *jet(field, s, q, v))) for s, q, v in inner)
    return lambda t: b.moved(t, *(quintic(a.t, b.t, start, end, t) for start, end in zip(before, after)))


@compiled
def advance(
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
    one_attempt = attempt
    if lanes is not None:
        one_attempt = eqx.filter_vmap(masked_attempt, in_axes=(axes, eqx.if_array(0)))
    tried, (_, row) = traced_once(one_attempt, problem, carry)
    lane = row if lanes is None else jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), row)
    layout = Layout.of(lane)
    room = max(1, min(rows, int(_BUFFER_BYTES / (8 * layout.width * (lanes or 1)))))
    shape = (room, layout.width) if lanes is None else (room, lanes, layout.width)
    buffer = jax.lax.empty(shape, jnp.float64)  # to fill it with zeros takes as long as a short run
    most_rows = jnp.minimum(limits[0], room)
    put = partial(jax.lax.dynamic_update_index_in_dim, axis=0)

    def alive(c: Carry) -> Array:
        return jnp.any(~c.done & (c.status == Status.OK))

    def running(loop):
        carry, _, counts = loop  # rows written, attempts made
        return alive(carry) & (counts[0] < most_rows) & (counts[1] < limits[1])

    def counted(counts: Array, emitted: Array) -> Array:
        return counts + jnp.stack([emitted.astype(counts.dtype), jnp.ones((), counts.dtype)])

    def narrow(loop):
        # Attempts until one leaves a row: a loop of its own, which does not touch the buffer and holds small arrays
        # only, and of kernels outside it there are few. XLA then runs all of them one after the other, without its
        # thread pool.
        def one(inner):
            carry, _, counts = inner
            new, row = tried(problem, carry)
            return new, pack(row), counted(counts, row.keep | (row.k < carry.k))

        carry, buffer, counts = loop
        rows = counts[0]

        def until_row(inner):
            return running(inner) & (inner[2][0] == rows)

        carry, packed, counts = jax.lax.while_loop(until_row, one, (carry, jnp.zeros(layout.width), counts))
        return carry, put(buffer, packed, rows), counts

    def wide(loop):
        # a row that is not kept is not written
        carry, buffer, counts = loop
        new, row = tried(problem, carry)
        emitted = row.keep | (row.k < carry.k)
        buffer = jax.lax.cond(emitted, lambda b, r: put(b, pack(r), counts[0]), lambda b, _: b, buffer, row)
        return new, buffer, counted(counts, emitted)

    def batch(loop):
        carry, buffer, counts = loop
        new, row = tried(problem, carry)
        emitted = jnp.any(row.keep | (row.k < carry.k))
        return new, put(buffer, jax.vmap(pack)(row), counts[0]), counted(counts, emitted)

    body = batch if lanes is not None else narrow if layout.width <= _NARROW else wide
    carry, buffer, counts = jax.lax.while_loop(running, body, (carry, buffer, jnp.zeros(2, jnp.int64)))
    failed = jnp.any(carry.status != Status.OK)
    return carry, buffer, layout, jnp.append(counts, jnp.stack([alive(carry), failed]).astype(counts.dtype))


def masked_attempt(problem: Problem, carry: Carry) -> tuple[Carry, Row]:
    """An attempt that leaves a finished lane as it is."""
    new, row = attempt(problem, carry)
    alive = ~carry.done & (carry.status == Status.OK)
    new = jax.tree.map(lambda a, b: jnp.where(alive, a, b), new, carry)
    return new, eqx.tree_at(lambda r: (r.k, r.keep), row, (jnp.where(alive, row.k, carry.k), row.keep & alive))


def begin(problem: Problem, start: Start, axes: Any = None) -> Carry:
    """The carry of a run that has not begun; of a batch, if `axes` names the batched parts of the problem."""
    if axes is None:
        return _begin(problem, *start)
    return eqx.filter_vmap(_begin, in_axes=(axes, eqx.if_array(0), 0))(problem, *start)


first_carry = compiled(begin)
blank_carry = blank(begin)


def _begin(problem: Problem, state: State, instants: Any) -> Carry:
    epoch, ends = instants[0], instants - instants[0]
    system, t = problem.system.since(epoch), ends[0]
    state = state.moved(t, state.q, system.inner_velocity(t, state.q, state.v))
    memory = problem.method.init(system, state)
    stepping = problem.stepping.init(system, problem.method, state, ends)
    zero = jnp.zeros((), jnp.int64)
    done = ends[-1] <= ends[0]
    recent = _RECENT if problem.stepping.goes_back else 1
    work = jnp.zeros(recent) if {"contacts", "friction"} & system.features else None
    more = (zero, zero, jnp.int32(Status.OK), done, Counts.zero(), work)
    carry = Carry(state, memory, stepping, ends, instants, *more)
    return jax.tree.map(jnp.asarray, carry)
