"""One look for every figure: paper-like, light, readable in print and on screen, free of pyplot's global state."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from io import BytesIO
from os import PathLike
from typing import IO, Any, ParamSpec, TypeVar

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

#: Colours by name, those of reports in light; they stay apart for the colour-blind.
COLOURS = {
    "ink": "#1f2328",
    "grey": "#8c959f",
    "blue": "#195bd5",
    "orange": "#d5710c",
    "green": "#10573d",
    "purple": "#621a70",
    "red": "#bc2117",
    "cyan": "#1095ad",
}
CYCLE = [COLOURS[name] for name in ("blue", "orange", "green", "purple", "red", "cyan", "ink")]

STYLE: dict[str, Any] = {
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "figure.dpi": 110,
    "savefig.dpi": 160,
    "font.family": "sans-serif",
    "font.size": 10.0,
    "mathtext.fontset": "dejavusans",
    "axes.prop_cycle": cycler(color=CYCLE),
    "axes.edgecolor": COLOURS["ink"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.linewidth": 0.8,
    "axes.titlesize": 10.0,
    "axes.grid": True,
    "grid.color": "#d8dee4",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "xtick.color": COLOURS["ink"],
    "ytick.color": COLOURS["ink"],
    "image.cmap": "viridis",
}

P = ParamSpec("P")
R = TypeVar("R")


def styled(fn: Callable[P, R]) -> Callable[P, R]:
    """Run a plotting function under carom's style, leaving matplotlib's own settings as they were."""

    @wraps(fn)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        with matplotlib.rc_context(STYLE):  # pyright: ignore[reportArgumentType]
            return fn(*args, **kwargs)

    return drawn


class Shown(Figure):
    """A figure that notebooks show, free of pyplot."""

    def savefig(self, fname: str | PathLike[Any] | IO[Any], **options: Any) -> None:
        """Write it to a file, as matplotlib does."""
        super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        self.savefig(picture, format="png", dpi=self.dpi)
        return picture.getvalue()


@styled
def canvas(rows: int = 1, columns: int = 1, width: float = 0.0, height: float = 0.0) -> tuple[Shown, np.ndarray]:
    """A figure with a grid of axes, as an array of shape (rows, columns).

    Args:
        rows: rows of panels.
        columns: columns of panels.
        width: in inches; 0 gives 5 per column.
        height: in inches; 0 gives 3.6 per row.

    Example:
        >>> figure, axes = carom.plots.canvas(1, 2)
    """
    figure = Shown(figsize=(width or 5.0 * columns, height or 3.6 * rows))
    return figure, figure.subplots(rows, columns, squeeze=False)


def own_axes(axes: Axes | None, width: float = 6.4, height: float = 4.0) -> tuple[Figure, Axes]:
    """The given axes and their figure, or new ones."""
    if axes is None:
        figure, grid = canvas(width=width, height=height)
        return figure, grid[0, 0]
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure, axes
