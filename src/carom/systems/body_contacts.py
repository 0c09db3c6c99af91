"""Contacts of many bodies: of pairs that a search lists, and of every body with the world.

A shape is the gap of one pair and its slip velocity, two functions that are differentiated pair by pair.
Letters: N bodies of c coordinates and f velocities each, K contacts, R = 1 + directions of friction.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from carom.arguments import Given
from carom.bodies import Bodies
from carom.pairs import AbstractSearch, AllPairs, Capacity, CellList, Pairs, coloured
from carom.pairs.boxes import AbstractBox
from carom.solvers.body_directions import Blocks, Colours, Side, added
from carom.systems.contact_base import AbstractContacts
from carom.systems.shape import (
    Shape,
    Wall,
    coefficient,
    material_numbers,
    of_each_body,
    refuse_kind,
    refuse_reach,
    with_slip,
)

_LAWS = ("friction", "restitution", "tangential_restitution")
_OPEN = 1.0  # the gap of an empty place in a list


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
    def points(self, given: Any, t: Array, q: Array, normals: Float[Array, "K d"]) -> Float[Array, "K d"]:
        """Where contacts are."""

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
            refuse_reach(search, data)
        table = material_numbers(materials, bodies)
        laws = tuple(
            coefficient(value, name, None if table is None else int(table.max()) + 1, 2)
            for name, value in zip(_LAWS, laws)
        )
        mu, eps, eps_T = with_slip(laws, shape.slip)
        return cls(bodies, shape, data, search, mu, eps, eps_T, table, Listed.first(search, len(bodies)))  # pyright: ignore

    @property
    def is_listed(self) -> bool:  # pyright: ignore
        """Whether no matrix is formed of the directions."""
        return not isinstance(self.search, AllPairs)

    def with_list(self, found: Pairs | None, colours: tuple[int, ...]) -> PairContacts:
        """The same contacts with these pairs."""
        return self if found is None else eqx.tree_at(lambda c: c.list, self, Listed.of(found, colours))

    def listed(self, found: Pairs, room: Capacity) -> Pairs:
        """The pairs found, by colours."""
        return coloured(found, room)

    def positions(self, q: Array) -> Array:
        """Where the bodies are."""
        return self.bodies.positions(q)[:, : self.shape.dimension]

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

    def points(self, given: Any, t: Array, q: Array, normals: Float[Array, "K d"]) -> Float[Array, "K d"]:
        """Where pairs touch: on the line of their places, which it divides like the radii, or in its middle."""
        d = normals.shape[1]
        a, b, _, _, (r, s) = self._taken(given, t, q)
        share = (r / (r + s))[:, None] if self.shape.radii else 0.5
        return a[:, :d] + share * (b - a)[:, :d]

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
        data, table = of_each_body(data, bodies, wall.radii), material_numbers(materials, bodies)
        size = len(bodies) if table is None else int(table.max()) + 1
        laws = tuple(coefficient(value, name, size, 1) for name, value in zip(_LAWS, laws))
        one = jax.tree.map(lambda x: x[0], data)
        place = {"t": jnp.zeros(()), "q": jnp.ones(bodies.coordinates), "data": one}
        gap = jax.eval_shape(lambda: jnp.atleast_1d(wall.gap(Given(None, 0.0), **place)))
        mu, eps, eps_T = with_slip(laws, wall.slip)
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

    def points(self, given: Any, t: Array, q: Array, normals: Float[Array, "K d"]) -> Float[Array, "K d"]:
        """Where bodies touch walls: a radius away from their places, or there."""
        del given, t
        x = jnp.tile(self.bodies.positions(q)[:, : normals.shape[1]], (self.walls, 1))
        return x - jnp.tile(self.data, self.walls)[:, None] * normals if self.wall.radii else x

    def _gap(self, given: Any, t: Array, q: Array, data: Any) -> Array:
        return jnp.atleast_1d(jnp.asarray(self.wall.gap(given, t=t, q=q, data=data), float))

    def _slip(self, given: Any, t: Array, q: Array, v: Array, data: Any) -> Array:
        assert self.wall.slip is not None
        slip = jnp.asarray(self.wall.slip(given, t=t, q=q, v=v, data=data), float)
        return slip.reshape(self.walls, -1)


def partners(groups: tuple[Any, ...], contact: int) -> str:
    """Who touches in a contact of bodies, by its number among those of all groups."""
    all_of = [own for group in groups for own in zip(*(np.asarray(side).tolist() for side in group.numbers))]
    a, *b = all_of[contact]
    return f"of bodies {a} and {b[0]}" if b else f"of body {a} with the world"


def misfit_of_lists(system: Any) -> str | None:
    """What a system with listed pairs has beside them that no block of bodies can hold; None if nothing."""
    groups = system.contact_groups
    if not any(group.is_listed for group in groups):
        return None
    if not all(isinstance(group, AbstractBodyContacts) for group in groups):
        return "beside listed pairs all contacts must be those of bodies: use Contacts.each in place of Contacts(gap)"
    if len({(group.bodies.count, group.bodies.dof, group.bodies.coordinates) for group in groups}) > 1:
        return "all contacts of a system with listed pairs must cut q and v into the same Bodies"
    if system.friction is not None or system.constraints is not None:
        return "listed pairs stand beside neither friction elements nor bilateral constraints"
    if callable(system.mass) or system.mass.ndim > 1:
        return "listed pairs need masses that are a number or one per velocity: use bodies.mass(...)"
    return None


def _taken_at(tree: Any, places: Array) -> Any:
    """The rows of arrays at these places."""
    return jax.tree.map(lambda leaf: leaf.at[places].get(mode="clip"), tree)


def _side(body: Array, gradient: Float[Array, "c K"], slips: Array | None, columns: Array | None) -> Side:
    """Rows of one side: the normal one from the gradient of the gap, those of friction as they are."""
    normal = list(gradient)
    if columns is not None:
        own = columns.at[body].get(mode="clip")
        normal = [added(one * own[:, k, i] for k, one in enumerate(gradient)) for i in range(own.shape[2])]
    return Side(body, [normal, *(list(row) for row in (() if slips is None else slips))])


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
