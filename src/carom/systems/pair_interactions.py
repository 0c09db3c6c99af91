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
from carom.pairs import AbstractSearch, Capacity, CellList, Lattice, Pairs
from carom.solvers.bonds import AbstractBonds, ListedBonds
from carom.systems.pair_arguments import (
    box_of,
    dimension_of,
    first_bonds,
    given_places,
    of_each_body,
    refuse_friction,
    refuse_places,
)
from carom.systems.shape import refuse_kind, refuse_reach

Columns = list[Array]
_TOUCHING = 16 * np.finfo(float).eps  # of the distance: places that touch but for rounding


class PairLaw(eqx.Module):
    """The energy of two bodies, `energy(overlap, a, b)`, that touch at the distance `length(a, b)`; a, b: their data.

    Both are elementwise: they are given arrays. With `radii` the first of the data is a radius, which must be positive.

    Example:
        >>> soft = carom.laws.PairLaw(lambda overlap, a, b: jnp.exp(overlap), lambda a, b: a + b)
    """

    energy: Callable[..., Array]
    length: Callable[..., Array]
    radii: bool = eqx.field(static=True, default=False)


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
        X = None if places is None else given_places(places, len(bodies))
        d = dimension_of(bodies, X, search, dimension, friction is not None)
        data = of_each_body(data, len(bodies), law.radii)
        refuse_reach(search, 0.5 * jnp.broadcast_to(law.length(data, data), (len(bodies),)))
        box_of(search, d)
        bonds = first_bonds(search, len(bodies), d)
        rest = None
        if X is not None and not isinstance(search, CellList):
            ends = _ends(bonds, data)
            rest = [_at_rest(R, law.length(*own)) for R, own in zip(_vectors(search, bonds, X), ends)]
        if friction is not None:
            refuse_friction(bodies, d, X)
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
        return _total(self, q)

    def gradient(self, q: Array) -> Array:
        """Derivative of the total energy."""
        kinds = [_whole(w, rest) for w, rest in zip(self.apart(q), self._rests())]
        rows, bodies = self.bonds.pulled(self.pulls(q), kinds), self.bodies
        rows = jnp.pad(rows, ((0, 0), (0, bodies.coordinates - self.dimension)))
        if len(bodies) != bodies.count:
            rows = jnp.zeros((bodies.count, bodies.coordinates), rows.dtype).at[bodies._slice].set(rows)
        return rows.reshape(-1)

    def pulls(self, q: Array) -> list[Array]:
        """Derivative of the energy of every bond by its length, over that length, kind by kind."""
        found = []
        for w, ends, rest, weight in zip(self.apart(q), self.ends(), self._rests(), self._weights()):
            _, distance, overlap = _directed(self.law, w, ends, rest)
            found.append(-jax.grad(self._total_at)(overlap, ends, weight) / distance)
        return found

    def slopes(self, q: Array) -> list[Columns]:
        """Derivative of the energy of every bond by its vector from a to b, kind by kind."""
        kinds = zip(self.pulls(q), self.apart(q), self._rests())
        return [[pull * x for x in _whole(w, rest)] for pull, w, rest in kinds]

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
            box = box_of(self.search, self.dimension)
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
    whole = _whole(w, rest)
    distance = norm(whole)
    inverse = 1.0 / distance
    n = [x * inverse for x in whole]
    if rest is None:
        return n, distance, law.length(*ends) - distance
    along = sum((2 * R + x) * x for R, x in zip(rest.bond, w))
    return n, distance, rest.overlap - along / (distance + rest.length)


def _whole(w: Columns, rest: Rest | None) -> Columns:
    """The vectors from a to b."""
    return w if rest is None else [R + x for R, x in zip(rest.bond, w)]


@eqx.filter_custom_jvp
def _total(part: PairInteractions, q: Array) -> Array:
    return jnp.sum(part.energies(q))


@_total.def_jvp
def _total_rule(primals: tuple[Any, Array], tangents: tuple[Any, Array | None]) -> tuple[Array, Array]:
    """Forces are those of `gradient`; what depends on other numbers is left to JAX."""
    (part, q), (numbers, along) = primals, tangents
    change = jnp.zeros((), q.dtype)
    if along is not None:
        change = change + jnp.vdot(part.gradient(q), along)
    if jax.tree.leaves(numbers):
        moving, still = eqx.partition(part, jax.tree.map(lambda x: x is not None, numbers, is_leaf=lambda x: x is None))
        energy = lambda own: jnp.sum(eqx.combine(own, still).energies(q))  # noqa: E731
        change = change + jax.jvp(energy, (moving,), (numbers,))[1]
    return _total(part, q), change


def norm(w: Columns) -> Array:
    """The lengths of vectors, one array per dimension."""
    return jnp.sqrt(sum(x * x for x in w))


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
    return [list(box_of(search, X.shape[1]).nearest_of(tuple(b - a for a, b in ends), 0.0))]


def _at_rest(bond: Columns, touching: Array) -> Rest:
    """Bonds at zero displacement; those of bodies that touch but for rounding touch."""
    length = norm(bond)
    overlap = touching - length
    return Rest(bond, length, jnp.where(jnp.abs(overlap) <= _TOUCHING * length, 0.0, overlap))
