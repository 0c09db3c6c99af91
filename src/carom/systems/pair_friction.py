"""Friction with memory between pairs of bodies: springs along the surfaces that slip at a Coulomb limit.

A contact remembers how far its surfaces were displaced along each other, xi, and how far its bodies were rolled, psi
[Cundall and Strack 1979; Luding 2008]. With the normal n from a to b, the normal force N, the distance cut into arms l
as radii r are, l_a + l_b = |x_b - x_a|, and the slip velocity u = v_b - v_a - (l_a w_a + l_b w_b) x n along the
surfaces, a step of size h does

    xi <- turned xi + h u,    xi cut back to |xi| <= mu N / k,    T = k xi + c u cut back to |T| <= mu N

(so that no energy is made, dashpot or not), and likewise k_r psi against mu_r N R with the relative angular velocity,
1/R = 1/r_a + 1/r_b. What is remembered turns with the pair and keeps its length: xi into the new tangent plane and
about n with the mean angular velocity of both bodies, psi with that velocity. A pair that turns as one body does not
slip, and forces leave its angular momentum alone. The forces -T on b and T on a (with their torques) act as impulses
h T / 2 before and after the method's own step, so that what is at rest stays so: friction is explicit, of first order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from carom.arguments import numbers
from carom.state import State, Step
from carom.systems.pair_interactions import Columns, PairInteractions, norm

_TINY = 1e-300


class CundallStrack(eqx.Module):
    """Tangential springs with a Coulomb limit, for `Interactions.between(..., friction=)`.

    Args:
        friction: Coulomb's mu.
        stiffness: of the tangential spring.
        damping: of the slip velocity, within the Coulomb limit.
        normal_damping: of the normal velocity, as long as bodies touch.
        rolling: mu_r of rolling resistance, 0 for none.
        rolling_stiffness: of the spring against rolling, a torque per angle.

    Example:
        >>> rough = carom.laws.CundallStrack(friction=0.5, stiffness=1e4, damping=1.0)
    """

    friction: Array
    stiffness: Array
    damping: Array
    normal_damping: Array
    rolling: Array
    rolling_stiffness: Array

    def __init__(
        self,
        friction: Any,
        stiffness: Any,
        damping: Any = 0.0,
        normal_damping: Any = 0.0,
        rolling: Any = 0.0,
        rolling_stiffness: Any = 1.0,
    ):
        kinds = {"friction": friction, "damping": damping, "normal_damping": normal_damping, "rolling": rolling}
        for name, value in kinds.items():
            setattr(self, name, numbers(value, f"CundallStrack: {name}", size=1, nonnegative=True))
        for name, value in {"stiffness": stiffness, "rolling_stiffness": rolling_stiffness}.items():
            setattr(self, name, numbers(value, f"CundallStrack: {name}", size=1, positive=True))

    def step(self, part: PairInteractions, q: Array, v: Array, history: Array, h: Array) -> Contact:
        """The forces of all pairs over a step, and what is remembered after it."""
        d = part.dimension
        n, distance, N, ends = _normals(part, q)
        radii = [0.5 * part.law.length(own, own) for own in ends]
        arms = [distance * r / (radii[0] + radii[1]) for r in radii]
        (v_a, v_b), (w_a, w_b) = (_ends_of(part, v, at) for at in (slice(None, d), slice(d, None)))
        apart = [b - a for a, b in zip(v_a, v_b)]
        closing = _dot(apart, n)
        turned = _cross([arms[0] * a + arms[1] * b for a, b in zip(w_a, w_b)], n)
        slip = [x - closing * e - c for x, e, c in zip(apart, n, turned)]
        xi, psi = list(history[:d]), list(history[d:])
        xi, psi = _turned(xi, psi, n, [0.5 * h * (a + b) for a, b in zip(w_a, w_b)])
        T, xi = _limited([x + h * u for x, u in zip(xi, slip)], slip, self._tangential(N))
        about = [b - a for a, b in zip(w_a, w_b)]
        M, psi = _limited([x + h * u for x, u in zip(psi, about)], about, self._rolling(N, radii))
        push = jnp.where(N > 0, self.normal_damping * closing, 0.0)
        force = [t + push * e for t, e in zip(T, n)]
        energy = 0.5 * (self.stiffness * _dot(xi, xi) + self.rolling_stiffness * _dot(psi, psi))
        return Contact(force, [(arm, _cross(n, T)) for arm in arms], M, jnp.stack([*xi, *psi]), jnp.sum(energy))

    def held(self, stretch: Array, rate: Array, N: Array) -> tuple[Array, Array]:
        """Force and stretch of the springs of slip, directions along the last axis."""
        return _limited_rows(stretch, rate, self._tangential(N))

    def rolled(self, stretch: Array, rate: Array, moment: Array) -> tuple[Array, Array]:
        """Moment and stretch of the springs of rolling, for normal forces times radii."""
        return _limited_rows(stretch, rate, (self.rolling_stiffness, jnp.zeros(()), self.rolling * moment))

    def on(self, part: Any, q: Array, v: Array, history: Array, h: Array) -> tuple[Array, Array, Array]:
        """Forces on all velocities over a step, what is remembered after it, and the energy of all springs."""
        if not isinstance(part, PairInteractions):
            return part.rubbed(q, v, history, h)
        contact = self.step(part, q, v, history, h)
        return _spread(part, contact), contact.history, contact.energy

    def _tangential(self, N: Array) -> tuple[Array, Array, Array]:
        return self.stiffness, self.damping, self.friction * N

    def _rolling(self, N: Array, radii: list[Array]) -> tuple[Array, Array, Array]:
        reduced = radii[0] * radii[1] / (radii[0] + radii[1])
        return self.rolling_stiffness, jnp.zeros(()), self.rolling * N * reduced


class Contact(NamedTuple):
    """Forces on a (opposite on b), arms and moments of T on both, rolling moments, memory, energy of the springs."""

    force: Columns
    arms: list[tuple[Array, Columns]]
    moment: Columns
    history: Array
    energy: Array


class Kick(eqx.Module):
    """The impulse of friction over a step, half of it before the method's own step and half after it.

    `half` is half the change of velocities (None without friction), `pairs` the data of pairs after the step, `spring`
    the energy of all springs then.
    """

    half: Array | None = None
    impulse: Array | None = None
    pairs: Any = None
    spring: Array | None = None

    def on(self, state: State) -> State:
        """The state after half of the impulse."""
        return state if self.half is None else state.moved(state.t, state.q, state.v + self.half)

    def ended(self, start: State, step: Step) -> Step:
        """The method's step from `on(start)`, with the second half, the work of both and the data of pairs."""
        if self.half is None or self.impulse is None:
            return step
        end = self.on(step.state)
        work = 0.5 * jnp.vdot(self.impulse, start.v + end.v)
        info = eqx.tree_at(lambda i: i.work, step.info, work[None], is_leaf=lambda x: x is None)
        info = eqx.tree_at(lambda i: i.extra, info, info.extra | {"spring": self.spring})
        return Step(end, step.memory, info, step.pending, self.pairs)


