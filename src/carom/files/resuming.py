"""Stored runs with their system: read back whole, or gone on with."""

from __future__ import annotations

import inspect
import json
import warnings
from pathlib import Path
from typing import Any, cast, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray

from carom.arguments import users_frame
from carom.files import kept
from carom.files import whole_files as files
from carom.files.datasets import gone_on
from carom.files.identity import description, refuse_another, versions
from carom.files.storage import (
    Loaded,
    is_carry,
    merged,
    newest,
    parts_folder,
    start_of,
    unfinished_parts,
    whole,
)
from carom.files.writing import named_leaves
from carom.methods.base import AbstractMethod
from carom.models.registry import build, registry
from carom.pairs import Capacity
from carom.plain import rebuild
from carom.rows import RowStore, restored
from carom.running.asking import instants, stepped, stop_function, stride
from carom.running.keeping import chosen_keeps
from carom.running.loop import Problem, Start, begin, blank_carry
from carom.running.run import Run, finish
from carom.running.signals import deferred
from carom.solution import Solution
from carom.state import Carry, Clock, State, Status
from carom.stepping.base import AbstractStepping
from carom.systems.first_lists import first_pairs
from carom.systems.system import System

_PER_COORDINATE = 4  # what a count of a stored model may be


def resume(
    path: Any,
    *,
    system: System | None = None,
    method: AbstractMethod | None = None,
    stepping: AbstractStepping | None = None,
    t1: float | None = None,
    save_every: int | None = None,
    keep: Any = None,
    stop: Any = None,
    callback: Any = None,
    progress: Any = None,
) -> Solution:
    """Go on from a stored run to its end, or to another `t1`.

    A ready-made model, its method and its stepping come back by name; a system made of the user's own functions, and
    what the run keeps (`keep=`), must be passed again, and must be what was stored. On the same machine and versions
    the result equals, bit for bit, that of a run that was never interrupted.

    Example:
        >>> sol = carom.resume("run.nc", t1=60.0)
    """
    with deferred():
        options = {"system": system, "method": method, "stepping": stepping, "t1": t1}
        stored = path if isinstance(path, Loaded) else newest(path)
        run = going_on(stored, **options, save_every=save_every, keep=keep, stop=stop)
        solution = finish(run, callback, progress, None)
        solution.notes = gone_on(stored) | ({} if keep is not None else {"save_every": int(run.problem.save_every)})
        return solution


def going_on(
    stored: Loaded,
    *,
    system: System | None = None,
    method: AbstractMethod | None = None,
    stepping: AbstractStepping | None = None,
    t1: float | None = None,
    save_every: int | None = None,
    keep: Any = None,
    stop: Any = None,
) -> Run:
    """A stored run, ready to go on."""
    with files.readable(stored.path):
        attributes = stored.data.attrs
        keeps = chosen_keeps(keep, save_every or 1)
        save_every = int(attributes.get("save_every", 1)) if save_every is None else save_every
        state = start_of(stored)
        system = system or _stored_model(attributes, state.q.size)
        if method is None:
            method = cast(AbstractMethod, rebuild(json.loads(attributes["method"]), "method"))
        if stepping is None:
            stepping = cast(AbstractStepping, rebuild(json.loads(attributes["stepping"]), "stepping"))
        method = method.tuned(system, state, stepping.longest)
        refuse_another(description(system, method, stepping), attributes)
        if keeps is not None:
            kept.refuse_others(keeps, attributes)
        blank = np.full(int(attributes["ends"]), stored.t[0])
        every = save_every if keeps is None else keeps.every
        problem = Problem(stepped(system, stored.instants), method, stepping, stop_function(stop), stride(every), keeps)
        pairs = first_pairs(system, state, blank[0], stored_rooms(attributes))
        template = (begin if method.concrete_init else blank_carry)(problem, Start(state, blank, pairs))
        carry = _restore(template, stored.data)
        store = _restored_rows(stored, State(state.q, state.v, stored.instants[0]))
    if t1 is not None:
        carry = extend(carry, float(t1), system)
    start, finished = Start(state, np.asarray(carry.instants), pairs), bool(carry.done)
    if keeps is None and not finished:
        kept.refuse_others(None, attributes)
    run = Run(problem, [(system, method, stepping)], start, [store], carry=carry, finished=finished)
    if run.keeping is not None:
        run.keeping.restore(stored.kept, Clock.of(carry))
        run.problem.keeps.check(system, state, float(carry.instants[-1]))
    return run


def stored_rooms(attributes: dict[str, Any]) -> tuple[Capacity | None, ...] | None:
    """The room of the lists of pairs of a stored run; None for a run without lists."""
    if "rooms" not in attributes:
        return None
    given = json.loads(attributes["rooms"])
    return tuple(None if r is None else Capacity(int(r[0]), int(r[1]), tuple(map(int, r[2]))) for r in given)


def _restored_rows(stored: Loaded, start: State) -> RowStore:
    elapsed = Clock(stored.instants, stored.instants).turned(stored.columns["elapsed"])
    columns = stored.columns | {"keep": np.ones(len(stored.t)), "t": elapsed}
    first = tuple(name for name in ("k", "keep", "t", "h", "q", "v") if name in columns)
    ordered = (*first, *(n for n in columns if n not in (*first, "elapsed")))
    return restored(start, {name: columns[name] for name in ordered}, stored.happened)


