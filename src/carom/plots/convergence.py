"""Errors over step sizes on logarithmic axes, with triangles for the slopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import ArrayLike
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from carom.plots.style import COLOURS, own_axes, styled

MARKERS = "os^DvPX"


@styled
def convergence(
    h: ArrayLike,
    errors: Mapping[str, ArrayLike],
    *,
    slopes: Mapping[str, float] | None = None,
    styles: Sequence[str] | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Error over step size for several methods.

    Args:
        h: step sizes, common to all methods.
        errors: one list of errors per method, by name.
        slopes: draw a triangle of this slope under the curve of that name.
        styles: matplotlib format strings, one per curve ("-" and a marker by default).
        axes: where to draw; a new figure by default.

    Example:
        >>> carom.plots.convergence([0.1, 0.05], {"GL": [1e-4, 6e-6]}, slopes={"GL": 4})
    """
    figure, axes = own_axes(axes)
    h = np.asarray(h, float)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for i, (name, error) in enumerate(errors.items()):
        axes.plot(h, np.asarray(error, float), styles[i] if styles else "-" + MARKERS[i % len(MARKERS)], label=name)
    for name, slope in (slopes or {}).items():
        triangle(axes, h, np.asarray(errors[name], float), slope)
    axes.set(xlabel="step size $h$", ylabel="global error $E$")
    axes.legend()
    return figure


def triangle(axes: Axes, h: np.ndarray, error: np.ndarray, slope: float, below: float = 0.35) -> None:
    """A right triangle of the given slope under the middle third of a curve."""
    order = np.argsort(h)
    h, error = np.log(h[order]), np.log(error[order])
    left = h[0] + 0.35 * (h[-1] - h[0])
    right = left + min(0.25 * (h[-1] - h[0]), np.log(10.0))
    base = np.interp(left, h, error) + np.log(below)
    x, y = np.exp([left, right, right, left]), np.exp([base, base, base + slope * (right - left), base])
    axes.plot(x, y, color=COLOURS["grey"], linewidth=0.9)
    axes.annotate(
        f"{slope:g}",
        (float(x[1]), float(np.sqrt(y[1] * y[2]))),
        xytext=(3, -3),
        textcoords="offset points",
        color=COLOURS["ink"],
        fontsize=8.5,
    )
