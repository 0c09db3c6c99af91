r"""Events that come earlier or later when numbers change: shifts that are zero, but for their derivatives.

An event happens where its margin m vanishes. When a number changes, it comes later by `delta = -dm / m'`. The state
(t, q, v) before the event is therefore moved along the flow by delta; what follows begins so much later. Behind the
event that is the saltation matrix. Contacts that hit in the same critical step have delays of their own: the first is
that of the whole state, the others move what their own impulses change, and move it back afterwards. Contacts far under
their surface, those of a start in penetration, hit as soon as they fall: no surface makes them late.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from carom.methods.capturing.active_set import Motion, survey
from carom.methods.capturing.margins import slipping
from carom.methods.capturing.modes import Modes
from carom.solvers.contact_laws import Laws
from carom.solvers.redundant import multipliers
from carom.solvers.roots import rooted
from carom.state import State
from carom.systems.system import System

_PASSED = 8.0  # critical steps: a contact that has passed its surface so long ago was under it before
_UNDER = 1e-10  # of the coordinates: gaps are known to so much


def beneath(gap: Array, rate: Array, q: Array, window: Array) -> Array:
    """Contacts that were under their surface before this event."""
    return gap < -_PASSED * window * jnp.abs(rate) - _UNDER * jnp.max(jnp.abs(q))


class Impacts(eqx.Module):
    """Contacts that are about to hit, in the motion before; `window` is the length of the critical step."""

    system: System
    state: State
    before: Motion
    located: Array
    window: Array

    @property
    def falling(self) -> Array:
        """Those that have a time of impact."""
        gap, rate = self.before.point.gap, self.before.point.gamma[: self.located.size]
        return self.located & (rate < 0) & ~beneath(gap, rate, self.state.q, self.window)

    def delays(self, still: Impacts) -> Array:
        """How much later they hit than without a change: zero."""
        rate = still.before.point.gamma[: self.located.size]
        late = self.before.point.gap - still.before.point.gap
        return jnp.where(still.falling, -late / jnp.where(still.falling, rate, -1.0), 0.0)

    def first(self, delays: Array) -> Array:
        """The delay of the contact that hits first."""
        gap, rate = self.before.point.gap, self.before.point.gamma[: self.located.size]
        times = jnp.where(self.falling, -gap / jnp.where(self.falling, rate, -1.0), jnp.inf)
        return delays[jnp.argmin(times)]

    def apart(self, motion: Motion, delays: Array) -> tuple[Array, Array]:
        """What velocities, and accelerations, of the contacts make of delays beyond that of the first."""
        at, others = motion.point, jnp.where(self.falling, delays - self.first(delays), 0.0)
        rows, weights = _by_row(at.laws, self.falling), _by_row(at.laws, others)
        gained = [at.M_inv_W @ (weights * multipliers(at.G, x, rows)) for x in (at.gamma, motion.relative)]
        return gained[0], gained[1]


def _by_row(laws: Laws, x: Array) -> Array:
    """One value per contact on all of its rows."""
    return laws.by_row(x, x, jnp.zeros(laws.elements, x.dtype), jnp.zeros(laws.bilateral, x.dtype))


def before_impact(impacts: Impacts) -> State:
    """The state, as late as the contacts hit."""
    return rooted(lambda given: given.state, _delayed, impacts) if impacts.located.size else impacts.state


def _delayed(found: State, given: Impacts, still: Impacts) -> State:
    del found
    state, delays = given.state, given.delays(still)
    q_rate = still.system.rate(still.state.t, still.state.q, still.state.v)
    delay, (u, w) = still.first(delays), still.apart(still.before, delays)
    q = state.q + q_rate * delay + _along(still, u)
    return state.moved(state.t + delay, q, state.v + still.before.acceleration * delay + w)


def after_impact(impacts: Impacts, state: State, modes: Modes) -> State:
    """The state after a critical step, with what several delays have moved before it moved back."""
    if impacts.located.size < 2:
        return state
    return rooted(lambda given: given[1], _moved_back, (impacts, state, modes))


def _moved_back(found: State, given: tuple[Impacts, State, Modes], still: tuple[Impacts, State, Modes]) -> State:
    del found
    (impacts, state, _), (fixed, end, modes) = given, still
    after = survey(fixed.system, end.t, end.q, end.v).under(modes)
    u, w = fixed.apart(after, impacts.delays(fixed))
    return state.moved(state.t, state.q - _along(fixed, u), state.v - w)


def _along(impacts: Impacts, u: Array) -> Array:
    """The rate of q that velocities u add."""
    system, state = impacts.system, impacts.state
    return system.rate(state.t, state.q, state.v + u) - system.rate(state.t, state.q, state.v)


def until_rest(system: System, state: State, motion: Motion, modes: Modes, stops: Array) -> State:
    """The end of a piece, as late as the friction laws that stop there come to rest."""
    return rooted(lambda given: given[1], _rested, (system, state, motion, modes, stops))


def _rested(found: State, given: tuple, still: tuple) -> State:
    del found
    state, (system, at, motion, modes, stops) = given[1], still
    slip, turn = slipping(motion, modes)
    late = slipping(given[2], modes)[0] - slip
    falls = stops & (turn < 0)
    times = jnp.where(falls, -slip / jnp.where(falls, turn, -1.0), jnp.inf)
    first = jnp.argmin(times)
    delay = jnp.where(jnp.any(falls), -late[first] / jnp.where(falls, turn, -1.0)[first], 0.0)
    q_rate = system.rate(at.t, at.q, at.v)
    return state.moved(state.t + delay, state.q + q_rate * delay, state.v + motion.acceleration * delay)
