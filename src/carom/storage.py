"""Runs on disk: netCDF through xarray, and going on from where a run stopped."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, cast, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray

from carom import methods
from carom import stepping as steppings
from carom.choice import Choice
from carom.loop import Layout, Problem, Start, begin, blank_carry
from carom.methods.active_set import Coefficients
from carom.methods.base import AbstractMethod
from carom.models.registry import build
from carom.run import Run, finish, stop_function, stride
from carom.solution import RowStore, Solution, append
from carom.solvers import newton, pjor, psor, semismooth
from carom.state import Carry, Clock, State, Status, lift
from carom.stepping.base import AbstractStepping
from carom.systems.system import System
from carom.tableaux import Tableau, from_name

_RECORDS = (methods, steppings, newton, pjor, psor, semismooth)  # where stored records are looked up by name
_DIMS = {"q": "coordinate", "v": "velocity", "v_minus": "velocity"}
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
        dims = [_DIMS.get(name, f"{name}_{i}") if i == 0 else f"{name}_{i}" for i in range(values.ndim - 1)]
        variables[name] = (("time", *dims), values)
    coords: dict[str, Any] = {"time": solution.t}
    origin = solution.system.origin
    if solution.system.labels:
        coords["coordinate"] = list(solution.system.labels)
    attributes = {
        "title": repr(solution),
        "method": json.dumps(describe(solution.method)),
        "stepping": json.dumps(describe(solution.stepping)),
        "model": json.dumps(origin and [origin.name, origin.arguments]),
        "carom": metadata.version("carom"),
        "jax": metadata.version("jax"),
        "stats": json.dumps(solution.stats),
        "python": platform.python_version(),
        "command": shlex.join([Path(sys.argv[0]).name.replace("__main__.py", "carom"), *sys.argv[1:]]),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if solution.choice is not None:
        attributes["choice"] = solution.choice.to_json()
    data = xarray.Dataset(variables, coords, attributes)
    for name, long_name in _LONG_NAMES.items():
        if name in data.variables:
            data[name].attrs["long_name"] = long_name
    return _with_units(data, solution.system.units)


def _with_units(data: xarray.Dataset, units: tuple[str, ...]) -> xarray.Dataset:
    """Units of the coordinates: one for all as an attribute, else one per coordinate."""
    if len(set(units)) == 1:
        data["q"].attrs["units"] = units[0]
        data["v"].attrs["units"] = f"{units[0]} s-1"
    elif len(units) == data.sizes["coordinate"]:
        data = data.assign_coords(unit=("coordinate", list(units)))
    return data


def save(solution: Solution, path: Any) -> None:
    """Write the dataset and the carry; the file appears complete or not at all."""
    if Path(path).suffix not in (".nc", ""):
        msg = f"a run is stored as netCDF: name it .nc, got '{path}'; for tables use sol.to_xarray().to_dataframe()"
        raise ValueError(msg)
    write(with_carry(solution), path)


def with_carry(solution: Solution) -> xarray.Dataset:
    """The dataset and all that `resume` needs."""
    data = to_dataset(solution)
    for i, leaf in enumerate(jax.tree.leaves(solution.carry)):
        array = np.asarray(leaf)
        stored = array.astype(np.int8) if array.dtype == bool else array
        data[f"carry_{i}"] = (tuple(f"carry_{i}_{d}" for d in range(array.ndim)), stored)
    data.attrs["fingerprint"] = fingerprint(solution.system, solution.method, solution.stepping)
    data.attrs["reached"] = float(solution.state.t)
    data.attrs["segments"] = int(solution.carry.ends.size)
    return data


def write(data: xarray.Dataset, path: Any) -> None:
    """Write a netCDF file that appears complete or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    data.to_netcdf(partial, engine="h5netcdf")
    os.replace(partial, path)


class Loaded:
    """A stored run: rows as in a `Solution`, without the functions of its system."""

    def __init__(self, data: xarray.Dataset):
        self.data = data
        self.columns = {"t": data["time"].to_numpy()}
        self.columns |= {
            str(name): data[name].to_numpy() for name in data.data_vars if not str(name).startswith("carry_")
        }
        self.stats = json.loads(data.attrs["stats"])
        self.choice = Choice.from_json(data.attrs["choice"]) if "choice" in data.attrs else None
        self.t, self.q, self.v, self.h = (self.columns[name] for name in ("t", "q", "v", "h"))

    def __getattr__(self, name: str) -> Any:
        columns = self.__dict__.get("columns", {})
        if name in columns:
            return columns[name]
        if name in ("account", "events", "system", "state", "force", "at"):
            msg = f"a loaded run knows no system and so no '{name}': use carom.load(path, system=system)"
            raise AttributeError(msg)
        msg = f"a loaded run has no '{name}'; recorded are {', '.join(columns)}"
        raise AttributeError(msg)

    def __repr__(self) -> str:
        return f"<Loaded {self.data.attrs['title'].strip('<>')}>"


