"""Systems and solutions in notebooks."""

from __future__ import annotations

from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from carom.solution import Solution
from carom.systems.system import System

_FRAMES = 200


def _table(title: str, rows: dict[str, Any]) -> str:
    cells = "".join(f"<tr><td>{escape(k)}</td><td>{escape(str(v))}</td></tr>" for k, v in rows.items())
    return f'<div><strong>{escape(title)}</strong><table style="text-align: left">{cells}</table></div>'


def system_html(system: System) -> str:
    """What a system is made of, as a table."""
    rows = {
        "potential": ", ".join(system.potential) or "none",
        "forces": ", ".join(system.forces) or "none",
        "rate damping": ", ".join(system.rate_damping) or "none",
        "a method must handle": ", ".join(sorted(system.features)) or "nothing beyond a potential",
        "coordinates": ", ".join(system.labels) or "not named",
        "units": ", ".join(system.units) or "not given",
        "unit of time": system.time_unit or "not given",
    }
    if system.origin is not None:
        rows = {"model": system.origin.name, "arguments": system.origin.arguments} | rows
    return _table("carom System", rows)


def solution_html(solution: Solution) -> str:
    """The evidence as a table, and the report with its player."""
    worst = {f"worst {name}": f"{value:.3g}" for name, value in solution.account.worst.items()}
    stats = {name: f"{value:.4g}" for name, value in solution.stats.items()}
    chosen = {"chosen": solution.choice} if solution.choice else {}
    return _table(repr(solution).strip("<>"), chosen | worst | stats) + _player(solution)


def _player(solution: Solution) -> str:
    """The report of a run in a frame of its own."""
    from carom.reports.page import report

    with TemporaryDirectory() as folder:
        page = report(solution, Path(folder) / "run.html", frames=_FRAMES).read_text(encoding="utf-8")
    style = "width: 100%; height: 36rem; border: 1px solid #8884"
    return (
        f'<iframe title="report of the run" sandbox="allow-scripts" style="{style}" srcdoc="{escape(page)}"></iframe>'
    )
