r"""Event capturing of any order [Acary2012 sec. 5, Algorithm 1 corrected].

Between events a Runge-Kutta method of order p integrates the motion on the active set (64). An event is located
roughly, to C h^{p+1}; a critical step of that length with Moreau's scheme (16) passes it, with the located contacts
active. Its error, O(C h^{p+1}), is that of one smooth step: order p through impacts and accumulations (Theorem 1).

One call of `step` is one smooth piece or one critical step; the phase is in the memory: `located` names the contacts of
the critical step to come.

What the printed algorithm lacks: a contact that bounces is open although g <= 0; the located contact is active whatever
the forecast; a bounce that lasts no longer than the critical step, or whose apex is under the surface, ends in
persistent contact; persistent contact ends by its multiplier.
"""

from __future__ import annotations

import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from carom.methods.active_set import Coefficients, Motion, motion, onto_active, redundancy, smooth_piece
from carom.methods.base import SMOOTH, AbstractMethod
from carom.methods.contact_rows import Event, contact_rows, events, laws_of, unknown_modes
from carom.methods.location import Aim, Trial, locate, status_of
from carom.methods.moreau_theta import report, theta_step
from carom.solvers.contact_problem import CONSTRAINT, IMPRESSED, Laws, contact_problem
from carom.solvers.semismooth import SemismoothNewton
from carom.state import Info, State, Status, Step
from carom.systems.arguments import numbers
from carom.systems.system import System
from carom.tableaux import Tableau

_TOUCHING = 1e-10  # gaps and velocities this small (relative) are zero at the start
_STILL = 1e-13  # velocities after an impact this small (relative) are zero
_SLACK = 1e-9  # gaps that open with an acceleration this small (relative) stay closed, redundant ones among them
_LONGEST = 0.125  # of the step: a critical step is not longer
_ROUNDING = 64 * float(np.finfo(float).eps)
_BRIEF = 2.0  # bounces that last no longer than so many critical steps end in persistent contact


class CaptureMemory(eqx.Module):
    """What the next step must know.

    `closed` are the active contacts, or, if `unsettled`, those among which the next step has to choose; `located` those
    of the critical step to come; `mode` the modes of the last row; `h` the step of the grid, if the last was `short`.
    """

    closed: Array
    located: Array
    mode: Array
    unsettled: Array = eqx.field(converter=jnp.asarray)
    h: Array = eqx.field(converter=jnp.asarray)
    short: Array = eqx.field(converter=jnp.asarray)


class Phase(eqx.Module):
    """Where a step stands: the active set, located contacts, last modes, grid step, critical length and its floor."""

    active: Array
    located: Array
    mode: Array
    nominal: Array
    window: Array
    floor: Array


