"""Runs on disk: netCDF through xarray, and going on from where a run stopped."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import platform
import re
import shlex
import sys
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, cast, overload
from uuid import uuid4

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas
import xarray

from carom import methods
from carom import stepping as steppings
from carom.choice import Choice
from carom.files import kept
from carom.files import whole_files as files
from carom.methods.base import AbstractMethod
from carom.methods.capturing.active_set import Coefficients
from carom.models.registry import build, registry
from carom.running.functions import difference, reading
from carom.running.keeping import chosen_keeps
from carom.running.loop import Layout, Problem, Start, begin, blank_carry
from carom.running.run import Run, finish, stop_function, stride
from carom.running.signals import deferred
from carom.solution import RowStore, Solution, append
from carom.solvers import newton, pjor, psor, semismooth
from carom.state import Carry, Clock, State, Status
from carom.stepping.base import AbstractStepping
from carom.systems.arguments import users_frame
from carom.systems.system import CONSERVATIVE, System
from carom.tableaux import Tableau, from_name

_RECORDS = {  # the classes that a stored method or stepping may be made of
    name: kind
    for place in (methods, steppings, newton, pjor, psor, semismooth)
    for name, kind in vars(place).items()
    if isinstance(kind, type) and issubclass(kind, eqx.Module) and kind.__module__.startswith("carom.")
}
_MOST_STAGES = 64
_PER_COORDINATE = 4  # what a count of a stored model may be
_WRITTEN_OUT = 4  # numbers
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
    if solution.system.labels:
        coords["coordinate"] = list(solution.system.labels)
    data = xarray.Dataset(variables, coords, attributes(solution))
    for name, long_name in _LONG_NAMES.items():
        if name in data.variables:
            data[name].attrs["long_name"] = long_name
    return _with_units(data, solution.system)


def attributes(solution: Solution) -> dict[str, Any]:
    """What was run and where it comes from, as a file tells it."""
    origin = solution.system.origin
    found = {
        "title": repr(solution),
        "method": json.dumps(describe(solution.method)),
        "stepping": json.dumps(describe(solution.stepping)),
        "model": json.dumps(origin and [origin.name, origin.arguments]),
        "carom": metadata.version("carom"),
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


def to_frame(run: Solution | Loaded) -> pandas.DataFrame:
    """Rows as a table, a column per number."""
    labels = run.data.get("coordinate", []) if isinstance(run, Loaded) else run.system.labels
    names = [str(label) for label in np.asarray(labels)]
    table = {}
    for column, values in run.columns.items():
        flat = values.reshape(len(values), math.prod(values.shape[1:]))
        named = column in _DIMS and len(set(names)) == flat.shape[1]
        for i, entry in enumerate(flat.T):
            table[f"{column}.{names[i] if named else i}" if values.ndim > 1 else column] = entry
    return pandas.DataFrame(table).set_index("t")


def notes_of(attributes: dict[str, Any]) -> dict[str, Any]:
    """What a stored run keeps when it is stored again."""
    names = ("command", "created", "outputs", "save_every")
    return {name: attributes[name] for name in names if name in attributes}


def gone_on(run: Loaded) -> dict[str, Any]:
    """The notes of a stored run that goes on now: its commands one after the other."""
    kept = notes_of(run.data.attrs)
    kept.pop("created", None)
    return kept | {"command": f"{kept['command']} && {_command()}" if "command" in kept else _command()}


def _with_units(data: xarray.Dataset, system: System) -> xarray.Dataset:
    """Units of the coordinates: one for all as an attribute, else one per coordinate."""
    units = system.units
    if len(set(units)) == 1:
        if "q" in data:
            data["q"].attrs["units"] = units[0]
        if system.rates and "v" in data:
            data["v"].attrs["units"] = f"{units[0]} s-1"
    elif len(units) == data.sizes.get("coordinate"):
        data = data.assign_coords(unit=("coordinate", list(units)))
    return data


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
    for name, leaf in _named_leaves(solution.carry):
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
    return data


def _named_leaves(carry: Carry) -> list[tuple[str, Any]]:
    """The numbers of a carry, each with its name: `carry.state.t` and so on."""
    leaves = jax.tree_util.tree_leaves_with_path(carry)
    return [(f"carry{jax.tree_util.keystr(path)}".replace("/", "|"), leaf) for path, leaf in leaves]


class Loaded:
    """A stored run: rows as in a `Solution`, without the functions of its system."""

    def __init__(self, data: xarray.Dataset, path: Any):
        self.data, self.path = data, path
        self.columns = {"t": data.variables["time"].to_numpy()}
        self.columns |= {str(name): data[name].to_numpy() for name in data.data_vars if is_column(name)}
        self.kept = kept.read(data)
        self.stats = json.loads(data.attrs["stats"])
        self.choice = Choice.from_json(data.attrs["choice"]) if "choice" in data.attrs else None
        self.t, self.h, *_ = (self.columns[name] for name in ("t", "h", *kept.needed(data.attrs)))

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a table, a column per number; the time is its index."""
        return to_frame(self)

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
    path = Path(path)
    unfinished = unfinished_parts(path)
    if path.exists() and unfinished:
        note = f"{path} is a finished run; a newer one, not finished, lies beside it in {parts_folder(path)}"
        warnings.warn(f"{note}: carom.resume goes on with it", stacklevel=users_frame())
    stored = whole(path) if path.exists() else merged(path, unfinished)
    return stored if system is None else revive(stored, system)


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


