"""The report of a sweep: one HTML file with a figure of what was kept, the cells that failed, and how to repeat one."""

from __future__ import annotations

import base64
import html
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from carom.plots.sweeps import overview

_MOST_FAILURES = 20
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>body{{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;
color:#1f2328;background:#fff}}
img{{max-width:100%}}td,th{{text-align:left;padding:.15rem .8rem .15rem 0;vertical-align:top}}</style>
<main><h1>{title}</h1><p>{summary}</p>
<img alt="what was kept, over the parameters" src="data:image/png;base64,{picture}">
<h2>Question</h2><table>{facts}</table>{failures}</main></html>"""


def sweep_report(data: Any, path: Any, title: str = "sweep") -> Path:
    """Write the report of a dataset of `carom.sweep`.

    Example:
        >>> sweep_report(carom.load_sweep("sweep.zarr"), "sweep.html")
    """
    picture = BytesIO()
    overview(data).savefig(picture, format="png", dpi=130)
    status = data.status.values.ravel()
    ran, failed = int((status == 0).sum()), int((status != 0).sum())
    ranges = [f"{name} from {x.min():.6g} to {x.max():.6g} ({x.size})" for name, x in _parameters(data).items()]
    page = _PAGE.format(
        title=html.escape(title),
        summary=html.escape(f"{ran} cells ran to their end, {failed} did not. " + "; ".join(ranges) + "."),
        picture=base64.b64encode(picture.getvalue()).decode(),
        facts="".join(f"<tr><th scope=row>{html.escape(k)}<td>{html.escape(str(v))}" for k, v in data.attrs.items()),
        failures=_failures(data) if failed else "",
    )
    target = Path(path)
    partial = target.with_name(f"part.{target.name}")
    partial.write_text(page, encoding="utf-8")
    return partial.replace(target)


def _parameters(data: Any) -> dict[str, np.ndarray]:
    return {name: data[name].values for name in data.coords if set(data[name].dims) <= set(data.status.dims)}


def _failures(data: Any) -> str:
    """The first cells that failed, with the numbers that repeat them."""
    rows = []
    for where in np.argwhere(data.status.values != 0)[:_MOST_FAILURES]:
        cell = data.isel(dict(zip(data.status.dims, where.tolist())))
        numbers = ", ".join(f"{name}={float(cell[name]):.12g}" for name in _parameters(data))
        rows.append(f"<tr><td><code>build({html.escape(numbers)})</code><td>{html.escape(str(cell.message.item()))}")
    return f"<h2>Cells that failed</h2><table>{''.join(rows)}</table>"
