"""Scenario files: a run written down in TOML, checked line by line, never executed.

model = "newtons_cradle"
method = "TailoredTheta()"
t1 = 300.0
h = 0.5

[parameters]
n = 10
stiffness = 13.115

[output]
name = "cradle"
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from carom import keep
from carom.arguments import did_you_mean, whole
from carom.choice import default_method
from carom.files.text import record
from carom.keep.base import AbstractKeep
from carom.methods.base import AbstractMethod
from carom.models.registry import Builder, build, refuse_unknown, registry, usual_runs
from carom.names import registered
from carom.state import State
from carom.stepping.base import AbstractStepping
from carom.stepping.grid import Constant
from carom.systems.system import System

_TOP = {
    "model": (str, "the name of a model"),
    "t1": (float, "a number, the end of the run"),
    "h": (float, "a number, the step size"),
    "method": (str, "a method such as 'IRK(gauss(2))'"),
    "stepping": (str, "a stepping such as 'Constant(0.1)'"),
    "save_every": (int, "a whole number of at least 1"),
    "title": (str, "a text"),
    "parameters": (dict, "a table of the model's parameters"),
    "output": (dict, "a table"),
    "sweep": (dict, "a table with the table grid"),
}
_SWEEP = {
    "grid": (dict, "a table of parameters, each a list or {from = ..., to = ..., count = ...}"),
    "keep": (list, "a list of keeps such as 'strobe(1.0, last=20)'"),
    "batch": (int, "a whole number of at least 1"),
}
_KEEPS = {"final": keep.final, "strobe": keep.strobe, "times": keep.times, "peak": keep.peak, "count": keep.count}
_OUTPUT = {
    "name": (str, "a file name without ending, inside the output folder"),
    "report": (bool, "true or false"),
    "figure": (bool, "true or false"),
    "frames": (int, "a whole number from 2 to 5000"),
}
_MOST_BYTES = 1_000_000
_MISTAKES = (ValueError, TypeError, ArithmeticError, MemoryError, IndexError)


class ScenarioError(ValueError):
    """A mistake in a scenario file: one line with the file, the line and what is allowed."""


@dataclass(frozen=True)
class Plan:
    """A run that has passed every check and only needs to be carried out."""

    title: str
    system: System
    state: State
    method: AbstractMethod
    stepping: AbstractStepping
    t1: float
    path: Path
    save_every: int = 1
    report: bool = True
    figure: bool = True
    frames: int = 600
    sweep: Sweep | None = None


@dataclass(frozen=True)
class Sweep:
    """The sweep of a scenario."""

    build: Builder
    grid: dict[str, np.ndarray]
    keep: list[Any]
    batch: int | None


def read(
    path: Any, out: Any = "out", given: dict[str, Any] | None = None, parameters: dict[str, Any] | None = None
) -> Plan:
    """Read and check a scenario file; nothing is written.

    `given` (keys of the file such as `t1`) and `parameters` (of its model) replace what the file says.

    Example:
        >>> plan = carom.scenario.read("examples/scenarios/cradle.toml", given={"t1": 20.0}, parameters={"n": 4})
    """
    path = Path(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        msg = f"{path}: cannot read it ({error.strerror})"
        raise ScenarioError(msg) from None
    if len(raw) > _MOST_BYTES:
        msg = f"{path}:1: a scenario has at most {_MOST_BYTES} bytes, this file has {len(raw)}"
        raise ScenarioError(msg)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(10) + 1
        msg = f"{path}:{line}: not UTF-8 text"
        raise ScenarioError(msg) from None
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"{path}:{_line_of(error, text)}: not TOML: {_first_sentence(error)}"
        raise ScenarioError(msg) from None
    blame = Blame(str(path), text)
    if given or parameters:
        _check_keys(data, _TOP, "", blame)
        data = replaced(data, given or {}) | {"parameters": data.get("parameters", {}) | (parameters or {})}
        blame.given = {*(given or {}), *(f"parameters.{name}" for name in parameters or {})}
    return planned(data, Path(out), blame, path.stem)


def _line_of(error: Exception, text: str) -> int:
    """The line of a TOML error: the one it names, that of a number too long to read, or the last."""
    found = re.search(r"line (\d+)", str(error))
    if found:
        return int(found[1])
    digits = re.search(r"\d{1000}", text.replace("_", ""))
    return text.replace("_", "")[: digits.start()].count("\n") + 1 if digits else text.count("\n") + 1


def _first_sentence(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error) if isinstance(error, tomllib.TOMLDecodeError) else "a number has too many digits"


def from_options(model: str, given: dict[str, Any], parameters: dict[str, Any], out: Any) -> Plan:
    """The plan of `carom run MODEL` with its options."""
    refuse_unknown(model)
    data = {"model": model, **replaced(usual_runs[model], given), "parameters": parameters}
    return planned(data, Path(out), Blame("", ""), model)


def replaced(data: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """A run with other settings; a step size takes the place of a stepping and the other way round."""
    steps = {"h", "stepping"}
    kept = {name: value for name, value in data.items() if not (name in steps and steps & given.keys())}
    return {**kept, **given}


class Blame:
    """Finds the line a mistake is on."""

    def __init__(self, name: str, text: str):
        self.name, self.lines = name, _lines_of_keys(text)
        self.given: set[str] = set()

    def error(self, key: str, what: str) -> ScenarioError:
        """The one-line message about a key such as `output.name`."""
        if not self.name or key in self.given:
            return ScenarioError(what)
        line = self.lines.get(key) or self.lines.get(key.split(".")[0], 1)
        return ScenarioError(f"{self.name}:{line}: {what}")

    def on(self, key: str, what: str) -> NoReturn:
        """Refuse what a key says."""
        raise self.error(key, what)

    def attempt(self, keys: list[str], fn: Callable[[], Any]) -> Any:
        """The value of `fn`; its mistake is blamed on the key that its message names, else on the first."""
        try:
            return fn()
        except _MISTAKES as error:
            text = " ".join(str(error).split()) or type(error).__name__
            named = [k for k in keys if re.search(rf"\b{re.escape(k.rpartition('.')[2])}\b", text)]
            raise self.error((named or keys)[0], text) from None


def _lines_of_keys(text: str) -> dict[str, int]:
    """Line numbers of keys `a` and `table.a`, and of tables."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line)
        key = re.match(r"""\s*(["']?)([\w.-]+)\1\s*=""", line)
        if header and "=" not in line.split("]")[0]:
            table = header[1].replace('"', "") + "."
            found.setdefault(header[1].replace('"', ""), number)
        elif key:
            found.setdefault(table + key[2], number)
    return found


