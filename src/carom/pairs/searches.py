"""Which pairs of bodies may touch: all of them, or a fixed list; `cells` has the search for many bodies."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from carom.arguments import whole
from carom.pairs.boxes import AbstractBox, Open
from carom.pairs.lists import PAIRS, Capacity, Need, Pairs, listed
from carom.state import reals


class AbstractSearch(eqx.Module):
    """Finds the pairs of bodies that may touch and tells when it has to look again; pure functions of fixed shapes."""

    def capacity(self, count: int, dimension: int) -> Capacity:
        """Room to begin with for `count` bodies."""
        raise NotImplementedError

    def find(self, positions: Float[Array, "bodies d"], t: Any, capacity: Capacity) -> Pairs:
        """The list of pairs at time t."""
        raise NotImplementedError

    def stale(self, pairs: Pairs, positions: Float[Array, "bodies d"], t: Any) -> Array:
        """Whether pairs that are not listed may touch where bodies are now (or will be, if asked beforehand)."""
        raise NotImplementedError


class AllPairs(AbstractSearch):
    """Every pair of bodies, whatever their distance: for few bodies, or forces that reach everywhere.

    Example:
        >>> carom.AllPairs()
    """

    def capacity(self, count: int, dimension: int) -> Capacity:  # noqa: ARG002
        """Room for every pair."""
        return _room(count, count * (count - 1) // 2, count - 1)

    def find(self, positions: Float[Array, "bodies d"], t: Any, capacity: Capacity) -> Pairs:
        """All pairs."""
        a, b = np.triu_indices(positions.shape[0], 1)
        return _given(a, b, positions, t, capacity)

    def stale(self, pairs: Pairs, positions: Float[Array, "bodies d"], t: Any) -> Array:  # noqa: ARG002
        """Never."""
        return jnp.zeros((), bool)


class Fixed(AbstractSearch):
    """The pairs given, whatever their distance; they are sorted, with the lower body first.

    In a `carom.Periodic` box a pair is a body and the nearest image of the other.

    Example:
        >>> carom.Fixed([[0, 1], [1, 2]])
    """

    edges: np.ndarray
    box: AbstractBox

    def __init__(self, edges: Any, box: AbstractBox | None = None):
        given = np.asarray(edges)
        if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
            msg = f"Fixed: edges must be rows of two whole numbers, got shape {given.shape} of {given.dtype}"
            raise ValueError(msg)
        ordered = np.sort(given, 1)
        for wrong, what in ((ordered[:, 0] < 0, "negative"), (ordered[:, 0] == ordered[:, 1], "the same body twice")):
            if wrong.any():
                k = int(np.flatnonzero(wrong)[0])
                msg = f"Fixed: edges[{k}] = {given[k].tolist()}: {what}"
                raise ValueError(msg)
        self.box = Open() if box is None else box
        self.edges, repeats = np.unique(ordered, axis=0, return_counts=True)
        if (repeats > 1).any():
            msg = f"Fixed: edges name the pair {self.edges[np.argmax(repeats > 1)].tolist()} more than once"
            raise ValueError(msg)

    def capacity(self, count: int, dimension: int) -> Capacity:  # noqa: ARG002
        """Room for the edges."""
        if self.edges.size and self.edges.max() >= count:
            msg = f"Fixed: edges name body {self.edges.max()}, but there are {count} bodies, numbered from 0"
            raise ValueError(msg)
        return _room(count, len(self.edges), int(np.bincount(self.edges.ravel()).max(initial=0)))

    def find(self, positions: Float[Array, "bodies d"], t: Any, capacity: Capacity) -> Pairs:
        """The edges."""
        return _given(self.edges[:, 0], self.edges[:, 1], positions, t, capacity)

    def stale(self, pairs: Pairs, positions: Float[Array, "bodies d"], t: Any) -> Array:  # noqa: ARG002
        """Never."""
        return jnp.zeros((), bool)


class Lattice(AbstractSearch):
    """Bodies on a lattice, in an array of some shape, each paired with those at some offsets; found by slices.

    Args:
        shape: bodies along each axis of the array; they are numbered row by row.
        vectors: the step in space along each axis of the array, one row each.
        offsets: steps in the array to the partners of a body, one row each; of two opposite ones only one.
        periodic: whether the last body along an axis is paired with the first, one for all axes or one each.

    Example:
        >>> carom.Lattice((10, 10), [[1, 0], [0.5, 0.75**0.5]], [(1, 0), (0, 1), (1, -1)])  # hexagonal
    """

    shape: tuple[int, ...] = eqx.field(static=True)
    vectors: np.ndarray
    offsets: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    periodic: tuple[bool, ...] = eqx.field(static=True)

    def __init__(self, shape: Any, vectors: Any, offsets: Any, periodic: Any = False):
        self.shape = tuple(whole(n, "Lattice: shape", 1) for n in shape)
        self.vectors = np.asarray(reals(vectors, "Lattice: vectors", "one row per axis"))
        steps = np.asarray(offsets)
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.shape):
            msg = f"Lattice: vectors must be {len(self.shape)} rows, one per axis of shape, got {vectors!r}"
            raise ValueError(msg)
        if steps.ndim != 2 or steps.shape[1] != len(self.shape) or steps.dtype.kind not in "iu":
            msg = f"Lattice: offsets must be rows of {len(self.shape)} whole numbers, one per axis, got {offsets!r}"
            raise ValueError(msg)
        self.offsets = tuple(tuple(int(s) for s in row) for row in steps)
        both = [*self.offsets, *(tuple(-s for s in o) for o in self.offsets)]
        if len(set(both)) < len(both):
            msg = f"Lattice: offsets name a pair twice (or a body with itself), got {self.offsets}"
            raise ValueError(msg)
        self.periodic = tuple(bool(p) for p in np.broadcast_to(periodic, len(self.shape)))
        for n, wraps, reach in zip(self.shape, self.periodic, np.abs(steps).max(0)):
            if n <= (2 * reach if wraps else reach):
                msg = f"Lattice: shape {self.shape} is too small for the offsets {self.offsets}: bodies meet themselves"
                raise ValueError(msg)

    @property
    def places(self) -> Float[np.ndarray, "bodies d"]:
        """Where the bodies are, the first at the origin."""
        return np.indices(self.shape).reshape(len(self.shape), -1).T @ self.vectors

    @property
    def edges(self) -> np.ndarray:
        """The pairs, one row each."""
        places, rows = np.indices(self.shape).reshape(len(self.shape), -1), []
        for offset in self.offsets:
            far = places + np.asarray(offset)[:, None]
            wrapped = far % np.asarray(self.shape)[:, None]
            there = np.all((far == wrapped) | np.asarray(self.periodic)[:, None], 0)
            rows.append(np.ravel_multi_index(np.stack([places, wrapped])[:, :, there].swapaxes(0, 1), self.shape).T)
        return np.concatenate(rows)

    def refuse_count(self, count: int) -> None:
        """Say so if there are not as many bodies as the array has places."""
        if count != int(np.prod(self.shape)):
            msg = f"Lattice: an array of shape {self.shape} has {int(np.prod(self.shape))} places for {count} bodies"
            raise ValueError(msg)

    def capacity(self, count: int, dimension: int) -> Capacity:
        """Room for the pairs."""
        self.refuse_count(count)
        return Fixed(self.edges).capacity(count, dimension)

    def find(self, positions: Float[Array, "bodies d"], t: Any, capacity: Capacity) -> Pairs:
        """The pairs."""
        return Fixed(self.edges).find(positions, t, capacity)

    def stale(self, pairs: Pairs, positions: Float[Array, "bodies d"], t: Any) -> Array:  # noqa: ARG002
        """Never."""
        return jnp.zeros((), bool)


def _room(count: int, pairs: int, busiest: int) -> Capacity:
    """Greedy colouring never needs more than twice the pairs of the busiest body."""
    sizes = (min(pairs, count // 2),) * max(1, 2 * busiest - 1)
    return Capacity(0, max(1, pairs), sizes)


def _given(a: Any, b: Any, positions: Array, t: Any, capacity: Capacity) -> Pairs:
    N, count, P = positions.shape[0], len(a), capacity.pairs
    kept = min(count, P)
    a, b = (jnp.full(P, N, jnp.int32).at[:kept].set(jnp.asarray(x[:kept], jnp.int32)) for x in (a, b))
    need = Need(jnp.zeros((), float), jnp.asarray(count, float), jnp.zeros(0, jnp.int32))
    return listed(a, b, kept, positions, t, PAIRS if count > P else 0, need)
