"""Sweeps on disk: Zarr (format 2, plain chunks, one per batch), and a ledger of the batches that are done.

A chunk is written beside its place and then moved there, and a batch is noted in the ledger after its chunks: killed
at any time, a sweep goes on with what is missing. Rows lie in the order of batches; `cell` says which cell a row is,
-1 for those that only fill up a batch.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from carom.files.identity import difference, flat
from carom.plain import describe
from carom.running.functions import reading
from carom.sweeps import cells as kinds
from carom.sweeps.engine import Part
from carom.sweeps.gathering import Gathered
from carom.sweeps.plan import Batch, Plan
from carom.sweeps.tables import Table
from carom.sweeps.trajectories import with_trajectories

if TYPE_CHECKING:
    import xarray

_LEDGER, _CELLS, _GROUP, _ATTRIBUTES = "ledger.jsonl", "cells.npz", ".zgroup", ".zattrs"
_HEAD = {_CELLS, _GROUP, _ATTRIBUTES, f"part.{_GROUP}", f"part.{_ATTRIBUTES}"}  # all there is before the ledger


class Store:
    """A folder that holds a sweep, or will."""

    def __init__(self, path: Any, plan: Plan):
        self.path, self.plan, self.batches = Path(path), plan, plan.batches
        self.numbers = {id(batch): i for i, batch in enumerate(self.batches)}
        asked = {"reads": identity(plan), "facts": plan.facts, "labels": list(plan.labels)}
        asked |= {"cells": type(plan.cells).__name__, "refused": {str(k): x for k, x in plan.refused.items()}}
        if (self.path / _LEDGER).exists():
            self._refuse_another(asked["reads"])
            _end_line(self.path / _LEDGER)
            return
        if self.path.exists() and not {one.name for one in self.path.iterdir()} <= _HEAD:
            msg = f"{self.path} is not empty and holds no sweep: name another folder"
            raise ValueError(msg)
        self.path.mkdir(parents=True, exist_ok=True)
        np.savez(self.path / _CELLS, **plan.cells.values)  # pyright: ignore
        _write(self.path / _GROUP, json.dumps({"zarr_format": 2}))
        _write(self.path / _ATTRIBUTES, json.dumps({"sweep": asked}))
        (self.path / _LEDGER).touch()

    def _refuse_another(self, now: dict[str, dict[str, str]]) -> None:
        stored = _asked(self.path)["reads"]
        for role in now:
            apart = difference(role, now[role], stored.get(role, {}))
            if apart is not None:
                msg = f"{self.path} holds another sweep: {apart}; name another folder"
                raise ValueError(msg)

    def done(self) -> Iterator[tuple[Batch, Part]]:
        """The batches that are there."""
        return _parts(self.path)

    def missing(self) -> list[Batch]:
        """The batches that are not."""
        there = {entry["batch"] for entry in _ledger(self.path)}
        return [batch for i, batch in enumerate(self.batches) if i not in there]

    def put(self, batch: Batch, part: Part) -> None:
        """Write a batch; where that fails, what was written before is whole."""
        rows = np.where(np.arange(len(batch.cells)) < batch.count, batch.cells, -1)
        tables = {"cell": Table((), rows), **part.tables}
        if not any(self.path.glob("*/.zarray")):
            self._refuse_size(tables)
        try:
            self._put(batch, part.messages, tables)
        except OSError as error:
            msg = f"{error}; the same call goes on with the missing cells"
            raise OSError(msg) from error

    def _put(self, batch: Batch, told: dict[int, str], tables: dict[str, Table]) -> None:
        number = self.numbers[id(batch)]
        for name, (dims, values) in tables.items():
            self._describe(name, dims, values)
            chunk = ".".join([str(number)] + ["0"] * (values.ndim - 1))
            _write(self.path / name / chunk, np.ascontiguousarray(values).tobytes())
        entry = {"batch": number, "messages": {str(i): x for i, x in told.items() if i < batch.count}}
        entry["results"] = sorted(tables)
        with (self.path / _LEDGER).open("a", encoding="utf-8") as ledger:
            ledger.write(json.dumps(entry) + "\n")

    def _refuse_size(self, tables: dict[str, Table]) -> None:
        wanted = len(self.batches) * sum(values.nbytes for _, values in tables.values())
        free = shutil.disk_usage(self.path).free
        if wanted > free:
            msg = f"the sweep needs {wanted / 1e9:.3g} GB in {self.path}, where {free / 1e9:.3g} GB are free"
            raise OSError(msg)

    def _describe(self, name: str, dims: tuple[str, ...], values: np.ndarray) -> None:
        place = self.path / name / ".zarray"
        chunk = list(values.shape)
        if place.exists():
            if json.loads(place.read_text())["chunks"] != chunk:
                msg = f"{name} has not the same shape in all cells: sweep them into folders of their own"
                raise ValueError(msg)
            return
        fill = "NaN" if values.dtype.kind == "f" else -2 if name == "status" else -1
        told = {"zarr_format": 2, "shape": [len(self.batches) * chunk[0], *chunk[1:]], "chunks": chunk}
        told |= {"dtype": values.dtype.str, "order": "C", "fill_value": fill, "compressor": None, "filters": None}
        place.parent.mkdir(exist_ok=True)
        _write(place.with_name(_ATTRIBUTES), json.dumps({"_ARRAY_DIMENSIONS": ["row", *dims]}))
        _write(place, json.dumps(told))


def load_sweep(path: Any) -> xarray.Dataset:
    """The dataset of a stored sweep, finished or not; cells that have not run yet say so in `message`.

    Example:
        >>> data = carom.load_sweep("sweep.zarr")
    """
    path = Path(path)
    if not (path / _LEDGER).exists():
        msg = f"{path} holds no sweep"
        raise FileNotFoundError(msg)
    asked = _asked(path)
    with np.load(path / _CELLS) as stored:
        cells = object.__new__(getattr(kinds, asked["cells"]))
        cells.values = {name: stored[name] for name in stored.files}
    sizes = {name: len(x) for name, x in cells.values.items()}
    cells.names = tuple(sizes)
    cells.dims = sizes if isinstance(cells, kinds.Grid) else {cells.dim: next(iter(sizes.values()))}
    gathered = Gathered(cells, tuple(asked["labels"]), asked["facts"])
    gathered.messages |= {int(cell): text for cell, text in asked["refused"].items()}
    for batch, part in _parts(path):
        gathered.take(batch, part)
    if not gathered.done:
        msg = f"{path}: no batch is finished yet"
        raise ValueError(msg)
    return with_trajectories(gathered.dataset(), path)


def identity(plan: Plan) -> dict[str, dict[str, str]]:
    """All that decides on the numbers of a sweep, by role: what its functions read, its cells, and how they are cut."""
    roles: dict[str, Any] = {name: getattr(plan.asked, name) for name in ("build", "t1", "h", "stepping", "keep")}
    found = {role: {name: str(value) for name, value in reading(thing).items()} for role, thing in roles.items()}
    cells = {"": f"{type(plan.cells).__name__} of {', '.join(plan.cells.names)}"}
    cells |= {name: str(reading(values)[""]) for name, values in plan.cells.values.items()}
    cut = {"batch": str(plan.lanes), "static": ", ".join(plan.asked.static), "device": jax.default_backend()}
    return found | {"method": dict(flat(describe(plan.asked.method))), "cells": cells, "sweep": plan.facts | cut}


def _asked(path: Path) -> dict[str, Any]:
    return json.loads((path / _ATTRIBUTES).read_text(encoding="utf-8"))["sweep"]


def _ledger(path: Path) -> list[dict[str, Any]]:
    """The batches that are done; a last line that was cut off does not count."""
    found = []
    for line in (path / _LEDGER).read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def _end_line(ledger: Path) -> None:
    """Let the next line begin behind one that was cut off."""
    text = ledger.read_text(encoding="utf-8")
    if text and not text.endswith("\n"):
        with ledger.open("a", encoding="utf-8") as lines:
            lines.write("\n")


def _parts(path: Path) -> Iterator[tuple[Batch, Part]]:
    arrays = {}
    for place in path.glob("*/.zarray"):
        told = json.loads(place.read_text())
        dims = json.loads(place.with_name(_ATTRIBUTES).read_text())["_ARRAY_DIMENSIONS"]
        arrays[place.parent.name] = (tuple(dims[1:]), np.dtype(told["dtype"]), told["chunks"])
    for entry in _ledger(path):
        tables = {}
        for name in entry.get("results", arrays):
            dims, dtype, shape = arrays[name]
            tables[name] = Table(dims, _chunk(path / name, entry["batch"], dtype, shape))
        rows = tables.pop("cell").values
        messages = {int(i): text for i, text in entry["messages"].items()}
        yield Batch(0, rows, int((rows >= 0).sum())), Part(tables, messages, (np.empty(0), np.empty(0)))


def _chunk(folder: Path, batch: int, dtype: np.dtype, shape: list[int]) -> np.ndarray:
    place = folder / ".".join([str(batch)] + ["0"] * (len(shape) - 1))
    try:
        return np.fromfile(place, dtype).reshape(shape)
    except (OSError, ValueError) as error:
        msg = f"{place} is missing or damaged, without which the sweep cannot be read: name another folder ({error})"
        raise ValueError(msg) from None


def _write(place: Path, content: str | bytes) -> None:
    """Replace a file at once."""
    partial = place.with_name(f"part.{place.name}")
    partial.write_bytes(content.encode() if isinstance(content, str) else content)
    partial.replace(place)
