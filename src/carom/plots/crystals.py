"""Figures of granular matter: networks of forces, and spectra in space and time."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.figure import Figure

from carom.measures.contacts import row_of
from carom.measures.crystals import bond_forces, pair_part, spectrum
from carom.plots.style import COLOURS, own_axes, styled
from carom.solution import Solution

_THICK = 4.0  # points, of the largest force
_FAINT = -5.0  # decades below the strongest wave: higher frequencies are not drawn


@styled
def force_network(sol: Solution, t: float | None = None, part: str | None = None, axes: Axes | None = None) -> Figure:
    """Bodies in the plane and the forces between them at t, lines as thick as forces are large.

    Example:
        >>> carom.plots.force_network(sol, t=1e-4).savefig("network.svg")
    """
    figure, axes = own_axes(axes)
    found, name = bond_forces(sol, t, part), pair_part(sol.system, part)
    law = sol.system.potential[name]
    x = np.asarray(law.positions(sol.q[row_of(sol, t)]))[:, :2]  # pyright: ignore
    width = np.broadcast_to(np.asarray(law.law.length(law.data, law.data)), len(x))  # pyright: ignore
    sizes = {"widths": width, "heights": width, "angles": 0.0, "units": "xy"}
    style = {"facecolors": "none", "edgecolors": COLOURS["grey"], "linewidths": 0.5}
    axes.add_collection(EllipseCollection(offsets=x, offset_transform=axes.transData, **sizes, **style))
    near = np.sqrt(np.sum((found.ends[:, 1] - found.ends[:, 0]) ** 2, 1)) < 2 * width.max()
    strength = found.size[near] / max(found.size.max(initial=0.0), 1e-300)
    axes.add_collection(
        LineCollection(list(found.ends[near, :, :2]), linewidths=_THICK * strength, colors=COLOURS["red"])
    )
    axes.set(xlim=(x[:, 0].min() - width.max(), x[:, 0].max() + width.max()), aspect="equal", xlabel="x", ylabel="y")
    axes.set_ylim(x[:, 1].min() - width.max(), x[:, 1].max() + width.max())
    return figure


@styled
def dispersion(sol: Solution, direction: np.ndarray, wavenumbers: np.ndarray, axes: Axes | None = None) -> Figure:
    """The spectrum of velocities over wavenumbers along a direction, dark where the crystal moves.

    Example:
        >>> carom.plots.dispersion(sol, [1.0, 0.0], np.linspace(0, np.pi, 60)).savefig("dispersion.svg")
    """
    figure, axes = own_axes(axes)
    along = np.asarray(direction, float) / np.linalg.norm(direction)
    omega, power = spectrum(sol, np.asarray(wavenumbers)[:, None] * along)
    level = np.log10(power / power.max() + 1e-8)
    axes.pcolormesh(wavenumbers, omega, level, cmap="Greys", shading="nearest", rasterized=True)
    highest = omega[(level > _FAINT).any(axis=1)].max(initial=omega[1])
    axes.set(xlabel="wavenumber $k$", ylabel="frequency $\\omega$", ylim=(0.0, 1.1 * highest))
    return figure
