"""The page: template, style and script put together with the data, in one file that needs no network."""

from __future__ import annotations

import html
import json
import os
from importlib import resources
from pathlib import Path
from typing import Any

from carom.reports.data import payload
from carom.solution import Solution

_FRAMES = 600


def report(run: Any, path: Any, *, title: str = "", frames: int = _FRAMES) -> Path:
    """Write a report of a run: a `Solution`, or what `carom.load` returned.

    Args:
        run: the run. Energies need the system: a loaded run of a ready-made model finds it by name.
        path: the HTML file to write, replaced atomically.
        title: heading; the model's name if left out.
        frames: number of frames of the animation.

    Example:
        >>> carom.report(sol, "run.html")
    """
    if not isinstance(frames, int) or frames < 2:
        msg = f"frames must be a whole number of at least 2, got {frames}"
        raise ValueError(msg)
    attributes = None if isinstance(run, Solution) else run.data.attrs
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".part")
    partial.write_text(page(payload(_with_system(run), frames, title, attributes)), encoding="utf-8")
    os.replace(partial, target)
    return target


def page(data: dict[str, Any]) -> str:
    """The HTML text; `</` is escaped, so that no label can end the script."""
    parts = {name: (resources.files("carom.reports") / "assets" / name).read_text("utf-8") for name in _ASSETS}
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("</", "<\\/")
    filled = parts["page.html"].replace("{{title}}", html.escape(data["title"]))
    for name in _ASSETS[1:]:
        filled = filled.replace("{{" + name + "}}", parts[name])
    return filled.replace("{{data}}", text)


_ASSETS = ("page.html", "page.css", "plots.js", "player.js")


def _with_system(run: Any) -> Any:
    """A loaded run with its system where that can be found by name, so that energies can be shown."""
    if isinstance(run, Solution):
        return run
    from carom.storage import revive

    try:
        return revive(run)
    except ValueError:
        return run
