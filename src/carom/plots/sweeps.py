"""Figures of sweeps: diagrams, basins and maps, from datasets of `carom.sweep` and its tools."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from carom.plots.style import COLOURS, CYCLE, canvas, own_axes, styled

_MOST_PANELS = 6


@styled
def bifurcation(data: Any, variable: str = "strobe_q", coordinate: int = 0, title: str = "") -> Figure:
    """The last states of every run over the parameter; a colour per direction in which it was followed.

    Example:
        >>> carom.plots.bifurcation(data).savefig("diagram.png")
    """
    figure, axes = own_axes(None)
    x = data[next(dim for dim in data.status.dims if dim != "direction")]
    values = data[variable]
    if values.dims[-1] in ("coordinate", "velocity_number"):
        values = values.isel({values.dims[-1]: coordinate})
    number = next(dim for dim in values.dims if dim.endswith("_number"))
    ways = list(data.direction.values) if "direction" in data.dims else [None]
    for i, way in enumerate(ways):
        drawn = values if way is None else values.sel(direction=way)
        drawn = drawn.transpose(x.name, ..., number).values.reshape(len(x), -1)
        places = np.repeat(x.values[:, None], drawn.shape[1], axis=1)
        axes.plot(places.ravel(), drawn.ravel(), ".", ms=3.0 - i, color=CYCLE[i], label=way, mew=0)
    axes.set(xlabel=x.name, ylabel=variable, title=title)
    if ways[0] is not None:
        axes.legend(markerscale=4)
    return figure


def _plane(values: Any, who: str) -> Any:
    """The numbers of a grid of two parameters, which rise."""
    values = values.squeeze([dim for dim in values.dims if values.sizes[dim] == 1 and values.ndim > 2])
    if values.ndim != 2 or any(dim not in values.coords for dim in values.dims):
        dims = ", ".join(values.dims)
        wanted = f"{who} draws one number per cell of a grid of two parameters"
        msg = f"{wanted}, got '{values.name}' over ({dims}): select from the others, such as data.isel(coordinate=0)"
        raise ValueError(msg)
    return values.sortby(list(values.dims))


@styled
def basins(data: Any, title: str = "") -> Figure:
    """The basins of attraction over the two parameters of a grid, with their fractions; failed cells are white.

    Example:
        >>> carom.plots.basins(data).savefig("basins.png")
    """
    figure, axes = own_axes(None)
    data = data.assign(label=_plane(data.label, "basins"))
    names = data.label.dims
    count = max(1, data.sizes["attractor"])
    colours = ListedColormap([CYCLE[i % len(CYCLE)] for i in range(count)])
    label = np.ma.masked_less(data.label.values, 0)
    axes.pcolormesh(data[names[1]], data[names[0]], label, cmap=colours, vmin=-0.5, vmax=count - 0.5)
    axes.set(xlabel=names[1], ylabel=names[0], title=title)
    axes.grid(False)
    for i, part in enumerate(data.fraction.values[: len(CYCLE)]):
        axes.plot([], [], "s", color=colours(i), label=f"attractor {i}: {100 * part:.1f} %")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


@styled
def parameter_map(data: Any, variable: str = "period", title: str = "") -> Figure:
    """A number of every cell over the two parameters of a grid.

    Example:
        >>> carom.plots.parameter_map(data, "count")
    """
    figure, axes = own_axes(None)
    values = _plane(data[variable], "parameter_map")
    names = values.dims
    picture = axes.pcolormesh(values[names[1]], values[names[0]], values)
    figure.colorbar(picture, label=variable)
    axes.set(xlabel=names[1], ylabel=names[0], title=title)
    axes.grid(False)
    return figure


@styled
def draws(data: Any, variable: str, title: str = "") -> Figure:
    """A number of all random draws: its histogram, and how its mean settles with their number.

    Example:
        >>> carom.plots.draws(data, "count")
    """
    figure, grid = canvas(1, 2)
    left, right = grid[0]
    x = data[variable].values.reshape(data.sizes["draw"], -1)[:, 0]
    x = x[np.isfinite(x)]
    left.hist(x, bins="auto", color=COLOURS["blue"])
    left.set(xlabel=variable, ylabel="draws", title=title)
    n = np.arange(1, len(x) + 1)
    mean = np.cumsum(x) / n
    spread = np.sqrt(np.maximum(np.cumsum(x**2) / n - mean**2, 0.0) / n)
    right.plot(n, mean, color=COLOURS["blue"])
    right.fill_between(n, mean - 2 * spread, mean + 2 * spread, color=COLOURS["blue"], alpha=0.2, lw=0)
    right.set(xlabel="draws", ylabel=f"mean of {variable}", xscale="log")
    return figure


@styled
def overview(data: Any) -> Figure:
    """All numbers that were kept, over the first parameter; over two parameters as maps.

    Example:
        >>> carom.plots.sweeps.overview(data)
    """
    cells = data.status.dims
    names = [name for name, x in data.data_vars.items() if x.dtype.kind == "f" and not str(name).endswith("_t")]
    names = names[:_MOST_PANELS] or ["steps"]
    figure, grid = canvas(-(-len(names) // 2), min(2, len(names)))
    for name, axes in zip(names, grid.ravel()):
        values = data[name]
        if values.dims[-1] in ("coordinate", "velocity_number"):
            values = values.isel({values.dims[-1]: 0})
        flat = values.values.reshape(*values.shape[: len(cells)], -1)
        if len(cells) == 2:
            picture = axes.pcolormesh(data[cells[1]], data[cells[0]], flat[..., -1])
            figure.colorbar(picture, label=str(name))
            axes.set(xlabel=cells[1], ylabel=cells[0])
        else:
            x = data[cells[0]].values if cells[0] in data.coords else np.arange(flat.shape[0])
            axes.plot(np.repeat(x, flat[0].size), flat.ravel(), ".", ms=2)
            axes.set(xlabel=cells[0], ylabel=str(name))
    return figure
