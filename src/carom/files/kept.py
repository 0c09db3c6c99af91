"""What keeps found, and which keeps they were, as a file tells it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import xarray

from carom.arguments import names_of
from carom.files.identity import difference
from carom.keep import Highest, Keeps, Places, Pushes
from carom.running.functions import reading
from carom.systems.contact_rows import Happened

if TYPE_CHECKING:
    from carom.solution import Solution

_RECORDS = {"places": Places, "highest": Highest, "pushes": Pushes, "happened": Happened}
EVENTS = "keep.events"
_PREFIX = "kept."
_COLUMNS = "keep.columns"


def is_kept(name: Any) -> bool:
    """Whether a variable of a dataset belongs to what keeps found."""
    return str(name).startswith(_PREFIX)


def needed(attributes: dict[str, Any]) -> tuple[str, ...]:
    """The columns of places that a stored run must have, unless it was asked to keep others."""
    columns = json.loads(attributes.get("keeps", "{}")).get(_COLUMNS)
    return ("q", "v") if columns is None or columns["names"] == "()" else ()


def write(data: xarray.Dataset, solution: Solution) -> None:
    """Add what was found, one variable per array, and what the keeps were; values that are no numbers stay behind."""
    kinds = {}
    happened = {} if solution.happened is None else {EVENTS: solution.happened}
    for name, value in (solution.kept | happened).items():
        arrays = [(path, np.asarray(leaf)) for path, leaf in jax.tree_util.tree_leaves_with_path(value)]
        if not all(array.dtype.kind in "fiub" for _, array in arrays):
            continue
        kinds[name] = next((kind for kind, record in _RECORDS.items() if isinstance(value, record)), "value")
        for path, array in arrays:
            variable = _variable(name, jax.tree_util.keystr(path))
            stored = array.astype(np.int8) if array.dtype == bool else array
            data[variable] = (tuple(f"{variable}[{d}]" for d in range(array.ndim)), stored)
    if solution.keeps is not None or kinds:
        data.attrs |= {"kept": json.dumps(kinds), "keeps": json.dumps(described(solution.keeps))}


def _variable(name: str, path: str) -> str:
    return f"{_PREFIX}{name}{path}".replace("/", "|")


def read(data: xarray.Dataset) -> dict[str, Any]:
    """What was found, by name; a value made of several arrays comes as a dict of them."""
    found = {}
    for name, kind in json.loads(data.attrs.get("kept", "{}")).items():
        if kind in _RECORDS:
            record = _RECORDS[kind]
            found[name] = record(*(_numbers(data, _variable(name, f".{field}")) for field in record._fields))
            continue
        start = _variable(name, "")
        parts = [v for v in map(str, data.data_vars) if v == start or v.startswith((f"{start}[", f"{start}."))]
        values = {v.removeprefix(start): _numbers(data, v) for v in parts}
        found[name] = values.get("", values)
    return found


def _numbers(data: xarray.Dataset, variable: str) -> Any:
    array = data[variable].to_numpy()
    return array[()] if array.ndim == 0 else array


def described(keeps: Keeps | None) -> dict[str, dict[str, str]]:
    """All that decides what is kept, by name: numbers, choices, and what each function reads."""
    if keeps is None:
        return {}
    records: dict[str, Any] = dict(keeps.entries) | {_COLUMNS: keeps.columns}
    return {name: _described(record) for name, record in records.items() if record is not None}


def _described(record: Any) -> dict[str, str]:
    found = {"": type(record).__name__}
    choices = {name: x for name, x in vars(record).items() if isinstance(x, (str, int, tuple, type(None)))}
    found |= {name: str(x) for name, x in choices.items()}
    for path, leaf in jax.tree_util.tree_leaves_with_path(record):
        name = jax.tree_util.keystr(path).removeprefix(".")
        if callable(leaf):
            found |= {f"{name}.{inner}": str(value) for inner, value in reading(leaf).items()}
        else:
            found[name] = str(np.asarray(leaf).tolist())
    return found


def refuse_others(keeps: Keeps | None, attributes: dict[str, Any]) -> None:
    """Raise unless the keeps are those that were stored."""
    now, stored = described(keeps), json.loads(attributes.get("keeps", "{}"))
    if set(now) != set(stored):
        here, there = names_of(sorted(now)), names_of(sorted(stored))
        msg = f"the stored run keeps {there}, this one {here}: pass what it keeps again as keep="
        raise ValueError(msg)
    for name in now:
        apart = difference(name, now[name], stored[name])
        if apart is not None:
            msg = f"keep is not the one that was stored: {apart}"
            raise ValueError(msg)
