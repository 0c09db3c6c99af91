"""What a method needs of a system's set-valued laws at one point: gaps, relative velocities, directions, sets, events.

Rows are ordered as in `carom.solvers.contact_laws`. Everything is derived: the relative velocities `gamma(v)` are
affine in v, their Jacobian is W, their value at v contains the rates `zeta` of laws that depend on time.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal
from jaxtyping import Array, Float

from carom.running.compiled import remembered
from carom.solvers.body_directions import BodyDirections
from carom.solvers.contact_laws import Laws
from carom.solvers.contact_problem import CONSTRAINT
from carom.solvers.directions import AbstractDirections, DenseDirections
from carom.solvers.small import solve_small, times
from carom.state import State
from carom.systems.constrained import velocity_residual
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
    W: AbstractDirections
    restitution: Float[Array, " m"]
    friction: Float[Array, " contacts"]
    limits: Float[Array, "elements 2"]
    blank: Float[Array, ""]
    laws: Laws

    def along_surfaces(self, turn: Array) -> ContactRows:
        """Relative velocities before half a turn of the directions, and no restitution where they turn."""
        restitution = jnp.where(turn != 0, 0.0, self.restitution)
        return eqx.tree_at(lambda r: (r.gamma, r.restitution), self, (self.gamma - 0.5 * turn, restitution))


class Velocities(NamedTuple):
    """Relative velocities by group of the user's lists; friction with a column per direction, None without."""

    normal: list[Array]
    tangential: list[Array | None]
    elements: list[Array]
    bilateral: Array

    @property
    def stacked(self) -> Array:
        """gamma: those of all rows."""
        friction = [part.ravel() for part in (*self.tangential, *self.elements) if part is not None]
        return jnp.concatenate([*self.normal, *friction, self.bilateral])


def relative_velocities(system: System, t: Array, q: Array, v: Array) -> Velocities:
    """Relative velocities of all laws."""
    p, groups, rate = system.given, system.contact_groups, system.rate(t, q, v)
    return Velocities(
        [group.gap_rates(p, t, q, rate) for group in groups],
        [group.slip_rates(p, t, q, rate, v) if group.has_friction else None for group in groups],
        [group.slip_rates(p, t, q, rate, v) for group in system.friction_groups],
        velocity_residual(system, t, q, v),
    )


def stacked_velocities(system: System, t: Array, q: Array, v: Array) -> Array:
    """gamma: the relative velocities of all rows."""
    return relative_velocities(system, t, q, v).stacked


def turning_rates(system: System, t: Array, q: Array, v: Array) -> Array:
    """kappa: what the relative velocities gain at constant v, because directions turn and laws depend on time."""
    return jax.jvp(lambda s, x: stacked_velocities(system, s, x, v), (t, q), (jnp.ones_like(t), system.rate(t, q, v)))[
        1
    ]


def is_straight(system: System, t: Array, q: Array, v: Array) -> bool:
    """Whether no direction ever turns: as traced, the turning rates are zero whatever the place."""
    jaxpr = jax.make_jaxpr(lambda t, q, v: turning_rates(system, t, q, v))(t, q, v).jaxpr
    rates = jaxpr.outvars[0]
    made = [e for e in jaxpr.eqns if rates in e.outvars and e.primitive.name == "broadcast_in_dim"]
    number = made[0].invars[0] if made else rates
    return isinstance(number, Literal) and not np.any(number.val)


def turning(system: System, t: Array, q: Array, v: Array, laws: Laws) -> Any:
    """Rows that count how their directions turn; all but those of contacts of bodies."""
    if all(group.turns for group in system.contact_groups):
        return True
    sizes = (part.size for part in _shapes(system, t, q, v).normal)
    contacts = np.repeat([group.turns for group in system.contact_groups], list(sizes))
    contacts = jnp.asarray(contacts)
    return laws.by_row(contacts, contacts, jnp.ones(laws.elements, bool), jnp.ones(laws.bilateral, bool))


def laws_of(system: System, state: State) -> Laws:
    """Which laws and rows there are, from the shapes alone."""
    return _laws(system, _shapes(system, state.t, state.q, state.v))


def slides_in_a_plane(system: System, state: State) -> bool:
    """Whether any friction has two directions; asked once of a system and sizes of states: it takes a trace, 1.2 ms."""
    known, sizes = _planes(system), (state.q.size, state.v.size)
    if sizes not in known:
        known[sizes] = 2 in laws_of(system, state).directions
    return known[sizes]


@remembered
def _planes(system: System) -> dict[tuple[int, int], bool]:
    del system
    return {}


def _shapes(system: System, t: Array, q: Array, v: Array) -> Velocities:
    return jax.eval_shape(lambda: relative_velocities(system, t, q, v))


def _laws(system: System, shapes: Velocities) -> Laws:
    groups, names = [], []
    for group, normal, tangential in zip(system.contact_groups, shapes.normal, shapes.tangential):
        slips, directions = (normal.size, 0) if tangential is None else tangential.shape
        if slips != normal.size:
            msg = f"Contacts: gap gives {normal.size} contacts, but the slip directions are those of {slips}"
            raise ValueError(msg)
        groups.append((normal.size, directions))
        names += group.names or [""] * normal.size
    named = tuple(names) if any(names) else ()
    return Laws(groups, [(part.shape[0], part.shape[1]) for part in shapes.elements], shapes.bilateral.size, named)


def element_limits(system: System, t: Array, q: Array, v: Array, lam: Array) -> Array:
    """Limits of all friction elements, where the constraints have the multipliers lam."""
    return _limits(system, t, q, v, lam, _shapes(system, t, q, v))


