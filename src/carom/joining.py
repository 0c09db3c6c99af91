"""Two runs, the second of which went on where the first ended, as one."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from carom.solution import Solution
from carom.systems.contact_rows import Happened

_SAME = 1e-12  # relative difference of places that are one


def join(first: Solution, second: Solution) -> Solution:
    """One solution of a run and of the one that went on from its last state, also with another method or stepping.

    Columns that only one of them has are left out. The result is stored and resumed as the second is; its `elapsed`
    counts from the start of the second, negative before.

    Example:
        >>> sol = carom.simulate(ball, state, carom.EventCapturing(carom.explicit(4)), t1=1.0, h=0.01)
        >>> rest = carom.simulate(ball, sol.state, carom.MoreauMidpoint(), t1=2.0, h=1e-4)
        >>> both = carom.join(sol, rest)
    """
    for name, run in (("first", first), ("second", second)):
        if not isinstance(run, Solution) or not hasattr(run, "carry"):
            msg = f"join: the {name} must be a Solution with its system, got {type(run).__name__}"
            raise TypeError(msg)
        if run.keeps is not None:
            msg = f"join: the {name} run has keeps in place of all rows; what it kept stays in its own `kept`"
            raise ValueError(msg)
    if not eqx.tree_equal(first.system, second.system):
        msg = "join: the two runs are of different systems (functions are compared as objects, numbers by value)"
        raise ValueError(msg)
    if first.clock.backward != second.clock.backward:
        msg = "join: one of the runs goes forward in time, the other backward"
        raise ValueError(msg)
    end, start = first.state, (second.t[0], second.q[0], second.v[0])
    for name, here, there in zip(("t", "q", "v"), (end.t, end.q, end.v), start):
        apart, size = np.max(np.abs(np.asarray(here) - there)), np.max(np.abs(there))
        if apart > _SAME * size:
            msg = f"join: the second run begins elsewhere than the first ends: {name} differs by {apart:.3g}"
            raise ValueError(msg)
    return joined(first, second)


def joined(first: Solution, second: Solution, choice: Any = None) -> Solution:
    """Two solutions one after the other, without the first row of the second, which is the last of the first."""
    columns = {
        name: np.concatenate([values, second.columns[name][1:]])
        for name, values in first.columns.items()
        if name in second.columns and values.shape[1:] == second.columns[name].shape[1:]
    }
    taken = first.carry.k
    columns["k"] = np.concatenate([first.columns["k"], int(taken) + second.columns["k"][1:]])
    begin = second.columns["elapsed"][0]  # negative where the second is a joined run itself
    before = first.columns["elapsed"] - first.clock.turned(float(first.carry.state.t)) + begin
    columns["elapsed"] = np.concatenate([before, second.columns["elapsed"][1:]])
    timing = {name: value + second.timing[name] for name, value in first.timing.items()}
    counts = second.carry.counts.values + first.carry.counts.values
    carry = eqx.tree_at(lambda c: (c.counts.values, c.k), second.carry, (counts, second.carry.k + taken))
    if carry.work is not None:
        work = np.roll(carry.work, int(taken)) + first.contact_work  # that after step k stands in entry k modulo length
        carry = eqx.tree_at(lambda c: c.work, carry, jnp.asarray(work))
    solution = Solution(second.system, second.method, second.stepping, columns, carry, timing, choice)
    if first.happened or second.happened:
        table = np.concatenate([first.events, second.events]).view(np.recarray)
        solution.happened = Happened.of(table, int(carry.k))
    return solution
