"""Steppings whose step sizes are known beforehand: constant, or a given list."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from carom.arguments import is_traced, judged, numpy_for
from carom.methods.base import AbstractMethod
from carom.names import register
from carom.solvers.roots import moving_as
from carom.state import Carry, Numbers, Row, State, Status, reals
from carom.stepping.base import SAME, AbstractStepping, Aim, after, take
from carom.systems.system import System

_MOST_STEPS = 1e12  # more take days where a step takes 0.2 us; from 2^53 on time would not move


class GridPosition(eqx.Module):
    """Start of the segment's grid, and number of whole steps taken since."""

    origin: Array
    j: Array

    @classmethod
    def start(cls, ends: Array) -> GridPosition:
        """At the start of the first segment."""
        return cls(ends[0], jnp.zeros((), jnp.int64))


@register
class Constant(AbstractStepping):
    """Steps of size h, `t = t_a + k h` within a segment; the last step of a segment is shortened to end on it.

    Example:
        >>> stepping = carom.Constant(1e-3)
    """

    h: Array | np.float64

    remedy = "Raise h"

    def __init__(self, h: ArrayLike):
        size: Any = h if isinstance(h, float) else _number(h)
        known = not is_traced(size)
        if known and not 0 < size < np.inf:
            msg = f"h must be positive and finite, got h = {h}"
            raise ValueError(msg)
        self.h = np.float64(size) if known else judged(size, _judge_size)

    @property
    def longest(self) -> float:
        """The one size."""
        return float(self.h)

    def ahead(self, carry: Carry) -> Array:
        """The one size."""
        del carry
        return jnp.asarray(self.h)

    def objection(self, system: System, state: State, ends: Any) -> str | None:
        """The run must come to its end."""
        span = abs(float(ends[-1] - ends[0]))
        if span > _MOST_STEPS * float(self.h):
            many = span / float(self.h)
            return f"h = {float(self.h):g} is too small for a run of length {span:g}: it would take {many:.2g} steps"
        return None

    def caution(self, span: float) -> str | None:
        """A step longer than the run is cut."""
        if self.h <= abs(span) * (1 + SAME):
            return None
        return f"h = {float(self.h):g} is longer than the run, t1 - t0 = {span:g}, which becomes one step"

    def init(self, system: System, method: AbstractMethod, state: State, ends: Array) -> GridPosition:
        """At the start of the first segment."""
        return GridPosition.start(ends)

    def attempt(self, system: System, method: AbstractMethod, carry: Carry) -> tuple[Carry, Row]:
        """One step to the next grid point, or to where the method stopped short."""
        place = carry.stepping
        end = carry.ends[carry.segment + 1]
        whole = jnp.ceil((end - place.origin) / self.h - SAME)
        last = place.j + 1 >= whole
        target = jnp.where(last, end, place.origin + (place.j + 1) * self.h)
        on_grid = jnp.abs(carry.state.t - (place.origin + place.j * self.h)) <= SAME * self.h
        short = jnp.abs(end - (place.origin + (place.j + 1) * self.h)) > SAME * self.h
        # a finished lane of a batch goes on being tried: with h = 0 its equations would be singular
        whole_step = carry.done | (on_grid & ~(last & short))
        rest = target - carry.state.t
        h = moving_as(jax.lax.cond(whole_step, lambda: jnp.asarray(self.h), lambda: target - carry.state.t), rest)
        tried = take(system, method, carry, Aim.at(system, carry, h, target, last))
        ok = tried.status == Status.OK
        j = place.j + (ok & tried.arrived)
        begins = ok & tried.lands
        place = GridPosition(jnp.where(begins, target, place.origin), jnp.where(begins, 0, j))
        return after(system, carry, tried, ok, place)


def _judge_size(h: np.ndarray) -> None:
    if not np.all((h > 0) & (h < np.inf)):
        msg = f"h must be positive and finite, got h = {h}"
        raise ValueError(msg)


def _number(h: Any) -> Any:
    size = numpy_for(h).asarray(h)
    if size.dtype.kind not in "fiu" or size.ndim:
        msg = f"h must be a number, got {type(h).__name__}"
        raise TypeError(msg)
    return size.astype(float)


@register
class Prescribed(AbstractStepping):
    """Steps of given sizes, one after the other; a step that crosses the end of a segment is cut there and resumed.

    Example:
        >>> stepping = carom.Prescribed([1e-3] * 100 + [2e-3] * 50)
    """

    steps: Array

    remedy = "Leave out steps that are too small to move the time"

    def __init__(self, steps: Numbers):
        sizes = np.atleast_1d(np.asarray(reals(steps, "Prescribed: steps", "a list of positive numbers")))
        bad = ~(np.isfinite(sizes) & (sizes > 0))
        if sizes.ndim != 1 or sizes.size == 0 or bad.any():
            where = f"steps[{int(np.argmax(bad))}] = {sizes[np.argmax(bad)]}" if bad.any() else f"shape {sizes.shape}"
            msg = f"Prescribed: steps must be a list of positive numbers, got {where}"
            raise ValueError(msg)
        self.steps = jnp.asarray(sizes)

    @property
    def longest(self) -> float:
        """The largest entry."""
        return float(np.max(self.steps))

    def ahead(self, carry: Carry) -> Array:
        """The next of the list."""
        return self.steps[jnp.minimum(carry.stepping.j, self.steps.size - 1)]

    def objection(self, system: System, state: State, ends: Any) -> str | None:
        """The steps must reach t1."""
        total, wanted = float(np.sum(self.steps)), abs(float(ends[-1] - ends[0]))
        if total < wanted * (1 - 1e-12) - 2 * np.spacing(np.abs(ends).max()):
            return f"Prescribed: the steps add up to {total:g}, but t1 - t0 = {float(ends[-1] - ends[0]):g}"
        return None

    def init(self, system: System, method: AbstractMethod, state: State, ends: Array) -> GridPosition:
        """At the start of the first segment."""
        return GridPosition.start(ends)

    def attempt(self, system: System, method: AbstractMethod, carry: Carry) -> tuple[Carry, Row]:
        """One step of the list, cut at the end of the segment."""
        place = carry.stepping
        end = carry.ends[carry.segment + 1]
        size = self.steps[jnp.minimum(place.j, self.steps.size - 1)]
        target = place.origin + size
        last = target >= end - SAME * size
        cut = last & (target > end + SAME * size)
        target = jnp.where(last, end, target)
        fresh = (carry.state.t == place.origin) & (jnp.abs(target - place.origin - size) <= SAME * size)
        rest = target - carry.state.t
        h = moving_as(jnp.where(carry.done | fresh, size, rest), rest)
        tried = take(system, method, carry, Aim.at(system, carry, h, target, last))
        ok = tried.status == Status.OK
        whole = ok & tried.arrived & ~cut
        return after(system, carry, tried, ok, GridPosition(jnp.where(whole, target, place.origin), place.j + whole))
