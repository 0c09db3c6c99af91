"""Variable steps that keep reversibility: h solves err(h) = target with a symmetric estimate [Jay1998 sec. 9]."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.compiled import compiled
from carom.methods.base import AbstractMethod
from carom.state import Carry, Info, Row, State, Status, Step
from carom.stepping.base import AbstractStepping, inside, row_of, step_status
from carom.systems.system import System

_SOLVES = 40
_CLOSE = 1e-14  # |log(err / target)| that counts as solved
_STALLED = 1e-6  # under this, a residual that no longer shrinks is rounding
_BOLDEST = np.log(4.0)  # largest change of log h in one correction


class Place(eqx.Module):
    """Segment, and the last step size that solved (39)."""

    segment: Array
    h: Array


class Search(eqx.Module):
    """The secant search for log h: the current point, the one before, and the step taken with it."""

    x: Array
    y: Array
    x_before: Array
    y_before: Array
    step: Step
    solves: Array
    evaluations: Array
    iterations: Array
    done: Array


class Reversible(AbstractStepping):
    """Steps with `err(h) = tol^((pe + 1)/(p + 1))`, solved to rounding, Jay1998 (38)-(39).

    err is the method's symmetric error estimate of order pe + 1, p its order; with a symmetric method the step back
    has the same size, so the flow stays reversible. Only a step cut at the end of a segment is not.

    Args:
        tol: the local error aimed at.
        h: first guess of the step size; None takes it from the motion at the start.

    Example:
        >>> stepping = carom.Reversible(1e-8)
    """

    tol: float
    h: float | None = None

    needs = frozenset({"error estimate"})

    def __check_init__(self):
        for name, value in (("tol", self.tol), ("h", self.h)):
            if isinstance(value, (int, float)) and not (np.isfinite(value) and value > 0):
                msg = f"Reversible: {name} must be positive and finite, got {name} = {value}"
                raise ValueError(msg)

    def init(self, system: System, method: AbstractMethod, state: State, ends: Array) -> Place:
        """At the start of the first segment, with a guess from velocity and acceleration."""
        v, a = (
            jnp.linalg.norm(state.v),
            jnp.linalg.norm(compiled(System.acceleration)(system, state.t, state.q, state.v)),
        )
        size = jnp.linalg.norm(state.q)
        pace = jnp.minimum(size / jnp.maximum(v, 1e-300), jnp.sqrt(size / jnp.maximum(a, 1e-300)))
        guess = self.tol ** (1.0 / (method.order + 1)) * pace if self.h is None else jnp.asarray(self.h, float)
        return Place(jnp.zeros((), jnp.int64), jnp.minimum(guess, ends[-1] - ends[0]).astype(float))

    def attempt(self, system: System, method: AbstractMethod, carry: Carry) -> tuple[Carry, Row]:
        """One step whose size solves (39) by a secant on logarithms, or that ends the segment with a smaller error."""
        place, segment = carry.stepping, carry.stepping.segment
        start, end = carry.ends[segment], carry.ends[segment + 1]
        many = carry.ends.size > 2
        slope = method.error_order  # pyright: ignore
        log_target = slope / (method.order + 1.0) * jnp.log(self.tol)
        longest = jnp.log(end - carry.state.t)

        def trial(s: Search) -> Search:
            """Step with the proposed log h; halve after a failure, else correct by the secant."""
            t, h = inside(start, end, carry.state.t, jnp.exp(s.x), many)
            step = method.step(system, carry.state.moved(t, carry.state.q, carry.state.v), carry.memory, h)
            ok = step_status(step) == Status.OK
            y = jnp.where(ok, jnp.log(jnp.asarray(step.info.error)) - log_target, jnp.inf)
            stalled = (jnp.abs(y) >= jnp.abs(s.y_before)) & (jnp.abs(s.y_before) < _STALLED)
            done = ok & ((jnp.abs(y) < _CLOSE) | stalled | ((s.x >= longest) & (y <= 0)))
            rise = (y - s.y_before) / (s.x - s.x_before)
            rise = jnp.where(jnp.isfinite(rise) & (rise > 0.2 * slope), rise, slope)
            change = jnp.where(ok, jnp.clip(-y / rise, -_BOLDEST, _BOLDEST), -np.log(2.0))
            x = jnp.where(done, s.x, jnp.minimum(s.x + change, longest))
            info = step.info
            return Search(
                x, y, s.x, y, step, s.solves + 1, s.evaluations + info.evaluations, s.iterations + info.iterations, done
            )

        search = jax.lax.while_loop(
            lambda s: ~s.done & (s.solves < _SOLVES), trial, self._first(system, method, carry, longest)
        )
        return _accept(system, carry, place, search, end)

    def _first(self, system: System, method: AbstractMethod, carry: Carry, longest: Array) -> Search:
        """The search before its first trial: the last step size."""
        shapes = jax.eval_shape(lambda: method.step(system, carry.state, carry.memory, carry.stepping.h))
        blank = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
        zero, inf = jnp.zeros((), jnp.int32), jnp.asarray(jnp.inf, float)
        x = jnp.minimum(jnp.log(carry.stepping.h), longest)
        return Search(x, inf, -inf, inf, blank, zero, zero, zero, jnp.asarray(False))


def _accept(system: System, carry: Carry, place: Place, search: Search, end: Array) -> tuple[Carry, Row]:
    """Take the step found, or end the run with its status."""
    step = search.step
    status = jnp.where(
        search.done, Status.OK, jnp.where(jnp.isfinite(search.y), Status.STEP_TOO_SMALL, step_status(step))
    )
    ok = status == Status.OK
    h = jnp.exp(search.x)
    last = carry.state.t + h >= end - 1e-12 * h
    t = jnp.where(last, end, carry.state.t + h)
    arrived = step.state.moved(t, step.state.q, step.state.v)
    state, memory = jax.tree.map(
        lambda new, old: jnp.where(ok, new, old), (arrived, step.memory), (carry.state, carry.memory)
    )
    info = Info(**{**vars(step.info), "evaluations": search.evaluations, "iterations": search.iterations})
    segment = place.segment + (ok & last)
    place = Place(segment, jnp.where(ok & ~last, h, place.h))
    k = carry.k + ok
    done = segment >= carry.ends.size - 1
    row = row_of(system, k, ok, state, t - carry.state.t, info)
    return Carry(state, memory, place, carry.ends, k, status, done, carry.counts.add(info, ok)), row
