"""What every stepping offers: one attempt at a time, and the clock that lands on every segment's end."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from carom.methods.base import AbstractMethod
from carom.state import Carry, Info, Row, State, Status, Step
from carom.systems.system import System

PyTree = Any


class AbstractStepping(eqx.Module):
    """Chooses h, accepts, rejects, goes back.

    `needs` names what a method must give (`AbstractMethod.gives`) for this stepping to work.
    """

    needs: ClassVar[frozenset[str]] = frozenset()

    @abc.abstractmethod
    def init(self, system: System, method: AbstractMethod, state: State, ends: Array) -> PyTree:
        """The stepping's memory before the first attempt."""

    @abc.abstractmethod
    def attempt(self, system: System, method: AbstractMethod, carry: Carry) -> tuple[Carry, Row]:
        """Try one step; `row.keep` says whether the result may enter the solution."""

    @property
    def longest(self) -> float | None:
        """The longest step this stepping may take; None if not known beforehand."""
        return None

    def objection(self, system: System, state: State, ends: Any) -> str | None:
        """Why this stepping cannot run over the given segments; None if it can."""
        return None


def step_status(step: Step) -> Array:
    """The step's own status, or NOT_FINITE."""
    t, q, v = (jnp.isfinite(x) for x in (step.state.t, step.state.q, step.state.v))
    finite = t & (jnp.all(q & v) if q.shape == v.shape else jnp.all(q) & jnp.all(v))  # one pass where possible
    return jnp.where((step.info.status == Status.OK) & ~finite, Status.NOT_FINITE, step.info.status)


def row_of(system: System, k: Array, keep: Array, state: State, h: Array, info: Info) -> Row:
    """A row of the log, with the velocity the user sees and without what only the stepping needs."""
    info = eqx.tree_at(lambda i: i.local_error, info, None, is_leaf=lambda x: x is None)
    return Row(k, keep, state.t, h, state.q, system.outer_velocity(state.t, state.q, state.v), info)


def inside(segment_start: Array, segment_end: Array, t: Array, h: Array, jumps: bool) -> tuple[Array, Array]:
    """Start time and step nudged into the open segment, so that forces are evaluated on its side of a jump."""
    if not jumps:
        return t, h
    first = jnp.nextafter(segment_start, jnp.inf)
    last = jnp.nextafter(segment_end, -jnp.inf)
    start = jnp.maximum(t, first)
    return start, jnp.minimum(h, last - start)
