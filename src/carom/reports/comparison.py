"""Several runs of one system in one report: side by side, their differences, and what each digit costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from carom.plain import spelt
from carom.reports.curves import (
    at,
    distinct,
    energies,
    evenly,
    event_times,
    length_unit,
    lines,
    names_of,
    points,
    thinned,
)
from carom.reports.data import NUMBERS, frame_times, picture_of, stage, subtitle, told_thinning, view_box
from carom.reports.drawings import Draw
from carom.reports.provenance import again, plain
from carom.reports.shapes import Drawing, Solid, framed

_MOST_COORDINATES = 6
_TIMES = 2000  # at which runs are compared

Runs = dict[str, Any]


def named(runs: Any) -> Runs:
    """Runs by name: those of a dictionary, or each by its method and stepping."""
    if isinstance(runs, dict):
        return {str(name): run for name, run in runs.items()}
    told = tuple(", ".join(spelt(plain(run, part)) for part in ("method", "stepping")) for run in runs)
    return dict(zip(distinct(told), runs))


def compared(runs: Runs, frames: int, title: str = "", drawing: Draw | None = None, numbers: int = NUMBERS) -> Any:
    """Everything the page needs; differences are those to the last run."""
    first = next(iter(runs.values()))
    low, high = common_span(runs)
    times = np.unique(np.concatenate([frame_times(run, frames) for run in runs.values()]))
    times = times[(times >= low) & (times <= high)][:: -(-len(times) // (2 * frames))]
    instants = np.linspace(low, high, _TIMES)
    gaps = differences(runs, instants)
    found = [*overlaid(runs), lines("difference to the last run", instants, gaps, scale="log"), *account_of(runs)]
    found.append(work_precision(runs, gaps))
    left = thinned(found, numbers, event_times(first))
    names, rows = table(runs, gaps)
    return stage(beside({name: picture_of(run, times, drawing) for name, run in runs.items()}), times) | {
        "title": title or "comparison of runs",
        "subtitle": f"{len(runs)} runs, t = {low:.6g} to {high:.6g}; first: {subtitle(first)}",
        "time_unit": first.time_unit,
        "length_unit": length_unit(first),
        "plots": found,
        "thinned": told_thinning(left, max(map(len, runs.values()))),
        "runs": {"names": names, "rows": rows},
        "events": None,
        "evidence": [[name, subtitle(run)] for name, run in runs.items()],
        "provenance": [["differences", f"to '{list(runs)[-1]}', at {_TIMES} times, between rows as Solution.at does"]],
        "again": [[name, again(run, run.facts)[0][1]] for name, run in runs.items()],
    }


def common_span(runs: Runs) -> tuple[float, float]:
    """The time that all runs share."""
    ends = np.array([[run.columns["t"].min(), run.columns["t"].max()] for run in runs.values()])
    low, high = float(ends[:, 0].max()), float(ends[:, 1].min())
    sizes = {run.columns["q"].shape[1] for run in runs.values()}
    if low >= high or len(sizes) > 1:
        why = "share no stretch of time" if low >= high else f"have {sorted(sizes)} coordinates"
        msg = f"runs to compare must be of one system and overlap in time; these {why}"
        raise ValueError(msg)
    return low, high


def overlaid(runs: Runs) -> list[dict[str, Any]]:
    """Coordinates of all runs, some of many, each in a plot."""
    first = next(iter(runs.values()))
    labels, units = names_of(first)
    n = first.columns["q"].shape[1]
    names = distinct(labels) if len(labels) == n else [f"coordinate {i + 1}" for i in range(n)]
    return [
        lines(
            names[i],
            np.zeros(0),
            {name: (run.columns["t"], run.columns["q"][:, i]) for name, run in runs.items()},
            unit=units[i] if units else "",
        )
        for i in evenly(list(range(n)), min(n, _MOST_COORDINATES))
    ]


def differences(runs: Runs, times: np.ndarray) -> dict[str, np.ndarray]:
    """The largest difference of any coordinate to the last run over time, by name."""
    q = {name: between_rows(run, times) for name, run in runs.items()}
    *others, reference = q
    return {name: np.max(np.abs(q[name] - q[reference]), axis=1) for name in others}


def between_rows(run: Any, times: np.ndarray) -> np.ndarray:
    """Coordinates at some times, by the equations of motion where they are known, else on straight lines."""
    return run.at(times)[0] if hasattr(run, "system") else at(run.columns["t"], run.columns["q"], times)


def account_of(runs: Runs) -> list[dict[str, Any]]:
    """The change of energy of every run in one plot, where systems are known."""
    found = {name: energies(run)[1] for name, run in runs.items() if hasattr(run, "account")}
    series = {name: (plot["series"][0]["t"], plot["series"][0]["y"]) for name, plot in found.items()}
    return [lines("change of energy / energy exchanged", np.zeros(0), series)] if series else []


def work_precision(runs: Runs, gaps: dict[str, np.ndarray]) -> dict[str, Any]:
    """Largest difference to the last run over the evaluations of forces."""
    worst = {name: float(np.nanmax(gap)) for name, gap in gaps.items()}
    series = {
        name: (np.array([runs[name].stats["evaluations"]], float), np.array([error]), np.zeros(1))
        for name, error in worst.items()
        if error > 0
    }
    found = points("work and precision", series, axes=("evaluations of forces", "largest difference"))
    return found | {"scales": ["log", "log"], "dot": 5}


def table(runs: Runs, gaps: dict[str, np.ndarray]) -> tuple[list[str], list[list[str]]]:
    """One row per run: its method, its work, its difference to the last one."""
    names = ["run", "method", "stepping", "steps", "evaluations", "seconds", "largest difference to the last"]
    rows = []
    for name, run in runs.items():
        stats = run.stats
        seconds = f"{stats['seconds']:.3g}" if stats.get("seconds") else ""
        gap = f"{np.nanmax(gaps[name]):.3g}" if name in gaps else "reference"
        parts = [spelt(plain(run, part)) for part in ("method", "stepping")]
        rows.append([name, *parts, str(stats["accepted"]), str(stats["evaluations"]), seconds, gap])
    return names, rows


def beside(pictures: dict[str, Drawing]) -> Drawing:
    """The drawings side by side, in the order of the runs."""
    boxes = [view_box(picture) for picture in pictures.values()]
    dim = len(boxes[0]) // 2
    width = 1.08 * max(box[dim] - box[0] for box in boxes)
    shapes = []
    for k, picture in enumerate(pictures.values()):
        away = np.zeros(dim)
        away[0] = k * width
        for s in picture.shapes:
            moved = (
                {"position": np.asarray(s.position) + away}
                if isinstance(s, Solid)
                else {"points": framed(s.points) + away}
            )
            shapes.append(replace(s, **moved))
    first = next(iter(pictures.values()))
    caption = "; ".join(filter(None, ["from left to right: " + " | ".join(pictures), first.caption]))
    return replace(first, shapes=shapes, caption=caption, touches=None)
