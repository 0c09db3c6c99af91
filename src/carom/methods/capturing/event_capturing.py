r"""Event capturing of any order [Acary2012 sec. 5, Algorithm 1 corrected].

Between events a Runge-Kutta method of order p integrates the motion on the active set (64). An event is located
roughly, to C h^{p+1}; a critical step of that length with Moreau's scheme (16) passes it, with the located contacts
active. Its error, O(C h^{p+1}), is that of one smooth step: order p through impacts and accumulations (Theorem 1).

One call of `step` is one smooth piece or one critical step; the phase is in the memory: `located` names the contacts of
the critical step to come.

What the printed algorithm lacks: a contact that bounces is open although g <= 0; the located contact is active whatever
the forecast; a bounce that lasts no longer than two critical steps, or whose apex is under the surface, ends in
persistent contact; persistent contact ends by its multiplier.

Coulomb friction is not in the paper. Friction that sticks is held like a closed contact, friction that slides follows
its normal force; both end at located events, after which the modes of all laws at rest are chosen together (`settle`).
"""

from __future__ import annotations

import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from carom.interpolation import hermite
from carom.methods.base import SMOOTH, AbstractMethod, Gives
from carom.methods.capturing.active_set import Coefficients, Motion, Piece, Point, onto_active, smooth_piece, survey
from carom.methods.capturing.location import LOOKS, Aim, Trial, locate, status_of
from carom.methods.capturing.margins import Margins, at_rest, forces_left, headings, margins, resolved
from carom.methods.capturing.modes import Modes, by_row, lengths
from carom.methods.capturing.transitions import after_piece, closing, falling, jolted
from carom.methods.moreau.moreau_theta import theta_step
from carom.names import register
from carom.solvers.contact_problem import contact_problem
from carom.solvers.contact_solver import AbstractContactSolver
from carom.solvers.directions import DenseDirections
from carom.solvers.redundant import redundancy
from carom.solvers.semismooth import SemismoothNewton
from carom.solvers.small import rarely
from carom.state import Info, State, Status, Step
from carom.systems.arguments import UserFunction, numbers
from carom.systems.contact_rows import UNKNOWN_MODE, Event, events, laws_of, unknown_modes
from carom.systems.system import System
from carom.tableaux import Tableau

_TOUCHING = 1e-10  # gaps and velocities this small (relative) are zero at the start
_SLACK = 1e-9  # gaps that open with an acceleration this small (relative) stay closed, redundant ones among them
_LONGEST = 0.125  # of the step: a critical step is not longer
_ROUNDING = 64 * float(np.finfo(float).eps)


class CaptureMemory(eqx.Module):
    """What the next step must know.

    `modes` are those of the laws; if `unsettled`, the next step has to choose among the closed contacts and the
    sticking friction. `located` are the contacts of the critical step to come, `last` the modes of the last row as
    numbers, `h` the step of the grid if the last was `short`, `events` the number of pieces cut by events in a row.
    """

    modes: Modes
    located: Array
    last: Array
    unsettled: Array = eqx.field(converter=jnp.asarray)
    h: Array = eqx.field(converter=jnp.asarray)
    short: Array = eqx.field(converter=jnp.asarray)
    events: Array = eqx.field(converter=jnp.asarray)


class Phase(eqx.Module):
    """Where a step stands: modes, located contacts, last modes, grid step, critical length and its floor, events."""

    modes: Modes
    located: Array
    last: Array
    nominal: Array
    window: Array
    floor: Array
    events: Array


