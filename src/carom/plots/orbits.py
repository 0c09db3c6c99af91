"""Figures of branches of periodic orbits, of Lyapunov exponents as they settle, and of fits to measured motion."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from carom.plots.style import COLOURS, CYCLE, canvas, own_axes, styled

_MARKS = {"fold": "o", "flip": "s", "grazing": "^"}


@styled
def branch(data: Any, coordinate: int = 0, title: str = "") -> Figure:
    """A coordinate of orbits over the parameter, and the size of their multipliers; unstable orbits are dashed.

    Example:
        >>> carom.plots.branch(orbit.follow("shaking", within=(0.3, 1.2))).savefig("branch.png")
    """
    figure, grid = canvas(1, 2)
    left, right = grid[0]
    q = data.q[:, coordinate]
    for shown, style in ((data.stable, "-"), (~data.stable, "--")):
        near = shown | np.append(shown[1:], False) if style == "--" else shown  # no gap between the two
        left.plot(data.values, np.where(near, q, np.nan), style, color=COLOURS["blue"])
    right.plot(data.values, np.abs(data.multipliers), ".-", color=COLOURS["blue"], ms=3)
    right.axhline(1.0, color=COLOURS["grey"], lw=0.8)
    for i, kind in enumerate(sorted({special.kind for special in data.specials})):
        found = [special for special in data.specials if special.kind == kind]
        places = [(special.value, float(special.orbit.state.q[coordinate])) for special in found]
        left.plot(*zip(*places), _MARKS[kind], color=CYCLE[i + 1], label=kind)
    labels = data.orbits[0].system.labels
    left.set(xlabel=data.parameter, ylabel=labels[coordinate] if labels else f"q[{coordinate}]", title=title)
    right.set(xlabel=data.parameter, ylabel="size of multipliers", ylim=(0.0, min(3.0, right.get_ylim()[1])))
    if data.specials:
        left.legend()
    return figure


@styled
def exponents(data: Any, title: str = "") -> Figure:
    """How Lyapunov exponents settle in the course of a run.

    Example:
        >>> carom.plots.exponents(carom.lyapunov(system, state, method, t1=500.0, h=0.02)).savefig("exponents.png")
    """
    figure, axes = own_axes(None)
    axes.plot(data.times[1:], data.history)
    axes.axhline(0.0, color=COLOURS["grey"], lw=0.8)
    axes.set(xlabel="t", ylabel="exponents", title=title)
    return figure


@styled
def fit(data: Any, title: str = "") -> Figure:
    """Measured and predicted motion, and what is left of their difference.

    Example:
        >>> carom.plots.fit(carom.identify(build, guess, heights, method, times=times, h=0.01)).savefig("fit.png")
    """
    figure, grid = canvas(2, 1, width=6.4, height=5.2)
    (above,), (below,) = grid
    measured = data.predicted + data.residuals
    for i in range(measured.shape[1]):
        above.plot(data.times, measured[:, i], ".", color=CYCLE[i % len(CYCLE)])
        above.plot(data.times, data.predicted[:, i], "-", color=CYCLE[i % len(CYCLE)], lw=1.0)
        below.plot(data.times, data.residuals[:, i], ".", color=CYCLE[i % len(CYCLE)])
    above.set(ylabel="measured and predicted", title=title)
    below.set(xlabel="t", ylabel="difference")
    return figure
