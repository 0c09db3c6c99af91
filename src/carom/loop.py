"""The one loop: compiled chunks of attempts, and the host that feeds them.

A chunk is one compiled program that runs attempts until a row limit, an attempt limit, the end, or a failure. Every
attempt leaves at most one row, one packed vector; the host appends rows, shows progress, sees Ctrl-C, calls the user's
callback, and turns a bad status into an exception that carries the partial solution. A batch is the same loop around
`vmap(attempt)`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.methods.base import AbstractMethod, hermite
from carom.progress import Progress, progress_bar
from carom.solution import RowStore, Solution
from carom.state import Carry, Counts, Interrupted, Numbers, Row, SimulationError, State, Status, lift
from carom.stepping import Constant
from carom.stepping.base import AbstractStepping
from carom.systems.arguments import names_of, user_function
from carom.systems.check import check
from carom.systems.system import System

_BUFFER_BYTES = 64e6
_CHUNK_SECONDS = 0.3
_MOST_ROWS = 4096
_BISECTIONS = 60
traces = 0


class Problem(eqx.Module):
    """What stays the same during a run."""

    system: System
    method: AbstractMethod
    stepping: AbstractStepping
    stop: Any
    save_every: Array


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
    new, row = problem.stepping.attempt(problem.system, problem.method, carry)
    if problem.stop is not None:
        new, row = end_where_negative(problem, carry, new, row)
    event = jnp.any(row.info.event != 0) if row.info.event is not None else False
    due = (row.k % problem.save_every == 0) | event | new.done
    return new, eqx.tree_at(lambda r: r.keep, row, row.keep & due)


def end_where_negative(problem: Problem, old: Carry, new: Carry, row: Row) -> tuple[Carry, Row]:
    """End the run inside this step if `stop(t, q, v)` turned negative, located on the Hermite interpolant."""
    system = problem.system
    a, b = old.state, new.state
    v_b = b.v if row.info.v_minus is None else row.info.v_minus

    def between(t: Array) -> State:
        q = hermite(a.t, b.t, a.q, b.q, system.rate(a.t, a.q, a.v), system.rate(b.t, b.q, v_b), t)
        slopes = (system.acceleration(a.t, a.q, a.v), system.acceleration(b.t, b.q, v_b))
        return b.moved(t, q, hermite(a.t, b.t, a.v, v_b, *slopes, t))

    def value(s: State) -> Array:
        v = system.outer_velocity(s.t, s.q, s.v)
        return jnp.asarray(problem.stop(system.params, t=s.t, q=s.q, v=v), float).reshape(())

    def bisect(_, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = 0.5 * (low + high)
        negative = value(between(middle)) < 0
        return jnp.where(negative, low, middle), jnp.where(negative, middle, high)

    def cut(_) -> tuple[Carry, Row]:
        t = jax.lax.fori_loop(0, _BISECTIONS, bisect, (a.t, b.t))[1]
        s = between(t)
        carry = eqx.tree_at(lambda c: (c.state, c.done), new, (s, jnp.asarray(True)))
        v = system.outer_velocity(s.t, s.q, s.v)
        return carry, eqx.tree_at(lambda r: (r.t, r.h, r.q, r.v), row, (s.t, s.t - a.t, s.q, v))

    crossed = row.keep & (value(b) < 0) & (new.status == Status.OK)
    return jax.lax.cond(crossed, cut, lambda _: (new, row), None)


class Static:
    """The part of a call that is not arrays; equal parts share one compiled program."""

    def __init__(self, tree: Any, rows: int, lanes: int | None, axes: Any):
        leaves, self.treedef = jax.tree.flatten((tree, axes))
        self.leaves, self.rows, self.lanes = tuple(leaves), rows, lanes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple:
        return self.treedef, self.leaves, self.rows, self.lanes

    def tree(self) -> Any:
        """The static tree and the axes of a batch."""
        return jax.tree.unflatten(self.treedef, self.leaves)


_layouts: dict[Any, Layout] = {}


def advance(problem: Problem, carry: Carry, limits: tuple[Any, Any], rows: int, lanes: int | None, axes: Any):
    """Run attempts until `limits = (rows, attempts)`, the end, or a failure; returns before the work is done.

    `equinox.filter_jit` would wait for the result, and Ctrl-C with it; hence `jax.jit` on the arrays and `Static` on
    the rest.
    """
    arrays, rest = eqx.partition((problem, carry), eqx.is_array)
    static = Static(rest, rows, lanes, axes)
    out = _advance(arrays, limits, static)
    return *out, _layouts[static, _shapes(arrays)]


def _shapes(arrays: Any) -> tuple:
    return tuple(leaf.shape for leaf in jax.tree.leaves(arrays))


@partial(jax.jit, static_argnums=2)
def _advance(arrays: Any, limits: tuple[Any, Any], static: Static):
    global traces  # noqa: PLW0603
    traces += 1
    rest, axes = static.tree()
    problem, carry = eqx.combine(arrays, rest)
    lanes = static.lanes
    one_attempt = attempt
    if lanes is not None:
        one_attempt = eqx.filter_vmap(masked_attempt, in_axes=(axes, eqx.if_array(0)))
    tried = eqx.filter_closure_convert(one_attempt, problem, carry)
    row = tried.out_struct[1]  # pyright: ignore[reportFunctionMemberAccess]
    one = row if lanes is None else jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), row)
    layout = _layouts[static, _shapes(arrays)] = Layout.of(one)
    room = max(1, min(static.rows, int(_BUFFER_BYTES / (8 * layout.width * (lanes or 1)))))
    buffer = jnp.zeros((room, layout.width) if lanes is None else (room, lanes, layout.width))
    most_rows = jnp.minimum(limits[0], room)

    def alive(c: Carry) -> Array:
        return jnp.any(~c.done & (c.status == Status.OK))

    def running(loop):
        carry, _, n, attempts = loop
        return alive(carry) & (n < most_rows) & (attempts < limits[1])

    def body(loop):
        carry, buffer, n, attempts = loop
        new, row = tried(problem, carry)
        packed = pack(row) if lanes is None else jax.vmap(pack)(row)
        emitted = jnp.any(row.keep | (row.k < carry.k))
        if lanes is None:
            buffer = jax.lax.cond(emitted, lambda b: b.at[n].set(packed), lambda b: b, buffer)
        else:
            buffer = buffer.at[n].set(packed)
        return new, buffer, n + emitted, attempts + 1

    zero = jnp.zeros((), jnp.int64)
    carry, buffer, n, attempts = jax.lax.while_loop(running, body, (carry, buffer, zero, zero))
    return carry, buffer, n, attempts


def masked_attempt(problem: Problem, carry: Carry) -> tuple[Carry, Row]:
    """An attempt that leaves a finished lane as it is."""
    new, row = attempt(problem, carry)
    alive = ~carry.done & (carry.status == Status.OK)
    new = jax.tree.map(lambda a, b: jnp.where(alive, a, b), new, carry)
    return new, eqx.tree_at(lambda r: (r.k, r.keep), row, (jnp.where(alive, row.k, carry.k), row.keep & alive))


class Run:
    """The host's side of a run, of one trajectory or of a batch of lanes."""

    def __init__(
        self,
        problem: Problem,
        carry: Carry,
        stores: list[RowStore],
        *,
        lanes: int | None = None,
        axes: Any = None,
        rows: int = _MOST_ROWS,
    ):
        self.problem, self.carry, self.stores = problem, carry, stores
        self.lanes, self.axes, self.rows = lanes, axes, rows
        self.attempts = 256
        self.seconds = self.compile_seconds = 0.0
        self.traces = 0

    def chunk(self) -> None:
        """Advance by one chunk and append its rows."""
        before, started = traces, time.perf_counter()
        limits = (np.int64(self.rows), np.int64(self.attempts))
        carry, buffer, n, attempts, layout = advance(self.problem, self.carry, limits, self.rows, self.lanes, self.axes)
        launched = time.perf_counter()
        while not n.is_ready():
            time.sleep(min(max(2e-5, 0.05 * (time.perf_counter() - launched)), 0.01))
        elapsed = time.perf_counter() - launched
        self.traces += traces - before
        self.compile_seconds += launched - started if traces > before else 0.0
        self.seconds += elapsed if traces > before else time.perf_counter() - started
        count = int(n)
        filled = np.array(np.asarray(buffer)[:count]) if count else np.zeros((0, *buffer.shape[1:]))
        for lane, store in enumerate(self.stores):
            store.append(layout.names, layout.shapes, filled if self.lanes is None else filled[:, lane])
        self.carry = carry
        if int(attempts) == self.attempts:
            wanted = self.attempts * _CHUNK_SECONDS / max(elapsed, 1e-4)
            self.attempts = int(np.clip(wanted, 1, 16 * self.attempts))

    @property
    def reached(self) -> float:
        """Time of the slowest lane."""
        return float(np.min(np.asarray(self.carry.state.t)))

    @property
    def finished(self) -> bool:
        """Whether no lane can go on."""
        return bool(np.all(np.asarray(self.carry.done) | (np.asarray(self.carry.status) != Status.OK)))

    def go(self, callback: Callable[[Run], Any] | None, bar: Progress) -> None:
        """Chunk after chunk to the end."""
        try:
            with bar:
                while not self.finished:
                    self.chunk()
                    bar.update(self.reached, int(np.sum(np.asarray(self.carry.counts.accepted))))
                    if callback is not None:
                        callback(self)
        except KeyboardInterrupt:
            msg = f"interrupted at t = {self.reached:.6g}; .solution holds what was computed, carom.resume goes on"
            raise Interrupted(msg, self.solution()) from None

    def solution(self, lane: int = 0) -> Solution:
        """What has been accepted so far (of one lane)."""
        pick = (lambda tree: tree) if self.lanes is None else (lambda tree: jax.tree.map(lambda x: x[lane], tree))
        carry = pick(self.carry)
        parts: list[Any] = [getattr(self.problem, name) for name in ("system", "method", "stepping")]
        if self.lanes is not None:
            axes = [getattr(self.axes, name) for name in ("system", "method", "stepping")]
            parts = [pick_lane(part, axis, lane) for part, axis in zip(parts, axes)]
        timing = {"seconds": self.seconds, "compile_seconds": self.compile_seconds, "traces": self.traces}
        system, method, stepping = parts
        return Solution(system, method, stepping, self.stores[lane].snapshot(), carry, timing)


