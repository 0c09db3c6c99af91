r"""Moreau's time stepping with a theta method [Acary2012 sec. 2].

    M_{k+theta} (v_{k+1} - v_k) - h F(t_{k+theta}, q_{k+theta}, v_{k+theta}) = G_{k+theta} P       (16a)
    q_{k+1} = q_k + h v_{k+theta}                                                                (16b)
    0 <= U_{k+1} + rho U_k  _|_  P >= 0   where g(t_k, q_k) + h forecast U_k <= 0, else P = 0        (16d-e), (18)

F has the sign of `M dv = F dt + G dI` throughout (the paper flips it after (4)). Both local velocities of the impact
law use the directions at q_{k+theta}; the forecast uses those at q_k.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.methods.base import SMOOTH, AbstractMethod, Derivative, Gives
from carom.methods.moreau.contact_step import TOUCHING, Joined, report
from carom.names import register
from carom.solvers.contact_laws import Laws
from carom.solvers.contact_problem import ContactProblem, contact_problem
from carom.solvers.contact_solver import AbstractContactSolver, ContactResult, direction_once
from carom.solvers.directions import AbstractDirections, DenseDirections
from carom.solvers.newton import Settled, iterated
from carom.solvers.roots import rooted
from carom.solvers.self_stress import may_be_stressed, without_self_stress
from carom.solvers.semismooth import SemismoothNewton
from carom.solvers.small import is_small, solve_rolled, solve_small
from carom.state import Info, State, Status, Step
from carom.systems.constrained import multiplier_count
from carom.systems.contact_rows import ContactRows, contact_rows, laws_of, unknown_modes
from carom.systems.features import NONSMOOTH, Feature
from carom.systems.system import System

_ITERATIONS = 30
_FOLLOWED = 10  # of these with directions that follow
_TOL = 1e-14
_ROUNDING = 1e-9  # updates this small (relative) that no longer shrink are rounding
_PROJECTIONS = 4


class ThetaMemory(eqx.Module):
    """Impulses and modes of the last step."""

    P: Array
    mode: Array


class Impact(eqx.Module):
    """The solution of (16): the new velocity, the laws at q_{k+theta}, and how the solver fared."""

    q: Array
    v: Array
    rows: ContactRows
    problem: ContactProblem
    result: ContactResult
    W_M: AbstractDirections
    iterations: Array
    update: Array

    def report(self, before: Array, mode: Array, h: Array) -> Info:
        """Impulses, work, modes and events of the step."""
        info = report(self.rows, self.problem, self.result, before, mode, h)
        status = jnp.where(self.update <= _ROUNDING, info.status, Status.NEWTON_DIVERGED)
        status = jnp.where(jnp.all(jnp.isfinite(self.v)), status, Status.NOT_FINITE)
        status = jnp.where(info.status == Status.NEEDS_RESCUE, info.status, status)
        return eqx.tree_at(lambda i: (i.status, i.iterations), info, (status, self.iterations))


@register
class MoreauTheta(AbstractMethod):
    """Moreau's scheme (16), implicit at q_{k+theta}: order 1 in the graph distance, through any number of impacts.

    Reports per law: `impulse`, `work`, `mode`, `event`, and `multiplier` of bilateral constraints.

    Args:
        theta: weight of the new state in forces, directions and positions, in [0, 1].
        forecast: gamma of (16e) in [0, 1]: how far the gaps are forecast; with 0 every impact is seen a step late.
        projection: add the multiplier tau of (19), which moves q_{k+1} out of penetration along M^{-1} G (the paper
            moves along G, which mixes units).
        solver: of the contact problem.

    Example:
        >>> sol = carom.simulate(*carom.models.bouncing_ball(), carom.MoreauTheta(0.5, 1.0), t1=5.0, h=1e-3)
    """

    theta: float = 0.5
    forecast: float = 1.0
    projection: bool = eqx.field(default=False, static=True)
    solver: AbstractContactSolver = SemismoothNewton()

    handles = SMOOTH | NONSMOOTH | {Feature.CONSTRAINTS, Feature.NONHOLONOMIC}
    gives = frozenset({Gives.WHOLE_STEPS, Gives.MODES})
    derivative = Derivative.WITHOUT_SALTATION

    def __check_init__(self):
        for name, value in (("theta", self.theta), ("forecast", self.forecast)):
            if not (isinstance(value, (int, float, np.generic)) or hasattr(value, "dtype")):
                msg = f"MoreauTheta: {name} must be a number in [0, 1], got {value!r}"
                raise TypeError(msg)
            if isinstance(value, (int, float)) and not 0 <= value <= 1:
                msg = f"MoreauTheta: {name} must lie in [0, 1], got {value}"
                raise ValueError(msg)

    @property
    def order(self) -> int:
        """1 in the presence of impacts, and on smooth problems unless theta = 1/2."""
        return 1

    def objection(self, system: System) -> str | None:
        """Regularised variables have no relative velocities; constraints in the middle turn the motion by half only."""
        if system.has_joint_friction:
            return "MoreauTheta: friction whose limit reads lam needs MoreauMidpoint or EventCapturing"
        return "MoreauTheta: pass the system itself, not a regularised one" if system.shift is not None else None

    def init(self, system: System, state: State) -> ThetaMemory:
        """No impulses, unknown modes."""
        laws = laws_of(system, state)
        return ThetaMemory(jnp.zeros(laws.rows), unknown_modes(laws))

    def lean(self) -> MoreauTheta:
        """Without the rescue of its solver; a projection does not tell how its own problems were solved."""
        return self if self.projection else dataclasses.replace(self, solver=self.solver.lean())

    def modes(self, memory: ThetaMemory) -> Array:
        """Those of the last step."""
        return memory.mode

    def step(self, system: System, state: State, memory: ThetaMemory, h: Array) -> Step:
        """One step."""
        t, q, v = state.t, state.q, state.v
        active = jnp.zeros(0, bool)
        if system.contacts is not None:
            rate = system.rate(t, q, v)
            U = system.gap_rates(t, q, rate)
            falls = system.rate(t, q, v + h * system.mass_solve(t, q, system.force(t, q, v)))
            touching = TOUCHING * h * jnp.abs(system.gap_rates(t, q, falls) - U)
            ahead = system.gaps(t, q) + h * self.forecast * U  # (16e), (18)
            active = ahead <= touching
            state = state.moved(t, q, v + 0.0 * jnp.sum(ahead))  # NaN is no open contact
        impact = theta_step(system, state, h, self.theta, active, memory.P, self.solver)
        q1, v1 = impact.q, impact.v + impact.rows.blank
        mode = impact.problem.modes(impact.result.P)
        info = impact.report(memory.mode, mode, h)
        if impact.rows.laws.bilateral:
            q1, v1, info = Joined.of(system, state, impact.rows, impact.W_M).onto(system, t + h, q1, v1, info, h)
        if self.projection and impact.rows.laws.contacts:
            q1 = out_of_penetration(system, t + h, q1, impact, self.solver)  # (19b), (19e)
        return Step(state.moved(t + h, q1, v1), ThetaMemory(impact.result.P, mode), info)


def theta_step(
    system: System, state: State, h: Array, theta: Array | float, active: Array, P: Array, solver: AbstractContactSolver
) -> Impact:
    """Solve (16a-d) for given active contacts by Newton's method on the forces, the contact problem exact in each.

    Directions follow the iterates, for the first of them only: where corners of one body stick, the motion may jump
    with the directions, and the iterates would never settle.
    """
    return rooted(_impact, _attached, (ThetaEquations(system, state, h, jnp.asarray(theta), active), P, solver))


class ThetaEquations(eqx.Module):
    """Equations (16) of one step from `state` with given active contacts; unknown are v_{k+1} and P."""

    system: System
    state: State
    h: Array
    theta: Array
    active: Array

    def middle(self, v1: Array) -> tuple[Array, Array]:
        """q_{k+theta} and v_{k+theta}."""
        state, theta = self.state, self.theta
        v_theta = (1 - theta) * state.v + theta * v1
        return state.q + theta * self.h * self.system.rate(state.t, state.q, v_theta), v_theta

    def defect(self, v1: Array) -> Array:
        """(16a) without impulses."""
        t, (q, v) = self.state.t + self.theta * self.h, self.middle(v1)
        return self.system.mass_times(t, q, v1 - self.state.v) - self.h * self.system.force(t, q, v)

    def linearised(
        self, v1: Array, P: Array, q_theta: Array, solve: Callable[[ContactProblem], ContactResult]
    ) -> Impact:
        """The motion with forces linearised at v1, limits of the impulses P, and directions at q_theta."""
        system, state, h = self.system, self.state, self.h
        rows = contact_rows(system, state.t + self.theta * h, q_theta, v1, self.multipliers(P))
        gamma_k = rows.gamma + rows.W.velocity(state.v - v1)  # relative velocities are affine in v
        columns = solve_small(jax.jacfwd(self.defect)(v1), jnp.vstack([self.defect(v1), rows.W.dense()]).T)
        free, W_M = v1 - columns[:, 0], DenseDirections(columns[:, 1:].T)
        problem = contact_problem(
            rows.W,
            W_M,
            rows.laws,
            c=rows.gamma + rows.W.velocity(free - v1) + rows.restitution * gamma_k,  # (16c), (18)
            active=self.active,
            friction=rows.friction,
            limits=h * rows.limits,
        )
        result = solve(problem) if rows.laws.rows else ContactResult.without_laws()
        new = free + W_M.force(result.P)
        # at rest the impulses only stop the free motion
        scale = sum(jnp.max(jnp.abs(x)) for x in (new, state.v, free - state.v))
        size = jnp.max(jnp.abs(new - v1)) / (scale + 1e-290)
        rows = eqx.tree_at(lambda r: r.gamma, rows, gamma_k)
        return Impact(self.end(new), new, rows, problem, result, W_M, jnp.zeros((), jnp.int32), size)

    def end(self, v1: Array) -> Array:
        """q_{k+1} (16b)."""
        t, q, v = self.state.t, self.state.q, self.state.v
        return q + self.h * self.system.rate(t, q, (1 - self.theta) * v + self.theta * v1)

    def multipliers(self, P: Array) -> Array:
        """Those of the constraints."""
        m = multiplier_count(self.system, self.state.t, self.state.q, self.state.v)
        return -P[P.size - m :] / self.h

    def residual(self, v1: Array, P: Array, problem: ContactProblem) -> tuple[Array, Array]:
        """What is left of (16a), and of the laws as projections with the steps of `problem`."""
        place = (self.state.t + self.theta * self.h, self.middle(v1)[0], v1)
        rows = contact_rows(self.system, *place, self.multipliers(P))
        after = rows.gamma + rows.restitution * (rows.gamma + rows.W.velocity(self.state.v - v1))
        sets = (rows.friction, self.h * rows.limits)
        problem = eqx.tree_at(lambda p: (p.friction, p.limits), problem, sets)
        laws = P - problem.project(P - after / problem.diagonal, P)
        return self.defect(v1) - rows.W.force(P), laws


Given = tuple[ThetaEquations, Array, AbstractContactSolver]


def _impact(given: Given) -> Impact:
    equations, P, solver = given

    def improve(pair: tuple[Impact, Array], k: Array) -> tuple[tuple[Impact, Array], Array]:
        old, q_theta = pair
        q_theta = jnp.where(k < _FOLLOWED, equations.middle(old.v)[0], q_theta)

        def solve(problem: ContactProblem) -> ContactResult:
            P = old.result.P
            if solver.is_lean:  # taking self-stress away is a sixth of the program of event capturing
                stressed = jnp.where(may_be_stressed(problem, P), Status.NEEDS_RESCUE, Status.OK)
                return solver(problem, P).after(stressed)
            return solver(problem, without_self_stress(problem, P))

        impact = equations.linearised(old.v, old.result.P, q_theta, solve)
        impact = eqx.tree_at(lambda i: i.result, impact, impact.result.after(old.result.status))
        return (impact, q_theta), impact.update

    q, v = equations.state.q, equations.state.v
    shapes = jax.eval_shape(lambda: equations.linearised(v, P, q, lambda _: _unsolved(P)))
    empty = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    start = eqx.tree_at(lambda i: (i.v, i.result.P), empty, (v, P))
    (impact, _), at = iterated(improve, (start, q), _ITERATIONS, Settled(_TOL, _ROUNDING, 0.5))
    return eqx.tree_at(lambda i: (i.iterations, i.update), impact, (at.k, at.last))


def _attached(found: Impact, given: Given, still: Given) -> Impact:
    """One Newton step for v_{k+1} and P together, directions that follow included, and the motion that it leads to."""
    equations, fixed, v, P = given[0], still[0], found.v, found.result.P
    r, law = equations.residual(v, P, found.problem)
    (A, B), (C, D) = jax.jacfwd(lambda v, P: fixed.residual(v, P, found.problem), (0, 1))(v, P)
    solve = solve_rolled if is_small(A) else jnp.linalg.solve
    gained, back = solve(A, B), solve(A, r[:, None])[:, 0]  # matrices apart from what has a derivative
    if P.size:
        P = P - direction_once(D - C @ gained, law - C @ back)
    v = v - back + gained @ (found.result.P - P)
    impact = equations.linearised(v, P, equations.middle(v)[0], lambda _: eqx.tree_at(lambda r: r.P, found.result, P))
    known = (equations.end(v), v, found.iterations, found.update)  # nothing of the second derivatives in `impact`
    return eqx.tree_at(lambda i: (i.q, i.v, i.iterations, i.update), impact, known)


def _unsolved(P: Array) -> ContactResult:
    """The shapes of what a solver finds, without tracing it."""
    return ContactResult(P, jnp.zeros(()), jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


def out_of_penetration(system: System, t: Array, q: Array, impact: Impact, solver: AbstractContactSolver) -> Array:
    """Positions q + M^{-1} G tau with `0 <= g(t, q) _|_ tau >= 0`, linearised a few times [Acary2012 (19b), (19e)]."""
    n = impact.rows.laws.contacts
    W, W_M = impact.rows.W.taken(slice(n)), impact.W_M.taken(slice(n))
    still = system.rate(t, q, jnp.zeros_like(impact.v))

    def correct(_, x: Array) -> Array:
        sets = {"active": jnp.ones(n, bool), "friction": jnp.zeros(n), "limits": jnp.zeros((0, 2))}
        tau = solver(contact_problem(W, W_M, Laws([(n, 0)]), c=system.gaps(t, x), **sets), jnp.zeros(n)).P
        return x + system.rate(t, x, W_M.force(tau)) - still

    return jax.lax.fori_loop(0, _PROJECTIONS, correct, q)
