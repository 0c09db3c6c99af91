"""Rough location of the first event inside a step: Newton on gaps and slip, secants on forces [Acary2012 Algorithm 1].

An open contact has an event where its gap is negative and falling; a closed one where its multiplier is negative;
friction that sticks where its limit is reached, friction that slides where its slip turns round (`margins`). Right
after a bounce the gap may be negative but rises: the bracket then begins at the apex, as the corrected algorithm wants.

A margin may be negative inside a step and positive at both ends, another law having its event later in the step or not.
A step is therefore looked into: margins at a quarter, half and three quarters of it, and the polynomial through these
and the ends (`dip`).
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.methods.capturing.active_set import Motion, Piece
from carom.methods.capturing.margins import Margins
from carom.state import Status, choose

_MOST_TRIALS = 120
_JUMP = 100.0  # a gap that changes by so many times its rate over the bracket jumps
_ROUNDING = 1e-12
_CLOSE = 1 / 16  # of the window: impacts are aimed at so well
LOOKS = np.array([0.25, 0.5, 0.75])  # parts of a step at which margins are looked at
_FINE = 64  # places of the polynomial through them, denser at both ends
_NARROWED = 60  # times that a place on it is narrowed
_SHORTEST = 1e-4  # of the step: a piece whose equations cannot be solved is tried again, not shorter than this


class Trial(eqx.Module):
    """A piece of length tau and what it found at its end."""

    tau: Array
    piece: Piece
    at: Motion
    margins: Margins
    crossed: Array

    @property
    def failed(self) -> Array:
        """Whether its equations could not be solved."""
        return self.piece.status != Status.OK

    @property
    def seen(self) -> Array:
        """Whether the step ends before it or at its end."""
        return jnp.any(self.over) | self.failed

    @property
    def over(self) -> Array:
        """Laws that have had their event: also gaps that were open at the start and are negative, though they rise."""
        return self.margins.over | (self.crossed & self.margins.gaps & (self.margins.value < 0))


class Aim(eqx.Module):
    """Where to stop: `lead` before an impact, just behind the end of a force; to a part of `window`, or to `floor`."""

    window: Array
    lead: Array
    floor: Array


class Search(eqx.Module):
    """The search for the first event in a step of size h, from one trial to the next; after k = 0 trials there is none.

    [low, high] is the bracket around it, with the margins there and the laws that have had their event at `high`;
    `tau` is the next trial, `width` the bracket of up to three trials ago.
    """

    h: Array
    tau: Array
    low: Array
    high: Array
    width: Array
    margin_low: Array
    margin_high: Array
    suspects: Array
    k: Array
    evaluations: Array
    iterations: Array

    @classmethod
    def begin(cls, h: Array, longest: Array, margins: Array) -> Search:
        """Nothing was tried yet of a step of size h; the first trial is the `longest`."""
        zero, none = jnp.zeros((), jnp.int32), jnp.zeros(margins.size, bool)
        return cls(h, longest, jnp.zeros_like(h), longest, longest, margins, margins, none, zero, zero, zero)

    def resumed(self, h: Array, longest: Array, margins: Array) -> Search:
        """This search if it is that of a step of size h, else a new one: a stepping may have chosen another size."""
        going = (self.k > 0) & (self.h == h)
        return choose(going, self, Search.begin(h, longest, margins))

    def closed(self) -> Search:
        """No search any more."""
        return eqx.tree_at(lambda s: s.k, self, jnp.zeros_like(self.k))


class Found(eqx.Module):
    """The search after its last trial, and whether the step ends with that."""

    search: Search
    trial: Trial
    done: Array

    @property
    def pending(self) -> Array:
        """Whether another trial is to come."""
        return ~self.done & (self.search.k < _MOST_TRIALS)

    def status(self, window: Array) -> Array:
        """Whether it succeeded: the piece was solved, margins are numbers, and no gap jumps across the bracket."""
        s, now = self.search, self.trial.margins
        scale = jnp.abs(s.margin_low) + jnp.abs(s.margin_high)
        narrow = s.high - s.low <= window
        jumps = s.margin_low - s.margin_high > _JUMP * jnp.abs(now.rate) * window + _ROUNDING * (1.0 + scale)
        lost = jnp.any(s.suspects & now.gaps & jumps & narrow) | ~self.done
        status = jnp.where(lost, Status.EVENT_NOT_LOCATED, self.trial.piece.status)
        return jnp.where(jnp.any(jnp.isnan(now.value + now.rate)), Status.NOT_FINITE, status).astype(jnp.int32)


def after_trial(s: Search, trial: Trial, deepest: Array, longest: Array, aim: Aim) -> Found:
    """The search after one more trial.

    `deepest` is where inside of the trial an event may be that its end does not show; infinite if nowhere.
    """
    window, failed, dipped = aim.window, trial.failed, jnp.isfinite(deepest)
    seen = trial.seen & ~dipped  # what is behind the dip may wait
    closing = (s.high - s.low <= window) | ((s.k > 0) & (trial.tau == s.high))
    keep = lambda new, old: jnp.where(seen, new, old)  # noqa: E731
    low = jnp.where(dipped, s.low, keep(s.low, trial.tau))
    high = jnp.where(dipped, 2 * deepest, keep(trial.tau, s.high))  # the next trial is the middle
    margin_low = keep(s.margin_low, trial.margins.value)
    margin_high = keep(jnp.where(failed, s.margin_high, trial.margins.value), s.margin_high)
    suspects = keep(trial.over & ~failed, s.suspects)
    width, k = jnp.where(s.k % 3 == 2, s.high - s.low, s.width), s.k + 1
    counts = (s.evaluations + trial.piece.evaluations + 1, s.iterations + trial.piece.iterations)
    new = Search(s.h, trial.tau, low, high, width, margin_low, margin_high, suspects, k, *counts)
    tau, first = crossing(new, trial, aim)
    away = jnp.abs(trial.tau - tau)
    forces, gaps = jnp.any(first & ~trial.margins.timed), jnp.any(first & trial.margins.gaps)
    near = jnp.where(forces, seen & (away <= window), away <= jnp.where(gaps, _CLOSE, 1.0) * window)
    free = ~jnp.any(suspects) & ~dipped
    hopeless = trial.tau < _SHORTEST * longest
    done = jnp.where(failed, hopeless, free | near | (closing & seen))
    return Found(eqx.tree_at(lambda x: x.tau, new, next_trial(new, tau, longest, aim)), trial, done)


def next_trial(s: Search, tau: Array, longest: Array, aim: Aim) -> Array:
    """The crossing, or the middle of the bracket where that is outside or the bracket hardly shrinks."""
    size, middle = s.high - s.low, 0.5 * (s.low + s.high)
    slow = (s.k % 3 == 2) & (size > 0.3 * s.width)
    tau = jnp.where((tau > s.low) & (tau < s.high) & ~slow, tau, middle)
    tau = jnp.where((size <= aim.window) & jnp.any(s.suspects), s.high, tau)
    return jnp.where(longest - tau < aim.floor, longest, tau)


def dip(values: Array, under: Array, tau: Array, window: Array) -> Array:
    """Where to look for a margin that is negative inside a trial, by its polynomial; infinite if none can be.

    The fourth difference of the five values bounds the polynomial's error: a margin that comes as close to zero is
    looked at too. Gaps must still fall there: half way from their crossing to the bottom. A gap that turns just at the
    end of the trial, below zero, is not over there. A loop over places, not an array of them: with arrays of more than
    512 bytes anywhere inside, XLA runs the whole step on its thread pool.
    """
    last = values[-1]
    newton = [values[0]]
    for _ in range(4):
        values = jnp.diff(values, axis=0)
        newton.append(values[0])
    doubt = jnp.abs(newton[4])

    def curve(x: Array) -> Array:
        value, weight = newton[0], 1.0
        for i in range(1, 5):
            weight = weight * (4.0 * x - (i - 1)) / i
            value = value + weight * newton[i]
        return value

    def place(j: Array) -> Array:
        return jnp.sin(0.5 * jnp.pi * jnp.clip(j, 0, _FINE) / _FINE) ** 2

    def look(j: Array, found: tuple[Array, Array]) -> tuple[Array, Array]:
        lowest, at = found
        value = curve(place(j))
        return jnp.minimum(value, lowest), jnp.where(value < lowest, j, at)

    def narrow(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        third = (high - low) / 3
        falls = curve(low + third) > curve(high - third)
        return jnp.where(falls, low + third, low), jnp.where(falls, high, high - third)

    def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = 0.5 * (low + high)
        below = curve(middle) < 0
        return jnp.where(below, low, middle), jnp.where(below, middle, high)

    zero = jnp.zeros_like(newton[0])
    at = jax.lax.fori_loop(1, _FINE, look, (newton[0], jnp.zeros(zero.shape, jnp.int32)))[1]
    low, high = jax.lax.fori_loop(0, _NARROWED, narrow, (place(at - 1), place(at + 1)))
    bottom = 0.5 * (low + high)
    lowest = curve(bottom)
    first = jax.lax.fori_loop(0, _NARROWED, halve, (zero, bottom))[1]
    tau = tau * jnp.where(lowest < 0, 0.5 * (first + bottom), bottom)
    inner = (lowest < newton[0]) & ((lowest < last) | under) & (newton[0] > 0)
    return jnp.min(jnp.where(inner & (lowest < doubt) & (tau > window), tau, jnp.inf), initial=jnp.inf)


def crossing(s: Search, trial: Trial, aim: Aim) -> tuple[Array, Array]:
    """Where to stop for the first of the suspects to cross zero, and which these are."""
    now = trial.margins
    falls = now.rate < 0
    hit = jnp.where(falls, trial.tau - now.value / jnp.where(falls, now.rate, -1.0), 0.5 * (s.low + s.high))
    drop = s.margin_low - s.margin_high
    share = jnp.where(drop > 0, s.margin_low / jnp.where(drop > 0, drop, 1.0), 0.5)
    ends = s.low + jnp.clip(share, 0.0, 1.0) * (s.high - s.low) + 0.25 * aim.window
    times = jnp.where(s.suspects, jnp.where(now.timed, hit - aim.lead * now.gaps, ends), jnp.inf)
    earliest = jnp.min(times, initial=jnp.inf)
    return earliest, s.suspects & (times == earliest)
