"""Energies over time and the account of a run."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from carom.plots.style import COLOURS, canvas, own_axes, styled
from carom.solution import Solution


@styled
def energies(solution: Solution, *, axes: Axes | None = None) -> Figure:
    """Kinetic, potential and total energy over time.

    Example:
        >>> carom.plots.energies(sol)
    """
    figure, axes = own_axes(axes)
    account = solution.account
    axes.plot(solution.t, account.kinetic, color=COLOURS["blue"], label="kinetic")
    axes.plot(solution.t, account.potential, color=COLOURS["orange"], label="potential")
    axes.plot(solution.t, account.energy, color=COLOURS["ink"], label="total")
    axes.set(xlabel="time $t$", ylabel="energy")
    axes.legend()
    return figure


@styled
def account(solution: Solution) -> Figure:
    """The evidence of a run: energy against its start, and the residual of every step.

    Example:
        >>> carom.plots.account(sol)
    """
    figure, grid = canvas(2, 1, width=6.4, height=5.6)
    top, bottom = grid[:, 0]
    energy, residual = solution.account.energy, solution.account.residual
    top.plot(solution.t, energy - energy[0], color=COLOURS["ink"])
    top.set(ylabel="$E - E_0$", title=f"$E_0$ = {energy[0]:.6g}")
    positive = np.where(residual > 0, residual, np.nan)
    bottom.plot(solution.t, positive, ".", color=COLOURS["blue"], markersize=2.5)
    if np.isfinite(positive).any():
        bottom.set_yscale("log")
    bottom.set(xlabel="time $t$", ylabel="residual of the step")
    return figure
