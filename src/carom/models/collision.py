"""The collision of two beads: restitution and duration of the Kuwabara-Kono law [James2020 (5)-(9)]."""

from __future__ import annotations

from dataclasses import dataclass
from math import gamma

import numpy as np

from carom.arguments import numbers
from carom.methods.runge_kutta.explicit_rk import ExplicitRK
from carom.models.granular import granular_chain
from carom.running.run import simulate
from carom.systems.regularise import regularise
from carom.tableaux import explicit

_STEP = 1e-3  # of the unit of time (6); the collision lasts about 3.2 units
_LONGEST = 60.0
_SMALL_DAMPING = 1e-9

#: Limit of damping / (1 - e) for small damping, in closed form: 1 / ((6/5) (5/4)^(3/5) B(3/5, 3/2)) [James2020 (9)].
SMALL_DAMPING_SLOPE = gamma(2.1) / (1.2 * 1.25**0.6 * gamma(0.6) * gamma(1.5))


@dataclass(frozen=True)
class Collision:
    """Outcome of a binary collision."""

    restitution: float
    duration: float


def binary_collision(
    damping: float, mass: float = 1.0, stiffness: float = 1.0, impact_velocity: float = 1.0
) -> Collision:
    """Restitution and duration of the collision of two beads [James2020 (5)-(8)].

    Args:
        damping: Kuwabara-Kono damping gamma.
        mass: reduced mass m1 m2 / (m1 + m2).
        stiffness: k of the contact.
        impact_velocity: relative velocity before the collision.

    The collision ends at zero overlap.

    Example:
        >>> carom.models.binary_collision(damping=0.06).restitution  # 0.90229596
    """
    numbers(damping, "damping", nonnegative=True)
    unit = _time_unit(mass, stiffness, impact_velocity)
    chain, state = granular_chain([2.0, 2.0], damping=damping / unit)  # reduced mass 1; (8) is damping / unit
    sol = simulate(
        regularise(chain), state, ExplicitRK(explicit(5)), t1=_LONGEST, h=_STEP, save_every=10**6, stop=_overlap
    )
    if sol.t[-1] >= _LONGEST:
        return Collision(0.0, np.inf)
    return Collision(float(sol.v[-1, 1] - sol.v[-1, 0]), float(sol.t[-1] * unit))


def damping_from_restitution(
    restitution: float, mass: float = 1.0, stiffness: float = 1.0, impact_velocity: float = 1.0
) -> float:
    """The damping gamma that gives a measured restitution at the impact velocity of the measurement [James2020 (8)].

    Example:
        >>> carom.models.damping_from_restitution(0.9)
    """
    if not (np.isfinite(restitution) and 0 < restitution <= 1):
        msg = f"restitution must lie in (0, 1], got {restitution}"
        raise ValueError(msg)
    unit = _time_unit(mass, stiffness, impact_velocity)
    low, high = 0.0, SMALL_DAMPING_SLOPE * (1 - restitution) + _SMALL_DAMPING
    while binary_collision(high).restitution > restitution:
        low, high = high, 2 * high
    while high - low > 1e-12 * high + 1e-15:
        middle = _secant(low, high, restitution)
        if binary_collision(middle).restitution > restitution:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high) * unit


def _secant(low: float, high: float, restitution: float) -> float:
    """A point inside the bracket, near the secant's root and never closer to an end than a hundredth of the bracket."""
    at_low, at_high = (binary_collision(x).restitution for x in (low, high))
    guess = low + (high - low) * (at_low - restitution) / (at_low - at_high)
    margin = 0.01 * (high - low)
    return float(np.clip(guess, low + margin, high - margin))


def _overlap(t, q, v):  # noqa: ARG001
    return q[0] - q[1]


def _time_unit(mass: float, stiffness: float, impact_velocity: float) -> float:
    """T of (6)."""
    for value, name in ((mass, "mass"), (stiffness, "stiffness"), (impact_velocity, "impact_velocity")):
        numbers(value, name, positive=True)
    return float((mass / stiffness) ** 0.4 * impact_velocity**-0.2)
