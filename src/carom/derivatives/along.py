"""Numbers that gather along a run, for losses over time: integrals and peaks of functions of the motion."""

from __future__ import annotations

import abc
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import UserFunction, user_function
from carom.running.crossing import number_at
from carom.state import State
from carom.systems.system import System

_NODES, _WEIGHTS = (0.5 * (np.polynomial.legendre.leggauss(3)[0] + 1.0), 0.5 * np.polynomial.legendre.leggauss(3)[1])
_LOBATTO = (0.5 + 0.5 * np.array([-1.0, -(0.2**0.5), 0.2**0.5, 1.0]), np.array([1.0, 5.0, 5.0, 1.0]) / 12)
_PARTS = 4  # of a step, in each of which a peak is looked for
_CORNERED = 1e-10  # of an integral over a step: where two formulas differ by more, there may be a corner
_RESOLVED = 1e-15  # of it: so much is rounding
_MOST_CUTS, _HALVINGS = 14, 45
_BESIDE = 1e-12  # of a step: so near a corner's place both of its sides are looked at
_JUMP = 1e-5  # of the mean of a function: where it changes by so much there, it jumps


OfTime = Callable[[Array], Array]


class Sofar(NamedTuple):
    """A number that was gathered, and when its function last jumped inside a step; infinite if never."""

    number: Array
    jumped: Array

    def with_number(self, number: Array) -> Sofar:
        """The same with another number."""
        return Sofar(number, self.jumped)


class AbstractAlong(eqx.Module):
    """One number that follows from a function of the motion."""

    f: UserFunction

    def __init__(self, f: Callable[..., Any]):
        self.f = user_function(f, f"{type(self).__name__}: f", ("t", "q", "v"), ("q", "v"), ("q",))

    @abc.abstractmethod
    def init(self, system: System, state: State) -> Sofar:
        """The number at the start."""

    @abc.abstractmethod
    def after(self, sofar: Sofar, value: OfTime, still: OfTime, a: Array, b: Array) -> Sofar:
        """The number after a step from a to b on which the function is `value`, and without derivative `still`."""

    @abc.abstractmethod
    def across(self, sofar: Sofar, before: Array, behind: Array, width: Array) -> Sofar:
        """The number after an impact that takes next to no time, with the function on both sides of it."""

    def check(self, name: str, system: System, state: State) -> None:
        """The function must give one number."""
        shape = jax.eval_shape(lambda: jnp.asarray(self.f(system.given, t=state.t, q=state.q, v=state.v)))
        if shape.size != 1:
            msg = f"along: f of '{name}' must return one number, got shape {shape.shape}"
            raise ValueError(msg)


class Integral(AbstractAlong):
    """The integral over time of `f(t, q, v)`, `f(q, v)` or `f(q)`, by Gauss' formula of order 6 on every step.

    A step in which f has corners, such as those of abs, is cut there. So is one in which f jumps; the derivative lacks
    how the time of the jump changes, of which `carom.gradient` warns.

    Example:
        >>> along = {"work": carom.Integral(lambda q, v, p: p["damping"] * v[0] ** 2)}
        >>> carom.gradient(lambda state, along: along["work"], build, parameters, method, t1=1.0, h=0.01, along=along)
    """

    def init(self, system: System, state: State) -> Sofar:
        """Nothing yet."""
        del system, state
        return Sofar(jnp.zeros(()), jnp.asarray(jnp.inf))

    def after(self, sofar: Sofar, value: OfTime, still: OfTime, a: Array, b: Array) -> Sofar:
        """One more step."""
        start, end = jax.lax.stop_gradient((a, b))
        scale = _gauss(lambda t: jnp.abs(still(t)), start, end)

        def cut() -> Sofar:
            cuts = _cuts(still, start, end, scale)
            times = a + (b - a) * ((cuts - start) / (end - start))
            jumps = _jumps(still, cuts, scale)
            jumped = jnp.where(jnp.any(jumps), cuts[1:-1][jnp.argmax(jumps)], sofar.jumped)
            return Sofar(jnp.sum(jax.lax.map(lambda ends: _gauss(value, *ends), (times[:-1], times[1:]))), jumped)

        cornered = _rest(still, start, end) > _CORNERED * scale
        more = jax.lax.cond(cornered, cut, lambda: sofar.with_number(_gauss(value, a, b)))
        return more.with_number(sofar.number + more.number)

    def across(self, sofar: Sofar, before: Array, behind: Array, width: Array) -> Sofar:
        """As long as the impact is late."""
        del behind
        return sofar.with_number(sofar.number + width * before)


def _by(nodes: np.ndarray, weights: np.ndarray, value: OfTime, a: Array, b: Array) -> Array:
    """The integral from a to b by one formula."""
    return (b - a) * (weights @ jax.vmap(value)(a + (b - a) * nodes))


_gauss = partial(_by, _NODES, _WEIGHTS)


