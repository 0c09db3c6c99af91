"""Consistent starts: the nearest state on the constraint manifold, and its multipliers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.running.compiled import compiled
from carom.state import State
from carom.systems.constrained import accelerations, directions, mass_matrix, rank_measure, velocity_residual
from carom.systems.system import System

_ITERATIONS = 40
_RANK = 1e-13


def consistent(system: System, state: State) -> State:
    """The state on the constraint manifold next to `state`, near in the sense of the kinetic energy.

    q is moved along M^{-1} G^T until g = 0, then v until d/dt g = 0 and k = 0.

    Raises:
        ValueError: if the constraints are redundant there, or no point of the manifold is found near `state`.

    Example:
        >>> state = carom.consistent(system, carom.State(q=[1.0, 0.1], v=[0.0, -1.0]))
    """
    q, v, residuals, rank, u = (np.asarray(x) for x in _project(system, state))
    if not rank > _RANK:
        msg = "carom.consistent: the constraints are redundant (or lose rank) there; remove those implied by others"
        raise ValueError(msg)
    if not (np.isfinite(residuals).all() and (residuals < 1e-10).all() and np.isfinite(u).all()):
        msg = (
            "carom.consistent: found no state near the given one that fulfils the constraints; "
            f"|g(q)| = {residuals[0]:.3g}, |d/dt g(q)| = {residuals[1]:.3g} are left. Start nearer to the manifold"
        )
        raise ValueError(msg)
    return State(q, v, state.t)


def multiplier(system: System, state: State) -> np.ndarray:
    """The multipliers (lambda, psi) at a consistent state, Jay1998 (17h), with `M v' = f - G^T lambda - K^T psi`.

    Example:
        >>> carom.multiplier(*carom.models.pendulum())
    """
    return np.asarray(compiled(accelerations)(system, state.t, state.q, state.v).u)


def constraint_residuals(system: System, t: Array, q: Array, v: Array) -> tuple[Array, Array]:
    """|g| relative to |G| |q| and |(d/dt g, k)| relative to |G| |v|, largest entries."""
    D = directions(system, t, q, v)
    size = jnp.max(jnp.abs(D), initial=1e-300)
    position = jnp.max(jnp.abs(system.constraint(t, q)), initial=0.0) / (
        size * jnp.maximum(jnp.max(jnp.abs(q)), 1e-300)
    )
    velocity = jnp.max(jnp.abs(velocity_residual(system, t, q, v)), initial=0.0)
    return position, velocity / (size * jnp.maximum(jnp.max(jnp.abs(v)), 1e-12))


@compiled
def _project(system: System, state: State) -> tuple[Array, Array, Array, Array, Array]:
    t, n = state.t, state.v.size

    def pulled(q: Array, C: Array, residual: Array) -> Array:
        """The smallest change in the norm of the kinetic energy with C change = residual."""
        M = mass_matrix(system, t, q, n)
        matrix = jnp.block([[M, C.T], [C, jnp.zeros((residual.size, residual.size))]])
        return jnp.linalg.solve(matrix, jnp.concatenate([jnp.zeros(n), residual]))[:n]

    def move_q(_, q: Array) -> Array:
        G = jax.jacfwd(lambda x: system.constraint(t, x))(q)
        return q - pulled(q, G, system.constraint(t, q))

    def move_v(_, v: Array) -> Array:
        C = jax.jacfwd(lambda x: velocity_residual(system, t, q, x))(v)
        return v - pulled(q, C, velocity_residual(system, t, q, v))

    q = jax.lax.fori_loop(0, _ITERATIONS, move_q, state.q)
    v = jax.lax.fori_loop(0, _ITERATIONS, move_v, state.v)
    residuals = jnp.stack(constraint_residuals(system, t, q, v))
    return q, v, residuals, rank_measure(directions(system, t, q, v)), accelerations(system, t, q, v).u
