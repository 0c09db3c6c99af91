"""How bodies touch each other and the world, and what may be said of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from carom.arguments import UserFunction, is_traced, numbers, per_entry, user_function
from carom.bodies import Bodies
from carom.pairs import AbstractSearch, CellList
from carom.state import reals
from carom.systems.contact_base import between_0_and_1


class Shape(eqx.Module):
    """How two bodies touch: their gap, and the velocity with which one slides along the other.

    Args:
        gap: `gap(a, b)` or `gap(a, b, data_a, data_b)` of the coordinates of two bodies; positive when open.
        slip: `slip(a, b, u, w)` or `slip(a, b, u, w, data_a, data_b)` of their coordinates and velocities, affine in
            u and w: a number, or a pair for friction in a plane.
        dimension: how many of a body's first coordinates are its place: 2 or 3.
        radii: whether the data of a body is its radius, so that it can be checked.

    Example:
        >>> points = carom.Shape(lambda a, b: jnp.hypot(*(b - a)[:2]) - 1.0, dimension=2)
    """

    gap: UserFunction
    slip: UserFunction | None
    dimension: int = eqx.field(static=True)
    radii: bool = eqx.field(static=True)

    def __init__(
        self, gap: Callable[..., Any], slip: Callable[..., Any] | None = None, *, dimension: int, radii: bool = False
    ):
        data = ("data_a", "data_b")
        self.gap = user_function(gap, "gap", ("a", "b"), ("a", "b", *data))
        self.slip = slip and user_function(slip, "slip", ("a", "b", "u", "w"), ("a", "b", "u", "w", *data))
        self.dimension, self.radii = dimension, radii


class Wall(eqx.Module):
    """How a body touches the world: gaps (a number or several), and slip velocities.

    Args:
        gap: `gap(q)`, `gap(q, data)` or `gap(t, q, data)` of the coordinates of one body; positive when open.
        slip: `slip(q, v)`, `slip(q, v, data)` or `slip(t, q, v, data)`, affine in v: one number, or one pair for
            friction in a plane, per gap.
        radii: whether the data of a body is its radius, so that it can be checked.

    Example:
        >>> floor = carom.Wall(lambda q, r: q[1] - r, lambda q, v, r: v[0] + r * v[2])
    """

    gap: UserFunction
    slip: UserFunction | None
    radii: bool = eqx.field(static=True)

    def __init__(self, gap: Callable[..., Any], slip: Callable[..., Any] | None = None, *, radii: bool = False):
        self.radii = radii
        self.gap = user_function(gap, "gap", ("q",), ("q", "data"), ("t", "q", "data"))
        self.slip = slip and user_function(slip, "slip", ("q", "v"), ("q", "v", "data"), ("t", "q", "v", "data"))


def refuse_reach(search: AbstractSearch, radii: Array) -> None:
    """Raise where a search looks less far than bodies are wide."""
    if not isinstance(search, CellList) or is_traced((search.reach, radii)):
        return
    reach, widths = np.broadcast_to(search.reach, radii.shape), 2.0 * np.asarray(radii)
    i = int(np.argmax(widths - reach))
    if reach[i] < widths[i] * (1 - 1e-12):
        msg = f"CellList: reach = {reach[i]:g} is less than the diameter {widths[i]:g} of body {i}"
        raise ValueError(msg)


def refuse_kind(value: Any, kind: type, name: str, wanted: str) -> None:
    """Raise, by name, unless a value is of a kind."""
    if not isinstance(value, kind):
        msg = f"{name} must be {wanted}, got {type(value).__name__}"
        raise TypeError(msg)


def of_each_body(data: Any, bodies: Bodies, radii: bool) -> Any:
    """Data with one entry per body in every array."""
    if radii:
        given = 0.0 if data is None else data
        return jnp.asarray(per_entry(given, "data (the radius)", len(bodies), "body", positive=True))

    def spread(leaf: Any) -> Array:
        array = jnp.asarray(leaf)
        if array.ndim and array.shape[0] != len(bodies):
            msg = (
                f"data must be one number for all bodies or one entry per body ({len(bodies)}), got shape {array.shape}"
            )
            raise ValueError(msg)
        return array if array.ndim else jnp.broadcast_to(array, (len(bodies),))

    return jax.tree.map(spread, data)


def material_numbers(materials: Any, bodies: Bodies) -> Array | None:
    """The number of each body's material."""
    if materials is None:
        return None
    table = np.asarray(materials)
    if table.shape != (len(bodies),) or table.dtype.kind not in "iu" or (table < 0).any():
        msg = f"materials must be one number 0, 1, ... per body ({len(bodies)}), got {materials!r}"
        raise ValueError(msg)
    return jnp.asarray(table)


def coefficient(value: ArrayLike, name: str, size: int | None, axes: int) -> Array:
    """A coefficient for all contacts, or a table with so many entries along each axis."""
    flat = reals(value, name, "a number, or a table of materials")
    if is_traced(flat):
        return flat
    checked = numbers(flat.ravel() if flat.ndim else flat, name, nonnegative=True)
    if name != "friction":
        between_0_and_1(flat.ravel(), name)
    if flat.ndim == 0:
        return checked
    if size is None:
        msg = f"{name}: a table of materials needs materials=, the number of each body's material"
        raise ValueError(msg)
    if flat.ndim == axes and max(flat.shape) < size:
        msg = f"{name}: the table ends at number {len(flat) - 1}, but bodies (or their materials=) go up to {size - 1}"
        raise ValueError(msg)
    if flat.ndim != axes or min(flat.shape) < size or len(set(flat.shape)) > 1:
        msg = (
            f"{name} must be a number or have the shape {(size,) * axes} (bodies or their materials), got {flat.shape}"
        )
        raise ValueError(msg)
    if axes == 2 and not np.array_equal(flat, flat.T):
        msg = f"{name} must be the same for both orders of two materials"
        raise ValueError(msg)
    return jnp.asarray(flat)


def with_slip(laws: tuple[Array, ...], slip: Any) -> tuple[Array, ...]:
    """Refuse friction without directions."""
    if slip is None and not is_traced(laws[0]) and np.any(np.asarray(laws[0]) > 0):
        msg = "friction needs slip directions: give the shape or the wall a slip velocity"
        raise ValueError(msg)
    return laws