def _rest(value: OfTime, a: Array, b: Array) -> Array:
    """How much Gauss' formula differs from that of Lobatto, which sees corners near both ends too."""
    return jnp.abs(_gauss(value, a, b) - _by(*_LOBATTO, value, a, b))


def _cuts(value: OfTime, a: Array, b: Array, scale: Array) -> Array:
    """Times from a to b in order, at corners of a function: each time that of the worst piece."""

    def rests(times: Array) -> Array:
        return jax.lax.map(lambda ends: _rest(value, *ends), (times[:-1], times[1:]))

    def once(search: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        i, times, rest = search
        worst = jnp.argmax(rest)
        times = jnp.sort(times.at[-1].set(_corner(value, times[worst], times[worst + 1], _RESOLVED * scale)))
        times = times.at[-1].set(b)
        return i + 1, times, rests(times)

    def goes_on(search: tuple[Array, Array, Array]) -> Array:
        return (search[0] < _MOST_CUTS) & (jnp.max(search[2]) > _CORNERED * scale)

    times = jnp.full(_MOST_CUTS + 2, b).at[0].set(a)
    return jax.lax.while_loop(goes_on, once, (jnp.zeros((), jnp.int32), times, rests(times)))[1]


def _jumps(value: OfTime, cuts: Array, scale: Array) -> Array:
    """At which of the inner ones of these times a function jumps, not only its slope."""
    begin, width = cuts[0], cuts[-1] - cuts[0]
    sides = jnp.stack([jnp.maximum(cuts[1:-1] - _BESIDE * width, begin), cuts[1:-1] + _BESIDE * width])
    before, behind = jax.lax.map(value, sides.ravel()).reshape(2, -1)
    return (jnp.abs(behind - before) * width > _JUMP * scale) & (cuts[1:-1] + _BESIDE * width < cuts[-1])


def _corner(value: OfTime, low: Array, high: Array, small: Array) -> Array:
    """Where a function has its worst corner."""

    def halve(search: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        i, low, width, _ = search
        lows, half = low + 0.25 * width * jnp.arange(3), 0.5 * width
        rests = jax.lax.map(lambda low: _rest(value, low, low + half), lows)
        return i + 1, lows[jnp.argmax(rests)], half, jnp.max(rests)

    start = (jnp.zeros((), jnp.int32), low, high - low, jnp.asarray(jnp.inf))
    _, low, width, _ = jax.lax.while_loop(lambda s: (s[0] < _HALVINGS) & (s[3] > small), halve, start)
    return low + 0.5 * width


class Peak(AbstractAlong):
    """The largest value of `f(t, q, v)`, `f(q, v)` or `f(q)`, looked for inside every step.

    Its derivative is that of f at the instant of the peak.

    Example:
        >>> along = {"force": carom.Peak(lambda q, p: p["stiffness"] * jnp.maximum(q[-2] - q[-1], 0.0) ** 1.5)}
    """

    def init(self, system: System, state: State) -> Sofar:
        """That of the start."""
        return Sofar(number_at(self.f, system, state), jnp.asarray(jnp.inf))

    def after(self, sofar: Sofar, value: OfTime, still: OfTime, a: Array, b: Array) -> Sofar:
        """The end, or a higher place inside: the top of the cubic through values and slopes of a part of the step."""
        del still
        grid = a + (b - a) * np.linspace(0.0, 1.0, _PARTS + 1)
        y, slope = jax.vmap(lambda t: jax.jvp(value, (t,), (jnp.ones_like(t),)))(grid)
        width = (b - a) / _PARTS
        rest, rise, fall = y[1:] - y[:-1], width * slope[:-1], width * slope[1:]
        cubic, square = rise + fall - 2 * rest, 3 * rest - 2 * rise - fall
        root = -square + jnp.sqrt(jnp.maximum(square**2 - 3 * cubic * rise, 0.0))
        turns = (rise > 0) & (fall < 0) & (root > 0)
        top = jnp.clip(jnp.where(turns, rise / jnp.where(turns, root, 1.0), 1.0), 0.0, 1.0)
        times = jax.lax.stop_gradient(jnp.append(grid[:-1] + width * top, b))
        bends = jnp.append(jnp.where(turns, 2 * (square + 3 * cubic * top) / width**2, -jnp.inf), -jnp.inf)
        best = jnp.argmax(jax.vmap(value)(times))
        _, slope = jax.jvp(value, (times[best],), (jnp.ones_like(b),))  # zero at a peak, but for the cubic's error
        time = jnp.clip(times[best] - jnp.where(bends[best] < 0, slope / bends[best], 0.0), a, b)
        part = jax.lax.stop_gradient((time - a) / (b - a))
        return sofar.with_number(jnp.maximum(sofar.number, value(a + part * (b - a))))

    def across(self, sofar: Sofar, before: Array, behind: Array, width: Array) -> Sofar:
        """The higher one; nothing is between both sides."""
        del before, width
        return sofar.with_number(jnp.maximum(sofar.number, behind))
