"""Systems and solutions in notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from carom.solution import Solution
from carom.systems.system import System


def _table(title: str, rows: dict[str, Any]) -> str:
    cells = "".join(f"<tr><td>{escape(k)}</td><td>{escape(str(v))}</td></tr>" for k, v in rows.items())
    return f"<div><strong>{escape(title)}</strong><table>{cells}</table></div>"


def system_html(system: System) -> str:
    """What a system is made of, as a table."""
    rows = {
        "potential": ", ".join(system.potential) or "none",
        "forces": ", ".join(system.forces) or "none",
        "rate damping": ", ".join(system.rate_damping) or "none",
        "a method must handle": ", ".join(sorted(system.features)) or "nothing beyond a potential",
        "coordinates": ", ".join(system.labels) or "not named",
        "units": ", ".join(system.units) or "not given",
    }
    if system.origin is not None:
        rows = {"model": system.origin.name, "arguments": system.origin.arguments} | rows
    return _table("carom System", rows)


def solution_html(solution: Solution) -> str:
    """The evidence as a table, and the first coordinates as a small picture."""
    worst = {f"worst {name}": f"{value:.3g}" for name, value in solution.account.worst.items()}
    stats = {name: f"{value:.4g}" for name, value in solution.stats.items()}
    chosen = {"chosen": solution.choice} if solution.choice else {}
    return _table(repr(solution).strip("<>"), chosen | worst | stats) + _sparkline(solution.t, solution.q[:, :6])


def _sparkline(t: np.ndarray, q: np.ndarray) -> str:
    rows = np.unique(np.linspace(0, len(t) - 1, min(len(t), 300)).round().astype(int))
    x = 600 * (t[rows] - t[0]) / ((t[-1] - t[0]) or 1.0)
    low, span = np.nanmin(q), np.ptp(q) or 1.0
    lines = ""
    for i, column in enumerate(q[rows].T):
        points = " ".join(f"{a:.1f},{118 - 116 * (b - low) / span:.1f}" for a, b in zip(x, column))
        lines += f'<polyline points="{points}" fill="none" stroke="hsl({215 + 50 * i} 65% 45%)"/>'
    return f'<svg viewBox="0 0 600 120" width="600" role="img" aria-label="coordinates over time">{lines}</svg>'
