"""Directions of the laws and the Delassus map as operators: what acts on vectors, a matrix only for who asks.

Letters: W rows of the directions, P impulses, M mass, G = W M^{-1} W^T (Delassus).
"""

from __future__ import annotations

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from carom.solvers.small import times


class AbstractDirections(eqx.Module):
    """W, one row per direction; `has_matrix` says whether W and G may be written out."""

    has_matrix: ClassVar[bool]

    @abc.abstractmethod
    def velocity(self, v: Array) -> Float[Array, " m"]:
        """W v: relative velocities, but for the rates of laws that depend on time."""

    @abc.abstractmethod
    def force(self, P: Array) -> Float[Array, " n"]:
        """W^T P: what the impulses of the laws are for the coordinates."""

    @abc.abstractmethod
    def over(self, M: Array) -> AbstractDirections:
        """W M^{-1} for a mass that is a number or one per velocity."""

    @abc.abstractmethod
    def products(self, other: AbstractDirections) -> Float[Array, " m"]:
        """W_i . other_i, row by row."""

    @abc.abstractmethod
    def taken(self, rows: slice) -> AbstractDirections:
        """Some of the rows."""

    @abc.abstractmethod
    def sizes(self) -> AbstractDirections:
        """|W|, entry by entry."""

    @abc.abstractmethod
    def dense(self) -> Float[Array, "m n"]:
        """W as a matrix."""


class DenseDirections(AbstractDirections):
    """W as a matrix."""

    W: Float[Array, "m n"]

    has_matrix = True

    def velocity(self, v: Array) -> Array:
        """W v."""
        return times(self.W, v)

    def force(self, P: Array) -> Array:
        """W^T P."""
        return times(self.W.T, P)

    def over(self, M: Array) -> DenseDirections:
        """W M^{-1} for a mass that is a number or one per velocity."""
        return DenseDirections(self.W / M)

    def products(self, other: AbstractDirections) -> Array:
        """W_i . other_i."""
        return jax.vmap(times)(self.W, other.dense())

    def taken(self, rows: slice) -> DenseDirections:
        """Some of the rows."""
        return DenseDirections(self.W[rows])

    def sizes(self) -> DenseDirections:
        """|W|."""
        return DenseDirections(jnp.abs(self.W))

    def dense(self) -> Array:
        """W."""
        return self.W


class AbstractDelassus(eqx.Module):
    """G = W M^{-1} W^T: the relative velocities that impulses bring about."""

    has_matrix: ClassVar[bool]

    @abc.abstractmethod
    def __matmul__(self, P: Array) -> Float[Array, " m"]:
        """G P."""

    @abc.abstractmethod
    def entries(self, rows: slice, columns: slice) -> Array:
        """The diagonal of a square part of G."""

    @abc.abstractmethod
    def row_sums(self, weights: Array) -> Float[Array, " m"]:
        """sum_j |G_ij| weights_j, or a bound of it."""

    @abc.abstractmethod
    def dense(self) -> Float[Array, "m m"]:
        """G as a matrix."""


class DenseDelassus(AbstractDelassus):
    """G as a matrix."""

    G: Float[Array, "m m"]

    has_matrix = True

    def __matmul__(self, P: Array) -> Array:
        """G P."""
        return times(self.G, P)

    def entries(self, rows: slice, columns: slice) -> Array:
        """The diagonal of a square part of G."""
        return jnp.diagonal(self.G[rows, columns])

    def row_sums(self, weights: Array) -> Array:
        """sum_j |G_ij| weights_j."""
        return jnp.sum(jnp.abs(self.G) * weights, axis=1)

    def dense(self) -> Array:
        """G."""
        return self.G


class DelassusMap(AbstractDelassus):
    """G by what it does, from W and W M^{-1}."""

    W: AbstractDirections
    W_M: AbstractDirections

    has_matrix = False

    def __matmul__(self, P: Array) -> Array:
        """G P = W (M^{-1} W^T P)."""
        return self.W.velocity(self.W_M.force(P))

    def entries(self, rows: slice, columns: slice) -> Array:
        """The diagonal of a square part of G."""
        return self.W.taken(rows).products(self.W_M.taken(columns))

    def row_sums(self, weights: Array) -> Array:
        """The bound |W| |M^{-1} W^T| weights."""
        return self.W.sizes().velocity(self.W_M.sizes().force(weights))

    def dense(self) -> Array:
        """Refused."""
        msg = "these contacts have directions of which no matrix is formed"
        raise TypeError(msg)


def delassus(W: AbstractDirections, W_M: AbstractDirections) -> AbstractDelassus:
    """G = W M^{-1} W^T, a matrix where one may be formed."""
    return DenseDelassus(times(W.dense(), W_M.dense().T)) if W.has_matrix else DelassusMap(W, W_M)
