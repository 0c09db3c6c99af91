"""Rough location of the first event inside a step: Newton on gaps, secants on multipliers [Acary2012 Algorithm 1].

An open contact has an event where its gap is negative and falling; a closed one where its multiplier is negative. Right
after a bounce the gap may be negative but rises: the bracket then begins at the apex, as the corrected algorithm wants.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.methods.active_set import Motion, Piece
from carom.state import Status

_MOST_TRIALS = 120
_JUMP = 100.0  # a gap that changes by so many times its rate over the bracket jumps
_ROUNDING = 1e-12
_CLOSE = 1 / 16  # of the window: impacts are aimed at so well


class Trial(eqx.Module):
    """A piece of length tau and what it found at its end."""

    tau: Array
    piece: Piece
    at: Motion
    active: Array

    @property
    def impacts(self) -> Array:
        """Open contacts that have passed through the surface and still go down."""
        n = self.active.size
        return ~self.active & (self.at.gap < 0) & (self.at.gamma[:n] < 0)

    @property
    def releases(self) -> Array:
        """Closed contacts that pull: persistent contact is released by the multiplier, never by the gap."""
        return self.active & (self.at.lam[: self.active.size] < 0)

    @property
    def happened(self) -> Array:
        """Whether an event lies before the end."""
        return jnp.any(self.impacts | self.releases)


class Search(eqx.Module):
    """The bracket [low, high] around the first event, the trial made last, and the events seen at `high`."""

    trial: Trial
    low: Array
    high: Array
    lam_low: Array
    lam_high: Array
    gap_low: Array
    gap_high: Array
    suspects: Array
    width: Array
    k: Array
    evaluations: Array
    iterations: Array
    done: Array


class Aim(eqx.Module):
    """Where to stop: `lead` before an impact, just behind a release, to a part of `window`; not closer than `floor`."""

    window: Array
    lead: Array
    floor: Array


def locate(attempt: Callable[[Array], Trial], start: Motion, active: Array, h: Array, aim: Aim, idle: Array) -> Search:
    """The first event in (0, h], to within `aim.window`; without one the trial over the whole step.

    `attempt(tau)` integrates over tau. `idle` (of a lane that has something else to do) ends the search at once.
    """
    window = aim.window
    n = active.size

    def next_trial(s: Search) -> Array:
        tau, _ = crossing(s, aim)
        tau = jnp.where((tau > s.low) & (tau < s.high), tau, 0.5 * (s.low + s.high))
        slow = (s.k % 3 == 2) & (s.high - s.low > 0.3 * s.width)
        tau = jnp.where(slow, 0.5 * (s.low + s.high), tau)
        tau = jnp.where(s.high - s.low <= window, s.high, tau)
        tau = jnp.where(h - tau < aim.floor, h, tau)
        return jnp.where(s.k == 0, h, tau)

    def look(s: Search) -> Search:
        trial = attempt(next_trial(s))
        seen = trial.happened
        closing = s.high - s.low <= window
        keep = lambda new, old: jnp.where(seen, new, old)  # noqa: E731
        s = Search(
            trial,
            keep(s.low, trial.tau),
            keep(trial.tau, s.high),
            keep(s.lam_low, trial.at.lam[:n]),
            keep(trial.at.lam[:n], s.lam_high),
            keep(s.gap_low, trial.at.gap),
            keep(trial.at.gap, s.gap_high),
            keep(trial.impacts | trial.releases, s.suspects),
            jnp.where(s.k % 3 == 2, s.high - s.low, s.width),
            s.k + 1,
            s.evaluations + trial.piece.evaluations + 1,
            s.iterations + trial.piece.iterations,
            s.done,
        )
        tau, releases = crossing(s, aim)
        near = jnp.where(
            releases, seen & (jnp.abs(trial.tau - tau) <= window), jnp.abs(trial.tau - tau) <= _CLOSE * window
        )
        free = ~jnp.any(s.suspects)
        failed = trial.piece.status != Status.OK
        return eqx.tree_at(lambda x: x.done, s, free | near | (closing & seen) | failed)

    def running(s: Search) -> Array:
        return ~s.done & (s.k < _MOST_TRIALS)

    zero = jnp.zeros((), jnp.int32)
    empty = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(attempt, h))
    before = eqx.tree_at(lambda x: (x.tau, x.at, x.active), empty, (jnp.zeros_like(h), start, active))
    lam, none = start.lam[:n], jnp.zeros(n, bool)
    first = Search(
        before, jnp.zeros_like(h), h, lam, lam, start.gap, start.gap, none, h, zero, zero, zero, jnp.asarray(idle)
    )
    return jax.lax.while_loop(running, look, first)


def crossing(s: Search, aim: Aim) -> tuple[Array, Array]:
    """Where to stop for the first of the suspects to cross zero, and whether it is a release."""
    trial, n = s.trial, s.suspects.size
    rate = trial.at.gamma[:n]
    falls = rate < 0
    hit = jnp.where(falls, trial.tau - trial.at.gap / jnp.where(falls, rate, -1.0), 0.5 * (s.low + s.high))
    drop = s.lam_low - s.lam_high
    share = jnp.where(drop > 0, s.lam_low / jnp.where(drop > 0, drop, 1.0), 0.5)
    opens = s.low + jnp.clip(share, 0.0, 1.0) * (s.high - s.low)
    times = jnp.where(s.suspects, jnp.where(trial.active, opens + 0.25 * aim.window, hit - aim.lead), jnp.inf)
    earliest = jnp.min(times, initial=jnp.inf)
    return earliest, jnp.any(s.suspects & trial.active & (times == earliest))


def status_of(s: Search, window: Array) -> Array:
    """Whether the search succeeded: the piece was solved, and no gap jumps across the bracket."""
    rate = jnp.abs(s.trial.at.gamma[: s.suspects.size])
    scale = jnp.abs(s.gap_low) + jnp.abs(s.gap_high)
    narrow = s.high - s.low <= window
    jumps = s.gap_low - s.gap_high > _JUMP * rate * window + _ROUNDING * (1.0 + scale)
    lost = (jnp.any(s.suspects & ~s.trial.active & jumps & narrow)) | (~s.done & (s.k >= _MOST_TRIALS))
    return jnp.where(lost, Status.EVENT_NOT_LOCATED, s.trial.piece.status).astype(jnp.int32)
