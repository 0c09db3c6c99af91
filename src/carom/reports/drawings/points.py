"""Contacts of the point (x, y) of a system that has no drawing of its own: where they push, and what they push from."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from contourpy import contour_generator

from carom.plots.contacts import column_owners
from carom.reports.shapes import Line, Touches
from carom.solvers.contact_laws import Laws
from carom.systems.contact_rows import stacked_velocities
from carom.systems.system import System

_GRID = 80  # points along an edge on which gaps are looked at
_LOOKS = 64  # frames whose directions are found


def plane_of(labels: tuple[str, ...]) -> tuple[int, int] | None:
    """The coordinates x and y (or z), if they are named so."""
    upward = next((name for name in ("y", "z") if name in labels), None)
    return (labels.index("x"), labels.index(upward)) if "x" in labels and upward is not None else None


def touches_of(system: System, laws: Laws, times: np.ndarray, q: np.ndarray) -> Touches | None:
    """Forces act on the point along the directions of the contacts in the plane of x and y."""
    plane = plane_of(system.labels)
    if plane is None or system.origin is not None or not system.rates:
        return None

    def directions(t: Any, q: Any) -> Any:
        return jax.jacfwd(lambda v: stacked_velocities(system, t, q, v))(jnp.zeros_like(q))

    some = np.unique(np.linspace(0, len(times) - 1, _LOOKS).astype(int))
    W = np.asarray(jax.vmap(directions)(times[some], q[some]))[:, :, list(plane)]
    W = W[np.searchsorted(some, np.arange(len(times)), side="right") - 1]
    n = laws.contacts + laws.elements
    normals, tangents = np.zeros((2, len(times), n, 2))
    for column, owner in list(enumerate(column_owners(laws, W.shape[1])))[::-1]:
        (tangents if laws.contacts <= column and owner < laws.contacts else normals)[:, owner] = W[:, column]
    return Touches(np.repeat(q[:, None, list(plane)], n, axis=1), normals, tangents)


def walls_of(system: System, q: np.ndarray, size: float) -> list[Line]:
    """Where gaps are zero in the plane of x and y, all other coordinates as at the start."""
    plane = plane_of(system.labels)
    assert plane is not None
    low, high = (f(q[:, list(plane)], axis=0) + 0.1 * s * size for f, s in ((np.min, -1), (np.max, 1)))
    x, y = (np.linspace(a, b, _GRID) for a, b in zip(low, high))
    grid = np.broadcast_to(q[0], (_GRID, _GRID, q.shape[1])).copy()
    grid[..., plane[0]], grid[..., plane[1]] = np.meshgrid(x, y)
    gaps = np.asarray(jax.vmap(lambda q: system.gaps(jnp.zeros(()), q))(jnp.asarray(grid.reshape(-1, q.shape[1]))))
    found = []
    for gap in gaps.T:
        pieces = contour_generator(x, y, gap.reshape(_GRID, _GRID)).lines(0.0)
        found += [Line(np.asarray(piece), "grey", 2.0) for piece in pieces]
    return found