def planned(data: dict[str, Any], out: Path, blame: Blame, name: str) -> Plan:
    """Check everything a scenario says and build its system, method and stepping."""
    _check_keys(data, _TOP, "", blame)
    parameters, output = data.get("parameters", {}), data.get("output", {})
    _check_keys(output, _OUTPUT, "output.", blame)
    _check_finite(data, "", blame)
    for key in ("model", "t1"):
        if key not in data:
            allowed = f"; there are {', '.join(sorted(registry))}" if key == "model" else ""
            blame.on(key, f"'{key}' is missing{allowed}")
    if ("h" in data) == ("stepping" in data):
        blame.on("h" if "h" in data else "model", "give either h (a constant step) or stepping, not both")
    keys = [f"parameters.{key}" for key in parameters]
    system, state = blame.attempt(["model", *keys], lambda: build(data["model"], parameters))
    method, stepping = _chosen(data, system, blame)
    save_every, frames = data.get("save_every", 1), output.get("frames", 600)
    if save_every < 1:
        blame.on("save_every", f"save_every must be at least 1, got {save_every}")
    if not 2 <= frames <= 5000:
        blame.on("output.frames", f"frames must be a whole number from 2 to 5000, got {frames}")
    t1 = float(data["t1"])
    blame.attempt(["model", "method", "stepping", "h", "t1"], lambda: _refuse(system, state, method, stepping, t1))
    return Plan(
        data.get("title") or name.replace("_", " "),
        system,
        state,
        method,
        stepping,
        t1,
        _inside(out, output.get("name", name), blame),
        save_every,
        output.get("report", True),
        output.get("figure", True),
        frames,
        _sweep(data, blame) if "sweep" in data else None,
    )


