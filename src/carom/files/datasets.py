"""Solutions as datasets and tables: rows with labels, units and where they come from."""

from __future__ import annotations

import json
import math
import platform
import shlex
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas
import xarray

from carom._config import __version__
from carom.plain import describe
from carom.systems.contact_rows import laws_of
from carom.systems.system import System

if TYPE_CHECKING:
    from carom.solution import Solution

_SHARED = {
    "coordinate": ("q", "v", "v_minus"),
    "law": ("mode", "event", "impulse", "work"),
    "constraint": ("multiplier",),
}
_APART = {"v": "velocity", "v_minus": "velocity", "impulse": "row", "work": "row"}
_LONG_NAMES = {
    "time": "time",
    "elapsed": "time since the start",
    "k": "index of the step",
    "h": "step size",
    "q": "coordinates",
    "v": "velocities, right limits",
    "v_minus": "velocities, left limits",
    "residual": "residual of the equations of the step",
    "iterations": "iterations of the solver",
    "evaluations": "evaluations of the forces",
    "impulse": "impulses of the contact laws",
    "mode": "modes of the contact laws",
    "multiplier": "multipliers of the bilateral constraints",
    "order": "order used in the step",
}


def to_dataset(solution: Solution) -> xarray.Dataset:
    """Rows as an xarray dataset."""
    variables = {}
    for name, values in solution.columns.items():
        if name == "t":
            continue
        dims = [f"{name}_{i}" for i in range(values.ndim - 1)]
        if dims:
            dims[0] = _dimension(solution.columns, name)
        variables[name] = (("time", *dims), values)
    coords: dict[str, Any] = {"time": solution.t}
    if solution.system.labels:
        coords["coordinate"] = list(solution.system.labels)
    if any(group.names for group in solution.system.contact_groups):
        coords["law"] = laws_of(solution.system, solution.state).called_laws
    data = xarray.Dataset(variables, coords, attributes(solution))
    for name, long_name in _LONG_NAMES.items():
        if name in data.variables:
            data[name].attrs["long_name"] = long_name
    return _with_units(data, solution.system)


def _dimension(columns: Mapping[str, Any], name: str) -> str:
    """The dimension that a column shares with others; where it has another size, one of its own."""
    for dimension, names in _SHARED.items():
        if name in names:
            first = next(columns[each] for each in names if each in columns)
            return dimension if first.shape[1] == columns[name].shape[1] else _APART.get(name, f"{name}_0")
    return f"{name}_0"


def attributes(solution: Solution) -> dict[str, Any]:
    """What was run and where it comes from, as a file tells it."""
    origin = solution.system.origin
    found = {
        "title": repr(solution),
        "method": json.dumps(describe(solution.method)),
        "stepping": json.dumps(describe(solution.stepping)),
        "model": json.dumps(origin and [origin.name, origin.arguments]),
        "carom": __version__,
        "jax": metadata.version("jax"),
        "stats": json.dumps(solution.stats),
        "python": platform.python_version(),
        "command": _command(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if solution.choice is not None:
        found["choice"] = solution.choice.to_json()
    return found | solution.notes


def _command() -> str:
    return shlex.join([Path(sys.argv[0]).name.replace("__main__.py", "carom"), *sys.argv[1:]])


def to_frame(run: Solution) -> pandas.DataFrame:
    """Rows as a table, a column per number."""
    names, table = run.labels, {}
    for column, values in run.columns.items():
        flat = values.reshape(len(values), math.prod(values.shape[1:]))
        named = column in _SHARED["coordinate"] and len(set(names)) == flat.shape[1]
        for i, entry in enumerate(flat.T):
            table[f"{column}.{names[i] if named else i}" if values.ndim > 1 else column] = entry
    return pandas.DataFrame(table).set_index("t")


def notes_of(attributes: dict[str, Any]) -> dict[str, Any]:
    """What a stored run keeps when it is stored again."""
    names = ("command", "created", "outputs", "save_every")
    return {name: attributes[name] for name in names if name in attributes}


def gone_on(run: Solution) -> dict[str, Any]:
    """The notes of a stored run that goes on now: its commands one after the other."""
    kept = {name: note for name, note in run.notes.items() if name != "created"}
    return kept | {"command": f"{kept['command']} && {_command()}" if "command" in kept else _command()}


def _with_units(data: xarray.Dataset, system: System) -> xarray.Dataset:
    """Units of the time, and of the coordinates: one for all as an attribute, else one per coordinate."""
    units, second = system.units, system.time_unit
    for name in ("time", "h") if second else ():
        if name in data.variables:
            data[name].attrs["units"] = second
    if len(set(units)) == 1:
        if "q" in data:
            data["q"].attrs["units"] = units[0]
        if system.rates and "v" in data:
            data["v"].attrs["units"] = f"{units[0]} {second}-1"
    elif len(units) == data.sizes.get("coordinate"):
        data = data.assign_coords(unit=("coordinate", list(units)))
    return data
