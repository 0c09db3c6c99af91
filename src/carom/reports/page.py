"""The page: template, style and script put together with the data, in one file that needs no network."""

from __future__ import annotations

import html
import json
import os
import re
from importlib import resources
from pathlib import Path
from typing import Any

from carom.files.resuming import with_system
from carom.reports.comparison import compared, named
from carom.reports.data import NUMBERS, payload
from carom.reports.drawings import Draw
from carom.reports.packing import packed
from carom.reports.provenance import heading, origin_of
from carom.solution import Solution
from carom.systems.system import System

_FRAMES = 600


def report(
    run: Any,
    path: Any,
    *,
    title: str = "",
    frames: int = _FRAMES,
    drawing: Draw | None = None,
    system: System | None = None,
    numbers: int = NUMBERS,
) -> Path:
    """Write a report of a run: a `Solution`, or what `carom.load` returned; or one that compares several runs.

    Args:
        run: the run. Energies and events need the system: a loaded run of a ready-made model finds it by name. Several
            runs of one system, in a list or by name in a dictionary, are shown side by side with their differences to
            the last one.
        path: the HTML file to write, replaced atomically.
        title: heading; the name of the model or of the file if left out.
        frames: number of frames of the animation; those of events are added.
        drawing: a function of all frames of the coordinates and the model's arguments that returns a
            `carom.reports.shapes.Drawing`; left out, that of the model, or the coordinates as such.
        system: the system of a loaded run that is made of the user's own functions.
        numbers: how many numbers the curves may hold together; of longer runs extremes and what is near events stay.

    Example:
        >>> carom.report(sol, "run.html")
        >>> carom.report({"h = 0.1": coarse, "h = 0.01": fine}, "comparison.html")
    """
    target = checked(path, frames, numbers)
    if isinstance(run, (list, tuple, dict)):
        runs = {name: known(one, system) for name, one in named_solutions(run).items()}
        return write(page(compared(runs, frames, title, drawing, numbers)), target)
    attributes = _solution(run).facts
    title = title or heading(attributes) or (origin_of(run)[0] or target.stem).replace("_", " ")
    return write(page(payload(known(run, system), frames, title, attributes, drawing, numbers)), target)


def checked(path: Any, frames: Any, numbers: Any) -> Path:
    """The path of a report, or an error in what was asked."""
    for name, value, least in (("frames", frames, 2), ("numbers", numbers, 1000)):
        if not isinstance(value, int) or value < least:
            msg = f"{name} must be a whole number of at least {least}, got {value}"
            raise ValueError(msg)
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        others = "carom.film writes .gif and .mp4, carom.plots.overview(sol).savefig figures, sol.save runs"
        msg = f"a report is an .html file, got '{target.name}'; {others}"
        raise ValueError(msg)
    return target


def named_solutions(runs: Any) -> dict[str, Any]:
    """At least two runs by name."""
    each = list(runs.values()) if isinstance(runs, dict) else list(runs)
    if len(each) < 2:
        msg = f"a comparison needs at least two runs, got {len(each)}; of a single one it is carom.report(sol, path)"
        raise ValueError(msg)
    for one in each:
        _solution(one)
    return named(runs)


def _solution(run: Any) -> Solution:
    if not isinstance(run, Solution):
        msg = f"report needs a Solution, or carom.load('run.nc') of a stored run; got {type(run).__name__}"
        raise TypeError(msg)
    if not len(run.columns["t"]):
        msg = "the run has no rows: there is nothing to report"
        raise ValueError(msg)
    return run


def write(text: str, target: Path) -> Path:
    """A page in a file, replaced atomically."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".part")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, target)
    return target


def page(data: dict[str, Any]) -> str:
    """The HTML text of a run or of several."""
    return filled("page.html", packed(data))


def filled(template: str, data: dict[str, Any]) -> str:
    """A page with its data, styles and scripts.

    `<` is escaped, so that no label can end the script, and no text of a run is filled in twice.
    """
    told = {"title": html.escape(data["title"])}
    told["data"] = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return re.sub(
        r"\{\{([\w.]+)\}\}", lambda place: told[place[1]] if place[1] in told else _asset(place[1]), _asset(template)
    )


def _asset(name: str) -> str:
    return (resources.files("carom.reports") / "assets" / name).read_text("utf-8")


def known(run: Any, system: System | None = None) -> Any:
    """A loaded run with its system where that is given or found by name, so that energies can be shown."""
    try:
        return with_system(run, system)
    except ValueError:
        if system is not None:
            raise
        return run
