"""Keeps of averages over time: the mean of a function of the motion, and how long it had which values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import UserFunction, judged, plain_numbers, user_function
from carom.keep.base import Taken
from carom.keep.totals import AbstractTotal
from carom.state import Numbers, State, choose, reals, shortened
from carom.systems.probe import probe_number, result
from carom.systems.system import System

_SIGNATURES = (("t", "q", "v"), ("q", "v"), ("q",))


class Sum(eqx.Module):
    """A function's latest value, its integral over time (or over the bins of a histogram), and the time itself."""

    latest: Array
    total: Array
    time: Array


def _value(f: UserFunction, system: System, t: Array, q: Array, v: Array) -> Array:
    return jnp.asarray(f(system.given, t=system.turned(t), q=q, v=v), float)


def _first(f: UserFunction, system: System, state: State) -> Array:
    v = system.outer_velocity(state.t, state.q, state.v)
    return _value(f, system, state.t, state.q, v)


def _counts(taken: Taken, after: Any) -> Array:
    """Whether a step counts: it was accepted, and began late enough."""
    return taken.accepted & (taken.a.t >= after * (1 - 1e-12))


class AbstractAverage(AbstractTotal):
    """An average over the time of a run, or its end."""

    def caution(self, memory: Sum) -> str | None:
        """Nothing to average was probably not meant."""
        return None if memory.time > 0 else "is NaN: no step began after `after`"


class Mean(AbstractAverage):
    """The average over time of a function of (t, q, v), (q, v) or (q), by the trapezoidal rule on the steps.

    Args:
        f: returns a number or an array.
        after: time since the start before which nothing counts.

    Example:
        >>> keep = {"energy": carom.keep.mean(lambda q, v: 0.5 * v @ v + 2.0 * q @ q, after=10.0)}
        >>> sol = carom.simulate(system, state, method, t1=50.0, h=0.01, keep=keep)
        >>> sol.kept["energy"]
    """

    f: UserFunction
    after: np.ndarray

    kind: ClassVar[str] = "mean"

    def __init__(self, f: Callable[..., Any], after: float = 0.0):
        self.f = user_function(f, "keep.mean: f", *_SIGNATURES)
        self.after = plain_numbers(after, "keep.mean: after", size=1, nonnegative=True).reshape(())

    def check(self, name: str, system: System, state: State, t1: float) -> None:
        """The function must return numbers."""
        del t1
        result(self.f, name, state, system, lambda x: jnp.asarray(x, float))

    def init(self, system: System, state: State) -> Sum:
        """Nothing yet."""
        first = _first(self.f, system, state)
        return Sum(first, jnp.zeros_like(first), jnp.zeros(()))

    def update(self, memory: Sum, taken: Taken) -> Sum:
        """Add the area of the step."""
        row = taken.row
        value = _value(self.f, taken.system, row.t, row.q, row.v)
        h = jnp.where(_counts(taken, self.after), taken.b.t - taken.a.t, 0.0)
        area = jnp.where(h > 0, 0.5 * h * (memory.latest + value), 0.0)
        return Sum(choose(taken.accepted, value, memory.latest), memory.total + area, memory.time + h)

    def finished(self, memory: Sum) -> Any:
        """The mean; NaN if no time passed."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(memory.total) / np.asarray(memory.time)


class Histogram(AbstractAverage):
    """How much of the time a function of (t, q, v), (q, v) or (q) spent between which values, as parts of 1.

    A step counts with its length, at the value it ended with; values outside the edges count in no bin.

    Args:
        f: returns a number.
        edges: ascending edges of the bins, one more than bins.
        after: time since the start before which nothing counts.

    Example:
        >>> keep = [carom.keep.histogram(lambda q: q[0], np.linspace(-1.0, 1.0, 101), after=10.0)]
        >>> sol = carom.simulate(system, state, method, t1=500.0, h=0.01, keep=keep)
        >>> sol.kept["histogram 0"]
    """

    f: UserFunction
    edges: np.ndarray
    after: np.ndarray

    kind: ClassVar[str] = "histogram"

    def __init__(self, f: Callable[..., Any], edges: Numbers, after: float = 0.0):
        self.f = user_function(f, "keep.histogram: f", *_SIGNATURES)
        found = reals(edges, "keep.histogram: edges", "an ascending list of numbers")

        def judge(found: np.ndarray) -> None:
            if found.ndim != 1 or found.size < 2 or not (np.diff(found) > 0).all():
                got = shortened(found.tolist())
                msg = f"keep.histogram: edges must be an ascending list of at least two numbers, got {got}"
                raise ValueError(msg)

        self.edges = judged(found, judge)
        self.after = plain_numbers(after, "keep.histogram: after", size=1, nonnegative=True).reshape(())

    def check(self, name: str, system: System, state: State, t1: float) -> None:
        """The function must return one number."""
        del t1
        probe_number(self.f, name, system, state)

    def init(self, system: System, state: State) -> Sum:
        """Nothing yet."""
        del system, state
        return Sum(jnp.zeros(()), jnp.zeros(len(self.edges) - 1), jnp.zeros(()))

    def update(self, memory: Sum, taken: Taken) -> Sum:
        """Add the length of the step to the bin of its end."""
        row = taken.row
        value = _value(self.f, taken.system, row.t, row.q, row.v).reshape(())
        h = jnp.where(_counts(taken, self.after), taken.b.t - taken.a.t, 0.0)
        edges = jnp.asarray(self.edges)
        inside = (value >= edges[:-1]) & (value < edges[1:])
        return Sum(value, memory.total + jnp.where(inside, h, 0.0), memory.time + h)

    def finished(self, memory: Sum) -> Any:
        """Parts of the time; NaN if no time passed."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(memory.total) / np.asarray(memory.time)
