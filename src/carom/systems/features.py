"""The features of a system: what a method must take into account beyond masses and a potential V(q)."""

from __future__ import annotations

import enum


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
