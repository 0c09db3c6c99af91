"""Runs read from disk: netCDF through xarray, whole or in parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray

from carom.choice import Choice
from carom.files import kept
from carom.files import whole_files as files
from carom.files.datasets import notes_of
from carom.solution import Solution
from carom.state import State


class Loaded(Solution):
    """A stored run: a solution that does not know the functions of its system."""

    def __init__(self, data: xarray.Dataset, path: Any):
        self.data, self.path = data, path
        self.columns = {"t": data.variables["time"].to_numpy()}
        self.columns |= {str(name): data[name].to_numpy() for name in data.data_vars if is_column(name)}
        self.keeps, self.kept = None, kept.read(data)
        self.happened = self.kept.pop(kept.EVENTS, None)
        self.choice = Choice.from_json(data.attrs["choice"]) if "choice" in data.attrs else None
        self.t, self.h, *_ = (self.columns[name] for name in ("t", "h", *kept.needed(data.attrs)))
        self.counted, self.notes = json.loads(data.attrs["stats"]), notes_of(data.attrs)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the coordinates, if they have any."""
        return tuple(map(str, np.asarray(self.data.get("coordinate", []))))

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the coordinates, one for all or one each, if they have any."""
        one = self.data["q"].attrs.get("units")
        return tuple(map(str, np.asarray(self.data.get("unit", [one] if one else []))))

    @property
    def time_unit(self) -> str:
        """Unit of the time, if it has one."""
        return str(self.data["time"].attrs.get("units", "s" if self.units else ""))

    @property
    def instants(self) -> np.ndarray:
        """Start, jumps of the forces, and the end that was asked for."""
        return self.data["carry.instants"].to_numpy()

    @property
    def facts(self) -> dict[str, Any]:
        """What was run and where it comes from."""
        return self.data.attrs

    @property
    def stats(self) -> dict[str, float]:
        """Counters and times of the run."""
        return self.counted

    def to_xarray(self) -> xarray.Dataset:
        """The rows as a dataset with labelled coordinates."""
        return self.data.drop_vars([name for name in self.data.data_vars if not is_column(name)])

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if hasattr(Solution, name) or name in ("system", "method", "stepping", "carry"):
                msg = f"a loaded run knows no system and so no '{name}': use carom.load(path, system=system)"
                raise AttributeError(msg)
            return super().__getattr__(name)

    def __repr__(self) -> str:
        return f"<Loaded {self.data.attrs['title'].strip('<>')}>"


def is_carry(name: Any) -> bool:
    """Whether a variable of a dataset belongs to what `resume` needs, not to the rows."""
    return str(name).startswith("carry.")


def is_column(name: Any) -> bool:
    """Whether a variable of a dataset is a column of the rows."""
    return not (is_carry(name) or kept.is_kept(name))


def start_of(run: Loaded) -> State:
    """The state of the first row; in place of a column that was not kept the last state stands."""
    last = {name: run.data[f"carry.state.{name}"].to_numpy() for name in "qv"}
    q, v = (run.columns[name][0] if name in run.columns else last[name] for name in "qv")
    return State(q, v, run.t[0])


def newest(path: Any) -> Loaded:
    """The run that `resume` goes on with: an unfinished one if there is one, else the finished one."""
    path = Path(path)
    unfinished = unfinished_parts(path)
    return merged(path, unfinished) if unfinished or not path.exists() else whole(path)


def whole(path: Path) -> Loaded:
    """A run in one file."""
    data = files.read(path)
    with files.readable(path):
        return Loaded(data, path)


def parts_folder(path: Path) -> Path:
    """The folder of the parts of an unfinished run."""
    return path.with_name(path.name + ".d")


def part_files(path: Path) -> list[Path]:
    """The parts of a run that is not finished, `run.nc.d/0001.nc` and so on, in their order."""
    return sorted(parts_folder(path).glob("[0-9]*.nc"), key=lambda p: int(p.stem) if p.stem.isdecimal() else 0)


def unfinished_parts(path: Path) -> list[Path]:
    """The parts that no finished file holds: those of another run than the file beside them."""
    found = part_files(path)
    if found and path.exists() and files.read(path).attrs.get("run") == files.read(found[-1]).attrs.get("run"):
        return []
    return found


def merged(path: Path, found: list[Path]) -> Loaded:
    """The parts of an unfinished run as one; each says which row its first one is, and replaces those from there on."""
    if not found:
        msg = f"{path}: no such run"
        raise ValueError(msg)
    parts = [files.read(file) for file in found]
    with files.readable(parts_folder(path)):
        _refuse_strangers(found, parts)
        kept, end = [], None
        for part in reversed(parts):
            first = int(part.attrs["first_row"])
            kept.insert(0, part if end is None else part.isel(time=slice(0, max(0, end - first))))
            end = first if end is None else min(end, first)
        return Loaded(_joined(kept), path)


def _joined(parts: list[xarray.Dataset]) -> xarray.Dataset:
    """Rows one after the other, with all else from the last part; columns that began later start with zeros."""
    last = parts[-1]
    data = last.drop_dims("time")
    for name in (n for n in last.variables if "time" in last[n].dims and n != "time"):
        shape = last[name].shape[1:]
        rows = [p[name].to_numpy() if name in p else np.zeros((p.sizes["time"], *shape)) for p in parts]
        data[name] = (last[name].dims, np.concatenate(rows).astype(last[name].dtype), last[name].attrs)
    return data.assign_coords(time=np.concatenate([p["time"].to_numpy() for p in parts]))


def _refuse_strangers(found: list[Path], parts: list[xarray.Dataset]) -> None:
    """Raise unless the parts are those of one run, without a gap."""
    rows = 0
    for i, (file, part) in enumerate(zip(found, parts)):
        if int(file.stem) != i + 1:
            msg = f"part {i + 1:04d}.nc is missing, so that the rows have a gap"
            raise ValueError(msg)
        if part.attrs["run"] != parts[0].attrs["run"]:
            msg = f"{file.name} belongs to another run than {found[0].name}: two runs were written to one place"
            raise ValueError(msg)
        first = int(part.attrs["first_row"])
        if not 0 <= first <= rows:
            msg = f"the rows of {file.name} begin with row {first}, but the parts before hold {rows}"
            raise ValueError(msg)
        rows = first + part.sizes["time"]
