"""Runs, resumed runs and reports: evidence on the terminal, files in a folder."""

from __future__ import annotations

import ast
import json
import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

_LARGE = 2e8  # bytes from which on a run is announced
_OTHER_NUMBERS = 8  # of a row, besides coordinates and velocities


def settings(pairs: list[str]) -> dict[str, Any]:
    """`key=value` pairs; values are numbers, lists of numbers, or words."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            msg = f"--set needs key=value, got '{pair}'"
            raise ValueError(msg)
        try:
            found[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[key] = value
    return found


def run(
    what: str, given: dict[str, Any], pairs: list[str], out: Path, progress: bool | None = None, every: float = 10.0
) -> Path:
    """Run a model or a scenario file, print the evidence, leave the run, a figure and a report; returns the report."""
    return carry_out(planned(what, given, pairs, out), progress, every)


def planned(what: str, given: dict[str, Any], pairs: list[str], out: Path) -> Any:
    """The run that a model or a scenario file stands for, with other settings where they are given."""
    from carom.files import scenario

    if what.endswith(".toml"):
        plan = scenario.read(what, out, given, settings(pairs))
        if plan.sweep is not None:
            msg = f"{what} has a table [sweep]: use carom sweep {what}"
            raise ValueError(msg)
        return plan
    return scenario.from_options(what, given, settings(pairs), out)


def solve(
    what: str, given: dict[str, Any], pairs: list[str], out: Path, rtol: float, progress: bool | None = None
) -> Path:
    """Run a model or a scenario file to an accuracy; method and steps are chosen by `carom.solve`."""
    import carom

    plan = planned(what, given, pairs, out)
    outputs = outputs_of(plan)

    def go() -> Any:
        sol = carom.solve(plan.system, plan.state, t1=plan.t1, rtol=rtol, progress=progress)
        sol.notes |= {"outputs": json.dumps(outputs)}
        plan.path.parent.mkdir(parents=True, exist_ok=True)
        sol.save(plan.path)
        return sol

    return told(plan.path, go, outputs)


def announce_size(plan: Any) -> None:
    """Warn of a run that will keep very many numbers, as far as its steps are known beforehand."""
    from carom import Constant

    if not isinstance(plan.stepping, Constant):
        return
    rows = abs(plan.t1 - float(plan.state.t)) / float(plan.stepping.h) / plan.save_every
    numbers = plan.state.q.size + plan.state.v.size + _OTHER_NUMBERS
    size = 8 * rows * numbers
    if size > _LARGE:
        what = f"{rows:.3g} rows of {numbers} numbers or more, {size / 1e9:.2g} GB before compression"
        warnings.warn(f"this run keeps {what}; --save-every {_fewer(size)} keeps fewer", stacklevel=2)


def _fewer(size: float) -> int:
    """Of how many steps to keep one, so that a run of this size becomes moderate."""
    return 10 ** max(1, math.ceil(math.log10(size / _LARGE)))


def carry_out(plan: Any, progress: bool | None, every: float) -> Path:
    """Simulate a plan and write its files."""
    from carom.files.parts import simulate_to

    announce_size(plan)
    outputs = outputs_of(plan)

    def go() -> Any:
        return simulate_to(
            plan.path,
            plan.system,
            plan.state,
            plan.method,
            t1=plan.t1,
            stepping=plan.stepping,
            save_every=plan.save_every,
            every=every,
            progress=progress,
            notes={"outputs": json.dumps(outputs)},
        )

    return told(plan.path, go, outputs)


def outputs_of(plan: Any) -> dict[str, Any]:
    """What a plan leaves beside the run."""
    return {"title": plan.title, "figure": plan.figure, "report": plan.report, "frames": plan.frames}


def told(path: Path, go: Callable[[], Any], outputs: dict[str, Any]) -> Path:
    """Carry out a run and tell about it in files and on the terminal; of one that fails, what there is."""
    from carom import SimulationError

    try:
        sol = go()
    except SimulationError as error:
        if error.solution is None:
            raise
        sol = error.solution
        sol.notes |= {"outputs": json.dumps(outputs)}
        try:
            there = ["", *map(str, pictures(path, sol, outputs))]
        except OSError as trouble:
            there = ["", f"without pictures: {trouble}"]
        kept = f"{len(sol)} rows up to t = {sol.t[-1]:.6g} are kept: `carom report {path}` reads them"
        msg = f"{error} {kept}{', '.join(there)}"
        raise SimulationError(msg, sol, error.status) from None
    files = [path, *pictures(path, sol, outputs)]
    summary(outputs["title"] or path.stem, sol, files)
    print(files[-1])
    refuse_created_energy(sol)
    return files[-1]


def pictures(path: Path, sol: Any, outputs: dict[str, Any]) -> list[Path]:
    """Write the figure and the report that are asked for beside a run."""
    files = []
    if outputs["figure"]:
        files.append(save_figure(sol, path.with_suffix(".png"), outputs["title"]))
    if outputs["report"]:
        files.append(save_report(sol, path.with_suffix(".html"), outputs["title"], outputs["frames"]))
    return files


def save_report(run: Any, path: Path, title: str, frames: int) -> Path:
    """The report of a run as a file."""
    import carom

    return carom.report(run, path, title=title, frames=frames)


def save_figure(run: Any, path: Path, title: str) -> Path:
    """The overview of a run as a picture, replaced atomically."""
    import carom

    partial = path.with_name(f"part.{path.name}")
    carom.plots.overview(run, title=title).savefig(partial, dpi=150)
    return partial.replace(path)


def save_table(run: Any, path: Path) -> Path:
    """The rows of a run as comma-separated values, replaced atomically."""
    partial = path.with_name(f"part.{path.name}")
    run.to_pandas().to_csv(partial)
    return partial.replace(path)


def refuse_created_energy(sol: Any) -> None:
    """Fail, after everything was written, if energy came from nowhere."""
    from carom import SimulationError
    from carom.running.evidence import CREATED, created_energy

    if created_energy(sol) > CREATED:
        energy = sol.account.energy
        change = f"from {energy[0]:.4g} to {energy.max():.4g}"
        msg = f"do not trust this run: the energy rose {change}, which no force explains; reduce --h"
        raise SimulationError(msg, sol)


def resume(path: Path, t1: float | None, progress: bool | None = None, every: float = 10.0) -> None:
    """Go on with a stored run, in place; its figure and report are made anew."""
    from carom.files.parts import resume_to
    from carom.files.storage import newest

    path = run_of(path)
    there = {"figure": path.with_suffix(".png").exists(), "report": path.with_suffix(".html").exists()}
    asked = json.loads(newest(path).facts.get("outputs", "{}"))
    outputs = {"title": "", "frames": 600} | asked
    outputs |= {name: bool(asked.get(name)) or found for name, found in there.items()}
    told(path, lambda: resume_to(path, t1=t1, every=every, progress=progress), outputs)


def run_of(path: Path) -> Path:
    """The run's own path, also where its folder of parts was named."""
    return path.with_suffix("") if path.name.endswith(".nc.d") else path


