"""The host's side of a run: checks, chunks, progress, Ctrl-C, callbacks, and failures turned into exceptions."""

from __future__ import annotations

import functools
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import jax
import numpy as np
from jax.core import Tracer

from carom.methods.base import AbstractMethod
from carom.running import loop
from carom.running.compiled import remembered, split
from carom.running.evidence import warn_of_created_energy
from carom.running.loop import Problem, Start, advance, begin, blank_carry, first_carry
from carom.running.progress import Progress, progress_bar
from carom.running.signals import deferred, look
from carom.solution import RowStore, Solution, append
from carom.solvers.contact_solver import AbstractContactSolver
from carom.state import Carry, Interrupted, Numbers, SimulationError, State, Status, reals, shortened
from carom.stepping import Constant
from carom.stepping.base import AbstractStepping
from carom.systems.arguments import UserFunction, names_of, user_function, users_frame, whole
from carom.systems.check import check_once, not_finite_ahead
from carom.systems.probe import probe_stop
from carom.systems.system import System

_CHUNK_SECONDS = 0.3
_SPIN_SECONDS = 2e-3  # in the first chunk: the shortest sleep takes as long as a short run
_let_others_run = getattr(os, "sched_yield", lambda: None)
_MOST_ROWS = 2048
_COARSE = 1e-9  # of the run: a coarser time may matter where functions depend on it
_MOST_STEPS = 10**18
_REJECTED = 8.0  # times the size proposed after a failure: more than the size that failed
_KNOWN = (Status.NO_CONSISTENT_MODE, Status.SEVERAL_CONSISTENT_MODES, Status.TOO_MANY_EVENTS)  # not for want of numbers
_FIRST_NUMBERS = 2e6  # coordinates times attempts of the first chunk; later ones are timed