def _sweep(data: dict[str, Any], blame: Blame) -> Sweep:
    table, parameters = data["sweep"], data.get("parameters", {})
    _check_keys(table, _SWEEP, "sweep.", blame)
    known = inspect.signature(registry[data["model"]]).parameters
    for name in table.get("grid", {}):
        if name not in known or name in parameters:
            what = "is given in [parameters] too" if name in parameters else f"is no parameter of {data['model']}"
            blame.on(f"sweep.grid.{name}", f"'sweep.grid.{name}' {what}{did_you_mean(name, known)}")
    grid = {name: _axis(name, values, blame) for name, values in table.get("grid", {}).items()}
    if not grid:
        blame.on("sweep", "'sweep.grid' is missing: name at least one parameter and its values")
    texts, batch = table.get("keep", ["final()"]), table.get("batch", 1)
    keeps = blame.attempt(["sweep.keep"], lambda: [_record(text, AbstractKeep, "keep", _KEEPS) for text in texts])
    blame.attempt(["sweep.batch"], lambda: whole(batch, "batch", 1))
    return Sweep(Builder(data["model"], parameters), grid, keeps, table.get("batch"))


def _axis(name: str, values: Any, blame: Blame) -> np.ndarray:
    """The values of a parameter: a list, or evenly spaced ones."""
    key = f"sweep.grid.{name}"
    spaced = isinstance(values, dict) and set(values) == {"from", "to", "count"}
    numbers = [values["from"], values["to"]] if spaced else values
    if not isinstance(numbers, list) or not numbers or any(type(x) not in (int, float) for x in numbers):
        blame.on(key, f"'{key}' must be a list of numbers or {{from = ..., to = ..., count = ...}}")
    if spaced:
        low, high = numbers
        return blame.attempt([key], lambda: np.linspace(low, high, whole(values["count"], f"{name}: count", 1)))
    return np.asarray(numbers, float)


def _chosen(data: dict[str, Any], system: System, blame: Blame) -> tuple[AbstractMethod, AbstractStepping]:
    if "method" in data:
        method = blame.attempt(["method"], lambda: _record(data["method"], AbstractMethod, "method"))
    else:
        method = blame.attempt(["model"], lambda: default_method(system))
    if "stepping" in data:
        stepping = blame.attempt(["stepping"], lambda: _record(data["stepping"], AbstractStepping, "stepping"))
    else:
        stepping = blame.attempt(["h"], lambda: Constant(float(data["h"])))
    return method, stepping


def _refuse(system: System, state: State, method: AbstractMethod, stepping: AbstractStepping, t1: float) -> None:
    from carom.running.asking import refuse, segment_ends

    refuse(system, state, method, stepping, segment_ends(system, state, t1))


def _check_keys(table: dict[str, Any], allowed: dict[str, tuple[type, str]], prefix: str, blame: Blame) -> None:
    for key, value in table.items():
        if key not in allowed:
            what = f"unknown key '{prefix}{key}'; allowed are {', '.join(allowed)}{did_you_mean(key, allowed)}"
            blame.on(prefix + key, what)
        kind, words = allowed[key]
        number = kind is float and isinstance(value, int)
        if not (isinstance(value, kind) or number) or (isinstance(value, bool) and kind is not bool):
            blame.on(prefix + key, f"'{prefix}{key}' must be {words}, got {_short(value)}")


def _check_finite(value: Any, key: str, blame: Blame) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_finite(inner, f"{key}.{name}" if key else name, blame)
    elif isinstance(value, list):
        for inner in value:
            _check_finite(inner, key, blame)
    elif isinstance(value, (int, float)) and not abs(value) < 1e300:
        blame.on(key, f"'{key}' must be finite, got {_short(value)}")
    elif not isinstance(value, (str, int, float, bool)) and value is not None:
        blame.on(key, f"'{key}' must be a number, a text or a list of them, got {_short(value)}")


def _record(text: Any, kind: type, role: str, known: Mapping[str, Any] = registered) -> Any:
    made = record(text, known) if isinstance(text, str) else text
    if not isinstance(made, kind):
        msg = f"{role} must be a {role}, got '{text}'"
        raise ValueError(msg)
    return made


def _inside(out: Path, name: str, blame: Blame) -> Path:
    """The path of the run; it never leaves the output folder."""
    plain = re.fullmatch(r"[\w][\w.+-]*(/[\w][\w.+-]*)*", name, re.ASCII) and len(name) < 200
    target = out / f"{name}.nc"
    if not plain or not target.resolve().is_relative_to(out.resolve()):
        what = f"'output.name' must be a file name inside the output folder, got {_short(name)}"
        blame.on("output.name", what)
    return target


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
