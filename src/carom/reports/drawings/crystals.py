"""Drawings of granular matter: displacements of crystals enlarged until they show, dark where they are large."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from carom.models.crystals import (
    CUBIC,
    HEXAGONAL,
    SQUARE,
    cubic_crystal,
    disordered_packing,
    granular_layer,
    hexagonal_crystal,
    square_crystal,
)
from carom.reports.drawings.register import drawing
from carom.reports.shapes import Circles, Drawing, stack

_SHOWN = 0.6  # of a radius, the largest displacement as it is drawn


def _with_defaults(model: Any, a: dict[str, Any]) -> dict[str, Any]:
    return {name: p.default for name, p in inspect.signature(model).parameters.items()} | a


def _lattice(q: np.ndarray, kind: Any, shape: tuple[int, ...], radius: float) -> Drawing:
    r, d = float(radius), len(shape)
    places = np.indices(shape).reshape(d, -1).T @ (2 * r * np.asarray(kind[0]))
    return _enlarged(places, q.reshape(len(q), -1, d), r)


def _enlarged(places: np.ndarray, u: np.ndarray, r: float) -> Drawing:
    size = np.sqrt(np.sum(u**2, 2))
    top = size.max(initial=0.0) or 1.0
    factor = _SHOWN * r / top
    beads = Circles(places + factor * u, np.full(len(places), r), "blue", shade=size / top)
    return Drawing([beads], f"displacements enlarged {factor:.3g} times")


@drawing("hexagonal_crystal")
def hexagonal(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Beads with six neighbours."""
    a = _with_defaults(hexagonal_crystal, a)
    return _lattice(q, HEXAGONAL, (a["columns"], a["rows"]), a["radius"])


@drawing("square_crystal")
def square(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Beads with four neighbours."""
    a = _with_defaults(square_crystal, a)
    return _lattice(q, SQUARE, (a["columns"], a["rows"]), a["radius"])


@drawing("cubic_crystal")
def cubic(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A cube of beads."""
    a = _with_defaults(cubic_crystal, a)
    return _lattice(q, CUBIC, (a["side"],) * 3, a["radius"])


@drawing("disordered_packing")
def packing(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Spheres in a plane; radii are those of the model."""
    a, places = _with_defaults(disordered_packing, a), q.reshape(len(q), -1, 2)
    r = np.random.default_rng(a["seed"]).uniform(a["smallest"], 1.0, a["count"]) * a["radius"]
    moved = np.sqrt(np.sum((places - places[0]) ** 2, 2))
    shade = moved / (moved.max(initial=0.0) or 1.0)
    return Drawing([Circles(places, r, "blue", shade=shade)], "dark where spheres have moved")


@drawing("granular_layer")
def layer(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Beads above the nodes of a net."""
    a = _with_defaults(granular_layer, a)
    n, r = a["count"], float(a["radius"])
    u = q.reshape(len(q), -1, 2)
    row, column = np.divmod(np.arange(u.shape[1]), n)
    factor = _SHOWN * r / (np.abs(u).max(initial=0.0) or 1.0)
    x = 2 * r * stack(column, -row) + factor * u
    nodes = Circles(x[:, n:], np.full(u.shape[1] - n, 0.4 * r), "orange")
    return Drawing([nodes, Circles(x[:, :n], np.full(n, r), "blue")], f"displacements enlarged {factor:.3g} times")
