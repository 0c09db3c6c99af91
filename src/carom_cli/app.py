"""Commands and options; what they do is in `carom.cli`, imported when a command runs.

Exit codes: 0 done, 1 the run failed, 2 a mistake in what was asked or a file that cannot be written, 130 interrupted,
143 terminated.
"""

from __future__ import annotations

import re
import signal
import sys
import warnings
from importlib import util
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core


class Interruption(Exception):  # noqa: N818
    """A KeyboardInterrupt with its words, which click would end without any."""


class Commands(typer.core.TyperGroup):
    """The commands; an interrupted one says where it stands."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interruption(str(error) or "interrupted") from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Dynamics that hit, stick, slide, chain or conserve.",
)

_terminated: list[bool] = []

_FORMS = "a file that ends in .html, .png, .svg, .pdf, .csv, .gif or .mp4"
Out = Annotated[Path, typer.Option(help="folder for the results")]
Progress = Annotated[bool, typer.Option(help="show a progress bar")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="a parameter of the model")]
Open = Annotated[bool, typer.Option("--open", help="open the report in a browser")]
Json = Annotated[bool, typer.Option("--json", help="as JSON")]
Every = Annotated[float, typer.Option("--parts", "--segments", help="seconds between parts on disk, to resume from")]


def main() -> None:
    """Run the command line; a user's mistake ends in one line, not in a traceback."""
    warnings.showwarning = _warn
    signal.signal(signal.SIGTERM, _terminate)
    try:
        app()
    except (Interruption, KeyboardInterrupt) as error:
        _end(str(error) or "interrupted", 143 if _terminated else 130)
    except (ValueError, TypeError, OSError, MemoryError, ArithmeticError) as error:
        _end(error, 2)
    except RuntimeError as error:
        if type(error).__name__ != "SimulationError":
            raise
        _end(error, 1)


def _terminate(*_: object) -> None:
    """SIGTERM ends a run as Ctrl-C does."""
    _terminated.append(True)
    raise KeyboardInterrupt


def _warn(message: Warning | str, *_: object) -> None:
    """A warning in one line on stderr."""
    typer.secho("carom: warning: " + " ".join(str(message).split()), err=True)


def _end(message: object, code: int) -> None:
    """One line on stderr, and the exit code."""
    typer.secho("carom: " + " ".join(str(message).split()), fg="red" if sys.stderr.isatty() else None, err=True)
    raise SystemExit(code) from None


def _models(incomplete: str) -> list[str]:
    """Names of models for completion, without importing JAX."""
    return [
        name for name in re.findall(r"import (\w+) as", _source("models/__init__.py")) if name.startswith(incomplete)
    ]


def _source(path: str) -> str:
    """The text of a file of the library, which is not imported."""
    carom = util.find_spec("carom")
    assert carom is not None
    assert carom.origin is not None
    return (Path(carom.origin).parent / path).read_text(encoding="utf-8")


What = Annotated[
    str,
    typer.Argument(metavar="MODEL|SCENARIO.toml", help="a model of `carom list`, or a file", autocompletion=_models),
]


def _version(asked: bool) -> None:
    if asked:
        typer.echo("carom " + re.findall(r'__version__ = "(.*)"', _source("_config.py"))[0])
        raise typer.Exit


