"""The loop of a sweep: batches of lanes that keep no rows, one after the other on every core or device."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.keep.base import place
from carom.running import loop
from carom.running.batch import pick
from carom.running.compiled import blank, compiled
from carom.running.fused import Kernel
from carom.running.loop import Problem, Start, attempt, begin, masked_attempt
from carom.state import Carry, Status
from carom.sweeps.tables import REFUSED, Table, Tables, memories, tables
from carom.sweeps.template import Lanes, Template

_CHUNK_SECONDS = 0.5
_FIRST_ATTEMPTS = 64


class Part(NamedTuple):
    """What a batch of cells gave: numbers by name, why cells failed, and coordinates and velocities at the end."""

    tables: Tables
    messages: dict[int, str]
    end: tuple[np.ndarray, np.ndarray]


@compiled
def advance(problem: Problem, carry: Carry, start: Start, limits: Any, axes: Problem) -> tuple[Carry, Array, Array]:
    """Attempts of all lanes until all are done, or up to `limits[0]`; from the start if `limits[1]`.

    Returns the carry, the user's places, and attempts made with whether any lane can go on.
    """
    attempts = eqx.filter_vmap(masked_attempt, in_axes=(axes, eqx.if_array(0)))
    if len(start.instants) == 1:  # alone a lane waits for no other, and only branches that are taken cost something
        alone = pick(problem, axes, 0)
        attempts = lambda _, carry: _stacked(attempt(alone, jax.tree.map(lambda x: x[0], carry)))  # noqa: E731

    def turn(inner: Any) -> Any:
        return attempts(problem, inner[0])[0], inner[1] + 1

    carry, most = _first(problem, carry, start, limits, axes), limits[0]
    carry, n = jax.lax.while_loop(lambda c: _goes_on(c[0]) & (c[1] < most), turn, (carry, jnp.zeros((), int)))
    return _summed_up(problem, carry, n, axes)


def _advance_fused(problem: Problem, carry: Carry, start: Start, limits: Any, axes: Problem) -> Any:
    """As `advance`, by a `Kernel`."""
    carry = _first(problem, carry, start, limits, axes)
    carry, n = Kernel(problem, carry, axes)(problem, carry, limits[0])
    return _summed_up(problem, carry, n.astype(int), axes)


advance_fused = compiled(_advance_fused, {})


def _first(problem: Problem, carry: Carry, start: Start, limits: Any, axes: Problem) -> Carry:
    loop.traces += 1
    return jax.lax.cond(limits[1] > 0, lambda: begin(problem, start, axes), lambda: carry)


def _summed_up(problem: Problem, carry: Carry, n: Array, axes: Problem) -> tuple[Carry, Array, Array]:
    seen = eqx.filter_vmap(_place, in_axes=(axes, eqx.if_array(0)))(problem, carry)
    return carry, seen, jnp.stack([n, _goes_on(carry).astype(int)])


def _goes_on(carry: Carry) -> Array:
    return jnp.any(~carry.done & (carry.status == Status.OK))


def _stacked(tree: Any) -> Any:
    return jax.tree.map(lambda x: jnp.asarray(x)[None], tree)


def _place(problem: Problem, carry: Carry) -> Array:
    return place(problem.system.since(carry.epoch), carry.state)


_blank = blank(begin)


def run_batch(
    template: Template, numbers: dict[str, Any], begin_at: Any = None, stop: threading.Event | None = None
) -> Part:
    """Run cells with these numbers to their ends; NaN where a cell failed."""
    lanes = template.lanes(numbers, begin_at)
    carry = _blank(lanes.problem, lanes.start, lanes.axes)
    limits, goes_on = np.array([_FIRST_ATTEMPTS, 1]), len(lanes.failed) < len(lanes.start.instants)
    seen = None
    while goes_on:
        began = time.perf_counter()
        try:
            with template.turn if limits[1] else nullcontext():  # one thread compiles for all
                run = advance_fused if template.is_lanewise else advance
                carry, seen, summary = run(lanes.problem, carry, lanes.start, limits, lanes.axes)
        except Exception as error:
            if not (template.is_lanewise and _is_unknown(error)):
                raise
            template.is_lanewise = False
            continue
        attempts, goes_on = np.asarray(summary).tolist()
        seconds = max(time.perf_counter() - began, 1e-3)
        grow = min(_CHUNK_SECONDS / seconds, 16.0) if attempts == limits[0] else 1.0
        limits = np.array([max(1, int(limits[0] * grow)), 0])
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt
    return _part(lanes, jax.tree.map(np.asarray, carry), seen)


def _is_unknown(error: Exception) -> bool:
    """Whether kernels do not know an operation: here, or in Pallas, which wraps its errors."""
    return isinstance(error, NotImplementedError) or type(error).__name__ == "LoweringError"


def _part(lanes: Lanes, carry: Any, seen: Any) -> Part:
    """The numbers of a batch that came to its end; `carry` is on the host."""
    failed = dict(lanes.failed)
    n = carry.state.q.shape[-1]
    status = carry.status.copy()
    status[list(failed)] = REFUSED
    where = np.asarray(seen) if seen is not None else np.full((len(status), 1 + n + carry.state.v.shape[-1]), np.nan)
    state = carry.state.moved(carry.state.t, where[:, 1 : n + 1], where[:, n + 1 :])
    carry = eqx.tree_at(lambda c: (c.status, c.state), carry, (status, state))
    found = tables(lanes.problem.keeps, carry, lanes.problem.stepping.goes_back, failed)
    found |= {name: Table((), x) for name, x in lanes.asked.items()}
    bad = (found["status"].values != Status.OK)[:, None]
    end = (np.where(bad, np.nan, state.q), np.where(bad, np.nan, state.v))
    named = _not_finite(lanes.problem, carry)
    return Part(found, failed | _stopped(carry, named), end)


def _not_finite(problem: Problem, carry: Any) -> dict[int, str]:
    """Lanes in which a function of a keep was NaN, and when."""
    told, kept = {}, memories(carry, problem.stepping.goes_back)
    for name, keep in problem.keeps.entries.items():
        first = keep.not_finite_at(kept[name])
        if first is None:
            continue
        for i in np.flatnonzero(np.isfinite(first)).tolist():
            told[i] = f"{name} is NaN at t = {carry.instants[i, 0] + first[i]:.9g}: the run ends there"
    return told


def _stopped(carry: Any, named: dict[int, str]) -> dict[int, str]:
    """Why lanes ended before their time; of some the reason has been `named`."""
    told = {}
    for i in np.flatnonzero(carry.status > 0).tolist():
        if i in named:
            told[i] = named[i]
            continue
        t = carry.instants[i, 0] + carry.state.t[i]
        cause, remedy = Status(int(carry.status[i])).message
        told[i] = f"{cause} in the step from t = {t:.9g} (step {int(carry.k[i]) + 1}). {remedy}"
    return told
