"""Energies along a solution."""

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
