"""Commands and options; what they do is in `carom.cli`, imported when a command runs.

Exit codes: 0 done, 1 the run failed, 2 a mistake in what was asked or a file that cannot be written, 130 interrupted,
143 terminated.
"""

from __future__ import annotations

import signal
import sys
import warnings
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
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Dynamics that hit, stick, slide, chain or conserve.",
)

_terminated: list[bool] = []

_FORMS = "a file that ends in .html, .png, .svg, .pdf, .csv, .gif or .mp4"
Out = Annotated[Path, typer.Option(help="folder for the results")]
Progress = Annotated[bool, typer.Option(help="show a progress bar")]
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


@app.command("list")
def list_all() -> None:
    """Models, methods, steppings and papers, each with a line of what it is for."""
    from carom import cli

    cli.list_all()


@app.command()
def run(
    what: Annotated[str, typer.Argument(metavar="MODEL|SCENARIO.toml", help="a model of `carom list`, or a file")],
    t1: Annotated[float | None, typer.Option(help="end of the run  (default: that of the model)")] = None,
    h: Annotated[float | None, typer.Option(help="step size  (default: that of the model)")] = None,
    method: Annotated[
        str | None, typer.Option(help="for instance 'IRK(gauss(2))'  (default: that of the model)")
    ] = None,
    stepping: Annotated[str | None, typer.Option(help="for instance 'Constant(0.1)', in place of --h")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="a parameter of it")] = None,
    save_every: Annotated[int | None, typer.Option(help="keep every n-th step  (default: as the model)")] = None,
    out: Out = Path("out"),
    progress: Progress = True,
    every: Every = 10.0,
) -> None:
    """Run a model or a scenario file: evidence on the terminal; result, figure and report in a folder."""
    from carom import cli

    given = {"t1": t1, "h": h, "method": method, "stepping": stepping, "save_every": save_every}
    cli.run(what, {name: x for name, x in given.items() if x is not None}, set_ or [], out, progress, every)


@app.command()
def sweep(
    what: Annotated[str, typer.Argument(metavar="SCENARIO.toml", help="a file with a table [sweep.grid]")],
    out: Out = Path("out"),
    client: Annotated[str | None, typer.Option(help="address of a Dask scheduler that runs the batches")] = None,
    progress: Progress = True,
) -> None:
    """Run a scenario for many values of its parameters; killed, it goes on where it was."""
    from carom import cli

    cli.sweep(what, out, client, progress)


@app.command()
def resume(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="run.nc, finished or not")],
    t1: Annotated[float | None, typer.Option(help="another end of the run")] = None,
    progress: Progress = True,
    every: Every = 10.0,
) -> None:
    """Go on with a run that was killed or interrupted, or to a later end."""
    from carom import cli

    cli.resume(path, t1, progress, every)


@app.command()
def report(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="run.nc or sweep.zarr, finished or not")],
    out: Annotated[Path | None, typer.Option(help=f"{_FORMS}  (default: HTML beside the run)")] = None,
    frames: Annotated[int, typer.Option(help="frames of the animation")] = 600,
) -> None:
    """Write the report of a stored run: one HTML file that needs no network; or what the ending of --out names."""
    from carom import cli

    cli.report(path, out, frames)


@app.command()
def paper(
    key: Annotated[str, typer.Argument(help="for instance james2020, or all")],
    item: Annotated[str | None, typer.Argument(help="one figure or table, for instance table1")] = None,
    out: Out = Path("out"),
) -> None:
    """Reproduce a paper's figures and tables: paper, carom, verdict; `all` ends with one table of all papers."""
    from carom import cli

    cli.paper(key, item, out)


@app.command()
def doctor() -> None:
    """Versions, device, float64 and compilation cache."""
    from carom import cli

    cli.doctor()
