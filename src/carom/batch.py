"""Batches: many trajectories in one compiled loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from carom.loop import Problem, first_carry
from carom.methods.base import AbstractMethod
from carom.progress import Progress, progress_bar
from carom.run import (
    Run,
    chosen_stepping,
    raise_if_failed,
    refuse_features,
    segment_ends,
    stop_function,
    stride,
)
from carom.solution import RowStore, Solution
from carom.state import State, Status, lift
from carom.stepping import Constant
from carom.stepping.base import AbstractStepping
from carom.systems.check import check_lanes
from carom.systems.system import System


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
    many_h = isinstance(h, (Sequence, np.ndarray))
    steppings = [Constant(x) for x in h] if many_h else chosen_stepping(h, stepping)  # pyright: ignore
    lanes, batched = spread(system=system, state=state, method=method, stepping=steppings, t1=t1)
    ends = [segment_ends(lane["system"], lane["state"], lane["t1"]) for lane in lanes]
    for lane, times in zip(lanes, ends):
        refuse_features(lane["system"], lane["state"], lane["method"], lane["stepping"], times)
    tuned = [lane["method"].tuned(lane["system"], lane["state"], lane["stepping"].longest) for lane in lanes]
    for lane, own in zip(lanes, type(tuned[0]).alike(tuned)):
        lane["method"] = own
    kinds = {
        name: stack([lane[name] for lane in lanes], name) if name in batched else lift(lanes[0][name])
        for name in ("system", "method", "stepping")
    }
    starts = stack([lane["state"] for lane in lanes], "state")
    check_lanes([(lane["system"], lane["state"]) for lane in lanes], kinds["system"], "system" in batched, starts)
    for lane, times in zip(lanes, ends):
        lane["method"].caution(lane["system"], lane["state"], lane["stepping"].longest, float(times[-1] - times[0]))
    problem = Problem(kinds["system"], kinds["method"], kinds["stepping"], stop_function(stop), stride(save_every))
    axis = {name: eqx.if_array(0) if name in batched else None for name in kinds}
    axes = Problem(axis["system"], axis["method"], axis["stepping"], None, None)  # pyright: ignore
    carry = first_carry(problem, starts, stack([jnp.asarray(times) for times in ends], "jumps inside the run"), axes)
    parts = [(lane["system"], lane["method"], lane["stepping"]) for lane in lanes]
    run = Run(problem, parts, carry, [RowStore(lane["state"]) for lane in lanes], axes=axes)
    run.go(None, progress_bar(progress, min(times[0] for times in ends), max(times[-1] for times in ends)))
    solutions = [run.solution(i) for i in range(len(lanes))]
    if all(s.status != Status.OK for s in solutions):
        raise_if_failed(run, solutions[0])
    return solutions


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


def stack(trees: list[Any], name: str) -> Any:
    """Stack trees of one kind, array by array."""
    trees = [lift(tree) for tree in trees]
    leaves, treedef = jax.tree.flatten(trees[0])
    columns = [[leaf] for leaf in leaves]
    for i, tree in enumerate(trees[1:], 1):
        others, kind = jax.tree.flatten(tree)
        if kind != treedef or any(a is not b and a != b for a, b in zip(leaves, others) if not eqx.is_array(a)):
            msg = f"simulate_batch: {name}[{i}] is of another kind than {name}[0]; only the numbers may differ"
            raise ValueError(msg)
        for column, leaf in zip(columns, others):
            column.append(leaf)
    arrays = [isinstance(leaf, (jax.Array, np.ndarray)) for leaf in leaves]
    shapes = [{np.shape(x) for x in column} for column, is_array in zip(columns, arrays) if is_array]
    if any(len(found) > 1 for found in shapes):
        msg = f"simulate_batch: the arrays of {name} must have the same shapes in every lane"
        raise ValueError(msg)
    stacked = [
        jnp.asarray(np.stack([np.asarray(x) for x in column])) if is_array else column[0]
        for column, is_array in zip(columns, arrays)
    ]
    return jax.tree.unflatten(treedef, stacked)
