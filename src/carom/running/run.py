"""The host's side of a run: checks, chunks, progress, Ctrl-C, callbacks, and failures turned into exceptions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import jax
import numpy as np
from jax.core import Tracer

from carom.keep.keeps import Keeps
from carom.methods.base import AbstractMethod
from carom.rows import RowStore, append, times_in_order
from carom.running import loop
from carom.running.asking import (
    check_stop_once,
    chosen_stepping,
    refuse,
    refuse_kinds,
    refuse_traced,
    segment_ends,
    stepped,
    stop_function,
    stride,
)
from carom.running.compiled import needed_rescue, remember_rescue, remembered, split
from carom.running.evidence import warn_of_created_energy
from carom.running.keeping import (
    Keeping,
    at_kept_times,
    chosen_keeps,
    has_all_columns,
    not_finite,
    reached,
    thin,
    warn_of_keeps,
)
from carom.running.listing import roomier, warn_of_overlaps
from carom.running.loop import Problem, Start, begin, blank_carry, first_carry
from carom.running.progress import Progress, progress_bar
from carom.running.signals import deferred, look
from carom.running.threads import one_for_lapack
from carom.solution import Solution
from carom.state import Carry, Interrupted, Numbers, SimulationError, State, Status
from carom.stepping.base import AbstractStepping
from carom.systems.check import not_finite_ahead
from carom.systems.first_lists import first_pairs
from carom.systems.system import System

_CHUNK_SECONDS = 0.3
_SPIN_SECONDS = 2e-3  # in the first chunk: the shortest sleep takes as long as a short run
_let_others_run = getattr(os, "sched_yield", lambda: None)
_MOST_ROWS = 2048
_REJECTED = 8.0  # times the size proposed after a failure: more than the size that failed
_KNOWN = (Status.NO_CONSISTENT_MODE, Status.SEVERAL_CONSISTENT_MODES, Status.TOO_MANY_EVENTS)  # not for want of numbers
_LARGE = 24  # coordinates: from there on steps that call LAPACK take as long however the rest is compiled
_FIRST_NUMBERS = 2e6  # coordinates times attempts of the first chunk; later ones are timed


@remembered
def leaner(method: AbstractMethod) -> AbstractMethod | None:
    """The method without what its steps rarely need; None if that is the method itself."""
    lean = type(method).lean(method)
    return None if lean is method else lean


class Run:
    """The host's side of a run, of one trajectory or of a batch of lanes.

    `carry` is where a run goes on; without one it begins at `start`, in its first chunk. One trajectory is run with the
    lean form of its method; a chunk that needs more is repeated with the method itself, with which the run goes on.
    """

    def __init__(
        self,
        problem: Problem,
        parts: list[tuple[System, AbstractMethod, AbstractStepping]],
        start: Start,
        stores: list[RowStore],
        *,
        carry: Carry | None = None,
        axes: Any = None,
        rows: int = _MOST_ROWS,
        finished: bool = False,
    ):
        self.problem, self.parts, self.start, self.stores = problem, parts, start, stores
        fixed: Any = Problem._make(map(split, problem))  # a run keeps to what its functions read at its start
        self.whole: Any = split(fixed)
        self.frozen: Any = self.whole
        lean = leaner(problem.method) if axes is None else None
        if lean is not None and self.whole.kind.key not in needed_rescue:
            self.frozen = split(fixed._replace(method=lean))
        self.axes, self.rows, self._carry = axes, rows, carry
        self.compiled_start = start
        if problem.method.concrete_init or start.pairs is not None:  # lists are large: a chunk holds them once
            if carry is None:
                self._carry = begin(problem, start, axes) if problem.method.concrete_init else self.carry
            self.start, self.compiled_start = start._replace(pairs=None), None
        self.keeping = None if problem.keeps is None else Keeping(problem.keeps, len(stores))
        self.lanes = None if axes is None else len(stores)
        self.attempts = int(min(max(_FIRST_NUMBERS / start.state.q.size, 4), 512))
        self.seconds = self.compile_seconds = 0.0
        self.traces = 0
        self.finished = finished
        self.failed = self.cancelled = False
        self._host_copy: tuple[Any, Any] = (None, None)

    @property
    def program(self) -> Any:
        """The compiled loop, by the compiler that suits the method."""
        method, large = self.problem.method, self.start.state.q.shape[-1] >= _LARGE
        usual = loop.advance_hastily if method.mostly_lapack and large else loop.advance
        return loop.advance_by_emitters if method.newer_emitters else usual

    def chunk(self) -> None:
        """Advance by one chunk and append its rows."""
        before, started = loop.traces, time.perf_counter()
        fresh = self._carry is None
        carry = blank_carry(self.frozen, self.start, self.axes) if fresh else self.carry
        more = (self.compiled_start, np.array([self.rows, self.attempts, fresh]), self.rows, self.lanes, self.axes)
        carry, buffer, layout, summary = self.program(self.frozen, carry, *more)
        launched = time.perf_counter()
        spin = _SPIN_SECONDS if not self.seconds else 0.0
        while not summary.is_ready():
            look()
            waited = time.perf_counter() - launched
            if waited < spin:
                _let_others_run()
            else:
                time.sleep(min(max(0.01 * waited, 2e-5), 0.01))
        elapsed = time.perf_counter() - launched
        compiled = loop.traces - before
        self.traces += compiled
        self.compile_seconds += launched - started if compiled else 0.0
        self.seconds += elapsed if compiled else time.perf_counter() - started
        count, attempts, alive, self.failed = np.asarray(summary).tolist()
        if self.failed and self.frozen is not self.whole and int(carry.status) == Status.NEEDS_RESCUE:
            remember_rescue(self.whole.kind.key)
            self.frozen = self.whole
            self.chunk()
            return
        if self.failed and carry.pairs is not None and np.any(np.asarray(carry.status) == Status.LIST_FULL):
            carry, self.compiled_start = roomier(carry), None
            self.failed = bool(np.any(np.asarray(carry.status) != Status.OK))
            alive = not np.any(np.asarray(carry.status) == Status.LIST_FULL)
        self.finished = not alive
        if count:
            filled = filled_rows(buffer, count)
            append(self.stores, layout, filled if self.lanes is not None else filled[:, None])
        self._carry = carry
        if self.keeping is not None:
            self.keeping.take(carry, self.problem.stepping.goes_back)
        if attempts == self.attempts:
            wanted = self.attempts * _CHUNK_SECONDS / max(elapsed, 1e-4)
            self.attempts = int(np.clip(wanted, 1, 16 * self.attempts))

    @property
    def carry(self) -> Carry:
        """All that is needed to go on."""
        if self._carry is None:
            self._carry = first_carry(self.frozen, self.start, self.axes)
        return self._carry

    @property
    def reached(self) -> float:
        """Time of the slowest lane."""
        if self._carry is None:
            return float(np.min(np.asarray(self.start.state.t)))
        system, elapsed = self.problem.system, np.asarray(self._carry.state.t)
        slowest = np.max if system.backward else np.min
        return float(slowest(np.asarray(self._carry.instants)[..., 0] + system.turned(elapsed)))

    def go(self, callback: Callable[[Run], Any] | None, bar: Progress) -> None:
        """Chunk after chunk to the end."""
        with self.interruptible(), deferred(), one_for_lapack(self.start.state.q.shape[-1]), bar:
            look()
            while not (self.finished or self.cancelled):
                self.chunk()
                look()
                if type(bar) is not Progress:
                    steps = int(np.sum(np.asarray(self.carry.counts.values)[..., 0]))
                    bar.update(self.reached, steps, self.stores[0].latest())
                if callback is not None:
                    callback(self)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Ctrl-C inside becomes `Interrupted`, with what was computed."""
        try:
            yield
        except Interrupted:
            raise
        except KeyboardInterrupt:
            msg = f"interrupted at t = {self.reached:.6g}; .solution holds what was computed, carom.resume goes on"
            raise Interrupted(msg, self.solution()) from None

    def solution(self, lane: int = 0) -> Solution:
        """What has been accepted so far (of one lane)."""
        carry = self.carry if self.lanes is None else jax.tree.map(lambda x: x[lane], self.carry_on_host())
        timing = {"seconds": self.seconds, "compile_seconds": self.compile_seconds, "traces": self.traces}
        store = self.stores[lane]
        solution = Solution(*self.parts[lane], store.snapshot(carry), carry, timing)
        solution.happened = store.happened
        if self.keeping is not None:
            solution.keeps = self.problem.keeps
            solution.kept = self.keeping.results(lane, solution)
        else:
            solution.notes["save_every"] = int(self.problem.save_every)
        return solution

    def carry_on_host(self) -> Carry:
        """The carry as NumPy arrays, copied once."""
        if self._host_copy[0] is not self.carry:
            self._host_copy = (self.carry, jax.tree.map(np.asarray, self.carry))
        return self._host_copy[1]


