"""Contacts of many bodies: of pairs that a search lists, and of every body with the world.

A shape is the gap of one pair and its slip velocity, two functions that are differentiated pair by pair.
Letters: N bodies of c coordinates and f velocities each, K contacts, R = 1 + directions of friction.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from carom.arguments import Given, UserFunction, is_traced, numbers, per_entry, user_function
from carom.bodies import Bodies
from carom.pairs import AbstractSearch, AllPairs, CellList, Pairs
from carom.pairs.boxes import AbstractBox
from carom.solvers.body_directions import Blocks, Colours, Side
from carom.state import reals
from carom.systems.contact_base import AbstractContacts, between_0_and_1

_LAWS = ("friction", "restitution", "tangential_restitution")
_OPEN = 1.0  # the gap of an empty place in a list


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


class AbstractBodyContacts(AbstractContacts):
    """Contacts that act on one body or on two; their friction may be given per material, and materials per body."""

    if TYPE_CHECKING:
        bodies: Bodies
        data: Any
        materials: Array | None

    turns = False

    @property
    def names(self) -> tuple[str, ...]:  # pyright: ignore
        """They are numbered."""
        return ()

    @property
    @abc.abstractmethod
    def sides(self) -> tuple[Int[Array, " K"], ...]:
        """Places of the bodies that touch among those selected, one array per side; beyond them in an empty place."""

    @property
    def numbers(self) -> tuple[Int[Array, " K"], ...]:
        """Numbers of the bodies that touch among all, one array per side; beyond all in an empty place."""
        rows, count = self.bodies.rows, self.bodies.count
        return tuple(jnp.where(side < len(rows), rows.start + rows.step * side, count) for side in self.sides)

    @abc.abstractmethod
    def blocks(self, given: Any, t: Array, q: Array, v: Array, columns: Array | None) -> Blocks:
        """The directions of all contacts; `columns` are the blocks (N, c, f) of the kinematics, None if q' = v."""

    def coefficients(self, name: str, size: int) -> Array:
        """Friction or restitution of every contact."""
        value = getattr(self, name)
        if value.ndim == 0:
            return jnp.broadcast_to(value, (size,))
        of_body = jnp.arange(len(self.bodies)) if self.materials is None else self.materials
        return value[tuple(of_body[jnp.minimum(side, len(self.bodies) - 1)] for side in self.sides)]


class Listed(eqx.Module):
    """The pairs of a list, in the order of their colours."""

    a: Int[Array, " K"]
    b: Int[Array, " K"]
    colours: Colours

    @classmethod
    def first(cls, search: AbstractSearch, count: int) -> Listed:
        """What is known before a search: all pairs, or none."""
        a, b = np.triu_indices(count, 1) if isinstance(search, AllPairs) else (np.zeros(0, int),) * 2
        return cls(jnp.asarray(a), jnp.asarray(b), Colours(jnp.zeros(0, int), ()))

    @classmethod
    def of(cls, pairs: Pairs, sizes: tuple[int, ...]) -> Listed:
        """The pairs of a coloured list."""
        return cls(pairs.a, pairs.b, Colours(pairs.starts[:-1], sizes))


