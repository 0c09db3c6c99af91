"""Constraints at the level of velocities and accelerations, and the multipliers that keep them (Jay1998 sec. 3).

Letters: g holonomic constraints with G = dg/dq, k nonholonomic ones with K = dk/dv, u = (lambda, psi) all multipliers;
the reaction is `-G^T lambda - K^T psi`. `v` is the momentum where the system has a Hamiltonian.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.systems.features import Feature

if TYPE_CHECKING:
    from carom.systems.equations import Equations

_NONLINEAR_ITERATIONS = 12


def constraint_rate(system: Equations, t: Array, q: Array, v: Array) -> Array:
    """d/dt g(t, q) = g_t + G q', Jay1998 (2d)."""
    return jax.jvp(system.constraint, (t, q), (jnp.ones_like(t), system.rate(t, q, v)))[1]


def slip(system: Equations, t: Array, q: Array, v: Array) -> Array:
    """k(t, q, v) of the nonholonomic constraints, a vector."""
    if system.nonholonomic is None:
        return jnp.zeros(0)
    return jnp.atleast_1d(system.nonholonomic(system.given, t=t, q=q, v=v))


def velocity_residual(system: Equations, t: Array, q: Array, v: Array) -> Array:
    """(d/dt g, k): zero for a consistent velocity."""
    return jnp.concatenate([constraint_rate(system, t, q, v), slip(system, t, q, v)])


def reaction(system: Equations, t: Array, q: Array, v: Array, u: Array) -> Array:
    """-G^T lambda - K^T psi."""
    g, pull_q = jax.vjp(lambda x: system.constraint(t, x), q)
    force = -pull_q(u[: g.size])[0]
    if system.nonholonomic is None:
        return force
    return force - jax.vjp(lambda x: slip(system, t, q, x), v)[1](u[g.size :])[0]


def directions(system: Equations, t: Array, q: Array, v: Array) -> Array:
    """The rows of G and K: what the multipliers act along."""
    G = jax.jacfwd(lambda x: system.constraint(t, x))(q)
    return jnp.concatenate([G, jax.jacfwd(lambda x: slip(system, t, q, x))(v)])


def multiplier_count(system: Equations, t: Array, q: Array, v: Array) -> int:
    """How many multipliers there are."""
    return jax.eval_shape(lambda: velocity_residual(system, t, q, v)).size


def mass_matrix(system: Equations, t: Array, q: Array, n: int) -> Array:
    """M as a matrix."""
    M = system.dense_mass_at(t, q)
    return M if M.ndim == 2 else jnp.diag(jnp.broadcast_to(M, (n,)))


class Accelerations(NamedTuple):
    """v', the multipliers u, and the directions the multipliers act along."""

    a: Array
    u: Array
    directions: Array


def accelerations(system: Equations, t: Array, q: Array, v: Array) -> Accelerations:
    """Accelerations v' and multipliers u from the twice differentiated constraints, Jay1998 (2e), (8e), (17h).

    They solve `M v' + D^T u = f(u)`, `C v' = -c` with D the directions of the reaction and C = d(velocity residual)/dv;
    one linear system unless forces depend on the multipliers in a nonlinear way.
    """
    D = directions(system, t, q, v)
    still = (jnp.ones_like(t), system.rate(t, q, v), jnp.zeros_like(v))
    c = jax.jvp(lambda *x: velocity_residual(system, *x), (t, q, v), still)[1]
    C = D if system.hamiltonian is None else jax.jacfwd(lambda x: velocity_residual(system, t, q, x))(v)
    M = mass_matrix(system, t, q, v.size)

    def correct(_, z: Array) -> Array:
        a, u = z[: v.size], z[v.size :]
        f = system.force(t, q, v, u)
        f_u = jax.jacfwd(lambda x: system.force(t, q, v, x))(u) if nonlinear else jnp.zeros((v.size, u.size))
        matrix = jnp.block([[M, D.T - f_u], [C, jnp.zeros((u.size, u.size))]])
        return z - jnp.linalg.solve(matrix, jnp.concatenate([M @ a + D.T @ u - f, C @ a + c]))

    nonlinear = Feature.MULTIPLIER_FORCES in system.features
    z = correct(0, jnp.zeros(v.size + c.size))
    if nonlinear:
        z = jax.lax.fori_loop(0, _NONLINEAR_ITERATIONS, correct, z)
    return Accelerations(z[: v.size], z[v.size :], D)


def rank_measure(D: Array) -> Array:
    """Squared ratio of the smallest to the largest independent part of the rows of D; zero or NaN if they depend."""
    if D.shape[0] == 0:
        return jnp.ones(())
    gram = D @ D.T
    largest = jnp.max(jnp.diagonal(gram))
    pivots = jnp.diagonal(jnp.linalg.cholesky(gram / largest)) ** 2
    return jnp.min(pivots)
