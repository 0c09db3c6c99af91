"""The report of a sweep: linked diagrams in one HTML file, in which a click on a cell shows its numbers and its run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from carom.files.resuming import load
from carom.reports.data import payload
from carom.reports.page import checked, filled, known, page, write

_NUMBERS = 400_000  # in all diagrams together
_OF_A_RUN = 40_000  # numbers of the curves of a stored run
_FRAMES = 300
_MOST_DIAGRAMS = 8
_SAMPLES = 200  # of a cell that are drawn


def sweep_report(data: Any, path: Any, title: str = "sweep") -> Path:
    """Write the report of a dataset of `carom.sweep`, `carom.bifurcation`, `carom.basins` or `carom.load_sweep`.

    Diagrams are linked: a cell chosen in one is marked in all, with its numbers and the lines that run it again; a cell
    whose trajectory is stored plays. Of large sweeps every second, third, ... cell along each dimension is shown.

    Example:
        >>> sweep_report(carom.load_sweep("sweep.zarr"), "sweep.html")
    """
    target = checked(path, _FRAMES, _OF_A_RUN)
    return write(filled("sweep.html", _payload(data, title)), target)


def _payload(data: Any, title: str) -> dict[str, Any]:
    """All that the page shows, as plain data."""
    stride, whole = _stride(data), data
    dims = data.status.dims
    data = data.isel({dim: slice(None, None, stride) for dim in dims})
    ran = int((whole.status == 0).sum())
    parameters = _parameters(data)
    ranges = [_range(p) for p in parameters if _is_axis(p)]
    told = f"{ran} cells ran to their end, {whole.status.size - ran} did not; " + ", ".join(ranges) + "."
    thinned = "" if stride == 1 else f" Every {stride}. cell along each dimension is shown."
    messages = {i: text for i, text in enumerate(data.message.values.ravel().tolist()) if text}
    ends, steps = (_plain(data[name].values) if name in data else None for name in ("end_time", "step_size"))
    axes = [p for p in parameters if _is_axis(p) and p["dim"] in range(len(dims))]
    groups = next((p for p in parameters if p["name"] == "direction"), None)
    runs = _runs(data)
    first = next(iter(runs), int(np.argmax(data.status.values.ravel() == 0)))
    return {
        "title": title,
        "summary": told + thinned,
        "hint": "Click a diagram or use the arrow keys: the cell is marked in all of them, and shown below.",
        "sizes": list(data.status.shape),
        "parameters": parameters,
        "axes": axes[: 2 if len(dims) == 2 and not groups else 1],
        "groups": groups,
        "diagrams": [_diagram(data, name) for name in _shown(data)],
        "messages": messages,
        "runs": runs,
        "numbered": stride == 1,
        "first": first,
        "ends": ends,
        "steps": steps,
        "facts": [[name, str(value)] for name, value in data.attrs.items()],
        **{name: str(data.attrs.get(name, "")) for name in ("given", "method", "stepping")},
        "build": _called(str(data.attrs.get("build", ""))),
    }


def _called(build: str) -> str:
    """A function as the lines of a cell call it: one inside others by its own name, one without name as `build`."""
    own = build.rpartition("<locals>.")[2]
    return own if all(part.isidentifier() for part in own.split(".")) else "build"


def _stride(data: Any) -> int:
    """Every how many cells along each dimension are shown."""
    numbers = sum(min(_SAMPLES, data[name].size // data.status.size) * data.status.size for name in _shown(data))
    return max(1, int(np.ceil((numbers / _NUMBERS) ** (1 / data.status.ndim))))


def _range(parameter: dict[str, Any]) -> str:
    known = [x for x in parameter["values"] if x is not None]
    return f"{parameter['name']} from {min(known, default=np.nan):.6g} to {max(known, default=np.nan):.6g}"


def _is_axis(parameter: dict[str, Any]) -> bool:
    return parameter["name"] != "direction" and not isinstance(parameter["values"][0], str)


def _parameters(data: Any) -> list[dict[str, Any]]:
    """Parameters and the dimension of the cells along which each changes."""
    dims, found = data.status.dims, []
    for name in data.coords:
        if len(data[name].dims) == 1 and data[name].dims[0] in dims:
            values = data[name].values
            plain = _plain(values) if values.dtype.kind == "f" else values.tolist()
            found.append({"name": str(name), "dim": dims.index(data[name].dims[0]), "values": plain})
    return sorted(found, key=lambda p: p["dim"])


def _shown(data: Any) -> list[str]:
    """Numbers that have a diagram."""
    hidden = ("status", "steps", "end_time", "step_size", "message", "trajectory", "fraction")
    own = [str(name) for name, x in data.data_vars.items() if x.dtype.kind in "fiub" and not str(name).endswith("_t")]
    return [name for name in own if name not in hidden and set(data.status.dims) <= set(data[name].dims)][
        :_MOST_DIAGRAMS
    ] or ["steps"]


def _diagram(data: Any, name: str) -> dict[str, Any]:
    """The numbers of all cells, of vectors the first coordinate."""
    values = data[name].transpose(*data.status.dims, ...)
    called = name
    if values.dims[-1] in ("coordinate", "velocity_number"):
        called = f"{name} of {values[values.dims[-1]].values[0]}" if values.dims[-1] in data.coords else f"{name}[0]"
        values = values.isel({values.dims[-1]: 0})
    flat = values.values.reshape(data.status.size, -1)[:, -_SAMPLES:].astype(float)
    plain = [None if x is None else float(f"{x:.7g}") for x in _plain(flat)]
    return {"name": called, "per": flat.shape[1], "values": plain, "labels": name == "label"}


def _plain(values: np.ndarray) -> list[float | None]:
    """Numbers, and None where a cell has none: JSON knows no NaN."""
    return [x if np.isfinite(x) else None for x in values.ravel().tolist()]


def _runs(data: Any) -> dict[int, str]:
    """Reports of the stored runs, by cell."""
    files = data.trajectory.values.ravel().tolist() if "trajectory" in data else []
    found = {}
    for cell, file in enumerate(files):
        if file and Path(file).exists():
            run = known(load(file))
            found[cell] = page(payload(run, _FRAMES, f"cell {cell}", run.facts, None, _OF_A_RUN))
    return found