def pick_lane(tree: Any, axis: Any, lane: int) -> Any:
    """One lane of a stacked tree, or the tree itself if it is shared."""
    return tree if axis is None else jax.tree.map(lambda x: x[lane] if eqx.is_array(x) else x, tree)


def simulate(
    system: System,
    state: State,
    method: AbstractMethod,
    *,
    t1: float,
    h: float | None = None,
    stepping: AbstractStepping | None = None,
    save_every: int = 1,
    save_at: Numbers | None = None,
    stop: Callable[..., Any] | None = None,
    callback: Callable[[Run], Any] | None = None,
    progress: bool | Progress | None = None,
) -> Solution:
    """Run `system` from `state` to `t1` with `method`.

    Args:
        system: the equations.
        state: where to start; its `t` is the first time.
        method: one step.
        t1: end of the run; every stepping lands exactly on it.
        h: constant step size (short for `stepping=Constant(h)`).
        stepping: who chooses the step size; give this or `h`.
        save_every: keep every n-th step (and the first, the last, and those with events).
        save_at: keep interpolated values at these times instead; the steps stay the same.
        stop: function `stop(t, q, v)`; the run ends where it turns negative.
        callback: called between chunks with the `Run`; `run.solution()` is what was accepted so far.
        progress: True or False for a progress bar; None shows one on a terminal when the run takes more than a second.

    Example:
        >>> chain, state = carom.models.dimer_chain(25, mass_ratio=0.59, damping=0.06)
        >>> sol = carom.simulate(chain, state, carom.TailoredIRK(), t1=30.0, h=0.1)
    """
    run = prepare(system, state, method, t1, _stepping(h, stepping), save_every, stop)
    return finish(run, callback, progress, save_at)