class Run:
    """The host's side of a run, of one trajectory or of a batch of lanes.

    `carry` is where a run goes on; without one it begins at `start`, in its first chunk.
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
        self.frozen: Any = split(problem)  # a run keeps to what its functions read at its start
        concrete = problem.method.concrete_init
        self.compiled_start = None if concrete else start
        self._carry = begin(problem, start, axes) if concrete and carry is None else carry
        self.axes, self.rows = axes, rows
        self.lanes = None if axes is None else len(stores)
        self.attempts = int(min(max(_FIRST_NUMBERS / start.state.q.size, 4), 512))
        self.seconds = self.compile_seconds = 0.0
        self.traces = 0
        self.finished = finished
        self.failed = self.cancelled = False
        self._host_copy: tuple[Any, Any] = (None, None)

    def chunk(self) -> None:
        """Advance by one chunk and append its rows."""
        before, started = loop.traces, time.perf_counter()
        fresh = self._carry is None
        carry = blank_carry(self.frozen, self.start, self.axes) if fresh else self.carry
        limits = np.array([self.rows, self.attempts, fresh])
        more = (self.compiled_start, limits, self.rows, self.lanes, self.axes)
        carry, buffer, layout, summary = advance(self.frozen, carry, *more)
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
        self.finished = not alive
        filled = np.asarray(buffer)[:count]
        filled = filled if 2 * count > len(buffer) else filled.copy()  # a view keeps the whole buffer
        append(self.stores, layout, filled if self.lanes is not None else filled[:, None])
        self._carry = carry
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
        return float(np.min(np.asarray(self._carry.instants)[..., 0] + np.asarray(self._carry.state.t)))

    def go(self, callback: Callable[[Run], Any] | None, bar: Progress) -> None:
        """Chunk after chunk to the end."""
        with self.interruptible(), deferred(), bar:
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
        return Solution(*self.parts[lane], self.stores[lane].snapshot(carry), carry, timing)

    def carry_on_host(self) -> Carry:
        """The carry as NumPy arrays, copied once."""
        if self._host_copy[0] is not self.carry:
            self._host_copy = (self.carry, jax.tree.map(np.asarray, self.carry))
        return self._host_copy[1]


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
    if isinstance(h, Tracer):
        refuse_traced(None, None, h)
    if save_at is not None and save_every != 1:
        msg = "give save_every= or save_at=, not both: values at given times come from all steps"
        raise ValueError(msg)
    with deferred():
        run = prepare(system, state, method, t1, chosen_stepping(h, stepping), save_every, stop)
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
    refuse_kinds(system, state, method, stepping)
    refuse_traced(system, state, t1)
    ends = segment_ends(system, state, t1)
    refuse(system, state, method, stepping, ends)
    method = ask(method, "tuned", system, state, stepping.longest)
    ending = stop_function(stop)
    if ending is not None:
        check_stop_once(ending, system, state)
    problem = Problem(system, method, stepping, ending, stride(save_every))
    parts, finished = [(system, method, stepping)], bool(ends[0] == ends[-1])
    return Run(problem, parts, Start(state, ends), [RowStore(state)], rows=rows, finished=finished)


def finish(run: Run, callback: Any, progress: Any, save_at: Numbers | None) -> Solution:
    """Run one trajectory to its end and hand out the solution, or raise with what was reached."""
    t0, *_, t1 = run.start.instants.tolist()
    if save_at is not None:
        run.stores[0].thin_to(np.asarray(reals(save_at, "save_at", "a list of times")), t0, t1)
    run.go(callback, progress_bar(progress, t0, t1))
    solution = run.solution()
    if run.failed:
        raise_failure(run, solution)
    with run.interruptible():
        ask(solution.method, "review", solution)
        warn_of_created_energy(solution)
        look()
    return solution if save_at is None else solution.interpolated(reached(solution, save_at))


def reached(solution: Solution, save_at: Numbers) -> np.ndarray:
    """The times that a run got to; if it was stopped before the last of them, its end in their place."""
    times, end = np.atleast_1d(np.asarray(save_at, float)), solution.t[-1]
    return times if np.max(times) <= end else np.append(times[times <= end], end)


def raise_failure(run: Run, solution: Solution) -> NoReturn:
    """Turn a bad status into an exception that names time, step, cause and remedy."""
    status, carry = solution.status, solution.carry
    where = f"in the step from t = {float(solution.state.t):.9g} (step {int(carry.k) + 1})"
    ahead = (solution.running, carry.state, reach(solution), run.problem.stop)
    if status not in _KNOWN and (named := not_finite_ahead(*ahead)):
        msg = f"{named}: the run ends {where} with {type(run.problem.method).__name__}"
        raise SimulationError(msg, solution, Status.NOT_FINITE)
    cause, remedy = status.message
    if status is Status.STEP_TOO_SMALL:
        remedy = solution.stepping.remedy
    more = solution.method.explain(solution.running, carry.state, carry.memory, status)
    msg = f"{cause} {where} with {type(run.problem.method).__name__}. {remedy}. {more}".strip()
    raise SimulationError(msg, solution, status)


def reach(solution: Solution) -> float:
    """How far ahead the step looked that failed last."""
    h = getattr(solution.carry.stepping, "h", None)
    return float(solution.stepping.longest or 0.0) if h is None else _REJECTED * float(h)


def segment_ends(system: System, state: State, t1: float) -> np.ndarray:
    """Start, jumps strictly inside, end."""
    t0 = float(state.t)
    t1 = t1 if isinstance(t1, float) else end_time(t1)
    if not t0 <= t1 < np.inf:
        msg = f"t1 must be finite and not before the start, got t1 = {t1} with t0 = {t0:g}"
        raise ValueError(msg)
    return np.array([t0, *(t for t in _jumps(system) if t0 < t < t1), t1])


def end_time(t1: Any) -> float:
    """`t1` as a float; what is no number is refused by name."""
    if isinstance(t1, int) and not isinstance(t1, bool) and abs(t1) > sys.float_info.max:
        return math.inf if t1 > 0 else -math.inf
    time = np.asarray(reals(t1, "t1", "a number"))
    if time.ndim:
        msg = f"t1 must be one number, got {shortened(t1)} of shape {time.shape}"
        raise TypeError(msg)
    return float(time)


def refuse_traced(system: Any, state: Any, *numbers: Any) -> None:
    """Raise where a run is asked for inside a transformation of JAX."""
    if _traced(system) or _traced(state) or any(isinstance(x, Tracer) for x in numbers):
        msg = (
            "carom runs a compiled loop of its own, which cannot be called inside jax.jit, jax.grad or jax.vmap: "
            "call it from plain Python; for many runs at once use carom.simulate_batch"
        )
        raise TypeError(msg)


def _traced(record: Any) -> bool:
    return isinstance(record, (System, State)) and _holds_tracers(record)


@remembered
def _holds_tracers(record: Any) -> bool:
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(record))


@remembered
def _jumps(system: System) -> list[float]:
    return np.asarray(system.jumps).tolist()


def refuse(system: System, state: State, method: AbstractMethod, stepping: AbstractStepping, ends: np.ndarray) -> None:
    """Raise, by name, for anything the method or the stepping does not take into account."""
    refuse_features(system, state, method, stepping, ends)
    check_once(system, state)
    caution(system, state, method, stepping, ends)


def caution(system: System, state: State, method: AbstractMethod, stepping: AbstractStepping, ends: np.ndarray) -> None:
    """Warn about what can run, but perhaps not as it was meant."""
    span = float(ends[-1] - ends[0])
    if ends[0] != 0:
        system, state = system.since(ends[0]), State(state.q, state.v)
    ask(method, "caution", system, state, stepping.longest, span)
    told = ask(stepping, "caution", span) if span else None
    resolution = float(np.spacing(np.abs(ends).max()))
    if told is None and resolution > _COARSE * span > 0 and sees_time(system):
        told = (
            f"t0 = {ends[0]:g}: functions of t see it in steps of {resolution:.2g}; give them an argument `elapsed` "
            f"(the time since the start) in place of t"
        )
    if told is not None:
        warnings.warn(told, stacklevel=users_frame())


def refuse_kinds(system: Any, state: Any, method: Any, stepping: Any) -> None:
    """Raise for an argument that is something else, and say what was probably meant."""
    wanted = {"system": System, "state": State, "method": AbstractMethod, "stepping": AbstractStepping}
    for (name, kind), value in zip(wanted.items(), (system, state, method, stepping)):
        if not isinstance(value, kind):
            hint = _meant(name, kind, value)
            word = f"a carom.{kind.__name__}" if name in ("system", "state") else f"one of carom's {name}s"
            msg = f"{name} must be {word}, got {_kind_of(value)}{hint and f'; {hint}'}"
            raise TypeError(msg)
    for part in [p for p in (method, vars(method).get("base")) if p is not None]:
        if "solver" in vars(part) and not isinstance(part.solver, AbstractContactSolver):
            name = part.solver.__name__ if isinstance(part.solver, type) else shortened(part.solver)
            msg = f"{type(part).__name__}: solver must be a contact solver such as carom.PSOR(), got {name}"
            raise TypeError(msg)


def _kind_of(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"{type(value).__name__}"


def _meant(name: str, kind: type, value: Any) -> str:
    if isinstance(value, type) and issubclass(value, kind):
        return f"write {value.__name__}(...)" if name == "stepping" else f"write {value.__name__}()"
    if name == "system" and isinstance(value, tuple):
        return "a model is a pair: system, state = carom.models.pendulum()"
    if isinstance(value, State if name == "system" else System if name == "state" else ()):
        return "system comes first, then state"
    if name == "state":
        return "write carom.State(q=..., v=...)"
    if name == "stepping" and isinstance(value, (int, float)):
        return f"for constant steps use h={value}"
    return f"write {value}(), without quotes" if isinstance(value, str) else ""


def refuse_features(
    system: System, state: State, method: AbstractMethod, stepping: AbstractStepping, ends: np.ndarray
) -> None:
    """The part of `refuse` that needs no numbers."""
    if not jax.config.read("jax_enable_x64"):
        msg = "carom needs 64-bit floats: remove CAROM_X64=0 or set jax_enable_x64"
        raise ValueError(msg)
    unhandled = sorted(features(system) - method.handles)
    if unhandled:
        msg = f"{type(method).__name__} does not handle {names_of(unhandled)} of this system"
        raise ValueError(msg)
    missing = sorted(stepping.needs - method.gives)
    if missing:
        msg = f"{type(stepping).__name__} needs {names_of(missing)}, which {type(method).__name__} does not give"
        raise ValueError(msg)
    for objection in (ask(method, "objection", system), ask(stepping, "objection", system, state, ends)):
        if objection:
            raise ValueError(objection)


def ask(record: Any, name: str, *arguments: Any) -> Any:
    """Call a method of a record; `record.name` would first build a record of its own, some 30 us."""
    return getattr(type(record), name)(record, *arguments)


@remembered
def sees_time(system: System) -> bool:
    """Whether any function of the system takes t."""
    functions = jax.tree.leaves(system, is_leaf=lambda x: isinstance(x, UserFunction))
    return any(isinstance(f, UserFunction) and "t" in f.takes for f in functions)


@remembered
def features(system: System) -> frozenset[str]:
    """The system's features, looked up once."""
    return system.features


