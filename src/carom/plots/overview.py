"""The figure of a run at one glance."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np

from carom.files.resuming import with_system
from carom.plain import describe, spelt
from carom.plots.contacts import contact_forces
from carom.plots.energy import energies
from carom.plots.style import Shown, canvas, styled
from carom.plots.trajectories import trajectories
from carom.systems.system import System

_MOST_LINES = 12
_LONGEST_NAME = 60


@styled
def overview(run: Any, title: str = "", *, system: System | None = None) -> Shown:
    """Coordinates, velocities, energies and contact forces over time; of many coordinates, a dozen evenly spaced ones.

    Args:
        run: a `Solution`, or what `carom.load` returned.
        title: heading.
        system: the system of a loaded run that is made of the user's own functions.

    Example:
        >>> carom.plots.overview(sol).savefig("run.png")
    """
    solution = with_system(run, system)
    touching = "impulse" in solution.columns and solution.impulse.shape[1] > 0
    figure, grid = canvas(3 + touching, 1, width=8.6, height=8.0 + 2.4 * touching)
    n = solution.q.shape[1]
    shown = np.unique(np.linspace(0, n - 1, min(n, _MOST_LINES)).round().astype(int)).tolist()
    names = with_units(solution.system, n)
    top, middle, bottom = grid[:3, 0]
    if len(shown) > 4:
        for axes in (top, middle):
            axes.set_prop_cycle(color=matplotlib.colormaps["viridis"](np.linspace(0.0, 0.9, len(shown))))
    trajectories(solution, shown, of="q", labels=[names[i] for i in shown], axes=top, linewidth=1.0)
    moving = [i for i in shown if i < solution.v.shape[1]]
    second = solution.system.time_unit
    rates = with_units(solution.system, n, f"/{second}")
    told = [rates[i] for i in moving] if rates != names and solution.system.rates else None
    trajectories(solution, moving, of="v", labels=told, axes=middle, linewidth=1.0)
    energies(solution, axes=bottom)
    if touching:
        contact_forces(solution, axes=grid[3, 0])
    if len(set(solution.system.units)) == 1:
        top.set_ylabel(f"q [{solution.system.units[0]}]")
        if solution.system.rates:
            middle.set_ylabel(f"v [{solution.system.units[0]}/{second}]")
    grid[-1, 0].set_xlabel(f"time $t$ [{second}]" if second else "time $t$")
    for axes in grid[:, 0]:
        if axes.get_legend() is not None:
            axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        if axes is not grid[-1, 0]:
            axes.set_xlabel("")
    method = spelt(describe(solution.method))
    method = method if len(method) <= _LONGEST_NAME else type(solution.method).__name__
    top.set_title(f"{title}, {method}" if title else method)
    return figure


def with_units(system: System, n: int, per: str = "") -> list[str]:
    """Names of the coordinates, with their units where these differ."""
    names = list(system.labels or [f"{i + 1}" for i in range(n)])
    units = each_unit(system.units, n) if len(set(system.units)) > 1 else ("",) * n
    return [f"{name} [{unit}{per}]" if unit else name for name, unit in zip(names, units)]


def each_unit(units: tuple[str, ...], n: int) -> tuple[str, ...]:
    """The unit of each of n coordinates."""
    return units * n if len(units) == 1 else units
