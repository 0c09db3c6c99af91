"""Maps of the largest Lyapunov exponent: one tangent per cell of a sweep, carried through impacts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.derivatives.final import final_state
from carom.derivatives.resting import kept_resting
from carom.methods.base import AbstractMethod
from carom.orbits.asking import refuse_run
from carom.orbits.statistics import mean_rates
from carom.running.compiled import compiled
from carom.running.loop import Problem
from carom.running.signals import deferred, look
from carom.state import State, Status
from carom.sweeps.cells import AbstractCells
from carom.sweeps.engine import Part
from carom.sweeps.gathering import Gathered
from carom.sweeps.plan import Batch, Plan, plan
from carom.sweeps.sweep import question
from carom.sweeps.tables import REFUSED, Table
from carom.sweeps.template import cell_of
from carom.sweeps.tools import strobed
from carom.systems.system import System

if TYPE_CHECKING:
    import xarray

_LONGER = 8  # times as many steps as were asked for: events add some


def exponent_map(
    build: Callable[..., tuple[System, State]],
    cells: AbstractCells,
    method: AbstractMethod,
    *,
    period: Any,
    transient: int = 100,
    kept: int = 200,
    steps: int = 100,
    batch: int | None = None,
) -> xarray.Dataset:
    """The largest Lyapunov exponent of a driven system in every cell: positive where its motion is chaotic.

    One tangent is carried along each motion exactly, with the jumps of impacts, and made short again after every
    period. The dataset has `exponent` and `exponent_error` (standard error, from means over parts of the run). Where
    something sticks, the tangent vanishes: the exponent is -inf, or far below zero behind an accumulation of impacts.

    Args:
        build: function of the parameters that returns (system, state).
        cells: `carom.Grid`, `carom.Cases` or `carom.Random`.
        method: one step; `carom.EventCapturing` where there are contacts.
        period: of the drive: a number, or a function of the parameters.
        transient: periods that do not count.
        kept: periods that do.
        steps: steps per period.
        batch: cells that run together.

    Example:
        >>> grid = carom.Grid(frequency=np.linspace(2.4, 3.2, 40), restitution=np.linspace(0.5, 0.9, 30))
        >>> method = carom.EventCapturing(carom.explicit(4))
        >>> period = lambda frequency: 2 * np.pi / frequency
        >>> data = carom.exponent_map(carom.models.driven_oscillator, grid, method, period=period)
        >>> carom.plots.parameter_map(data, "exponent")
    """
    asked = question(build, method, **strobed(build, period, transient, kept, steps), static=())
    made = plan(cells, asked, None, batch, 1)
    own = cell_of(asked, {}, made.first(int(made.batches[0].cells[0])))
    refuse_run(own.system, own.state, method, own.stepping, float(own.t1))
    gathered = Gathered.of(made)
    with deferred():
        for one in made.batches:
            gathered.take(one, _part(made, one, transient, kept, _LONGER * steps))
    return gathered.finish().dataset()


def _part(made: Plan, batch: Batch, transient: int, kept: int, most: int) -> Part:
    """The exponents of a batch of cells."""
    lanes = made.template(batch).lanes(made.numbers(batch.cells))
    ends, state = lanes.start.instants, lanes.start.state
    begin, count = ends[:, 0], transient + kept
    period = (ends[:, -1] - begin) / count
    size = state.q.shape[1] + state.v.shape[1]
    tangents, growth = jnp.ones((len(begin), size)) / np.sqrt(size), []
    status, steps = np.zeros(len(begin), np.int32), np.zeros(len(begin), np.int64)
    for k in range(count):
        t1 = jnp.asarray(begin + (k + 1) * period)
        state, tangents, logs, ended, taken = _over_a_period(lanes.problem, state, tangents, t1, most, lanes.axes)
        status = np.where(status == Status.OK, np.asarray(ended), status)
        steps += np.asarray(taken)
        growth.append(np.asarray(logs))
        look()
    exponents, errors = mean_rates(np.stack(growth[transient:]), period * np.ones((kept, 1)))
    status[list(lanes.failed)] = REFUSED
    bad = status != Status.OK
    messages = {i: Status(int(status[i])).message[0] for i in np.flatnonzero(status > 0).tolist()}
    tables = {"exponent": exponents, "exponent_error": errors}
    found = {name: Table((), np.where(bad, np.nan, x)) for name, x in tables.items()}
    found |= {"status": Table((), status), "steps": Table((), steps)}
    return Part(found, lanes.failed | messages, (np.empty(0), np.empty(0)))


@compiled
def _over_a_period(
    problem: Problem, state: State, tangents: Array, t1: Array, most: int, axes: Problem
) -> tuple[State, Array, Array, Array, Array]:
    """All lanes one period on: states, tangents of length one, logarithms of their growth, how runs ended, steps."""

    def one(problem: Problem, state: State, tangent: Array, t1: Array) -> tuple[State, Array, Array, Array, Array]:
        n = state.q.size

        def end(y: Array) -> tuple[Array, Any]:
            start = kept_resting(problem.system, state.moved(state.t, y[:n], y[n:]))
            more = {"stepping": problem.stepping, "max_steps": most}
            found = final_state(problem.system, start, problem.method, t1=t1, **more)
            return jnp.concatenate([found.state.q, found.state.v]), found

        y = jnp.concatenate([state.q, state.v])
        _, grown, found = jax.jvp(end, (y,), (tangent,), has_aux=True)
        length = jnp.sqrt(jnp.sum(grown * grown))
        shortened = jnp.where(length > 0, grown / jnp.where(length > 0, length, 1.0), tangent)
        return found.state, shortened, jnp.log(length), found.status, found.steps

    return eqx.filter_vmap(one, in_axes=(axes, 0, 0, 0))(problem, state, tangents, t1)
