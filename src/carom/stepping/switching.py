r"""Switching points: located by halving, passed with the smallest step [Studer2008 secs 5 and 9].

Three steps are kept in mind: the *accepted* one, which cannot be rejected any more, the *previous* one, and the
*actual* one under computation. If the actual step finds other modes than the previous one, the switching point lies
in either of the two: both are rejected, and the search goes on from the end of the accepted step with half the step
size.
"""

from __future__ import annotations

import enum

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.methods.base import AbstractMethod, Gives
from carom.names import register
from carom.state import Carry, Mark, Row, State, Status, choose, reals
from carom.stepping.base import SAME, AbstractStepping, Aim, Tried, after, take
from carom.systems.system import System


class Outcome(enum.IntEnum):
    """How an attempt ended [Studer2008 Table II]."""

    START = 0
    SMOOTH = 1
    INACCURATE = 2
    DETECTED = 3
    RESOLVED = 4
    FAILED = 5


class Search(eqx.Module):
    """The stepping's memory: where the accepted step ended, where the previous one began, and the next step size.

    `t_hold` is the paper's t_noInc: no step may grow before it is passed. `last` is (begin, h, outcome) of the latest
    attempt, for the search history.
    """

    accepted: Mark
    begin: Array
    t_hold: Array
    h: Array
    last: Array


@register
class Switching(AbstractStepping):
    """Large steps while the modes stay, the smallest step where they change.

    Args:
        h_min: step size with which switching points are passed; it sets the floor of the global error.
        h_max: largest step size.
        inaccurate: "retry" halves a step whose error estimate exceeds the tolerance, "accept" takes it (sec. 9.3). With
            "retry" a tolerance that even 3 h_min cannot reach keeps the run at h_min: raise it, or lower h_min.

    Example:
        >>> stepping = carom.Switching(h_min=1e-5, h_max=0.05)
    """

    h_min: Array
    h_max: Array
    inaccurate: str = eqx.field(static=True)

    goes_back = True
    needs = frozenset({Gives.MODES, Gives.WHOLE_STEPS})
    remedy = "Raise h_min"

    def __init__(self, h_min: float, h_max: float, inaccurate: str = "retry"):
        for name, value in (("h_min", h_min), ("h_max", h_max)):
            reals(value, f"Switching: {name}", "a positive number")
        if not (np.isfinite(h_max) and 0 < h_min <= h_max):
            msg = f"Switching: needs 0 < h_min <= h_max, got h_min = {h_min}, h_max = {h_max}"
            raise ValueError(msg)
        if inaccurate not in ("retry", "accept"):
            msg = f"Switching: inaccurate must be 'retry' or 'accept', got '{inaccurate}'"
            raise ValueError(msg)
        self.h_min, self.h_max = jnp.asarray(h_min, float), jnp.asarray(h_max, float)
        self.inaccurate = inaccurate

    @property
    def longest(self) -> float:
        """The largest step."""
        return float(self.h_max)

    def init(self, system: System, method: AbstractMethod, state: State, ends: Array) -> Search:
        """The first step has the smallest size and is accepted."""
        del ends
        zero = jnp.zeros((), jnp.int64)
        start = Mark(state, method.init(system, state), zero, zero)
        never = jnp.asarray(-jnp.inf, float)
        return Search(start, never, state.t, self.h_min, jnp.zeros(3))

    def attempt(self, system: System, method: AbstractMethod, carry: Carry) -> tuple[Carry, Row]:
        """One actual step (Fig. 7)."""
        search, here = carry.stepping, carry.mark
        aim = Aim.within(system, carry, search.h)
        tried = take(system, method.with_smallest_step(self.h_min), carry, aim)
        outcome = self.judge(tried, method.modes(carry.memory), aim.h)
        forward = (outcome == Outcome.SMOOTH) | (outcome == Outcome.RESOLVED)
        status = jnp.where(outcome == Outcome.FAILED, tried.status, Status.OK)
        back = choose(outcome == Outcome.DETECTED, search.accepted, here)
        search = self.remember(search, outcome, aim.h, here, tried.ahead)
        return after(system, carry, tried, forward, search, status, back)

    def judge(self, tried: Tried, modes: Array, h: Array) -> Array:
        """The outcome of an actual step; at the smallest size nothing can be rejected."""
        least = h <= self.h_min * (1 + SAME)
        failed = tried.status != Status.OK
        switched = jnp.any(tried.info.mode != modes)
        loose = jnp.asarray(False)
        if tried.info.error is not None and self.inaccurate == "retry":
            loose = tried.info.error > 1.0
        code = jnp.where(switched, jnp.where(least, Outcome.RESOLVED, Outcome.DETECTED), Outcome.SMOOTH)
        code = jnp.where(loose & ~switched & ~least, Outcome.INACCURATE, code)
        return jnp.where(failed, jnp.where(least, Outcome.FAILED, Outcome.INACCURATE), code)

    def remember(self, search: Search, outcome: Array, h: Array, here: Mark, ahead: Mark) -> Search:
        """Accepted step, t_noInc and next step size (Tables IV-VI, with h bounded by h_max)."""
        t = here.state.t
        smooth, resolved = outcome == Outcome.SMOOTH, outcome == Outcome.RESOLVED
        detected = outcome == Outcome.DETECTED
        final = resolved | (smooth & (h <= self.h_min * (1 + SAME)))
        accepted = choose(final, ahead, choose(smooth, here, search.accepted))
        larger = jnp.minimum(jnp.maximum(2.0 * search.h, 3.0 * self.h_min), self.h_max)
        smaller = jnp.where(h < 6.0 * self.h_min, self.h_min, 0.5 * h)
        grows = resolved | (smooth & (search.begin > search.t_hold))
        size = jnp.where(grows, larger, jnp.where(smooth, search.h, smaller))
        begin = jnp.where(smooth | resolved, t, jnp.where(detected, -jnp.inf, search.begin))
        t_hold = jnp.where(detected | resolved, t + h, search.t_hold)
        return Search(accepted, begin, t_hold, size, jnp.stack([t, h, outcome.astype(float)]))
