"""Section 5, the outlook: two-dimensional granular crystals with the tailored methods, and what is exact about them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

from carom.methods.pseudo_energy.stormer_verlet import StormerVerlet
from carom.methods.runge_kutta.jacobians import PairJacobian
from carom.models.crystals import HEXAGONAL, hexagonal_crystal
from carom.papers.claims import Claim, number, within
from carom.papers.james2020 import common
from carom.plots import COLOURS, canvas, styled
from carom.running.run import simulate
from carom.state import State
from carom.systems.system import System

_OVERLAP = 0.05
_SHAPE = (6, 5)


def crystal(damping: float, velocity: float = 0.01) -> tuple[System, State]:
    """A precompressed periodic crystal of beads of diameter, mass and Hertz stiffness 1."""
    unit = {"radius": 0.5, "young": 3 * 0.91, "poisson": 0.3, "density": 6 / np.pi}
    hit = {"damping": damping, "precompression": _OVERLAP, "periodic": True, "impact_velocity": velocity}
    return hexagonal_crystal(*_SHAPE, **unit, **hit)


def dispersion_residual() -> float:
    """The largest difference between the eigenvalues of the stiffness and those of D(k), relative to the largest."""
    system, state = crystal(0.0)
    matrix = PairJacobian(system, None)(jnp.zeros_like(state.q)).dense()
    d, vectors = 1 - _OVERLAP, (1 - _OVERLAP) * np.asarray(HEXAGONAL[0])
    F, k, found = _OVERLAP**1.5, 1.5 * _OVERLAP**0.5, []
    waves = 2 * np.pi * np.linalg.inv(vectors).T / np.asarray(_SHAPE)[:, None]
    for place in np.ndindex(*_SHAPE):
        D = np.zeros((2, 2))
        for bond in np.asarray(HEXAGONAL[1]) @ vectors:
            along = np.outer(bond, bond) / d**2
            D += 2 * (1 - np.cos((place @ waves) @ bond)) * (k * along - F / d * (np.eye(2) - along))
        found += np.linalg.eigvalsh(D).tolist()
    eigenvalues = np.linalg.eigvalsh(-np.asarray(matrix))
    return float(np.abs(np.sort(found) - eigenvalues).max() / eigenvalues.max())


def pulse_along_a_row(beads: int = 31) -> tuple[np.ndarray, np.ndarray]:
    """Largest velocities along the row that was hit, in units of that of the hit, and when they come, bead by bead.

    The crystal is uncompressed and as wide as the pulse spreads; displacements are small against diameters, and times
    are in units of those of a collision with the velocity of the hit.
    """
    v = 1e-7
    tau = v**-0.2
    unit = {"radius": 0.5, "young": 3 * 0.91, "poisson": 0.3, "density": 6 / np.pi, "impact_velocity": v}
    system, state = hexagonal_crystal(beads, beads, **unit)
    sol = simulate(system, state, StormerVerlet(), t1=1.6 * beads * tau, h=0.04 * tau, save_every=4)
    row = sol.v.reshape(-1, beads, beads, 2)[:, :, beads // 2, 0]
    return row.max(0) / v, sol.t[row.argmax(0)] / tau


def power(n: np.ndarray, x: np.ndarray) -> float:
    """The fitted power of x as a function of n."""
    return float(np.polyfit(np.log(n), np.log(x), 1)[0])


def passed_on() -> float:
    """The part of its velocity that a bead gives to the next of its row, when it hits that and the two beside it.

    Hertz collision of one bead with three at rest, at 0 and +- 60 degrees, each of which moves along its contact.
    """

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        del t
        ahead, beside = np.maximum([y[0] - y[1], 0.5 * y[0] - y[2]], 0.0) ** 1.5
        return np.concatenate([y[3:], [-ahead - beside, ahead, beside]])

    hit = solve_ivp(rates, (0, 10), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0], method="DOP853", rtol=1e-10, atol=1e-12)
    return float(hit.y[4, -1])


def decay_claims() -> list[Claim]:
    """Decay of a pulse along a close-packed row beside that of collisions one after another.

    Approximations by collisions of few beads [Leonard, Chong, Kevrekidis and Daraio 2014] let each take place as if
    alone: velocities then go as c^n, and the times from bead to bead as v^(-1/5), as those of all Hertz collisions do.
    """
    peak, when = pulse_along_a_row()
    c, n = passed_on(), np.arange(3, 11)
    steps = np.cumsum(c ** (-0.2 * np.arange(len(peak))))
    found = float(np.exp(np.polyfit(n, np.log(peak[n]), 1)[0]))
    note = "beads 3 to 10 of a close-packed row; theory: one bead hits three at rest, one after another"
    return [
        number("largest velocity of a bead over that of the one before it", c, found, 0.03, note),
        number("power of the largest velocity along the row", power(n, c**n), power(n, peak[n]), 0.1, note),
        number("power of the time of arrival along the row", power(n, steps[n]), power(n, when[n]), 0.1, note),
    ]


@styled
def crystals() -> tuple[list[Claim], Figure]:
    """Tailored methods on a damped hexagonal crystal, the damping proportional to the step."""
    h = np.array([0.4, 0.2, 0.1, 0.05])
    systems, states = zip(*(crystal(0.25 * float(x)) for x in h))
    reference = common.references(systems, states[0], 8.0, 0.0025, 0.05)
    schemes = {"theta, (34)": common.THETA, "IRK, (44)": common.TAILORED}
    errors = {
        name: common.largest_errors(common.run(scheme, systems, states[0], 8.0, h), reference)
        for name, scheme in schemes.items()
    }
    orders, residual = common.slopes(h, errors, 0.2), dispersion_residual()
    note = "the paper names it as a prospect and prints no number; its orders on chains are 2 and 3"
    claims = [
        within(
            "order of the tailored theta method on a damped hexagonal crystal", 1.75, 2.25, orders["theta, (34)"], note
        ),
        within("order of the tailored IRK method there", 2.75, 3.25, orders["IRK, (44)"], note),
        Claim("eigenvalues of its stiffness less those of D(k)", "0", residual, residual < 1e-10, "relative"),
    ]
    figure, axes = canvas(width=6.4, height=3.8)
    for (name, error), colour in zip(errors.items(), ("blue", "orange")):
        axes[0, 0].loglog(h, error, "o-", color=COLOURS[colour], label=name)
    axes[0, 0].set(xlabel="$h$", ylabel="largest error")
    axes[0, 0].legend()
    return claims, figure
