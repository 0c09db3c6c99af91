"""How far each law is from an event: gap of an open contact, force of a closed one, friction left, slip velocity."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.methods.capturing.active_set import Motion, Point
from carom.methods.capturing.modes import Modes, by_row, in_plane, lengths, totals, units

_SLACK = 1e-12  # friction may exceed its limit by this much, relative
_NEVER = 1.0
_APPROACH = 0.5  # a piece lasts no longer than this part of the time in which slip in a plane could stop or turn


class Margins(eqx.Module):
    """One entry per law, contacts first: `value` is negative behind an event; `rate` is its derivative if `timed`."""

    value: Array
    rate: Array
    timed: Array
    contacts: int = eqx.field(static=True)

    @property
    def gaps(self) -> Array:
        """Laws whose margin is a gap."""
        return self.timed & (np.arange(self.value.size) < self.contacts)

    @property
    def over(self) -> Array:
        """Laws that have had their event; a gap must also fall, for after a bounce it may be negative and rise."""
        return (self.value < 0) & (~self.gaps | (self.rate < 0))


def margins(now: Motion, modes: Modes, span: Array) -> Margins:
    """Margins of all laws; velocities that are rounding, of accelerations over `span` too, are none."""
    at, laws = now.point, now.point.laws
    n, noise = laws.contacts, at.noise(span)
    value, rate, timed = jnp.where(modes.closed, now.lam[:n], at.gap), at.gamma[:n] + noise[:n], ~modes.closed
    if laws.count > n:
        slip, turn = slipping(now, modes)
        slides = jnp.where(in_plane(laws), _NEVER, slip + lengths(laws, noise))
        friction = jnp.where(modes.stuck, reserve(now), slides)
        value = jnp.concatenate([value, jnp.where(modes.carried & at.rough, friction, _NEVER)])
        rate, timed = jnp.concatenate([rate, turn]), jnp.concatenate([timed, ~modes.stuck])
    return Margins(value, rate, timed, n)


def forces_left(now: Motion, modes: Modes) -> Array:
    """Margins of held laws: closing forces, and friction that is left; one of the others."""
    n = now.point.laws.contacts
    value = jnp.where(modes.closed, now.lam[:n], _NEVER)
    if now.point.laws.count == n:
        return value
    return jnp.concatenate([value, jnp.where(modes.stuck & modes.carried & now.point.rough, reserve(now), _NEVER)])


def both_sides(now: Motion, modes: Modes, span: Array) -> Array:
    """Margins, and those of the other limit of friction that sticks along a line: each is smooth, the least is not."""
    value, laws = margins(now, modes, span).value, now.point.laws
    n = laws.contacts
    if laws.count == n:
        return value
    low, high = limits(now)
    force = totals(laws, now.lam)
    sided = modes.stuck & modes.carried & now.point.rough & ~in_plane(laws)
    slack = _SLACK * lengths(laws, now.lam)
    first = jnp.where(sided, force - low + slack, value[n:])
    return jnp.concatenate([value[:n], first, jnp.where(sided, high - force + slack, _NEVER)])


def slipping(now: Motion, modes: Modes) -> tuple[Array, Array]:
    """Slip velocity of every friction law along its direction of slip, and its rate."""
    at, laws = now.point, now.point.laws
    d = modes.directions(at.gamma, at.noise(jnp.zeros(())))
    return totals(laws, d * at.gamma), totals(laws, d * now.relative)


def limits(now: Motion) -> tuple[Array, Array]:
    """Lowest and highest force of every friction law."""
    at = now.point
    radius = at.laws.with_friction(at.friction * now.lam[: at.laws.contacts])
    return jnp.concatenate([-radius, at.limits[:, 0]]), jnp.concatenate([radius, at.limits[:, 1]])


def reserve(now: Motion) -> Array:
    """How much the friction forces may still grow."""
    laws = now.point.laws
    low, high = limits(now)
    force, size = totals(laws, now.lam), lengths(laws, now.lam)
    along_line = jnp.minimum(force - low, high - force)
    return jnp.where(in_plane(laws), high - size, along_line) + _SLACK * size


def slip_begins(now: Motion, modes: Modes, slips: Array) -> Modes:
    """The modes after friction laws that stuck have reached their limits: slip against the force."""
    laws = now.point.laws
    low, high = limits(now)
    force = totals(laws, now.lam)
    forward = jnp.where(force - low < high - force, 1.0, -1.0)
    begins = jnp.where(by_row(laws, in_plane(laws)), -units(laws, now.lam), by_row(laws, forward))
    heading = jnp.where(by_row(laws, slips), begins, modes.heading)
    return Modes(modes.closed, modes.stuck & ~slips, heading, laws)


def come_to_rest(now: Motion, modes: Modes, window: Array) -> Array:
    """Friction laws that slide and stop within `window`."""
    at = now.point
    slip, turn = slipping(now, modes)
    return (
        modes.carried
        & at.rough
        & ~modes.stuck
        & (turn < 0)
        & (slip <= -turn * window + lengths(at.laws, at.noise(window)))
    )


def resolved(now: Motion, modes: Modes, span: Array) -> Array:
    """The longest piece that resolves how slip in a plane turns; slip that begins goes straight ahead."""
    at, laws = now.point, now.point.laws
    slip, acceleration = lengths(laws, at.gamma), lengths(laws, now.relative)
    moves = modes.carried & at.rough & ~modes.stuck & (slip > lengths(laws, at.noise(span)))
    turns = moves & in_plane(laws) & (acceleration > 0)
    return jnp.min(jnp.where(turns, _APPROACH * slip / jnp.where(turns, acceleration, 1.0), jnp.inf), initial=jnp.inf)


def at_rest(at: Point, rest: float) -> Array:
    """Friction laws that do not slip: their velocity is under the part `rest` of its terms."""
    return at.rough & (lengths(at.laws, at.gamma) <= rest * lengths(at.laws, at.size))


def headings(at: Point, x: Array) -> Array:
    """Unit directions of x by row, signs along a line."""
    along_line = jnp.where(x < 0, -1.0, 1.0)
    return jnp.where(by_row(at.laws, in_plane(at.laws)), units(at.laws, x), along_line)
