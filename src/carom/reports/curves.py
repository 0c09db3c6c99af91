"""The plots of a report as plain data: coordinates, energies, contacts, and how the run went."""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.plots.contacts import MODES, forces_and_impacts, law_names, laws_in, modes_in_words
from carom.plots.overview import each_unit
from carom.reports.evidence import exchanged

_MOST_LINES = 12
_NEAR = 20  # rows on both sides of an event that are never left out
_COLUMNS = 1200  # of a picture over place and time
_PLACES = 200
#: Models whose coordinates stand in a row, so that differences of neighbours are strains.
_ROWS_OF_BODIES = ("granular_chain", "dimer_chain", "bead_chain", "newtons_cradle", "trimer", "slow_fast_chain")
Plain = dict[str, Any]


def plots(run: Any, model: str | None = None) -> list[Plain]:
    """Whatever was recorded, by group: motion, energy, contact, and how the run went."""
    c, (labels, units) = run.columns, names_of(run)
    found = [
        *vectors("coordinates", c["t"], c["q"], labels, units),
        *vectors("velocities", c["t"], c["v"], speed_labels(labels), speeds(run, units)),
        *pictures(run, model),
        *energies(run),
        *(contacts(run) if touching(run) else ()),
        *(vectors("multipliers", c["t"][1:], c["multiplier"][1:]) if "multiplier" in c else ()),
    ]
    return found + [plot | {"group": "course"} for plot in (*deviations(run), *course(run))]


def touching(run: Any) -> bool:
    """Whether impulses of contact laws were recorded."""
    return "impulse" in run.columns and run.columns["impulse"].shape[1] > 0


def course(run: Any) -> list[Plain]:
    """How the run went: sizes of steps, estimated errors, orders, residuals, work, times between events."""
    c, t = run.columns, run.columns["t"][1:]
    found = [lines("step size", t, {"h": c["h"][1:]}, scale="log", unit=run.time_unit)]
    for name, title in (("error", "estimated error / tolerance"), ("residual", "residual")):
        if name in c and np.any(c[name] > 0):
            found.append(lines(title, t, {title: c[name][1:]}, scale="log"))
    counts = {name: c[name][1:] for name in ("evaluations", "iterations") if name in c and np.any(c[name] > 0)}
    found += [lines("work of each step", t, counts)] if counts else []
    found += [lines("order", t, {"order": c["order"][1:]})] if "order" in c else []
    when = event_times(run)
    if len(when) > 3:
        gaps = {"time since the event before": (when[1:], np.diff(when))}
        found.append(lines("time between events", t, gaps, scale="log", unit=run.time_unit))
    return found


def event_times(run: Any) -> np.ndarray:
    """The distinct times of the events, rising."""
    table = getattr(run, "events", None)
    return np.zeros(0) if table is None or not len(table) else np.unique(np.asarray(table["time"], float))


# ---- names and units -----------------------------------------------------------------------------------------------