def filled_rows(buffer: Any, count: int) -> np.ndarray:
    """The rows of a buffer that were written; from an accelerator no others are fetched."""
    if 2 * count > len(buffer):
        return np.asarray(buffer)[:count]
    if next(iter(buffer.devices())).platform != "cpu":
        return np.asarray(buffer[:count])
    return np.asarray(buffer)[:count].copy()  # a view would keep the whole buffer


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
    keep: Any = None,
    stop: Callable[..., Any] | None = None,
    callback: Callable[[Run], Any] | None = None,
    progress: bool | Progress | None = None,
) -> Solution:
    """Run `system` from `state` to `t1` with `method`.

    Args:
        system: the equations.
        state: where to start; its `t` is the first time.
        method: one step.
        t1: end of the run; every stepping lands exactly on it. Before `state.t` the run goes backward in time, with
            methods that can (Runge-Kutta methods, Spark, StormerVerlet).
        h: constant step size (short for `stepping=Constant(h)`).
        stepping: who chooses the step size; give this or `h`.
        save_every: keep every n-th step (and the first, the last, and those with events).
        save_at: keep interpolated values at these times instead; the steps stay the same.
        keep: a list or dict of what to keep in place of rows (`carom.keep`); what was found is in `sol.kept`.
        stop: function `stop(t, q, v)`; the run ends where it turns negative.
        callback: called between chunks with the `Run`; `run.solution()` is what was accepted so far.
        progress: True or False for a progress bar; None shows one on a terminal when the run takes more than a second.

    Example:
        >>> chain, state = carom.models.dimer_chain(25, mass_ratio=0.59, damping=0.06)
        >>> sol = carom.simulate(chain, state, carom.TailoredIRK(), t1=30.0, h=0.1)
    """
    if isinstance(h, Tracer):
        refuse_traced(None, None, h)
    if save_at is not None and save_every != 1:
        msg = "give save_every= or save_at=, not both: values at given times come from all steps"
        raise ValueError(msg)
    keeps = chosen_keeps(keep, save_every, save_at)
    with deferred():
        run = prepare(system, state, method, t1, chosen_stepping(h, stepping), save_every, stop, keeps=keeps)
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
    keeps: Keeps | None = None,
) -> Run:
    """Check everything and set up a run of one trajectory; `rows` bounds the rows of one chunk."""
    refuse_kinds(system, state, method, stepping)
    refuse_traced(system, state, t1)
    ends = segment_ends(system, state, t1)
    refuse(system, state, method, stepping, ends)
    method = type(method).tuned(method, system, state, stepping.longest)
    ending = stop_function(stop)
    if ending is not None:
        check_stop_once(ending, system, state)
    if keeps is not None:
        keeps.check(system, state, float(ends[-1]))
        save_every = keeps.every
    problem = Problem(stepped(system, ends), method, stepping, ending, stride(save_every), keeps)
    parts, finished = [(system, method, stepping)], bool(ends[0] == ends[-1])
    start = Start(state, ends, first_pairs(system, state, ends[0]))
    warn_of_overlaps(system, state, start.pairs, ends[0])
    return Run(problem, parts, start, [RowStore(state)], rows=rows, finished=finished)


