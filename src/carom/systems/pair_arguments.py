"""What `Interactions.between` is given, checked: places, dimensions, boxes, data, first lists."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import is_traced
from carom.bodies import Bodies
from carom.pairs import AbstractSearch, AllPairs, Fixed, Lattice, Open
from carom.pairs.boxes import AbstractBox
from carom.solvers.bonds import AbstractBonds, LatticeBonds, ListedBonds
from carom.state import reals


def given_places(places: Any, count: int) -> Array:
    """Places as an array, one row per body."""
    X = jnp.asarray(reals(places, "places", "one row of coordinates per body"))
    if X.ndim != 2 or X.shape[0] != count:
        msg = f"places must have one row of coordinates per body ({count}), got shape {X.shape}"
        raise ValueError(msg)
    return X


def dimension_of(bodies: Bodies, places: Array | None, search: AbstractSearch, given: int | None, turning: bool) -> int:
    """How many coordinates of a body are its place: as said, as places have, as the box has, or all of them."""
    box = getattr(search, "box", None)
    d = given or (places.shape[1] if places is not None else len(box.lengths) if box and box.lengths else None)
    d = d or {3: 2, 6: 3}.get(bodies.coordinates if turning else 0) or bodies.coordinates
    if d > min(3, bodies.coordinates) or (places is not None and places.shape[1] != d):
        msg = (
            f"bodies with {bodies.coordinates} coordinates cannot have {d} of position: say how many of the first "
            f"coordinates are the place of a body, dimension = 1, 2 or 3 (as many as places have)"
        )
        raise ValueError(msg)
    return int(d)


def box_of(search: AbstractSearch, d: int) -> AbstractBox:
    """The box of a search, open by default."""
    box = getattr(search, "box", None) or Open()
    box.refuse_dimension(d)
    if box.offset_at(0.0) is not None:
        msg = "Interactions.between: the box must be open or carom.Periodic; a sheared one moves with time"
        raise ValueError(msg)
    return box


def first_bonds(search: AbstractSearch, count: int, d: int) -> AbstractBonds:
    """The bonds that are known without looking."""
    if isinstance(search, Lattice):
        return LatticeBonds(search.shape, search.offsets, search.periodic)
    a = b = np.zeros(0, int)
    if isinstance(search, AllPairs):
        a, b = np.triu_indices(count, 1)
    if isinstance(search, Fixed):
        search.capacity(count, d)
        a, b = search.edges.T
    return ListedBonds(jnp.asarray(a, jnp.int32), jnp.asarray(b, jnp.int32), count)


def of_each_body(data: Any, count: int, radii: bool) -> Any:
    """Data of bodies: numbers for all, or arrays (or lists) with one entry per body; the first may be radii."""
    data = jax.tree.map(lambda x: jnp.asarray(x, float), data, is_leaf=lambda x: isinstance(x, list))
    for path, leaf in jax.tree_util.tree_leaves_with_path(data):
        where, shape = jax.tree_util.keystr(path), jnp.shape(leaf)
        if shape not in ((), (count,)):
            msg = f"data{where} must be one number for all bodies or one per body ({count}), got shape {shape}"
            raise ValueError(msg)
        if not is_traced(leaf) and not np.isfinite(leaf).all():
            msg = f"data{where} must be finite numbers, that of body {int(np.argmin(np.isfinite(leaf)))} is none"
            raise ValueError(msg)
    for given in jax.tree.leaves(data)[:1] if radii and not is_traced(data) else ():
        first = np.ravel(given)
        if not np.all(first > 0):
            i = int(np.argmin(first > 0))
            msg = f"data[0] (the radius) must be positive, that of body {i} is {first[i]:g}"
            raise ValueError(msg)
    return data


def refuse_friction(bodies: Bodies, d: int, places: Array | None) -> None:
    """Friction needs bodies that turn, and coordinates that are positions."""
    if places is not None:
        msg = "friction with memory needs coordinates that are positions: leave out places= (and lattices)"
        raise ValueError(msg)
    refuse_turning(bodies, d)


def refuse_turning(bodies: Bodies, d: int | None = None) -> None:
    """Friction needs bodies that turn."""
    if bodies.dof != bodies.coordinates or (d or {3: 2, 6: 3}.get(bodies.dof), bodies.dof) not in ((2, 3), (3, 6)):
        msg = (
            f"friction with memory needs bodies that turn: dof = 3 in the plane (x, y, angle) or dof = 6 in space "
            f"(x, y, z, three angles), got dof = {bodies.dof}"
        )
        raise ValueError(msg)


def refuse_places(places: Any) -> None:
    """A lattice has places of its own."""
    if places is not None:
        msg = "Interactions.between: places are those of the lattice, leave out places="
        raise ValueError(msg)
