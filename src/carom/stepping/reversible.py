"""Variable steps that keep reversibility: h solves err(h) = target with a symmetric estimate [Jay1998 sec. 9]."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.methods.base import AbstractMethod, Gives
from carom.names import register
from carom.running.compiled import compiled
from carom.state import Carry, Row, State, Status, Step, reals
from carom.stepping.base import AbstractStepping, Aim, after, crawls, step_status, tried
from carom.systems.system import System

_SOLVES = 40
_CLOSE = 1e-14  # |log(err / target)| that counts as solved
_STALLED = 1e-6  # under this, a residual that no longer shrinks is rounding
_LAST = 1e-12  # of the step: a remainder that small belongs to it
_BOLDEST = np.log(4.0)  # largest change of log h in one correction


class Search(eqx.Module):
    """The secant search for log h: the current point, the one before, and the step taken with it."""

    x: Array
    y: Array
    x_before: Array
    y_before: Array
    aim: Aim
    step: Step
    solves: Array
    evaluations: Array
    iterations: Array
    done: Array


@register
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

    needs = frozenset({Gives.SYMMETRIC_ERROR, Gives.WHOLE_STEPS})
    remedy = "Loosen tol"

    def __check_init__(self):
        reals(self.tol, "Reversible: tol", "a positive number")
        for name, value in (("tol", self.tol), ("h", self.h)):
            if isinstance(value, (int, float)) and not (np.isfinite(value) and value > 0):
                msg = f"Reversible: {name} must be positive and finite, got {name} = {value}"
                raise ValueError(msg)

    def init(self, system: System, method: AbstractMethod, state: State, ends: Array) -> Array:
        """A first guess of the step size, from velocity and acceleration."""
        v, a = (
            jnp.linalg.norm(state.v),
            jnp.linalg.norm(compiled(System.acceleration)(system, state.t, state.q, state.v)),
        )
        size = jnp.linalg.norm(state.q)
        pace = jnp.minimum(size / jnp.maximum(v, 1e-300), jnp.sqrt(size / jnp.maximum(a, 1e-300)))
        guess = self.tol ** (1.0 / (method.order + 1)) * pace if self.h is None else jnp.asarray(self.h, float)
        return jnp.minimum(guess, ends[-1] - ends[0]).astype(float)

    def attempt(self, system: System, method: AbstractMethod, carry: Carry) -> tuple[Carry, Row]:
        """One step whose size solves (39) by a secant on logarithms, or that ends the segment with a smaller error."""
        end = carry.ends[carry.segment + 1]
        slope, order = method.error_orders
        log_target = slope / (order + 1.0) * jnp.log(self.tol)
        longest = jnp.log(end - carry.state.t)

        def aimed(x: Array) -> Aim:
            h = jnp.exp(x)
            t = carry.state.t + h
            lands = t >= end - _LAST * h
            return Aim.at(system, carry, h, jnp.where(lands, end, t), lands)

        def trial(s: Search) -> Search:
            """Step with the proposed log h; halve after a failure, else correct by the secant."""
            aim = aimed(s.x)
            step = method.step(system, aim.start, carry.memory, aim.inner)
            ok = step_status(step) == Status.OK
            y = jnp.where(ok, jnp.log(jnp.asarray(step.info.error)) - log_target, jnp.inf)
            stalled = (jnp.abs(y) >= jnp.abs(s.y_before)) & (jnp.abs(s.y_before) < _STALLED)
            done = ok & ((jnp.abs(y) < _CLOSE) | stalled | ((s.x >= longest) & (y <= 0)))
            rise = (y - s.y_before) / (s.x - s.x_before)
            rise = jnp.where(jnp.isfinite(rise) & (rise > 0.2 * slope), rise, slope)
            change = jnp.where(ok, jnp.clip(-y / rise, -_BOLDEST, _BOLDEST), -np.log(2.0))
            x = jnp.where(done, s.x, jnp.minimum(s.x + change, longest))
            evaluations, iterations = s.evaluations + step.info.evaluations, s.iterations + step.info.iterations
            return Search(x, y, s.x, y, aim, step, s.solves + 1, evaluations, iterations, done)

        x = jnp.minimum(jnp.log(carry.stepping), longest)
        shapes = jax.eval_shape(lambda: method.step(system, carry.state, carry.memory, carry.stepping))
        blank = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
        zero, inf = jnp.zeros((), jnp.int32), jnp.asarray(jnp.inf, float)
        first = Search(x, inf, -inf, inf, aimed(x), blank, zero, zero, zero, jnp.asarray(False))
        return _accept(system, carry, jax.lax.while_loop(lambda s: ~s.done & (s.solves < _SOLVES), trial, first))


def _accept(system: System, carry: Carry, search: Search) -> tuple[Carry, Row]:
    """Take the step found, or end the run with its status."""
    counted = (search.evaluations, search.iterations)
    step = eqx.tree_at(lambda s: (s.info.evaluations, s.info.iterations), search.step, counted)
    found = tried(carry, search.aim, step)
    unsolved = (found.status == Status.OK) & (~search.done | (crawls(search.aim.h, found) & ~found.lands))
    status = jnp.where(unsolved, Status.STEP_TOO_SMALL, found.status)
    ok = status == Status.OK
    size = jnp.where(ok & ~found.lands, search.aim.h, carry.stepping)
    return after(system, carry, found, ok, size, status)
