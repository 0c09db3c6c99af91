"""How modes change: contacts that fall, what a piece or an impact leaves held, what stays at rest, what jolts."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.methods.capturing.active_set import Point, survey
from carom.methods.capturing.location import Trial
from carom.methods.capturing.margins import at_rest, come_to_rest, headings, slip_begins
from carom.methods.capturing.modes import Modes, by_row, lengths
from carom.solvers.contact_problem import ContactProblem, contact_problem
from carom.solvers.contact_solver import AbstractContactSolver
from carom.solvers.directions import DenseDirections
from carom.solvers.redundant import multipliers
from carom.solvers.roots import moving_as
from carom.state import State, Status
from carom.systems.system import System

_REST = 1e-11  # slip velocities after an impact this small (relative to their terms) are zero
_STILL = 1e-13  # velocities after an impact this small (relative) are zero
_OPENING = 1e-9  # gaps that open with an acceleration this small (relative) stay closed, redundant ones among them
_ROUNDS = 20  # for limits of friction that follow from the multipliers
_BRIEF = 2.0  # bounces that last no longer than so many critical steps end in persistent contact


def falling(at: Point, modes: Modes, time: Array, span: Array) -> Array:
    """Open contacts that reach the surface within `time`; rounding over `span` is no motion."""
    n = modes.closed.size
    rate = at.gamma[:n]
    return ~modes.closed & (rate < -at.noise(span)[:n]) & (at.gap <= -rate * time)


def after_piece(trial: Trial, modes: Modes, calm: Array, window: Array) -> tuple[Modes, Array]:
    """The modes after a piece, and whether the next step has to settle them; forces end only if it is `calm`."""
    over, n = trial.margins.over & ~trial.margins.timed & calm, modes.closed.size
    released = over[:n]
    new = Modes(modes.closed & ~released, modes.stuck, modes.heading, modes.laws)
    if not modes.stuck.size:
        return new, jnp.any(released)
    stops = come_to_rest(trial.at, modes, window)
    new = slip_begins(trial.at, new, over[n:])
    at = trial.at.point
    heading = jnp.where(modes.slipping, modes.directions(at.gamma, at.noise(window)), new.heading)
    return Modes(new.closed, new.stuck | stops, heading, modes.laws), jnp.any(over) | jnp.any(stops)


def steady(system: System, state: State, at: Point, modes: Modes) -> tuple[State, Point]:
    """State and point with the derivative of those in which held contacts and friction do not begin to move.

    A contact that sticks at the start, given another velocity, stops within a time that falls with the change; held to
    the end of the step it would drift: a derivative off by h. (Later steps begin still anyway.) Velocities that leave
    bilateral constraints do so in the step too.
    """
    laws = np.arange(at.laws.rows) < at.laws.rows - at.laws.bilateral
    v = state.v - at.M_inv_W @ multipliers(at.G, jnp.where(laws, at.gamma, 0.0), modes.held)
    still = state.moved(state.t, state.q, v), survey(system, state.t, state.q, v)
    numbers, rest = eqx.partition((state, at), eqx.is_inexact_array)
    return eqx.combine(moving_as(numbers, eqx.filter(still, eqx.is_inexact_array)), rest)


def fastest(at: Point, candidates: Array) -> Array:
    """The candidate that approaches fastest, alone."""
    speed = jnp.where(candidates, -at.gamma[: candidates.size], -jnp.inf)
    return candidates & (jnp.arange(candidates.size) == jnp.argmax(speed))


def _still(at: Point, speeds: Array) -> Array:
    """Relative velocities after an impact that are zero but for rounding; `speeds` are those before and after it."""
    return _STILL * jnp.max(speeds) * jnp.max(jnp.abs(at.W))


def unmoved(at: Point, closed: Array, speeds: Array) -> Array:
    """Closed contacts that an impact elsewhere left at rest."""
    return closed & (jnp.abs(at.gamma[: closed.size]) <= _still(at, speeds))


def closing(at: Point, modes: Modes, candidates: Array, P: Array, speeds: Array, window: Array) -> tuple[Modes, Modes]:
    """The modes after an impact; contacts stay that are held by an impulse, have no velocity, or fly too shortly.

    An impulse holds that would bring about more velocity than there is: that of a contact which opens is rounding.
    The second are without contacts that would have to pull: they leave at once, with what restitution gives them.
    """
    n = candidates.size
    rate = at.gamma[:n]
    held = modes.closed & (P[:n] * jnp.diagonal(at.G)[:n] > rate) & (P[:n] > 0)
    still = _still(at, speeds)
    resting = held | (candidates & (rate <= still))
    stuck = at_rest(at, _REST) | (at.rough & (lengths(at.laws, at.gamma) <= still))
    heading = headings(at, at.gamma)
    pressed = at.under(Modes(resting, stuck, heading, modes.laws))
    down = jnp.maximum(-pressed.relative[:n], 0.0)
    brief = rate <= 0.5 * _BRIEF * window * down
    below = at.gap * down <= -0.5 * rate * rate
    closed = resting | (candidates & (down > 0) & (brief | below))
    pulls = resting & (pressed.lam[:n] < 0)
    return Modes(closed, stuck, heading, modes.laws), Modes(closed & ~pulls, stuck, heading, modes.laws)


def jolted(at: Point, modes: Modes) -> Array:
    """Whether an element slips against an unlimited force, which takes an impulse to stop."""
    laws = at.laws
    if not laws.elements:
        return jnp.asarray(False)
    k = laws.frictions
    forward = modes.signs[k:] > 0
    return jnp.any(~modes.stuck[k:] & jnp.isinf(jnp.where(forward, at.limits[:, 0], at.limits[:, 1])))


def settled(before: tuple[Modes, Array], at: Point, solver: AbstractContactSolver) -> tuple[Modes, Array]:
    """Which laws at rest stay so: the complementarity (63) of accelerations and multipliers, with friction.

    Friction that slides already is no unknown: its force follows the normal one. The status says how it was solved.
    """
    modes, _ = before
    laws, n, k = at.laws, at.laws.contacts, at.laws.frictions
    candidates = modes.stuck & at.rough
    friction = jnp.where(laws.on_contacts(candidates[:k]), at.friction, 0.0)

    def posed(at: Point) -> ContactProblem:
        slides = at.sliding(modes)
        limits = jnp.where(candidates[k:, None], at.limits, 0.0)
        c = at.W @ (at.free + at.M_inv_W @ slides.given) + at.kappa
        sets = {"active": modes.closed, "friction": friction, "limits": limits}
        return contact_problem(DenseDirections(at.W), DenseDirections(slides.columns(at.M_inv_W).T), laws, c=c, **sets)

    def again(_, found: tuple[Array, Array]) -> tuple[Array, Array]:
        P, status = found
        result = solver(posed(at.limited(-P[laws.rows - laws.bilateral :])), P).after(status)
        return result.P, result.status

    P, status = jnp.zeros(laws.rows), jnp.int32(Status.OK)
    if at.place is not None:
        P, status = jax.lax.fori_loop(0, _ROUNDS, again, (P, status))
        at = at.limited(-P[laws.rows - laws.bilateral :])
    problem = posed(at)
    result = solver(problem, P).after(status)
    gained = problem.velocity(result.P)
    slack = _OPENING * jnp.max(jnp.abs(problem.c)) + 1e-290
    closed = modes.closed & (gained[:n] <= slack)
    begins = candidates & ~(lengths(laws, gained) <= slack)
    heading = jnp.where(by_row(laws, begins), headings(at, gained), modes.heading)
    return Modes(closed, candidates & ~begins, heading, laws), result.status