class PairContacts(AbstractBodyContacts):
    """Contacts of pairs of bodies; made by `Contacts.between`."""

    bodies: Bodies
    shape: Shape
    data: Any
    search: AbstractSearch
    friction: Array
    restitution: Array
    tangential_restitution: Array
    materials: Array | None
    list: Listed

    @classmethod
    def of(
        cls, bodies: Bodies, shape: Shape, data: Any, search: AbstractSearch, laws: tuple[Any, ...], materials: Any
    ) -> PairContacts:
        """With checked arguments, and the list that is known without looking."""
        refuse_kind(shape, Shape, "shape", "carom.shapes.disk, carom.shapes.sphere or a carom.Shape")
        refuse_kind(search, AbstractSearch, "search", "carom.CellList(...), carom.Fixed(edges) or carom.AllPairs()")
        data = of_each_body(data, bodies, shape.radii)
        if shape.radii:
            _refuse_reach(search, data)
        table = _material_numbers(materials, bodies)
        laws = tuple(
            _coefficient(value, name, None if table is None else int(table.max()) + 1, 2)
            for name, value in zip(_LAWS, laws)
        )
        mu, eps, eps_T = _with_slip(laws, shape.slip)
        return cls(bodies, shape, data, search, mu, eps, eps_T, table, Listed.first(search, len(bodies)))  # pyright: ignore

    @property
    def is_listed(self) -> bool:  # pyright: ignore
        """Whether no matrix is formed of the directions."""
        return not isinstance(self.search, AllPairs)

    def with_list(self, found: Listed | None) -> PairContacts:
        """The same contacts with these pairs."""
        return self if found is None else eqx.tree_at(lambda c: c.list, self, found)

    @property
    def has_friction(self) -> bool:
        """Whether the shape has directions of friction."""
        return self.shape.slip is not None

    @property
    def functions(self) -> tuple[Any, ...]:
        """Gap and slip of one pair."""
        return self.shape.gap, self.shape.slip

    @property
    def sides(self) -> tuple[Array, ...]:
        """Both bodies of every pair."""
        return self.list.a, self.list.b

    def gaps(self, given: Any, t: Array, q: Array) -> Array:
        """Gaps of all pairs; an empty place is open."""
        a, b, _, _, data = self._taken(given, t, q)
        gaps = jax.vmap(lambda *pair: self._gap(given, t, *pair))(a, b, *data)
        return jnp.where(self.list.a < len(self.bodies), gaps, _OPEN)

    def slip_rates(self, given: Any, t: Array, q: Array, rate: Array, v: Array) -> Array:
        """gamma_T, one row per pair and one column per direction."""
        del rate
        a, b, u, w, data = self._taken(given, t, q, v)
        return jax.vmap(lambda *pair: self._slip(given, t, *pair))(a, b, u, w, *data)

    def blocks(self, given: Any, t: Array, q: Array, v: Array, columns: Array | None) -> Blocks:
        """The directions of all pairs."""
        a, b, u, w, data = self._taken(given, t, q, v)
        gradient = jax.grad(lambda *pair: self._gap(given, t, *pair), (0, 1))
        gradients, slips = jax.vmap(gradient, out_axes=-1)(a, b, *data), (None, None)
        if self.has_friction:
            slope = jax.jacfwd(lambda *pair: self._slip(given, t, *pair), (2, 3))
            slips = jax.vmap(slope, out_axes=-1)(a, b, u, w, *data)
        sides = (_side(*own, columns) for own in zip(self.numbers, gradients, slips))
        return Blocks(tuple(sides), self.list.colours)

    def _taken(self, given: Any, t: Array, q: Array, v: Array | None = None) -> tuple[Any, ...]:
        """Coordinates, velocities and data of the bodies of all pairs; in an empty place some that do not touch."""
        x, u = self.bodies.positions(q), None if v is None else self.bodies.velocities(v)
        (a, u_a, data_a), (b, u_b, data_b) = (_taken_at((x, u, self.data), side) for side in self.sides)
        if isinstance(self.search, CellList):
            b, u_b = _nearest_image(self.search.box, given.epoch + t, a, b, u_b, self.shape.dimension)
        b = jnp.where(self.list.a[:, None] < len(self.bodies), b, a + 1.0)
        return a, b, u_a, u_b, (data_a, data_b)

    def _gap(self, given: Any, t: Array, a: Array, b: Array, data_a: Any, data_b: Any) -> Array:
        return jnp.asarray(self.shape.gap(given, t=t, a=a, b=b, data_a=data_a, data_b=data_b), float).reshape(())

    def _slip(self, given: Any, t: Array, a: Array, b: Array, u: Array, w: Array, data_a: Any, data_b: Any) -> Array:
        assert self.shape.slip is not None
        slip = self.shape.slip(given, t=t, a=a, b=b, u=u, w=w, data_a=data_a, data_b=data_b)
        return jnp.atleast_1d(jnp.asarray(slip, float))


