"""What the commands of `carom` do; the commands themselves are in `carom_cli`."""

from __future__ import annotations

import ast
import json
import platform
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any


def first_line(thing: Any) -> str:
    """The first line of a docstring."""
    return (thing.__doc__ or "").strip().split("\n")[0]


def list_all() -> None:
    """Models, methods, steppings and papers, each with a line of what it is for."""
    from rich.console import Console
    from rich.table import Table

    import carom
    from carom.capabilities import public_methods, public_steppings

    sections = {
        "models": {name: first_line(fn) for name, fn in carom.models.registry.items()},
        "methods": {name: first_line(c) for name, c in public_methods().items()},
        "steppings": {name: first_line(c) for name, c in public_steppings().items()},
        "papers": dict(carom.papers.papers),
    }
    for title, entries in sections.items():
        table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
        for name, line in entries.items():
            table.add_row(f"[bold]{name}[/]", line)
        Console().print(table, "")


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
    from carom.files import scenario

    if what.endswith(".toml"):
        if given or pairs:
            msg = f"{what}: a scenario file takes no {', '.join(['--' + n for n in given] + ['--set'] * bool(pairs))}"
            raise ValueError(msg)
        plan = scenario.read(what, out)
        if plan.sweep is not None:
            msg = f"{what} has a table [sweep]: use carom sweep {what}"
            raise ValueError(msg)
    else:
        plan = scenario.from_options(what, given, settings(pairs), out)
    return carry_out(plan, progress, every)


def sweep(what: str, out: Path, client: str | None, progress: bool | None = None) -> Path:
    """Carry out the sweep of a scenario file: a folder with its numbers and a report, whose path is returned."""
    from carom.files import scenario
    from carom.reports.sweeps import sweep_report
    from carom.sweeps.cells import Grid
    from carom.sweeps.sweep import sweep as swept
    from carom.sweeps.workers import cluster

    plan = scenario.read(what, out)
    if plan.sweep is None:
        msg = f"{what} has no table [sweep]: use carom run {what}, or name values under [sweep.grid]"
        raise ValueError(msg)
    options: dict[str, Any] = {"t1": plan.t1, "stepping": plan.stepping, "keep": plan.sweep.keep}
    path = plan.path.with_suffix(".zarr")
    data = swept(
        plan.sweep.build,
        Grid(**plan.sweep.grid),
        plan.method,
        **options,
        batch=plan.sweep.batch,
        to=path,
        client=None if client is None else cluster(client),
        progress=progress,
    )
    failed = int((data.status != 0).sum())
    print(f"{data.status.size - failed} cells in {path}" + (f", {failed} failed" if failed else ""))
    page = sweep_report(data, path.with_suffix(".html"), plan.title)
    print(page)
    return page


def carry_out(plan: Any, progress: bool | None, every: float) -> Path:
    """Simulate a plan and write its files."""
    from carom.files.parts import simulate_to

    outputs = {"title": plan.title, "figure": plan.figure, "report": plan.report, "frames": plan.frames}

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


def report(path: Path, out: Path | None, frames: int) -> None:
    """Write the report of a stored run, or what the ending of `out` names, and print its path."""
    import carom

    if path.suffix == ".zarr":
        from carom.reports.sweeps import sweep_report

        print(sweep_report(carom.load_sweep(path), out or path.with_suffix(".html"), path.stem.replace("_", " ")))
        return
    path = run_of(path)
    target = out or path.with_suffix(".html")
    if target.exists():
        print(f"carom: replacing {target}", file=sys.stderr)
    print(written(carom.load(path), target, frames))


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

    from carom.files.plain import describe, spelt
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


def paper(key: str, item: str | None, out: Path) -> None:
    """Reproduce a paper's figures and tables, or those of all papers."""
    import carom

    if key == "all":
        if item is not None:
            msg = f"'carom paper all' takes no item, got '{item}'"
            raise ValueError(msg)
        table_of_papers({name: paper_claims(name, None, out) for name in carom.papers.papers})
    else:
        paper_claims(key, item, out)


def paper_claims(key: str, item: str | None, out: Path) -> dict[str, list[Any]]:
    """Run the items of a paper, print their claims, save their figures; returns the claims by item."""
    from rich.console import Console
    from rich.table import Table

    import carom

    items = carom.papers.paper(key).items
    if item is not None and item not in items:
        msg = f"{key} has no item '{item}'; it has {', '.join(items)}"
        raise ValueError(msg)
    found = {}
    for name in [item] if item else items:
        found[name], figure = items[name]()
        table = Table("quantity", "paper", "carom", "verdict", "note", title=f"{key} {name}: {first_line(items[name])}")
        for claim in found[name]:
            shown = [f"{x:.7g}" if isinstance(x, float) else str(x) for x in (claim.paper, claim.carom)]
            table.add_row(claim.what, *shown, claim.verdict, claim.note, style=None if claim.agrees else "yellow")
        Console().print(table)
        if figure is not None:
            out.mkdir(parents=True, exist_ok=True)
            figure.savefig(out / f"{key}_{name}.png", dpi=150)
            print(out / f"{key}_{name}.png")
    return found


def table_of_papers(found: dict[str, dict[str, list[Any]]]) -> None:
    """One row per paper: items, claims, and how many were reproduced, corrected or differ."""
    from rich.console import Console
    from rich.table import Table

    verdicts = ("agrees", "corrected", "differs")
    table = Table("paper", "items", "claims", "reproduced", "corrected", "differing", title="all papers")
    for key, items in found.items():
        claims = [claim for each in items.values() for claim in each]
        counts = [str(sum(c.verdict == verdict for c in claims)) for verdict in verdicts]
        table.add_row(key, str(len(items)), str(len(claims)), *counts)
    Console().print(table)


def doctor() -> None:
    """Versions, device, float64 and compilation cache."""
    import jax
    from rich.console import Console

    console = Console()
    for package in ("carom", "jax", "jaxlib", "equinox", "numpy", "xarray"):
        console.print(f"{package:10} {metadata.version(package)}")
    console.print(f"{'python':10} {platform.python_version()}")
    console.print(f"{'device':10} {', '.join(str(d) for d in jax.devices())}")
    console.print(f"{'float64':10} {'on' if jax.config.read('jax_enable_x64') else 'off: set CAROM_X64=1'}")
    console.print(f"{'cache':10} {getattr(jax.config, 'jax_compilation_cache_dir') or 'off'}")
