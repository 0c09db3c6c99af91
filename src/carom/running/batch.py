"""Batches: many trajectories in one compiled loop."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from carom.arguments import users_frame
from carom.methods.base import AbstractMethod
from carom.rows import RowStore
from carom.running.asking import (
    caution,
    chosen_stepping,
    refuse_features,
    refuse_kinds,
    refuse_traced,
    segment_ends,
    stop_function,
    stride,
)
from carom.running.keeping import at_kept_times, chosen_keeps, has_all_columns, thin, warn_of_keeps
from carom.running.listing import stacked_pairs, warn_of_overlaps
from carom.running.loop import Problem, Start
from carom.running.progress import Progress, progress_bar
from carom.running.run import Run, raise_failure
from carom.solution import Solution
from carom.state import State, Status
from carom.stepping.base import AbstractStepping
from carom.stepping.grid import Constant
from carom.systems.backward import backward
from carom.systems.check import check_lanes
from carom.systems.first_lists import first_pairs
from carom.systems.listed_pairs import PairData
from carom.systems.system import System

_LANES_PER_THREAD = 100


def simulate_batch(
    system: System | Sequence[System],
    state: State | Sequence[State],
    method: AbstractMethod | Sequence[AbstractMethod],
    *,
    t1: float | Sequence[float],
    h: float | Sequence[float] | None = None,
    stepping: AbstractStepping | Sequence[AbstractStepping] | None = None,
    save_every: int = 1,
    keep: Any = None,
    stop: Callable[..., Any] | None = None,
    progress: bool | Progress | None = None,
) -> list[Solution]:
    """Run many trajectories at once, in one compiled loop; every argument may be one value or a list.

    Systems, methods and steppings of a list must be of one kind (the same model or functions, other numbers). A lane
    that fails does not stop the others: its solution has `status` set, and `SimulationError` is raised only if every
    lane failed. `keep` is one list or dict for all lanes (`carom.keep`); each solution has its own `kept`.

    Example:
        >>> chains, states = zip(*(carom.models.dimer_chain(25, r, 0.06) for r in (0.4, 0.6, 0.8)))
        >>> sols = carom.simulate_batch(chains, states, carom.TailoredIRK(), t1=30.0, h=0.1)
    """
    keeps = chosen_keeps(keep, save_every)
    many_h = isinstance(h, (Sequence, np.ndarray))
    steppings = [Constant(x) for x in h] if many_h else chosen_stepping(h, stepping)  # pyright: ignore
    lanes, batched = spread(system=system, state=state, method=method, stepping=steppings, t1=t1)
    ends = checked_ends(lanes)
    tune = type(lanes[0]["method"]).tuned  # of the class: bound to a module of equinox it costs 15 us a lane
    tuned = [tune(lane["method"], lane["system"], lane["state"], lane["stepping"].longest) for lane in lanes]
    for lane, own in zip(lanes, type(tuned[0]).alike(tuned)):
        lane["method"] = own
    kinds, axes = {}, {}
    for name in ("system", "method", "stepping"):
        trees = [lane[name] for lane in (lanes if name in batched else lanes[:1])]
        kinds[name], axes[name] = shared(*stack(trees, name))
    starts, _ = stack([lane["state"] for lane in lanes], "state")
    check_lanes([(lane["system"], lane["state"]) for lane in lanes], kinds["system"], axes["system"], starts)
    told_once(
        partial(caution, lane["system"], lane["state"], lane["method"], lane["stepping"], times)
        for lane, times in zip(lanes, ends)
    )
    if keeps is not None:
        spans = {(times[0], times[-1]): lane for lane, times in zip(lanes, ends)}
        for (_, end), lane in spans.items():
            keeps.check(lane["system"], lane["state"], float(end))
    if any(times[-1] < times[0] for times in ends):
        trees = [backward(lane["system"]) for lane in (lanes if "system" in batched else lanes[:1])]
        kinds["system"], axes["system"] = shared(*stack(trees, "system"))
    every = stride(save_every if keeps is None else keeps.every)
    problem = Problem(kinds["system"], kinds["method"], kinds["stepping"], stop_function(stop), every, keeps)
    spread_over = Problem(axes["system"], axes["method"], axes["stepping"], None, None)
    start = Start(starts, stack(ends, "jumps inside the run")[0], pairs_of_lanes(lanes, ends))
    runs = [run_of(chosen, lanes, problem, start, spread_over) for chosen in groups(len(lanes))]
    together(runs, progress_bar(progress, min(times[0] for times in ends), max(times[-1] for times in ends)))
    solutions = [run.solution(i) for run in runs for i in range(run.lanes or 0)][: len(lanes)]
    if all(s.status != Status.OK for s in solutions):
        raise_failure(runs[0], solutions[0])
    told_once(partial(review, s) if s.status is Status.OK else None for s in solutions)
    return solutions if keeps is None else [at_kept_times(s) for s in solutions]


def pairs_of_lanes(lanes: list[dict[str, Any]], ends: list[np.ndarray]) -> PairData | None:
    """The first lists of all lanes, after a look for bodies that begin inside each other."""
    if not lanes[0]["system"].has_lists:
        return None
    places = [(lane["system"], lane["state"]) for lane in lanes]
    found: Any = [first_pairs(*place, times[0]) for place, times in zip(places, ends)]
    told_once(partial(warn_of_overlaps, *of, own, times[0]) for of, own, times in zip(places, found, ends))
    return stacked_pairs(found)


def checked_ends(lanes: list[dict[str, Any]]) -> list[np.ndarray]:
    """The segments of every lane, after all that can be refused without its numbers."""
    for lane in lanes:
        refuse_kinds(lane["system"], lane["state"], lane["method"], lane["stepping"])
        refuse_traced(lane["system"], lane["state"], lane["t1"])
    ends = [segment_ends(lane["system"], lane["state"], lane["t1"]) for lane in lanes]
    if any(times[-1] < times[0] for times in ends) and any(times[-1] > times[0] for times in ends):
        msg = "t1: some lanes go forward in time and some backward; run them in two batches"
        raise ValueError(msg)
    for lane, times in zip(lanes, ends):
        refuse_features(lane["system"], lane["state"], lane["method"], lane["stepping"], times)
    return ends


def run_of(chosen: np.ndarray, lanes: list[dict[str, Any]], problem: Problem, start: Start, axes: Problem) -> Run:
    """The run of some of the lanes."""
    members = [lanes[i] for i in chosen]
    parts = [(lane["system"], lane["method"], lane["stepping"]) for lane in members]
    stores = [RowStore(lane["state"]) for lane in members]
    thin(stores, problem.keeps)
    return Run(pick(problem, axes, chosen), parts, Start(*pick(tuple(start), 0, chosen)), stores, axes=axes)


def review(solution: Solution) -> None:
    """Warn about what only the course of a lane could show."""
    if has_all_columns(solution):
        type(solution.method).review(solution.method, solution)
    warn_of_keeps(solution)


def told_once(looks: Iterable[Callable[[], Any] | None]) -> None:
    """Look at every lane, and pass on each warning once, with the first lane it concerns."""
    known = set()
    for i, look in enumerate(looks):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            if look is not None:
                look()
        for warning in found:
            text = str(warning.message)
            kind = (warning.category, re.sub(r"[-+.\d]", "", text))
            if kind not in known:
                known.add(kind)
                warnings.warn(f"lane {i}: {text}", warning.category, stacklevel=users_frame())


def groups(lanes: int) -> list[np.ndarray]:
    """The lanes that go into one loop: all, or on a processor with many cores as many groups of one size as pay off.

    A thread per group halves the time of a thousand small lanes on two cores; XLA's own threads do not. The last lane
    fills up the last group.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = max(1, min(cores, lanes // _LANES_PER_THREAD)) if jax.default_backend() == "cpu" else 1
    size = -(-lanes // count)
    return [np.minimum(np.arange(start, start + size), lanes - 1) for start in range(0, lanes, size)]


def pick(tree: Any, axes: Any, chosen: np.ndarray | int) -> Any:
    """The chosen lanes of everything that is stacked along axis 0."""
    nothing = lambda x: x is None  # noqa: E731
    part = lambda axis, leaves: jax.tree.map(lambda x: x[chosen], leaves) if axis == 0 else leaves  # noqa: E731
    return jax.tree.map(part, axes, tree, is_leaf=nothing)


def together(runs: list[Run], bar: Progress) -> None:
    """Run all groups, each in a thread of its own; the first compiles for all of them."""
    runs[0].chunk()
    with ThreadPoolExecutor(len(runs)) as pool:
        others = [pool.submit(run.go, None, Progress()) for run in runs[1:]]
        try:
            runs[0].go(None, bar)
            for other in others:
                other.result()
        except KeyboardInterrupt:
            for run in runs:
                run.cancelled = True
            raise


def spread(**columns: Any) -> tuple[list[dict[str, Any]], set[str]]:
    """The arguments of every lane, and the names of those given as lists."""
    lists = {name: list(c) for name, c in columns.items() if isinstance(c, (Sequence, np.ndarray))}
    sizes = {name: len(c) for name, c in lists.items()}
    if len(set(sizes.values())) != 1 or 0 in sizes.values():
        msg = f"simulate_batch: the lists must have one common length of at least 1, got {sizes or 'no list'}"
        raise ValueError(msg)
    count = next(iter(sizes.values()))
    lanes = [{name: lists[name][i] if name in lists else c for name, c in columns.items()} for i in range(count)]
    return lanes, set(lists)


def stack(trees: list[Any], name: str) -> tuple[Any, list[bool]]:
    """Stack trees of one kind, array by array; and which leaves are arrays."""
    flat = [jax.tree.flatten(tree) for tree in trees]
    leaves, treedef = flat[0]
    arrays = [isinstance(leaf, (jax.Array, np.ndarray, np.generic, float)) for leaf in leaves]
    fixed = [i for i, is_array in enumerate(arrays) if not is_array]
    for i, (others, kind) in enumerate(flat):
        if kind != treedef or any(leaves[j] is not others[j] and leaves[j] != others[j] for j in fixed):
            msg = f"simulate_batch: {name}[{i}] is of another kind than {name}[0]: only numbers may differ"
            msg += ", which functions read from params" * any(callable(leaves[j]) for j in fixed)
            raise ValueError(msg)
    stacked = []
    for place, (leaf, is_array) in enumerate(zip(leaves, arrays)):
        column = [np.asarray(others[place]) for others, _ in flat] if is_array else [leaf]
        if is_array and any(x.shape != column[0].shape for x in column):
            msg = f"simulate_batch: the arrays of {name} must have the same shapes in every lane"
            raise ValueError(msg)
        stacked.append(np.stack(column) if is_array else leaf)
    return jax.tree.unflatten(treedef, stacked), arrays


def shared(tree: Any, arrays: list[bool]) -> tuple[Any, Any]:
    """A stacked tree in which arrays that are alike in all lanes stand once, and the axes of the others.

    What does not depend on the lane is then computed once for all of them, often outside the loop.
    """
    leaves, treedef = jax.tree.flatten(tree)
    alike = [
        is_array and np.array_equal(leaf, np.broadcast_to(leaf[:1], leaf.shape), equal_nan=True)
        for leaf, is_array in zip(leaves, arrays)
    ]
    once = [jnp.asarray(leaf[0]) if same else leaf for leaf, same in zip(leaves, alike)]
    axes = [0 if is_array and not same else None for is_array, same in zip(arrays, alike)]
    return jax.tree.unflatten(treedef, once), jax.tree.unflatten(treedef, axes)
