"""Keeps of places: at given times, once per period, where a function changes its sign, and at the end."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from carom.arguments import UserFunction, judged, numpy_for, plain_numbers, user_function, whole
from carom.keep.base import AbstractKeep, Places, Ring, Taken, place
from carom.running.crossing import DIRECTIONS, PLACES, bisected, known_direction, looks, number_at
from carom.state import Numbers, State, reals, shortened
from carom.stepping.grid import Constant
from carom.systems.probe import probe_number
from carom.systems.system import System

_ROUNDING = 16 * float(np.finfo(float).eps)


class Marked(eqx.Module):
    """The number of the next instant, and the places at those before."""

    k: Int[Array, ""]
    ring: Ring


class AbstractInstants(AbstractKeep):
    """The states at instants that are known beforehand."""

    @abc.abstractmethod
    def at(self, k: Array, system: System, stepping: Any) -> Array:
        """The elapsed time of instant k."""

    def update(self, memory: Marked, taken: Taken) -> Marked:
        """Write the instants that this step reached; one at its end is its state, others are interpolated."""
        end = taken.b.t
        late = end + _ROUNDING * end

        def due(memory: Marked) -> Array:
            return taken.accepted & (self.at(memory.k, taken.system, taken.stepping) <= late)

        def write(memory: Marked) -> Marked:
            t = self.at(memory.k, taken.system, taken.stepping)
            inner = place(taken.system, taken.between()(jnp.minimum(t, end)))
            found = jnp.where(t >= end - _ROUNDING * end, taken.end, inner)
            return Marked(memory.k + 1, memory.ring.put(found[None], jnp.ones(1, bool)))

        return jax.lax.while_loop(due, write, memory)


class Strobe(AbstractInstants):
    """The state once per period: at t0 + k period, from t0 + after on (t0 - k period in a run that goes backward).

    Where constant steps divide the period, to rounding, every n-th step is taken, else the state is interpolated.

    Args:
        period: time between two places.
        last: how many of the latest to keep; None keeps all.
        after: time since the start before which nothing is kept.

    Example:
        >>> keep = [carom.keep.strobe(2 * np.pi / omega, last=100)]
        >>> sol = carom.simulate(system, state, method, t1=t1, h=h, keep=keep)
        >>> sol.kept["strobe 0"].q
    """

    period: np.ndarray
    after: np.ndarray
    last: int | None = eqx.field(static=True)

    kind: ClassVar[str] = "strobe"

    def __init__(self, period: float, last: int | None = None, after: float = 0.0):
        self.period = plain_numbers(period, "keep.strobe: period", size=1, positive=True).reshape(())
        self.after = plain_numbers(after, "keep.strobe: after", size=1, nonnegative=True).reshape(())
        self.last = None if last is None else whole(last, "keep.strobe: last", 1)

    @property
    def grows(self) -> bool:
        """Whether the number of places is not bounded."""
        return self.last is None

    def at(self, k: Array, system: System, stepping: Any) -> Array:
        """Counted in steps where these divide the period."""
        if not isinstance(stepping, Constant):
            return k * self.period
        n = jnp.round(self.period / stepping.h)
        divides = (n >= 1) & (jnp.abs(n * stepping.h - self.period) <= _ROUNDING * self.period)
        return jnp.where(divides, (k * n) * stepping.h, k * self.period)

    def init(self, system: System, state: State) -> Marked:
        """The start counts, unless it is too early."""
        first = jnp.ceil(self.after / self.period - _ROUNDING).astype(jnp.int64)
        begins = first == 0
        return Marked(first + begins, Ring.of(place(system, state), begins, self.last))


class Times(AbstractInstants):
    """The states at given times, interpolated on the steps; they become the rows of the solution too.

    Example:
        >>> sol = carom.simulate(system, state, method, t1=1.0, h=0.01, keep=[carom.keep.times([0.25, 0.5])])
        >>> sol.kept["times 0"].q
    """

    times: np.ndarray

    kind: ClassVar[str] = "times"

    def __init__(self, times: Numbers):
        found = reals(times, "keep.times: times", "a list of times")
        xp = numpy_for(found)
        found = xp.atleast_1d(xp.asarray(found))

        def judge(found: np.ndarray) -> None:
            if found.ndim != 1 or not found.size or not np.isfinite(found).all():
                msg = f"keep.times: times must be a list of finite times, got {shortened(found.tolist())}"
                raise ValueError(msg)

        self.times = xp.sort(judged(found, judge))

    def check(self, name: str, system: System, state: State, t1: Any) -> None:
        """The run must come by."""
        del system

        def judge(rows: np.ndarray) -> None:
            """Start, end and times of one run per row."""
            ends, times = np.split(rows.reshape(-1, rows.shape[-1]), [2], axis=1)
            outside = (times < ends.min(axis=1, keepdims=True)) | (times > ends.max(axis=1, keepdims=True))
            for run, k in np.argwhere(outside)[:1]:
                t0, t1 = ends[run]
                msg = f"{name}: times must lie between {t0:g} and {t1:g}, got {times[run, k]:g}"
                raise ValueError(msg)

        xp = numpy_for(state.t, t1, self.times)
        judged(xp.concatenate([xp.stack([state.t, t1]), self.times])[None], judge)

    def in_order(self, backward: bool) -> Any:
        """The times as the run comes by."""
        return self.times[::-1] if backward else self.times

    def at(self, k: Array, system: System, stepping: Any) -> Array:
        """The k-th of the times; after them, never."""
        t = jnp.asarray(self.in_order(system.backward))[jnp.minimum(k, len(self.times) - 1)] - system.epoch
        return jnp.where(k < len(self.times), system.turned(t), jnp.inf)

    def init(self, system: System, state: State) -> Marked:
        """The start may be among the times, more than once."""
        first = jnp.sum(system.turned(jnp.asarray(self.times) - system.epoch) <= state.t)
        ring = Ring.of(place(system, state), False, len(self.times))
        rows = jnp.where((jnp.arange(len(self.times)) < first)[:, None], place(system, state), ring.rows)
        return Marked(first, Ring(rows, first))


class Crossings(eqx.Module):
    """The side on which the latest step ended, sign changes of either kind, the first NaN, and the places wanted."""

    side: Array
    changes: Int[Array, ""]
    not_finite: Array
    ring: Ring


class Section(AbstractKeep):
    """The states where a function of the motion changes its sign, located on the interpolant of the step.

    Looked at are four points of every step, and between them the turning points of the function. An impact that turns
    the velocity across the section counts: at its time and its coordinates, with some velocity between both limits;
    not with a method that tells the left limit of the velocity (`Info.v_minus`).

    Args:
        f: function of (t, q, v), (q, v) or (q).
        direction: "rising", "falling" or "both", in time, whichever way the run goes.
        last: how many of the latest to keep; None keeps all.

    Example:
        >>> keep = {"apex": carom.keep.section(lambda q, v: v[0], direction="falling")}
        >>> sol = carom.simulate(system, state, method, t1=10.0, h=0.01, keep=keep)
        >>> sol.kept["apex"].t, sol.kept["apex"].q
    """

    f: UserFunction
    direction: str = eqx.field(static=True)
    last: int | None = eqx.field(static=True)

    kind: ClassVar[str] = "section"

    def __init__(self, f: Callable[..., Any], direction: str = "rising", last: int | None = None):
        self.f = user_function(f, "keep.section: f", ("t", "q", "v"), ("q", "v"), ("q",))
        self.direction = known_direction(direction, "keep.section")
        self.last = None if last is None else whole(last, "keep.section: last", 1)

    @property
    def grows(self) -> bool:
        """Whether the number of places is not bounded."""
        return self.last is None

    def check(self, name: str, system: System, state: State, t1: float) -> None:
        """The function must return one number, at the start a finite one."""
        value = probe_number(self.f, name, system, state)
        if np.isnan(value):
            msg = f"{name} is NaN at the start, t = {float(state.t):.9g}"
            raise ValueError(msg)

    def init(self, system: System, state: State) -> Crossings:
        """On the side of the start."""
        side = jnp.sign(number_at(self.f, system, state))
        ring = Ring.of(place(system, state), False, self.last)
        return Crossings(side, jnp.zeros((), jnp.int64), jnp.asarray(jnp.inf), ring)

    def update(self, memory: Crossings, taken: Taken) -> Crossings:
        """Look for changes of the sign inside the step."""
        between = taken.between()

        def value(t: Array) -> Array:
            return number_at(self.f, taken.system, between(t))

        times, values = looks(value, taken.a.t, taken.b.t)
        sides = [memory.side]
        for sign in jnp.sign(values[1:]):
            sides.append(jnp.where(sign == 0, sides[-1], sign))
        before, after = jnp.stack(sides[:-1]), jnp.stack(sides[1:])
        crossed = taken.accepted & (before * after < 0)
        wanted = crossed & (after != -taken.system.turned(DIRECTIONS[self.direction]))
        found = bisected(lambda t: after * jax.vmap(value)(t) > 0, times[:-1], times[1:], wanted)
        places = jax.lax.cond(
            jnp.any(wanted),
            lambda: jax.vmap(lambda t: place(taken.system, between(t)))(found),
            lambda: jnp.zeros((PLACES, memory.ring.rows.shape[1])),
        )
        side = after[-1]
        if taken.row.info.v_minus is not None:  # the next step begins after the jump
            sign = jnp.sign(number_at(self.f, taken.system, taken.b))
            side = jnp.where(sign == 0, side, sign)
        first = jnp.min(jnp.where(taken.accepted & jnp.isnan(values), times, jnp.inf))
        return Crossings(
            jnp.where(taken.accepted, side, memory.side),
            memory.changes + jnp.sum(crossed),
            jnp.minimum(memory.not_finite, first),
            memory.ring.put(places, wanted),
        )

    def not_finite_at(self, memory: Crossings) -> Array:
        """When the function was NaN first."""
        return memory.not_finite

    def caution(self, memory: Crossings) -> str | None:
        """A function without a change of sign was probably meant otherwise."""
        if memory.changes:
            return None
        side = {1: "positive", -1: "negative"}.get(int(memory.side), "zero")
        return f"never changed its sign in this run: it stayed {side}"


class Final(AbstractKeep):
    """The last state.

    Example:
        >>> sols = carom.simulate_batch(systems, states, method, t1=1.0, h=0.01, keep=[carom.keep.final()])
        >>> [sol.kept["final 0"].q for sol in sols]
    """

    kind: ClassVar[str] = "final"

    def init(self, system: System, state: State) -> None:
        """The carry knows the last state."""

    def update(self, memory: None, taken: Taken) -> None:
        """Nothing to remember."""

    def result(self, memory: None, places: Places, solution: Any) -> Places:
        """The last state as it is."""
        state, elapsed = solution.state, solution.clock.turned(solution.carry.state.t)
        return Places(*(np.asarray(x) for x in (state.t, state.q, state.v, elapsed)))