def report(paths: list[Path], out: Path | None, frames: int) -> Path:
    """Write the report of a stored run, or what the ending of `out` names, or compare runs; print its path."""
    import carom

    path, *others = map(run_of, paths)
    target = out or path.with_name("comparison.html" if others else f"{path.stem}.html")
    if target.exists():
        print(f"carom: replacing {target}", file=sys.stderr)
    if others:
        page = carom.report(by_name([path, *others]), target, frames=frames)
    elif path.suffix == ".zarr":
        from carom.reports.sweeps import sweep_report

        page = sweep_report(carom.load_sweep(path), target, path.stem.replace("_", " "))
    else:
        page = written(carom.load(path), target, frames)
    print(page)
    return page


def by_name(paths: list[Path]) -> dict[str, Any]:
    """Stored runs by the names of their files, with their folders where names are the same."""
    import carom

    if sweeps := [path for path in paths if path.suffix == ".zarr"]:
        msg = f"{sweeps[0]} is a sweep: runs can be compared, a sweep has a report of its own"
        raise ValueError(msg)
    stems = [path.stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path.with_suffix("")) for path in paths]
    if len(set(names)) < len(names):
        msg = "the same run is named twice: a comparison needs different ones"
        raise ValueError(msg)
    return {name: carom.load(path) for name, path in zip(names, paths)}


def written(run: Any, target: Path, frames: int) -> Path:
    """A run in the form that the ending of a path names."""
    import carom
    from carom.reports.provenance import heading

    title = heading(run.facts)
    forms: dict[str, Callable[[], Path]] = {
        ".html": lambda: save_report(run, target, title, frames),
        ".png": lambda: save_figure(run, target, title),
        ".svg": lambda: save_figure(run, target, title),
        ".pdf": lambda: save_figure(run, target, title),
        ".csv": lambda: save_table(run, target),
        ".gif": lambda: carom.film(run, target, frames=frames),
        ".mp4": lambda: carom.film(run, target, frames=frames),
    }
    if target.suffix.lower() not in forms:
        msg = f"--out must end in {', '.join(forms)}, got '{target.name}'"
        raise ValueError(msg)
    target.parent.mkdir(parents=True, exist_ok=True)
    return forms[target.suffix.lower()]()


def summary(title: str, sol: Any, files: list[Path]) -> None:
    """The closing table: what was run, and the evidence."""
    from rich.console import Console
    from rich.table import Table

    from carom.plain import describe, spelt
    from carom.reports.evidence import worst

    stats, energy = sol.stats, sol.account.energy
    rows = {
        "method": str(sol.choice or f"{spelt(describe(sol.method))[:200]} with {spelt(describe(sol.stepping))}"),
        "time": f"{sol.t[0]:g} to {sol.t[-1]:g}",
        "steps": f"{stats['accepted']} accepted, {stats['rejected']} rejected",
        "evaluations": f"{stats['evaluations']} of the forces, {stats['iterations']} solver iterations",
        "energy": f"{energy[0]:.6g} at the start, {energy[-1]:.6g} at the end",
        **{name: text for name, text in worst(sol.account)},
        "seconds": f"{stats['seconds']:.3f} running, {stats['compile_seconds']:.2f} compiling",
        "files": ", ".join(str(f) for f in files),
    }
    table = Table(title=title, show_header=False, title_justify="left")
    for name, value in rows.items():
        table.add_row(name, value)
    Console().print(table)