def kick(system: Any, state: State, h: Array) -> Kick:
    """What friction with memory does in a step; nothing in a system without."""
    first, parts = len(system.contact_groups), list(system.pair_potentials.values())
    if system.pairs is None or all(part.friction is None for part in parts):
        return Kick()
    impulse, energy, memory = jnp.zeros_like(state.v), jnp.zeros(()), list(system.pairs.force)
    for k, part in enumerate(parts, first):
        if part.friction is not None:
            force, memory[k], spring = part.friction.on(part, state.q, state.v, memory[k], h)
            impulse, energy = impulse + h * force, energy + spring
    pairs = eqx.tree_at(lambda p: p.force, system.pairs, tuple(memory))
    return Kick(0.5 * system.mass_solve(state.t, state.q, impulse), impulse, pairs, energy)


def _spread(part: PairInteractions, contact: Contact) -> Float[Array, " v"]:
    """The forces and moments of pairs on the velocities of all bodies."""
    onto, bodies = part.bonds.onto, part.bodies
    rows = [onto([(f, -f)]) for f in contact.force]
    (r_a, turn_a), (r_b, turn_b) = contact.arms
    rows += [onto([(r_a * x + m, r_b * y - m)]) for x, y, m in zip(turn_a, turn_b, contact.moment)]
    whole = jnp.zeros((bodies.count, bodies.dof))
    return whole.at[bodies._slice].set(jnp.stack(rows, 1)).reshape(-1)


