"""What lies inside a trial that ends without an event: where a margin may be negative in between."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.arguments import UserFunction
from carom.interpolation import hermite
from carom.methods.capturing.active_set import Motion, survey
from carom.methods.capturing.location import LOOKS, Trial
from carom.methods.capturing.margins import Margins, forces_left, margins
from carom.methods.capturing.modes import Modes
from carom.state import State
from carom.systems.system import System


class Course(eqx.Module):
    """A trial from its start to its end, for looks at what lies between."""

    system: System
    state: State
    start: Motion
    at_start: Margins
    trial: Trial
    modes: Modes
    span: Array

    @property
    def turns(self) -> Array:
        """Whether a gap or slip that falls at first rises in the end."""
        before, now = self.at_start, self.trial.margins
        return jnp.any(before.timed & now.timed & (before.value > 0) & (before.rate < 0) & (now.rate > 0))

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

    def margins(self) -> Array:
        """Margins at the `LOOKS`."""
        accelerations = (self.start.acceleration, self.trial.at.acceleration)
        v = self.between(self.state.v, self.trial.piece.v, *accelerations)
        at = jax.vmap(lambda *place: survey(self.system, *place).under(self.modes))(self.times, self.q, v)
        return jax.vmap(lambda now: margins(now, self.modes, self.span).value)(at)

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