def names_of(run: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels of the coordinates and their units; nothing where they were not given."""
    return run.labels, each_unit(run.units, run.columns["q"].shape[1])


def length_unit(run: Any) -> str:
    """Metres, where coordinates are given in metres, radians and plain numbers."""
    units = set(names_of(run)[1])
    return "m" if units and units <= {"m", "rad", "1"} else ""


def si(run: Any, unit: str) -> str:
    """The unit, where lengths are in metres and times in seconds."""
    return unit if length_unit(run) and run.time_unit == "s" else ""


def speeds(run: Any, units: tuple[str, ...]) -> tuple[str, ...]:
    """Units of the velocities, where these are the rates of the coordinates or those of bodies in space."""
    if are_rates(run):
        return tuple(f"{unit}/{run.time_unit}" if unit else "" for unit in units)
    names = speed_labels(run.labels)
    in_space = names != run.labels and bool(si(run, "m"))
    return tuple("rad/s" if ".spin " in name else "m/s" for name in names) if in_space else ()


def speed_labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the velocities: those of the coordinates, of quaternions p0 to p3 the three angular velocities."""
    spins = {"p1": "spin x", "p2": "spin y", "p3": "spin z"}
    parted = [label.rpartition(".") for label in labels]
    if not any(body and axis == "p0" for body, _, axis in parted):
        return labels
    return tuple(f"{body}.{spins.get(axis, axis)}" for body, _, axis in parted if axis != "p0")


def are_rates(run: Any) -> bool:
    """Whether velocities are the rates of the coordinates, as far as is known."""
    system = getattr(run, "system", None)
    return run.columns["v"].shape == run.columns["q"].shape and (system is None or bool(system.rates))


def distinct(labels: tuple[str, ...]) -> list[str]:
    """Labels of which those that occur twice carry the number of their coordinate."""
    return [f"{name} ({i + 1})" if labels.count(name) > 1 else name for i, name in enumerate(labels)]


def evenly(entries: list[int], most: int = _MOST_LINES) -> list[int]:
    """At most a dozen of them."""
    return [entries[i] for i in np.unique(np.linspace(0, len(entries) - 1, most).round().astype(int))]


def telling(rows: np.ndarray, entries: list[int]) -> list[int]:
    """A dozen of many entries: evenly spaced ones, or, where most of these do not move, those that move most."""
    some, moves = evenly(entries), np.ptp(np.nan_to_num(rows), axis=0)
    if 2 * np.count_nonzero(moves[some]) >= min(len(some), np.count_nonzero(moves[entries])):
        return some
    return sorted(sorted(entries, key=lambda i: -moves[i])[: len(some)])


# ---- lines ---------------------------------------------------------------------------------------------------------


def vectors(
    title: str, t: np.ndarray, rows: np.ndarray, labels: tuple[str, ...] = (), units: tuple[str, ...] = ()
) -> list[Plain]:
    """A plot for each unit with a line per entry; of many, a dozen."""
    rows = rows.reshape(len(rows), -1)
    n = rows.shape[1]
    names = distinct(labels) if len(labels) == n else [str(i + 1) for i in range(n)]
    units = units if len(units) == n else ("",) * n
    groups = {unit: [i for i in range(n) if units[i] == unit] for unit in dict.fromkeys(units)}
    return [
        lines(title, t, {names[i]: rows[:, i] for i in telling(rows, group)}, unit=unit)
        for unit, group in groups.items()
    ]


def lines(
    title: str,
    t: np.ndarray,
    series: dict[str, Any],
    scale: str = "linear",
    unit: str = "",
    hues: tuple[str, ...] = (),
) -> Plain:
    """A plot of named series over time; a series is its values, or a pair of its own times and its values."""
    each = [(name, given if isinstance(given, tuple) else (t, given)) for name, given in series.items()]
    found = [{"name": name, "t": rising(t, t), "y": rising(t, y)} for name, (t, y) in each]
    return {"kind": "lines", "title": title, "series": found, "scale": scale, "unit": unit, "hues": list(hues)}


def rising(t: np.ndarray, values: Any) -> np.ndarray:
    """Values in the order of rising times: those of a run that goes backward are turned round."""
    return np.asarray(values, float)[:: -1 if len(t) > 1 and t[-1] < t[0] else 1]


def energies(run: Any) -> list[Plain]:
    """Energies, their change against the start, and what of it contacts do not explain, if the system is known."""
    if not hasattr(run, "account"):
        return []
    account, t = run.account, run.columns["t"]
    parts = {"kinetic": account.kinetic, "potential": account.potential, "total": account.energy}
    size = exchanged(account)
    changes = {"change of energy": (account.energy - account.energy[0]) / size}
    found = [lines("energies", t, parts, unit=si(run, "J"), hues=("blue", "orange", "ink"))]
    if "contact work" in account.extra and np.all(np.diff(run.columns["k"]) == 1):
        work = np.cumsum(account.extra["contact work"].reshape(len(t), -1).sum(1)) / size
        rest = {"change without the work of contacts": changes["change of energy"] - work}
        found += [lines(f"energy not explained by contacts, / {size:.3g}", t, rest, hues=("ink",))]
        changes["work of contacts"] = work
    found.insert(1, lines(f"(E - E0) / {size:.3g}", t, changes, hues=("ink", "orange")))
    return found


def deviations(run: Any) -> list[Plain]:
    """Penetration of contacts and residual of constraints over time, where there is any."""
    found = getattr(getattr(run, "account", None), "extra", {})
    t, plots = run.columns["t"], []
    for name, what in (("penetration", "contact"), ("drift", "constraint")):
        rows = np.abs(found.get(name, np.zeros(len(t)))).reshape(len(t), -1)
        if np.any(rows > 0):
            names = law_names(laws_in(run), rows.shape[1]) if what == "contact" else []
            told = names if len(names) == rows.shape[1] else [f"{what} {i}" for i in range(rows.shape[1])]
            series = {told[i]: rows[:, i] for i in evenly(list(range(rows.shape[1])))}
            plots.append(lines(f"{name} of the {what}s", t, series, scale="log"))
    return plots


def thinned(found: list[Plain], numbers: int, events: np.ndarray) -> int:
    """Leave so many numbers in all lines of plots together, in place; returns how many rows of a line are left, or 0.

    The extremes of every stretch of time stay, and what is near the first thousand events.
    """
    series = [line for plot in found if plot["kind"] == "lines" for line in plot["series"]]
    if sum(len(line["y"]) for line in series) <= numbers:
        return 0
    most = max(numbers // len(series), 400)
    for line in series:
        kept = extremes(line["y"], most // 2)
        if len(kept) < len(line["y"]) and len(events):
            at = np.searchsorted(line["t"], events[:1000])[:, None] + np.arange(-_NEAR, _NEAR)
            kept = np.union1d(kept, np.clip(at, 0, len(line["y"]) - 1))
        line["t"], line["y"] = line["t"][kept], line["y"][kept]
    return most


def extremes(values: np.ndarray, stretches: int = 700) -> np.ndarray:
    """Rows with the smallest and the largest finite value of every stretch, the first and the last."""
    n = len(values)
    if n <= 2 * stretches:
        return np.arange(n)
    size = -(-n // stretches)
    padded = np.pad(values, (0, -n % size), mode="edge").reshape(-1, size)
    start = size * np.arange(len(padded))
    lowest, highest = (np.where(np.isfinite(padded), padded, end) for end in (np.inf, -np.inf))
    found = np.concatenate([[0, n - 1], start + lowest.argmin(1), start + highest.argmax(1)])
    return np.unique(np.minimum(found, n - 1))


# ---- contacts ------------------------------------------------------------------------------------------------------


def contacts(run: Any) -> list[Plain]:
    """Forces of the contact laws between impacts, impulses of the impacts, their return map, and the mode diagram."""
    forces, impacts = forces_and_impacts(run)
    found = [lines("contact forces", np.zeros(0), dict(list(forces.items())[:_MOST_LINES]), unit=si(run, "N"))]
    if impacts:
        stems = {
            name: (np.repeat(t, 3), np.stack([0 * P, P, 0 * P], axis=1).ravel())
            for name, (t, P) in list(impacts.items())[:_MOST_LINES]
        }
        found[0]["title"] = "contact forces between impacts"
        found.append(lines("impulses of impacts", np.zeros(0), stems, unit=si(run, "N s")))
        maps = {name: (P[:-1], P[1:], t[1:]) for name, (t, P) in impacts.items() if len(P) > 3}
        found += [points("impulse of an impact over the one before", maps, unit=si(run, "N s"))] if maps else []
    if "mode" in run.columns:
        laws, rows = laws_in(run), run.columns["mode"].reshape(len(run.columns["t"]), -1)
        told = modes_in_words(laws, rows)
        of_next_step = np.concatenate([told[1:], told[-1:]])
        names = None if laws is None else law_names(laws, rows.shape[1])
        found.append(modes(run.columns["t"], of_next_step, names))
    return found


def points(title: str, series: dict[str, Any], unit: str = "", axes: tuple[str, str] = ("before", "after")) -> Plain:
    """Points in a plane: names with pairs of x and y, and the times at which they lie."""
    found = [{"name": name, "x": x, "y": y, "t": t} for name, (x, y, t) in list(series.items())[:_MOST_LINES]]
    return {"kind": "points", "title": title, "series": found, "unit": unit, "axes": list(axes), "group": "planes"}


def modes(t: np.ndarray, rows: np.ndarray, names: list[str] | None = None) -> Plain:
    """The mode diagram of Studer2008 Fig. 13: per contact law, stretches of equal mode as [from, to, mode]."""
    t, rows = rising(t, t), rising(t, rows.reshape(len(rows), -1))
    strips = []
    for values in rows.T:
        changes = np.flatnonzero(np.diff(values)) + 1
        starts, ends = np.append(0, changes), np.append(changes, len(t) - 1)
        strips.append([[float(t[a]), float(t[b]), int(values[a])] for a, b in zip(starts, ends)])
    known = MODES if names else {0: "closed or sticks", 1: "open or slips", -1: "slips −"}
    words = {str(mode): word for mode, word in known.items()}
    names = names or law_names(None, len(strips))
    return {"kind": "modes", "title": "modes of the contact laws", "strips": strips, "names": names, "words": words}


# ---- place and time ------------------------------------------------------------------------------------------------


def _in_a_plane(system: Any) -> bool:
    """Whether bodies have places in the plane or in space: they do not stand in a row."""
    return system.is_listed or any(getattr(part, "dimension", 1) > 1 for part in system.potential.values())


def pictures(run: Any, model: str | None) -> list[Plain]:
    """Displacements, velocities, strains and contact forces over place and time, where bodies stand in a row."""
    c, system = run.columns, getattr(run, "system", None)
    scattered = any("." in label for label in run.labels) or (system is not None and _in_a_plane(system))
    if c["q"].shape[1] <= _MOST_LINES or scattered:
        return []
    unit = names_of(run)[1][0] if names_of(run)[1] else ""
    found = [
        space_time("displacements", c["t"], c["q"], unit),
        space_time("velocities", c["t"], c["v"], f"{unit}/{run.time_unit}" if unit else ""),
    ]
    if model in _ROWS_OF_BODIES:
        found.append(space_time("compression of neighbours", c["t"], c["q"][:, :-1] - c["q"][:, 1:], unit))
    if touching(run) and c["impulse"].shape[1] > _MOST_LINES:
        force = c["impulse"][1:] / c["h"][1:, None]
        found.append(space_time("contact forces", c["t"][1:], force, si(run, "N")))
    return found


def space_time(title: str, t: np.ndarray, rows: np.ndarray, unit: str = "") -> Plain:
    """A picture of many numbers over time: place upward, time to the right."""
    span = [float(t.min()), float(t.max())]
    columns = np.linspace(span[0], span[1], min(_COLUMNS, max(len(t), 2)))
    kept = np.array(evenly(list(range(rows.shape[1])), min(rows.shape[1], _PLACES)))
    image = np.nan_to_num(at(t, rows[:, kept], columns).T, nan=0.0, posinf=0.0, neginf=0.0)
    limit = float(np.abs(image).max()) or 1.0
    pixels = np.round(127 + 127 * image / limit).astype(np.uint8)
    return {
        "kind": "image",
        "title": f"{title} over place and time",
        "unit": unit,
        "pixels": pixels,
        "rows": len(kept),
        "columns": len(columns),
        "limit": limit,
        "of": rows.shape[1],
        "span": span,
    }


def at(t: np.ndarray, rows: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Rows at other times, on straight lines between those stored."""
    order = slice(None, None, -1 if t[-1] < t[0] else 1)
    return np.stack([np.interp(times, t[order], column[order]) for column in rows.T], axis=1)
