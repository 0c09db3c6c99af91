"""Which pairs of bodies may touch: all of them, or a fixed list; `cells` has the search for many bodies."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from carom.pairs.lists import PAIRS, Capacity, Need, Pairs, listed


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

    Example:
        >>> carom.Fixed([[0, 1], [1, 2]])
    """

    edges: np.ndarray

    def __init__(self, edges: Any):
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


def _room(count: int, pairs: int, busiest: int) -> Capacity:
    """Greedy colouring never needs more than twice the pairs of the busiest body."""
    sizes = (min(pairs, count // 2),) * max(1, 2 * busiest - 1)
    return Capacity(0, max(1, pairs + max(sizes)), sizes)


def _given(a: Any, b: Any, positions: Array, t: Any, capacity: Capacity) -> Pairs:
    N, count, P = positions.shape[0], len(a), capacity.pairs
    kept = min(count, P)
    a, b = (jnp.full(P, N, jnp.int32).at[:kept].set(jnp.asarray(x[:kept], jnp.int32)) for x in (a, b))
    need = Need(jnp.zeros((), float), jnp.asarray(count, float), jnp.zeros(0, jnp.int32))
    return listed(a, b, kept, positions, t, PAIRS if count > P else 0, need)
