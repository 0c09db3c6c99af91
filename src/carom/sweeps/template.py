"""The cells of a sweep that share one program: the builder is traced once, cells are rows of stacked numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import judged, postponed_judgements
from carom.keep.keeps import Keeps
from carom.methods.base import AbstractMethod
from carom.running.asking import caution, instants, refuse_features, refuse_kinds, stride
from carom.running.functions import reads_traced
from carom.running.fused import platform
from carom.running.loop import Problem, Start
from carom.state import State, reals, shortened
from carom.stepping.base import AbstractStepping
from carom.stepping.grid import Constant
from carom.sweeps.tables import plain_names, result_names
from carom.systems.check import Findings, check_lengths, failing_lanes, measure
from carom.systems.probe import probe
from carom.systems.system import System

_NUMBERS = (jax.Array, np.ndarray, np.generic, float)
_AS_WRITTEN = {"xla_backend_optimization_level": 0}  # numbers as NumPy would compute them, without fused products
_ON_PROCESSORS = _AS_WRITTEN | {"xla_disable_hlo_passes": "algsimp"}  # nor `k / 5` as `0.2 * k`
_STATE_BYTES = 400  # of a run per coordinate, about: state, memory of the method, temporary arrays
_LANEWISE_CELLS = 32  # at least; they fill half of a block
_LANEWISE_BYTES = 8000  # of a lane at most
_LANEWISE_STEPS = {"cpu": 2e5}  # of all lanes at least
_LANEWISE_STEPS_ELSEWHERE = 1e7  # on a GPU a minute of compilation
_STEPS = 1000  # of a run whose stepping chooses them
_ENDINGS = ("", "_t", "_q", "_v", "_index", "_number")  # of names of results
_TAKEN = ("status", "steps", "message", "coordinate", "velocity_number", "end_time", "step_size", "trajectory")
_UNKNOWN = ("Tracer", "integer scalar arrays")  # in messages about a number that is not known yet
_SHAPES = "build: a shape, a whole number or an `if` depends on a parameter; name those parameters in static=(...)"


@dataclass(frozen=True)
class Asked:
    """What a sweep was asked for; `t1`, `h`, `stepping` and `keep` may be functions of the parameters."""

    build: Callable[..., tuple[System, State]]
    method: AbstractMethod
    t1: Any
    h: Any
    stepping: Any
    keep: Any
    static: tuple[str, ...] = ()


class Cell(NamedTuple):
    """All that a run begins with."""

    system: System
    state: State
    stepping: AbstractStepping
    keeps: Keeps
    t1: Any


class Lanes(NamedTuple):
    """A batch that is ready to run: what all lanes share, where they begin, and which of them must not run.

    `asked` are ends and constant steps that were asked for, so that a single cell can be run again.
    """

    problem: Problem
    start: Start
    axes: Problem
    failed: dict[int, str]
    asked: dict[str, np.ndarray]


def cell_of(asked: Asked, fixed: dict[str, Any], numbers: dict[str, Any]) -> Cell:
    """What the run of one cell begins with; its numbers may be traced."""
    parameters = {name: x for name, x in numbers.items() if not name.startswith(".")} | fixed
    made = _built(asked.build, parameters)
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], System)):
        msg = f"build must return (system, state), as carom.models do, got {shortened(made)}"
        raise TypeError(msg)

    def given(name: str) -> Any:
        value = numbers.get(f".{name}", getattr(asked, name))
        is_record = isinstance(value, (AbstractStepping, type(None)))
        return value if is_record or not callable(value) else value(**arguments_of(value, name, parameters))

    h = given("h")
    stepping = given("stepping") if h is None else Constant(h)
    t1 = judged(reals(given("t1"), "t1", "a number"), _judge_end)
    keeps = Keeps.of(given("keep"))
    if keeps.times is not None:
        keeps.times[1].check(keeps.times[0], *made, t1)
    return Cell(*made, stepping, keeps, t1)


def _built(build: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    """What the builder returns; where Python or JAX cannot go on without a number, they are told in carom's words."""
    try:
        return build(**parameters)
    except jax.errors.JAXTypeError:
        raise
    except (TypeError, ValueError, IndexError) as error:
        told = str(error).strip().splitlines()[:1]
        if not told or not any(sign in told[0] for sign in _UNKNOWN):
            raise
        msg = f"{_SHAPES} ({told[0]})"
        raise TypeError(msg) from None