def _limits(system: System, t: Array, q: Array, v: Array, lam: Array, parts: Velocities) -> Array:
    pairs = zip(system.friction_groups, parts.elements)
    limits = [group.limits(system.given, t, q, v, lam, part.shape[0]) for group, part in pairs]
    return jnp.concatenate([jnp.zeros((0, 2)), *limits])


def contact_rows(system: System, t: Array, q: Array, v: Array, lam: Array | None = None) -> ContactRows:
    """All laws at (t, q), with relative velocities of v, and limits of friction where constraints have multipliers."""
    gamma, W, parts = _velocities_and_directions(system, t, q, v)
    laws = _laws(system, parts)

    def of_contacts(name: str) -> Array:
        pairs = zip(system.contact_groups, parts.normal)
        return jnp.concatenate([jnp.zeros(0), *(group.coefficients(name, normal.size) for group, normal in pairs)])

    lam = jnp.zeros(laws.bilateral) if lam is None else lam
    limits, gap = _limits(system, t, q, v, lam, parts), system.gaps(t, q)
    blank = 0.0 * jnp.sum(gap)
    if system.constraints is not None:
        blank = blank + 0.0 * jnp.sum(system.constraint(t, q))
    if laws.elements:
        blank = jnp.where(jnp.any(jnp.isnan(limits)), jnp.nan, blank)
    none = jnp.zeros(laws.elements), jnp.zeros(laws.bilateral)
    restitution = laws.by_row(of_contacts("restitution"), of_contacts("tangential_restitution"), *none)
    return ContactRows(gap, gamma, W, restitution, of_contacts("friction"), limits, blank, laws)


def _velocities_and_directions(
    system: System, t: Array, q: Array, v: Array
) -> tuple[Array, AbstractDirections, Velocities]:
    """gamma, its Jacobian W, and gamma by groups; the user's functions are traced once for all three."""

    def gamma(u: Array) -> tuple[Array, Velocities]:
        parts = relative_velocities(system, t, q, u)
        return parts.stacked, parts

    if system.is_listed:
        value, parts = gamma(v)
        return value, body_directions(system, t, q, v), parts

    def along(e: Array) -> tuple[Array, Array, Velocities]:
        return jax.jvp(gamma, (v,), (e,), has_aux=True)

    value, W, parts = jax.vmap(along, out_axes=(None, 1, None))(jnp.asarray(np.eye(v.size)))
    return value, DenseDirections(W), parts


def body_directions(system: System, t: Array, q: Array, v: Array) -> BodyDirections:
    """W by small blocks, one or two per contact; kept, not found anew for everyone who asks for it."""
    groups: Any = system.contact_groups
    bodies, columns = groups[0].bodies, None
    if system.kinematics is not None:
        rest = system.rate(t, q, jnp.zeros_like(v))
        units = jnp.tile(jnp.eye(bodies.dof), (1, bodies.count))
        rates = jax.vmap(lambda u: system.rate(t, q, u) - rest)(units)
        columns = jnp.moveaxis(jax.vmap(bodies.positions)(rates), 0, 2)
    blocks = tuple(g.blocks(system.given, t, q, v, columns) for g in groups)
    return BodyDirections(jax.lax.optimization_barrier(blocks), bodies.count)


def over_mass(
    system: System, t: Array, q: Array, W: AbstractDirections, *forces: Array, M_inv: Array | None = None
) -> tuple[Any, ...]:
    """W M^{-1} as directions, and M^{-1} f of forces.

    Apart for a constant mass (`M_inv`) or a diagonal one, so that constant directions leave the compiled loop.
    """
    if M_inv is not None:
        return DenseDirections(times(M_inv, W.dense().T).T), *(times(M_inv, f) for f in forces)
    M = system.dense_mass_at(t, q)
    if M.ndim < 2:
        return W.over(M), *(f / M for f in forces)
    columns = solve_small(M, jnp.vstack([*forces, W.dense()]).T).T
    return DenseDirections(columns[len(forces) :]), *columns[: len(forces)]


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
    counts = [np.ones(n, bool), laws.with_friction(was[:n] & now[:n]), np.ones(laws.elements, bool)]
    codes = jnp.where(np.arange(laws.count) < n, normal, friction)
    return jnp.where(known & jnp.concatenate(counts), codes, Event.NONE).astype(jnp.int32)


class Happened(NamedTuple):
    """The events up to step `k` of a run, where rows that are no whole steps do not tell them."""

    time: np.ndarray
    contact: np.ndarray
    code: np.ndarray
    k: Any

    @classmethod
    def of(cls, table: np.recarray, k: int) -> Happened:
        """Those of a table."""
        return cls(table.time, table.contact, np.array([Event[kind.upper()] for kind in table.kind], int), k)

    @property
    def table(self) -> np.recarray:
        """As users see them."""
        return _table(self.time, self.contact, self.code)


def event_table(system: System, state: State, begins: np.ndarray, codes: np.ndarray) -> np.recarray:
    """Event codes of rows as a table of time, contact and kind."""
    row, law = np.nonzero(codes)
    return _table(begins[row], laws_of(system, state).contact_of_law[law], codes[row, law])


def _table(time: np.ndarray, contact: np.ndarray, codes: np.ndarray) -> np.recarray:
    columns = [time, contact, np.array([Event(code).name.lower() for code in codes], dtype="U8")]
    return np.rec.fromarrays(columns, names="time,contact,kind")  # pyright: ignore
