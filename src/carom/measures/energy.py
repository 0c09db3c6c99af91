"""Energies and momenta along a solution."""

from __future__ import annotations

import numpy as np

from carom.over_rows import energies
from carom.running.evidence import created_energy as created_energy
from carom.solution import Solution
from carom.systems.system import System


def energy(system: System, solution: Solution) -> np.ndarray:
    """Kinetic plus potential energy of every row.

    Example:
        >>> carom.measures.energy(system, sol)
    """
    kinetic, potential = energies(system.since(solution.clock.epoch), solution.elapsed, solution.q, solution.v)
    return np.asarray(kinetic) + np.asarray(potential)


def momentum(system: System, solution: Solution) -> np.ndarray:
    """Total linear momentum, the sum of M v, of every row, for coordinates that are translations along one line.

    Example:
        >>> carom.measures.momentum(system, sol)
    """
    M = np.asarray(system.since(solution.clock.epoch).mass_at(solution.elapsed[0], solution.q[0]))
    return np.sum(solution.v @ M if M.ndim == 2 else solution.v * M, axis=1)