@register
class EventCapturing(AbstractMethod):
    """Order p through impacts, accumulations of impacts, contacts that open, and friction that sticks and slips.

    Reports per law: `impulse`, `work`, `mode` (0 closed or sticking, 1 open or slipping, -1 slipping backward), `event`
    (bounces, closes, opens, sticks, slips, reverses), and `multiplier` of bilateral constraints.

    Args:
        tableau: the Runge-Kutta method of the smooth pieces: `carom.radau_iia(s)`, `carom.lobatto_iiia(s)`,
            `carom.gauss(s)`, or half-explicit with `carom.explicit(p)`.
        C: events are located to C h^{p+1}, or to rounding.
        theta: of Moreau's scheme in the critical step.
        projection: against drift, after every piece move q and v so that closed contacts keep the gap with which they
            closed (a start in penetration its own), and bilateral constraints hold.
        form: what closed contacts hold, their "acceleration" (index 1) or, for comparison, their "velocity" (index 2).
        solver: of the contact problems.
        most_events: so many events in a row, without a whole step between them, are too many.
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
    solver: AbstractContactSolver
    most_events: Array
    tolerance: Array | None

    handles = SMOOTH | {"contacts", "friction", "constraints"}
    gives = frozenset({Gives.MODES, Gives.LOCAL_ERROR})  # a step ends at an event

    def __init__(
        self,
        tableau: Tableau,
        C: ArrayLike = 1.0,
        theta: ArrayLike = 0.5,
        projection: bool = False,
        form: str = "acceleration",
        solver: AbstractContactSolver = SemismoothNewton(),  # noqa: B008
        most_events: int = 1000,
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
        self.most_events = numbers(most_events, "EventCapturing: most_events", positive=True)
        scalars = {"C": self.C, "theta": self.theta, "most_events": self.most_events}
        several = [name for name, value in scalars.items() if value.ndim]
        if several:
            msg = f"EventCapturing: {several[0]} must be one number, got {scalars[several[0]].tolist()}"
            raise ValueError(msg)
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
        """The motion with the modes of a row."""
        assert mode is not None

        def rates(t: Array, q: Array, v: Array) -> tuple[Array, Array]:
            at = survey(system, t, q, v)
            return system.rate(t, q, v), at.under(Modes.of_numbers(at.laws, mode)).acceleration

        return rates

    def with_tolerances(self, rtol: Array, atol: Array) -> EventCapturing:
        """Events located to these tolerances."""
        given = jnp.stack([rtol, jnp.min(atol)])
        return eqx.tree_at(lambda m: m.tolerance, self, given, is_leaf=lambda x: x is None)

    def objection(self, system: System) -> str | None:
        """Regularised variables have no relative velocities."""
        return "EventCapturing: pass the system itself, not a regularised one" if system.shift is not None else None

    def caution(self, system: System, state: State, longest: float | None, span: float) -> None:
        """Slip that begins in a plane turns at an unlimited rate."""
        del longest, span
        if not (self.tableau.explicit and "friction" in system.features):
            return
        if 2 in laws_of(system, state).directions:
            msg = "EventCapturing: friction in a plane needs an implicit tableau such as carom.radau_iia(3)"
            raise ValueError(msg)

    def init(self, system: System, state: State) -> CaptureMemory:
        """Contacts that touch and are at rest, and friction that does not slip, are candidates for the first modes."""
        at = survey(system, state.t, state.q, state.v)
        n = at.laws.contacts
        speed = jnp.max(jnp.abs(at.W), initial=0.0) * jnp.max(jnp.abs(state.v)) + _TOUCHING
        size = jnp.max(jnp.abs(state.q)) + _TOUCHING
        touching = (at.gap <= _TOUCHING * size) & (jnp.abs(at.gamma[:n]) <= _TOUCHING * speed)
        modes = Modes(touching, at_rest(at, _TOUCHING), headings(at, at.gamma), at.laws)
        zero = jnp.zeros((), jnp.int32)
        return CaptureMemory(modes, jnp.zeros(n, bool), unknown_modes(at.laws), True, jnp.zeros(()), False, zero)

    def modes(self, memory: CaptureMemory) -> Array:
        """Those of the last row."""
        return memory.last

    def step(self, system: System, state: State, memory: CaptureMemory, h: Array) -> Step:
        """One smooth piece, or one critical step."""
        nominal = jnp.where(memory.short, memory.h, h)
        floor = _ROUNDING * jnp.maximum(jnp.abs(state.t), nominal)
        longest = jnp.maximum(_LONGEST * nominal, floor)
        at, modes, chosen = survey(system, state.t, state.q, state.v), memory.modes, jnp.int32(Status.OK)
        if at.laws.count:
            modes, chosen = rarely(memory.unsettled, lambda x: self.settle(at, x[0]), (modes, chosen))
        start = at.under(modes)
        window = jnp.clip(self.critical_length(system, state, start, nominal), floor, longest)
        falls = falling(at, modes, (1 - self.theta) * window, nominal)  # no room for a piece before
        now = Phase(modes, memory.located | falls, memory.last, nominal, window, floor, memory.events)
        if not at.laws.count:
            return self.smooth_step(system, state, now, start, h)
        step = jax.lax.cond(
            jnp.any(now.located) | jolted(at, modes),
            lambda: self.critical_step(system, state, now, start, h),
            lambda: self.smooth_step(system, state, now, start, h),
        )
        held = Modes(modes.closed | now.located, modes.stuck, modes.heading, at.laws).held
        many = step.memory.events > self.most_events
        status = jnp.where(chosen != Status.OK, chosen, jnp.where(many, Status.TOO_MANY_EVENTS, step.info.status))
        extra = {"redundant": redundancy(at.G, held)}
        return eqx.tree_at(lambda s: (s.info.status, s.info.extra), step, (status, extra))

    def critical_length(self, system: System, state: State, start: Motion, h: Array) -> Array:
        """C h^{p+1}, or the time in which neither coordinates nor velocities change by more than the tolerance.

        What is held may be let go: its free acceleration counts, and where even that is zero yet, a part rtol of h.
        """
        if self.tolerance is None:
            return self.C * h**self.tableau.power
        rtol, atol = self.tolerance
        rates = ((state.q, system.rate(state.t, state.q, state.v)), (state.v, start.acceleration))
        pairs = (*rates, (state.v, start.point.free))
        times = [(atol + rtol * jnp.max(jnp.abs(y))) / (jnp.max(jnp.abs(f)) + 1e-290) for y, f in pairs]
        return jnp.min(jnp.stack([*times, rtol * h]))

    def smooth_step(self, system: System, state: State, now: Phase, start: Motion, h: Array) -> Step:
        """The smooth piece up to the first event, or over the whole of h."""
        modes, window, laws = now.modes, now.window, now.modes.laws
        n, longest = laws.contacts, h
        if 2 in laws.directions:
            longest = jnp.minimum(h, jnp.maximum(resolved(start, modes, now.nominal), window))

        def attempt(tau: Array) -> Trial:
            piece = smooth_piece(system, self.tableau, state, start, modes, tau, self.form)
            at = survey(system, state.t + tau, piece.q, piece.v).under(modes)
            return Trial(tau, piece, at, margins(at, modes, now.nominal))

        def course(trial: Trial) -> Course:
            return Course(system, state, start, trial, modes)

        aim = Aim(window, (1 - self.theta) * window, now.floor)  # so that (16b) puts the bounce at its place
        at_start = margins(start, modes, now.nominal)

        def suspicious(trial: Trial) -> Array:
            turns = turning(at_start, trial.margins)
            return turns if self.tolerance is None else turns | course(trial).suspicious()

        looks = (suspicious, lambda trial: course(trial).margins(now.nominal))
        nothing = Piece.of_no_length(state, laws.rows, self.tableau.b.size)
        search = locate(attempt, *looks, nothing, start, at_start, longest, aim, jnp.any(now.located))
        trial, tau = search.trial, search.trial.tau
        at, q, v = trial.at.point, trial.piece.q, trial.piece.v
        located = jnp.any(search.suspects) & falling(at, modes, window, now.nominal)
        new, changed = after_piece(trial, modes, ~jnp.any(located), window)
        if laws.count > n:
            v = at.held_still(v, modes.held | new.held)
        if self.projection:
            q, v = onto_active(system, state.t + tau, q, v, new.held, start.point.gaps_kept(modes.closed))
        counted = now.events + (changed | jnp.any(located))
        whole = tau >= h
        memory = CaptureMemory(
            new, located, modes.numbers, changed, now.nominal, ~whole, jnp.where(whole, 0, counted).astype(jnp.int32)
        )
        free = laws.rows - laws.bilateral
        ends = (system.rate(state.t + tau, trial.piece.q, trial.piece.v), trial.at.acceleration)
        local_error = tuple(e + tau * self.tableau.error[-1] * f for e, f in zip(trial.piece.error, ends))
        info = Info(
            status=status_of(search, window),
            residual=trial.piece.residual,
            iterations=search.iterations,
            evaluations=search.evaluations + 1,
            local_error=local_error,  # pyright: ignore
            impulse=trial.piece.impulse[:free],
            mode=modes.numbers,
            event=events(laws, now.last, modes.numbers),
            work=laws.by_law(trial.piece.work),
            multiplier=-trial.at.lam[free:] if laws.bilateral else None,
        )
        return Step(state.moved(state.t + tau, q, v), memory, info)

    def critical_step(self, system: System, state: State, now: Phase, start: Motion, h: Array) -> Step:
        """Moreau's scheme over the located events, then the choice which laws stay held."""
        modes, window = now.modes, jnp.minimum(now.window, h)
        laws, n = modes.laws, modes.laws.contacts
        taking_part = modes.closed | now.located
        state = state.moved(state.t, state.q, start.point.held_still(state.v, modes.held))
        impact = theta_step(system, state, window, self.theta, taking_part, jnp.zeros(laws.rows), self.solver)
        t, P = state.t + window, impact.result.P
        at = survey(system, t, impact.q, impact.v)
        new = closing(at, modes, taking_part, modes.closed & (P[:n] > 0), impact.v, window)
        q, v = impact.q, at.held_still(impact.v, new.held)
        if self.projection:
            q, v = onto_active(system, t, q, v, new.held, start.point.gaps_kept(modes.closed))
        seen = Modes(modes.closed & new.closed, new.stuck, new.heading, laws)
        open_question = jnp.concatenate([jnp.zeros(n, bool), new.stuck & seen.carried]) & (now.last != UNKNOWN_MODE)
        number = jnp.where(open_question, now.last, seen.numbers)  # the next step says whether it sticks
        info = impact.report(now.last, number, window)
        bounced = jnp.concatenate([now.located & ~new.closed & (P[:n] > 0), jnp.zeros(laws.count - n, bool)])
        event = jnp.where(bounced, Event.BOUNCES, events(laws, now.last, number)).astype(jnp.int32)
        none = (jnp.zeros_like(q), jnp.zeros_like(v))
        info = eqx.tree_at(lambda i: (i.event, i.local_error), info, (event, none), is_leaf=lambda x: x is None)
        memory = CaptureMemory(
            new, jnp.zeros(n, bool), number, True, now.nominal, window < h, (now.events + 1).astype(jnp.int32)
        )
        return Step(state.moved(t, q, v), memory, info)

    def settle(self, at: Point, modes: Modes) -> tuple[Modes, Array]:
        """Which laws at rest stay so: the complementarity (63) of accelerations and multipliers, with friction.

        Friction that slides already is no unknown: its force follows the normal one.
        """
        laws, n, k = at.laws, at.laws.contacts, at.laws.frictions
        E, e = at.sliding(modes)
        candidates = modes.stuck & at.rough
        friction = jnp.where(laws.on_contacts(candidates[:k]), at.friction, 0.0)
        limits = jnp.where(candidates[k:, None], at.limits, 0.0)
        c = at.W @ (at.free + at.M_inv_W @ e) + at.kappa
        sets = {"active": modes.closed, "friction": friction, "limits": limits}
        W, W_M = DenseDirections(at.W), DenseDirections((at.M_inv_W @ E).T)
        problem = contact_problem(W, W_M, laws, c=c, **sets)
        result = self.solver(problem, jnp.zeros(laws.rows))
        gained = problem.velocity(result.P)
        slack = _SLACK * jnp.max(jnp.abs(c))
        closed = modes.closed & (gained[:n] <= slack)
        begins = candidates & ~(lengths(laws, gained) <= slack)
        heading = jnp.where(by_row(laws, begins), headings(at, gained), modes.heading)
        return Modes(closed, candidates & ~begins, heading, laws), result.status

    def explain(self, system: System, state: State, memory: CaptureMemory, status: Status) -> str:
        """Which law is about to have an event, or cannot be satisfied."""
        at = survey(system, state.t, state.q, state.v)
        if status is Status.TOO_MANY_EVENTS:
            return f"There were more than most_events = {int(self.most_events)} without a whole step between them."
        if status in (Status.NO_CONSISTENT_MODE, Status.SEVERAL_CONSISTENT_MODES):
            i, push = most_doubtful(at, memory.modes.closed | memory.located)
            pushed = f"is pushed open by {push:.3g} per unit of normal force."
            return f"Contact {at.laws.called(i)} with friction {at.friction[i]:g} {pushed}"
        n = at.laws.contacts
        if status is not Status.EVENT_NOT_LOCATED or not n:
            return ""
        gap, rate = np.asarray(at.gap), np.asarray(at.gamma)[:n]
        falls = ~np.asarray(memory.modes.closed) & (rate < 0)
        i = int(np.argmin(np.where(falls, gap / np.where(falls, -rate, 1.0), np.inf)))
        found = f"has the gap {gap[i]:.6g} and the rate {rate[i]:.6g} there; is its gap continuous?"
        return f"Contact {at.laws.called(i)} {found}"

    def review(self, solution: Any) -> None:
        """Warn of constraints that depended on each other."""
        redundant = solution.columns.get("extra.redundant", np.zeros(1)) > 0
        if redundant.any():
            when = float(solution.t[np.argmax(redundant)])
            msg = f"active constraints were redundant at t = {when:.6g}: their multipliers are those of least squares"
            warnings.warn(msg, stacklevel=4)