class EventCapturing(AbstractMethod):
    """Order p through impacts, accumulations of impacts, and contacts that open; frictionless contacts.

    Reports per contact: `impulse` (trapezoidal over smooth pieces), `work`, `mode` (0 closed, 1 open), `event`
    (bounces, closes, opens), and `multiplier` of bilateral constraints.

    Args:
        tableau: the Runge-Kutta method of the smooth pieces: `carom.radau_iia(s)`, `carom.lobatto_iiia(s)`,
            `carom.gauss(s)`, or half-explicit with `carom.explicit(p)`.
        C: events are located to C h^{p+1}, or to rounding.
        theta: of Moreau's scheme in the critical step.
        projection: move q and v back onto closed contacts and bilateral constraints after every piece, against drift.
        form: what closed contacts hold, their "acceleration" (index 1) or, for comparison, their "velocity" (index 2).
        solver: of the contact problems.
        tolerance: (rtol, atol) to which events are located instead of C h^{p+1}; `carom.Adaptive` gives its own.

    Example:
        >>> method = carom.EventCapturing(carom.radau_iia(2))
        >>> sol = carom.simulate(*carom.models.bouncing_ball(), method, t1=5.0, h=0.05)
    """

    tableau: Coefficients
    C: Array
    theta: Array
    projection: bool = eqx.field(static=True)
    form: str = eqx.field(static=True)
    solver: Any
    tolerance: Array | None

    handles = SMOOTH | {"contacts", "constraints"}
    gives = frozenset({"modes", "local error"})

    def __init__(
        self,
        tableau: Tableau,
        C: ArrayLike = 1.0,
        theta: ArrayLike = 0.5,
        projection: bool = False,
        form: str = "acceleration",
        solver: Any = SemismoothNewton(),  # noqa: B008
        tolerance: ArrayLike | None = None,
    ):
        if not isinstance(tableau, Tableau):
            kind = type(tableau).__name__
            msg = f"EventCapturing: tableau must be a carom.Tableau such as carom.radau_iia(2), got {kind}"
            raise TypeError(msg)
        if not tableau.row_sums_are_c:
            msg = f"EventCapturing: {tableau.name} is unusable alone: the rows of its A need not sum to c"
            raise ValueError(msg)
        if form not in ("acceleration", "velocity"):
            msg = f"EventCapturing: form must be 'acceleration' or 'velocity', got '{form}'"
            raise ValueError(msg)
        if form == "velocity" and (tableau.is_explicit or not tableau.is_invertible):
            msg = f"EventCapturing: {tableau.name} is unusable in the velocity form, which needs an invertible A"
            raise ValueError(msg)
        self.C = numbers(C, "EventCapturing: C", positive=True)
        self.theta = numbers(theta, "EventCapturing: theta", nonnegative=True)
        if float(self.theta) > 1:
            msg = f"EventCapturing: theta must lie in [0, 1], got {theta}"
            raise ValueError(msg)
        self.tolerance = None if tolerance is None else numbers(tolerance, "EventCapturing: tolerance", positive=True)
        self.tableau, self.projection, self.form, self.solver = Coefficients(tableau), projection, form, solver

    @property
    def order(self) -> int:
        """Order of the tableau, through events."""
        return round(float(self.tableau.power)) - 1

    @property
    def error_orders(self) -> tuple[Array, Array]:
        """Of the embedded companion and of the tableau."""
        return self.tableau.error_power, self.tableau.power - 1.0

    def field(self, system: System, mode: Array | None) -> Any:
        """The motion on the active set of a row."""

        def rates(t: Array, q: Array, v: Array) -> tuple[Array, Array]:
            rows = all_rows(system, State(q, v, t), mode == CONSTRAINT)
            return system.rate(t, q, v), motion(system, t, q, v, rows).acceleration

        return rates

    def with_tolerances(self, rtol: Array, atol: Array) -> EventCapturing:
        """Events located to these tolerances."""
        given = jnp.stack([rtol, jnp.min(atol)])
        return eqx.tree_at(lambda m: m.tolerance, self, given, is_leaf=lambda x: x is None)

    def objection(self, system: System) -> str | None:
        """Regularised variables have no relative velocities."""
        return "EventCapturing: pass the system itself, not a regularised one" if system.shift is not None else None

    def init(self, system: System, state: State) -> CaptureMemory:
        """Contacts that touch and are at rest are candidates for the first active set."""
        n = laws_of(system, state).contacts
        at = contact_rows(system, state.t, state.q, state.v)
        speed = jnp.max(jnp.abs(at.W), initial=0.0) * jnp.max(jnp.abs(state.v)) + _TOUCHING
        size = jnp.max(jnp.abs(state.q)) + _TOUCHING
        touching = (at.gap <= _TOUCHING * size) & (jnp.abs(at.gamma[:n]) <= _TOUCHING * speed)
        return CaptureMemory(
            touching, jnp.zeros(n, bool), unknown_modes(laws_of(system, state)), True, jnp.zeros(()), False
        )

    def step(self, system: System, state: State, memory: CaptureMemory, h: Array) -> Step:
        """One smooth piece, or one critical step."""
        nominal = jnp.where(memory.short, memory.h, h)
        floor = _ROUNDING * jnp.maximum(jnp.abs(state.t), nominal)
        longest = jnp.maximum(_LONGEST * nominal, floor)
        active = memory.closed
        if active.size:
            active = jax.lax.cond(memory.unsettled, lambda: self.settle(system, state, active), lambda: active)
        start = motion(system, state.t, state.q, state.v, all_rows(system, state, active))
        window = jnp.clip(self.critical_length(system, state, start, nominal), floor, longest)
        rate = start.gamma[: active.size]
        falls = ~active & (rate < 0) & (start.gap <= -rate * (1 - self.theta) * window)  # no room for a piece before
        now = Phase(active, memory.located | falls, memory.mode, nominal, window, floor)
        if not active.size:
            return self.smooth_step(system, state, now, start, h)
        return jax.lax.cond(
            jnp.any(now.located),
            lambda: self.critical_step(system, state, now, h),
            lambda: self.smooth_step(system, state, now, start, h),
        )

    def critical_length(self, system: System, state: State, start: Motion, h: Array) -> Array:
        """C h^{p+1}, or the time in which neither coordinates nor velocities change by more than the tolerance."""
        if self.tolerance is None:
            return self.C * h**self.tableau.power
        rtol, atol = self.tolerance
        pairs = ((state.q, system.rate(state.t, state.q, state.v)), (state.v, start.acceleration))
        times = [(atol + rtol * jnp.max(jnp.abs(y))) / (jnp.max(jnp.abs(f)) + 1e-290) for y, f in pairs]
        return jnp.minimum(*times)

    def smooth_step(self, system: System, state: State, now: Phase, start: Motion, h: Array) -> Step:
        """The smooth piece up to the first event, or over the whole of h."""
        active, window, n = now.active, now.window, now.active.size
        rows = all_rows(system, state, active)

        def attempt(tau: Array) -> Trial:
            piece = smooth_piece(system, self.tableau, state, start, rows, tau, self.form)
            return Trial(tau, piece, motion(system, state.t + tau, piece.q, piece.v, rows), active)

        aim = Aim(window, (1 - self.theta) * window, now.floor)  # so that (16b) puts the bounce at its place
        search = locate(attempt, start, active, h, aim, jnp.any(now.located))
        trial, at, tau = search.trial, search.trial.at, search.trial.tau
        q, v = trial.piece.q, trial.piece.v
        if self.projection:
            q, v = onto_active(system, state.t + tau, q, v, rows, positions=True)
        falls = ~active & (at.gamma[:n] < 0) & (at.gap <= -at.gamma[:n] * window)
        located = jnp.any(search.suspects) & falls
        released = trial.releases & ~jnp.any(located)
        mode = modes(active)
        ends = (system.rate(state.t + tau, trial.piece.q, trial.piece.v), at.acceleration)
        local_error = tuple(e + tau * self.tableau.error[-1] * f for e, f in zip(trial.piece.error, ends))
        new = CaptureMemory(active & ~released, located, mode, jnp.any(released), now.nominal, tau < h)
        info = Info(
            status=status_of(search, window),
            residual=trial.piece.residual,
            iterations=search.iterations,
            evaluations=search.evaluations + 1,
            local_error=local_error,  # pyright: ignore
            impulse=0.5 * tau * (start.lam + at.lam)[:n],
            mode=mode,
            event=events(laws_of(system, state), now.mode, mode),
            work=jnp.zeros(n),
            multiplier=-at.lam[n:] if at.lam.size > n else None,
            extra={"redundant": redundancy(at.W @ at.M_inv_W, rows)},
        )
        return Step(state.moved(state.t + tau, q, v), new, info)

    def critical_step(self, system: System, state: State, now: Phase, h: Array) -> Step:
        """Moreau's scheme over the located events, then the choice which contacts stay closed."""
        n, window = now.active.size, jnp.minimum(now.window, h)
        taking_part = now.active | now.located
        rows = all_rows(system, state, taking_part)
        held = all_rows(system, state, now.active)
        state = state.moved(state.t, *onto_active(system, state.t, state.q, state.v, held, positions=False))
        impact = theta_step(system, state, window, self.theta, taking_part, jnp.zeros(rows.size), self.solver)
        t = state.t + window
        held = now.active & (impact.result.P[:n] > 0)
        closed = closing(system, state.moved(t, impact.q, impact.v), taking_part, held, window)
        q, v = onto_active(system, t, impact.q, impact.v, all_rows(system, state, closed), positions=self.projection)
        mode = modes(now.active & closed)
        info = report(impact, now.mode, mode, window)
        bounced = now.located & ~closed & (impact.result.P[:n] > 0)
        event = jnp.where(bounced, Event.BOUNCES, events(laws_of(system, state), now.mode, mode)).astype(jnp.int32)
        extra = {"redundant": redundancy(impact.problem.G, rows)}
        none = (jnp.zeros_like(q), jnp.zeros_like(v))
        info = eqx.tree_at(
            lambda i: (i.event, i.extra, i.local_error), info, (event, extra, none), is_leaf=lambda x: x is None
        )
        new = CaptureMemory(closed, jnp.zeros(n, bool), mode, True, now.nominal, window < h)
        return Step(state.moved(t, q, v), new, info)

    def settle(self, system: System, state: State, candidates: Array) -> Array:
        """Which contacts at rest press: the complementarity (63) of accelerations and multipliers."""
        n = candidates.size
        at = motion(system, state.t, state.q, state.v, all_rows(system, state, jnp.zeros(n, bool)))
        laws = Laws(n, 0, 0, 0, laws_of(system, state).bilateral)
        sets = {"friction": jnp.zeros(n), "limits": jnp.zeros((0, 2))}
        problem = contact_problem(at.W, at.M_inv_W, laws, c=at.W @ at.free + at.kappa, active=candidates, **sets)
        opening = problem.velocity(self.solver(problem, jnp.zeros(at.W.shape[0])).P)[:n]
        return candidates & (opening <= _SLACK * jnp.max(jnp.abs(problem.c)))

    def explain(self, system: System, state: State, memory: CaptureMemory, status: Status) -> str:
        """Which contact is about to have an event."""
        if status is not Status.EVENT_NOT_LOCATED:
            return ""
        at = contact_rows(system, state.t, state.q, state.v)
        gap, rate = np.asarray(at.gap), np.asarray(at.gamma)[: at.gap.size]
        falling = ~np.asarray(memory.closed) & (rate < 0)
        i = int(np.argmin(np.where(falling, gap / np.where(falling, -rate, 1.0), np.inf)))
        return f"Contact {i} has the gap {gap[i]:.6g} and the rate {rate[i]:.6g} there; is its gap continuous?"

    def review(self, solution: Any) -> None:
        """Warn of constraints that depended on each other."""
        redundant = solution.columns.get("extra.redundant", np.zeros(1)) > 0
        if redundant.any():
            when = float(solution.t[np.argmax(redundant)])
            msg = f"active constraints were redundant at t = {when:.6g}: their multipliers are those of least squares"
            warnings.warn(msg, stacklevel=4)


def closing(system: System, state: State, candidates: Array, held: Array, window: Array) -> Array:
    """Contacts that stay: held by an impulse, without velocity, or with a flight too short or an apex too low."""
    n = candidates.size
    at = contact_rows(system, state.t, state.q, state.v)
    rate = at.gamma[:n]
    still = _STILL * jnp.max(jnp.abs(state.v)) * jnp.max(jnp.abs(at.W))
    resting = held | (candidates & (rate <= still))
    pressed = motion(system, state.t, state.q, state.v, all_rows(system, state, resting))
    down = jnp.maximum(-pressed.opening[:n], 0.0)
    brief = rate <= 0.5 * _BRIEF * window * down
    below = at.gap * down <= -0.5 * rate * rate
    return resting | (candidates & (down > 0) & (brief | below))


def all_rows(system: System, state: State, active: Array) -> Array:
    """The mask of rows: active contacts, and all bilateral constraints."""
    return jnp.concatenate([active, jnp.ones(laws_of(system, state).bilateral, bool)])


def modes(active: Array) -> Array:
    """Mode of every contact."""
    return jnp.where(active, CONSTRAINT, IMPRESSED).astype(jnp.int32)
