"""Where a run comes from, and how to run it again: what was asked in full, versions, and lines to copy."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import numpy as np

from carom.files.identity import description, flat
from carom.models.registry import build
from carom.plain import spelt

_LONGEST = 400  # characters of a row
_MOST_NUMBERS = 24  # of a start that is written out


def origin_of(run: Any) -> tuple[str | None, dict[str, Any]]:
    """Model and arguments of a run, if it is of a ready-made model."""
    origin = json.loads(run.facts["model"])
    return (None, {}) if origin is None else (origin[0], json.loads(origin[1]))


def plain(run: Any, part: str) -> Any:
    """The method or the stepping as plain data."""
    return json.loads(run.facts[part])


def heading(attributes: dict[str, Any]) -> str:
    """The title that a run was given when it was asked for."""
    return json.loads(attributes.get("outputs", "{}")).get("title", "")


def provenance(run: Any, attributes: dict[str, Any]) -> list[list[str]]:
    """Model and parameters or numbers of the system, start, method and stepping in full, versions, command."""
    model, arguments = origin_of(run)
    c = run.columns
    start = f"q = {c['q'][0].tolist()}, v = {c['v'][0].tolist()} at t = {c['t'][0]:g}"
    rows = [["model", model or "user functions"]]
    rows += [[name, json.dumps(value)] for name, value in arguments.items()]
    rows += [] if model else numbers_of(run, attributes)
    rows += [["state at the start", start]]
    for part in ("method", "stepping"):
        rows += [[part, spelt(plain(run, part))], [f"{part} in full", in_full(plain(run, part))]]
    names = ("carom", "jax", "python", "command", "created")
    rows += [[name, str(attributes[name])] for name in names if name in attributes]
    return [[name, shortened(text)] for name, text in rows]


def numbers_of(run: Any, attributes: dict[str, Any]) -> list[list[str]]:
    """The numbers that the user's system is made of; of its functions, whether they are the same as in another run."""
    reads = attributes.get("reads")
    if reads is None and not hasattr(run, "system"):
        return []
    described = json.loads(reads) if reads else description(run.system, run.method, run.stepping)
    parts = {role: found for role, found in described.items() if role not in ("method", "stepping", "epoch", "jumps")}
    return [[f"{role} {name}".strip(), text] for role, found in parts.items() for name, text in found.items()]


def in_full(record: Any) -> str:
    """Every setting of a method or a stepping, also those with their usual value."""
    settings = ", ".join(f"{name} = {text}" for name, text in flat(record) if name)
    return re.sub(r"\{'tableau': '(.*?)'\}", r"\1", settings) or "nothing to set"


def shortened(text: str, longest: int = _LONGEST) -> str:
    """The text, or its beginning."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def again(run: Any, attributes: dict[str, Any]) -> list[list[str]]:
    """Lines that run it again: Python, and for the usual start of a model a command and a scenario file."""
    model, arguments = origin_of(run)
    steps = {part: spelt(plain(run, part)) for part in ("method", "stepping")}
    t1, save_every = end_of(run), _stride(run, attributes)
    given = {name: value for name, value in arguments.items() if value is not None}
    usual = model is not None and _usual_start(run, model, arguments)
    found = [["Python", python(run, model if usual else None, given, t1, save_every)]]
    if usual:
        options = {"method": steps["method"], "stepping": steps["stepping"], "t1": t1, "save-every": save_every}
        words = [f"--set={name}={value}" for name, value in given.items()]
        words += [f"--{name}={value}" for name, value in options.items()]
        lines = {"model": model, "t1": t1, "save_every": save_every, **steps}
        toml = [f"{name} = {json.dumps(value)}" for name, value in lines.items()]
        toml += ["", "[parameters]", *(f"{name} = {json.dumps(value)}" for name, value in given.items())]
        found += [["command", shlex.join(["carom", "run", str(model), *words])], ["scenario file", "\n".join(toml)]]
    return found


def python(run: Any, model: str | None, arguments: dict[str, Any], t1: float, save_every: int) -> str:
    """The run as Python code; without a model the system is the reader's to write."""
    method, stepping = (spelt(plain(run, part), "carom.") for part in ("method", "stepping"))
    c = run.columns
    if model is not None:
        named = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        system = f"system, state = carom.models.{model}({named})"
    elif c["q"][0].size <= _MOST_NUMBERS:
        start = f"{c['q'][0].tolist()}, {c['v'][0].tolist()}, {float(c['t'][0])!r}"
        system = f"# system = ... (its numbers are listed above)\nstate = carom.State({start})"
    else:
        system = "# system, state = ... (listed above)"
    often = f", save_every={save_every}" if save_every > 1 else ""
    call = f"sol = carom.simulate(system, state, {method}, t1={t1!r}, stepping={stepping}{often})"
    return f"import carom\n\n{system}\n{call}"


def end_of(run: Any) -> float:
    """The end that was asked for."""
    return float(run.instants[-1])


def _stride(run: Any, attributes: dict[str, Any]) -> int:
    """Every how many steps a row was kept."""
    k = np.diff(run.columns["k"])
    return int(attributes.get("save_every", k[0] if len(k) > 1 else 1))


def _usual_start(run: Any, model: str, arguments: dict[str, Any]) -> bool:
    """Whether a run began where its model does."""
    try:
        state = build(model, arguments)[1]
    except (ValueError, TypeError):
        return False
    return all(np.array_equal(getattr(state, name), run.columns[name][0]) for name in ("q", "v", "t"))
