"""Contacts that rest at the start of a run: what lifts them falls back, what presses them is not possible."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from carom.derivatives.watch import jets
from carom.solvers.redundant import multipliers
from carom.solvers.roots import moving_as
from carom.state import State
from carom.systems.contact_rows import contact_rows, over_mass
from carom.systems.system import System

_TOUCHING = 1e-10  # of the coordinates, or velocities


def kept_resting(system: System, state: State) -> State:
    """The state with the derivative of one in which contacts that rest stay closed and still.

    Tangents of a motion have no part that opens them: it would vanish when they fall back.
    """
    if system.contacts is None:
        return state
    t, q, v = state.t, state.q, state.v
    gap, rate, bend = jets(system, state)
    at, n = contact_rows(system, t, q, v), gap.size
    W, W_M = at.W.dense(), over_mass(system, t, q, at.W, system.force(t, q, v))[0].dense()
    rests = (jnp.abs(gap) <= _touch(q)) & (jnp.abs(rate) <= _touch(v)) & (bend < 0)
    rows = jnp.zeros(len(W), bool).at[:n].set(rests)

    def undone(x: Array) -> Array:
        return -(multipliers(W @ W_M.T, jnp.zeros(len(W)).at[:n].set(jnp.where(rests, x, 0.0)), rows) @ W_M)

    still = state.moved(t, q + system.rate(t, q, v + undone(gap)) - system.rate(t, q, v), v + undone(rate))
    return state.moved(t, *moving_as((q, v), (still.q, still.v)))


def _touch(x: Array) -> Array:
    return _TOUCHING * (1.0 + jnp.max(jnp.abs(x)))