def turning(before: Margins, now: Margins) -> Array:
    """Whether a gap or slip that falls at first rises in the end."""
    return jnp.any(before.timed & now.timed & (before.value > 0) & (before.rate < 0) & (now.rate > 0))


class Course(eqx.Module):
    """A trial from its start to its end, for looks at what lies between."""

    system: System
    state: State
    start: Motion
    trial: Trial
    modes: Modes

    @property
    def times(self) -> Array:
        """The instants of the `LOOKS`."""
        return self.state.t + jnp.asarray(LOOKS) * self.trial.tau

    def between(self, y0: Array, y1: Array, d0: Array, d1: Array) -> Array:
        """Cubics at the `LOOKS`."""
        t = self.state.t
        return hermite(t, t + self.trial.tau, y0, y1, d0, d1, self.times[:, None])

    @property
    def q(self) -> Array:
        """Coordinates at the `LOOKS`."""
        state, piece, rate = self.state, self.trial.piece, self.system.rate
        d0, d1 = rate(state.t, state.q, state.v), rate(state.t + self.trial.tau, piece.q, piece.v)
        return self.between(state.q, piece.q, d0, d1)

    def margins(self, span: Array) -> Array:
        """Margins at the `LOOKS`."""
        accelerations = (self.start.acceleration, self.trial.at.acceleration)
        v = self.between(self.state.v, self.trial.piece.v, *accelerations)
        at = jax.vmap(lambda *place: survey(self.system, *place).under(self.modes))(self.times, self.q, v)
        return jax.vmap(lambda now: margins(now, self.modes, span).value)(at)

    def suspicious(self) -> Array:
        """Whether a force (by the stages) or a gap (by looks at it) may be negative in between."""
        laws, system, trial = self.modes.laws, self.system, self.trial
        if not laws.count:
            return jnp.asarray(False)
        if any(isinstance(group.limit, UserFunction) for group in system.friction_groups):
            return jnp.asarray(True)
        with_stage = lambda lam: eqx.tree_at(lambda m: m.lam, self.start, lam)  # noqa: E731
        stages = jax.vmap(lambda lam: forces_left(with_stage(lam), self.modes))(trial.piece.lam)
        ends = (forces_left(motion, self.modes)[None] for motion in (self.start, trial.at))
        forces = jnp.concatenate([stages, *ends])
        low = jnp.min(forces, axis=0)
        found = jnp.any(low < jnp.max(forces, axis=0) - low)
        if laws.contacts:
            gaps = jax.vmap(system.gaps)(self.times, self.q)
            gaps = jnp.concatenate([self.start.point.gap[None], gaps, trial.at.point.gap[None]])
            bend = gaps[2:] - 2 * gaps[1:-1] + gaps[:-2]
            found = found | jnp.any(~self.modes.closed & (jnp.min(gaps, axis=0) < 2 * jnp.max(jnp.abs(bend), axis=0)))
        return found


def most_doubtful(at: Point, taking_part: Array) -> tuple[int, float]:
    """The contact whose normal force pushes it open least while friction drags against it, and by how much."""
    G, push = np.asarray(at.G), np.diag(np.asarray(at.G))[: at.laws.contacts].copy()
    for block in at.laws.tangential:
        owners = np.arange(push.size)[block.laws]
        cross = G[owners[:, None], np.arange(len(G))[block.rows].reshape(len(owners), -1)]
        push[owners] -= np.asarray(at.friction)[owners] * np.linalg.norm(cross, axis=1)
    i = int(np.argmin(np.where(np.asarray(taking_part), push, np.inf)))
    return i, float(push[i])
