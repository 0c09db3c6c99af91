"""The features of a system: what a method must take into account beyond masses and a potential V(q)."""

from __future__ import annotations

import enum
from typing import Any

from carom.arguments import UserFunction
from carom.running.compiled import remembered


class Feature(enum.StrEnum):
    """What a system may have, by the words of messages and tables; in their order.

    Example:
        >>> assert carom.System(contacts=carom.Contacts(lambda q: q[:1])).features == {Feature.CONTACTS}
    """

    MASS_MATRIX = "mass matrix"
    MASS_OF_Q = "mass of q"
    EXPLICIT_TIME = "explicit time"
    FORCES = "forces"
    MULTIPLIER_FORCES = "multiplier forces"
    RATE_DAMPING = "rate damping"
    KINEMATICS = "kinematics"
    CONSTRAINTS = "constraints"
    NONHOLONOMIC = "nonholonomic constraints"
    HAMILTONIAN = "hamiltonian"
    CONTACTS = "contacts"
    FRICTION = "friction"
    LISTED_PAIRS = "listed pairs"
    MOVING_PAIRS = "moving pairs"
    PAIR_MEMORY = "friction with memory"


SMOOTH = frozenset(
    {
        Feature.MASS_MATRIX,
        Feature.MASS_OF_Q,
        Feature.EXPLICIT_TIME,
        Feature.FORCES,
        Feature.RATE_DAMPING,
        Feature.KINEMATICS,
    }
)
NONSMOOTH = frozenset({Feature.CONTACTS, Feature.FRICTION})


@remembered
def features_of(system: Any) -> frozenset[Feature]:
    """The features that a system has."""
    present = {
        Feature.MASS_OF_Q: isinstance(system.mass, UserFunction),
        Feature.MASS_MATRIX: not isinstance(system.mass, UserFunction) and system.mass.ndim == 2,
        Feature.EXPLICIT_TIME: any(isinstance(p, UserFunction) and p.sees_time for p in system.potential.values()),
        Feature.FORCES: bool(system.forces),
        Feature.MULTIPLIER_FORCES: any("lam" in f.takes for f in system.forces.values()),
        Feature.RATE_DAMPING: bool(system.rate_damping),
        Feature.KINEMATICS: system.kinematics is not None or system.shift is not None,
        Feature.CONSTRAINTS: system.constraints is not None,
        Feature.NONHOLONOMIC: system.nonholonomic is not None,
        Feature.HAMILTONIAN: system.hamiltonian is not None,
        Feature.CONTACTS: system.contacts is not None,
        Feature.FRICTION: system.friction is not None or any(group.has_friction for group in system.contact_groups),
        Feature.LISTED_PAIRS: system.is_listed,
        Feature.MOVING_PAIRS: bool(system.pair_potentials),
        Feature.PAIR_MEMORY: any(part.friction is not None for part in system.pair_potentials.values()),
    }
    return frozenset(name for name, there in present.items() if there)
