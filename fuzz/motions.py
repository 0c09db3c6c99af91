"""The families of motions of the campaign."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz import draws, oracles, systems
from fuzz.motion import EXTRAPOLATED, SOLVE, Kicked, Motion, Numbers, Way, adaptive, constant


def spring_reference(n: Numbers, q0: Any, v0: Any, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Duffing's oscillator without anything else."""
    y = oracles.integrated(lambda t, y: [y[1], -n["k"] * y[0] - n["k3"] * y[0] ** 3], np.array([*q0, *v0]), times)
    return y[:, :1], y[:, 1:]


def momentum(n: Numbers, sol: Any) -> str | None:
    """Contacts among beads change no momentum."""
    p = sol.v @ np.array(n["masses"])
    off = float(np.max(np.abs(p - p[0])))
    limit = 1e-9 * abs(float(p[0])) if n["save_at"] is None else 100 * n["rtol"] + 1e-2
    return None if off <= limit else f"the momentum changes by {off:.2g}"


_DRIVEN_PIECES = (systems.driven_potential, systems.driven_force)
_LINEAR = (systems.linear_potential, systems.linear_force)
MOTIONS = {
    family.name: family
    for family in (
        Motion(
            "driven",
            systems.driven,
            _DRIVEN_PIECES,
            draws.driven,
            oracles.driven,
            (
                SOLVE,
                SOLVE,
                constant("IRK(carom.gauss(2))", 4),
                adaptive("IRK(carom.radau_iia(3))"),
                constant("ExplicitRK(carom.explicit(4))", 4),
                constant("MoreauMidpoint()", 1),
                constant("Theta()", 1),
            ),
            stop=systems.driven_stop,
        ),
        Kicked(
            "kicked",
            systems.kicked,
            (systems.kick, systems.stiffness_energy),
            draws.kicked,
            oracles.kicked,
            (SOLVE, SOLVE, constant("IRK(carom.gauss(2))", 4)),
        ),
        Motion(
            "spring",
            systems.spring,
            (systems.spring_potential,),
            draws.spring,
            spring_reference,
            (
                constant("StormerVerlet()", 2),
                constant("PseudoEnergy()", 2),
                constant("LobattoIIIAB(2)", 2),
                adaptive("ExplicitRK(carom.explicit(5))"),
                Way("carom.IRK(carom.gauss(2))", "prescribed", 4),
            ),
            steps=(0.01, 0.04),
        ),
        Motion(
            "pendulum",
            systems.pendulum,
            (systems.weight_of_pendulum, systems.drag_of_pendulum, systems.circle),
            draws.pendulum,
            oracles.pendulum,
            (SOLVE, constant("Spark(3)", 4), constant("MoreauMidpoint()", 1)),
        ),
        Motion(
            "double pendulum",
            systems.double_pendulum,
            (systems.mass_of_double_pendulum, systems.weight_of_double_pendulum),
            draws.double_pendulum,
            oracles.double_pendulum,
            (SOLVE, constant("IRK(carom.gauss(3))", 5)),
        ),
        Motion(
            "hertz chain",
            systems.hertz_chain,
            (),
            draws.hertz_chain,
            oracles.hertz_chain,
            (SOLVE, constant("TailoredIRK()", 1), constant("PseudoEnergy()", 1)),
            budget=momentum,
        ),
        Motion(
            "dry friction",
            systems.dry_friction,
            (*_LINEAR, systems.belt_slip),
            draws.dry_friction,
            oracles.dry_friction,
            (
                SOLVE,
                SOLVE,
                adaptive("EventCapturing(carom.radau_iia(3))"),
                constant("EventCapturing(carom.radau_iia(2))", 2),
                constant("MoreauMidpoint()"),
                constant("MoreauTheta()"),
                EXTRAPOLATED,
            ),
            steps=(0.005, 0.03),
            ends=True,
        ),
        Motion(
            "hitting",
            systems.hitting,
            (*_LINEAR, systems.table_gap),
            draws.hitting,
            oracles.hitting,
            (
                SOLVE,
                SOLVE,
                adaptive("EventCapturing(carom.radau_iia(3))"),
                constant("EventCapturing(carom.radau_iia(2))", 2),
                constant("MoreauMidpoint()"),
                constant("MoreauTheta()"),
                EXTRAPOLATED,
            ),
            steps=(0.005, 0.03),
            ends=True,
        ),
        Motion(
            "spinning ball",
            systems.spinning_ball,
            (systems.height_energy, systems.ball_gap, systems.ball_slip),
            draws.spinning_ball,
            oracles.spinning_ball,
            (SOLVE, constant("MoreauMidpoint()")),
            ends=True,
        ),
        Motion(
            "rod",
            systems.rod,
            (systems.height_energy, systems.rod_gap, systems.rod_slip),
            draws.rod,
            oracles.rod,
            (SOLVE, constant("MoreauMidpoint()")),
            ends=True,
        ),
    )
}