def _normals(part: PairInteractions, q: Array) -> tuple[Columns, Array, Array, tuple[Any, Any]]:
    """Unit vectors from a to b, distances, normal forces, and the data of both bodies."""
    (w,), (pull,), (ends,) = part.apart(q), part.pulls(q), part.ends()
    distance = jnp.maximum(norm(w), _TINY)
    n = [x / distance for x in w]
    return n, distance, jnp.maximum(-pull * distance, 0.0), ends


def _ends_of(part: PairInteractions, v: Array, entries: slice) -> tuple[Columns, Columns]:
    """Some of the velocities of the bodies of all pairs, one array per entry."""
    columns = part.bodies.velocities(v)[:, entries].T
    ends = [part.bonds.ends(x)[0] for x in columns]
    return [a for a, _ in ends], [b for _, b in ends]


def _turned(xi: Columns, psi: Columns, n: Columns, angle: Columns) -> tuple[Columns, Columns]:
    """Memories after the pair turned by a small angle: no longer and no shorter, xi along the surfaces."""
    off = _dot(xi, n)
    along = [x - off * e for x, e in zip(xi, n)]
    if len(n) == 3:
        about = _dot(angle, n)
        along = [x + about * c for x, c in zip(along, _cross(n, along))]
        psi = _as_long(psi, [x + c for x, c in zip(psi, _cross(angle, psi))])
    return _as_long(xi, along), psi


def turned_rows(xi: Array, psi: Array, n: Array, angle: Array) -> tuple[Array, Array]:
    """The same for vectors that are rows."""
    xi_turned, psi_turned = _turned(*(list(rows.T) for rows in (xi, psi, n, angle)))
    return jnp.stack(xi_turned, 1), jnp.stack(psi_turned, 1)


def _as_long(before: Columns, after: Columns) -> Columns:
    """Vectors with the directions of some and the lengths of others."""
    part = jnp.sqrt((_dot(before, before) + _TINY) / (_dot(after, after) + _TINY))
    return [part * x for x in after]


def _limited(stretch: Columns, rate: Columns, law: tuple[Array, Array, Array]) -> tuple[Columns, Columns]:
    """Force and stretch of springs with dashpots: springs are cut back to the limit, then the whole force is."""
    k, c, most = law
    stretch = _cut(stretch, most / k)
    return _cut([k * x + c * u for x, u in zip(stretch, rate)], most), stretch


def _limited_rows(stretch: Array, rate: Array, law: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    columns = [[x[..., i] for i in range(x.shape[-1])] for x in (stretch, rate)]
    force, kept = _limited(*columns, law)  # pyright: ignore
    return jnp.stack(force, -1), jnp.stack(kept, -1)


def _cut(x: Columns, most: Array) -> Columns:
    size = norm(x)
    part = jnp.where(size > most, most / jnp.maximum(size, _TINY), 1.0)
    return [part * c for c in x]


def _dot(x: Columns, y: Columns) -> Array:
    return sum(a * b for a, b in zip(x, y))  # pyright: ignore


def _cross(x: Columns, y: Columns) -> Columns:
    """The cross product in space; in the plane that of an angular velocity with a vector, or of two vectors."""
    if len(x) == 1:
        return [-x[0] * y[1], x[0] * y[0]]
    if len(x) == 2:
        return [x[0] * y[1] - x[1] * y[0]]
    return [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]]
