"""Displacements and velocities over time, and space-time diagrams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import ArrayLike
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from carom.plots.style import own_axes, styled
from carom.solution import Solution


@styled
def trajectories(
    solution: Solution | tuple[ArrayLike, ArrayLike],
    which: Sequence[int] | None = None,
    *,
    of: str = "q",
    labels: Sequence[str] | None = None,
    axes: Axes | None = None,
    **line: Any,
) -> Figure:
    """Coordinates (`of="q"`) or velocities (`of="v"`) over time.

    Args:
        solution: a solution, or `(t, values)` with one row of values per time.
        which: indices of the coordinates to show; all by default.
        of: "q" or "v"; for arrays it only names the vertical axis.
        labels: legend entries, one per shown coordinate; none by default.
        axes: where to draw; a new figure by default.
        line: passed to matplotlib's `plot`.

    Example:
        >>> carom.plots.trajectories(sol, [0, 9], of="v").savefig("velocities.png")
    """
    if of not in ("q", "v"):
        msg = f"trajectories: of must be 'q' or 'v', got '{of}'"
        raise ValueError(msg)
    t, values = rows_of(solution, of)
    figure, axes = own_axes(axes)
    shown = range(values.shape[1]) if which is None else which
    for i, n in enumerate(shown):
        axes.plot(t, values[:, n], label=None if labels is None else labels[i], **line)
    axes.set(xlabel="time $t$", ylabel="coordinates $q$" if of == "q" else "velocities $v$")
    if labels is not None:
        axes.legend()
    return figure


@styled
def space_time(
    solution: Solution | tuple[ArrayLike, ArrayLike],
    *,
    of: str = "q",
    axes: Axes | None = None,
    limit: float | None = None,
) -> Figure:
    """Space-time diagram: bead number across, time upwards, the value as colour (zero is white).

    Args:
        solution: a solution, or `(t, values)` with one row of values per time, times equally spaced.
        of: "q" or "v".
        axes: where to draw; a new figure by default.
        limit: the colour scale runs from -limit to limit; the largest absolute value by default.

    Example:
        >>> carom.plots.space_time(sol, of="v")
    """
    t, values = rows_of(solution, of)
    figure, axes = own_axes(axes, 4.6, 5.0)
    limit = float(np.max(np.abs(values))) if limit is None else limit
    box = (0.5, values.shape[1] + 0.5, t[0], t[-1])
    image = axes.imshow(
        values,
        origin="lower",
        aspect="auto",
        extent=box,
        cmap="RdBu_r",
        vmin=-limit,
        vmax=limit,
        interpolation="nearest",
    )
    axes.grid(visible=False)
    axes.set(xlabel="bead $n$", ylabel="time $t$")
    figure.colorbar(image, ax=axes, label="displacement $x$" if of == "q" else "velocity $\\dot{x}$")
    return figure


def rows_of(solution: Solution | tuple[ArrayLike, ArrayLike], of: str) -> tuple[np.ndarray, np.ndarray]:
    """Times and values of a solution or of a pair of arrays, checked."""
    if isinstance(solution, Solution):
        return solution.t, solution.q if of == "q" else solution.v
    t, values = np.asarray(solution[0], float), np.asarray(solution[1], float)
    if values.ndim == 1:
        values = values[:, None]
    if t.ndim != 1 or values.shape[0] != t.size:
        msg = f"times and values must have as many rows, got shapes {t.shape} and {values.shape}"
        raise ValueError(msg)
    return t, values
