"""Rough location of the first event inside a step: Newton on gaps and slip, secants on forces [Acary2012 Algorithm 1].

An open contact has an event where its gap is negative and falling; a closed one where its multiplier is negative;
friction that sticks where its limit is reached, friction that slides where its slip turns round (`margins`). Right
after a bounce the gap may be negative but rises: the bracket then begins at the apex, as the corrected algorithm wants.

A margin may be negative inside a step and positive at both ends. A step without an event at its end is therefore looked
into: margins at a quarter, half and three quarters of it, and the polynomial through these and the ends (`dip`).
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.methods.capturing.active_set import Motion, Piece
from carom.methods.capturing.margins import Margins
from carom.solvers.small import rarely
from carom.state import Status

_MOST_TRIALS = 120
_JUMP = 100.0  # a gap that changes by so many times its rate over the bracket jumps
_ROUNDING = 1e-12
_CLOSE = 1 / 16  # of the window: impacts are aimed at so well
LOOKS = np.array([0.25, 0.5, 0.75])  # parts of a step at which margins are looked at
_FINE = 64  # places of the polynomial through them, denser at both ends
_SHORTEST = 1e-4  # of the step: a piece whose equations cannot be solved is tried again, not shorter than this


class Trial(eqx.Module):
    """A piece of length tau and what it found at its end."""

    tau: Array
    piece: Piece
    at: Motion
    margins: Margins


class Search(eqx.Module):
    """The bracket [low, high] around the first event with margins there, the last trial, and the events at `high`."""

    trial: Trial
    low: Array
    high: Array
    margin_low: Array
    margin_high: Array
    suspects: Array
    width: Array
    k: Array
    evaluations: Array
    iterations: Array
    done: Array


class Aim(eqx.Module):
    """Where to stop: `lead` before an impact, just behind the end of a force; to a part of `window`, or to `floor`."""

    window: Array
    lead: Array
    floor: Array


def locate(
    attempt: Callable[[Array], Trial],
    suspicious: Callable[[Trial], Array],
    inside: Callable[[Trial], Array],
    nothing: Piece,
    start: Motion,
    margins: Margins,
    h: Array,
    aim: Aim,
    idle: Array,
) -> Search:
    """The first event in (0, h], to within `aim.window`; without one the trial over the whole step.

    `attempt(tau)` integrates over tau; `suspicious(trial)` says whether a margin may be negative inside a trial, and
    `inside(trial)` are the margins at its `LOOKS`; `nothing`, `start` and `margins` are the piece, the motion and the
    margins at zero. `idle` (of a lane that has something else to do) ends the search at once.
    """
    window = aim.window

    def next_trial(s: Search) -> Array:
        tau, _ = crossing(s, aim)
        tau = jnp.where((tau > s.low) & (tau < s.high), tau, 0.5 * (s.low + s.high))
        slow = (s.k % 3 == 2) & (s.high - s.low > 0.3 * s.width)
        tau = jnp.where(slow, 0.5 * (s.low + s.high), tau)
        tau = jnp.where((s.high - s.low <= window) & jnp.any(s.suspects), s.high, tau)
        tau = jnp.where(h - tau < aim.floor, h, tau)
        return jnp.where(s.k == 0, h, tau)

    def look(s: Search) -> Search:
        trial = attempt(next_trial(s))
        failed = trial.piece.status != Status.OK
        over = trial.margins.over & ~failed
        seen = jnp.any(over) | failed
        looked = (s.k == 0) & ~seen & suspicious(trial)
        deepest = rarely(looked, lambda _: dip(margins, inside(trial), trial, window), jnp.asarray(jnp.inf))
        dipped = jnp.isfinite(deepest)
        closing = (s.high - s.low <= window) | ((s.k > 0) & (trial.tau == s.high))
        keep = lambda new, old: jnp.where(seen, new, old)  # noqa: E731
        s = Search(
            trial,
            jnp.where(dipped, s.low, keep(s.low, trial.tau)),
            jnp.where(dipped, 2 * deepest, keep(trial.tau, s.high)),  # the next trial is the middle
            keep(s.margin_low, trial.margins.value),
            keep(jnp.where(failed, s.margin_high, trial.margins.value), s.margin_high),
            keep(over, s.suspects),
            jnp.where(s.k % 3 == 2, s.high - s.low, s.width),
            s.k + 1,
            s.evaluations + trial.piece.evaluations + 1,
            s.iterations + trial.piece.iterations,
            s.done,
        )
        tau, first = crossing(s, aim)
        away = jnp.abs(trial.tau - tau)
        forces, gaps = jnp.any(first & ~trial.margins.timed), jnp.any(first & trial.margins.gaps)
        near = jnp.where(forces, seen & (away <= window), away <= jnp.where(gaps, _CLOSE, 1.0) * window)
        free = ~jnp.any(s.suspects) & ~dipped
        hopeless = trial.tau < _SHORTEST * h
        return eqx.tree_at(lambda x: x.done, s, jnp.where(failed, hopeless, free | near | (closing & seen)))

    def running(s: Search) -> Array:
        return ~s.done & (s.k < _MOST_TRIALS)

    zero = jnp.zeros((), jnp.int32)
    before = Trial(jnp.zeros_like(h), nothing, start, margins)
    none = jnp.zeros(margins.value.size, bool)
    first = Search(
        before, jnp.zeros_like(h), h, margins.value, margins.value, none, h, zero, zero, zero, jnp.asarray(idle)
    )
    return jax.lax.while_loop(running, look, first)


def dip(before: Margins, within: Array, trial: Trial, window: Array) -> Array:
    """Where to look for a margin that is negative inside a trial, by its polynomial; infinite if none can be.

    The fourth difference of the five values bounds the polynomial's error: a margin that comes as close to zero is
    looked at too. Gaps must still fall there: half way from their crossing to the bottom. A loop over places, not an
    array of them: with arrays of more than 512 bytes anywhere inside, XLA runs the whole step on its thread pool.
    """
    values = jnp.concatenate([before.value[None], within, trial.margins.value[None]])
    newton = [values[0]]
    for _ in range(4):
        values = jnp.diff(values, axis=0)
        newton.append(values[0])
    doubt = jnp.abs(newton[4])

    def look(j: Array, found: tuple[Array, ...]) -> tuple[Array, ...]:
        lowest, bottom, first = found
        x = jnp.sin(0.5 * jnp.pi * j / _FINE) ** 2
        curve, weight = newton[0], 1.0
        for i in range(1, 5):
            weight = weight * (4.0 * x - (i - 1)) / i
            curve = curve + weight * newton[i]
        first = jnp.where((curve < 0) & (first == 0), x, first)
        return jnp.minimum(curve, lowest), jnp.where(curve < lowest, x, bottom), first

    zero = jnp.zeros_like(newton[0])
    lowest, bottom, first = jax.lax.fori_loop(1, _FINE, look, (newton[0], zero, zero))
    tau = trial.tau * jnp.where(lowest < 0, 0.5 * (first + bottom), bottom)
    inner = (bottom > 0) & (lowest < trial.margins.value) & (newton[0] > 0)
    return jnp.min(jnp.where(inner & (lowest < doubt) & (tau > window), tau, jnp.inf), initial=jnp.inf)


def crossing(s: Search, aim: Aim) -> tuple[Array, Array]:
    """Where to stop for the first of the suspects to cross zero, and which these are."""
    trial, now = s.trial, s.trial.margins
    falls = now.rate < 0
    hit = jnp.where(falls, trial.tau - now.value / jnp.where(falls, now.rate, -1.0), 0.5 * (s.low + s.high))
    drop = s.margin_low - s.margin_high
    share = jnp.where(drop > 0, s.margin_low / jnp.where(drop > 0, drop, 1.0), 0.5)
    ends = s.low + jnp.clip(share, 0.0, 1.0) * (s.high - s.low) + 0.25 * aim.window
    times = jnp.where(s.suspects, jnp.where(now.timed, hit - aim.lead * now.gaps, ends), jnp.inf)
    earliest = jnp.min(times, initial=jnp.inf)
    return earliest, s.suspects & (times == earliest)


def status_of(s: Search, window: Array) -> Array:
    """Whether the search succeeded: the piece was solved, margins are numbers, and no gap jumps across the bracket."""
    now = s.trial.margins
    scale = jnp.abs(s.margin_low) + jnp.abs(s.margin_high)
    narrow = s.high - s.low <= window
    jumps = s.margin_low - s.margin_high > _JUMP * jnp.abs(now.rate) * window + _ROUNDING * (1.0 + scale)
    lost = (jnp.any(s.suspects & now.gaps & jumps & narrow)) | (~s.done & (s.k >= _MOST_TRIALS))
    status = jnp.where(lost, Status.EVENT_NOT_LOCATED, s.trial.piece.status)
    return jnp.where(jnp.any(jnp.isnan(now.value + now.rate)), Status.NOT_FINITE, status).astype(jnp.int32)
