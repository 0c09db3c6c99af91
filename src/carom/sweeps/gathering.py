"""From batches to a dataset: every number with the dimensions of the cells."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from carom.state import SimulationError
from carom.sweeps.engine import Part
from carom.sweeps.plan import Batch, Plan
from carom.sweeps.template import Template

if TYPE_CHECKING:
    import xarray


class Gathered:
    """What the cells of a sweep gave so far."""

    def __init__(self, plan: Plan):
        self.plan, self.done, self.steps = plan, 0, 0
        self.dims: dict[str, tuple[str, ...]] = {}
        self.values: dict[str, np.ndarray] = {}
        self.messages: dict[int, str] = {}
        for group, members in zip(plan.templates, plan.members):
            if isinstance(group, str):
                self.messages |= dict.fromkeys(members.tolist(), group)

    def take(self, batch: Batch, part: Part) -> None:
        """Put the numbers of a batch where its cells are; shorter arrays of other groups leave NaN behind them."""
        cells = batch.cells[: batch.count]
        for name, (dims, values) in part.tables.items():
            if taken := {name, *dims} & {*self.plan.cells.names, *self.plan.cells.dims}:
                msg = f"keep: '{taken.pop()}' is a parameter of the sweep too; give the keep another name, keep={{...}}"
                raise ValueError(msg)
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
            empty = np.nan if values.dtype.kind == "f" else -1 if name == "status" else 0
            new = np.full((self.plan.cells.count, *shape), empty, values.dtype)
            if old is not None:
                new[tuple(slice(0, n) for n in old.shape)] = old
            self.values[name] = new
        return self.values[name]

    def finish(self) -> Gathered:
        """Raise if no cell at all came to its end."""
        if (self.values["status"] != 0).all():
            cell, text = next(iter(sorted(self.messages.items())))
            msg = f"every cell of the sweep failed; the first, {self.plan.cells.at(cell)}: {text}"
            raise SimulationError(msg)
        return self

    def dataset(self) -> xarray.Dataset:
        """All numbers, with the parameters as coordinates."""
        import xarray

        cells, shape = self.plan.cells, tuple(self.plan.cells.dims.values())
        messages = np.full(cells.count, "", object)
        for cell, text in self.messages.items():
            messages[cell] = text
        variables = {
            name: ((*cells.dims, *self.dims[name]), values.reshape(shape + values.shape[1:]))
            for name, values in self.values.items()
        }
        variables["message"] = (tuple(cells.dims), messages.reshape(shape))
        coordinates: dict[str, Any] = dict(cells.coordinates())
        labels = next(t.labels for t in self.plan.templates if isinstance(t, Template))
        sizes = {dim: n for name, x in self.values.items() for dim, n in zip(self.dims[name], x.shape[1:])}
        if labels and sizes.get("coordinate") == len(labels):
            coordinates["coordinate"] = ("coordinate", list(labels))
        return xarray.Dataset(variables, coordinates, attrs=facts(self.plan))


def facts(plan: Plan) -> dict[str, str]:
    """What a sweep was, in words."""
    asked = plan.asked
    return {
        "build": getattr(asked.build, "__qualname__", type(asked.build).__name__),
        "method": type(asked.method).__name__,
        "carom": metadata.version("carom"),
        "jax": metadata.version("jax"),
    }
