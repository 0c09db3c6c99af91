"""Energies and momenta along a solution."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from carom.compiled import compiled
from carom.solution import Solution, energies
from carom.systems.system import System


def energy(system: System, solution: Solution) -> np.ndarray:
    """Kinetic plus potential energy of every row.

    Example:
        >>> carom.measures.energy(system, sol)
    """
    kinetic, potential = energies(system.since(solution.clock.epoch), solution.elapsed, solution.q, solution.v)
    return np.asarray(kinetic) + np.asarray(potential)


def momentum(system: System, solution: Solution) -> np.ndarray:
    """Total linear momentum, the sum of M v, of every row, for coordinates that are translations along one line."""
    M = np.asarray(system.since(solution.clock.epoch).mass_at(solution.elapsed[0], solution.q[0]))
    return np.sum(solution.v @ M if M.ndim == 2 else solution.v * M, axis=1)


def created_energy(solution: Solution) -> float:
    """By how much the energy rose above what the named forces brought in, relative to all energy there was to exchange.

    Nothing in mechanics does that: a clearly positive number means that the steps are too long. Zero is returned where
    energy may come in otherwise: friction with a moving belt, or potentials, constraints or contacts that move.

    Example:
        >>> assert carom.measures.created_energy(sol) < 0.05
    """
    system, account = solution.running, solution.account
    if not np.isfinite(account.energy).all():
        return np.inf
    contacts = system.contacts
    movable = [*system.potential.values(), system.constraints, system.nonholonomic, system.hamiltonian]
    movable += [] if contacts is None else [contacts.gap, contacts.slip]
    driven = any(getattr(fn, "sees_time", False) for fn in movable) or getattr(contacts, "slip_velocity", None)
    if driven or system.friction is not None or "multiplier forces" in system.features:
        return 0.0
    power = np.maximum(np.asarray(_power(system, solution.elapsed, solution.q, solution.v)), 0.0)
    work = np.append(0.0, np.cumsum(0.5 * (power[1:] + power[:-1]) * np.diff(solution.elapsed)))
    exchanged = account.kinetic[0] + account.potential[0] - np.min(account.potential) + work[-1]
    created = np.max(account.energy - account.energy[0] - work)
    return float(created / max(exchanged, 1e-9 * abs(account.energy[0]), np.finfo(float).tiny))


@compiled
def _power(system: System, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> jax.Array:
    def one(row: tuple[jax.Array, ...]) -> jax.Array:
        t, q, v = row
        rate = v if system.hamiltonian is None else system.rate(t, q, v)
        return jnp.vdot(system.applied_force(t, q, v), rate)

    return jax.lax.map(one, (jnp.asarray(t), jnp.asarray(q), jnp.asarray(v)))
