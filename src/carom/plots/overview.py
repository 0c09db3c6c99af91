"""The figure of a run at one glance."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from carom.plots.energy import energies
from carom.plots.style import canvas, styled
from carom.plots.trajectories import trajectories
from carom.solution import Solution

_MOST_LINES = 12


@styled
def overview(solution: Solution, title: str = "") -> Figure:
    """Coordinates, velocities and energies over time; of many coordinates, a dozen evenly spaced ones.

    Example:
        >>> carom.plots.overview(sol).savefig("run.png")
    """
    figure, grid = canvas(3, 1, width=8.0, height=8.0)
    n = solution.q.shape[1]
    shown = np.unique(np.linspace(0, n - 1, min(n, _MOST_LINES)).round().astype(int)).tolist()
    names = solution.system.labels or tuple(f"{i + 1}" for i in range(n))
    top, middle, bottom = grid[:, 0]
    if len(shown) > 1:
        for axes in (top, middle):
            axes.set_prop_cycle(color=matplotlib.colormaps["viridis"](np.linspace(0.0, 0.9, len(shown))))
    trajectories(solution, shown, of="q", labels=[names[i] for i in shown], axes=top, linewidth=1.0)
    trajectories(solution, [i for i in shown if i < solution.v.shape[1]], of="v", axes=middle, linewidth=1.0)
    energies(solution, axes=bottom)
    top.legend(ncols=6, fontsize=7, loc="upper right")
    top.set_title(f"{title}, {type(solution.method).__name__}" if title else type(solution.method).__name__)
    return figure
