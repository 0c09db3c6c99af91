"""What a finished run shows about itself: energy that no force explains."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from carom.arguments import users_frame
from carom.running.compiled import compiled
from carom.solution import Solution
from carom.systems.features import Feature
from carom.systems.system import System

CREATED = 0.1  # part of the energy of a run that may come from nowhere
_BURST = 1e3  # nor those that do not grow so much in the last third
_MANY = 10**6  # coordinates
_FEWEST = 4  # rows of which three can be compared
_GROWTH = 3.0  # velocities that grow less from a third of a run to two thirds and to its end are not looked at closer


def created_energy(solution: Solution) -> float:
    """By how much the energy rose above what the named forces brought in, relative to all energy there was to exchange.

    Nothing in mechanics does that: a clearly positive number means that the steps are too long. Zero is returned where
    energy may come in otherwise: friction with a moving belt, masses, potentials, constraints or contacts that move, or
    rate damping backward in time.

    Example:
        >>> assert carom.measures.created_energy(sol) < 0.05
    """
    system, account = solution.running, solution.account
    if not np.isfinite(account.energy).all():
        return np.inf
    driven = moves(system) or any(group.has_slip_velocity for group in system.contact_groups)
    if driven or system.friction is not None or Feature.MULTIPLIER_FORCES in system.features:
        return 0.0
    if solution.clock.backward and system.rate_damping:
        return 0.0
    power = solution.clock.turned(np.asarray(_power(system, solution.elapsed, solution.q, solution.v)))
    power = np.maximum(power, 0.0)
    work = np.append(0.0, np.cumsum(0.5 * (power[1:] + power[:-1]) * np.abs(np.diff(solution.elapsed))))
    exchanged = account.kinetic[0] + account.potential[0] - np.min(account.potential) + work[-1]
    created = np.max(account.energy - account.energy[0] - work)
    return float(created / max(exchanged, 1e-9 * abs(account.energy[0]), np.finfo(float).tiny))


def moves(system: System) -> bool:
    """Whether masses, potentials, constraints or contacts depend on time, so that energy may come in through them."""
    laws = [fn for group in system.contact_groups for fn in group.functions]
    parts = [*system.potential.values(), system.mass, system.constraints, system.nonholonomic, system.hamiltonian]
    return any(getattr(fn, "sees_time", False) for fn in (*parts, *laws))


def warn_of_created_energy(solution: Solution) -> None:
    """Warn if velocities grow on and on and no force explains it; to look at three rows costs little."""
    rows: Any = solution.columns  # of a run that has just ended: `Columns`
    n = rows.count
    if n < _FEWEST and solution.carry.state.v.size > _MANY:  # to fetch the start would take longer than some steps
        return
    looked_at = (n // 3, 2 * n // 3, n - 1) if n >= _FEWEST else (0, 0, n - 1)
    first, second, third = (v @ v for v in (rows.row("v", i) for i in looked_at))
    steadily, at_once = third > _GROWTH**2 * second > _GROWTH**4 * first, third > _BURST**2 * max(first, second) > 0
    if (steadily or at_once) and created_energy(solution) > CREATED:
        energy = solution.account.energy
        change = f"from {energy[0]:.4g} to {energy.max():.4g}"
        msg = f"do not trust this run: the energy rose {change}, which no force explains; take smaller steps"
        warnings.warn(msg, stacklevel=users_frame())


@compiled
def _power(system: System, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> jax.Array:
    def one(row: tuple[jax.Array, ...]) -> jax.Array:
        t, q, v = row
        rate = v if system.hamiltonian is None else system.rate(t, q, v)
        return jnp.vdot(system.applied_force(t, q, v), rate)

    return jax.lax.map(one, (jnp.asarray(t), jnp.asarray(q), jnp.asarray(v)))
