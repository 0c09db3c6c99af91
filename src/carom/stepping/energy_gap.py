"""Step sizes from the gap between energy and pseudo-energy [Marazzato2019 Remark 8, done right].

The gap (18), `w M w / 8`, must stay below `eps` times the pseudo-energy. A step that breaks the bound is retried from
the same state with half its size (halving only the next step stalls: the jump tends to minus the one before). No
smaller step can bring the gap under that of the state it starts from, so after `halvings` the step is taken as it is.
After every accepted step the size is doubled back towards h: trying costs less than waiting for a margin.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from carom.methods.base import AbstractMethod
from carom.state import Carry, Row, State, Status, Step
from carom.stepping.base import AbstractStepping, inside, row_of, step_status
from carom.systems.arguments import numbers
from carom.systems.system import System

_SAME = 1e-9


class GapPlace(eqx.Module):
    """Segment and number of halvings of h."""

    segment: Array
    halved: Array


class EnergyGap(AbstractStepping):
    """Halve the step until the gap (18) is at most `eps` times the pseudo-energy, double back afterwards.

    Args:
        eps: bound on the gap relative to the pseudo-energy.
        h: the largest step, tried first.
        halvings: the most halvings of h; a step at this size is accepted whatever its gap.

    Example:
        >>> stepping = carom.EnergyGap(eps=3e-4, h=0.0048)
    """

    eps: Array
    h: Array
    halvings: int = eqx.field(static=True)

    needs = frozenset({"momentum jump"})

    def __init__(self, eps: ArrayLike, h: ArrayLike, halvings: int = 10):
        self.eps = numbers(eps, "EnergyGap: eps", positive=True)
        self.h = numbers(h, "EnergyGap: h", positive=True)
        if not isinstance(halvings, int) or halvings < 0:
            msg = f"EnergyGap: halvings must be a whole number of at least 0, got {halvings!r}"
            raise ValueError(msg)
        self.halvings = halvings

    @property
    def longest(self) -> float:
        """The size tried first."""
        return float(np.asarray(self.h))

    def init(self, system: System, method: AbstractMethod, state: State, ends: Array) -> GapPlace:
        """At the start of the first segment, with the largest step."""
        del system, method, state, ends
        return GapPlace(jnp.zeros((), jnp.int64), jnp.zeros((), jnp.int64))

    def attempt(self, system: System, method: AbstractMethod, carry: Carry) -> tuple[Carry, Row]:
        """One step, kept if its gap is small enough."""
        place = carry.stepping
        begin, end = carry.ends[place.segment], carry.ends[place.segment + 1]
        size = self.h * 0.5**place.halved
        left = end - carry.state.t
        last = left <= size * (1 + _SAME)
        h = jnp.where(left < size * (1 - _SAME), left, size)
        t, h_inside = inside(begin, end, carry.state.t, h, carry.ends.size > 2)
        step = method.step(system, carry.state.moved(t, carry.state.q, carry.state.v), carry.memory, h_inside)
        status = step_status(step)
        gap, bound = self._gap(system, step)
        ok = ((gap <= bound) | (place.halved >= self.halvings)) & (status == Status.OK)
        halve = ~ok & (place.halved < self.halvings)
        back = ok & (place.halved > 0)
        state = step.state.moved(jnp.where(last, end, carry.state.t + h), step.state.q, step.state.v)
        new = (state, step.memory)
        state, memory = jax.tree.map(lambda a, b: jnp.where(ok, a, b), new, (carry.state, carry.memory))
        segment = place.segment + (ok & last)
        k = carry.k + ok
        row = row_of(system, k, ok, state, h, step.info)
        status = jnp.where(halve, Status.OK, status)
        place = GapPlace(segment, place.halved + halve - back)
        done = segment >= carry.ends.size - 1
        return Carry(state, memory, place, carry.ends, k, status, done, carry.counts.add(step.info, ok)), row

    def _gap(self, system: System, step: Step) -> tuple[Any, Any]:
        """The gap (18) and its bound."""
        s, w = step.state, step.info.extra["jump"]
        gap = 0.25 * system.kinetic_energy(s.t, s.q, w)
        energy = system.kinetic_energy(s.t, s.q, s.v) + system.potential_energy(s.t, s.q)
        return gap, self.eps * jnp.abs(energy - gap)