@app.callback(epilog="Start with: carom run newtons_cradle --open")
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Dynamics that hit, stick, slide, chain or conserve."""
    del version


@app.command("list")
def list_all(
    section: Annotated[str | None, typer.Argument(help="models, methods, steppings or papers")] = None,
    as_json: Json = False,
) -> None:
    """Models, methods, steppings and papers, each with a line of what it is for."""
    from carom.cli import lists

    lists.list_all(section, as_json)


@app.command()
def show(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="a model of `carom list`", autocompletion=_models)],
    out: Annotated[Path | None, typer.Option(help="a picture of its start, .png, .svg or .pdf")] = None,
    as_json: Json = False,
) -> None:
    """A model: its parameters and their defaults, coordinates, laws and usual run."""
    from carom.cli import lists

    lists.show(model, as_json, out)


@app.command()
def run(
    what: What,
    t1: Annotated[float | None, typer.Option(help="end of the run  (default: that of the model)")] = None,
    h: Annotated[float | None, typer.Option(help="step size  (default: that of the model)")] = None,
    method: Annotated[
        str | None, typer.Option(help="for instance 'IRK(gauss(2))'  (default: that of the model)")
    ] = None,
    stepping: Annotated[str | None, typer.Option(help="for instance 'Constant(0.1)', in place of --h")] = None,
    set_: Set = None,
    save_every: Annotated[int | None, typer.Option(help="keep every n-th step  (default: as the model)")] = None,
    out: Out = Path("out"),
    progress: Progress = True,
    every: Every = 10.0,
    open_: Open = False,
) -> None:
    """Run a model or a scenario file: evidence on the terminal; result, figure and report in a folder."""
    from carom.cli import runs

    given = {"t1": t1, "h": h, "method": method, "stepping": stepping, "save_every": save_every}
    given = {name: x for name, x in given.items() if x is not None}
    _opened(runs.run(what, given, set_ or [], out, progress, every), open_)


@app.command()
def solve(
    what: What,
    rtol: Annotated[float, typer.Option(help="relative accuracy of the motion")] = 1e-6,
    t1: Annotated[float | None, typer.Option(help="end of the run  (default: that of the model)")] = None,
    set_: Set = None,
    out: Out = Path("out"),
    progress: Progress = True,
    open_: Open = False,
) -> None:
    """Run a model or a scenario file to an accuracy: carom chooses method and steps, and says why."""
    from carom.cli import runs

    given = {} if t1 is None else {"t1": t1}
    _opened(runs.solve(what, given, set_ or [], out, rtol, progress), open_)


def _opened(report: Path, wanted: bool) -> None:
    if wanted:
        typer.launch(report.resolve().as_uri())


@app.command()
def sweep(
    what: Annotated[str, typer.Argument(metavar="SCENARIO.toml", help="a file with a table [sweep.grid]")],
    out: Out = Path("out"),
    client: Annotated[str | None, typer.Option(help="address of a Dask scheduler that runs the batches")] = None,
    progress: Progress = True,
) -> None:
    """Run a scenario for many values of its parameters; killed, it goes on where it was."""
    from carom.cli import sweeps

    sweeps.sweep(what, out, client, progress)


@app.command()
def resume(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="run.nc, finished or not")],
    t1: Annotated[float | None, typer.Option(help="another end of the run")] = None,
    progress: Progress = True,
    every: Every = 10.0,
) -> None:
    """Go on with a run that was killed or interrupted, or to a later end."""
    from carom.cli import runs

    runs.resume(path, t1, progress, every)


@app.command()
def report(
    paths: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="run.nc or sweep.zarr, finished or not; several to compare")
    ],
    out: Annotated[Path | None, typer.Option(help=f"{_FORMS}  (default: HTML beside the run)")] = None,
    frames: Annotated[int, typer.Option(help="frames of the animation")] = 600,
    open_: Open = False,
) -> None:
    """Write the report of a stored run: one HTML file that needs no network; or what the ending of --out names.

    Several runs of one system are shown side by side, with their differences to the last one.
    """
    from carom.cli import runs

    _opened(runs.report(paths, out, frames), open_)


@app.command()
def paper(
    key: Annotated[str, typer.Argument(help="for instance james2020, or all")],
    item: Annotated[str | None, typer.Argument(help="one figure or table, for instance table1")] = None,
    out: Out = Path("out"),
) -> None:
    """Reproduce a paper's figures and tables: paper, carom, verdict; `all` ends with one table of all papers."""
    from carom.cli import papers

    papers.paper(key, item, out)


@app.command()
def doctor() -> None:
    """Versions, device, float64, compilation cache, helpers, disk, and a run with a known answer."""
    from carom.cli import lists

    lists.doctor()
