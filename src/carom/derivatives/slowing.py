"""Friction that all but stops, or stops for a moment only: beyond that the derivative is another one."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.interpolation import lowest
from carom.methods.base import AbstractMethod
from carom.methods.capturing.modes import in_plane, lengths, totals
from carom.solvers.contact_problem import CONSTRAINT
from carom.state import Row, State
from carom.systems.contact_rows import Event, contact_rows, laws_of, stacked_velocities
from carom.systems.system import System

_BEGINS = 1e-9  # of the speed at the end of a step: slip that begins


class Slowing(eqx.Module):
    """How near a velocity of slip came to one at which it would stop, or hardly stopped, and when that was.

    By friction law: when it last stopped, how fast it slowed then, and how fast slip changed at the end of a step.
    """

    near: Array
    near_at: Array
    stopped_at: Array
    braked: Array
    slope: Array

    @classmethod
    def nothing(cls, laws: int) -> Slowing:
        """At the start."""
        never, unknown = jnp.full(laws, -jnp.inf), jnp.full(laws, jnp.nan)
        return cls(jnp.asarray(jnp.inf), jnp.zeros(()), never, unknown, unknown)

    def after(self, system: System, method: AbstractMethod, a: State, b: State, row: Row, event: Array) -> Slowing:
        """After a step; what is not known how it moves is left out."""
        laws = laws_of(system, a)
        mode, n = jnp.asarray(row.info.mode), laws.contacts
        field = method.field(system, mode)
        if field is None:
            return self

        def speeds(t: Array, q: Array, v: Array) -> Array:
            slip = stacked_velocities(system, t, q, v)
            return jnp.where(in_plane(laws), lengths(laws, slip), mode[n:] * totals(laws, slip))

        before = (b.t, b.q, b.v if row.info.v_minus is None else row.info.v_minus)
        speed, width = speeds(a.t, a.q, a.v), b.t - a.t
        speed1, rate1 = jax.jvp(speeds, before, (jnp.ones_like(b.t), *field(*before)))
        goes_on = (event[n:] == Event.NONE) & (width > 0)
        rise = speed1 - speed
        fall = jnp.where(goes_on & ~jnp.isnan(self.slope), width * self.slope, 2 * rise - width * rate1)
        rough = laws.with_friction((contact_rows(system, a.t, a.q, a.v).friction > 0) & (mode[:n] == CONSTRAINT))
        slides = (mode[n:] != CONSTRAINT) & jnp.concatenate([rough, jnp.ones(laws.elements, bool)])
        low = jnp.maximum(lowest(speed, speed1, fall, width * rate1), 0.0)
        missed = jnp.where(slides & (fall < 0) & (rate1 > 0) & (speed > _BEGINS * speed1), low, jnp.inf)
        stops = event[n:] == Event.STICKS
        braked = jnp.where(stops, jnp.abs(self.slope), self.braked)
        slips = (event[n:] == Event.SLIPS) & ~jnp.isnan(braked)
        brief = jnp.where(slips, (a.t - self.stopped_at) * braked, jnp.inf)
        nearest = jnp.min(jnp.minimum(missed, brief), initial=jnp.inf)
        return Slowing(
            jnp.minimum(self.near, nearest),
            jnp.where(nearest < self.near, a.t, self.near_at),
            jnp.where(stops, a.t, self.stopped_at),
            braked,
            jnp.where(slides, rate1, jnp.nan),
        )