def revive(run: Loaded, system: System | None = None) -> Solution:
    """The solution of a stored run, with its system, as it was when it was stored."""
    with files.readable(run.path):
        reached = float(run.data.attrs["reached"])
    solution = resume(run, system=system, t1=reached)
    solution.timing.update({name: run.stats[name] for name in solution.timing if name in run.stats})
    solution.choice, solution.notes, solution.kept = run.choice, notes_of(run.data.attrs), run.kept
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
    keep: Any = None,
    stop: Any = None,
    callback: Any = None,
    progress: Any = None,
) -> Solution:
    """Go on from a stored run to its end, or to another `t1`.

    A ready-made model, its method and its stepping come back by name; a system made of the user's own functions, and
    what the run keeps (`keep=`), must be passed again, and must be what was stored. On the same machine and versions
    the result equals, bit for bit, that of a run that was never interrupted.

    Example:
        >>> sol = carom.resume("run.nc", t1=60.0)
    """
    with deferred():
        options = {"system": system, "method": method, "stepping": stepping, "t1": t1}
        stored = path if isinstance(path, Loaded) else newest(path)
        run = going_on(stored, **options, save_every=save_every, keep=keep, stop=stop)
        solution = finish(run, callback, progress, None)
        solution.notes = gone_on(stored) | ({} if keep is not None else {"save_every": int(run.problem.save_every)})
        return solution


def going_on(
    stored: Loaded,
    *,
    system: System | None = None,
    method: AbstractMethod | None = None,
    stepping: AbstractStepping | None = None,
    t1: float | None = None,
    save_every: int | None = None,
    keep: Any = None,
    stop: Any = None,
) -> Run:
    """A stored run, ready to go on."""
    with files.readable(stored.path):
        attributes = stored.data.attrs
        keeps = chosen_keeps(keep, save_every or 1)
        save_every = int(attributes.get("save_every", 1)) if save_every is None else save_every
        state = start_of(stored)
        system = system or _stored_model(attributes, state.q.size)
        if method is None:
            method = cast(AbstractMethod, rebuild(json.loads(attributes["method"]), "method"))
        if stepping is None:
            stepping = cast(AbstractStepping, rebuild(json.loads(attributes["stepping"]), "stepping"))
        method = method.tuned(system, state, stepping.longest)
        _refuse_another(description(system, method, stepping), attributes)
        if keeps is not None:
            kept.refuse_others(keeps, attributes)
        instants = np.full(int(attributes["ends"]), stored.t[0])
        every = save_every if keeps is None else keeps.every
        problem = Problem(system, method, stepping, stop_function(stop), stride(every), keeps)
        template = (begin if method.concrete_init else blank_carry)(problem, Start(state, instants))
        carry = _restore(template, stored.data)
        store = _restored_rows(stored, state)
    if t1 is not None:
        carry = extend(carry, float(t1), np.asarray(system.jumps))
    start, finished = Start(state, np.asarray(carry.instants)), bool(carry.done)
    if keeps is None and not finished:
        kept.refuse_others(None, attributes)
    run = Run(problem, [(system, method, stepping)], start, [store], carry=carry, finished=finished)
    if run.keeping is not None:
        run.keeping.restore(stored.kept)
        run.problem.keeps.check(system, state, float(carry.instants[-1]))
    return run


