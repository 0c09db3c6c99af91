"""Steppings whose step sizes are known beforehand: constant, or a given list."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from carom.methods.base import AbstractMethod
from carom.state import Carry, Numbers, Row, State, Status
from carom.stepping.base import AbstractStepping, inside, row_of, step_status
from carom.systems.system import System

_SAME = 1e-9  # a remainder of this part of a step counts as none


class GridPosition(eqx.Module):
    """Segment, start of its grid, and number of whole steps taken since."""

    segment: Array
    origin: Array
    j: Array

    @classmethod
    def start(cls, ends: Array) -> GridPosition:
        """At the start of the first segment."""
        zero = jnp.zeros((), jnp.int64)
        return cls(zero, ends[0], zero)


class Constant(AbstractStepping):
    """Steps of size h, `t = t_a + k h` within a segment; the last step of a segment is shortened to end on it.

    Example:
        >>> stepping = carom.Constant(1e-3)
    """

    h: Array | np.float64

    def __init__(self, h: ArrayLike):
        size = h if isinstance(h, float) else _number(h)
        if np.ndim(size) != 0 or not 0 < size < np.inf:
            msg = f"h must be positive and finite, got h = {h}"
            raise ValueError(msg)
        self.h = np.float64(size)

    @property
    def longest(self) -> float:
        """The one size."""
        return float(self.h)

    def init(self, system: System, method: AbstractMethod, state: State, ends: Array) -> GridPosition:
        """At the start of the first segment."""
        return GridPosition.start(ends)

    def attempt(self, system: System, method: AbstractMethod, carry: Carry) -> tuple[Carry, Row]:
        """One step to the next grid point, or to where the method stopped short."""
        place = carry.stepping
        end = carry.ends[place.segment + 1]
        whole = jnp.ceil((end - place.origin) / self.h - _SAME)
        last = place.j + 1 >= whole
        target = jnp.where(last, end, place.origin + (place.j + 1) * self.h)
        on_grid = jnp.abs(carry.state.t - (place.origin + place.j * self.h)) <= _SAME * self.h
        short = jnp.abs(end - (place.origin + (place.j + 1) * self.h)) > _SAME * self.h
        # a finished lane of a batch goes on being tried: with h = 0 its equations would be singular
        h = jnp.where(carry.done | (on_grid & ~(last & short)), self.h, target - carry.state.t)
        return _take(system, method, carry, place, h, target, last)


def _number(h: Any) -> np.ndarray:
    size = np.asarray(h)
    if size.dtype.kind not in "fiu":
        msg = f"h must be a number, got {type(h).__name__}"
        raise TypeError(msg)
    return size.astype(float)


class Prescribed(AbstractStepping):
    """Steps of given sizes, one after the other; a step that crosses the end of a segment is cut there and resumed.

    Example:
        >>> stepping = carom.Prescribed([1e-3] * 100 + [2e-3] * 50)
    """

    steps: Array

    def __init__(self, steps: Numbers):
        sizes = np.atleast_1d(np.asarray(steps, float))
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

    def objection(self, system: System, state: State, ends: Any) -> str | None:
        """The steps must reach t1."""
        total, wanted = float(np.sum(self.steps)), float(ends[-1] - ends[0])
        if total < wanted * (1 - 1e-12):
            return f"Prescribed: the steps add up to {total:g}, but t1 - t0 = {wanted:g}"
        return None

    def init(self, system: System, method: AbstractMethod, state: State, ends: Array) -> GridPosition:
        """At the start of the first segment."""
        return GridPosition.start(ends)

    def attempt(self, system: System, method: AbstractMethod, carry: Carry) -> tuple[Carry, Row]:
        """One step of the list, cut at the end of the segment."""
        place = carry.stepping
        end = carry.ends[place.segment + 1]
        size = self.steps[jnp.minimum(place.j, self.steps.size - 1)]
        target = place.origin + size
        last = target >= end - _SAME * size
        target = jnp.where(last, end, target)
        fresh = (carry.state.t == place.origin) & (jnp.abs(target - place.origin - size) <= _SAME * size)
        h = jnp.where(carry.done | fresh, size, target - carry.state.t)
        carry, row = _take(system, method, carry, place, h, target, last)
        at_target = (carry.state.t == target) & (carry.status == Status.OK)
        cut = last & (place.origin + size > end + _SAME * size)
        place = GridPosition(
            carry.stepping.segment,
            jnp.where(cut, place.origin, jnp.where(at_target, target, place.origin)),
            place.j + (at_target & ~cut),
        )
        return eqx.tree_at(lambda c: c.stepping, carry, place), row


def _take(
    system: System, method: AbstractMethod, carry: Carry, place: GridPosition, h: Array, target: Array, last: Array
) -> tuple[Carry, Row]:
    """One call of `method.step` towards `target`; `last` marks the last step of the segment."""
    many = carry.ends.size > 2
    t, h_inside = inside(carry.ends[place.segment], carry.ends[place.segment + 1], carry.state.t, h, many)
    began = carry.state.moved(t, carry.state.q, carry.state.v)
    step = method.step(system, began, carry.memory, h_inside)
    status = step_status(step)
    ok = status == Status.OK
    arrived = step.state.t >= t + h_inside
    state = step.state.moved(jnp.where(arrived, target, step.state.t), step.state.q, step.state.v)
    ends_segment = ok & arrived & last
    segment = place.segment + ends_segment
    place = GridPosition(
        segment, jnp.where(ends_segment, target, place.origin), jnp.where(ends_segment, 0, place.j + (ok & arrived))
    )
    state, memory = jax.tree.map(
        lambda new, old: jnp.where(ok, new, old), (state, step.memory), (carry.state, carry.memory)
    )
    k = carry.k + ok
    taken = jnp.where(arrived, h, state.t - carry.state.t)
    row = row_of(system, k, ok, state, taken, step.info)
    done = segment >= carry.ends.size - 1
    return Carry(state, memory, place, carry.ends, k, status, done, carry.counts.add(step.info, ok)), row
