r"""Event capturing of any order [Acary2012 sec. 5, Algorithm 1 corrected].

Between events a Runge-Kutta method of order p integrates the motion on the active set (64). An event is located
roughly, to C h^{p+1}; a critical step of that length with Moreau's scheme (16) passes it, with the located contacts
active. Its error, O(C h^{p+1}), is that of one smooth step: order p through impacts and accumulations (Theorem 1).

One call of `step` is one smooth piece or one critical step; the phase is in the memory: `located` names the contacts of
the critical step to come. Where steps are `spread`, as in batches, one call is one trial of the location, and its
bracket is in the memory too.

What the printed algorithm lacks: a contact that bounces is open although g <= 0; the located contact is active whatever
the forecast; a bounce that lasts no longer than two critical steps, or whose apex is under the surface, ends in
persistent contact; persistent contact ends by its multiplier.

Coulomb friction is not in the paper. Friction that sticks is held like a closed contact, friction that slides follows
its normal force; both end at located events, after which the modes of all laws at rest are chosen together (`settled`).
"""

from __future__ import annotations

import copy
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from carom.arguments import is_traced, numbers
from carom.methods.base import SMOOTH, AbstractMethod, Derivative, Gives
from carom.methods.capturing.active_set import Motion, onto_active, survey
from carom.methods.capturing.coefficients import Coefficients
from carom.methods.capturing.doubts import explained, warn_of_end_stages, warn_of_redundancy
from carom.methods.capturing.hunt import Hunt
from carom.methods.capturing.location import Aim, Found, Search
from carom.methods.capturing.margins import at_rest, headings, margins, resolved
from carom.methods.capturing.memory import CaptureMemory, Phase
from carom.methods.capturing.modes import Modes
from carom.methods.capturing.timing import Impacts, after_impact, before_impact, until_rest
from carom.methods.capturing.transitions import after_piece, closing, falling, fastest, jolted, settled, steady, unmoved
from carom.methods.moreau.moreau_theta import theta_step
from carom.names import register
from carom.solvers.contact_solver import AbstractContactSolver
from carom.solvers.redundant import dependent, redundancy
from carom.solvers.roots import held, moving_as, rarely
from carom.solvers.semismooth import SemismoothNewton
from carom.state import Info, State, Status, Step, choose
from carom.systems.contact_rows import UNKNOWN_MODE, Event, events, slides_in_a_plane, unknown_modes
from carom.systems.features import NONSMOOTH, Feature
from carom.systems.system import System
from carom.tableaux import Tableau

