"""A potential made of the energies of pairs of bodies in the plane or in space; made by `Interactions.between`.

Of two bodies a and b only the distance counts: they touch at the distance L, and the overlap L - |x_b - x_a| has an
energy. Where coordinates are displacements from places X, with R = X_b - X_a and w = u_b - u_a,

    overlap = (L - |R|) - (2 R.w + w.w) / (|R + w| + |R|),

in which nothing cancels, however small displacements are. Letters: d dimensions, bonds in kinds (`solvers.bonds`), a
vector field on bonds as d arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from carom.bodies import Bodies
from carom.pairs import AbstractSearch, AllPairs, Capacity, CellList, Fixed, Lattice, Open, Pairs
from carom.pairs.boxes import AbstractBox
from carom.solvers.bonds import AbstractBonds, LatticeBonds, ListedBonds
from carom.state import reals
from carom.systems.shape import refuse_kind, refuse_reach

Columns = list[Array]
_TOUCHING = 16 * np.finfo(float).eps  # of the distance: places that touch but for rounding


class PairLaw(eqx.Module):
    """The energy of two bodies, `energy(overlap, a, b)`, that touch at the distance `length(a, b)`; a, b: their data.

    Both are elementwise: they are given arrays.

    Example:
        >>> soft = carom.laws.PairLaw(lambda overlap, a, b: jnp.exp(overlap), lambda a, b: a + b)
    """

    energy: Callable[..., Array]
    length: Callable[..., Array]


class Rest(eqx.Module):
    """Bonds of one kind where displacements are zero: their vector, its length, and the overlap there."""

    bond: Columns
    length: Array
    overlap: Array


class PairInteractions(eqx.Module):
    """The same law for many pairs of bodies."""

    bodies: Bodies
    law: PairLaw
    data: Any
    search: AbstractSearch
    bonds: AbstractBonds
    rest: list[Rest] | None
    places: Array | None
    weight: Array
    dimension: int = eqx.field(static=True)
    friction: Any = None

    span = None
    stencil = None
    relative = False

    @classmethod
    def of(
        cls,
        bodies: Bodies,
        law: PairLaw,
        data: Any,
        search: AbstractSearch,
        places: Any,
        dimension: int | None,
        friction: Any,
    ) -> PairInteractions:
        """With checked arguments; lists that do not change are made once and for all."""
        searches = "carom.CellList(...), carom.Fixed(edges), carom.Lattice(...) or carom.AllPairs()"
        refuse_kind(bodies, Bodies, "bodies", "carom.Bodies(count, dof)")
        refuse_kind(law, PairLaw, "law", "one of carom.laws (hertz_pair, power_pair(p), spring_pair) or a PairLaw")
        refuse_kind(search, AbstractSearch, "search", searches)
        if isinstance(search, Lattice):
            refuse_places(places)
            search.refuse_count(len(bodies))
            places = search.places
        X = None if places is None else _given_places(places, len(bodies))
        d = _dimension(bodies, X, search, dimension, friction is not None)
        data = _of_each_body(data, len(bodies))
        refuse_reach(search, 0.5 * jnp.broadcast_to(law.length(data, data), (len(bodies),)))
        _box_of(search, d)
        bonds = _first_bonds(search, len(bodies), d)
        rest = None
        if X is not None and not isinstance(search, CellList):
            ends = _ends(bonds, data)
            rest = [_at_rest(R, law.length(*own)) for R, own in zip(_vectors(search, bonds, X), ends)]
        if friction is not None:
            _refuse_friction(bodies, d, X)
        return cls(bodies, law, data, search, bonds, rest, X, jnp.ones(()), d, friction)  # pyright: ignore

    # ---- what a run lists ---------------------------------------------------------------------------------------

    @property
    def is_listed(self) -> bool:
        """Whether a run holds a list of the pairs: they change, or are remembered."""
        return isinstance(self.search, CellList) or self.friction is not None

    def listed(self, found: Pairs, room: Capacity) -> Pairs:
        """The pairs found, as they are."""
        del room
        return found

    def with_list(self, found: Pairs | None, colours: Any) -> PairInteractions:
        """The same interactions of these pairs."""
        del colours
        if found is None:
            return self
        return eqx.tree_at(lambda p: p.bonds, self, ListedBonds(found.a, found.b, len(self.bodies)))

    @property
    def no_history(self) -> Float[Array, "rows pairs"]:
        """What friction remembers of pairs that have just met: zeros, one per direction of slip and of turning."""
        return jnp.zeros((0 if self.friction is None else self.bodies.dof, self.count(0)))

    def positions(self, q: Array) -> Float[Array, "bodies d"]:
        """Where the bodies are."""
        x = self.bodies.positions(q)[:, : self.dimension]
        return x if self.places is None else self.places + x

    # ---- energies and forces ------------------------------------------------------------------------------------

    def count(self, n: int) -> int:
        """Number of interactions, or the room for them."""
        del n
        return sum(int(np.prod(a.shape)) for a, _ in jax.eval_shape(lambda: self.bonds.numbers))

    def overlaps(self, q: Array) -> list[Array]:
        """How far the bodies of every bond overlap, kind by kind."""
        return [overlap_of(self.law, *each) for each in zip(self.apart(q), self.ends(), self._rests())]

    def energies(self, q: Array) -> Float[Array, " interactions"]:
        """Energy of every interaction, kind after kind."""
        each = zip(self.apart(q), self.ends(), self._rests(), self._weights())
        return jnp.concatenate([jnp.ravel(self._energy(*one)) for one in each])

    def __call__(self, q: Array) -> Array:
        """Total energy."""
        return jnp.sum(self.energies(q))

    def gradient(self, q: Array) -> Array:
        """Derivative of the total energy."""
        return jax.grad(self)(q)

    def slopes(self, q: Array) -> list[Columns]:
        """Derivative of the energy of every bond by its vector from a to b, kind by kind."""
        found = []
        for w, ends, rest, weight in zip(self.apart(q), self.ends(), self._rests(), self._weights()):
            n, _, overlap = _directed(self.law, w, ends, rest)
            pull = -jax.grad(self._total_at)(overlap, ends, weight)
            found.append([pull * e for e in n])
        return found

    def stiffness(self, q: Array) -> list[Columns]:
        """Second derivative of the energy of every bond, the upper triangle row by row, kind by kind.

        E'' n n^T - (E' / distance) (I - n n^T), with the derivatives of the energy E by the overlap.
        """
        found = []
        for w, ends, rest, weight in zip(self.apart(q), self.ends(), self._rests(), self._weights()):
            n, distance, overlap = _directed(self.law, w, ends, rest)
            slope = partial(jax.grad(self._total_at), ends=ends, weight=weight)
            push, second = jax.jvp(slope, (overlap,), (jnp.ones_like(overlap),))
            across = push / distance
            axes = [(i, j) for i in range(len(n)) for j in range(i, len(n))]
            found.append([(second + across) * n[i] * n[j] - (across if i == j else 0.0) for i, j in axes])
        return found

    def scaled(self, factor: ArrayLike) -> PairInteractions:
        """The same interactions, every energy multiplied by `factor` (a number, or one per interaction)."""
        return eqx.tree_at(lambda i: i.weight, self, self.weight * factor)

    def columns(self, x: Array) -> Columns:
        """The entries of a vector for the selected bodies, one array per dimension."""
        rows = self.bodies.positions(x)
        return [rows[:, i] for i in range(self.dimension)]

    def apart(self, q: Array) -> list[Columns]:
        """The vectors of all bonds (their change, where places are given); in an empty place any but zero."""
        moving = isinstance(self.search, CellList)
        x = list(self.positions(q).T) if moving else self.columns(q)
        ends = [self.bonds.ends(column) for column in x]
        kinds = [[b - a for a, b in kind] for kind in zip(*ends)]
        if self.rest is None:
            box = _box_of(self.search, self.dimension)
            kinds = [list(box.nearest_of(tuple(w), 0.0)) for w in kinds]
        there = self.bonds.there
        return [w if own is None else [jnp.where(own, c, 1.0) for c in w] for w, own in zip(kinds, there)]

    def ends(self) -> list[tuple[Any, Any]]:
        """The data of both bodies of every bond, kind by kind."""
        return _ends(self.bonds, self.data)

    def _rests(self) -> list[Rest | None]:
        return [None] * len(self.bonds.there) if self.rest is None else list(self.rest)

    def _weights(self) -> list[Array]:
        """The weights kind by kind."""
        if self.weight.ndim == 0:
            return [self.weight] * len(self.bonds.there)
        shapes = [a.shape for a, _ in jax.eval_shape(lambda: self.bonds.numbers)]
        borders = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
        return [x.reshape(shape) for x, shape in zip(jnp.split(self.weight, borders), shapes)]

    def _energy(self, w: Columns, ends: tuple[Any, Any], rest: Rest | None, weight: Array) -> Array:
        return self._energy_at(overlap_of(self.law, w, ends, rest), ends, weight)

    def _total_at(self, overlap: Array, ends: tuple[Any, Any], weight: Array) -> Array:
        return jnp.sum(self._energy_at(overlap, ends, weight))

    def _energy_at(self, overlap: Array, ends: tuple[Any, Any], weight: Array) -> Array:
        energy = weight * self.law.energy(overlap, *ends)
        there = self.bonds.there[0]
        return energy if there is None else jnp.where(there, energy, 0.0)


def overlap_of(law: PairLaw, w: Columns, ends: tuple[Any, Any], rest: Rest | None) -> Array:
    """How far bodies overlap, from the vectors w between them, or from their change since rest."""
    return _directed(law, w, ends, rest)[2]


def _directed(law: PairLaw, w: Columns, ends: tuple[Any, Any], rest: Rest | None) -> tuple[Columns, Array, Array]:
    """Unit vectors from a to b, distances, and overlaps."""
    whole = w if rest is None else [R + x for R, x in zip(rest.bond, w)]
    distance = norm(whole)
    inverse = 1.0 / distance
    n = [x * inverse for x in whole]
    if rest is None:
        return n, distance, law.length(*ends) - distance
    along = sum((2 * R + x) * x for R, x in zip(rest.bond, w))
    return n, distance, rest.overlap - along / (distance + rest.length)


def norm(w: Columns) -> Array:
    """The lengths of vectors, one array per dimension."""
    return jnp.sqrt(sum(x * x for x in w))


def _given_places(places: Any, count: int) -> Array:
    X = jnp.asarray(reals(places, "places", "one row of coordinates per body"))
    if X.ndim != 2 or X.shape[0] != count:
        msg = f"places must have one row of coordinates per body ({count}), got shape {X.shape}"
        raise ValueError(msg)
    return X


def _dimension(bodies: Bodies, places: Array | None, search: AbstractSearch, given: int | None, turning: bool) -> int:
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


def _box_of(search: AbstractSearch, d: int) -> AbstractBox:
    box = getattr(search, "box", None) or Open()
    box.refuse_dimension(d)
    if box.offset_at(0.0) is not None:
        msg = "Interactions.between: the box must be open or carom.Periodic; a sheared one moves with time"
        raise ValueError(msg)
    return box


def _first_bonds(search: AbstractSearch, count: int, d: int) -> AbstractBonds:
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


def _of_each_body(data: Any, count: int) -> Any:
    """Data of bodies: numbers for all, or arrays (or lists) with one entry per body."""
    data = jax.tree.map(lambda x: jnp.asarray(x, float), data, is_leaf=lambda x: isinstance(x, list))
    for path, leaf in jax.tree_util.tree_leaves_with_path(data):
        if jnp.ndim(leaf) and jnp.shape(leaf) != (count,):
            where, shape = jax.tree_util.keystr(path), jnp.shape(leaf)
            msg = f"data{where} must be one number for all bodies or one per body ({count}), got shape {shape}"
            raise ValueError(msg)
    return data


def _ends(bonds: AbstractBonds, data: Any) -> list[tuple[Any, Any]]:
    """The data of both bodies, kind by kind; numbers for all stay numbers."""
    kinds = len(bonds.there)
    leaves, tree = jax.tree.flatten(data)
    ends = [bonds.ends(leaf) if leaf.ndim else [(leaf, leaf)] * kinds for leaf in leaves]
    return [tuple(tree.unflatten([own[k][side] for own in ends]) for side in (0, 1)) for k in range(kinds)]  # pyright: ignore


def _vectors(search: AbstractSearch, bonds: AbstractBonds, X: Array) -> list[Columns]:
    """The vectors of bonds between places, kind by kind."""
    if isinstance(search, Lattice):
        return [list(jnp.asarray(np.asarray(offset) @ search.vectors)) for offset in search.offsets]
    ((*ends,),) = zip(*(bonds.ends(column) for column in X.T))
    return [list(_box_of(search, X.shape[1]).nearest_of(tuple(b - a for a, b in ends), 0.0))]


def _at_rest(bond: Columns, touching: Array) -> Rest:
    """Bonds at zero displacement; those of bodies that touch but for rounding touch."""
    length = norm(bond)
    overlap = touching - length
    return Rest(bond, length, jnp.where(jnp.abs(overlap) <= _TOUCHING * length, 0.0, overlap))


def _refuse_friction(bodies: Bodies, d: int, places: Array | None) -> None:
    """Friction needs bodies that turn, and coordinates that are positions."""
    if places is not None:
        msg = "friction with memory needs coordinates that are positions: leave out places= (and lattices)"
        raise ValueError(msg)
    if (d, bodies.dof, bodies.coordinates) not in ((2, 3, 3), (3, 6, 6)):
        msg = (
            f"friction with memory needs bodies that turn: dof = 3 in the plane (x, y, angle) or dof = 6 in space "
            f"(x, y, z, three angles), got dof = {bodies.dof} with {d} coordinates of position"
        )
        raise ValueError(msg)


def refuse_places(places: Any) -> None:
    """A lattice has places of its own."""
    if places is not None:
        msg = "Interactions.between: places are those of the lattice, leave out places="
        raise ValueError(msg)
