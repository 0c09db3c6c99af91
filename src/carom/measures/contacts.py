"""Who touches whom in a run of many bodies, where, and with which force."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.methods.base import AbstractMethod
from carom.running.compiled import compiled
from carom.solution import Solution
from carom.state import State
from carom.systems.body_contacts import AbstractBodyContacts, PairContacts
from carom.systems.contact_rows import body_directions
from carom.systems.listed_pairs import lists_at
from carom.systems.system import System

WORLD = -1  # the partner of a body that touches a wall
_ROUNDING = 1e-12  # of the coordinates: a gap as small is closed


class Touching(NamedTuple):
    """Contacts, one row each: bodies `a` and `b` (-1: a wall), `gap`, unit `normal` from b to a, and `point`."""

    a: np.ndarray
    b: np.ndarray
    gap: np.ndarray
    normal: np.ndarray
    point: np.ndarray

    @property
    def inner(self) -> Touching:
        """Those between two bodies."""
        return Touching(*(x[self.b != WORLD] for x in self))


class ContactForces(NamedTuple):
    """Closed contacts, one row each: bodies `a` and `b` (-1: a wall), gap, normal, point, and the `force` on a."""

    a: np.ndarray
    b: np.ndarray
    gap: np.ndarray
    normal: np.ndarray
    point: np.ndarray
    force: np.ndarray

    @property
    def pressure(self) -> np.ndarray:
        """Normal forces."""
        return np.sum(self.force * self.normal, axis=1)

    @property
    def strong(self) -> ContactForces:
        """Those that carry more than the mean of all that carry anything: the chains of force."""
        carried = self.pressure
        mean = carried[carried > 0].mean() if np.any(carried > 0) else 0.0
        return ContactForces(*(x[carried > mean] for x in self))


def touching(sol: Solution, t: float | None = None, gap: float = 0.0) -> Touching:
    """The contacts of bodies with a gap of at most `gap`, in the saved row at t or before it (None: the last).

    Example:
        >>> pairs = carom.measures.touching(sol).inner
        >>> pairs.a, pairs.b, pairs.normal
    """
    system, state, _ = listed_at(sol, row_of(sol, t))
    found = _table(system, *_seen(system, state.t, state.q))
    near = found.gap <= gap + _ROUNDING * (1.0 + np.abs(state.q).max())
    return Touching(*(x[near] for x in found))


def contact_forces(sol: Solution, t: float | None = None) -> ContactForces:
    """Contact forces with their points and partners, in the step that begins at the saved row at t (None: the last).

    The step is solved once more, to the tolerance of the run, from the forces at its end: where several sets of forces
    bring about the same motion (piles with friction), it is one of them.

    Example:
        >>> forces = carom.measures.contact_forces(sol)
        >>> forces.strong.point  # where chains of force go through
    """
    system, state, h = listed_at(sol, row_of(sol, t))
    if system.pairs is None:
        msg = "contact_forces needs pairs that a search lists (carom.CellList, carom.Fixed): else use sol.force"
        raise ValueError(msg)
    pushes, seen = _forces(system, sol.method, state, jnp.asarray(h))
    found, force = _table(system, *seen), np.concatenate([np.asarray(push) for push in pushes])
    force = force[_there(system, seen[0])]
    closed = (found.gap <= 0) | np.any(force != 0, axis=1)
    return ContactForces(*(x[closed] for x in (*found, force)))


def row_of(sol: Solution, t: float | None) -> int:
    """The saved row at a time or before it."""
    if t is None:
        return len(sol) - 1
    low, high = sorted((sol.t[0], sol.t[-1]))
    if not low <= t <= high:
        msg = f"t must lie between {low:g} and {high:g}, got {t}"
        raise ValueError(msg)
    return int(np.searchsorted(sol.clock.turned(sol.t), sol.clock.turned(t), side="right")) - 1


def listed_at(sol: Solution, row: int) -> tuple[System, State, float]:
    """The system with the pairs it lists at a saved row, the state there, and the size of the step ahead."""
    system, n = sol.stepped, len(sol)
    pair_groups(system)
    t, q = jnp.asarray(sol.clock.turned(sol.elapsed[row])), jnp.asarray(sol.q[row])
    state = State(q, system.inner_velocity(t, q, jnp.asarray(sol.v[row])), t)
    h = float(sol.h[min(max(row, 1), n - 1)])
    if sol.carry.pairs is None:
        return system, state, h
    return system.since(system.epoch, lists_at(system, state, sol.carry.pairs, jnp.asarray(h))), state, h


def pair_groups(system: System) -> list[PairContacts]:
    """The groups of contacts between bodies, refused where there are none or others beside."""
    groups = system.contact_groups
    pairs = [group for group in groups if isinstance(group, PairContacts)]
    if not pairs or not all(isinstance(group, AbstractBodyContacts) for group in groups):
        msg = "this measure needs contacts of bodies, made by Contacts.between (and Contacts.each)"
        raise ValueError(msg)
    return pairs


Seen = tuple[Any, Any, Any, Any]


@compiled
def _forces(system: System, method: AbstractMethod, state: State, h: Array) -> tuple[list[Array], Seen]:
    """The forces of a step on the first body of each contact, and what was seen in its middle."""
    t, q = state.t + 0.5 * h, state.q + 0.5 * h * system.rate(state.t, state.q, state.v)
    force = method.step(system, state, method.init(system, state), h).pairs.force
    W, d = body_directions(system, t, q, state.v), _dimension(system)
    pushes = [group.sides[0].push(own)[:, :d] for group, own in zip(W.groups, force)]
    return pushes, _looked(system, t, q)


@compiled
def _seen(system: System, t: Array, q: Array) -> Seen:
    return _looked(system, t, q)


def _looked(system: System, t: Array, q: Array) -> Seen:
    """Bodies, gaps, normals and points of all contacts, group by group."""
    W, d, given = body_directions(system, t, q, jnp.zeros(_velocities(system))), _dimension(system), system.given
    groups: Any = system.contact_groups
    normals = [_units(jnp.stack(block.sides[0].rows[0][:d], axis=1)) for block in W.groups]
    points = [group.points(given, t, q, n) for group, n in zip(groups, normals)]
    return [group.numbers for group in groups], [group.gaps(given, t, q) for group in groups], normals, points


def _velocities(system: System) -> int:
    bodies = pair_groups(system)[0].bodies
    return bodies.count * bodies.dof


def _dimension(system: System) -> int:
    return pair_groups(system)[0].shape.dimension


def _units(x: Array) -> Array:
    return x / jnp.sqrt(jnp.sum(x * x, axis=1, keepdims=True))


def _there(system: System, numbers: Any) -> np.ndarray:
    """Which places of lists are contacts."""
    count = pair_groups(system)[0].bodies.count
    return np.concatenate([np.asarray(own[0]) < count for own in numbers])


def _table(system: System, numbers: Any, gaps: Any, normals: Any, points: Any) -> Touching:
    a = np.concatenate([np.asarray(own[0]) for own in numbers])
    b = np.concatenate([np.asarray(own[1]) if len(own) > 1 else np.full(len(own[0]), WORLD) for own in numbers])
    columns = (np.concatenate([np.asarray(own) for own in parts]) for parts in (gaps, normals, points))
    there = _there(system, numbers)
    return Touching(*(x[there] for x in (a, b, *columns)))
