"""What a report shows, as plain data: frames of the drawing, series of the plots, tables.

Arrays travel as base64; series are thinned to the extremes of each stretch of time, so that no peak is
lost.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from carom.plain import spelt
from carom.plots.contacts import MODES, forces_and_impacts, law_names, laws_in, modes_in_words
from carom.plots.overview import each_unit
from carom.reports.drawings import Draw, draw
from carom.reports.evidence import evidence, exchanged
from carom.reports.provenance import again, origin_of, plain, provenance, shortened
from carom.reports.shapes import Circles, Drawing, Spring, framed

_STRETCHES = 700
_MOST_LINES = 12
_MOST_EVENTS = 500


def payload(
    run: Any, frames: int, title: str = "", attributes: dict[str, Any] | None = None, drawing: Draw | None = None
) -> dict[str, Any]:
    """Everything the page needs; `attributes` are those of the file of the run."""
    t = run.columns["t"]
    times = np.linspace(t.min(), t.max(), min(frames, max(2, 20 * len(t))))
    picture = picture_of(run, times, drawing)
    return {
        "title": title or (origin_of(run)[0] or "carom run").replace("_", " "),
        "subtitle": subtitle(run),
        "times": packed(times),
        "time_unit": "s" if any(names_of(run)[1]) else "",
        "drawing": shapes(picture),
        "caption": picture.caption,
        "box": view_box(picture),
        "plots": [plot for plot in plots(run) if plot is not None],
        "events": events(run),
        "evidence": evidence(run),
        "provenance": provenance(run, attributes or {}),
        "again": again(run, attributes or {}),
    }


def picture_of(run: Any, times: np.ndarray, drawing: Draw | None = None) -> Drawing:
    """The drawing of a run at some times: the one given, that of the model, or the coordinates as such."""
    model, arguments = origin_of(run)
    q = at(run.columns["t"], run.columns["q"], times)
    return draw(model, q, arguments, names_of(run)[0]) if drawing is None else drawing(q, arguments)


def at(t: np.ndarray, rows: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Rows at other times, on straight lines between those stored."""
    order = slice(None, None, -1 if t[-1] < t[0] else 1)
    return np.stack([np.interp(times, t[order], column[order]) for column in rows.T], axis=1)


def packed(values: Any, kind: str = "<f8") -> str:
    """An array as base64 of little-endian floats: 64 bits for what is read off an axis, 32 for what is drawn."""
    with np.errstate(over="ignore"):
        return base64.b64encode(np.ascontiguousarray(values, kind).tobytes()).decode()


# ---- the drawing ---------------------------------------------------------------------------------------------------


def shapes(picture: Drawing) -> list[dict[str, Any]]:
    """The shapes of a drawing as plain data."""
    return [_shape(shape) for shape in picture.shapes]


def _shape(shape: Any) -> dict[str, Any]:
    points = framed(shape.points)
    plain = {"n": points.shape[1], "frames": len(points), "points": packed(points, "<f4"), "colour": shape.colour}
    if isinstance(shape, Circles):
        radius = np.broadcast_to(np.asarray(shape.radius, float), (points.shape[1],))
        shade = None if shape.shade is None else packed(shape.shade, "<f4")
        return plain | {"kind": "circles", "radius": packed(radius, "<f4"), "fill": shape.fill, "shade": shade}
    if isinstance(shape, Spring):
        return plain | {"kind": "spring", "width": shape.width, "coils": shape.coils}
    return plain | {"kind": "line", "width": shape.width, "fill": shape.fill, "dashed": shape.dashed}


def view_box(picture: Drawing) -> list[float]:
    """Left, bottom, right, top of everything drawn in any frame, with a margin."""
    low, high = np.full(2, np.inf), np.full(2, -np.inf)
    for shape in picture.shapes:
        pad = float(np.max(shape.radius)) if isinstance(shape, Circles) else 0.0
        points = framed(shape.points).reshape(-1, 2)
        points = points[np.isfinite(points).all(axis=1)]
        if len(points):
            low, high = np.minimum(low, points.min(0) - pad), np.maximum(high, points.max(0) + pad)
    if not np.isfinite(low).all():
        low, high = -np.ones(2), np.ones(2)
    margin = 0.04 * max(float((high - low).max()), 1e-300)
    return [float(x) for x in (*(low - margin), *(high + margin))]


# ---- plots ---------------------------------------------------------------------------------------------------------