_TOUCHING = 1e-10  # gaps and velocities this small (relative) are zero at the start
_LONGEST = 0.125  # of the step: a critical step is not longer
_ROUNDING = 64 * float(np.finfo(float).eps)
_FORMS, _IMPACTS = ("acceleration", "velocity"), ("simultaneous", "sequential")


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
        impacts: "simultaneous" for all contacts that close at once, as in Moreau's scheme, or "sequential", one after
            another, the fastest first, each as if it were alone.
        most_events: so many events in a row, without a whole step between them, are too many.
        tolerance: (rtol, atol) to which events are located instead of C h^{p+1}; `carom.Adaptive` gives its own.
        spread: look for an event with one trial per attempt of the loop, its bracket in the memory, instead of with all
            in one: the lanes of a batch, which do so by themselves, need not wait for one that looks.

    Example:
        >>> method = carom.EventCapturing(carom.radau_iia(2))
        >>> sol = carom.simulate(*carom.models.bouncing_ball(), method, t1=5.0, h=0.05)
    """

    tableau: Coefficients
    C: Array
    theta: Array
    projection: bool = eqx.field(static=True)
    form: str = eqx.field(static=True)
    impacts: str = eqx.field(static=True)
    solver: AbstractContactSolver
    most_events: Array
    tolerance: Array | None
    spread: bool = eqx.field(static=True)

    handles = SMOOTH | NONSMOOTH | {Feature.CONSTRAINTS, Feature.NONHOLONOMIC}
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
        spread: bool = False,
        impacts: str = "simultaneous",
    ):
        if not isinstance(tableau, Tableau):
            kind = type(tableau).__name__
            msg = f"EventCapturing: tableau must be a carom.Tableau such as carom.radau_iia(2), got {kind}"
            raise TypeError(msg)
        if not tableau.row_sums_are_c:
            msg = f"EventCapturing: {tableau.name} is unusable alone: the rows of its A need not sum to c"
            raise ValueError(msg)
        for name, given, (one, other) in (("form", form, _FORMS), ("impacts", impacts, _IMPACTS)):
            if given not in (one, other):
                msg = f"EventCapturing: {name} must be '{one}' or '{other}', got '{given}'"
                raise ValueError(msg)
        if form == "velocity" and (tableau.is_explicit or not tableau.is_invertible):
            msg = f"EventCapturing: {tableau.name} is unusable in the velocity form, which needs an invertible A"
            raise ValueError(msg)
        self.C = numbers(C, "EventCapturing: C", positive=True)
        self.theta = numbers(theta, "EventCapturing: theta", nonnegative=True)
        self.most_events = numbers(most_events, "EventCapturing: most_events", positive=True)
        for name in ("C", "theta", "most_events"):
            if (shape := getattr(self, name).shape) != ():
                msg = f"EventCapturing: {name} must be one number, got shape {shape}"
                raise ValueError(msg)
        if not is_traced(self.theta) and self.theta > 1:
            msg = f"EventCapturing: theta must lie in [0, 1], got {theta}"
            raise ValueError(msg)
        self.tolerance = None if tolerance is None else numbers(tolerance, "EventCapturing: tolerance", positive=True)
        self.tableau, self.projection, self.form, self.solver = Coefficients(tableau), projection, form, solver
        self.spread, self.impacts = spread, impacts

    @property
    def derivative(self) -> Derivative:  # pyright: ignore
        """That of the motion; of a `spread` step the last trial alone would be differentiated."""
        return Derivative.NONE if self.spread else Derivative.EXACT

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

    def among_lanes(self) -> EventCapturing:
        """Steps are spread."""
        object.__setattr__(method := copy.copy(self), "spread", True)
        return method

    def lean(self) -> EventCapturing:
        """Without the rescue of its solver."""
        return eqx.tree_at(lambda m: m.solver, self, self.solver.lean())

    def objection(self, system: System) -> str | None:
        """Regularised variables have no relative velocities."""
        return "EventCapturing: pass the system itself, not a regularised one" if system.shift is not None else None

    def caution(self, system: System, state: State, longest: float | None, span: float) -> None:
        """Slip that begins in a plane turns at an unlimited rate; forces that jump want stages inside of steps."""
        warn_of_end_stages(system, self.tableau.c)
        rough = self.tableau.explicit and Feature.FRICTION in system.features
        if rough and slides_in_a_plane(system, state):
            msg = "EventCapturing: friction in a plane needs an implicit tableau such as carom.radau_iia(3)"
            raise ValueError(msg)

    def init(self, system: System, state: State) -> CaptureMemory:
        """Contacts that touch and are at rest, and friction that does not slip, are candidates for the first modes."""
        at = survey(system, state.t, state.q, state.v)
        n, size = at.laws.contacts, jnp.max(jnp.abs(state.q)) + _TOUCHING
        speed = jnp.max(jnp.abs(at.W), initial=0.0) * jnp.max(jnp.abs(state.v)) + _TOUCHING
        touching = (at.gap <= _TOUCHING * size) & (jnp.abs(at.gamma[:n]) <= _TOUCHING * speed)
        modes = Modes(touching, at_rest(at, _TOUCHING), headings(at, at.gamma), at.laws)
        zero, none = jnp.zeros(()), jnp.zeros(n, bool)
        search = Search.begin(zero, zero, jnp.zeros(at.laws.count))
        return CaptureMemory(modes, none, unknown_modes(at.laws), True, zero, False, jnp.int32(0), search)

    def modes(self, memory: CaptureMemory) -> Array:
        """Those of the last row."""
        return memory.last

    def step(self, system: System, state: State, memory: CaptureMemory, h: Array) -> Step:
        """One smooth piece, of a `spread` step one trial of it, or one critical step."""
        nominal = jnp.where(memory.short, memory.h, h)
        floor = _ROUNDING * jnp.maximum(jnp.abs(state.t), nominal)
        longest = jnp.maximum(_LONGEST * nominal, floor)
        at, modes, chosen = survey(system, state.t, state.q, state.v), memory.modes, jnp.int32(Status.OK)
        if at.laws.count:
            before = (modes, at) if 2 in at.laws.directions else held((modes, at))  # signs have no derivative
            modes, chosen = rarely(memory.unsettled, settled, (before[0], chosen), before[1], self.solver)
            state, at = steady(system, state, at, modes)
        start = at.under(modes)
        window = jnp.clip(self.critical_length(system, state, start, nominal), floor, longest)
        falls = falling(at, modes, (1 - self.theta) * window, nominal)  # no room for a piece before
        now = Phase(memory, modes, memory.located | falls, nominal, window, floor)
        if not at.laws.count:
            step = self.smooth_step(system, state, now, start, h)
            return eqx.tree_at(lambda s: s.info.extra, step, {"redundant": dependent(at.W)} if len(at.W) > 1 else {})
        step = jax.lax.cond(
            jnp.any(now.located) | jolted(at, modes),
            lambda: self.critical_step(system, state, now, start, h),
            lambda: self.smooth_step(system, state, now, start, h),
        )
        rows = Modes(modes.closed | now.located, modes.stuck, modes.heading, at.laws).held
        many = step.memory.events > self.most_events
        status = jnp.where(chosen != Status.OK, chosen, jnp.where(many, Status.TOO_MANY_EVENTS, step.info.status))
        pending = step.pending & (status == Status.OK) if self.spread else None
        info = eqx.tree_at(lambda i: (i.status, i.extra), step.info, (status, {"redundant": redundancy(at.G, rows)}))
        return Step(step.state, step.memory, info, pending)

    def critical_length(self, system: System, state: State, start: Motion, h: Array) -> Array:
        """C h^{p+1}, or the time in which neither coordinates nor velocities change by more than the tolerance.

        What is held may be let go: its free acceleration counts, and where even that is zero yet, a part rtol of h.
        """
        if self.tolerance is None:
            return self.C * h**self.tableau.power
        rtol, atol = self.tolerance
        rates = ((state.q, system.rate(state.t, state.q, state.v)), (state.v, start.acceleration))
        pairs = (*rates, (state.v, start.point.free))
        times = [(atol + rtol * jnp.max(jnp.abs(y))) / (jnp.max(jnp.abs(f)) + 1e-290) for y, f in held(pairs)]
        return jnp.min(jnp.stack([*times, rtol * h]))

    def smooth_step(self, system: System, state: State, now: Phase, start: Motion, h: Array) -> Step:
        """The smooth piece up to the first event, or over the whole of h; of a `spread` step one trial of it."""
        modes, nominal, window, longest = now.modes, now.nominal, now.window, h
        if 2 in modes.laws.directions:
            longest = jnp.minimum(h, jnp.maximum(resolved(start, modes, nominal), window))
        at_start = margins(start, modes, nominal)
        aim = Aim(window, (1 - self.theta) * window, now.floor)  # so that (16b) puts the bounce at its place
        wary, given = self.tolerance is not None, (system, self.tableau, state, start, at_start, modes)
        hunt = Hunt(*given, nominal, longest, aim, self.form, wary)
        if self.spread:
            found = hunt.look(now.memory.search.resumed(h, longest, at_start.value))
        else:
            found = hunt.found(h, jnp.any(now.located))
        step = self.piece_over(system, state, now, start, found, h)
        if not self.spread:
            return step
        stays = (state, now.memory.searching(modes, found.search), jnp.int32(Status.OK))
        went, memory, status = choose(found.pending, stays, (step.state, step.memory, step.info.status))
        return Step(went, memory, eqx.tree_at(lambda i: i.status, step.info, status), found.pending)

    def ended(self, search: Search) -> Search:
        """The search after a step; one that is not spread leaves it untouched, so that it leaves the compiled loop."""
        return search.closed() if self.spread else search

    def piece_over(self, system: System, state: State, now: Phase, start: Motion, found: Found, h: Array) -> Step:
        """The step that ends where the last trial does."""
        search, trial, tau = found.search, found.trial, found.trial.tau
        modes, laws, n = now.modes, now.modes.laws, now.modes.laws.contacts
        at, q, v = trial.at.point, trial.piece.q, trial.piece.v
        located = jnp.any(search.suspects) & falling(at, modes, now.window, now.nominal)
        new, changed = after_piece(trial, modes, ~jnp.any(located), now.window)
        end = state.moved(state.t + tau, q, v)
        if laws.count > n:
            end = until_rest(system, end, trial.at, modes, new.stuck & ~modes.stuck)
            q, v = end.q, at.held_still(end.v, modes.held | new.held)
        if self.projection:
            q, v = onto_active(system, state.t + tau, q, v, at, new.held, start.point.gaps_kept(modes.closed))
        whole = tau >= h
        eventful = changed | jnp.any(located) | (tau <= 2 * now.window)  # or it only creeps
        count = jnp.where(whole, 0, now.memory.events + eventful).astype(jnp.int32)
        grid = (now.nominal, ~whole, count)
        memory = CaptureMemory(new, located, modes.numbers, changed, *grid, self.ended(now.memory.search))
        free = laws.rows - laws.bilateral
        ends = (system.rate(state.t + tau, trial.piece.q, trial.piece.v), trial.at.acceleration)
        unknown = 0.0 * self.tableau.error_power  # NaN without a companion
        local_error = tuple(e + tau * self.tableau.error[-1] * f + unknown for e, f in zip(trial.piece.error, ends))
        info = Info(
            status=found.status(now.window),
            residual=trial.piece.residual,
            iterations=search.iterations,
            evaluations=search.evaluations + 1,
            local_error=local_error,  # pyright: ignore
            impulse=trial.piece.impulse[:free],
            mode=modes.numbers,
            event=events(laws, now.memory.last, modes.numbers),
            work=laws.by_law(trial.piece.work),
            multiplier=-trial.at.lam[free:] if laws.bilateral else None,
        )
        return Step(state.moved(end.t, q, v), memory, info)

    def critical_step(self, system: System, state: State, now: Phase, start: Motion, h: Array) -> Step:
        """Moreau's scheme over the located events, then the choice which laws stay held."""
        modes, window = now.modes, held(jnp.minimum(now.window, h))  # its end is as late as its start
        laws, n, last = modes.laws, modes.laws.contacts, now.memory.last
        taking_part = modes.closed | now.located
        taking_part = fastest(start.point, taking_part) if self.impacts == "sequential" else taking_part
        impacts = Impacts(system, state, start, now.located, window)
        state = before_impact(impacts)
        state = state.moved(state.t, state.q, start.point.held_still(state.v, modes.held))
        impact = theta_step(system, state, window, self.theta, taking_part, jnp.zeros(laws.rows), self.solver)
        t, P = state.t + window, impact.result.P
        at = survey(system, t, impact.q, impact.v)
        speeds = jnp.maximum(jnp.abs(state.v), jnp.abs(impact.v))
        resting = taking_part | unmoved(at, modes.closed, speeds) if self.impacts == "sequential" else taking_part
        new, firm = closing(at, modes, resting, P, speeds, window)
        q, v = impact.q, moving_as(at.held_still(impact.v, new.held), at.brought_to_rest(impact.v, firm))
        if self.projection:
            q, v = onto_active(system, t, q, v, at, firm.held, start.point.gaps_kept(modes.closed))
        seen = Modes(modes.closed & new.closed, new.stuck, new.heading, laws)
        open_question = jnp.concatenate([jnp.zeros(n, bool), new.stuck & seen.carried]) & (last != UNKNOWN_MODE)
        number = jnp.where(open_question, last, seen.numbers)  # the next step says whether it sticks
        info = impact.report(last, number, window)
        bounced = jnp.concatenate([now.located & ~new.closed & (P[:n] > 0), jnp.zeros(laws.count - n, bool)])
        event = jnp.where(bounced, Event.BOUNCES, events(laws, last, number)).astype(jnp.int32)
        none = (jnp.zeros_like(q), jnp.zeros_like(v))
        info = eqx.tree_at(lambda i: (i.event, i.local_error), info, (event, none), is_leaf=lambda x: x is None)
        grid = (now.nominal, window < h, now.memory.events + 1)
        memory = CaptureMemory(new, jnp.zeros(n, bool), number, True, *grid, self.ended(now.memory.search))
        end = after_impact(impacts, state.moved(t, q, v), firm)
        return Step(end, memory, info, jnp.asarray(False) if self.spread else None)

    def explain(self, system: System, state: State, memory: CaptureMemory, status: Status) -> str:
        """Which law is about to have an event, or cannot be satisfied."""
        if status is Status.TOO_MANY_EVENTS:
            return f"There were more than most_events = {int(self.most_events)} without a whole step between them."
        return explained(survey(system, state.t, state.q, state.v), memory.modes.closed, memory.located, status)

    def review(self, solution: Any) -> None:
        """Warn of constraints that depended on each other."""
        warn_of_redundancy(solution)
