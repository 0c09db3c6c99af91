"""Keeps of numbers: the peak of a column, how often an event happened, and any reduction of the user's."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import Given, UserFunction, names_of, user_function
from carom.keep.base import AbstractKeep, Places, Taken
from carom.state import State, choose, shortened
from carom.systems.contact_rows import Event
from carom.systems.probe import result
from carom.systems.system import System


class Highest(NamedTuple):
    """The largest size of the entries of a column over all steps, the end of the step that had it, and which entry."""

    value: Any
    t: Any
    index: Any


class Peak(AbstractKeep):
    """The largest size of the entries of a column, such as "impulse", "q" or "residual", over all steps.

    Example:
        >>> sol = carom.simulate(system, state, method, t1=1.0, h=1e-3, keep=[carom.keep.peak("impulse")])
        >>> sol.kept["peak 0"].value, sol.kept["peak 0"].t, sol.kept["peak 0"].index
    """

    column: str = eqx.field(static=True)

    kind: ClassVar[str] = "peak"

    def __init__(self, column: str):
        if not isinstance(column, str):
            msg = f"keep.peak: column must be a name such as 'impulse', got {shortened(column)}"
            raise TypeError(msg)
        self.column = column

    def init(self, system: System, state: State) -> Highest:
        """Nothing yet."""
        return Highest(jnp.zeros(()), state.t, jnp.zeros((), jnp.int64))

    def update(self, memory: Highest, taken: Taken) -> Highest:
        """The larger one."""
        sizes = jnp.abs(jnp.ravel(taken.column(self.column, "peak"))).astype(float)
        if not sizes.size:
            return memory
        i = jnp.argmax(sizes)
        return choose(taken.accepted & (sizes[i] > memory.value), Highest(sizes[i], taken.b.t, i), memory)

    def result(self, memory: Highest, places: Places, solution: Any) -> Highest:
        """With the user's time."""
        return Highest(float(memory.value), float(solution.clock.time(memory.t)), int(memory.index))


class Count(AbstractKeep):
    """How often the laws did something: "closes", "opens", "sticks", "slips", "reverses" or "bounces".

    Example:
        >>> sol = carom.simulate(ball, state, carom.MoreauMidpoint(), t1=1.0, h=0.01, keep=[carom.keep.count("closes")])
        >>> sol.kept["count 0"]
    """

    event: str = eqx.field(static=True)

    kind: ClassVar[str] = "count"

    def __init__(self, event: str):
        known = [e.name.lower() for e in Event if e]
        if event not in known:
            msg = f"keep.count: event must be one of {names_of(known)}, got {shortened(event)}"
            raise ValueError(msg)
        self.event = event

    def init(self, system: System, state: State) -> Array:
        """None yet."""
        return jnp.zeros((), jnp.int64)

    def update(self, memory: Array, taken: Taken) -> Array:
        """Count the laws of this step."""
        code = Event[self.event.upper()]
        return memory + jnp.sum(taken.accepted & (taken.column("event", "count") == code))

    def result(self, memory: Array, places: Places, solution: Any) -> int:
        """As a number."""
        return int(memory)


class AbstractTotal(AbstractKeep):
    """A keep whose result follows from its last memory alone."""

    @abc.abstractmethod
    def finished(self, memory: Any) -> Any:
        """The result, from the last memory as NumPy arrays."""

    def result(self, memory: Any, places: Places, solution: Any) -> Any:
        """What follows from the last memory."""
        return self.finished(memory)


class Reduce(AbstractTotal):
    """Any number computed step by step: `value = update(value, t, q, v, h)` at the end of each accepted step of size h.

    Args:
        init: value before the first step: a number, an array, or lists, tuples and dicts of them.
        update: function of (value, t, q, v, h) that returns a value of the same shape.
        finish: function of the last value, called on the host; by default the value itself.

    Example:
        >>> sums = lambda s, t, q, v, h: (s[0] + h * q[0], s[1] + h)
        >>> mean = carom.keep.reduce((0.0, 0.0), sums, lambda s: s[0] / s[1])
        >>> sol = carom.simulate(system, state, method, t1=1.0, h=0.01, keep={"mean": mean})
        >>> sol.kept["mean"]
    """

    start: Any
    step: UserFunction
    finish: Callable[[Any], Any] | None

    kind: ClassVar[str] = "reduce"

    def __init__(self, init: Any, update: Callable[..., Any], finish: Callable[[Any], Any] | None = None):
        self.step = user_function(update, "keep.reduce: update", ("value", "t", "q", "v", "h"))
        if finish is not None and not callable(finish):
            msg = f"keep.reduce: finish must be a function of the last value, got {shortened(finish)}"
            raise TypeError(msg)
        try:
            self.start = _arrays(init)
        except (TypeError, ValueError):
            msg = f"keep.reduce: init must be a number, an array, or a tuple or dict of them, got {shortened(init)}"
            raise TypeError(msg) from None
        self.finish = finish

    def check(self, name: str, system: System, state: State, t1: float) -> None:
        """The value must keep its shape."""
        first = jax.eval_shape(lambda: self.start)
        same = result(self.step, name, state, system, _arrays, value=self.start, h=np.float64(1.0))
        shapes = [[x.shape for x in jax.tree.leaves(tree)] for tree in (first, same)]
        if jax.tree.structure(first) != jax.tree.structure(same) or shapes[0] != shapes[1]:
            msg = f"{name}: update must return a value like init, got {_shape(same)} for {_shape(first)}"
            raise ValueError(msg)

    def updated(self, value: Any, given: Given, t: Array, q: Array, v: Array, h: Array) -> Any:
        """The value after a step."""
        return _arrays(self.step(given, value=value, t=t, q=q, v=v, h=h))

    def init(self, system: System, state: State) -> Any:
        """The start, with numbers of the type that `update` makes of them."""
        arguments = (system.given, state.t, state.q, state.v, jnp.zeros(()))
        made = jax.eval_shape(lambda: self.updated(self.start, *arguments))
        return jax.tree.map(lambda x, like: jnp.asarray(x, jnp.result_type(x, like.dtype)), self.start, made)

    def update(self, memory: Any, taken: Taken) -> Any:
        """One call of the user's function."""
        row = taken.row
        value = self.updated(memory, taken.system.given, taken.system.turned(row.t), row.q, row.v, row.h)
        return choose(taken.accepted, jax.tree.map(lambda x, old: x.astype(old.dtype), value, memory), memory)

    def finished(self, memory: Any) -> Any:
        """What `finish` makes of the last value."""
        value = jax.tree.map(np.asarray, memory)
        return value if self.finish is None else self.finish(value)


def _arrays(tree: Any) -> Any:
    return jax.tree.map(jnp.asarray, tree)


def _shape(tree: Any) -> str:
    shapes = jax.tree.map(lambda x: x.shape, tree)
    return f"shape {shapes}" if isinstance(tree, jax.ShapeDtypeStruct) else str(shapes)