@dataclass
class Template:
    """One group of cells: the same kind of system, other numbers.

    `parts` are the system, stepping and keeps, of which a number that is alike in all cells stands once; `own` is what
    every lane has for itself.
    """

    asked: Asked
    fixed: dict[str, Any]
    numbers: dict[str, np.dtype]
    judges: list[Callable[[np.ndarray], None]] = field(default_factory=list, init=False)
    turn: Any = field(default_factory=Lock, init=False)
    is_lanewise: bool = field(default=False, init=False)  # whether batches run number by number, in a `Kernel`

    def __post_init__(self):
        one = {name: jax.ShapeDtypeStruct((), dtype) for name, dtype in self.numbers.items()}
        try:
            traced, shapes = jax.make_jaxpr(self._traced, return_shape=True)(one)
        except (jax.errors.ConcretizationTypeError, jax.errors.TracerIntegerConversionError) as error:
            msg = f"{_SHAPES} ({str(error).strip().splitlines()[0]})"
            raise TypeError(msg) from None
        except jax.errors.TracerArrayConversionError:
            msg = f"build: NumPy cannot compute with parameters of a sweep; use jax.numpy, or {_SHAPES[7:]}"
            raise TypeError(msg) from None
        depends, self.structure = _depends(traced), jax.tree.structure(shapes)
        self.axes = [0 if varies else None for varies in depends[: len(shapes[0])]]
        axes = self.axes + [0] * (len(depends) - len(self.axes))
        every = jax.vmap(jax.extend.core.jaxpr_as_fun(traced), out_axes=axes)
        options = _ON_PROCESSORS if platform() == "cpu" else _AS_WRITTEN
        self.prepared = jax.jit(every, compiler_options=options)

    def _traced(self, numbers: dict[str, Array]) -> tuple[list[Array], Any]:
        """The numbers of a cell; everything else is noted here."""
        with postponed_judgements() as postponed:
            system, state, stepping, keeps, t1 = cell_of(self.asked, self.fixed, numbers)
            found = measure(system, state)
        leaves, self.parts = jax.tree.flatten((system, stepping, keeps))
        self.is_number = [isinstance(leaf, _NUMBERS) for leaf in leaves]
        self.rest = [None if is_number else leaf for leaf, is_number in zip(leaves, self.is_number)]
        _refuse_closures(self.rest)
        self.judges = [judge for _, judge in postponed]
        self.found = (found.names, found.shapes)
        own = (state, jnp.asarray(t1), jnp.asarray(system.jumps), [array for array, _ in postponed], found.values)
        return [jnp.asarray(leaf) for leaf, is_number in zip(leaves, self.is_number) if is_number], own

    def refuse(self, numbers: dict[str, Any], parameters: tuple[str, ...]) -> Template:
        """Raise for what one cell, which stands for all, shows to be impossible; note what all have in common."""
        cell, method = cell_of(self.asked, self.fixed, numbers), self.asked.method
        refuse_kinds(cell.system, cell.state, method, cell.stepping)
        ends = instants(cell.system, float(cell.state.t), float(cell.t1))
        refuse_features(cell.system, cell.state, method, cell.stepping, ends)
        if method.concrete_init or cell.system.has_lists:
            what = "lists of pairs" if cell.system.has_lists else type(method).__name__
            msg = f"carom.sweep does not take {what}, whose arrays follow from numbers: use carom.simulate_batch"
            raise ValueError(msg)
        check_lengths(cell.system, cell.state)
        probe(cell.system, cell.state)
        cell.keeps.check(cell.system, cell.state, float(cell.t1))
        _refuse_rows(cell.keeps)
        _refuse_names(cell.keeps, parameters)
        caution(cell.system, cell.state, method, cell.stepping, ends)
        self.method = type(method).tuned(method, cell.system, cell.state, cell.stepping.longest)
        memory = jax.eval_shape(lambda: cell.keeps.init(cell.system, cell.state, cell.stepping))
        sizes = [x.size for x in jax.tree.leaves(memory)]
        self.lane_bytes = 8 * sum(sizes) + _STATE_BYTES * (cell.state.q.size + 1)
        self.labels, self.segments, self.example = cell.system.labels, len(ends), numbers
        self.sizes = {"coordinate": cell.state.q.size, "velocity_number": cell.state.v.size}
        h = cell.stepping.h if isinstance(cell.stepping, Constant) else np.nan
        self.steps = float((ends[-1] - ends[0]) / np.asarray(h))
        return self

    def choose(self, cells: int) -> None:
        """Run so many cells number by number where that gains more than its compilation takes.

        On a processor that is where lanes wait for each other, and nowhere where lanes keep many places: to write one
        of them means to look at all. All batches of a sweep run the same way, so that their bits do not depend on
        how cells are put together.
        """
        waits = platform() != "cpu" or self.method.among_lanes() is not self.method
        steps = _STEPS if np.isnan(self.steps) else self.steps
        least = _LANEWISE_STEPS.get(platform(), _LANEWISE_STEPS_ELSEWHERE)
        is_long = cells >= _LANEWISE_CELLS and cells * steps >= least
        self.is_lanewise = waits and is_long and self.lane_bytes <= _LANEWISE_BYTES

    def lanes(self, numbers: dict[str, np.ndarray], begin_at: tuple[Any, Any] | None = None) -> Lanes:
        """The batch of these cells; those that cannot run get the numbers of one that can.

        `begin_at` are coordinates and velocities to begin with in place of those that were built;
        where they are NaN those that were built stay.
        """
        lanes = self._look(numbers, begin_at)
        which = np.arange(len(lanes.start.instants))
        running = np.delete(which, list(lanes.failed))
        if not lanes.failed or not running.size:
            return lanes
        which[list(lanes.failed)] = running[0]
        begin_at = begin_at and (begin_at[0][which], begin_at[1][which])
        good = self._look({name: x[which] for name, x in numbers.items()}, begin_at)
        return good._replace(failed=lanes.failed, asked=lanes.asked)

    def refused(self, numbers: dict[str, np.ndarray]) -> list[int]:
        """Which of these cells no constructor would take."""
        (system, _, _), (state, _, _, doubts, found) = self._prepare(numbers)
        return list(self._doubtful(system, state, doubts, found))

    def _prepare(self, numbers: dict[str, np.ndarray]) -> tuple[Any, tuple[Any, ...]]:
        """System, stepping and keeps of these cells, and what each has for itself."""
        arrays, (state, *others) = jax.tree.unflatten(self.structure, self.prepared(*jax.tree.leaves(numbers)))
        stacked = iter(arrays)
        leaves = [next(stacked) if is_number else rest for is_number, rest in zip(self.is_number, self.rest)]
        return jax.tree.unflatten(self.parts, leaves), (state, *jax.tree.map(np.asarray, others))

    def _doubtful(self, system: System, state: State, doubts: list[Any], found: Any) -> dict[int, str]:
        """What a look at the start and constructors say against these cells."""
        host, looks = jax.tree.map(np.asarray, state), Findings(found, *self.found).on_host()
        failed = failing_lanes(looks, system, lambda i: jax.tree.map(lambda x: x[i], host))
        return failed | _misjudged(doubts, self.judges, len(found))

    def _look(self, numbers: dict[str, np.ndarray], begin_at: Any) -> Lanes:
        """The batch as it is, and why some of its lanes cannot run."""
        (system, stepping, keeps), (state, t1, jumps, doubts, found) = self._prepare(numbers)
        if begin_at is not None:
            given = zip(begin_at, (state.q, state.v))
            state = state.moved(state.t, *(jnp.where(np.isnan(x), built, x) for x, built in given))
        axes = iter(self.axes)
        flags = [next(axes) if is_number else None for is_number in self.is_number]
        system_axes, stepping_axes, keeps_axes = jax.tree.unflatten(self.parts, flags)
        ends, told = _ends(np.asarray(state.t), t1, jumps, self.segments)
        failed = told | self._doubtful(system, state, doubts, found)
        problem = Problem(system, self.method, stepping, None, stride(keeps.every), keeps)
        spread = Problem(system_axes, None, stepping_axes, None, None, keeps_axes)  # pyright: ignore
        asked = {"end_time": t1}
        if isinstance(stepping, Constant):
            asked["step_size"] = np.broadcast_to(np.asarray(stepping.h, float), t1.shape)
        return Lanes(problem, Start(state, ends), spread, failed, asked)


