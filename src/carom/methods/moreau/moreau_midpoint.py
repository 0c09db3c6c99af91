r"""Moreau's midpoint rule [Studer2008 sec. 3].

    q_M = q_B + h/2 u_B,   t_M = t_B + h/2
    M_M (u_E - u_B) = h f(t_M, q_M, u_B) + W_M^T P                                     (15)
    -(gamma_E + eps gamma_B) in N(P)   for g(t_M, q_M) <= 0 and all other laws         (17), see `_turning`
    q_E = q_B + h (u_B + u_E) / 2                                                      (21)

The inclusion is solved as `-(G P + c) in N(P)`, `c = (1 + eps) gamma_B + W M^{-1} f h` (18); `zeta_M` of (18) is
already part of gamma_B. Bilateral constraints are rows with the whole line as their set; q_E and u_E are then moved
onto them.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from carom.arguments import UserFunction, users_frame
from carom.methods.base import SMOOTH, AbstractMethod, Derivative, Gives
from carom.methods.moreau.contact_step import (
    TOUCHING,
    Joined,
    OwnLimits,
    dissipation,
    pushed_apart,
    report,
    summary,
    with_own_limits,
)
from carom.names import register
from carom.solvers.contact_laws import Laws
from carom.solvers.contact_problem import CONSTRAINT, ContactProblem, contact_problem
from carom.solvers.contact_solver import AbstractContactSolver
from carom.solvers.redundant import within_range
from carom.solvers.roots import rarely
from carom.solvers.self_stress import without_self_stress
from carom.solvers.semismooth import SemismoothNewton
from carom.solvers.small import inverse_small
from carom.state import Info, State, Step
from carom.systems.body_contacts import misfit_of_lists
from carom.systems.contact_rows import (
    ContactRows,
    contact_rows,
    is_straight,
    laws_of,
    over_mass,
    turning,
    turning_rates,
    unknown_modes,
)
from carom.systems.features import NONSMOOTH, Feature
from carom.systems.system import System

_ALONG = 2.0


class MoreauMemory(eqx.Module):
    """Mean forces (impulses / h) and modes of the last step, and the inverse of a constant mass matrix.

    Forces, not impulses: where several splits of a force solve the problem (a block held by a wall and by friction),
    steps of any size then start from, and keep, the same one.
    """

    force: Float[Array, " m"]
    mode: Int[Array, " laws"]
    M_inv: Float[Array, "n n"] | None


@register
class MoreauMidpoint(AbstractMethod):
    """Moreau's midpoint rule: order 1 with contacts, robust through any number of impacts in a step.

    Reports per law: `impulse` (normal, then tangential, then friction elements), `work` of the step, `mode`, `event`;
    `multiplier` of bilateral constraints in the convention `M v' = f - G^T multiplier`.

    Args:
        solver: `SemismoothNewton()`, `PSOR()` or `PJOR()`; `AcceleratedGaussSeidel()` for listed pairs of bodies.
        projection: push bodies of listed pairs apart after each step that left them overlapping. Velocities stay as
            they are, and no push needs more energy than contacts dissipated in the step. Sixty disks that fall into a
            box took two and a half times as long with it.

    Example:
        >>> sol = carom.simulate(*carom.models.woodpecker(), carom.MoreauMidpoint(), t1=0.3, h=1e-5)
    """

    solver: AbstractContactSolver = SemismoothNewton()
    projection: bool = eqx.field(default=False, static=True)

    handles = SMOOTH | NONSMOOTH | {Feature.CONSTRAINTS, Feature.NONHOLONOMIC, Feature.LISTED_PAIRS}
    gives = frozenset({Gives.WHOLE_STEPS, Gives.MODES})
    derivative = Derivative.WITHOUT_SALTATION

    @property
    def order(self) -> int:
        """1: positions are of order 2, velocities of order 1 [Studer2008 (37)-(38)]."""
        return 1

    def objection(self, system: System) -> str | None:
        """Regularised variables have no relative velocities; solvers want a matrix, or lists."""
        if system.shift is not None:
            return "MoreauMidpoint: pass the system itself, not a regularised one"
        if misfit := misfit_of_lists(system):
            return f"MoreauMidpoint: {misfit}"
        if self.projection and not system.is_listed:
            return "MoreauMidpoint: projection pushes listed pairs of bodies apart, and this system has none"
        has_laws = system.features & (NONSMOOTH | {Feature.CONSTRAINTS, Feature.NONHOLONOMIC})
        return self.solver.objection(system.is_listed) if has_laws else None

    def review(self, solution: Any) -> None:
        """Warn of steps that went on with impulses that were not good enough."""
        if unsolved := int(solution.stats.get("unsolved", 0)):
            steps, tol = int(solution.stats["accepted"]), float(getattr(self.solver, "tol", 0.0))
            told = f"{unsolved} of {steps} steps were not solved to tol = {tol:g}; each took the best impulses found"
            hint = "raise the solver's max_iter, or take smaller steps; bodies that walls squeeze have no solution"
            warnings.warn(f"{told}: {hint}", stacklevel=users_frame())

    def init(self, system: System, state: State) -> MoreauMemory:
        """No impulses, unknown modes."""
        laws = laws_of(system, state) if system.pairs is None else Laws(())
        constant_matrix = not isinstance(system.mass, UserFunction) and system.mass.ndim == 2
        M_inv = inverse_small(system.dense_mass_at(state.t, state.q)) if constant_matrix else None
        return MoreauMemory(jnp.zeros(laws.rows), unknown_modes(laws), M_inv)

    def lean(self) -> MoreauMidpoint:
        """Without the rescue of its solver."""
        return dataclasses.replace(self, solver=self.solver.lean())

    def modes(self, memory: MoreauMemory) -> Array:
        """Those of the last step."""
        return memory.mode

    def step(self, system: System, state: State, memory: MoreauMemory, h: Array) -> Step:
        """One step."""
        t, q, u = state.t, state.q, state.v
        t_M, q_M = t + 0.5 * h, q + 0.5 * h * system.rate(t, q, u)
        rows = contact_rows(system, t_M, q_M, u)
        W_M, acceleration = over_mass(system, t_M, q_M, rows.W, system.force(t_M, q_M, u), M_inv=memory.M_inv)
        du = h * acceleration + rows.blank
        if rows.laws.rows == 0:
            u_E = u + du
            q_E = q + h * system.rate(t_M, q_M, 0.5 * (u + u_E))
            return Step(state.moved(t + h, q_E, u_E), memory, Info(mode=memory.mode, event=jnp.zeros(0, jnp.int32)))
        moved = rows.W.velocity(du)
        active = rows.gap <= jnp.fmax(TOUCHING * h * jnp.abs(moved[: rows.laws.contacts]), 0.0)  # NaN acts, and shows
        c = (1.0 + rows.restitution) * rows.gamma + moved  # (18)
        problem = contact_problem(
            rows.W, W_M, rows.laws, c=c, active=active, friction=rows.friction, limits=h * rows.limits
        )
        if system.turns and not is_straight(system, t_M, q_M, u):
            closed = memory.mode[: rows.laws.contacts] == CONSTRAINT
            problem, rows = _along_surfaces(system, rows, problem, moved, closed, t_M, q_M, u, h)
        plain = rows.laws.bilateral == 0 or system.pairs is not None
        joined = None if plain else Joined.of(system, state, rows, W_M)
        if joined is not None and rows.laws.bilateral > 1:
            problem = joined.posed(problem)
        force = memory.force if system.pairs is None else system.pairs.forces(rows.W)
        result = self.solver(problem, without_self_stress(problem, h * force))
        if system.has_joint_friction:
            own = OwnLimits(system, t_M, q_M, u, h, rows.laws.bilateral)
            problem, result = with_own_limits(self.solver, problem, result, own)
        pushed, gamma = result.pushed or (W_M.force(result.P), None)
        u_E = u + du + pushed  # (15)
        q_E = q + h * system.rate(t_M, q_M, 0.5 * (u + u_E))  # (21)
        if system.pairs is not None:
            gamma = rows.W.velocity(pushed) + problem.c if gamma is None else gamma
            info = summary(rows, problem, result, gamma)
            depths = (info.extra["penetration"], info.extra["mean_penetration"])
            pairs = system.pairs.after(rows.W, result.P / h, result.unsolved, depths)
            if self.projection:
                lost = dissipation(rows, result.P, gamma)
                q_E = pushed_apart(system, self.solver, t + h, q_E, u_E, lost, h)
            return Step(state.moved(t + h, q_E, u_E), memory, info, pairs=pairs)
        mode = problem.modes(result.P)
        info = report(rows, problem, result, memory.mode, mode, h)
        if joined is not None:
            q_E, u_E, info = joined.onto(system, t + h, q_E, u_E, info, h)
        if joined is not None and rows.laws.bilateral > 1:
            info = eqx.tree_at(lambda i: i.extra, info, {"redundant": joined.redundant})
        return Step(state.moved(t + h, q_E, u_E), MoreauMemory(result.P / h, mode, memory.M_inv), info)


def _along_surfaces(
    system: System,
    rows: ContactRows,
    problem: ContactProblem,
    moved: Array,
    closed: Array,
    t: Array,
    q: Array,
    u: Array,
    h: Array,
) -> tuple[ContactProblem, ContactRows]:
    """The problem and the rows where contacts stay along curved surfaces, and what sticks follows a turn."""
    along, turn = _turning(system, rows, closed, t, q, u, h)
    stays = along & closed
    problem = eqx.tree_at(lambda p: p.active, problem, problem.active | stays)
    turned = _possible(problem, turn)
    gamma, rows = rows.gamma, rows.along_surfaces(turn)
    c = (1.0 + rows.restitution) * gamma + moved + 0.5 * turned
    lifts = stays & problem.doubtful & (c[: along.size] >= 0)  # of two motions of a sliding contact the smooth one
    return eqx.tree_at(lambda p: (p.c, p.active), problem, (c, problem.active & ~lifts)), rows


def _turning(
    system: System, rows: ContactRows, closed: Array, t: Array, q: Array, u: Array, h: Array
) -> tuple[Array, Array]:
    """Contacts that approach or leave a curved surface no faster than it turns away within the step, and h kappa.

    kappa is the derivative of the relative velocities with constant u. (17) takes directions at q_M for velocities at
    q_B and q_E: relative velocities are wrong by h kappa / 2, the tangent from q_B to q_M opens the gap by
    h^2 g'' / 8, and a contact along a curved surface would open and bounce again and again. Friction of contacts that
    were closed before, and of elements, counts the turn too: what sticks to a belt that accelerates has its velocity at
    the end of the step, not in its middle. So do constraints whose forces cause friction: all of the force that turns
    the motion must be seen.
    """
    n, laws = rows.laws.contacts, rows.laws
    turn = jnp.where(turning(system, t, q, u, laws), h * turning_rates(system, t, q, u), 0.0)
    along = (turn[:n] != 0) & (jnp.abs(rows.gamma[:n]) <= _ALONG * jnp.abs(turn[:n]))
    elements, bilateral = jnp.ones(laws.elements, bool), jnp.full(laws.bilateral, system.has_joint_friction)
    counted = laws.by_row(along, along | closed, elements, bilateral)
    return along, jnp.where(counted, turn, 0.0)


def _possible(problem: ContactProblem, turn: Array) -> Array:
    """The turn that impulses can bring about: laws that depend on each other may contradict each other a little."""
    if not problem.G.has_matrix:
        return turn
    return rarely(jnp.any(turn != 0), _reachable, turn, problem)


def _reachable(turn: Array, problem: ContactProblem) -> Array:
    return within_range(problem.G.dense(), turn, problem.taking_part)
