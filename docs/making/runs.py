"""Runs behind the pictures; each function writes files into the folder where it is called."""

from __future__ import annotations

import ast
import base64
import contextlib
import html
import json
import warnings
from pathlib import Path
from typing import Any

import carom
from carom.cli import runs
from carom.models.registry import registry
from carom.reports.film import still


def start(model: str) -> None:
    """A picture of the start of a model."""
    still(*registry[model](), "start.png")


def usual(model: str) -> None:
    """The usual run of a model: figure and report."""
    with told():
        runs.run(model, {}, [], Path(), progress=False)
    start(model)


def scenario(name: str, text: str) -> None:
    """A scenario file: figure and report."""
    Path(f"{name}.toml").write_text(text, encoding="utf-8")
    with told():
        runs.run(f"{name}.toml", {}, [], Path(), progress=False)


def script(text: str) -> None:
    """A script: what it prints, and the figures and reports that it writes."""
    with told():
        exec(compile(text, "script", "exec"), {"__name__": "__main__"})


def unrun(text: str) -> None:
    """A script that is not run."""
    del text


def item(key: str, name: str) -> None:
    """A figure or table of a paper: its claims, and carom's figure."""
    with told():
        claims, figure = carom.papers.paper(key).items[name]()
    shown = [
        [claim.what, *(f"{x:.7g}" if isinstance(x, float) else str(x) for x in (claim.paper, claim.carom))]
        + [claim.verdict, claim.note]
        for claim in claims
    ]
    Path("claims.json").write_text(json.dumps(shown), encoding="utf-8")
    if figure is not None:
        figure.savefig("figure.png", dpi=110)


def notebook(text: str) -> None:
    """A notebook: of every cell what its last line shows, as HTML."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = json.loads(text)["cells"]
    with told():
        outputs = [shown("".join(cell["source"]), names) for cell in cells if cell["cell_type"] == "code"]
    Path("outputs.json").write_text(json.dumps(outputs), encoding="utf-8")


def shown(code: str, names: dict[str, Any]) -> str:
    """Run a cell; what its last line is worth, as a notebook shows it."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is None:
        return ""
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    written = value._repr_html_() if hasattr(value, "_repr_html_") else None
    if written is not None:
        return written
    if hasattr(value, "_repr_png_"):
        return f'<img alt="figure" src="data:image/png;base64,{base64.b64encode(value._repr_png_()).decode()}">'
    return f"<pre>{html.escape(repr(value))}</pre>"


@contextlib.contextmanager
def told():
    """What is printed goes into a file; warnings are those of the text that is run."""
    with Path("output.txt").open("w", encoding="utf-8") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(file):
            yield
