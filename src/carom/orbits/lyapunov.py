"""Lyapunov exponents of systems whose velocities jump: tangents through impacts, made orthogonal again and again."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import plain_numbers, users_frame, whole
from carom.derivatives.final import final_state
from carom.derivatives.resting import kept_resting
from carom.methods.base import AbstractMethod
from carom.orbits.asking import failure, refuse_run
from carom.orbits.statistics import mean_rates
from carom.running.asking import chosen_stepping
from carom.running.compiled import compiled
from carom.running.signals import deferred, look
from carom.state import State, shortened
from carom.stepping.base import AbstractStepping
from carom.systems.features import NONSMOOTH, Feature
from carom.systems.system import System

_VANISHING = NONSMOOTH | {Feature.CONSTRAINTS, Feature.NONHOLONOMIC}  # where tangents end for good
_PARTS = 200  # of a run, at whose ends tangents are made orthogonal unless told otherwise
_ROUNDING = 64 * float(np.finfo(float).eps)  # what is left of a tangent beyond the others, if no more, is nothing


@dataclass(frozen=True)
class Lyapunov:
    """Exponents of a motion, the largest first.

    Attributes:
        exponents: mean rates at which tangents grow; -inf where they vanish, as by sticking, or shrink to rounding.
        errors: their standard errors, from means over parts of the run.
        times: ends of the parts.
        growth: logarithms of the growth in every part, (parts, exponents).
        state: the last state.
    """

    exponents: np.ndarray
    errors: np.ndarray
    times: np.ndarray
    growth: np.ndarray
    state: State

    @property
    def history(self) -> np.ndarray:
        """The exponents as they would have been found up to every time, (parts, exponents)."""
        spans = np.diff(self.times)
        return np.cumsum(self.growth, axis=0) / np.cumsum(spans)[:, None]

    @property
    def dimension(self) -> float:
        """The dimension of Kaplan and Yorke; needs all exponents."""
        sums = np.cumsum(self.exponents)
        if sums[0] < 0:
            return 0.0
        k = int(np.flatnonzero(sums >= 0)[-1])
        return float(len(sums)) if k + 1 == len(sums) else k + 1 + sums[k] / abs(self.exponents[k + 1])

    def __repr__(self) -> str:
        told = ", ".join(f"{x:.4g} +- {e:.1g}" for x, e in zip(self.exponents, self.errors))
        return f"<Lyapunov: exponents {told} over t = {self.times[0]:g} to {self.times[-1]:g}>"


class _Flow(NamedTuple):
    system: System
    method: AbstractMethod
    stepping: AbstractStepping
    max_steps: int


def lyapunov(
    system: System,
    state: State,
    method: AbstractMethod,
    *,
    t1: float,
    count: int | None = None,
    every: float | None = None,
    transient: float = 0.0,
    h: float | None = None,
    stepping: AbstractStepping | None = None,
    max_steps: int = 4096,
) -> Lyapunov:
    """The spectrum of Lyapunov exponents of a motion from `state` to t1.

    Tangents are carried along exactly, with the jumps of impacts, and made orthogonal (QR) after every part of the run.

    Args:
        system: the equations.
        state: where to start; its `t` is the first time.
        method: one step; `carom.EventCapturing` where there are contacts.
        t1: end of the run.
        count: how many exponents, the largest ones; None finds all, one per coordinate and velocity.
        every: time between two factorisations; None takes 200 in all. Of a driven system take its period.
        transient: time at the start that does not count.
        h: constant step size.
        stepping: who chooses the step size; give this or `h`.
        max_steps: most steps between two factorisations.

    Example:
        >>> oscillator, state = carom.models.driven_oscillator(frequency=2.8)
        >>> method, period = carom.EventCapturing(carom.explicit(5)), 2 * np.pi / 2.8
        >>> found = carom.lyapunov(oscillator, state, method, t1=200 * period, every=period, h=period / 40)
        >>> found.exponents, found.errors
    """
    if not isinstance(state, State):
        msg = f"state must be a carom.State, got {shortened(state)}"
        raise TypeError(msg)
    size, t0 = state.q.size + state.v.size, float(state.t)
    count = size if count is None else whole(count, "count", 1)
    if count > size:
        msg = f"count must be at most {size}, one per coordinate and velocity, got {count}"
        raise ValueError(msg)
    end = float(plain_numbers(t1, "t1", size=1))
    early = float(plain_numbers(transient, "transient", size=1, nonnegative=True))
    if not t0 + early < end:
        msg = f"t1 must lie after the transient, which ends at t = {t0 + early:g}, got t1 = {end:g}"
        raise ValueError(msg)
    spacing = (end - t0) / _PARTS if every is None else float(plain_numbers(every, "every", size=1, positive=True))
    times = np.append(np.arange(t0, end - 1e-9 * spacing, spacing), end)
    counted = times[:-1] >= t0 + early - 1e-9 * spacing
    if not counted.any():
        msg = f"the transient ends within the last part of the run, at t = {t0 + early:g}: raise t1 or lower every="
        raise ValueError(msg)
    flow = _Flow(system, method, chosen_stepping(h, stepping), whole(max_steps, "max_steps", 1))
    refuse_run(system, state, method, flow.stepping, end)
    tangents, growth = jnp.eye(size)[:, :count], []
    with deferred():
        for t in times[1:]:
            state, tangents, logs, status = _part(flow, state, tangents, jnp.asarray(t))
            if int(status):
                where = f"the motion ends after t = {times[len(growth)]:.9g}"
                raise failure(int(status), where, "Take other steps, raise max_steps, or lower every=")
            growth.append(np.asarray(logs))
            look()
    if np.isneginf(growth).any() and not _VANISHING & system.features:
        told = f"a tangent shrank to rounding within {spacing:.3g}, and its exponent is given as -inf: lower every="
        warnings.warn(f"lyapunov: {told}", stacklevel=users_frame())
    return _judged(times[int(np.argmax(counted)) :], np.stack(growth)[counted], state)


@compiled
def _part(flow: _Flow, state: State, tangents: Array, t1: Array) -> tuple[State, Array, Array, Array]:
    """The motion to t1, and what became of the tangents: an orthogonal basis, and the logarithms of their growth."""
    n = state.q.size

    def end(y: Array) -> tuple[Array, Any]:
        start = kept_resting(flow.system, state.moved(state.t, y[:n], y[n:]))
        more = {"stepping": flow.stepping, "max_steps": flow.max_steps}
        found = final_state(flow.system, start, flow.method, t1=t1, **more)
        return jnp.concatenate([found.state.q, found.state.v]), found

    y = jnp.concatenate([state.q, state.v])
    push = lambda d: jax.jvp(end, (y,), (d,), has_aux=True)  # noqa: E731
    _, grown, found = jax.vmap(push, in_axes=1, out_axes=(None, 1, None))(tangents)
    Q, R = jnp.linalg.qr(grown)
    left = jnp.abs(jnp.diagonal(R))
    left = jnp.where(left > _ROUNDING * jnp.linalg.norm(grown, axis=0), left, 0.0)
    return found.state, Q, jnp.log(left), found.status


def _judged(times: np.ndarray, growth: np.ndarray, state: State) -> Lyapunov:
    """Exponents and their errors; the order is that of size."""
    exponents, errors = mean_rates(growth, np.diff(times)[:, None])
    order = np.argsort(-exponents, kind="stable")
    return Lyapunov(exponents[order], errors[order], times, growth[:, order], state)