def extend(carry: Carry, t1: float, system: System) -> Carry:
    """A carry that goes on to another end; off the grid, the grid starts anew where the run stands."""
    clock, reached = Clock.of(carry), float(carry.state.t)
    now = float(clock.time(reached))
    if clock.turned(t1 - now) < 0:
        side, way = ("after", ", which goes backward,") if clock.backward else ("before", ",")
        msg = f"t1 = {t1:g} lies {side} the end of the stored run{way} t = {now:g}"
        raise ValueError(msg)
    if clock.backward and t1 == clock.epoch:  # nothing was computed, and only the end that was asked for tells the way
        return eqx.tree_at(lambda c: c.done, carry, jnp.asarray(True))
    times = instants(system, float(clock.epoch), t1)
    ends = clock.turned(times - clock.epoch)
    ends[-1] = reached if t1 == now else ends[-1]
    segment = np.searchsorted(ends[:-1], reached, side="right") - 1
    new = (ends, times, np.asarray(segment, carry.segment.dtype), np.asarray(ends[-1] <= reached))
    return eqx.tree_at(lambda c: (c.ends, c.instants, c.segment, c.done), carry, jax.tree.map(jnp.asarray, new))


def _restore(template: Carry, data: xarray.Dataset) -> Carry:
    """The stored carry, found by name; it must fit what this version of carom and this system would carry."""
    leaves, stored = [], [str(name) for name in data.data_vars if is_carry(name)]
    if template.kept is None:
        stored = [name for name in stored if not name.startswith("carry.kept")]
    for name, leaf in named_leaves(template):
        if name not in stored:
            raise ValueError(_misfit(f"{name} is missing", data))
        array, wanted = data[name].to_numpy(), np.dtype(np.int8 if leaf.dtype == bool else leaf.dtype)
        if array.shape != leaf.shape or array.dtype != wanted:
            got = f"{array.dtype}{list(array.shape)}, not {wanted}{list(leaf.shape)}"
            raise ValueError(_misfit(f"{name} is {got}", data))
        leaves.append(jnp.asarray(array).astype(leaf.dtype))
        stored.remove(name)
    if stored:
        raise ValueError(_misfit(f"{stored[0]} is unknown", data))
    carry = jax.tree.unflatten(jax.tree.structure(template), leaves)
    return eqx.tree_at(lambda c: c.status, carry, jnp.int32(Status.OK))


def _misfit(what: str, data: xarray.Dataset) -> str:
    told = f"the state of the stored run does not fit this system, method and stepping: {what}{versions(data.attrs)}"
    return (
        f"{told}. Start from its last row instead: run = carom.load(path); carom.State(run.q[-1], run.v[-1], run.t[-1])"
    )


def _stored_model(attributes: dict[str, Any], size: int) -> System:
    """The ready-made model of a stored run; one much larger than its rows is not built."""
    origin = json.loads(attributes["model"])
    if origin is None:
        msg = (
            "this run's system is made of user functions: pass it again as system= (in Python, not on the command line)"
        )
        raise ValueError(msg)
    name, arguments = origin[0], json.loads(origin[1])
    for argument, parameter in inspect.signature(registry[name]).parameters.items() if name in registry else ():
        counts = parameter.annotation in (int, "int") or type(parameter.default) is int
        if counts and np.max(arguments.get(argument) or 0) > _PER_COORDINATE * (size + 10):
            msg = f"the file asks for {name}({argument}={arguments[argument]}), but its rows have {size} coordinates"
            raise ValueError(msg)
    return build(name, arguments)[0]


def revive(run: Loaded, system: System | None = None) -> Solution:
    """The solution of a stored run, with its system, as it was when it was stored."""
    with files.readable(run.path):
        reached = float(run.data.attrs["reached"])
    solution = resume(run, system=system, t1=reached)
    solution.timing.update({name: run.stats[name] for name in solution.timing if name in run.stats})
    solution.choice, solution.notes, solution.kept = run.choice, run.notes, run.kept
    return solution


def with_system(run: Any, system: System | None = None) -> Solution:
    """A run with its system: as it is, found by the name of its model, or with the one given."""
    if isinstance(run, Loaded):
        return revive(run, system)
    if not isinstance(run, Solution):
        msg = f"a run is a Solution or what carom.load(path) returned, got {type(run).__name__}"
        raise TypeError(msg)
    return run


@overload
def load(path: Any, *, system: System) -> Solution: ...


@overload
def load(path: Any, *, system: None = None) -> Loaded: ...


def load(path: Any, *, system: System | None = None) -> Loaded | Solution:
    """Read a stored run: its rows, or with `system=` (the one that was run) the whole `Solution` with its account.

    Example:
        >>> run = carom.load("run.nc"); run.t, run.q, run.v
        >>> sol = carom.load("run.nc", system=system); sol.account.worst
    """
    path = Path(path)
    unfinished = unfinished_parts(path)
    if path.exists() and unfinished:
        note = f"{path} is a finished run; a newer one, not finished, lies beside it in {parts_folder(path)}"
        warnings.warn(f"{note}: carom.resume goes on with it", stacklevel=users_frame())
    stored = whole(path) if path.exists() else merged(path, unfinished)
    return stored if system is None else revive(stored, system)
