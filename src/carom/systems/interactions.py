"""A potential made of many equal small energies, along a stencil or an index array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from carom.state import Numbers, strong


class Interactions(eqx.Module):
    """The same small energy applied many times: `sum_i weight_i energy(q[i+s0], q[i+s1], ..., data_i)`.

    Args:
        energy: function of one scalar per stencil entry (and of `data`, if given) returning a scalar.
        stencil: offsets, for instance `(0, 1)` for neighbours; uses slices, the fast path.
        indices: integer array with one row of coordinates per interaction; uses gather and scatter.
        data: array, or pytree of arrays, with one entry per interaction.
        weight: scalar or one value per interaction.

    Example:
        >>> fpu = carom.Interactions(lambda a, b: (b - a) ** 2 / 2 + (b - a) ** 4 / 4, stencil=(0, 1))
    """

    energy: Callable[..., Array]
    stencil: tuple[int, ...] | None = eqx.field(static=True)
    indices: np.ndarray | Array | None
    data: Any
    weight: Float[Array, ...]

    def __init__(
        self,
        energy: Callable[..., Array],
        stencil: Sequence[int] | None = None,
        indices: Numbers | None = None,
        data: Any = None,
        weight: Numbers = 1.0,
    ):
        if (stencil is None) == (indices is None):
            msg = "Interactions: give either stencil= or indices=, not both"
            raise ValueError(msg)
        if stencil is not None and (min(stencil) != 0 or list(stencil) != sorted(set(stencil))):
            msg = f"Interactions: stencil must be increasing offsets that start at 0, got {tuple(stencil)}"
            raise ValueError(msg)
        self.energy = energy
        self.stencil = None if stencil is None else tuple(int(s) for s in stencil)
        self.indices = None if indices is None else jnp.atleast_2d(jnp.asarray(indices, int))
        self.data = None if data is None else strong(data)
        self.weight = jnp.asarray(weight, float)

    @property
    def span(self) -> int | None:
        """Distance between the outermost coordinates of one interaction; None if not a stencil."""
        return None if self.stencil is None else self.stencil[-1]

    def count(self, n: int) -> int:
        """Number of interactions among n coordinates."""
        return n - self.stencil[-1] if self.stencil is not None else self.indices.shape[0]  # pyright: ignore

    def energies(self, q: Float[Array, " n"]) -> Float[Array, " interactions"]:
        """Energy of every interaction."""
        if self.stencil is not None:
            m = self.count(q.shape[0])
            local = [jax.lax.slice_in_dim(q, s, s + m) for s in self.stencil]
        else:
            local = [q[column] for column in self.indices.T]  # pyright: ignore
        if self.data is None:
            return self.weight * jax.vmap(self.energy)(*local)
        return self.weight * jax.vmap(self.energy)(*local, self.data)

    def __call__(self, q: Float[Array, " n"]) -> Float[Array, ""]:
        """Total energy."""
        return jnp.sum(self.energies(q))

    def scaled(self, factor: ArrayLike) -> Interactions:
        """The same interactions, every energy multiplied by `factor` (a scalar or one per interaction)."""
        return eqx.tree_at(lambda i: i.weight, self, self.weight * factor)

    def neighbour_hessian(self, q: Float[Array, " n"]) -> tuple[Array, Array]:
        """Diagonal and off-diagonal (between n and n + 1) of the second derivative; for spans 0 and 1 only."""
        local = (q,) if self.span == 0 else (q[:-1], q[1:])
        data = () if self.data is None else (self.data,)
        second = jax.vmap(jax.hessian(self.energy, argnums=tuple(range(len(local)))))(*local, *data)
        if self.span == 0:
            return self.weight * second[0][0], jnp.zeros(q.shape[0] - 1)
        left, right = (jnp.broadcast_to(self.weight * second[i][i], q[1:].shape) for i in (0, 1))
        return jnp.pad(left, (0, 1)) + jnp.pad(right, (1, 0)), self.weight * second[0][1]
