"""Where a function of time changes its sign inside a step: what `stop` and sections share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.interpolation import hermite, jet, quintic
from carom.methods.base import AbstractMethod
from carom.state import Row, State, shortened
from carom.systems.system import System

_BISECTIONS = 60
_LOOKS = 4  # parts of a step at whose ends, and between them, a function is looked at
PLACES = 2 * _LOOKS  # parts of a step that are told apart
DIRECTIONS = {"rising": 1, "falling": -1, "both": 0}


def known_direction(direction: str, name: str) -> str:
    """A direction of crossings, refused by name if it is none."""
    if direction not in list(DIRECTIONS):
        msg = f"{name}: direction must be 'rising', 'falling' or 'both', got {shortened(direction)}"
        raise ValueError(msg)
    return direction


def inside_step(system: System, method: AbstractMethod, a: State, b: State, row: Row) -> Callable[[Array], State]:
    """The state at any time of the step from a to b that left this row."""
    v_b = b.v if row.info.v_minus is None else row.info.v_minus
    return interpolant(system, method.field(system, row.info.mode), a, b, v_b)


def interpolant(system: System, field: Any, a: State, b: State, v_b: Array) -> Callable[[Array], State]:
    """The state at any time of a step: of order 6 where the forces are known, else cubic in q and linear in v."""
    if field is None:
        slopes = system.rate(a.t, a.q, a.v), system.rate(b.t, b.q, v_b)

        def between(t: Array) -> State:
            q = hermite(a.t, b.t, a.q, b.q, *slopes, t)
            return b.moved(t, q, a.v + (t - a.t) / (b.t - a.t) * (v_b - a.v))

        return between
    inner = ((system.beside(a.t, 1), a.q, a.v), (system.beside(b.t, -1), b.q, v_b))  # forces may jump at ends
    before, after = (zip((q, v), *jet(field, s, q, v)) for s, q, v in inner)
    ends = [_calm(b.t - a.t, start, end) for start, end in zip(before, after)]
    return lambda t: b.moved(t, *(quintic(a.t, b.t, start, end, t) for start, end in ends))


def _calm(width: Array, start: tuple[Array, ...], end: tuple[Array, ...]) -> Any:
    """Values and derivatives at both ends of a step, for the interpolation of order 6.

    The second derivative of a stiff motion is mostly rounding and truncation errors; where it would correct the cubic
    by more than the cubic corrects the straight line, that of the cubic takes its place.
    """
    (y0, d0, s0), (y1, d1, s1) = start, end
    secant = (y1 - y0) / width
    a, b = d0 - secant, d1 - secant
    c0, c1 = -(4 * a + 2 * b) / width, (2 * a + 4 * b) / width
    corrections, slopes = jnp.stack([s0 - c0, s1 - c1]), jnp.stack([a, b])
    wild = width * jnp.max(jnp.abs(corrections)) > 4 * jnp.max(jnp.abs(slopes))
    return (y0, d0, jnp.where(wild, c0, s0)), (y1, d1, jnp.where(wild, c1, s1))


def number_at(fn: Any, system: System, state: State) -> Array:
    """A user's function of (t, q, v), with the velocity that the user sees, as one number."""
    v = system.outer_velocity(state.t, state.q, state.v)
    return jnp.asarray(fn(system.given, t=system.turned(state.t), q=state.q, v=v), float).reshape(())


def looks(value: Callable[[Array], Array], a: Array, b: Array) -> tuple[Array, Array]:
    """Times from a to b in order, and a function there.

    Looked at are points inside the step, and between them the turning points, towards zero, of the cubics through
    values and slopes.
    """
    grid = a + (b - a) * jnp.linspace(0.0, 1.0, _LOOKS + 1)
    y, slope = jax.vmap(lambda t: jax.jvp(value, (t,), (jnp.ones_like(t),)))(grid)
    width = (b - a) / _LOOKS
    side = jnp.where(y[:-1] < 0, -1.0, 1.0)
    rest, fall, rise = side * (y[1:] - y[:-1]), side * width * slope[:-1], side * width * slope[1:]
    cubic, square = fall + rise - 2 * rest, 3 * rest - 2 * fall - rise
    root = square + jnp.sqrt(jnp.maximum(square**2 - 3 * cubic * fall, 0.0))
    turns = (fall < 0) & (rise > 0) & (root > 0)
    bottom = jnp.clip(jnp.where(turns, -fall / jnp.where(turns, root, 1.0), 0.5), 0.0, 1.0)
    inner = grid[:-1] + width * bottom
    times = jnp.append(grid[0], jnp.stack([inner, grid[1:]], axis=1).ravel())
    return times, jnp.append(y[0], jnp.stack([jax.vmap(value)(inner), y[1:]], axis=1).ravel())


def bisected(over: Callable[[Array], Array], low: Array, high: Array, wanted: Any = True) -> Array:
    """Where `over` turns true between `low` and `high`, on its side; nothing is done if nothing is wanted."""

    def halve(search: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        i, low, high = search
        middle = 0.5 * (low + high)
        beyond = over(middle)
        return i + 1, jnp.where(beyond, low, middle), jnp.where(beyond, middle, high)

    start = (jnp.zeros((), jnp.int32), low, high)
    return jax.lax.while_loop(lambda search: (search[0] < _BISECTIONS) & jnp.any(wanted), halve, start)[2]
