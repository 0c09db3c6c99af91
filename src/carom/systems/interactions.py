"""A potential made of many equal small energies, along a stencil or an index array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from carom.bodies import Bodies
from carom.pairs import AbstractSearch
from carom.state import Numbers, reals, strong
from carom.systems.pair_friction import CundallStrack
from carom.systems.pair_interactions import PairInteractions, PairLaw
from carom.systems.shape import Wall, refuse_kind
from carom.systems.wall_interactions import WallInteractions

_MATERIALISED = 3  # interactions on at least this part of the coordinates are written to memory once, not recomputed


class Interactions(eqx.Module):
    """The same small energy applied many times: `sum_i weight_i energy(q[i+s0], q[i+s1], ..., data_i)`.

    Args:
        energy: function of one scalar per stencil entry (and of `data`, if given) returning a scalar.
        stencil: offsets, for instance `(0, 1)` for neighbours; uses slices, the fast path.
        indices: integer array with one row of coordinates per interaction; uses gather and scatter.
        data: array, or pytree of arrays, with one entry per interaction.
        weight: scalar or one value per interaction.
        where: with `stencil`, the slice of interactions there are; interaction i touches `q[i + stencil]`.
        relative: two coordinates that enter by their difference alone, so that the forces on them are opposite; they
            are then evaluated once.

    Example:
        >>> fpu = carom.Interactions(lambda a, b: (b - a) ** 2 / 2 + (b - a) ** 4 / 4, stencil=(0, 1))
    """

    energy: Callable[..., Array]
    stencil: tuple[int, ...] | None = eqx.field(static=True)
    indices: np.ndarray | Array | None
    data: Any
    weight: Float[Array, ...]
    where: tuple[int | None, int | None] = eqx.field(static=True)
    relative: bool = eqx.field(static=True)

    def __init__(
        self,
        energy: Callable[..., Array],
        stencil: Sequence[int] | None = None,
        indices: Numbers | None = None,
        data: Any = None,
        weight: Numbers = 1.0,
        where: slice = slice(None),
        relative: bool = False,
    ):
        if (stencil is None) == (indices is None):
            msg = "Interactions: give either stencil= or indices=, not both"
            raise ValueError(msg)
        if stencil is not None and (min(stencil) != 0 or list(stencil) != sorted(set(stencil))):
            msg = f"Interactions: stencil must be increasing offsets that start at 0, got {tuple(stencil)}"
            raise ValueError(msg)
        if where.step not in (None, 1) or (stencil is None and where != slice(None)):
            msg = f"Interactions: where must be a slice without step, and needs stencil=, got {where}"
            raise ValueError(msg)
        if relative and (stencil is None or len(stencil) != 2):
            msg = f"Interactions: relative=True needs a stencil of two offsets, got {stencil}"
            raise ValueError(msg)
        self.energy = energy
        self.stencil = None if stencil is None else tuple(int(s) for s in stencil)
        self.indices = None if indices is None else jnp.atleast_2d(jnp.asarray(indices, int))
        self.data = None if data is None else strong(data)
        self.weight = jnp.asarray(reals(weight, "Interactions: weight", "a number or one per interaction"))
        self.where = (where.start, where.stop)
        self.relative = bool(relative)

    @staticmethod
    def between(
        bodies: Bodies,
        law: PairLaw,
        *,
        search: AbstractSearch,
        data: Any = None,
        places: Any = None,
        dimension: int | None = None,
        friction: CundallStrack | None = None,
    ) -> PairInteractions:
        """The energies of all pairs of bodies that a search names, along the lines that join them.

        Args:
            bodies: how coordinates are cut into bodies; the first of each are its place.
            law: one of `carom.laws`: `hertz_pair`, `power_pair(exponent)`, `spring_pair`, or a `PairLaw` of your own.
            search: `carom.Fixed(edges)`, `carom.Lattice(...)` or `carom.AllPairs()`, or, for bodies that come and go,
                `carom.CellList(...)`.
            data: what the law is given of each body, one number for all or one per body: (radius, modulus) of beads.
            places: where bodies are when their coordinates are zero, one row each; None: coordinates are positions.
            dimension: how many coordinates of a body are its place; None: as many as places or the box have, or all.
            friction: `carom.laws.CundallStrack(...)` for bodies that turn: friction whose pairs remember their slip.

        Example:
            >>> beads, row = carom.Bodies(3, dof=2), [[0, 0], [2, 0], [4, 0]]
            >>> edges = carom.Fixed([[0, 1], [1, 2]])
            >>> carom.Interactions.between(beads, carom.laws.hertz_pair, data=(1.0, 1.0), search=edges, places=row)
        """
        if friction is not None:
            refuse_kind(friction, CundallStrack, "friction", "carom.laws.CundallStrack(...)")
        return PairInteractions.of(bodies, law, data, search, places, dimension, friction)

    @staticmethod
    def against(
        bodies: Bodies,
        wall: Wall,
        law: PairLaw,
        *,
        data: Any,
        material: Any = None,
        friction: CundallStrack | None = None,
    ) -> WallInteractions:
        """The energies of bodies that touch walls, as laws of pairs have them where the other body is flat.

        Args:
            bodies: how coordinates are cut into bodies; the first of each are its place.
            wall: one of `carom.shapes` (`half_plane`, `box`, `drum`, `hopper`, `plate`) or a `carom.Wall`, at rest.
            law: one of `carom.laws`, as for pairs.
            data: (radius, modulus or stiffness) of bodies, one number for all or one per body.
            material: modulus or stiffness of the wall; None: that of the body.
            friction: `carom.laws.CundallStrack(...)` for bodies that turn: friction that remembers its slip.

        Example:
            >>> grains, floor = carom.Bodies(9, dof=3), carom.shapes.half_plane((0, 1))
            >>> rough = carom.laws.CundallStrack(friction=0.5, stiffness=1e4)
            >>> carom.Interactions.against(grains, floor, carom.laws.hertz_pair, data=(0.01, 1e9), friction=rough)
        """
        if friction is not None:
            refuse_kind(friction, CundallStrack, "friction", "carom.laws.CundallStrack(...)")
        return WallInteractions.of(bodies, wall, law, data, material, friction)

    @property
    def span(self) -> int | None:
        """Distance between the outermost coordinates of one interaction; None if not a stencil."""
        return None if self.stencil is None else self.stencil[-1]

    def count(self, n: int) -> int:
        """Number of interactions among n coordinates."""
        return len(self.places(n)) if self.stencil is not None else self.indices.shape[0]  # pyright: ignore

    def places(self, n: int) -> range:
        """The stencil's positions i among n coordinates."""
        return range(*slice(*self.where).indices(max(0, n - self.stencil[-1])))  # pyright: ignore

    def energies(self, q: Float[Array, " n"]) -> Float[Array, " interactions"]:
        """Energy of every interaction."""
        if self.stencil is not None:
            at = self.places(q.shape[0])
            local = [jax.lax.slice_in_dim(q, s + at.start, s + at.start + len(at)) for s in self.stencil]
        else:
            local = [q[column] for column in self.indices.T]  # pyright: ignore
        if self.data is None:
            return self.weight * jax.vmap(self.energy)(*local)
        return self.weight * jax.vmap(self.energy)(*local, self.data)

    def __call__(self, q: Float[Array, " n"]) -> Float[Array, ""]:
        """Total energy."""
        return jnp.sum(self.energies(q))

    def gradient(self, q: Float[Array, " n"]) -> Float[Array, " n"]:
        """Derivative of the total energy."""
        if self.stencil is None:
            return jax.grad(self)(q)
        at = self.places(q.shape[0])
        return self.gradient_of(q, at.start, at.stop, self.data, self.weight)

    def gradient_of(self, q: Array, start: int, stop: int, data: Any, weight: Array) -> Array:
        """Derivative of the energy of the interactions [start, stop) along the stencil, with their data and weight."""
        n, m, stencil = q.shape[0], stop - start, self.stencil
        local = [jax.lax.slice_in_dim(q, s + start, s + stop) for s in stencil]  # pyright: ignore
        sides = range(1 if self.relative else len(local))
        own = () if data is None else (data,)
        slopes = jax.vmap(jax.grad(self.energy, argnums=tuple(sides)))(*local, *own)
        if not self.relative:
            padding = [(start + s, n - start - s - m) for s in stencil]  # pyright: ignore
            return sum((jnp.pad(weight * g, pad) for g, pad in zip(slopes, padding)), jnp.zeros(()))
        d = stencil[1]  # pyright: ignore
        once = weight * slopes[0]
        if _MATERIALISED * m >= n:
            once = jax.lax.optimization_barrier(once)
        return jnp.pad(once, (start, n - start - m)) - jnp.pad(once, (start + d, n - start - m - d))

    def is_opposite(self, q: Float[Array, " n"]) -> Array:
        """Whether the forces on the two coordinates of every interaction are opposite, as `relative` says."""
        whole = jax.grad(self)(q)
        return jnp.max(jnp.abs(whole - self.gradient(q))) <= 1e-9 * jnp.max(jnp.abs(whole)) + 1e-300

    def scaled(self, factor: ArrayLike) -> Interactions:
        """The same interactions, every energy multiplied by `factor` (a scalar or one per interaction)."""
        return eqx.tree_at(lambda i: i.weight, self, self.weight * factor)

    def neighbour_hessian(self, q: Float[Array, " n"]) -> tuple[Array, Array]:
        """Diagonal and off-diagonal (between n and n + 1) of the second derivative; for spans 0 and 1 only."""
        n, at = q.shape[0], self.places(q.shape[0])
        local = [jax.lax.slice_in_dim(q, s + at.start, s + at.stop) for s in self.stencil]  # pyright: ignore
        data = () if self.data is None else (self.data,)
        second = jax.vmap(jax.hessian(self.energy, argnums=tuple(range(len(local)))))(*local, *data)
        sides = [jnp.broadcast_to(self.weight * second[i][i], local[0].shape) for i in range(len(local))]
        diagonal = sum(jnp.pad(x, (at.start + i, n - at.stop - i)) for i, x in enumerate(sides))
        if self.span == 0:
            return jnp.asarray(diagonal), jnp.zeros(n - 1)
        return jnp.asarray(diagonal), jnp.pad(self.weight * second[0][1], (at.start, n - 1 - at.stop))