def _restored_rows(stored: Loaded, state: State) -> RowStore:
    store = RowStore(state)
    columns = stored.columns | {"keep": np.ones(len(stored.t)), "t": stored.columns["elapsed"]}
    first = tuple(name for name in ("k", "keep", "t", "h", "q", "v") if name in columns)
    ordered = (*first, *(n for n in columns if n not in (*first, "elapsed")))
    rows = np.concatenate([columns[n].reshape(len(stored.t), -1).astype(float) for n in ordered], axis=1)
    append([store], Layout(ordered, tuple(columns[n].shape[1:] for n in ordered)), rows[1:, None])
    return store


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
    """The stored carry, found by name; it must fit what this version of carom and this system would carry."""
    leaves, stored = [], [str(name) for name in data.data_vars if is_carry(name)]
    if template.kept is None:
        stored = [name for name in stored if not name.startswith("carry.kept")]
    for name, leaf in _named_leaves(template):
        if name not in stored:
            raise ValueError(_misfit(f"{name} is missing", data))
        array, wanted = data[name].to_numpy(), np.dtype(np.int8 if leaf.dtype == bool else leaf.dtype)
        if array.shape != leaf.shape or array.dtype != wanted:
            got = f"{array.dtype}{list(array.shape)}, not {wanted}{list(leaf.shape)}"
            raise ValueError(_misfit(f"{name} is {got}", data))
        leaves.append(jnp.asarray(array).astype(leaf.dtype))
        stored.remove(name)
    if stored:
        raise ValueError(_misfit(f"{stored[0]} is unknown", data))
    carry = jax.tree.unflatten(jax.tree.structure(template), leaves)
    return eqx.tree_at(lambda c: c.status, carry, jnp.int32(Status.OK))


def _misfit(what: str, data: xarray.Dataset) -> str:
    return f"the state of the stored run does not fit this system, method and stepping: {what}{_versions(data.attrs)}"


def _versions(attributes: dict[str, Any]) -> str:
    """Which versions stored the run, if they are not those of now."""
    now = {"carom": metadata.version("carom"), "jax": metadata.version("jax"), "Python": platform.python_version()}
    other = [f"{n} {attributes.get(n.lower())}, now {v}" for n, v in now.items() if attributes.get(n.lower()) != v]
    return f" (stored with {'; '.join(other)})" if other else ""


def _stored_model(attributes: dict[str, Any], size: int) -> System:
    """The ready-made model of a stored run; one much larger than its rows is not built."""
    origin = json.loads(attributes["model"])
    if origin is None:
        msg = (
            "this run's system is made of user functions: pass it again as system= (in Python, not on the command line)"
        )
        raise ValueError(msg)
    name, arguments = origin[0], json.loads(origin[1])
    for argument, parameter in inspect.signature(registry[name]).parameters.items() if name in registry else ():
        counts = parameter.annotation in (int, "int") or type(parameter.default) is int
        if counts and np.max(arguments.get(argument) or 0) > _PER_COORDINATE * (size + 10):
            msg = f"the file asks for {name}({argument}={arguments[argument]}), but its rows have {size} coordinates"
            raise ValueError(msg)
    return build(name, arguments)[0]


def description(system: System, method: AbstractMethod, stepping: AbstractStepping) -> dict[str, dict[str, str]]:
    """All that decides how a run goes on, by role and name: numbers, and what each function reads."""
    leaves = jax.tree_util.tree_leaves_with_path(system, is_leaf=_is_function)
    found = {
        _role(path): {name: str(value) for name, value in reading(leaf).items()}
        if callable(leaf)
        else {"": _number(leaf)}
        for path, leaf in leaves
    }
    records = {"method": method, "stepping": stepping}
    return found | {role: dict(flat(describe(record))) for role, record in records.items()}


def _is_function(leaf: Any) -> bool:
    return callable(leaf) and not isinstance(leaf, eqx.Module)


def _role(path: Any) -> str:
    """A place in a system in the user's words."""
    text = jax.tree_util.keystr(path).removeprefix(".").removesuffix(".fn")
    text = text.replace(f"potential['{CONSERVATIVE}']", "potential")
    return re.sub(r"^(force|potential|rate_damping)s?\['(.*?)'\]", r"\1 '\2'", text)


