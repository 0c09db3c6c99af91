"""What all steppings share: how a step begins inside a segment, and how it ends.

A stepping chooses a size and decides whether to keep what came of it. In between lies `take`, and after it `after`: a
step is tried from where the run stands, the time it reached is that of the method (which may stop short), a step that
cannot move time is refused, and the run goes on from its end or from where it can go back to. A step that is pending
after this attempt (`Step`) leaves the run, place and pace of the stepping included, as they are.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.methods.base import AbstractMethod, Gives
from carom.plain import call
from carom.solvers.roots import moving_as
from carom.state import Carry, Info, Mark, Row, State, Status, Step, choose
from carom.systems.system import System

PyTree = Any
_ROUNDING = 4 * float(np.finfo(float).eps)
_CRAWLING = 64 * float(np.finfo(float).eps)
SAME = 1e-9  # a remainder of this part of a step counts as none


class AbstractStepping(eqx.Module):
    """Chooses h, accepts, rejects, goes back.

    `needs` says what a method must give (`carom.methods.base.Gives`) for this stepping to work, `remedy` what to change
    where its steps become too small; `goes_back` whether it may take back rows that were kept.
    """

    needs: ClassVar[frozenset[Gives]] = frozenset()
    goes_back: ClassVar[bool] = False
    remedy: ClassVar[str] = "Take larger steps"

    __repr__ = call

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

    def ahead(self, carry: Carry) -> Array:
        """The size of the step to come, known beforehand; lists of pairs are made for it."""
        raise NotImplementedError

    def objection(self, system: System, state: State, ends: Any) -> str | None:
        """Why this stepping cannot run over the given segments; None if it can."""
        return None

    def caution(self, span: float) -> str | None:
        """What to warn about before a run with t1 - t0 = `span`; None if nothing."""
        return None


class Aim(eqx.Module):
    """A step to be taken: size, target, whether the segment ends there; start and size inside the open segment."""

    h: Array
    target: Array
    lands: Array
    start: State
    inner: Array

    @classmethod
    def at(cls, system: System, carry: Carry, h: Array, target: Array, lands: Array) -> Aim:
        """A step of size h to `target`."""
        return cls(h, target, lands, *inside(system, carry, h))

    @classmethod
    def within(cls, system: System, carry: Carry, wanted: Array) -> Aim:
        """A step of the wanted size, cut at the end of the segment.

        A finished lane of a batch goes on being tried: with h = 0 its equations would be singular.
        """
        t, end = carry.state.t, carry.ends[carry.segment + 1]
        lands = wanted >= (end - t) * (1 - SAME)
        h = jnp.where(lands & ~carry.done, end - t, wanted)
        return cls.at(system, carry, h, jnp.where(lands, end, t + h), lands)


class Tried(eqx.Module):
    """A step that was tried: where it leads, the size it has, whether it reached its target, how it ended.

    One that is `pending` leads nowhere yet, whatever a stepping makes of it (`after`).
    """

    ahead: Mark
    h: Array
    arrived: Array
    lands: Array
    status: Array
    info: Info
    pending: Array | None = None


def take(system: System, method: AbstractMethod, carry: Carry, aim: Aim) -> Tried:
    """One step of the method."""
    step = method.step(system, aim.start, carry.memory, aim.inner)
    return tried(carry, aim, step, whole=Gives.WHOLE_STEPS in method.gives)


def tried(carry: Carry, aim: Aim, step: Step, *, whole: bool = True) -> Tried:
    """What a step amounts to: it ends on the target, or where it stopped short; one that cannot move time fails.

    A method of whole steps that stops short has not kept its word, and fails too.
    """
    arrived = step.state.t >= aim.start.t + aim.inner - _ROUNDING * aim.target
    moves = step.state.t > carry.state.t
    if carry.ends.size > 2:
        moves = moves & (aim.target > carry.state.t)  # the start was nudged
    failure = jnp.where(arrived & ~moves, Status.STEP_TOO_SMALL, Status.OK)
    if whole:
        failure = jnp.where(arrived, failure, Status.STOPPED_SHORT)
        arrived = jnp.asarray(True)
    status = step_status(step)
    status = jnp.where(status == Status.OK, failure, status)
    t = moving_as(jnp.where(arrived, aim.target, step.state.t), step.state.t)
    state = step.state.moved(t, step.state.q, step.state.v)
    h = jnp.where(arrived, aim.h, step.state.t - carry.state.t)
    lands = arrived & aim.lands
    pairs = carry.pairs if step.pairs is None else step.pairs
    ahead = Mark(state, step.memory, carry.k + 1, carry.segment + lands, pairs)
    return Tried(ahead, h, arrived, lands, status, step.info, step.pending)


def after(
    system: System,
    carry: Carry,
    tried: Tried,
    ok: Array,
    stepping: PyTree,
    status: Array | None = None,
    back: Mark | None = None,
) -> tuple[Carry, Row]:
    """The run after a step that was kept (`ok`) or not: it goes on from the step's end, or from `back`.

    After one that is pending everything is as it was but for the method's memory.
    """
    ahead = tried.ahead
    if system.manifold is not None:
        ahead = eqx.tree_at(lambda m: m.state.q, ahead, system.onto_manifold(ahead.state.q))
    mark = choose(ok, ahead, carry.mark if back is None else back)
    counts, ending = carry.counts.add(tried.info, ok), tried.status
    if status is not None:  # no stepping tries something else where the step itself is to be repeated
        ending = jnp.where(tried.status == Status.NEEDS_RESCUE, tried.status, status)
    if tried.pending is not None:
        waiting = Mark(carry.state, tried.ahead.memory, carry.k, carry.segment, carry.pairs)
        old, new = (waiting, carry.stepping, carry.counts, jnp.int32(Status.OK)), (mark, stepping, counts, ending)
        waits = tried.pending & (tried.status != Status.NEEDS_RESCUE)
        mark, stepping, counts, ending = choose(waits, old, new)
        ok = ok & ~tried.pending
    row = row_of(system, mark.k, ok, mark.state, tried.h, tried.info)
    done = mark.segment >= carry.ends.size - 1
    ending = ending.astype(carry.status.dtype)
    times = (carry.ends, carry.instants)
    more = (mark.segment, mark.k, ending, done, counts)
    return Carry(mark.state, mark.memory, stepping, *times, *more, pairs=mark.pairs), row


def crawls(size: Array, tried: Tried) -> Array:
    """Whether steps of this size say nothing to the time that is reached: it moves by other steps than the motion."""
    return size < _CRAWLING * tried.ahead.state.t


def step_status(step: Step) -> Array:
    """The step's own status, or NOT_FINITE."""
    t, q, v = (jnp.isfinite(x) for x in (step.state.t, step.state.q, step.state.v))
    finite = t & (jnp.all(q & v) if q.shape == v.shape else jnp.all(q) & jnp.all(v))  # one pass where possible
    return jnp.where((step.info.status == Status.OK) & ~finite, Status.NOT_FINITE, step.info.status)


def row_of(system: System, k: Array, keep: Array, state: State, h: Array, info: Info) -> Row:
    """A row of the log, with the velocity the user sees and without what only the stepping needs."""
    info = eqx.tree_at(lambda i: i.local_error, info, None, is_leaf=lambda x: x is None)
    return Row(k, keep, state.t, h, state.q, system.outer_velocity(state.t, state.q, state.v), info)


def inside(system: System, carry: Carry, h: Array) -> tuple[State, Array]:
    """Start and size nudged into the open segment, so that forces are evaluated on its side of a jump."""
    state = carry.state
    if carry.ends.size == 2:
        return state, h
    begin, end = carry.ends[carry.segment], carry.ends[carry.segment + 1]
    t = jnp.maximum(state.t, system.beside(begin, 1))
    return state.moved(t, state.q, state.v), jnp.minimum(h, system.beside(end, -1) - t)