def prepare(
    system: System,
    state: State,
    method: AbstractMethod,
    t1: float,
    stepping: AbstractStepping,
    save_every: int = 1,
    stop: Callable[..., Any] | None = None,
    rows: int = _MOST_ROWS,
) -> Run:
    """Check everything and set up a run of one trajectory; `rows` bounds the rows of one chunk."""
    ends = segment_ends(system, state, t1)
    refuse(system, state, method, stepping, ends)
    problem = Problem(lift(system), lift(method), lift(stepping), _stop(stop), _save_every(save_every))
    return Run(problem, first_carry(problem, state, ends), [RowStore(state)], rows=rows)


def finish(run: Run, callback: Any, progress: Any, save_at: Numbers | None) -> Solution:
    """Run one trajectory to its end and hand out the solution, or raise with what was reached."""
    t0, *_, t1 = np.asarray(run.carry.ends).tolist()
    if save_at is not None:
        run.stores[0].thin_to(np.asarray(save_at, float), t0, t1)
    run.go(callback, progress_bar(progress, t0, t1))
    solution = run.solution()
    raise_if_failed(run, solution)
    remark = run.problem.method.remarks(solution)
    if remark:
        warnings.warn(remark, stacklevel=3)
    return solution if save_at is None else solution.interpolated(save_at)