def _number(leaf: Any) -> str:
    array = np.asarray(leaf)
    if array.size <= _WRITTEN_OUT:
        return str(array.tolist())
    return f"{array.dtype}{list(array.shape)} {hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()[:32]}"


def flat(plain: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """A record made plain, field by field."""
    if isinstance(plain, dict) and "class" in plain:
        yield name, plain["class"]
        for field, value in plain["fields"].items():
            yield from flat(value, f"{name}.{field}".removeprefix("."))
    elif isinstance(plain, dict) and "dictionary" in plain:
        for key, value in plain["dictionary"].items():
            yield from flat(value, f"{name}[{key}]")
    else:
        yield name, str(plain).split(" at 0x")[0]


def _refuse_another(now: dict[str, dict[str, str]], attributes: dict[str, Any]) -> None:
    """Raise, saying what differs, unless system, method and stepping are those that were stored."""
    stored = json.loads(attributes["reads"])
    for role in (*now, *(r for r in stored if r not in now)):
        which = role if role in ("method", "stepping") else "system"
        here, there = ("has" if role in side else "has not" for side in (now, stored))
        apart = difference(role, now.get(role, {}), stored.get(role, {}))
        apart = apart if here == there else f"this one {here} {role}, the stored one {there}"
        if apart is not None:
            msg = f"the {which} is not the one that was stored: {apart}{_versions(attributes)}"
            raise ValueError(msg)


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


def spelt(plain: Any, place: str = "") -> str:
    """The record that `describe` made plain as a call such as `IRK(gauss(2))`; what has its usual value is left out.

    With `place="carom."` the names are those of Python code.
    """
    if isinstance(plain, dict) and "tableau" in plain:
        return re.sub(r"([a-z_]+)\(", rf"{place and place + 'tableaux.'}\1(", plain["tableau"])
    if isinstance(plain, dict) and "dictionary" in plain:
        return "{" + ", ".join(f"{name!r}: {spelt(x, place)}" for name, x in plain["dictionary"].items()) + "}"
    if isinstance(plain, list):
        return "[" + ", ".join(spelt(x, place) for x in plain) + "]"
    if not isinstance(plain, dict):
        return repr(plain)
    needed, usual = _usual(plain)
    fields = plain["fields"]
    others = [name for name in fields if name not in needed and _text(fields[name]) != usual.get(name)]
    shown = [spelt(fields[name], place) for name in needed]
    shown += [f"{name}={spelt(fields[name], place)}" for name in others]
    return f"{place}{plain['class']}({', '.join(shown)})"


def _usual(plain: Any) -> tuple[list[str], dict[str, str]]:
    """The arguments that a record needs, and the values of its fields if it is given no others, as text."""
    kind = _RECORDS.get(plain["class"])
    if kind is None:
        return [], {}
    parameters = inspect.signature(kind).parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    made = describe(kind(**{name: rebuild(plain["fields"][name], "record") for name in needed}))
    return needed, {name: _text(x) for name, x in made["fields"].items()}


def _text(plain: Any) -> str:
    return json.dumps(plain, sort_keys=True)


def rebuild(plain: Any, role: str) -> Any:
    """The record that `describe` made plain."""
    if isinstance(plain, dict) and "tableau" in plain:
        return _tableau(plain["tableau"])
    if isinstance(plain, dict) and "dictionary" in plain:
        return {name: rebuild(x, role) for name, x in plain["dictionary"].items()}
    if isinstance(plain, dict):
        kind = _RECORDS.get(plain["class"])
        if kind is None:
            msg = f"the stored {role} {plain['class']} is not one of carom's: pass it again as {role}="
            raise ValueError(msg)
        return kind(**{name: rebuild(x, role) for name, x in plain["fields"].items()})
    if isinstance(plain, list):
        return [rebuild(x, role) for x in plain]
    return plain


def _tableau(name: str) -> Tableau:
    if any(int(number) > _MOST_STAGES for number in re.findall(r"(?<![.\d])\d+(?![.\d])", name)):
        msg = f"the file asks for the tableau {name[:80]}, which has too many stages"
        raise ValueError(msg)
    return from_name(name)