class WorldContacts(AbstractBodyContacts):
    """Contacts of every body with the world, first gap by first gap; made by `Contacts.each`."""

    bodies: Bodies
    wall: Wall
    data: Any
    friction: Array
    restitution: Array
    tangential_restitution: Array
    materials: Array | None
    walls: int = eqx.field(static=True)

    @classmethod
    def of(cls, bodies: Bodies, wall: Wall, data: Any, laws: tuple[Any, ...], materials: Any) -> WorldContacts:
        """With checked arguments."""
        refuse_kind(wall, Wall, "wall", "one of carom.shapes (half_plane, box, drum, hopper, plate) or a carom.Wall")
        data, table = of_each_body(data, bodies, wall.radii), _material_numbers(materials, bodies)
        size = len(bodies) if table is None else int(table.max()) + 1
        laws = tuple(_coefficient(value, name, size, 1) for name, value in zip(_LAWS, laws))
        one = jax.tree.map(lambda x: x[0], data)
        place = {"t": jnp.zeros(()), "q": jnp.ones(bodies.coordinates), "data": one}
        gap = jax.eval_shape(lambda: jnp.atleast_1d(wall.gap(Given(None, 0.0), **place)))
        mu, eps, eps_T = _with_slip(laws, wall.slip)
        return cls(bodies, wall, data, mu, eps, eps_T, table, gap.size)  # pyright: ignore

    @property
    def has_friction(self) -> bool:
        """Whether the wall has directions of friction."""
        return self.wall.slip is not None

    @property
    def functions(self) -> tuple[Any, ...]:
        """Gap and slip of one body."""
        return self.wall.gap, self.wall.slip

    @property
    def sides(self) -> tuple[Array, ...]:
        """The body of every contact."""
        return (jnp.tile(jnp.arange(len(self.bodies)), self.walls),)

    def gaps(self, given: Any, t: Array, q: Array) -> Array:
        """Gaps of all bodies."""
        gaps = jax.vmap(lambda *body: self._gap(given, t, *body))(self.bodies.positions(q), self.data)
        return gaps.T.ravel()

    def slip_rates(self, given: Any, t: Array, q: Array, rate: Array, v: Array) -> Array:
        """gamma_T, one row per contact and one column per direction."""
        del rate
        x, u = self.bodies.positions(q), self.bodies.velocities(v)
        slips = jax.vmap(lambda *body: self._slip(given, t, *body))(x, u, self.data)
        return jnp.swapaxes(slips, 0, 1).reshape(-1, slips.shape[2])

    def blocks(self, given: Any, t: Array, q: Array, v: Array, columns: Array | None) -> Blocks:
        """The directions of all contacts, a colour for each gap of a body."""
        x, u, n = self.bodies.positions(q), self.bodies.velocities(v), len(self.bodies)
        gradient = jax.jacrev(lambda *body: self._gap(given, t, *body))
        gradients, slips = jnp.concatenate(jax.vmap(gradient, out_axes=-1)(x, self.data), axis=-1), None
        if self.has_friction:
            slope = jax.jacfwd(lambda *body: self._slip(given, t, *body), 1)
            slips = jnp.concatenate(jax.vmap(slope, out_axes=-1)(x, u, self.data), axis=-1)
        side = _side(self.numbers[0], gradients, slips, columns)
        return Blocks((side,), Colours(jnp.arange(self.walls) * n, (n,) * self.walls))

    def _gap(self, given: Any, t: Array, q: Array, data: Any) -> Array:
        return jnp.atleast_1d(jnp.asarray(self.wall.gap(given, t=t, q=q, data=data), float))

    def _slip(self, given: Any, t: Array, q: Array, v: Array, data: Any) -> Array:
        assert self.wall.slip is not None
        slip = jnp.asarray(self.wall.slip(given, t=t, q=q, v=v, data=data), float)
        return slip.reshape(self.walls, -1)


def _taken_at(tree: Any, places: Array) -> Any:
    """The rows of arrays at these places."""
    return jax.tree.map(lambda leaf: leaf.at[places].get(mode="clip"), tree)


def _side(body: Array, gradient: Float[Array, "c K"], slips: Array | None, columns: Array | None) -> Side:
    """Rows of one side: the normal one from the gradient of the gap, those of friction as they are."""
    normal = gradient
    if columns is not None:
        own = columns.at[body].get(mode="clip")
        normal = jnp.sum(gradient[:, None] * jnp.moveaxis(own, 0, 2), axis=0)
    return Side(body, normal[None] if slips is None else jnp.concatenate([normal[None], slips]))


def _nearest_image(
    box: AbstractBox, t: Array, a: Array, b: Array, u: Array | None, d: int
) -> tuple[Array, Array | None]:
    """The image of the bodies b that is nearest to a, and its velocity."""

    def place(s: Array) -> Array:
        return a[:, :d] + box.nearest(b[:, :d] - a[:, :d], s)

    moved = jnp.concatenate([place(t), b[:, d:]], axis=1)
    if u is None:
        return moved, None
    drift = jax.jvp(place, (t,), (jnp.ones_like(t),))[1]
    return moved, u.at[:, :d].add(drift)


def _refuse_reach(search: AbstractSearch, radii: Array) -> None:
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


def _material_numbers(materials: Any, bodies: Bodies) -> Array | None:
    if materials is None:
        return None
    table = np.asarray(materials)
    if table.shape != (len(bodies),) or table.dtype.kind not in "iu" or (table < 0).any():
        msg = f"materials must be one number 0, 1, ... per body ({len(bodies)}), got {materials!r}"
        raise ValueError(msg)
    return jnp.asarray(table)


def _coefficient(value: ArrayLike, name: str, size: int | None, axes: int) -> Array:
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
    if flat.ndim != axes or min(flat.shape) < size or len(set(flat.shape)) > 1:
        msg = (
            f"{name} must be a number or have the shape {(size,) * axes} (bodies or their materials), got {flat.shape}"
        )
        raise ValueError(msg)
    if axes == 2 and not np.array_equal(flat, flat.T):
        msg = f"{name} must be the same for both orders of two materials"
        raise ValueError(msg)
    return jnp.asarray(flat)


def _with_slip(laws: tuple[Array, ...], slip: Any) -> tuple[Array, ...]:
    """Refuse friction without directions."""
    if slip is None and not is_traced(laws[0]) and np.any(np.asarray(laws[0]) > 0):
        msg = "friction needs slip directions: give the shape or the wall a slip velocity"
        raise ValueError(msg)
    return laws
