"""Contact points, forces and impacts over any drawing that says where its contacts are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from carom.plots.contacts import column_owners, laws_in
from carom.reports.drawings.points import touches_of, walls_of
from carom.reports.shapes import Arrows, Circles, Drawing, Shape, Touches, framed
from carom.solvers.contact_laws import Laws
from carom.systems.contact_rows import Event

_LONGEST = 0.22  # of the size of the drawing: the arrow of the largest force
_DOT = 0.009
_RING = 0.03
_FADE = 0.02  # of the run: how long an impact glows
_MOST_CONTACTS = 12


def with_contacts(run: Any, picture: Drawing, times: np.ndarray, q: np.ndarray) -> Drawing:
    """The drawing with closed contacts as dots (green: sticks, orange: slips), forces as arrows, impacts as rings."""
    laws, c = laws_in(run), run.columns
    if laws is None or "impulse" not in c or run.system.is_listed or not 0 < laws.contacts <= _MOST_CONTACTS:
        return picture
    touches = picture.touches or touches_of(run.system, laws, times, q)
    if touches is None or picture.in_space:
        return picture
    size = _size(picture)
    walls = [] if picture.touches else walls_of(run.system, q, size)
    where = np.broadcast_to(framed(touches.points), (len(times), laws.contacts, 2))
    row = np.clip(np.searchsorted(c["t"], times), 1, len(c["t"]) - 1) if len(c["t"]) > 1 else np.zeros(len(times), int)
    force = _forces(run, touches, laws, row)
    longest = np.percentile(np.linalg.norm(force, axis=2).max(axis=1), 98) or np.abs(force).max() or 1.0
    scale = _LONGEST * size / longest
    over: list[Shape] = [*_dots(c, laws, row, where, size)]
    over.append(Arrows(where, np.clip(scale * force, -2 * _LONGEST * size, 2 * _LONGEST * size)))
    glow = _glow(c, laws, times)
    if glow.any():
        over.append(Circles(where, _RING * size, "purple", fill=False, alpha=glow))
    told = "; ".join(
        filter(None, [picture.caption, "red: contact forces, their largest as long as a fifth of the box"])
    )
    return replace(picture, shapes=[*walls, *picture.shapes, *over], caption=told)


def _size(picture: Drawing) -> float:
    points = np.concatenate([framed(s.points).reshape(-1, 2) for s in picture.shapes])
    return float(np.max(np.nanmax(points, axis=0) - np.nanmin(points, axis=0))) or 1.0


def _forces(run: Any, touches: Touches, laws: Laws, row: np.ndarray) -> np.ndarray:
    """Forces of the contacts in the steps of the frames, (frames, contacts, 2); impacts are no forces."""
    c = run.columns
    h = np.where(c["h"] > 0, c["h"], np.inf)[:, None]
    force = c["impulse"] / h
    if "event" in c:
        struck = np.isin(c["event"][:, : laws.contacts], (Event.CLOSES, Event.BOUNCES))
        owners = column_owners(laws, force.shape[1])
        mine = owners < laws.contacts
        force = np.where(mine & struck[:, np.where(mine, owners, 0)], 0.0, force)
    force = force[row]
    normals = framed(touches.normals)
    tangents = (
        np.stack([normals[..., 1], -normals[..., 0]], -1) if touches.tangents is None else framed(touches.tangents)
    )
    total = force[:, : laws.contacts, None] * normals
    owners = column_owners(laws, force.shape[1])
    for column in range(laws.contacts, force.shape[1]):
        i = owners[column]
        if i < laws.contacts and np.sum(owners[laws.contacts :] == i) == 1:
            along = np.broadcast_to(tangents, (len(row), laws.contacts, 2))[:, i]
            total[:, i] += force[:, column, None] * along
    return total


def _dots(c: Any, laws: Laws, row: np.ndarray, where: np.ndarray, size: float) -> list[Circles]:
    """Closed contacts: green where they stick or have no friction, orange where they slip."""
    if "mode" not in c:
        return []
    mode = c["mode"].reshape(len(c["t"]), -1)[row]
    closed = mode[:, : laws.contacts] == 0
    slips = np.zeros_like(closed)
    for column, owner in enumerate(laws.owners, laws.contacts):
        slips[:, owner] |= mode[:, column] != 0
    kinds = (("green", closed & ~slips), ("orange", closed & slips))
    return [Circles(where, _DOT * size, colour, alpha=shown.astype(float)) for colour, shown in kinds if shown.any()]


def _glow(c: Any, laws: Laws, times: np.ndarray) -> np.ndarray:
    """How much each contact shows of its latest impact, (frames, contacts)."""
    glow = np.zeros((len(times), laws.contacts))
    if "event" not in c:
        return glow
    for i in range(laws.contacts):
        hits = (c["t"] - c["h"])[np.isin(c["event"][:, i], (Event.CLOSES, Event.BOUNCES))]
        if len(hits):
            latest = hits[np.maximum(np.searchsorted(hits, times, side="right") - 1, 0)]
            since = (times - latest) / (_FADE * (np.ptp(c["t"]) or 1.0))
            glow[:, i] = np.where((since >= 0) & (since < 3), np.exp(-np.maximum(since, 0)), 0.0)
    return glow