def raise_if_failed(run: Run, solution: Solution) -> None:
    """Turn a bad status into an exception that names time, step, cause and remedy."""
    status = Status(int(solution.carry.status))
    if status is Status.OK:
        return
    cause, remedy = status.message
    t, k = float(solution.carry.state.t), int(solution.carry.k)
    msg = f"{cause} in the step from t = {t:.9g} (step {k + 1}) with {type(run.problem.method).__name__}. {remedy}."
    carry = solution.carry
    more = run.problem.method.explain(solution.system, carry.state, carry.memory, status) if run.lanes is None else ""
    msg = f"{msg} {more}" if more else msg
    raise SimulationError(msg, solution, status)


def simulate_batch(
    system: System | Sequence[System],
    state: State | Sequence[State],
    method: AbstractMethod | Sequence[AbstractMethod],
    *,
    t1: float | Sequence[float],
    h: float | Sequence[float] | None = None,
    stepping: AbstractStepping | Sequence[AbstractStepping] | None = None,
    save_every: int = 1,
    stop: Callable[..., Any] | None = None,
    progress: bool | Progress | None = None,
) -> list[Solution]:
    """Run many trajectories at once, in one compiled loop; every argument may be one value or a list.

    Systems, methods and steppings of a list must be of one kind (the same model or functions, other numbers). A lane
    that fails does not stop the others: its solution has `status` set, and `SimulationError` is raised only if every
    lane failed.

    Example:
        >>> chains, states = zip(*(carom.models.dimer_chain(25, r, 0.06) for r in (0.4, 0.6, 0.8)))
        >>> sols = carom.simulate_batch(chains, states, carom.TailoredIRK(), t1=30.0, h=0.1)
    """
    steppings = (
        stepping if h is None else [Constant(x) for x in h] if isinstance(h, (Sequence, np.ndarray)) else Constant(h)
    )
    if (h is None) == (stepping is None):
        _stepping(None if h is None else 1.0, None if stepping is None else Constant(1.0))
    columns = {"system": system, "state": state, "method": method, "stepping": steppings, "t1": t1}
    lists = {name: list(c) for name, c in columns.items() if isinstance(c, (Sequence, np.ndarray))}
    sizes = {name: len(c) for name, c in lists.items()}
    if len(set(sizes.values())) != 1 or 0 in sizes.values():
        msg = f"simulate_batch: the lists must have one common length of at least 1, got {sizes or 'no list'}"
        raise ValueError(msg)
    lanes = next(iter(sizes.values()))
    each = [{name: lists[name][i] if name in lists else c for name, c in columns.items()} for i in range(lanes)]
    carries = []
    for lane in each:
        ends = segment_ends(lane["system"], lane["state"], lane["t1"])
        refuse(lane["system"], lane["state"], lane["method"], lane["stepping"], ends)
        problem = Problem(
            lift(lane["system"]), lift(lane["method"]), lift(lane["stepping"]), _stop(stop), _save_every(save_every)
        )
        carries.append(first_carry(problem, lane["state"], ends))
    parts = [
        stack([lift(x) for x in lists[n]], n) if n in lists else lift(columns[n])
        for n in ("system", "method", "stepping")
    ]
    axis = {name: eqx.if_array(0) if name in lists else None for name in ("system", "method", "stepping")}
    axes = Problem(axis["system"], axis["method"], axis["stepping"], None, None)  # pyright: ignore
    problem = Problem(parts[0], parts[1], parts[2], _stop(stop), _save_every(save_every))
    stores = [RowStore(lane["state"]) for lane in each]
    run = Run(problem, stack(carries, "state"), stores, lanes=lanes, axes=axes)
    t0, t_end = float(np.min(run.carry.state.t)), float(np.max(run.carry.ends))
    run.go(None, progress_bar(progress, t0, t_end))
    solutions = [run.solution(lane) for lane in range(lanes)]
    if all(s.status != Status.OK for s in solutions):
        raise_if_failed(run, solutions[0])
    return solutions


