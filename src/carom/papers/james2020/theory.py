"""Sections 2.1 and A.1: the binary collision, and the stability of the tailored method."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from carom.models.collision import SMALL_DAMPING_SLOPE, binary_collision
from carom.models.granular import granular_chain
from carom.papers.claims import Claim, number
from carom.papers.james2020 import common
from carom.plots import COLOURS, canvas, styled
from carom.running.batch import simulate_batch
from carom.systems import regularise
from carom.tableaux import modified, tailored


def _overlap(t, q, v):  # noqa: ARG001
    return q[0] - q[1]


def collisions(damping: common.Numbers, h: float = 2e-4) -> tuple[np.ndarray, np.ndarray]:
    """Restitution and duration of the collision (7), one lane per damping: two beads of mass 2, reduced mass 1.

    The collision ends at zero *overlap*, not at zero force.
    """
    chains, states = zip(*(granular_chain([2.0, 2.0], damping=float(g)) for g in damping))
    lanes = [regularise(chain) for chain in chains]
    sols = simulate_batch(
        lanes, list(states), common.REFERENCE, t1=10.0, h=[h] * len(lanes), save_every=100_000, stop=_overlap
    )
    return np.array([s.v[-1, 1] - s.v[-1, 0] for s in sols]), np.array([s.t[-1] for s in sols])


def slope_of_9(damping: float = 2e-3) -> float:
    """The limit of damping / (1 - e) at zero damping, (9), extrapolated from three dampings.

    The undamped collision is a fourth lane: its distance from e = 1 is the error of the computation, taken off.
    """
    dampings = damping * np.array([0.0, 1.0, 2.0, 4.0])
    e = collisions(dampings)[0]
    f = dampings[1:] / (e[0] - e[1:])
    return float((8 * f[0] - 6 * f[1] + f[2]) / 3)


@styled
def restitution() -> tuple[list[Claim], Figure]:
    """Restitution of a binary collision over the damping, (7)-(9)."""
    damping = np.array([0.01, 0.06, 0.17, *np.linspace(0.02, 0.5, 25)])
    e, duration = collisions(damping)
    slope = slope_of_9()
    own = "not printed in the paper: from an independent implementation"
    claims = [
        number("slope of (9)", 0.578, slope, 1e-3),
        number(
            "the same by the integral of the loss",
            SMALL_DAMPING_SLOPE,
            slope,
            2e-8,
            "SMALL_DAMPING_SLOPE of carom.models.collision",
        ),
        number("restitution at damping 0.06 (steel)", 0.902295964, binary_collision(0.06).restitution, 1e-8, own),
        number("the same by (9)", 1 - 0.06 / 0.578, e[1], 1e-2, "(9) is an approximation for small damping"),
    ]
    order = np.argsort(damping)
    figure, grid = canvas(1, 2, width=9.5, height=3.8)
    grid[0, 0].plot(damping[order], e[order], color=COLOURS["blue"], label="(7)")
    grid[0, 0].plot(damping[order], 1 - damping[order] / 0.578, "--", color=COLOURS["grey"], label="(9)")
    grid[0, 0].plot(damping[:3], e[:3], "o", color=COLOURS["ink"], label="glass, steel, cork")
    grid[0, 0].set(xlabel="damping $\\tilde\\gamma$", ylabel="restitution $e$", ylim=(0, 1))
    grid[0, 0].legend()
    grid[0, 1].plot(damping[order], duration[order], color=COLOURS["blue"])
    grid[0, 1].set(xlabel="damping $\\tilde\\gamma$", ylabel="duration $\\tau_c$")
    return claims, figure


def order_residual(C11: float) -> float:
    """The larger residual of the order conditions (59), relative to the size of what cancels in them."""
    tableau = tailored(C11)
    terms = max(1.0, float(2 * np.abs(tableau.b) @ np.abs(tableau.A) @ np.abs(tableau.c)))
    first = modified.C22(tableau) - 2 * C11 - C11**2
    second = modified.C21(tableau) - C11 + C11**2
    return max(abs(first), abs(second)) / terms


@styled
def a1() -> tuple[list[Claim], Figure]:
    """Order conditions (59) and A-stability of the tailored method (appendix A.1)."""
    grid_C11 = np.linspace(0, 1, 101)
    r = np.array([abs(tailored(float(c)).stability_at_infinity) for c in grid_C11])
    best = 1 / (3 * np.sqrt(2))
    residual = max(order_residual(float(c)) for c in grid_C11)
    stable = all(tailored(float(c)).is_A_stable for c in grid_C11)
    note = "relative to the terms that cancel (up to 315 at C11 = 1)"
    claims = [
        Claim("residuals of (59) for C11 in [0, 1]", "0", residual, residual < 1e-14, note),
        Claim("A-stable for C11 in [0, 1]", "yes", "yes" if stable else "no", stable),
        number(
            "r at C11 = 1 / (3 sqrt 2)", 3 - 2 * np.sqrt(2), abs(tailored(float(best)).stability_at_infinity), 1e-13
        ),
        number("C11 of the smallest r on the grid", float(best), float(grid_C11[np.argmin(r)]), 0.03),
    ]
    figure, axes = canvas(width=6.4, height=3.8)
    axes[0, 0].plot(grid_C11, r, color=COLOURS["blue"])
    axes[0, 0].plot([best], [3 - 2 * np.sqrt(2)], "o", color=COLOURS["ink"])
    axes[0, 0].set(xlabel="$C_{11}$", ylabel="$|R(\\infty)|$", ylim=(0, 1.02))
    return claims, figure
