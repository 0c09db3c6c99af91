"""Consistent starts: the nearest state on the constraint manifold, and its multipliers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.running.compiled import compiled
from carom.solvers.redundant import dependent
from carom.state import State
from carom.systems.constrained import (
    Saddle,
    accelerations,
    contradiction,
    directions,
    mass_matrix,
    motion_of,
    velocity_residual,
)
from carom.systems.system import System

_ITERATIONS = 40
_DAMPING = 1e-6  # of the multipliers' matrix where constraints depend on each other
_LEFT = 1e-10  # of constraints that hold, relative to their terms


def consistent(system: System, state: State) -> State:
    """The state on the constraint manifold next to `state`, near in the sense of the kinetic energy.

    q is moved along M^{-1} G^T until g = 0, then v until d/dt g = 0 and k = 0. Constraints may depend on each other.

    Raises:
        ValueError: if no point of the manifold is found near `state`, or the constraints contradict each other.

    Example:
        >>> state = carom.consistent(system, carom.State(q=[1.0, 0.1], v=[0.0, -1.0]))
    """
    q, v, residuals, redundant, u = (np.asarray(x) for x in _project(system, state))
    if not (np.isfinite(residuals).all() and (residuals < _LEFT).all() and np.isfinite(u).all()):
        why = "Start nearer to the manifold"
        if redundant and np.isfinite(residuals).all():
            rank = f"{u.size - int(redundant)} of {u.size}"
            why = f"Only {rank} constraints are independent there: the others contradict them"
        names = ("|g(q)|", "|d/dt g(q)|", "|d2/dt2 g(q)|")
        left = ", ".join(f"{name} = {value:.3g}" for name, value in zip(names, residuals))
        msg = (
            "carom.consistent: found no state near the given one that fulfils the constraints; "
            f"{left} are left (relative to their terms). {why}"
        )
        raise ValueError(msg)
    return State(q, v, state.t)


def multiplier(system: System, state: State) -> np.ndarray:
    """The multipliers (lambda, psi) at a consistent state, Jay1998 (17h), with `M v' = f - G^T lambda - K^T psi`.

    Example:
        >>> carom.multiplier(*carom.models.pendulum())
    """
    return np.asarray(compiled(accelerations)(system, state.t, state.q, state.v).u)


def constraint_residuals(system: System, t: Array, q: Array, v: Array, D: Array | None = None) -> tuple[Array, Array]:
    """|g| relative to |G| |q| and |(d/dt g, k)| relative to |G| |v|, largest entries; D: the directions, if known."""
    D = directions(system, t, q, v) if D is None else D
    size = jnp.max(jnp.abs(D), initial=1e-300)
    position = jnp.max(jnp.abs(system.constraint(t, q)), initial=0.0) / (
        size * jnp.maximum(jnp.max(jnp.abs(q)), 1e-300)
    )
    velocity = jnp.max(jnp.abs(velocity_residual(system, t, q, v)), initial=0.0)
    return position, velocity / (size * jnp.maximum(jnp.max(jnp.abs(v)), 1e-12))


@compiled
def _project(system: System, state: State) -> tuple[Array, Array, Array, Array, Array]:
    t, n = state.t, state.v.size

    def pulled(M: Array, C: Array, residual: Array) -> Array:
        """The smallest change in the norm of M with C change = residual, as far as rows of C allow it."""
        damping = jnp.where(dependent(C) > 0, _DAMPING * motion_of(M, C), 0.0)
        matrix = jnp.block([[M, C.T], [C, -jnp.diag(damping)]])
        return jnp.linalg.solve(matrix, jnp.concatenate([jnp.zeros(len(M)), residual]))[: len(M)]

    def move_q(_, q: Array) -> Array:
        G = jax.jacfwd(lambda x: system.constraint(t, x))(q)
        return q - pulled(_inertia(system, t, q, state.v), G, system.constraint(t, q))

    def move_v(_, v: Array) -> Array:
        C = jax.jacfwd(lambda x: velocity_residual(system, t, q, x))(v)
        return v - pulled(mass_matrix(system, t, q, n), C, velocity_residual(system, t, q, v))

    q = jax.lax.fori_loop(0, _ITERATIONS, move_q, state.q)
    v = jax.lax.fori_loop(0, _ITERATIONS, move_v, state.v)
    saddle = Saddle.of(system, t, q, v)
    left, found = contradiction(saddle)
    residuals = jnp.stack([*constraint_residuals(system, t, q, v, saddle.D), left])
    return q, v, residuals, found.redundant, found.u


def _inertia(system: System, t: Array, q: Array, v: Array) -> Array:
    """The mass matrix as one of rates q'; of rates that no velocity brings about it has the unit matrix."""
    M = mass_matrix(system, t, q, v.size)
    if system.kinematics is None:
        return M
    B = jax.jacfwd(lambda x: system.rate(t, q, x))(v)
    back = jnp.linalg.pinv(B)
    return back.T @ M @ back + jnp.eye(q.size) - B @ back
