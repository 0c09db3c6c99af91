"""What a report shows, as plain data: frames of the drawing, plots, tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.plain import spelt
from carom.plots.contacts import laws_in
from carom.reports.curves import at, event_times, length_unit, names_of, plots, thinned
from carom.reports.drawings import Draw, draw, register
from carom.reports.drawings.assembled import assembled
from carom.reports.drawings.contacts import with_contacts
from carom.reports.evidence import evidence
from carom.reports.packing import single
from carom.reports.planes import kept_points
from carom.reports.provenance import again, origin_of, plain, provenance, shortened
from carom.reports.shapes import Arrows, Circles, Drawing, Solid, Spring, framed, places

NUMBERS = 400_000
_MOST_EVENTS = 500
_MOST_FRAMES_AT_EVENTS = 300


def payload(
    run: Any,
    frames: int,
    title: str = "",
    attributes: dict[str, Any] | None = None,
    drawing: Draw | None = None,
    numbers: int = NUMBERS,
) -> dict[str, Any]:
    """Everything the page needs; `attributes` are those of the file of the run."""
    times = frame_times(run, frames)
    picture = picture_of(run, times, drawing)
    found = plots(run, origin_of(run)[0]) + kept_points(run)
    left = thinned(found, numbers, event_times(run))
    return stage(picture, times) | {
        "title": title or (origin_of(run)[0] or "carom run").replace("_", " "),
        "subtitle": subtitle(run),
        "time_unit": run.time_unit,
        "length_unit": length_unit(run),
        "plots": found,
        "thinned": told_thinning(left, len(run.columns["t"])),
        "events": events(run),
        "evidence": evidence(run),
        "provenance": provenance(run, attributes or {}),
        "again": again(run, attributes or {}),
    }


def told_thinning(left: int, rows: int) -> str:
    """What curves leave out, and how to get more."""
    kept = f"Curves hold some {left} of {rows} rows each, with every extreme and what is near events"
    return f"{kept}; carom.report(..., numbers=...) keeps more." if left else ""


def stage(picture: Drawing, times: np.ndarray) -> dict[str, Any]:
    """The moving picture as plain data."""
    return {
        "times": times,
        "drawing": [shape_data(shape) for shape in picture.shapes],
        "caption": picture.caption,
        "in_space": picture.in_space,
        "to_scale": picture.to_scale,
        "box": view_box(picture),
    }


def frame_times(run: Any, frames: int) -> np.ndarray:
    """Times of the frames: evenly spaced, and those of the events among them."""
    t = run.columns["t"]
    even = np.linspace(t.min(), t.max(), min(frames, max(2, 20 * len(t))))
    return np.union1d(even, event_times(run)[:_MOST_FRAMES_AT_EVENTS])


def picture_of(run: Any, times: np.ndarray, drawing: Draw | None = None) -> Drawing:
    """The drawing of a run at some times: the one given, that of the model or mechanism, or the coordinates as such."""
    model, arguments = origin_of(run)
    c = run.columns
    finite = np.isfinite(c["q"]).all(axis=1)
    q = at(c["t"][finite], c["q"][finite], times) if finite.any() else np.zeros((len(times), c["q"].shape[1]))
    arguments = arguments | {"t": times}
    if drawing is not None:
        picture = drawing(q, arguments)
    else:
        picture = None if model in register or not hasattr(run, "system") else assembled(run.system, q)
        picture = picture or draw(model, q, arguments, names_of(run)[0])
    return with_contacts(run, picture, times, q)


# ---- the drawing ---------------------------------------------------------------------------------------------------


def shape_data(shape: Any) -> dict[str, Any]:
    """A shape of a drawing as plain data."""
    if isinstance(shape, Solid):
        return _solid(shape)
    points = framed(shape.points)
    frames, n, dim = points.shape
    plain = {"n": n, "dim": dim, "frames": frames, "points": single(points), "colour": shape.colour}
    if isinstance(shape, Circles):
        radius = np.broadcast_to(np.asarray(shape.radius, float), (n,))
        fades = {name: None if a is None else single(a) for name, a in (("shade", shape.shade), ("alpha", shape.alpha))}
        return plain | fades | {"kind": "circles", "radius": single(radius), "fill": shape.fill, "held": shape.held}
    if isinstance(shape, Spring):
        return plain | {"kind": "spring", "width": shape.width, "coils": shape.coils}
    if isinstance(shape, Arrows):
        tips = single(points + framed(shape.vectors))
        return plain | {"kind": "arrows", "width": shape.width, "tips": tips}
    return plain | {
        "kind": "line",
        "width": shape.width,
        "fill": shape.fill,
        "dashed": shape.dashed,
        "held": shape.held,
    }


def _solid(shape: Solid) -> dict[str, Any]:
    position, quaternion = np.atleast_2d(shape.position), np.atleast_2d(shape.quaternion)
    frames = max(len(position), len(quaternion))
    poses = np.concatenate([np.broadcast_to(a, (frames, a.shape[1])) for a in (position, quaternion)], axis=1)
    faces = [list(map(int, face)) for face in shape.faces]
    plain = {"kind": "solid", "colour": shape.colour, "corners": single(shape.corners), "faces": faces}
    return plain | {"frames": frames, "poses": single(poses)}


def view_box(picture: Drawing) -> list[float]:
    """Least and largest x, y (and z) of everything drawn in any frame, with a margin: low ends, then high ends."""
    dim = 3 if picture.in_space else 2
    low, high = np.full(dim, np.inf), np.full(dim, -np.inf)
    for shape in picture.shapes:
        pad = float(np.max(shape.radius)) if isinstance(shape, Circles) else 0.0
        points = places(shape)
        points = points[np.isfinite(points).all(axis=1)]
        if len(points):
            low, high = np.minimum(low, points.min(0) - pad), np.maximum(high, points.max(0) + pad)
    if not (np.isfinite(low) & np.isfinite(high)).all():
        low, high = -np.ones(dim), np.ones(dim)
    margin = 0.04 * max(float((high - low).max()), 1e-300)
    return [float(x) for x in (*(low - margin), *(high + margin))]


# ---- tables --------------------------------------------------------------------------------------------------------


def events(run: Any) -> dict[str, Any] | None:
    """The switching points as a table, if any were recorded."""
    table = getattr(run, "events", None)
    if table is None or not len(table):
        return None
    names = list(table.dtype.names or ("event",))
    laws = laws_in(run)
    called = (lambda i: laws.called(i) if i < laws.contacts else str(i)) if laws is not None else str
    rows = [
        [called(value) if name == "contact" else shown(value) for name, value in zip(names, row.tolist())]
        for row in table[:_MOST_EVENTS]
    ]
    return {"names": names, "rows": rows, "count": len(table), "times": np.asarray(table["time"], float)}


def shown(value: Any) -> str:
    """A number with six digits, or the text."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def subtitle(run: Any) -> str:
    """Method, rows and time in one line."""
    t, q = run.columns["t"], run.columns["q"]
    method = shortened(spelt(plain(run, "method")), 60)
    return f"{method}, {many(len(t), 'row')}, {many(q.shape[1], 'coordinate')}, t = {t[0]:.6g} to {t[-1]:.6g}"


def many(n: int, what: str) -> str:
    """A number of things in words."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
