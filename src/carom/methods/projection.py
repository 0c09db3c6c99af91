"""The way back onto what a step must keep: gaps of closed contacts, and bilateral constraints, against drift."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.systems.system import System

_PROJECTIONS = 3


def projected(
    system: System,
    t: Array,
    q: Array,
    v: Array,
    left: Callable[[Array, Array], tuple[Array, Array]],
    along: Callable[[Array], Array],
) -> tuple[Array, Array]:
    """q and v moved by the velocities `along(r)` until nothing is `left(q, v)`, at the level of q and of velocities.

    The way stays the same in all corrections: M^{-1} W^T and its multipliers at one point near by.
    """

    def correct(_, pair: tuple[Array, Array]) -> tuple[Array, Array]:
        x, u = pair
        x = x - system.rate(t, x, along(left(x, u)[0])) + system.rate(t, x, jnp.zeros_like(u))
        return x, u - along(left(x, u)[1])

    return jax.lax.fori_loop(0, _PROJECTIONS, correct, (q, v))
