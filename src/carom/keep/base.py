"""What every keep offers: a memory that accepted steps change, and what is made of it after the run."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from carom.arguments import did_you_mean, names_of
from carom.methods.base import AbstractMethod
from carom.running.crossing import inside_step
from carom.state import Carry, Clock, Row, State
from carom.stepping.base import AbstractStepping
from carom.systems.system import System

PyTree = Any
_ROOM_BYTES = 32e6
_MOST_ROOM, _LEAST_ROOM = 512, 32  # places that a ring holds until the host takes them


class Places(NamedTuple):
    """Times and states; `elapsed` is the time since the start of the run."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    elapsed: np.ndarray


class Taken(NamedTuple):
    """A step as keeps see it: from a to b; one that was not accepted leaves them as they are."""

    system: System
    method: AbstractMethod
    stepping: AbstractStepping
    a: State
    b: State
    row: Row
    accepted: Array

    def between(self) -> Callable[[Array], State]:
        """The state at any time of the step."""
        return inside_step(self.system, self.method, self.a, self.b, self.row)

    @property
    def end(self) -> Array:
        """The place where the step ended."""
        return jnp.concatenate([self.row.t[None], self.row.q, self.row.v])

    def column(self, name: str, keep: str) -> Array:
        """A column of the row, by its name."""
        found = self.row.columns
        if name not in found:
            raise ValueError(unknown(name, found, keep, self.method))
        return found[name]


def unknown(name: str, found: dict[str, Array], keep: str, method: AbstractMethod) -> str:
    """What to say about a column that does not exist."""
    there = [n for n in found if n != "keep"]
    hint = did_you_mean(name, there)
    return f"keep.{keep}: no column '{name}', {type(method).__name__} records {names_of(there)}{hint}"


def place(system: System, state: State) -> Array:
    """Time, coordinates and the velocities that the user sees, as one vector."""
    return jnp.concatenate([state.t[None], state.q, system.outer_velocity(state.t, state.q, state.v)])


class Ring(eqx.Module):
    """The latest places, place i in row i modulo their number; `count` is the number of all."""

    rows: Float[Array, "room width"]
    count: Int[Array, ""]

    @classmethod
    def of(cls, first: Array, begins: Any, last: int | None) -> Ring:
        """Room for the `last` places (None: for so many that the host can take them in time), and perhaps the first."""
        room = last or int(np.clip(_ROOM_BYTES / (8 * first.size), _LEAST_ROOM, _MOST_ROOM))
        empty = cls(jnp.zeros((room, first.size)), jnp.zeros((), jnp.int64))
        return empty.put(first[None], jnp.asarray(begins)[None])

    def put(self, places: Array, wanted: Array) -> Ring:
        """Add those places that are wanted."""
        room = len(self.rows)
        number = self.count + jnp.cumsum(wanted) - 1
        count = self.count + jnp.sum(wanted)
        slots = jnp.where(wanted & (number >= count - room), number % room, room)
        return Ring(self.rows.at[slots].set(places, mode="drop"), count)


class AbstractKeep(eqx.Module):
    """Something that a run keeps.

    `init` gives its memory, `update` the memory after a step (one that was not accepted must leave it as it is), and
    `result` on the host what the user gets. Memories are part of the carry: a stepping that goes back, a chunk and a
    stored run restore them with everything else.
    """

    kind: ClassVar[str]

    def check(self, name: str, system: System, state: State, t1: float) -> None:
        """Raise before a run for what cannot be kept."""
        del name, system, state, t1

    @abc.abstractmethod
    def init(self, system: System, state: State) -> PyTree:
        """The memory before the first step."""

    @abc.abstractmethod
    def update(self, memory: PyTree, taken: Taken) -> PyTree:
        """The memory after a step."""

    def result(self, memory: PyTree, places: Any, solution: Any) -> Any:
        """What was found, in a `carom.Solution`; by default what the ring holds, with what the host took from it."""
        return places

    def found(self, rows: np.ndarray, carry: Carry) -> Any:
        """Rows of a ring, one after the other, as the user sees them."""
        n, clock, elapsed = np.asarray(carry.state.q).shape[-1], Clock.of(carry), rows[:, 0]
        return Places(clock.time(elapsed), rows[:, 1 : n + 1], rows[:, n + 1 :], clock.turned(elapsed))

    def rows(self, found: Any, clock: Clock) -> np.ndarray:
        """Rows of a ring, from what the user sees."""
        return np.concatenate([clock.turned(found.elapsed)[:, None], found.q, found.v], axis=1)

    @property
    def grows(self) -> bool:
        """Whether the host must take places from the ring before they are overwritten."""
        return False

    def not_finite_at(self, memory: PyTree) -> Array | None:
        """The elapsed time at which a function was NaN, infinite if it never was; None if there is no function."""
        del memory

    def caution(self, memory: PyTree) -> str | None:
        """What to warn about after a run, to follow the keep's name; None if nothing."""
        del memory


def ring_of(memory: PyTree) -> Ring | None:
    """The ring of a memory, if it has one."""
    return getattr(memory, "ring", None)
