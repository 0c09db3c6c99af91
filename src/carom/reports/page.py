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
from carom.reports.data import payload
from carom.reports.drawings import Draw
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
) -> Path:
    """Write a report of a run: a `Solution`, or what `carom.load` returned.

    Args:
        run: the run. Energies and events need the system: a loaded run of a ready-made model finds it by name.
        path: the HTML file to write, replaced atomically.
        title: heading; the name of the model or of the file if left out.
        frames: number of frames of the animation.
        drawing: a function of all frames of the coordinates and the model's arguments that returns a
            `carom.reports.shapes.Drawing`; left out, that of the model, or the coordinates as such.
        system: the system of a loaded run that is made of the user's own functions.

    Example:
        >>> carom.report(sol, "run.html")
    """
    if not isinstance(frames, int) or frames < 2:
        msg = f"frames must be a whole number of at least 2, got {frames}"
        raise ValueError(msg)
    if not isinstance(run, Solution):
        msg = f"report needs a Solution, or carom.load('run.nc') of a stored run; got {type(run).__name__}"
        raise TypeError(msg)
    attributes = run.facts
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        others = "carom.film writes .gif and .mp4, carom.plots.overview(sol).savefig figures, sol.save runs"
        msg = f"a report is an .html file, got '{target.name}'; {others}"
        raise ValueError(msg)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".part")
    title = title or heading(attributes) or (origin_of(run)[0] or target.stem).replace("_", " ")
    partial.write_text(page(payload(_known(run, system), frames, title, attributes, drawing)), encoding="utf-8")
    os.replace(partial, target)
    return target


def page(data: dict[str, Any]) -> str:
    """The HTML text; `<` is escaped, so that no label can end the script, and no text of a run is filled in twice."""
    parts = {name: (resources.files("carom.reports") / "assets" / name).read_text("utf-8") for name in _ASSETS}
    parts["title"] = html.escape(data["title"])
    parts["data"] = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return re.sub(r"\{\{([\w.]+)\}\}", lambda place: parts[place[1]], parts["page.html"])


_ASSETS = ("page.html", "page.css", "plots.js", "player.js")


def _known(run: Any, system: System | None) -> Any:
    """A loaded run with its system where that is given or found by name, so that energies can be shown."""
    try:
        return with_system(run, system)
    except ValueError:
        if system is not None:
            raise
        return run
