"""From batches to a dataset: every number with the dimensions of the cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from carom.state import SimulationError
from carom.sweeps.cells import AbstractCells
from carom.sweeps.engine import Part
from carom.sweeps.plan import Batch, Plan
from carom.sweeps.tables import REFUSED

if TYPE_CHECKING:
    import xarray

_NOT_RUN = -2


class Gathered:
    """What the cells of a sweep gave so far."""

    def __init__(self, cells: AbstractCells, labels: tuple[str, ...], facts: dict[str, str]):
        self.cells, self.labels, self.facts = cells, labels, facts
        self.done = self.steps = 0
        self.dims: dict[str, tuple[str, ...]] = {}
        self.values: dict[str, np.ndarray] = {}
        self.messages: dict[int, str] = {}

    @classmethod
    def of(cls, plan: Plan) -> Gathered:
        """Nothing yet, but why groups of cells cannot run at all."""
        found = cls(plan.cells, plan.labels, plan.facts)
        found.messages |= plan.refused
        return found

    def take(self, batch: Batch, part: Part) -> None:
        """Put the numbers of a batch where its cells are; shorter arrays of other groups leave NaN behind them."""
        cells = batch.cells[: batch.count]
        for name, (dims, values) in part.tables.items():
            self.dims[name] = dims
            there = self._room(name, values)
            inner = tuple(slice(0, n) for n in values.shape[1:])
            there[(cells, *inner)] = values[: batch.count]
        self.messages |= {int(cells[i]): text for i, text in part.messages.items() if i < batch.count}
        self.done += batch.count
        self.steps += int(part.tables["steps"].values[: batch.count].sum())

    def _room(self, name: str, values: np.ndarray) -> np.ndarray:
        old = self.values.get(name)
        shape = values.shape[1:] if old is None else tuple(map(max, old.shape[1:], values.shape[1:]))
        if old is None or old.shape[1:] != shape:
            empty = np.nan if values.dtype.kind == "f" else _NOT_RUN if name == "status" else 0
            new = np.full((self.cells.count, *shape), empty, values.dtype)
            if old is not None:
                new[tuple(slice(0, n) for n in old.shape)] = old
            self.values[name] = new
        return self.values[name]

    def finish(self) -> Gathered:
        """Raise if no cell at all came to its end."""
        status, refused = self.values["status"], np.zeros(self.cells.count, bool)
        refused[list(self.messages)] = True
        status[refused & (status == _NOT_RUN)] = REFUSED
        if (status != 0).all():
            cell, text = min(self.messages.items())
            msg = f"every cell of the sweep failed; the first, {self.cells.at(cell)}: {text}"
            raise SimulationError(msg)
        return self

    def dataset(self) -> xarray.Dataset:
        """All numbers, with the parameters as coordinates."""
        import xarray

        cells, shape = self.cells, tuple(self.cells.dims.values())
        messages = np.full(cells.count, "", object)
        messages[self.values["status"] == _NOT_RUN] = "not run yet"
        for cell, text in self.messages.items():
            messages[cell] = text
        variables = {
            name: ((*cells.dims, *self.dims[name]), values.reshape(shape + values.shape[1:]))
            for name, values in self.values.items()
        }
        variables["message"] = (tuple(cells.dims), messages.reshape(shape))
        coordinates: dict[str, Any] = dict(cells.coordinates())
        sizes = {dim: n for name, x in self.values.items() for dim, n in zip(self.dims[name], x.shape[1:])}
        if self.labels and sizes.get("coordinate") == len(self.labels):
            coordinates["coordinate"] = ("coordinate", list(self.labels))
        return xarray.Dataset(variables, coordinates, attrs=self.facts)
