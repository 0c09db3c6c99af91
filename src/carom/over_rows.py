"""What a system says of many rows at once, compiled."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from carom.interpolation import jet
from carom.methods.base import AbstractMethod
from carom.running.compiled import compiled
from carom.systems.system import System


def repeated_last(n: int) -> np.ndarray:
    """Indices of n rows, the last repeated up to a power of two: runs of other lengths share compiled programs."""
    return np.minimum(np.arange(1 << (n - 1).bit_length()), n - 1)


@compiled
def energies(system: System, t: Any, q: Any, v: Any) -> tuple[jax.Array, jax.Array]:
    """Kinetic and potential energy of rows."""

    def one(row):
        t, q, v = row
        return system.kinetic_energy(t, q, v), system.potential_energy(t, q)

    return jax.lax.map(one, (jnp.asarray(t), jnp.asarray(q), jnp.asarray(v)))


@compiled
def gaps(system: System, t: Any, q: Any) -> jax.Array:
    """Gaps of all contacts."""
    return jax.lax.map(lambda row: system.gaps(*row), (jnp.asarray(t), jnp.asarray(q)))


@compiled
def drift(system: System, t: Any, q: Any) -> jax.Array:
    """g(t, q) of the constraints."""
    return jax.lax.map(lambda row: system.constraint(*row), (jnp.asarray(t), jnp.asarray(q)))


@compiled
def velocities(system: System, outer: bool, t: Any, q: Any, v: Any) -> jax.Array:
    """The velocities of rows the user sees, or those a method steps."""
    convert = system.outer_velocity if outer else system.inner_velocity
    return jax.lax.map(lambda row: convert(*row), (jnp.asarray(t), jnp.asarray(q), jnp.asarray(v)))


@compiled
def jets(system: System, method: AbstractMethod, t: Any, q: Any, v: Any, mode: Any) -> Any:
    """First and second derivatives of q and v at rows; only q' where contact forces are not known."""

    def one(row):
        *place, mode = row
        field = method.field(system, mode)
        return ((system.rate(*place), None), None) if field is None else jet(field, *place)

    return jax.lax.map(one, (jnp.asarray(t), jnp.asarray(q), jnp.asarray(v), mode))
