"""Contact points, forces and impacts over any drawing that says where its contacts are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from carom.plots.contacts import column_owners, laws_in
from carom.reports.drawings.assembled import corner_touches
from carom.reports.drawings.points import plane_of, touches_of, walls_of
from carom.reports.shapes import Arrows, Circles, Drawing, Touches, framed, places
from carom.solvers.contact_laws import Laws
from carom.systems.contact_rows import Event

_LONGEST = 0.22  # of the size of the drawing: the arrow of the largest force
_DOT = 0.006
_RING = 0.03
_FADE = 0.02  # of the run: how long an impact glows
_MOST = 12  # contacts and elements


def with_contacts(run: Any, picture: Drawing, times: np.ndarray, q: np.ndarray) -> Drawing:
    """The drawing with closed contacts as dots (green: sticks, orange: slips), forces as arrows, impacts as rings."""
    laws, c = laws_in(run), run.columns
    if laws is None or "impulse" not in c or run.system.is_listed or len(c["t"]) < 2:
        return picture
    touches = picture.touches or _touches(run.system, picture, laws, times, q)
    n = laws.contacts + laws.elements
    if touches is None or framed(touches.points).shape[1] != n or n > _MOST:
        return picture
    size = _size(picture)
    walls = (
        []
        if plane_of(run.system.labels) is None or picture.touches or not laws.contacts
        else walls_of(run.system, q, size)
    )
    where = np.broadcast_to(framed(touches.points), (len(times), n, 3 if picture.in_space else 2))
    row = np.clip(np.searchsorted(c["t"], times), 1, len(c["t"]) - 1)
    force = _forces(c, touches, laws, row)
    longest = np.percentile(np.linalg.norm(force, axis=2).max(axis=1), 98) or np.abs(force).max() or 1.0
    arrows = np.clip(_LONGEST * size / longest * force, -2 * _LONGEST * size, 2 * _LONGEST * size)
    glow = _glow(c, laws, times)
    rings = [Circles(where, _RING * size, "purple", fill=False, alpha=glow)] if glow.any() else []
    over = [*_dots(c, laws, row, where, size), Arrows(where, arrows), *rings]
    told = "; ".join(filter(None, [picture.caption, "red: contact forces, scaled to the drawing"]))
    return replace(picture, shapes=[*walls, *picture.shapes, *over], caption=told)


def _touches(system: Any, picture: Drawing, laws: Laws, times: np.ndarray, q: np.ndarray) -> Touches | None:
    """Where corners of a mechanism touch, or where forces act on the point (x, y)."""
    found = corner_touches(system, q, laws.contacts + laws.elements)
    return found or (None if picture.in_space else touches_of(system, laws, times, q))


def _size(picture: Drawing) -> float:
    points = np.concatenate([places(shape) for shape in picture.shapes])
    return float(np.max(np.nanmax(points, axis=0) - np.nanmin(points, axis=0))) or 1.0


def _forces(c: Any, touches: Touches, laws: Laws, row: np.ndarray) -> np.ndarray:
    """Forces of contacts and elements in the steps of the frames, (frames, laws, dim); impacts are no forces."""
    force = c["impulse"] / np.where(c["h"] > 0, c["h"], np.inf)[:, None]
    owners = column_owners(laws, force.shape[1])
    if "event" in c and laws.contacts:
        struck = np.isin(c["event"][:, : laws.contacts], (Event.CLOSES, Event.BOUNCES))
        mine = owners < laws.contacts
        force = np.where(mine & struck[:, np.where(mine, owners, 0)], 0.0, force)
    normals = framed(touches.normals)
    normals = np.broadcast_to(normals, (len(row), *normals.shape[1:]))
    ways = {True: [normals, *_tangents(touches, normals)], False: [normals]}
    if normals.shape[2] == 2:
        ways[False].append(-across(normals))
    total, seen = np.zeros(normals.shape), list[int]()
    for column, owner in enumerate(owners.tolist()):
        along = ways[owner < laws.contacts]
        if seen.count(owner) < len(along):
            total[:, owner] += force[row, column, None] * along[seen.count(owner)][:, owner]
        seen.append(owner)
    return total


def _tangents(touches: Touches, normals: np.ndarray) -> list[np.ndarray]:
    """Directions of friction of the contacts, none in space where they are not given."""
    if touches.tangents is None:
        return [across(normals)] if normals.shape[2] == 2 else []
    each = touches.tangents if isinstance(touches.tangents, tuple) else (touches.tangents,)
    return [np.broadcast_to(framed(one), normals.shape) for one in each]


def across(vectors: np.ndarray) -> np.ndarray:
    """Vectors turned clockwise by a right angle."""
    return np.stack([vectors[..., 1], -vectors[..., 0]], -1)


def _dots(c: Any, laws: Laws, row: np.ndarray, where: np.ndarray, size: float) -> list[Circles]:
    """Closed contacts and elements: green where they stick or have no friction, orange where they slip."""
    if "mode" not in c:
        return []
    mode = c["mode"].reshape(len(c["t"]), -1)[row]
    closed = np.pad(mode[:, : laws.contacts] == 0, ((0, 0), (0, laws.elements)), constant_values=True)
    slips = np.zeros_like(closed)
    owners = [*laws.owners.tolist(), *range(laws.contacts, laws.contacts + laws.elements)]
    for column, owner in enumerate(owners, laws.contacts):
        slips[:, owner] |= mode[:, column] != 0
    kinds = (("green", closed & ~slips), ("orange", closed & slips))
    return [Circles(where, _DOT * size, colour, alpha=shown.astype(float)) for colour, shown in kinds if shown.any()]


def _glow(c: Any, laws: Laws, times: np.ndarray) -> np.ndarray:
    """How much each contact shows of its latest impact, (frames, contacts)."""
    glow = np.zeros((len(times), laws.contacts + laws.elements))
    if "event" not in c:
        return glow
    for i in range(laws.contacts):
        hits = (c["t"] - c["h"])[np.isin(c["event"][:, i], (Event.CLOSES, Event.BOUNCES))]
        if len(hits):
            latest = hits[np.maximum(np.searchsorted(hits, times, side="right") - 1, 0)]
            since = (times - latest) / (_FADE * (np.ptp(c["t"]) or 1.0))
            glow[:, i] = np.where((since >= 0) & (since < 3), np.exp(-np.maximum(since, 0)), 0.0)
    return glow
