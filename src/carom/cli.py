"""The command line: `carom list`, `carom run`, `carom paper`, `carom doctor`."""

from __future__ import annotations

import ast
import platform
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Dynamics that hit, stick, slide, chain or conserve."
)


def main() -> None:
    """Run the command line; a user's mistake ends in one line, not in a traceback."""
    from carom import SimulationError

    try:
        app()
    except (ValueError, TypeError, SimulationError) as error:
        typer.secho(f"carom: {error}", fg="red", err=True)
        raise SystemExit(2) from None


def first_line(thing: Any) -> str:
    """The first line of a docstring."""
    return (thing.__doc__ or "").strip().split("\n")[0]


def public_steppings() -> dict[str, Any]:
    """Steppings that are attributes of carom, by name."""
    import carom
    from carom.stepping.base import AbstractStepping

    return {n: c for n, c in vars(carom).items() if isinstance(c, type) and issubclass(c, AbstractStepping)}


@app.command("list")
def list_all() -> None:
    """Models, methods, steppings and papers, each with a line of what it is for."""
    from rich.console import Console
    from rich.table import Table

    import carom
    from carom.capabilities import public_methods

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


def record(text: str) -> Any:
    """A method, stepping or tableau written as a call, such as `IRK(gauss(2))`; nothing else is evaluated."""
    import carom
    from carom.capabilities import public_methods

    def build(node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return -node.operand.value  # pyright: ignore
        if isinstance(node, ast.List):
            return [build(item) for item in node.elts]
        name = node.func if isinstance(node, ast.Call) else node
        allowed = public_methods() | public_steppings() | {"Newton": carom.Newton}
        allowed |= {n: getattr(carom, n) for n in _TABLEAUX}
        if not isinstance(name, ast.Name) or name.id not in allowed:
            msg = f"cannot read '{text}'; allowed are {', '.join(sorted(allowed))} with numbers as arguments"
            raise ValueError(msg)
        arguments = node if isinstance(node, ast.Call) else None
        positional = [build(a) for a in arguments.args] if arguments else []
        return allowed[name.id](
            *positional, **{str(k.arg): build(k.value) for k in (arguments.keywords if arguments else [])}
        )

    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        msg = f"cannot read '{text}': write a call such as IRK(gauss(2))"
        raise ValueError(msg) from None
    return build(tree.body)


_TABLEAUX = (
    "gauss",
    "radau_iia",
    "lobatto_iiia",
    "lobatto_iiib",
    "lobatto_iiic",
    "lobatto_iiic_star",
    "lobatto_iiid",
    "explicit",
)


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


def default_method(system: Any) -> Any:
    """A tailored method where the system declares rate damping that it can imitate, else Gauss-Legendre."""
    import carom

    tailored = carom.TailoredTheta()
    if system.rate_damping and system.features <= tailored.handles and not tailored.objection(system):
        return tailored
    return carom.IRK(carom.gauss(2))


@app.command()
def run(
    model: Annotated[str, typer.Argument(help="name of a model, see `carom list`")],
    t1: Annotated[float, typer.Option(help="end of the run")] = 10.0,
    h: Annotated[float, typer.Option(help="step size")] = 0.01,
    method: Annotated[str | None, typer.Option(help="for instance 'IRK(gauss(2))'")] = None,
    stepping: Annotated[str | None, typer.Option(help="for instance 'Constant(0.1)', in place of --h")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="model parameter, key=value")] = None,
    out: Annotated[Path, typer.Option(help="folder for the result file and the figure")] = Path("out"),
    progress: Annotated[bool, typer.Option(help="show a progress bar")] = True,
) -> None:
    """Run a ready-made model, print the evidence, leave a result file and a figure."""
    import carom

    system, state = carom.models.build(model, settings(set_ or []))
    chosen = record(method) if method else default_method(system)
    steps = carom.Constant(h) if stepping is None else record(stepping)
    sol = carom.simulate(system, state, chosen, t1=t1, stepping=steps, progress=progress)
    sol.save(out / f"{model}.nc")
    figure = carom.plots.overview(sol, title=model.replace("_", " "))
    figure.savefig(out / f"{model}.png", dpi=150)
    summary(model, sol, [out / f"{model}.nc", out / f"{model}.png"])


def summary(title: str, sol: Any, files: list[Path]) -> None:
    """The closing table: what was run, and the evidence."""
    from rich.console import Console
    from rich.table import Table

    stats, energy = sol.stats, sol.account.energy
    rows = {
        "method": type(sol.method).__name__,
        "time": f"{sol.t[0]:g} to {sol.t[-1]:g}",
        "steps": f"{stats['accepted']} accepted, {stats['rejected']} rejected",
        "evaluations": f"{stats['evaluations']} of the forces, {stats['iterations']} solver iterations",
        "energy": f"{energy[0]:.6g} at the start, {energy[-1]:.6g} at the end",
        **{f"worst {name}": f"{value:.3g}" for name, value in sol.account.worst.items()},
        "seconds": f"{stats['seconds']:.3f} running, {stats['compile_seconds']:.2f} compiling",
        "files": ", ".join(str(f) for f in files),
    }
    table = Table(title=title, show_header=False, title_justify="left")
    for name, value in rows.items():
        table.add_row(name, value)
    Console().print(table)


@app.command()
def paper(
    key: Annotated[str, typer.Argument(help="for instance james2020")],
    item: Annotated[
        str | None, typer.Argument(help="one figure or table, for instance table1; all if left out")
    ] = None,
    out: Annotated[Path, typer.Option(help="folder for the figures")] = Path("out"),
) -> None:
    """Reproduce a paper's figures and tables: paper, carom, verdict."""
    from rich.console import Console
    from rich.table import Table

    import carom

    items = carom.papers.paper(key).items
    if item is not None and item not in items:
        msg = f"{key} has no item '{item}'; it has {', '.join(items)}"
        raise ValueError(msg)
    for name in [item] if item else items:
        claims, figure = items[name]()
        table = Table("quantity", "paper", "carom", "verdict", "note", title=f"{key} {name}: {first_line(items[name])}")
        for claim in claims:
            shown = [f"{x:.7g}" if isinstance(x, float) else str(x) for x in (claim.paper, claim.carom)]
            table.add_row(claim.what, *shown, claim.verdict, claim.note, style=None if claim.agrees else "yellow")
        Console().print(table)
        if figure is not None:
            out.mkdir(parents=True, exist_ok=True)
            figure.savefig(out / f"{key}_{name}.png", dpi=150)


@app.command()
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
