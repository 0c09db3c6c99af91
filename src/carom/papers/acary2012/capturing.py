"""Figs 4 and 5: orders of event capturing with implicit and half-explicit Runge-Kutta methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure

from carom.measures import observed_order
from carom.methods.capturing.event_capturing import EventCapturing
from carom.papers.acary2012.common import BALL, OSCILLATOR, T1, Example, grid
from carom.papers.claims import Claim
from carom.plots import canvas, convergence, styled
from carom.plots.style import COLOURS
from carom.running.batch import simulate_batch
from carom.tableaux import Tableau, explicit, lobatto_iiia, radau_iia

STEPS = grid(6)
FLOOR = 3e-13
IMPLICIT = [lobatto_iiia(2), radau_iia(2), lobatto_iiia(3), radau_iia(3), lobatto_iiia(4)]
HALF_EXPLICIT = [explicit(p) for p in range(1, 6)]


def alike(tableaux: Sequence[Tableau]) -> list[Tableau]:
    """The same methods with equally many stages, idle ones (of weight zero) among them: lanes of one batch."""
    most = max(tableau.stages for tableau in tableaux)
    idle = [(0, most - tableau.stages) for tableau in tableaux]
    return [
        Tableau(np.pad(tab.A, more), np.pad(tab.b, more), np.pad(tab.c, more), tab.order, tab.name)
        for tab, more in zip(tableaux, idle)
    ]


def errors_of(example: Example, tableaux: Sequence[Tableau]) -> dict[str, list[float]]:
    """Largest errors of the position, all tableaux and step sizes in one batch."""
    lanes = [(tableau, h) for tableau in alike(tableaux) for h in STEPS]
    methods = [EventCapturing(tableau) for tableau, _ in lanes]
    runs = simulate_batch(*example.model, methods, t1=T1, h=[h for _, h in lanes])
    found: dict[str, list[float]] = {tableau.name: [] for tableau in tableaux}
    for (tableau, _), run in zip(lanes, runs):
        found[tableau.name].append(example.position_error(run))
    return found


def _orders(tableaux: Sequence[Tableau]) -> tuple[list[Claim], Figure]:
    figure, axes = canvas(1, 2, width=10.5, height=4.8)
    claims = []
    for example, place in zip((OSCILLATOR, BALL), axes[0]):
        errors = errors_of(example, tableaux)
        claims += [_claim(example, tableau, errors[tableau.name]) for tableau in tableaux]
        lines = {f"{tab.name}, order {tab.order}": np.maximum(errors[tab.name], 1e-16) for tab in tableaux}
        ends = (list(lines)[i] for i in (0, -1))
        slopes = dict(zip(ends, (tableaux[0].order, tableaux[-1].order))) if example is OSCILLATOR else None
        convergence(STEPS, lines, slopes=slopes, axes=place)
        place.axhline(FLOOR, color=COLOURS["grey"], linestyle=":", linewidth=0.9)
        place.set(title=example.name, ylabel="largest error of $q$", ylim=(1e-15, 3.0))
    axes[0, 0].get_legend().remove()
    axes[0, 1].legend(loc="lower right")
    return claims, figure


def _claim(example: Example, tableau: Tableau, errors: list[float]) -> Claim:
    slope = observed_order(STEPS, errors, floor=FLOOR, least=2)
    exact = example is BALL and tableau.order > 1
    note = "parabolas are exact: order p + 1 or better" if exact else ""
    agrees = bool(np.isfinite(errors).all()) and slope >= tableau.order - 0.2
    return Claim(f"order of {tableau.name}, {example.name}", tableau.order, slope, agrees, note)


def _figure(tableaux: Sequence[Tableau], title: str) -> Callable[[], tuple[list[Claim], Figure]]:
    @styled
    def item() -> tuple[list[Claim], Figure]:
        return _orders(tableaux)

    item.__doc__ = title
    return item


fig4 = _figure(IMPLICIT, "Order of event capturing with Radau IIA and Lobatto IIIA (Fig. 4).")
fig5 = _figure(HALF_EXPLICIT, "Order of event capturing with half-explicit methods (Fig. 5).")