def _ends(t0: np.ndarray, t1: np.ndarray, jumps: np.ndarray, segments: int) -> tuple[np.ndarray, dict[int, str]]:
    """Start, jumps strictly inside, end of every lane, and lanes that have too few or too many of them."""
    inside = (jumps > t0[:, None]) & (jumps < t1[:, None])
    late, uneven = t1 < t0, inside.sum(axis=1) != segments - 2
    failed = dict.fromkeys(np.flatnonzero(uneven).tolist(), "not as many jumps inside the run as in the first cell")
    failed |= dict.fromkeys(np.flatnonzero(late).tolist(), "t1 lies before the start: a sweep runs forward in time")
    between = np.sort(np.where(inside, jumps, np.inf), axis=1)[:, : segments - 2]
    good = ~(late | uneven)
    ends = np.concatenate([t0[:, None], between, t1[:, None]], axis=1)
    return np.where(good[:, None], ends, t0[:, None]), failed


def arguments_of(fn: Callable[..., Any], role: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters that a function asks for by name."""
    wanted = inspect.signature(fn).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in wanted):
        return parameters
    unknown = [p.name for p in wanted if p.name not in parameters and p.default is p.empty]
    if unknown:
        msg = f"{role}: a function of the parameters {', '.join(parameters)}, got an argument '{unknown[0]}'"
        raise TypeError(msg)
    return {p.name: parameters[p.name] for p in wanted if p.name in parameters}


def _judge_end(t1: np.ndarray) -> None:
    if not np.isfinite(t1).all():
        msg = f"t1 must be finite, got t1 = {t1}"
        raise ValueError(msg)


def _misjudged(doubts: list[Any], judges: list[Callable[[np.ndarray], None]], lanes: int) -> dict[int, str]:
    """What constructors would have said about the numbers of lanes; each is asked once where nothing is wrong."""
    failed: dict[int, str] = {}
    for stacked, judge in zip(doubts, judges):
        values = np.asarray(stacked)
        try:
            judge(values.reshape(-1) if values.ndim < 3 else values)
        except ValueError:
            for i in range(lanes):
                try:
                    judge(values[i])
                except ValueError as error:
                    failed.setdefault(i, str(error))
    return failed


def _depends(traced: Any) -> list[bool]:
    """Which results depend on the arguments."""
    known = set(traced.jaxpr.invars)
    seen = lambda variable: not hasattr(variable, "val") and variable in known  # noqa: E731
    for equation in traced.jaxpr.eqns:
        if any(seen(variable) for variable in equation.invars):
            known.update(equation.outvars)
    return [seen(variable) for variable in traced.jaxpr.outvars]


def _refuse_closures(functions: list[Any]) -> None:
    """Raise where a function reads a parameter other than through the system's params."""
    for function in functions:
        name = reads_traced(function) if callable(function) else None
        if name is not None:
            msg = (
                f"build: a function of the system reads '{name}', a parameter of the sweep, from around it: "
                f"give it System(params={{'{name}': {name}}}) and an argument p, and write p['{name}']"
            )
            raise TypeError(msg)


def _refuse_rows(keeps: Keeps) -> None:
    for name in keeps.growing:
        msg = f"{name}: say how many to keep, last=..., so that memory does not grow with the length of the runs"
        raise ValueError(msg)
    if keeps.columns is not None and keeps.times is None:
        msg = "keep: a sweep keeps no rows; use times, strobe, section or other keeps in place of columns"
        raise ValueError(msg)


def _refuse_names(keeps: Keeps, parameters: tuple[str, ...]) -> None:
    """Raise where a result would bear the name of a parameter or of another result, or could not name a folder."""
    names = result_names(keeps)
    for name in names:
        if name in (*_TAKEN, "cell") or names.count(name) > 1:
            msg = f"keep: there is another result '{name}': give the keep another name"
            raise ValueError(msg)
        if "/" in name or name.startswith("."):
            msg = f"keep: a name must hold no '/' and not begin with '.', got '{name}'"
            raise ValueError(msg)
    own = [f"{name}{ending}" for name in plain_names(keeps).values() for ending in _ENDINGS]
    for name in parameters:
        if name in (*own, *_TAKEN):
            msg = f"'{name}' is the name of a parameter and of a result: give the keep another name, keep={{...}}"
            raise ValueError(msg)