def finish(run: Run, callback: Any, progress: Any, save_at: Numbers | None) -> Solution:
    """Run one trajectory to its end and hand out the solution, or raise with what was reached."""
    t0, *_, t1 = run.start.instants.tolist()
    if save_at is not None:
        run.stores[0].wanted = np.sort(np.abs(times_in_order(save_at, t0, t1) - t0))
    thin(run.stores, run.problem.keeps)
    run.go(callback, progress_bar(progress, t0, t1))
    solution = run.solution()
    if run.failed:
        raise_failure(run, solution)
    with run.interruptible():
        if has_all_columns(solution):
            type(solution.method).review(solution.method, solution)
            warn_of_created_energy(solution)
        warn_of_keeps(solution)
        look()
    if solution.keeps is not None:
        return at_kept_times(solution)
    return solution if save_at is None else solution.interpolated(reached(solution, save_at))


def raise_failure(run: Run, solution: Solution) -> NoReturn:
    """Turn a bad status into an exception that names time, step, cause and remedy."""
    status, carry = solution.status, solution.carry
    where = f"in the step from t = {float(solution.state.t):.9g} (step {int(carry.k) + 1})"
    if named := not_finite(solution):
        msg = f"{named}: the run ends there"
        raise SimulationError(msg, solution, Status.NOT_FINITE)
    seen = solution.stepped if carry.pairs is None else solution.stepped.since(solution.clock.epoch, carry.pairs)
    if status not in _KNOWN and (named := not_finite_ahead(seen, carry.state, reach(solution), run.problem.stop)):
        msg = f"{named}: the run ends {where} with {type(run.problem.method).__name__}"
        raise SimulationError(msg, solution, Status.NOT_FINITE)
    cause, remedy = status.message
    remedy = solution.stepping.remedy if status is Status.STEP_TOO_SMALL else remedy
    more = solution.method.explain(solution.stepped, carry.state, carry.memory, status)
    msg = f"{cause} {where} with {type(run.problem.method).__name__}. {remedy}. {more}".strip()
    raise SimulationError(msg, solution, status)


def reach(solution: Solution) -> float:
    """How far ahead the step looked that failed last."""
    h = getattr(solution.carry.stepping, "h", None)
    return float(solution.stepping.longest or 0.0) if h is None else _REJECTED * float(h)