@overload
def load(path: Any, *, system: System) -> Solution: ...
@overload
def load(path: Any, *, system: None = None) -> Loaded: ...
def load(path: Any, *, system: System | None = None) -> Loaded | Solution:
    """Read a stored run: its rows, or with `system=` (the one that was run) the whole `Solution` with its account.

    Example:
        >>> run = carom.load("run.nc"); run.t, run.q, run.v
        >>> sol = carom.load("run.nc", system=system); sol.account.worst
    """
    stored = _load(path)
    return stored if system is None else revive(stored, system)


def _load(path: Any) -> Loaded:
    path = Path(path)
    if not path.exists() and segment_files(path):
        return Loaded(merged(path))
    if not path.exists():
        msg = f"{path}: no such run"
        raise ValueError(msg)
    return Loaded(_read(path))


def _read(path: Path) -> xarray.Dataset:
    try:
        with xarray.open_dataset(path, engine="h5netcdf", decode_timedelta=False) as data:
            return data.load()
    except OSError as error:
        msg = f"{path}: not a run stored by carom ({str(error).splitlines()[0]})"
        raise ValueError(msg) from None


def segment_files(path: Path) -> list[Path]:
    """The segments of an unfinished run, `run.nc.d/0001.nc` and so on, in their order."""
    return sorted(path.with_name(path.name + ".d").glob("[0-9]*.nc"), key=lambda p: int(p.stem))


def merged(path: Path) -> xarray.Dataset:
    """The segments of an unfinished run as one dataset: rows of a later segment replace those from their k on."""
    last: xarray.Dataset | None = None
    parts: list[xarray.Dataset] = []
    for file in segment_files(path):
        last = _read(file)
        parts = [part.isel(time=part["k"].to_numpy() < int(last["k"][0])) for part in parts]
        parts.append(last)
    assert last is not None
    data = last.drop_dims("time")
    for name in (n for n in last.variables if "time" in last[n].dims and n != "time"):
        shape = last[name].shape[1:]
        rows = [p[name].to_numpy() if name in p else np.zeros((p.sizes["time"], *shape)) for p in parts]
        data[name] = (last[name].dims, np.concatenate(rows).astype(last[name].dtype), last[name].attrs)
    return data.assign_coords(time=np.concatenate([p["time"].to_numpy() for p in parts]))


def revive(run: Loaded, system: System | None = None) -> Solution:
    """The solution of a stored run, with its system, as it was when it was stored."""
    solution = resume(run, system=system, t1=run.data.attrs["reached"])
    solution.timing.update({name: run.stats[name] for name in solution.timing})
    solution.choice = run.choice
    return solution


def with_system(run: Any, system: System | None = None) -> Solution:
    """A run with its system: as it is, found by the name of its model, or with the one given."""
    if isinstance(run, Solution):
        return run
    if not isinstance(run, Loaded):
        msg = f"a run is a Solution or what carom.load(path) returned, got {type(run).__name__}"
        raise TypeError(msg)
    return revive(run, system)


def resume(
    path: Any,
    *,
    system: System | None = None,
    method: AbstractMethod | None = None,
    stepping: AbstractStepping | None = None,
    t1: float | None = None,
    save_every: int | None = None,
    stop: Any = None,
    callback: Any = None,
    progress: Any = None,
) -> Solution:
    """Go on from a stored run to its end, or to another `t1`.

    A ready-made model, its method and its stepping come back by name; a system made of the user's own functions must
    be passed again, and must be the one that was stored. On the same machine and versions the result equals, bit for
    bit, that of a run that was never interrupted.

    Example:
        >>> sol = carom.resume("run.nc", t1=60.0)
    """
    stored = path if isinstance(path, Loaded) else load(path)
    attributes = stored.data.attrs
    save_every = int(attributes.get("save_every", 1)) if save_every is None else save_every
    system = system or _stored_model(attributes)
    if method is None:
        method = cast(AbstractMethod, rebuild(json.loads(attributes["method"]), "method"))
    if stepping is None:
        stepping = cast(AbstractStepping, rebuild(json.loads(attributes["stepping"]), "stepping"))
    state = State(stored.q[0], stored.v[0], stored.t[0])
    method = method.tuned(system, state, stepping.longest)
    if fingerprint(system, method, stepping) != attributes["fingerprint"]:
        msg = f"{path}: the system, method or stepping is not the one that was stored"
        raise ValueError(msg)
    instants = np.full(int(attributes["segments"]), stored.t[0])
    problem = Problem(system, method, stepping, stop_function(stop), stride(save_every))
    template = (begin if method.concrete_init else blank_carry)(problem, Start(state, instants))
    carry = _restore(template, stored.data)
    if t1 is not None:
        carry = extend(carry, float(t1), np.asarray(system.jumps))
    store = RowStore(state)
    columns = stored.columns | {"keep": np.ones(len(stored.t)), "t": stored.columns["elapsed"]}
    first = ("k", "keep", "t", "h", "q", "v")
    ordered = (*first, *(n for n in columns if n not in (*first, "elapsed")))
    rows = np.concatenate([columns[n].reshape(len(stored.t), -1).astype(float) for n in ordered], axis=1)
    append([store], Layout(ordered, tuple(columns[n].shape[1:] for n in ordered)), rows[1:, None])
    start, finished = Start(state, np.asarray(carry.instants)), bool(carry.done)
    run = Run(problem, [(system, method, stepping)], start, [store], carry=carry, finished=finished)
    return finish(run, callback, progress, None)


