"""Contact laws over time: their names, forces without impacts, impulses of impacts, and modes in words."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from carom.plots.style import own_axes, styled
from carom.solution import Solution
from carom.solvers.contact_laws import Laws
from carom.state import State
from carom.systems.contact_rows import Event, laws_of

#: Modes of the diagram: those of `Solution.mode`, apart for contacts (0, 1) and friction (2, 3, 4).
MODES = {
    0: "closed",
    1: "open",
    2: "sticks",
    3: "slips +",
    4: "slips −",
}
Series = dict[str, tuple[np.ndarray, np.ndarray]]


def laws_in(run: Any) -> Laws | None:
    """How many contact laws of each kind a run has, if its system is known and has any."""
    system = getattr(run, "system", None)
    if system is None or (system.contacts is None and system.friction is None):
        return None
    return laws_of(system, State(run.columns["q"][0], run.columns["v"][0], run.columns["t"][0]))


def law_names(laws: Laws | None, count: int) -> list[str]:
    """Names of the columns of `mode`, `event` or `impulse`; contacts have the user's names or are numbered from 0.

    Numbers are those of `Solution.events`.
    """
    if laws is None:
        return [f"law {i}" for i in range(count)]
    by_row = count != laws.count
    names = [f"contact {laws.called(i)}" for i in range(laws.contacts)]
    for kind, first, blocks in (("friction", 0, laws.tangential), ("element", laws.contacts, laws.sliders)):
        for block in blocks:
            axes = "xy" if by_row and block.directions == 2 else ("",)
            owners = range(first + block.laws.start, first + block.laws.stop)
            names += [f"{kind} {_called(laws, i)}{axis}" for i in owners for axis in axes]
    return names if len(names) >= count else law_names(None, count)


def _called(laws: Laws, i: int) -> str:
    return laws.called(i) if i < laws.contacts else str(i)


def column_owners(laws: Laws, count: int) -> np.ndarray:
    """The contact or element, by number, of each column of `impulse`."""
    blocks = ((0, laws.tangential), (laws.contacts, laws.sliders))
    friction = [
        np.repeat(first + np.arange(b.laws.start, b.laws.stop), b.directions) for first, bs in blocks for b in bs
    ]
    return np.concatenate([np.arange(laws.contacts), *friction])[:count]


def forces_and_impacts(run: Any) -> tuple[Series, Series]:
    """Force of every law over time, steps with an impact left out, and the impulses of those steps.

    The force is impulse / h; in a step in which a contact closes or bounces it would only say how short the step was.
    """
    c, laws = run.columns, laws_in(run)
    P, h, t = c["impulse"][1:].reshape(len(c["t"]) - 1, -1), c["h"][1:], c["t"][1:]
    names = law_names(laws, P.shape[1])
    hit = np.zeros(P.shape, bool)
    if laws is not None and "event" in c:
        struck = np.isin(c["event"][1:, : laws.contacts], (Event.CLOSES, Event.BOUNCES))
        for j, i in enumerate(column_owners(laws, P.shape[1])):
            hit[:, j] = struck[:, i] if i < laws.contacts else False
    forces = {name: (t[~hit[:, j]], P[~hit[:, j], j] / h[~hit[:, j]]) for j, name in enumerate(names[: P.shape[1]])}
    impacts = {name: (t[hit[:, j]], P[hit[:, j], j]) for j, name in enumerate(names[: P.shape[1]]) if hit[:, j].any()}
    return forces, impacts


def modes_in_words(laws: Laws | None, rows: np.ndarray) -> np.ndarray:
    """Modes as keys of `MODES`: friction apart from contacts, and open where its contact is open."""
    if laws is None:
        return rows
    n = laws.contacts
    friction = np.select([rows == 0, rows == -1], [2, 4], 3)
    told = np.where(np.arange(rows.shape[1]) < n, rows, friction)
    friction = slice(n, n + laws.frictions)
    told[:, friction] = np.where(rows[:, laws.owners] == 0, told[:, friction], 1)
    return told


@styled
def contact_forces(solution: Solution, *, axes: Axes | None = None) -> Figure:
    """Forces of the contact laws over time; impacts are marked by a tick at their time, their impulse is not a force.

    Example:
        >>> carom.plots.contact_forces(sol)
    """
    figure, axes = own_axes(axes)
    forces, impacts = forces_and_impacts(solution)
    for name, (t, force) in forces.items():
        axes.plot(t, force, linewidth=1.0, label=name)
    times = np.unique(np.concatenate([t for t, _ in impacts.values()])) if impacts else np.zeros(0)
    low = axes.get_ylim()[0]
    axes.plot(times, np.full(times.shape, low), "|", color="grey", label="impacts" if len(times) else None)
    axes.set(xlabel="time $t$", ylabel="contact force")
    axes.legend()
    return figure