def plots(run: Any) -> list[dict[str, Any] | None]:
    """Coordinates, velocities, energies, contact forces, modes, steps, residuals: whatever was recorded."""
    c = run.columns
    labels, units = names_of(run)
    found = [
        *vectors("coordinates", c["t"], c["q"], labels, units),
        space_time("velocities over place and time", c["t"], c["v"]),
        *vectors("velocities", c["t"], c["v"], labels, speeds(run, units)),
        *energies(run),
        *deviations(run),
        *(contacts(run) if "impulse" in c and c["impulse"].shape[1] else ()),
        *(vectors("multipliers", c["t"][1:], c["multiplier"][1:]) if "multiplier" in c else ()),
        lines("step size", c["t"][1:], {"h": c["h"][1:]}, scale="log"),
        lines("order", c["t"][1:], {"order": c["order"][1:]}) if "order" in c else None,
    ]
    if "residual" in c and np.any(c["residual"] > 0):
        found.append(lines("residual", c["t"][1:], {"residual": c["residual"][1:]}, scale="log"))
    return found


def contacts(run: Any) -> list[dict[str, Any]]:
    """Forces of the contact laws between impacts, impulses of the impacts, and the mode diagram."""
    forces, impacts = forces_and_impacts(run)
    found = [lines("contact forces", np.zeros(0), dict(list(forces.items())[:_MOST_LINES]))]
    if impacts:
        stems = {
            name: (np.repeat(t, 3), np.stack([0 * P, P, 0 * P], axis=1).ravel())
            for name, (t, P) in list(impacts.items())[:_MOST_LINES]
        }
        found[0]["title"] = "contact forces between impacts"
        found.append(lines("impulses of impacts", np.zeros(0), stems))
    if "mode" in run.columns:
        laws, rows = laws_in(run), run.columns["mode"].reshape(len(run.columns["t"]), -1)
        told = modes_in_words(laws, rows)
        of_next_step = np.concatenate([told[1:], told[-1:]])
        names = None if laws is None else law_names(laws, rows.shape[1])
        found.append(modes(run.columns["t"], of_next_step, names))
    return found


