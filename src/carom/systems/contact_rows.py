"""What a method needs of a system's set-valued laws at one point: gaps, relative velocities, directions, sets, events.

Rows are ordered as in `carom.solvers.contact_problem`. Everything is derived: the relative velocities `gamma(v)` are
affine in v, their Jacobian is W, their value at v contains the rates `zeta` of laws that depend on time.
"""

from __future__ import annotations

import enum

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from carom.solvers.contact_problem import CONSTRAINT, Laws
from carom.state import State
from carom.systems.system import System

UNKNOWN_MODE = -9


class Event(enum.IntEnum):
    """What happened to a law at a switching point; the codes of `Info.event`."""

    NONE = 0
    CLOSES = 1
    OPENS = 2
    STICKS = 3
    SLIPS = 4
    REVERSES = 5
    BOUNCES = 6


class ContactRows(eqx.Module):
    """The laws of a system at (t, q, v); `blank` is zero, or NaN where a gap, a limit or a constraint is not finite.

    A comparison with NaN is false: such a contact would count as open, such friction as sticking. Methods add `blank`
    to the free motion, so that the step is seen to fail; NaN in the velocities of rows that act shows by itself.
    """

    gap: Float[Array, " contacts"]
    gamma: Float[Array, " m"]
    W: Float[Array, "m n"]
    restitution: Float[Array, " m"]
    friction: Float[Array, " contacts"]
    limits: Float[Array, "elements 2"]
    blank: Float[Array, ""]
    laws: Laws

    def along_surfaces(self, turn: Array) -> ContactRows:
        """Relative velocities before half a turn of the directions, and no restitution where they turn."""
        restitution = jnp.where(turn != 0, 0.0, self.restitution)
        return eqx.tree_at(lambda r: (r.gamma, r.restitution), self, (self.gamma - 0.5 * turn, restitution))


def relative_velocities(system: System, t: Array, q: Array, v: Array) -> list[Array]:
    """Relative velocities by group: (contacts,), (contacts, directions), (elements, directions), (constraints,)."""
    p, contacts, rate = system.given, system.contacts, system.rate(t, q, v)
    none = jnp.zeros((0, 0))
    normal = contacts.gap_rates(p, t, q, rate) if contacts else jnp.zeros(0)
    tangential = contacts.slip_rates(p, t, q, rate, v) if contacts and contacts.has_friction else none
    elements = system.friction.slip_rates(p, t, q, v) if system.friction else none
    bilateral = jnp.zeros(0)
    if system.constraints is not None:
        bilateral = jax.jvp(system.constraint, (t, q), (jnp.ones_like(t), rate))[1]
    return [normal, tangential, elements, bilateral]


def stacked_velocities(system: System, t: Array, q: Array, v: Array) -> Array:
    """gamma: the relative velocities of all rows."""
    return jnp.concatenate([part.ravel() for part in relative_velocities(system, t, q, v)])


def turning_rates(system: System, t: Array, q: Array, v: Array) -> Array:
    """kappa: what the relative velocities gain at constant v, because directions turn and laws depend on time."""
    return jax.jvp(lambda s, x: stacked_velocities(system, s, x, v), (t, q), (jnp.ones_like(t), system.rate(t, q, v)))[
        1
    ]


def laws_of(system: System, state: State) -> Laws:
    """Numbers of laws and rows, from the shapes alone."""
    shapes = jax.eval_shape(lambda: relative_velocities(system, state.t, state.q, state.v))
    normal, tangential, elements, bilateral = (s.shape for s in shapes)
    if system.contacts and system.contacts.has_friction and tangential[0] != normal[0]:
        msg = f"Contacts: gap gives {normal[0]} contacts, but the slip directions are those of {tangential[0]}"
        raise ValueError(msg)
    return Laws(normal[0], tangential[1], elements[0], elements[1], bilateral[0])


def contact_rows(system: System, t: Array, q: Array, v: Array) -> ContactRows:
    """All laws at (t, q), with relative velocities of v."""
    laws = laws_of(system, State(q, v, t))

    def gamma(u: Array) -> Array:
        return stacked_velocities(system, t, q, u)

    p, contacts, n = system.given, system.contacts, laws.contacts
    restitution, friction = jnp.zeros(laws.rows), jnp.zeros(n)
    if contacts is not None:
        tangential = jnp.repeat(jnp.broadcast_to(contacts.tangential_restitution, (n,)), laws.directions)
        normal = jnp.broadcast_to(contacts.restitution, (n,))
        restitution = jnp.concatenate([normal, tangential, jnp.zeros(laws.rows - n - n * laws.directions)])
        friction = jnp.broadcast_to(contacts.friction, (n,))
    limits = system.friction.limits(p, t, q, v, laws.elements) if system.friction else jnp.zeros((0, 2))
    gap = contacts.gaps(p, t, q) if contacts else jnp.zeros(0)
    blank = 0.0 * jnp.sum(gap)
    if system.constraints is not None:
        blank = blank + 0.0 * jnp.sum(system.constraint(t, q))
    if system.friction:
        blank = jnp.where(jnp.any(jnp.isnan(limits)), jnp.nan, blank)
    return ContactRows(gap, gamma(v), jax.jacfwd(gamma)(v), restitution, friction, limits, blank, laws)


def unknown_modes(laws: Laws) -> Array:
    """Modes before the first step."""
    return jnp.full(laws.count, UNKNOWN_MODE, jnp.int32)


def events(laws: Laws, before: Array, after: Array) -> Array:
    """What each law did between two steps; friction counts only while its contact stays closed."""
    n = laws.contacts
    was, now = before == CONSTRAINT, after == CONSTRAINT
    known = before != UNKNOWN_MODE
    normal = jnp.where(now & ~was, Event.CLOSES, jnp.where(was & ~now, Event.OPENS, Event.NONE))
    turned = (before != after) & ~was & ~now
    changed = jnp.where(turned, Event.REVERSES, Event.NONE)
    friction = jnp.where(now & ~was, Event.STICKS, jnp.where(was & ~now, Event.SLIPS, changed))
    stays = was[:n] & now[:n]
    counts = [np.ones(n, bool), *([stays] if laws.directions else []), np.ones(laws.elements, bool)]
    codes = jnp.where(np.arange(laws.count) < n, normal, friction)
    return jnp.where(known & jnp.concatenate(counts), codes, Event.NONE).astype(jnp.int32)


def event_table(system: System, state: State, begins: np.ndarray, codes: np.ndarray) -> np.recarray:
    """Event codes of rows as a table of time, contact and kind."""
    laws = laws_of(system, state)
    n = laws.contacts
    row, law = np.nonzero(codes)
    contact = np.where(law < n, law, law - n) if laws.directions else law
    kinds = [Event(code).name.lower() for code in codes[row, law]]
    columns = [begins[row], contact, np.array(kinds, dtype="U8")]
    return np.rec.fromarrays(columns, names="time,contact,kind")  # pyright: ignore