def extend(carry: Carry, t1: float, jumps: np.ndarray) -> Carry:
    """A carry that goes on to another end; off the grid, the grid starts anew where the run stands."""
    clock, reached = Clock.of(carry), float(carry.state.t)
    now = float(clock.time(reached))
    if t1 < now:
        msg = f"t1 = {t1:g} lies before the end of the stored run, t = {now:g}"
        raise ValueError(msg)
    instants = np.array([clock.epoch, *jumps[(jumps > clock.epoch) & (jumps < t1)], t1])
    ends = instants - clock.epoch
    ends[-1] = reached if t1 == now else ends[-1]
    segment = np.searchsorted(ends[:-1], reached, side="right") - 1
    new = (ends, instants, np.asarray(segment, carry.segment.dtype), np.asarray(ends[-1] <= reached))
    return eqx.tree_at(lambda c: (c.ends, c.instants, c.segment, c.done), carry, jax.tree.map(jnp.asarray, new))


def _restore(template: Carry, data: xarray.Dataset) -> Carry:
    leaves, treedef = jax.tree.flatten(template)
    stored = [jnp.asarray(data[f"carry_{i}"].to_numpy()).astype(leaf.dtype) for i, leaf in enumerate(leaves)]
    carry = jax.tree.unflatten(treedef, stored)
    return eqx.tree_at(lambda c: c.status, carry, jnp.int32(Status.OK))


def _stored_model(attributes: dict[str, Any]) -> System:
    origin = json.loads(attributes["model"])
    if origin is None:
        msg = (
            "this run's system is made of user functions: pass it again as system= (in Python, not on the command line)"
        )
        raise ValueError(msg)
    return build(origin[0], json.loads(origin[1]))[0]


def fingerprint(system: System, method: AbstractMethod, stepping: AbstractStepping) -> str:
    """A hash of the numbers and the code of system, method and stepping."""
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(
        lift((system, method, stepping)), is_leaf=lambda x: callable(x) and not isinstance(x, eqx.Module)
    ):
        if callable(leaf):
            code = getattr(leaf, "__code__", None)
            digest.update(getattr(leaf, "__qualname__", type(leaf).__name__).encode())
            digest.update(b"" if code is None else code.co_code + repr(code.co_consts).split(" at 0x")[0].encode())
        else:
            digest.update(np.asarray(leaf).tobytes())
    digest.update(json.dumps([describe(method), type(stepping).__name__], sort_keys=True).encode())
    return digest.hexdigest()


def describe(value: Any) -> Any:
    """A record as plain data: class name and fields."""
    if isinstance(value, Tableau):
        return {"tableau": value.name}
    if isinstance(value, Coefficients):
        return {"tableau": value.source.name}
    if isinstance(value, eqx.Module):
        return {"class": type(value).__name__, "fields": {name: describe(x) for name, x in vars(value).items()}}
    if isinstance(value, (tuple, list)):
        return [describe(x) for x in value]
    if isinstance(value, dict):
        return {"dictionary": {name: describe(x) for name, x in value.items()}}
    if eqx.is_array_like(value) and value is not None:
        return np.asarray(value).tolist()
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def rebuild(plain: Any, role: str) -> Any:
    """The record that `describe` made plain."""
    if isinstance(plain, dict) and "tableau" in plain:
        return from_name(plain["tableau"])
    if isinstance(plain, dict) and "dictionary" in plain:
        return {name: rebuild(x, role) for name, x in plain["dictionary"].items()}
    if isinstance(plain, dict):
        kind = next((vars(place)[plain["class"]] for place in _RECORDS if plain["class"] in vars(place)), None)
        if kind is None:
            msg = f"the stored {role} {plain['class']} is not one of carom's: pass it again as {role}="
            raise ValueError(msg)
        return kind(**{name: rebuild(x, role) for name, x in plain["fields"].items()})
    if isinstance(plain, list):
        return [rebuild(x, role) for x in plain]
    return plain
