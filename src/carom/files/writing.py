"""What of a run goes into a file: its rows, its carry, what it kept, and who it was."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import jax
import numpy as np
import xarray

from carom.files import kept
from carom.files import whole_files as files
from carom.files.datasets import to_dataset
from carom.files.identity import description
from carom.state import Carry

if TYPE_CHECKING:
    from carom.solution import Solution


def save(solution: Solution, path: Any) -> None:
    """Write the dataset and the carry; the file appears complete or not at all."""
    files.write(with_carry(solution), run_path(path))


def run_path(path: Any) -> Path:
    """A path for a run, refused if its ending belongs to something else."""
    if Path(path).suffix not in (".nc", ""):
        msg = f"a run is stored as netCDF: name it .nc, got '{path}'; for tables use sol.to_pandas()"
        raise ValueError(msg)
    return Path(path)


def with_carry(solution: Solution, run_id: str | None = None) -> xarray.Dataset:
    """The dataset and all that `resume` needs; what belongs to one run bears one id."""
    data = to_dataset(solution)
    for name, leaf in named_leaves(solution.carry):
        array = np.asarray(leaf)
        stored = array.astype(np.int8) if array.dtype == bool else array
        data[name] = (tuple(f"{name}[{d}]" for d in range(array.ndim)), stored)
    kept.write(data, solution)
    described = description(solution.system, solution.method, solution.stepping)
    data.attrs |= {
        "run": run_id or uuid4().hex,
        "reads": json.dumps(described),
        "fingerprint": hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest(),
        "reached": float(solution.state.t),
        "ends": int(solution.carry.ends.size),
    }
    if solution.carry.pairs is not None:
        data.attrs["rooms"] = json.dumps(solution.carry.pairs.capacity)
    return data


def named_leaves(carry: Carry) -> list[tuple[str, Any]]:
    """The numbers of a carry, each with its name: `carry.state.t` and so on."""
    leaves = jax.tree_util.tree_leaves_with_path(carry)
    return [(f"carry{jax.tree_util.keystr(path)}".replace("/", "|"), leaf) for path, leaf in leaves]
