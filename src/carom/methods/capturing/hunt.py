"""The first event of a piece: trials one after the other, and looks into one that ends without an event.

The located time has the derivative of its event: that of the root of a margin, whatever trials led to it.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.arguments import UserFunction
from carom.interpolation import hermite
from carom.methods.capturing.active_set import Coefficients, Motion, Piece, smooth_piece, survey
from carom.methods.capturing.location import LOOKS, Aim, Found, Search, Trial, after_trial, crossing, dip
from carom.methods.capturing.margins import Margins, both_sides, forces_left, margins
from carom.methods.capturing.modes import Modes
from carom.methods.capturing.timing import beneath
from carom.solvers.roots import Expanded, rarely, repeated, rooted
from carom.state import State
from carom.systems.system import System


class Hunt(eqx.Module):
    """A piece that begins at `state` with given modes, at most `longest`; `wary` ones look at gaps inside too."""

    system: System
    tableau: Coefficients
    state: State
    start: Motion
    at_start: Margins
    modes: Modes
    span: Array
    longest: Array
    aim: Aim
    form: str = eqx.field(static=True)
    wary: bool = eqx.field(static=True)

    def found(self, h: Array, at_once: Array) -> Found:
        """After all trials for a step of size h; none if it is over `at_once`."""
        return rooted(_after_trials, _with_derivative, (self, h, at_once))

    def trial(self, tau: Array) -> Trial:
        """A piece of length tau and its end."""
        piece = smooth_piece(self.system, self.tableau, self.state, self.start, self.modes, tau, self.form)
        at = survey(self.system, self.state.t + tau, piece.q, piece.v).under(self.modes)
        return Trial(tau, piece, at, margins(at, self.modes, self.span), self.at_start.value > 0)

    def look(self, s: Search) -> Found:
        """One more trial, and looks inside of it where that is suspicious."""
        trial = self.trial(s.tau)
        suspicious = self.turns(trial) | self.forces_may_end(trial)
        suspicious = suspicious | self.gaps_may_close(trial) if self.wary else suspicious
        looks = ~jnp.any(s.suspects) & (s.low <= 0) & ~trial.failed & suspicious
        deepest = rarely(looks, _deepest, jnp.asarray(jnp.inf), self, trial)
        return after_trial(s, trial, deepest, self.longest, self.aim)

    def turns(self, trial: Trial) -> Array:
        """Whether a gap or slip that falls at first rises in the end."""
        before, now = self.at_start, trial.margins
        return jnp.any(before.timed & now.timed & (before.value > 0) & (before.rate < 0) & (now.rate > 0))

    def inside(self, trial: Trial, t: Array) -> tuple[Array, Array, Array]:
        """The state inside of a trial, by cubics."""
        state, piece, rate = self.state, trial.piece, self.system.rate
        ends = (state.t, state.t + trial.tau)
        d0, d1 = rate(ends[0], state.q, state.v), rate(ends[1], piece.q, piece.v)
        v = hermite(*ends, state.v, piece.v, self.start.acceleration, trial.at.acceleration, t)
        return t, hermite(*ends, state.q, piece.q, d0, d1, t), v

    def forces_may_end(self, trial: Trial) -> Array:
        """Whether, by the stages, a force may be negative in between."""
        if not self.modes.laws.count:
            return jnp.asarray(False)
        if any(isinstance(group.limit, UserFunction) for group in self.system.friction_groups):
            return jnp.asarray(True)
        with_stage = lambda lam: eqx.tree_at(lambda m: m.lam, self.start, lam)  # noqa: E731
        stages = jax.vmap(lambda lam: forces_left(with_stage(lam), self.modes))(trial.piece.lam)
        ends = (forces_left(motion, self.modes)[None] for motion in (self.start, trial.at))
        forces = jnp.concatenate([stages, *ends])
        low = jnp.min(forces, axis=0)
        return jnp.any(low < jnp.max(forces, axis=0) - low)

    def gaps_may_close(self, trial: Trial) -> Array:
        """Whether, by looks at it, a gap may be negative in between."""
        if not self.modes.laws.contacts:
            return jnp.asarray(False)
        times = self.state.t + jnp.asarray(LOOKS) * trial.tau
        gaps = jax.vmap(lambda t: self.system.gaps(*self.inside(trial, t)[:2]))(times)
        gaps = jnp.concatenate([self.start.point.gap[None], gaps, trial.at.point.gap[None]])
        bend = gaps[2:] - 2 * gaps[1:-1] + gaps[:-2]
        return jnp.any(~self.modes.closed & (jnp.min(gaps, axis=0) < 2 * jnp.max(jnp.abs(bend), axis=0)))


def _deepest(_: Array, hunt: Hunt, trial: Trial) -> Array:
    def sides(at: Motion) -> Array:
        return both_sides(at, hunt.modes, hunt.span)

    def within(part: Array) -> Array:
        return sides(survey(hunt.system, *hunt.inside(trial, hunt.state.t + part * trial.tau)).under(hunt.modes))

    looked = jax.lax.map(within, jnp.asarray(LOOKS))
    values = jnp.concatenate([sides(hunt.start)[None], looked, sides(trial.at)[None]])
    under = (trial.margins.value < 0) & ~trial.margins.over
    under = jnp.pad(under, (0, values.shape[1] - under.size))
    return dip(values, under, trial.tau, hunt.aim.window)


def _after_trials(given: tuple[Hunt, Array, Array]) -> Found:
    hunt, h, at_once = given
    nothing = Piece.of_no_length(hunt.state, hunt.modes.laws.rows, hunt.tableau.b.size)
    before = Trial(jnp.zeros_like(h), nothing, hunt.start, hunt.at_start, hunt.at_start.value > 0)
    first = Found(Search.begin(h, hunt.longest, hunt.at_start.value), before, at_once)
    return repeated(lambda f: f.pending, lambda f: hunt.look(f.search), first)


def _with_derivative(found: Found, given: tuple[Hunt, Array, Array], still: tuple[Hunt, Array, Array]) -> Found:
    """The last trial, as long as its first event takes by one Newton step on the margin, or as the longest piece."""
    hunt, fixed, tau = given[0], still[0], found.trial.tau
    if not found.search.suspects.size:
        return eqx.tree_at(lambda f: f.trial, found, hunt.trial(tau + hunt.longest - fixed.longest))
    about = Expanded.of(Hunt.trial, hunt, fixed, tau)
    at, rates = about.value, about.along(jnp.ones_like(tau))
    trial = _moved(at, about.changes(jnp.zeros_like(tau)), 1.0)
    _, first = crossing(found.search, found.trial, fixed.aim)
    gap, rate, n = at.margins.value, at.margins.rate, at.margins.contacts
    turns = at.margins.gaps & beneath(gap, rate, at.piece.q, fixed.aim.window)  # they have no gap to close

    def value(trial: Trial) -> Array:
        return jnp.where(turns, jnp.pad(trial.at.point.gamma[:n], (0, turns.size - n)), trial.margins.value)

    slope = jnp.where(first, value(rates), 1.0)
    last = jnp.argmax(jnp.where(first, -value(at) / slope, -jnp.inf))

    def reached(hunt: Hunt, trial: Trial) -> Array:
        place = jnp.where(trial.margins.gaps, -hunt.aim.lead, 0.25 * hunt.aim.window)
        times = place - value(trial) / slope
        return jnp.where(jnp.any(first), times[last], hunt.longest)

    longer = reached(hunt, trial) - reached(fixed, at)  # zero, but for its derivative
    return eqx.tree_at(lambda f: f.trial, found, _moved(trial, rates, longer))


def _moved(x: Trial, rate: Trial, by: Array | float) -> Trial:
    return jax.tree.map(lambda x, rate: x + rate * by if eqx.is_inexact_array(x) else x, x, rate)