def chosen_stepping(h: float | None, stepping: AbstractStepping | None) -> AbstractStepping:
    """The stepping of `h=` or `stepping=`."""
    if (h is None) == (stepping is None):
        msg = "give either h= (a constant step) or stepping=, not both and not none"
        raise ValueError(msg)
    if stepping is not None:
        return stepping
    return _constant(h) if isinstance(h, float) else Constant(h)  # pyright: ignore


@functools.lru_cache
def _constant(h: float) -> Constant:
    """The same record for the same size: to take a new one apart costs a tenth of a short run (45 us)."""
    return Constant(h)


def stop_function(stop: Callable[..., Any] | None) -> Any:
    """The stop condition, wrapped."""
    return None if stop is None else user_function(stop, "stop", ("t", "q", "v"))


def check_stop_once(stop: Any, system: System, state: State) -> None:
    """`probe_stop`, unless this function was looked at with this state before."""
    passed, seen = _stops(state), (split(stop).kind.key, split(system).kind.key)
    if seen not in passed:
        probe_stop(stop, system, state)
        passed.add(seen)


@remembered
def _stops(state: State) -> set[Any]:
    """The stop conditions that may be used from this state."""
    del state
    return set()


def stride(save_every: int) -> np.int64:
    """`save_every` as a number that is traced."""
    if not whole(save_every, "save_every", 1) < _MOST_STEPS:
        msg = f"save_every must be less than {_MOST_STEPS:.0e}, got {save_every:.3e}"
        raise ValueError(msg)
    return np.int64(save_every)
