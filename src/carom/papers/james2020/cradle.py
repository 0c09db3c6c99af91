"""Figs 4 and 5: Newton's cradle with the additive theta method."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from carom.models.granular import newtons_cradle
from carom.papers.claims import Claim, number, within
from carom.papers.james2020 import common
from carom.plots import COLOURS, canvas, space_time, styled, trajectories
from carom.solution import Solution

H = 0.5


def pair(stiffness: float, t1: float) -> tuple[Solution, Solution]:
    """Reference and additive theta method at h = 0.5 (N = 10, m = 1, K = 0.01, damping 0.3), at the same nodes."""
    system, state = newtons_cradle(10, stiffness=stiffness)
    reference = common.references([system], state, t1, 0.01, H)[0]
    return reference, common.run(common.THETA, [system], state, t1, [H])[0]


@styled
def fig4() -> tuple[list[Claim], Figure]:
    """Newton's cradle, k = 13.115: impacts and slow oscillations (Fig. 4)."""
    reference, theta = pair(13.115, 250.0)
    early = reference.t < 62.8
    top = [float(sol.q[early, -1].max()) for sol in (reference, theta)]
    claims = [
        number(
            "largest x10 after the first impact, reference", 2.737753, top[0], 1e-5, "carom's own number, not printed"
        ),
        number("largest x10 after the first impact, theta", 2.946588, top[1], 1e-5, "carom's own number, not printed"),
        within("error of the largest deflection in %; the paper says close to 7", 6, 8, 100 * (top[1] / top[0] - 1)),
    ]
    figure, grid = canvas(1, 1, width=8.5, height=4.6)
    axes = grid[0, 0]
    trajectories(reference, axes=axes, color=COLOURS["blue"], linewidth=1.0)
    trajectories(theta, axes=axes, color=COLOURS["red"], linestyle="--", linewidth=1.0)
    axes.set_title("bead displacements: reference (solid) and additive theta, h = 0.5 (dashed)")
    return claims, figure


@styled
def fig5() -> tuple[list[Claim], Figure]:
    """Newton's cradle, k = 1, until t = 3000: the beads synchronise (Fig. 5)."""
    reference, theta = pair(1.0, 3000.0)
    error = common.global_error(theta, reference)
    spread = [late_spread(sol) for sol in (theta, reference)]
    claims = [
        number("sup error of displacements", 0.155, error.displacement, 2e-3, f"{error.displacement:.6f}"),
        number("sup error of velocities", 0.0475, error.velocity, 2e-3, f"{error.velocity:.6f}"),
        within(
            "relative error of displacements in %; the paper says around 5",
            3.5,
            6.5,
            100 * error.displacement / np.abs(reference.q).max(),
        ),
        within(
            "relative error of velocities in %; the paper says around 5",
            3.5,
            6.5,
            100 * error.velocity / np.abs(reference.v).max(),
        ),
        Claim(
            "amplitudes at t > 2900",
            "almost equal",
            f"spread {100 * spread[0]:.1f} %",
            spread[0] < 0.2,
            f"reference {100 * spread[1]:.1f} %",
        ),
    ]
    figure, grid = canvas(1, 2, width=9.5, height=5.6)
    limit = float(np.abs(reference.q).max())
    for axes, sol, name in zip(grid[0], (reference, theta), ("reference", "additive theta, h = 0.5")):
        space_time(sol, axes=axes, limit=limit)
        axes.set_title(name)
        zoom(axes, sol, (0.16, 0.12, 0.36, 0.24), 0.0, 300.0, limit)
        zoom(axes, sol, (0.16, 0.68, 0.36, 0.24), 2700.0, 3000.0, limit)
    return claims, figure


def late_spread(solution: Solution) -> float:
    """Difference between the largest and the smallest amplitude after t = 2900, relative to the largest."""
    amplitude = np.abs(solution.q[solution.t > 2900]).max(axis=0)
    return float(np.ptp(amplitude) / amplitude.max())


def zoom(
    axes, solution: Solution, box: tuple[float, float, float, float], start: float, end: float, limit: float
) -> None:
    """An inset with the same diagram between two times."""
    inset = axes.inset_axes(box)
    rows = (solution.t >= start) & (solution.t <= end)
    t, n = solution.t[rows], solution.q.shape[1]
    image = {"origin": "lower", "aspect": "auto", "cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
    inset.imshow(solution.q[rows], extent=(0.5, n + 0.5, t[0], t[-1]), **image)
    inset.grid(visible=False)
    inset.tick_params(labelsize=7)