def names_of(run: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels of the coordinates and their units; nothing where they were not given."""
    return run.labels, each_unit(run.units, run.columns["q"].shape[1])


def speeds(run: Any, units: tuple[str, ...]) -> tuple[str, ...]:
    """Units of the velocities, where these are the rates of the coordinates."""
    system = getattr(run, "system", None)
    same = run.columns["v"].shape == run.columns["q"].shape and (system is None or system.rates)
    return tuple(f"{unit}/s" if unit else "" for unit in units) if same else ()


def vectors(
    title: str, t: np.ndarray, rows: np.ndarray, labels: tuple[str, ...] = (), units: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """A plot for each unit with a line per entry; of many, a dozen evenly spaced ones."""
    rows = rows.reshape(len(rows), -1)
    n = rows.shape[1]
    names = distinct(labels) if len(labels) == n else [str(i + 1) for i in range(n)]
    units = units if len(units) == n else ("",) * n
    groups = {unit: [i for i in range(n) if units[i] == unit] for unit in dict.fromkeys(units)}
    return [lines(title, t, {names[i]: rows[:, i] for i in evenly(group)}, unit=unit) for unit, group in groups.items()]


def evenly(entries: list[int]) -> list[int]:
    """At most a dozen of them."""
    return [entries[i] for i in np.unique(np.linspace(0, len(entries) - 1, _MOST_LINES).round().astype(int))]


def distinct(labels: tuple[str, ...]) -> list[str]:
    """Labels of which those that occur twice carry the number of their coordinate."""
    return [f"{name} ({i + 1})" if labels.count(name) > 1 else name for i, name in enumerate(labels)]


def lines(
    title: str,
    t: np.ndarray,
    series: dict[str, Any],
    scale: str = "linear",
    unit: str = "",
    hues: tuple[str, ...] = (),
) -> dict[str, Any]:
    """A plot of named series over time; a series is its values, or a pair of its own times and its values."""
    plain = []
    for name, given in series.items():
        times, values = given if isinstance(given, tuple) else (t, given)
        kept = extremes(values)
        plain.append({"name": name, "t": packed(times[kept]), "y": packed(values[kept])})
    return {"kind": "lines", "title": title, "series": plain, "scale": scale, "unit": unit, "hues": list(hues)}


def extremes(values: np.ndarray) -> np.ndarray:
    """Rows with the smallest and the largest finite value of every stretch, the first and the last."""
    n = len(values)
    if n <= 2 * _STRETCHES:
        return np.arange(n)
    size = -(-n // _STRETCHES)
    padded = np.pad(values, (0, -n % size), mode="edge").reshape(-1, size)
    start = size * np.arange(len(padded))
    lowest, highest = (np.where(np.isfinite(padded), padded, end) for end in (np.inf, -np.inf))
    found = np.concatenate([[0, n - 1], start + lowest.argmin(1), start + highest.argmax(1)])
    return np.unique(np.minimum(found, n - 1))


def energies(run: Any) -> list[dict[str, Any]]:
    """Energies, their change against the start, and what of it contacts do not explain, if the system is known."""
    if not hasattr(run, "account"):
        return []
    account, t = run.account, run.columns["t"]
    parts = {"kinetic": account.kinetic, "potential": account.potential, "total": account.energy}
    size = exchanged(account)
    changes = {"change of energy": (account.energy - account.energy[0]) / size}
    found = [lines("energies", t, parts, hues=("blue", "orange", "ink"))]
    if "contact work" in account.extra and np.all(np.diff(run.columns["k"]) == 1):
        work = np.cumsum(account.extra["contact work"].reshape(len(t), -1).sum(1)) / size
        rest = {"change without the work of contacts": changes["change of energy"] - work}
        found += [lines(f"energy not explained by contacts, / {size:.3g}", t, rest, hues=("ink",))]
        changes["work of contacts"] = work
    found.insert(1, lines(f"(E - E0) / {size:.3g}", t, changes, hues=("ink", "orange")))
    return found


def deviations(run: Any) -> list[dict[str, Any]]:
    """Penetration of contacts and residual of constraints over time, where there is any."""
    found = getattr(getattr(run, "account", None), "extra", {})
    t, plots = run.columns["t"], []
    for name, what in (("penetration", "contact"), ("drift", "constraint")):
        rows = np.abs(found.get(name, np.zeros(len(t)))).reshape(len(t), -1)
        if np.any(rows > 0):
            series = {f"{what} {i}": rows[:, i] for i in evenly(list(range(rows.shape[1])))}
            plots.append(lines(f"{name} of the {what}s", t, series, scale="log"))
    return plots


def space_time(title: str, t: np.ndarray, rows: np.ndarray) -> dict[str, Any] | None:
    """A picture of many coordinates over time: place upward, time to the right."""
    if rows.shape[1] <= _MOST_LINES:
        return None
    span = [float(t.min()), float(t.max())]
    columns = np.linspace(span[0], span[1], 480)
    kept = np.unique(np.linspace(0, rows.shape[1] - 1, min(rows.shape[1], 160)).round().astype(int))
    image = at(t, rows[:, kept], columns).T
    limit = float(np.abs(image).max()) or 1.0
    bytes_ = np.round(127 + 127 * image / limit).astype(np.uint8)
    plain = {"rows": len(kept), "columns": 480, "limit": limit, "of": rows.shape[1]}
    return plain | {
        "kind": "image",
        "title": title,
        "pixels": base64.b64encode(bytes_.tobytes()).decode(),
        "span": span,
    }


def modes(t: np.ndarray, rows: np.ndarray, names: list[str] | None = None) -> dict[str, Any]:
    """The mode diagram of Studer2008 Fig. 13: per contact law, stretches of equal mode as [from, to, mode]."""
    rows = rows.reshape(len(rows), -1)
    strips = []
    for values in rows.T:
        changes = np.flatnonzero(np.diff(values)) + 1
        starts, ends = np.append(0, changes), np.append(changes, len(t) - 1)
        strips.append([[float(t[a]), float(t[b]), int(values[a])] for a, b in zip(starts, ends)])
    known = MODES if names else {0: "closed or sticks", 1: "open or slips", -1: "slips −"}
    words = {str(mode): word for mode, word in known.items()}
    names = names or law_names(None, len(strips))
    return {"kind": "modes", "title": "modes of the contact laws", "strips": strips, "names": names, "words": words}


# ---- tables --------------------------------------------------------------------------------------------------------


def events(run: Any) -> dict[str, Any] | None:
    """The switching points as a table, if any were recorded."""
    table = getattr(run, "events", None)
    if table is None or not len(table):
        return None
    names = list(table.dtype.names or ("event",))
    rows = [[shown(value) for value in np.atleast_1d(row).tolist()[0]] for row in table[:_MOST_EVENTS]]
    return {"names": names, "rows": rows, "count": len(table)}


def shown(value: Any) -> str:
    """A number with six digits, or the text."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def subtitle(run: Any) -> str:
    """Method, rows and time in one line."""
    t, q = run.columns["t"], run.columns["q"]
    method = shortened(spelt(plain(run, "method")), 60)
    return f"{method}, {len(t)} rows, {many(q.shape[1], 'coordinate')}, t = {t[0]:.6g} to {t[-1]:.6g}"


def many(n: int, what: str) -> str:
    """A number of things in words."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
