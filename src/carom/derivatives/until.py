"""Where a differentiable run ends: at a section through the motion, or at an event of a contact."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.arguments import UserFunction, user_function, whole
from carom.running.crossing import DIRECTIONS, bisected, inside_step, known_direction, looks, number_at
from carom.running.loop import Problem
from carom.solvers.contact_problem import CONSTRAINT
from carom.solvers.roots import held, rooted
from carom.state import Carry, Row, State, Status, choose, shortened
from carom.systems.contact_rows import Event as EventKind
from carom.systems.contact_rows import laws_of
from carom.systems.system import System

_AT_START = 1e-9  # of the time in which the motion changes: what is met so soon is where the run began
_LETTING_GO = ("slips", "opens")


class Left(eqx.Module):
    """How many are left to come, on which side of the section the run is, and until when it counts as its start."""

    count: Array
    side: Array
    begun: Array


def _brief(span: Array, *changes: tuple[Array, Array]) -> Array:
    """The part of the shortest of these times of change (size, rate) that is none."""
    largest = lambda x: jnp.max(jnp.abs(x), initial=0.0)  # noqa: E731
    return _AT_START * jnp.minimum(span, jnp.min(jnp.stack([largest(x) / (largest(d) + 1e-290) for x, d in changes])))


def hits(system: System, state: State, row: Row) -> Array:
    """Whether a row is an impact: an impulse on a contact that is open before or behind it."""
    if row.info.event is None:
        return jnp.asarray(False)
    n = laws_of(system, state).contacts
    return jnp.any((jnp.asarray(row.info.mode)[:n] != CONSTRAINT) & (jnp.asarray(row.info.impulse)[:n] > 0))


class AbstractUntil(eqx.Module):
    """A place where a run ends; `count` says how many of its kind are met before, itself included."""

    @abc.abstractmethod
    def init(self, system: System, state: State, span: Array) -> Any:
        """What is remembered at the start: first of all how many are left."""

    @abc.abstractmethod
    def after(self, problem: Problem, old: Carry, new: Carry, row: Row, left: Left) -> tuple[Carry, Left]:
        """The carry after a step, ended where the last of them is met, and what is left to come."""

    @abc.abstractmethod
    def check(self, system: System, state: State) -> None:
        """Refuse what cannot be met in this system."""


class Section(AbstractUntil):
    """The end of a run where a function of the motion changes its sign for the `count`-th time.

    A start on the section is no crossing. An impact that turns the velocity across the section is one: the run ends
    right behind it.

    Args:
        f: function of (t, q, v), (q, v) or (q).
        direction: "rising", "falling" or "both".
        count: at which of the crossings the run ends.

    Example:
        >>> until = carom.Section(lambda q, v: v[0], direction="falling")
        >>> end = carom.final_state(system, state, method, t1=10.0, h=0.01, until=until)
        >>> end.state.t
    """

    f: UserFunction
    direction: str = eqx.field(static=True)
    count: int = eqx.field(static=True)

    def __init__(self, f: Callable[..., Any], direction: str = "rising", count: int = 1):
        self.f = user_function(f, "Section: f", ("t", "q", "v"), ("q", "v"), ("q",))
        self.direction, self.count = known_direction(direction, "Section"), whole(count, "Section: count", 1)

    def check(self, system: System, state: State) -> None:
        """The function must give one number."""
        shape = jax.eval_shape(lambda: jnp.asarray(self.f(system.given, t=state.t, q=state.q, v=state.v)))
        if shape.size != 1:
            msg = f"Section: f must return one number, got shape {shape.shape}"
            raise ValueError(msg)

    def init(self, system: System, state: State, span: Array) -> Left:
        """On the side of the start, or of the motion from there."""

        def along(fn: Callable[..., Array]) -> Callable[..., Array]:
            def rate(t: Array, q: Array, v: Array) -> Array:
                flow = (jnp.ones_like(t), system.rate(t, q, v), system.acceleration(t, q, v))
                return jax.jvp(fn, (t, q, v), flow)[1]

            return rate

        def value(t: Array, q: Array, v: Array) -> Array:
            return number_at(self.f, system, state.moved(t, q, v))

        place = (state.t, state.q, state.v)
        f, rate, bend = value(*place), along(value)(*place), along(along(value))(*place)
        brief = _brief(span, (rate, bend))
        there = jnp.abs(f) <= brief * jnp.abs(rate)
        side = jnp.where(there, jnp.sign(rate), jnp.sign(f))
        return held(Left(jnp.asarray(self.count), side, jnp.where(there, 2 * brief, 0.0)))

    def after(self, problem: Problem, old: Carry, new: Carry, row: Row, left: Left) -> tuple[Carry, Left]:
        """Look for changes of the sign inside the step."""
        system = problem.system.since(old.epoch)
        step = (system, problem.method, old.state, new.state, row)
        fixed = held(step)
        value = self.along(fixed)
        times, values = looks(value, fixed[2].t, fixed[3].t)
        hit = hits(system, old.state, row)
        sides, signs = [left.side], jnp.sign(jnp.where(hit, values[-1], values[1:]))  # nothing is inside a jump
        for sign in jnp.where(times[1:] <= left.begun, 0.0, signs):
            sides.append(jnp.where(sign == 0, sides[-1], sign))
        before, after = jnp.stack(sides[:-1]), jnp.stack(sides[1:])
        moves = row.keep & (new.state.t > old.state.t)
        wanted = moves & (before * after < 0) & (after != -DIRECTIONS[self.direction])
        met = jnp.cumsum(wanted)
        last = jnp.argmax(wanted & (met == left.count))
        ends = jnp.any(wanted & (met == left.count)) & (new.status == Status.OK)
        side = after[-1]
        if row.info.v_minus is not None:  # the next step begins after the jump
            sign = jnp.sign(number_at(self.f, system, fixed[3]))
            side = jnp.where(sign == 0, side, sign)
        left = choose(moves, Left(left.count - met[-1], side, left.begun), left)

        def cut() -> State:
            return self.located(step, times[last], times[last + 1], after[last])

        state = jax.lax.cond(ends & ~hit, cut, lambda: new.state)
        return eqx.tree_at(lambda c: (c.state, c.done), new, (state, new.done | ends)), left

    def along(self, step: Any) -> Callable[[Array], Array]:
        """The function at any time of a step."""
        system, between = step[0], inside_step(*step)
        return lambda t: number_at(self.f, system, between(t))

    def located(self, step: Any, low: Array, high: Array, side: Array) -> State:
        """The state at a crossing, with the derivative of its time."""

        def find(given: Any) -> Array:
            step, low, high, side = given
            value = self.along(step)
            return bisected(lambda t: side * value(t) > 0, low, high)

        def attach(t: Array, given: Any, still: Any) -> Array:
            now, rate = jax.jvp(self.along(still[0]), (t,), (jnp.ones_like(t),))
            return t - (self.along(given[0])(t) - now) / rate

        t = rooted(find, attach, (step, *held((low, high, side))))
        return inside_step(*step)(t)


class Event(AbstractUntil):
    """The end of a run at the `count`-th event of a contact: right behind it.

    Args:
        contact: the number of the contact; friction elements count on after the contacts.
        kind: "bounces", "closes", "opens", "sticks", "slips" or "reverses".
        count: at which of the events the run ends.

    Example:
        >>> end = carom.final_state(ball, state, method, t1=10.0, h=0.01, until=carom.Event(0, "bounces"))
    """

    contact: int = eqx.field(static=True)
    kind: str = eqx.field(static=True)
    count: int = eqx.field(static=True)

    def __init__(self, contact: int = 0, kind: str = "bounces", count: int = 1):
        known = [e.name.lower() for e in EventKind if e]
        if kind not in known:
            msg = f"Event: kind must be one of {', '.join(known)}, got {shortened(kind)}"
            raise ValueError(msg)
        self.contact, self.kind = whole(contact, "Event: contact", 0), kind
        self.count = whole(count, "Event: count", 1)

    def check(self, system: System, state: State) -> None:
        """There must be such a contact."""
        laws = laws_of(system, state)
        if self.contact not in laws.contact_of_law:
            has = f"{laws.contacts} contacts and {laws.elements} friction elements"
            msg = f"Event: contact {self.contact} does not exist: the system has {has}"
            raise ValueError(msg)

    def init(self, system: System, state: State, span: Array) -> Left:
        """None has been met; where friction or a contact let go at the start, they do not do so again."""
        brief = jnp.zeros(())
        if self.kind in _LETTING_GO:
            brief = _brief(span, (state.v, system.acceleration(state.t, state.q, state.v)))
        return held(Left(jnp.asarray(self.count), jnp.zeros(()), brief))

    def after(self, problem: Problem, old: Carry, new: Carry, row: Row, left: Left) -> tuple[Carry, Left]:
        """Count; an event is met where its row begins, or behind the impact that the row is."""
        laws = laws_of(problem.system, old.state)
        mine = jnp.asarray(laws.contact_of_law == self.contact)
        met = row.keep & jnp.any(mine & (row.info.event == EventKind[self.kind.upper()]))
        met = met & (old.state.t >= left.begun)
        left = Left(left.count - met, left.side, left.begun)
        ends = met & (left.count == 0) & (new.status == Status.OK)
        state = choose(ends & ~hits(problem.system, old.state, row), old.state, new.state)
        return eqx.tree_at(lambda c: (c.state, c.done), new, (state, new.done | ends)), left
