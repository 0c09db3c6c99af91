"""Which applied forces act on each particle by itself, seen from their derivatives."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.running.compiled import compiled
from carom.state import State
from carom.systems.system import System

_SAME = 1e-9


def forces_between_particles(system: System, state: State) -> list[str]:
    """Names of the forces on a coordinate that depend on the position or velocity of another one.

    A matrix J is diagonal if `J x / x` is the same for two random vectors x, so four products with the derivatives tell
    at any size. They are taken at `state` and beside it, where fewer terms happen to vanish.
    """
    shift = _random(0, state.q.size)
    beside = State(state.q + 0.1 * (1.0 + jnp.abs(state.q)) * shift, state.v + 0.1 * (1.0 + jnp.abs(state.v)) * shift)
    places = [(state.t, state.q, state.v), (state.t, beside.q, beside.v)]
    return [name for name in system.forces if not all(bool(_is_local(system, name, *place)) for place in places)]


@compiled
def _is_local(system: System, name: str, t: Array, q: Array, v: Array) -> Array:
    x, y = _random(1, q.size), _random(2, q.size)
    still = jnp.zeros_like(q)

    def diagonal(direction: Array, dq: Array, dv: Array) -> Array:
        return jax.jvp(lambda q, v: system.named_force(name, t, q, v), (q, v), (dq, dv))[1] / direction

    def same(a: Array, b: Array) -> Any:
        # where a force is not defined, as beside the state it may be, nothing is said
        gap = jnp.where(jnp.isfinite(a) & jnp.isfinite(b), jnp.abs(a - b), 0.0)
        return jnp.max(gap) <= _SAME * jnp.max(jnp.where(jnp.isfinite(a), jnp.abs(a), 0.0))

    by_position = same(diagonal(x, x, still), diagonal(y, y, still))
    return by_position & same(diagonal(x, still, x), diagonal(y, still, y))


def _random(seed: int, n: int) -> Array:
    return jnp.asarray(np.random.default_rng(seed).uniform(1.0, 2.0, n))
