"""The keep of contacts of listed bodies: who pushes whom, and how much."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import whole
from carom.keep.base import AbstractKeep, Ring, Taken
from carom.state import Carry, Clock, State
from carom.systems.features import Feature
from carom.systems.system import System

WORLD = -1
_PER_BODY = 8  # contacts that a ring has room for: bodies of about one size have at most half as many in a step


class Pushes(NamedTuple):
    """Contacts that carry an impulse, one after the other, in the order of (t, group, a, b).

    `t` is the end of the step; `elapsed` the time since the start of the run; `group` the number of the contacts in
    `contacts=[...]`; a and b are numbers of bodies, b = -1 for the world; `impulse` is the normal one, then friction.
    """

    t: Any
    elapsed: Any
    group: Any
    a: Any
    b: Any
    impulse: Any


class _Written(NamedTuple):
    ring: Ring


class Contacts(AbstractKeep):
    """The contacts of listed bodies that carry an impulse, in every n-th step: who touches whom, and how much.

    Without it a run keeps nothing per pair.

    Example:
        >>> sol = carom.simulate(*carom.models.disks_in_box(100), t1=4.0, h=0.02, keep=[carom.keep.contacts(every=50)])
        >>> found = sol.kept["contacts 0"]
        >>> found.t, found.a, found.b, found.impulse[:, 0]
    """

    every: int = eqx.field(static=True)

    kind: ClassVar[str] = "contacts"

    def __init__(self, every: int = 1):
        self.every = whole(every, "keep.contacts: every", 1)

    def check(self, name: str, system: System, state: State, t1: float) -> None:
        """Refuse systems whose rows hold their contacts."""
        del state, t1
        if Feature.LISTED_PAIRS not in system.features:
            msg = f"keep[{name!r}]: contacts are kept of listed bodies (carom.CellList); here sol.impulse has them all"
            raise ValueError(msg)

    def init(self, system: System, state: State) -> _Written:
        """Nothing yet."""
        del state
        listed = system.pairs
        width = 4 + max(force.shape[0] for force in listed.force)
        bodies = max(len(group.bodies) for group in system.contact_groups)  # pyright: ignore[reportAttributeAccessIssue]
        room = max(2 * _PER_BODY * bodies, 64)
        return _Written(Ring(jnp.zeros((room, width)), jnp.zeros((), jnp.int64)))

    def update(self, memory: _Written, taken: Taken) -> _Written:
        """Write the contacts of a step whose turn it is."""
        due = taken.accepted & (jax.lax.rem(taken.row.k, self.every) == 0)
        return jax.lax.cond(due, lambda m: _Written(m.ring.put(*_pushing(taken))), lambda m: m, memory)

    @property
    def grows(self) -> bool:
        """All are kept."""
        return True

    def found(self, rows: np.ndarray, carry: Carry) -> Pushes:
        """As the user sees it."""
        clock = Clock.of(carry)
        rows = rows[np.lexsort((rows[:, 3], rows[:, 2], rows[:, 1], rows[:, 0]))]
        group, a, b = (rows[:, i].astype(int) for i in (1, 2, 3))
        return Pushes(clock.time(rows[:, 0]), clock.turned(rows[:, 0]), group, a, b, rows[:, 4:])

    def rows(self, found: Pushes, clock: Clock) -> np.ndarray:
        """As it is remembered."""
        return np.column_stack([clock.turned(found.elapsed), found.group, found.a, found.b, found.impulse])


def _pushing(taken: Taken) -> tuple[Array, Array]:
    """All contacts as rows (t, group, a, b, impulses), and which of them carry an impulse."""
    force, parts = taken.system.pairs.force, []
    most = max(own.shape[0] for own in force)
    for k, (group, own) in enumerate(zip(taken.system.contact_groups, force)):
        a, *b = group.numbers  # pyright: ignore[reportAttributeAccessIssue]
        ends = jnp.stack([a, *(b or [jnp.full_like(a, WORLD)])]).astype(float)
        places = jnp.stack([jnp.full(a.shape, taken.b.t), jnp.full(a.shape, float(k))])
        impulse = jnp.zeros((most, a.shape[0])).at[: own.shape[0]].set(taken.row.h * own)
        parts.append(jnp.concatenate([places, ends, impulse]))
    rows = jnp.concatenate(parts, axis=1).T
    return rows, rows[:, 4] > 0