def stack(trees: list[Any], name: str) -> Any:
    """Stack trees of one kind, array by array."""
    first = eqx.partition(trees[0], eqx.is_array)[1]
    for i, tree in enumerate(trees):
        if not eqx.tree_equal(first, eqx.partition(tree, eqx.is_array)[1]):
            msg = f"simulate_batch: {name}[{i}] is of another kind than {name}[0]; only the numbers may differ"
            raise ValueError(msg)
    try:
        return jax.tree.map(lambda *xs: jnp.stack(xs) if eqx.is_array(xs[0]) else xs[0], *trees)
    except ValueError as error:
        msg = f"simulate_batch: the arrays of {name} must have the same shapes in every lane ({error})"
        raise ValueError(msg) from None


def first_carry(problem: Problem, state: State, ends: np.ndarray) -> Carry:
    """The start of a run."""
    return _first_carry(problem, state, jnp.asarray(ends))


@eqx.filter_jit
def _first_carry(problem: Problem, state: State, ends: Array) -> Carry:
    system = problem.system
    state = state.moved(state.t, state.q, system.inner_velocity(state.t, state.q, state.v))
    memory = problem.method.init(system, state)
    stepping = problem.stepping.init(system, problem.method, state, ends)
    zero = jnp.zeros((), jnp.int64)
    carry = Carry(state, memory, stepping, ends, zero, jnp.int32(Status.OK), ends[-1] <= ends[0], Counts.zero())
    return jax.tree.map(jnp.asarray, carry)


def segment_ends(system: System, state: State, t1: float) -> np.ndarray:
    """Start, jumps strictly inside, end."""
    t0 = float(state.t)
    if not (np.isfinite(t1) and t1 >= t0):
        msg = f"t1 must be finite and not before the start, got t1 = {t1} with t0 = {t0:g}"
        raise ValueError(msg)
    jumps = np.asarray(system.jumps)
    return np.concatenate([[t0], jumps[(jumps > t0) & (jumps < t1)], [t1]])


def refuse(system: System, state: State, method: AbstractMethod, stepping: AbstractStepping, ends: np.ndarray) -> None:
    """Raise, by name, for anything the method or the stepping does not take into account."""
    if not jax.config.read("jax_enable_x64"):
        msg = "carom needs 64-bit floats: remove CAROM_X64=0 or set jax_enable_x64"
        raise ValueError(msg)
    for value, kind, name in ((system, System, "system"), (state, State, "state"), (method, AbstractMethod, "method")):
        if not isinstance(value, kind):
            msg = f"{name} must be a carom {kind.__name__.removeprefix('Abstract')}, got {type(value).__name__}"
            raise TypeError(msg)
    unhandled = sorted(system.features - method.handles)
    if unhandled:
        msg = f"{type(method).__name__} does not handle {names_of(unhandled)} of this system"
        raise ValueError(msg)
    missing = sorted(stepping.needs - method.gives)
    if missing:
        msg = f"{type(stepping).__name__} needs {names_of(missing)}, which {type(method).__name__} does not give"
        raise ValueError(msg)
    for objection in (method.objection(system), stepping.objection(system, state, ends)):
        if objection:
            raise ValueError(objection)
    check(system, state)


def _stepping(h: float | None, stepping: AbstractStepping | None) -> AbstractStepping:
    if (h is None) == (stepping is None):
        msg = "give either h= (a constant step) or stepping=, not both and not none"
        raise ValueError(msg)
    return Constant(h) if stepping is None else stepping  # pyright: ignore


def _stop(stop: Callable[..., Any] | None) -> Any:
    return None if stop is None else user_function(stop, "stop", ("t", "q", "v"))


def _save_every(save_every: int) -> Array:
    if not (isinstance(save_every, (int, np.integer)) and save_every >= 1):
        msg = f"save_every must be a whole number of at least 1, got {save_every}"
        raise ValueError(msg)
    return jnp.asarray(np.int64(save_every))
