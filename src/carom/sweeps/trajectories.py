"""Whole runs of some cells of a stored sweep, beside its numbers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from carom.arguments import did_you_mean, plain_numbers, whole
from carom.running.run import simulate
from carom.state import SimulationError, shortened
from carom.sweeps.cells import AbstractCells
from carom.sweeps.plan import Plan
from carom.sweeps.template import cell_of

if TYPE_CHECKING:
    import xarray

_FOLDER = "trajectories"


def chosen(cells: AbstractCells, wanted: Any) -> list[int]:
    """Numbers of cells: given as such, or as parameters, of which the nearest cell is taken."""
    if isinstance(wanted, (str, dict)) or not isinstance(wanted, Iterable):
        msg = f"trajectories must be a list of cells, each a number or a dict of parameters, got {shortened(wanted)}"
        raise TypeError(msg)
    return [_nearest(cells, one) if isinstance(one, dict) else _number(cells, one) for one in wanted]


def _number(cells: AbstractCells, one: Any) -> int:
    if whole(one, "trajectories: the number of a cell", 0) >= cells.count:
        msg = f"trajectories: there are {cells.count} cells, counted from 0, got {one}"
        raise ValueError(msg)
    return int(one)


def _nearest(cells: AbstractCells, one: dict[str, Any]) -> int:
    """The cell whose parameters are nearest, each in units of its range."""
    for name in one:
        if name not in cells.names:
            msg = f"trajectories: there is no parameter '{name}'{did_you_mean(name, cells.names)}"
            raise ValueError(msg)
    every = np.arange(cells.count)
    away = np.zeros(cells.count)
    for name, value in one.items():
        column = cells.column(name, every)
        if column.dtype.kind in "iuf":
            value = plain_numbers(value, f"trajectories: {name}", size=1).reshape(())
            away += np.abs(column - value) / (np.ptp(column[np.isfinite(column)]) or 1.0)
        else:
            away += column != value
    return int(np.nanargmin(away))


def store_trajectories(plan: Plan, numbers: list[int], path: Any) -> None:
    """Run cells again, every step kept, and store what was reached; runs that are there stay."""
    folder = Path(path) / _FOLDER
    for cell in numbers:
        place = folder / f"{cell}.nc"
        group = next(i for i, members in enumerate(plan.members) if cell in members)
        if place.exists() or isinstance(plan.templates[group], str):
            continue
        folder.mkdir(exist_ok=True)
        try:
            own = cell_of(plan.asked, plan.fixed[group], plan.first(cell))
            run = simulate(own.system, own.state, plan.asked.method, t1=own.t1, stepping=own.stepping)
        except SimulationError as error:
            run = error.solution
        except ValueError:  # its numbers are refused, as the message of the cell says
            run = None
        if run is not None:
            run.save(place)


def with_trajectories(data: xarray.Dataset, path: Any) -> xarray.Dataset:
    """The dataset with the files of the runs that are stored, where there are any: `trajectory`, "" for none."""
    files = {int(place.stem): str(place) for place in (Path(path) / _FOLDER).glob("*.nc")}
    if files:
        names = np.full(data.status.size, "", object)
        names[list(files)] = list(files.values())
        data["trajectory"] = (data.status.dims, names.reshape(data.status.shape))
    return data
