"""What time-stepping schemes for contact share: the report of a step, and the way back onto bilateral constraints."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.methods.projection import projected
from carom.solvers.body_directions import BodyDirections
from carom.solvers.contact_problem import TINY, ContactProblem, contact_problem
from carom.solvers.contact_solver import AbstractContactSolver, ContactResult, direction_once
from carom.solvers.directions import AbstractDirections, DenseDelassus
from carom.solvers.newton import Settled, iterated
from carom.solvers.redundant import doubtful
from carom.solvers.roots import rarely, rooted
from carom.solvers.small import inverse_small, times
from carom.state import Info, State, Status
from carom.systems.constrained import directions, ineffective, velocity_residual
from carom.systems.contact_rows import ContactRows, contact_rows, element_limits, events, over_mass
from carom.systems.system import System

TOUCHING = 1e-9  # of what free motion adds to a gap in a step: a gap as small is closed, whatever its sign

_ROUNDS = 50  # for limits of friction that follow from the impulses
_SAME = 1e-13
_CLOSE, _APART, _MORE = 1e-10, 1e-6, 8  # of constraints: where corrections go on, where a step fails, how often


def report(
    rows: ContactRows, problem: ContactProblem, result: ContactResult, before: Array, mode: Array, h: Array
) -> Info:
    """Impulses, work, modes and events of a step."""
    P, laws = result.P, rows.laws
    free = P.size - laws.bilateral
    gamma_E = problem.velocity(P) - rows.restitution * rows.gamma  # Studer2008 (30), sign corrected
    return Info(
        status=result.status,
        residual=result.residual,
        iterations=result.iterations,
        impulse=P[:free],
        mode=mode,
        event=events(laws, before, mode),
        work=laws.by_law(0.5 * P * (rows.gamma + gamma_E)),
        multiplier=-P[free:] / h if laws.bilateral else None,
    )


def summary(rows: ContactRows, problem: ContactProblem, result: ContactResult, gamma: Array) -> Info:
    """A step of many bodies in a few numbers, with `gamma = G P + c`: of single contacts nothing is stored."""
    P, W = result.P, rows.W
    assert isinstance(W, BodyDirections)
    defect = P - problem.project(P - gamma / problem.diagonal, P)
    overlap = jnp.where(problem.active, -rows.gap, 0.0)
    count, total = jnp.sum(problem.active).astype(float), W.summed(jnp.zeros_like(P).at[: overlap.size].set(overlap))
    return Info(
        status=result.status,
        residual=result.residual,
        iterations=result.iterations,
        work=W.summed(_works(rows, P, gamma))[None],
        extra={
            "contacts": count,
            "penetration": jnp.max(overlap, initial=0.0),
            "mean_penetration": total / jnp.maximum(count, 1.0),
            "velocity_defect": jnp.max(problem.diagonal * jnp.abs(defect), initial=0.0),
        },
    )


def _works(rows: ContactRows, P: Array, gamma: Array) -> Array:
    return 0.5 * P * (gamma + (1.0 - rows.restitution) * rows.gamma)


def pushed_apart(
    system: System, solver: AbstractContactSolver, t: Array, q: Array, u: Array, dissipated: Array, h: Array
) -> Array:
    """q moved along M^{-1} W_N^T by the least motion after which bodies overlap no more; velocities are left alone.

    A contact that opens by itself in the next step is not pushed, and every contact keeps the overlap that free motion
    brings about in a step: what rests stays closed. The motion is shortened until it needs no more energy than contacts
    `dissipated` in the step.
    """
    rows = contact_rows(system, t, q, u)
    n, force = rows.laws.contacts, system.force(t, q, u)
    W_M, acceleration = over_mass(system, t, q, rows.W, force)
    left = h * h * rows.W.sizes().velocity(jnp.abs(acceleration))[:n]
    c = rows.gap + left + h * jnp.maximum(rows.gamma[:n], 0.0)
    near = c <= -jnp.min(c, initial=0.0)
    offsets, none = jnp.zeros_like(rows.gamma).at[:n].set(c), jnp.zeros_like(rows.friction)
    data = {"c": offsets, "active": near, "friction": none, "limits": rows.limits}
    push = solver(contact_problem(rows.W, W_M, rows.laws, **data), jnp.zeros_like(offsets))
    motion = W_M.force(push.P)
    needed = -jnp.vdot(force, motion)
    share = jnp.where(needed > dissipated, dissipated / jnp.where(needed > 0, needed, 1.0), 1.0)
    rest = system.rate(t, q, jnp.zeros_like(u))
    return q + share * (system.rate(t, q, motion) - rest)


def dissipation(rows: ContactRows, P: Array, gamma: Array) -> Array:
    """The energy that contacts took in a step, without what others brought in."""
    W = rows.W
    assert isinstance(W, BodyDirections)
    each = (jnp.sum(own, axis=0) for own in W.by_group(_works(rows, P, gamma)))
    return sum((jnp.sum(jnp.maximum(-work, 0.0)) for work in each), jnp.zeros(()))


class OwnLimits(eqx.Module):
    """Limits of friction elements in a step, which follow from its impulses."""

    system: System
    t: Array
    q: Array
    v: Array
    h: Array
    bilateral: int = eqx.field(static=True)

    def on(self, problem: ContactProblem, P: Array) -> ContactProblem:
        """The problem with the limits of impulses P."""
        lam = -P[P.size - self.bilateral :] / self.h
        limits = self.h * element_limits(self.system, self.t, self.q, self.v, lam)
        return eqx.tree_at(lambda p: p.limits, problem, limits)


Limited = tuple[AbstractContactSolver, ContactProblem, ContactResult, OwnLimits]


def with_own_limits(
    solver: AbstractContactSolver, problem: ContactProblem, first: ContactResult, own: OwnLimits
) -> tuple[ContactProblem, ContactResult]:
    """The problem and its solution where limits of friction elements follow from the impulses, in rounds."""
    result = rooted(_in_rounds, _limited, (solver, problem, first, own))
    return own.on(problem, result.P), result


def _in_rounds(given: Limited) -> ContactResult:
    solver, problem, first, own = given

    def improve(result: ContactResult, _: Array) -> tuple[ContactResult, Array]:
        new = solver(own.on(problem, result.P), result.P)
        change = jnp.max(jnp.abs(new.P - result.P)) / (jnp.max(jnp.abs(new.P)) + TINY)
        new = eqx.tree_at(lambda r: r.iterations, new, result.iterations + new.iterations)
        return new.after(result.status), change

    return iterated(improve, first, _ROUNDS, Settled(_SAME, _SAME, 0.5))[0]


def _limited(found: ContactResult, given: Limited, still: Limited) -> ContactResult:
    """One Newton step on the projective equations, with limits that follow."""

    def left(given: Limited, P: Array) -> Array:
        _, problem, _, own = given
        return own.on(problem, P).equation(P)

    J = jax.jacfwd(lambda P: left(still, P))(found.P)
    return eqx.tree_at(lambda r: r.P, found, found.P - direction_once(J, left(given, found.P)))


class Joined(eqx.Module):
    """The bilateral constraints of a step: directions W, M^{-1} W^T, their product S, and how many depend on others.

    Which do is decided at the start of the step, where all hold; S has what keeps it invertible (`idle`).
    """

    W: Array
    M_inv_W: Array
    S: Array
    redundant: Array

    @classmethod
    def of(cls, system: System, start: State, rows: ContactRows, W_M: AbstractDirections) -> Joined:
        """Those of the laws at some place of the step from `start`."""
        first = rows.laws.rows - rows.laws.bilateral
        W, M_inv_W = rows.W.dense()[first:], W_M.dense()[first:].T
        S, none = times(W, M_inv_W), jnp.zeros((), jnp.int32)
        if rows.laws.bilateral < 2:
            return cls(W, M_inv_W, S, none)
        nothing = (jnp.zeros_like(S), none)
        lost, redundant = rarely(doubtful(W), _lost, nothing, system, start)
        return cls(W, M_inv_W, S + lost, redundant)

    def posed(self, problem: ContactProblem) -> ContactProblem:
        """The contact problem with an invertible S."""
        G, m = problem.G.dense(), len(self.S)
        G = G.at[len(G) - m :, len(G) - m :].set(self.S)
        return eqx.tree_at(lambda p: p.G, problem, DenseDelassus(G))

    def onto(self, system: System, t: Array, q: Array, u: Array, info: Info, h: Array) -> tuple[Array, Array, Info]:
        """q and u moved along M^{-1} W^T until g(t, q) = 0, dg/dt = 0 and k = 0, and the report with what this takes.

        No drift, whatever the number of steps. Directions in the middle of a step turn the motion by half; the impulses
        bring the other half, and belong to the forces of the constraints.
        """
        inverse = inverse_small(self.S)
        q, new = self.nearer((q, u), inverse, system, t)
        found = (q, new, self.apart(q, new, system, t, h))
        q, new, left = rarely(found[2] > _CLOSE, _nearer_still, found, self, inverse, system, t, h)
        P = times(inverse, times(self.W, new - u))
        status = jnp.where((left <= _APART) | (info.status != Status.OK), info.status, Status.NEWTON_DIVERGED)
        info = eqx.tree_at(lambda i: i.multiplier, info, replace_fn=lambda lam: lam - P / h)
        return q, new, eqx.tree_at(lambda i: i.status, info, status.astype(info.status.dtype))

    def apart(self, q: Array, u: Array, system: System, t: Array, h: Array) -> Array:
        """How far positions are from the constraints, relative to their terms."""
        size = jnp.max(jnp.abs(self.W)) * (jnp.max(jnp.abs(q)) + h * jnp.max(jnp.abs(u)))
        return jnp.max(jnp.abs(system.constraint(t, q)), initial=0.0) / (size + TINY)

    def nearer(self, pair: tuple[Array, Array], inverse: Array, system: System, t: Array) -> tuple[Array, Array]:
        """Coordinates and velocities after a few corrections."""
        back = times(self.M_inv_W, inverse)

        def left(x: Array, v: Array) -> tuple[Array, Array]:
            g = system.constraint(t, x)
            return jnp.pad(g, (0, len(self.W) - g.size)), velocity_residual(system, t, x, v)

        return projected(system, t, *pair, left, lambda r: times(back, r))


def _nearer_still(
    found: tuple[Array, Array, Array], joined: Joined, inverse: Array, *place: Any
) -> tuple[Array, Array, Array]:
    """Further corrections, those that help."""
    system, t, h = place

    def better(_, old: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        new = joined.nearer(old[:2], inverse, system, t)
        left = joined.apart(*new, system, t, h)
        return jax.tree.map(lambda a, b: jnp.where(left < old[2], a, b), (*new, left), old)

    return jax.lax.fori_loop(0, _MORE, better, found)


def _lost(_: tuple[Array, Array], system: System, start: State) -> tuple[Array, Array]:
    """`idle` of the constraints at the start of a step, and how many depend on others."""
    D = directions(system, start.t, start.q, start.v)
    redundant, P = ineffective(system, start.t, start.q, D, D)
    return P, redundant
