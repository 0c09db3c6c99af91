r"""Event capturing of any order [Acary2012 sec. 5, Algorithm 1 corrected].

Between events a Runge-Kutta method of order p integrates the motion on the active set (64). An event is located roughly,
to C h^{p+1}; a critical step of that length with Moreau's scheme (16) passes it, with the located contacts active. Its
error, O(C h^{p+1}), is that of one smooth step, so the order is p through impacts and accumulations (Theorem 1).

One call of `step` is one smooth piece or one critical step; the phase is in the memory: `located` names the contacts of
the critical step to come.

What the printed algorithm lacks, and ERRATA adds: a contact that bounces is open although g <= 0; the located contact is
activated, whatever the forecast; a bounce that lasts no longer than the critical step, or whose apex is under the
surface, ends in persistent contact; persistent contact ends by its multiplier.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.methods.active_set import Motion, motion, onto_active, redundancy, smooth_piece
from carom.methods.base import SMOOTH, AbstractMethod
from carom.methods.contact_rows import Event, laws_of
from carom.methods.location import Trial, locate, status_of
from carom.methods.moreau_theta import report, theta_step
from carom.solvers.contact_problem import CONSTRAINT, IMPRESSED, Laws, contact_problem
from carom.solvers.newton import Newton
from carom.solvers.semismooth import SemismoothNewton
from carom.state import Info, State, Status, Step
from carom.systems.system import System
from carom.tableaux import Tableau

_TOUCHING = 1e-10  # gaps and velocities this small (relative) are zero at the start
_STILL = 1e-13  # velocities after an impact this small (relative) are zero
_LONGEST = 0.125  # of the step: a critical step is not longer
_FLOOR = 64 * float(np.finfo(float).eps)
_SHORT_FLIGHT = 2.0  # bounces that last no longer than so many critical steps end in persistent contact


class CaptureMemory(eqx.Module):
    """Active contacts, contacts of the critical step to come, nominal step, and events to report with the next row."""

    active: Array
    located: Array
    h: Array
    short: Array
    event: Array


class EventCapturing(AbstractMethod):
    """Order p through impacts, accumulations of impacts, and contacts that open; frictionless contacts.

    Reports per contact: `impulse` (trapezoidal over smooth pieces), `work`, `mode` (0 closed, 1 open), `event` (bounces,
    closes, opens), and `multiplier` of bilateral constraints.

    Args:
        tableau: the Runge-Kutta method of the smooth pieces: `carom.radau_iia(s)`, `carom.lobatto_iiia(s)`,
            `carom.gauss(s)`, or half-explicit with `carom.explicit(p)`.
        C: events are located to C h^{p+1}, or to rounding.
        theta: of Moreau's scheme in the critical step.
        projection: move q and v back onto closed contacts and bilateral constraints after every piece, against drift.
        newton: settings of the stage equations.

    Example:
        >>> sol = carom.simulate(*carom.models.bouncing_ball(), carom.EventCapturing(carom.radau_iia(2)), t1=5.0, h=0.05)
    """

    tableau: Tableau = eqx.field(static=True)
    C: float = 1.0
    theta: float = 0.5
    projection: bool = eqx.field(default=False, static=True)
    newton: Newton = Newton()
    solver: Any = SemismoothNewton()

    handles = SMOOTH | {"contacts", "constraints"}
    gives = frozenset({"modes"})

    def __check_init__(self):
        if not isinstance(self.tableau, Tableau):
            kind = type(self.tableau).__name__
            msg = f"EventCapturing: tableau must be a carom.Tableau such as carom.radau_iia(2), got {kind}"
            raise TypeError(msg)
        if not self.tableau.row_sums_are_c:
            msg = f"EventCapturing: {self.tableau.name} is unusable alone: the rows of its A do not sum to c"
            raise ValueError(msg)
        if isinstance(self.C, (int, float)) and not (np.isfinite(self.C) and self.C > 0):
            msg = f"EventCapturing: C must be positive and finite, got {self.C}"
            raise ValueError(msg)
        if isinstance(self.theta, (int, float)) and not 0 <= self.theta <= 1:
            msg = f"EventCapturing: theta must lie in [0, 1], got {self.theta}"
            raise ValueError(msg)

    @property
    def order(self) -> int:
        """Order of the tableau, through events."""
        return self.tableau.order

    def objection(self, system: System) -> str | None:
        """Regularised variables have no relative velocities."""
        return "EventCapturing: pass the system itself, not a regularised one" if system.shift is not None else None

    def init(self, system: System, state: State) -> CaptureMemory:
        """Contacts that touch at rest and press are closed, all others open."""
        n = laws_of(system, state).contacts
        at = motion(system, state.t, state.q, state.v, self.rows(system, state, jnp.zeros(n, bool)))
        speed = jnp.max(jnp.abs(at.W), initial=0.0) * jnp.max(jnp.abs(state.v)) + _TOUCHING
        size = jnp.max(jnp.abs(state.q)) + _TOUCHING
        touching = (at.gap <= _TOUCHING * size) & (jnp.abs(at.gamma[:n]) <= _TOUCHING * speed)
        none = jnp.zeros(n, bool)
        return CaptureMemory(
            self.settle(system, state, touching), none, jnp.zeros(()), jnp.asarray(False), jnp.zeros(n, jnp.int32)
        )

    def rows(self, system: System, state: State, active: Array) -> Array:
        """The mask of rows: active contacts, and all bilateral constraints."""
        return jnp.concatenate([active, jnp.ones(laws_of(system, state).bilateral, bool)])

    def step(self, system: System, state: State, memory: CaptureMemory, h: Array) -> Step:
        """One smooth piece, or one critical step."""
        nominal = jnp.where(memory.short, memory.h, h)
        floor = _FLOOR * jnp.maximum(jnp.abs(state.t), nominal)
        window = jnp.clip(self.C * nominal ** (self.order + 1), floor, jnp.maximum(_LONGEST * nominal, floor))
        start = motion(system, state.t, state.q, state.v, self.rows(system, state, memory.active))
        n = memory.active.size
        located = memory.located | (~memory.active & (start.gap < 0) & (start.gamma[:n] < 0))
        critical = jnp.any(located)
        memory = CaptureMemory(memory.active, located, nominal, memory.short, memory.event)
        return jax.lax.cond(
            critical,
            lambda: self.critical_step(system, state, memory, jnp.minimum(window, h), h),
            lambda: self.smooth_step(system, state, memory, start, h, window, floor, critical),
        )

    def smooth_step(
        self,
        system: System,
        state: State,
        memory: CaptureMemory,
        start: Motion,
        h: Array,
        window: Array,
        floor: Array,
        idle: Array,
    ) -> Step:
        """The smooth piece up to the first event, or over the whole of h."""
        active, n = memory.active, memory.active.size
        rows = self.rows(system, state, active)

        def attempt(tau: Array) -> Trial:
            piece = smooth_piece(system, self.tableau, self.newton, state, rows, tau)
            return Trial(tau, piece, motion(system, state.t + tau, piece.q, piece.v, rows), active)

        search = locate(attempt, start, active, h, window, floor, idle)
        trial = search.trial
        tau, at, q, v = trial.tau, trial.at, trial.piece.q, trial.piece.v
        if self.projection:
            q, v = onto_active(system, state.t + tau, q, v, rows, positions=True)
        end = state.moved(state.t + tau, q, v)
        seen = jnp.any(search.suspects)
        falls = ~active & (at.gamma[:n] < 0)
        located = seen & falls & (at.gap <= -at.gamma[:n] * window)
        released = trial.releases & ~jnp.any(located)
        active = jnp.where(jnp.any(released), self.settle(system, end, active & ~released), active)
        event = jnp.where(memory.active & ~active, Event.OPENS, Event.NONE).astype(jnp.int32)
        new = CaptureMemory(active, located, memory.h, tau < h, event)
        mean = 0.5 * tau * (start.lam + at.lam)
        info = Info(
            status=status_of(search, window),
            residual=trial.piece.residual,
            iterations=search.iterations,
            evaluations=search.evaluations + 1,
            impulse=mean[:n],
            mode=modes(memory.active),
            event=memory.event,
            work=jnp.zeros(n),
            multiplier=-at.lam[n:] if at.lam.size > n else None,
            extra={"redundant": redundancy(at.W @ at.M_inv_W, rows)},
        )
        return Step(end, new, info)

    def critical_step(self, system: System, state: State, memory: CaptureMemory, window: Array, h: Array) -> Step:
        """Moreau's scheme over the located events, then the choice which contacts stay closed."""
        n = memory.active.size
        taking_part = memory.active | memory.located
        rows = self.rows(system, state, taking_part)
        impact = theta_step(system, state, window, self.theta, taking_part, jnp.zeros(rows.size), self.solver)
        t = state.t + window
        closed = self.closing(system, state.moved(t, impact.q, impact.v), taking_part, window)
        q, v = onto_active(system, t, impact.q, impact.v, self.rows(system, state, closed), positions=self.projection)
        end = state.moved(t, q, v)
        active = self.settle(system, end, closed)
        info = report(impact, modes(memory.active), modes(active), window)
        bounced = memory.located & ~active & (impact.result.P[:n] > 0)
        event = jnp.where(bounced, Event.BOUNCES, jnp.where(memory.event > 0, memory.event, info.event))
        extra = {"redundant": redundancy(impact.problem.G, rows)}
        info = eqx.tree_at(lambda i: (i.event, i.extra), info, (event.astype(jnp.int32), extra))
        none = jnp.zeros(n, bool)
        return Step(end, CaptureMemory(active, none, memory.h, window < h, jnp.zeros(n, jnp.int32)), info)

    def closing(self, system: System, state: State, candidates: Array, window: Array) -> Array:
        """Contacts that do not leave the surface: no velocity, a flight as short as the window, or an apex below."""
        n = candidates.size
        speed = _STILL * jnp.max(jnp.abs(state.v))
        still = motion(system, state.t, state.q, state.v, self.rows(system, state, jnp.zeros(n, bool)))
        U = still.gamma[:n]
        resting = candidates & (U <= speed * jnp.max(jnp.abs(still.W), initial=0.0))
        at = motion(system, state.t, state.q, state.v, self.rows(system, state, resting))
        down = jnp.maximum(-at.opening[:n], 0.0)
        brief = 2.0 * U <= _SHORT_FLIGHT * window * down
        below = 2.0 * at.gap * down + U * U <= 0
        return resting | (candidates & (down > 0) & (brief | below))

    def settle(self, system: System, state: State, candidates: Array) -> Array:
        """Which contacts at rest press: the complementarity (63) of accelerations and multipliers."""
        n = candidates.size
        if n == 0:
            return candidates
        at = motion(system, state.t, state.q, state.v, self.rows(system, state, jnp.zeros(n, bool)))
        laws = Laws(n, 0, 0, 0, laws_of(system, state).bilateral)
        sets = {"friction": jnp.zeros(n), "limits": jnp.zeros((0, 2))}
        problem = contact_problem(at.W, at.M_inv_W, laws, c=at.W @ at.free + at.kappa, active=candidates, **sets)
        return problem.modes(self.solver(problem, jnp.zeros(at.W.shape[0])).P) == CONSTRAINT

    def explain(self, system: System, state: State, memory: CaptureMemory, status: Status) -> str:
        """Which contact is about to have an event."""
        if status is not Status.EVENT_NOT_LOCATED:
            return ""
        gap, rate = (np.asarray(x) for x in _gaps(system, state))
        falling = ~np.asarray(memory.active) & (rate < 0)
        time = np.where(falling, gap / np.where(falling, -rate, 1.0), np.inf)
        i = int(np.argmin(time))
        return f"Contact {i} has the gap {gap[i]:.6g} and the rate {rate[i]:.6g} there; is its gap continuous?"

    def remarks(self, redundant: np.ndarray, t: np.ndarray) -> str | None:
        """What to tell after a run: constraints that depended on each other."""
        if not np.any(redundant > 0):
            return None
        when = float(t[np.argmax(redundant > 0)])
        return f"active constraints were redundant from t = {when:.6g}: their multipliers are those of least squares"


def modes(active: Array) -> Array:
    """Mode of every contact."""
    return jnp.where(active, CONSTRAINT, IMPRESSED).astype(jnp.int32)


def _gaps(system: System, state: State) -> tuple[Array, Array]:
    rate = system.rate(state.t, state.q, state.v)
    contacts, p = system.contacts, system.params
    return contacts.gaps(p, state.t, state.q), contacts.gap_rates(p, state.t, state.q, rate)
