"""Who acts on whom: the bonds of a lattice, by slices, or a list of pairs of bodies, by their numbers.

A bond joins a body a to a body b. Bonds come in kinds: those of a lattice with one offset are of a kind, a list is one
kind. Arrays of bonds have their own shape per kind, arrays of bodies one entry per body.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

Ends = tuple[Array, Array]


class AbstractBonds(eqx.Module):
    """Both ends of every bond, from bodies to bonds and back."""

    @abc.abstractmethod
    def ends(self, x: Array) -> list[Ends]:
        """The entries of bodies at the ends of bonds, kind by kind."""

    @abc.abstractmethod
    def onto(self, at_ends: Sequence[Ends]) -> Array:
        """The sums of what bonds bring to their ends, one entry per body: the transpose of `ends`."""

    @abc.abstractmethod
    def pulled(self, pulls: Sequence[Array], vectors: Sequence[Sequence[Array]]) -> Float[Array, "bodies d"]:
        """Numbers times the vectors of bonds, summed at b, their opposites at a; kind by kind."""

    @property
    @abc.abstractmethod
    def there(self) -> list[Array | None]:
        """Which places hold a bond, kind by kind; None: all."""

    @property
    @abc.abstractmethod
    def numbers(self) -> list[Ends]:
        """The bodies at the ends, kind by kind."""


class ListedBonds(AbstractBonds):
    """Pairs of bodies by their numbers; in an empty place both are the number of bodies."""

    a: Int[Array, " K"]
    b: Int[Array, " K"]
    count: int = eqx.field(static=True)

    def ends(self, x: Array) -> list[Ends]:
        """By index."""
        return [(x.at[self.a].get(mode="clip"), x.at[self.b].get(mode="clip"))]

    def onto(self, at_ends: Sequence[Ends]) -> Array:
        """By index; sums of one body come one after another."""
        ((f, g),) = at_ends
        total = jnp.zeros((self.count, *f.shape[1:]), f.dtype)
        return total.at[self.a].add(f, mode="drop").at[self.b].add(g, mode="drop")

    def pulled(self, pulls: Sequence[Array], vectors: Sequence[Sequence[Array]]) -> Float[Array, "bodies d"]:
        """Direction by direction."""
        forces = [pulls[0] * x for x in vectors[0]]
        return jnp.stack([self.onto([(-f, f)]) for f in forces], 1)

    @property
    def there(self) -> list[Array | None]:
        """Lists have room to spare."""
        return [self.a < self.count]

    @property
    def numbers(self) -> list[Ends]:
        """The list itself."""
        return [(self.a, self.b)]


class LatticeBonds(AbstractBonds):
    """Bodies in an array of some shape, each joined to those at some offsets; periodic along some axes."""

    shape: tuple[int, ...] = eqx.field(static=True)
    offsets: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    periodic: tuple[bool, ...] = eqx.field(static=True)

    def ends(self, x: Array) -> list[Ends]:
        """By slices; along a periodic axis the far end is rolled into its place."""
        whole = x.reshape(*self.shape, *x.shape[1:])
        return [(whole[self._near(o)], self._rolled(whole, o, -1)[self._far(o)]) for o in self.offsets]

    def onto(self, at_ends: Sequence[Ends]) -> Array:
        """By padding."""
        total = sum(
            self._padded(f, self._near(o)) + self._rolled(self._padded(g, self._far(o)), o, 1)
            for o, (f, g) in zip(self.offsets, at_ends)
        )
        return jnp.reshape(total, (-1, *jnp.shape(total)[len(self.shape) :]))

    def pulled(self, pulls: Sequence[Array], vectors: Sequence[Sequence[Array]]) -> Float[Array, "bodies d"]:
        """All directions at once: XLA stores what is spread over them, where it would repeat roots at every end."""
        forces = [pull[..., None] * jnp.stack(w, -1) for pull, w in zip(pulls, vectors)]
        return self.onto([(-f, f) for f in forces])

    @property
    def there(self) -> list[Array | None]:
        """Every place holds a bond."""
        return [None] * len(self.offsets)

    @property
    def numbers(self) -> list[Ends]:
        """From the places in the array."""
        return self.ends(jnp.arange(int(np.prod(self.shape))))

    def _steps(self, offset: tuple[int, ...]) -> list[int]:
        """The offset along open axes."""
        return [0 if wraps else step for step, wraps in zip(offset, self.periodic)]

    def _near(self, offset: tuple[int, ...]) -> tuple[slice, ...]:
        return tuple(slice(max(0, -s), n - max(0, s)) for n, s in zip(self.shape, self._steps(offset)))

    def _far(self, offset: tuple[int, ...]) -> tuple[slice, ...]:
        return tuple(slice(max(0, s), n - max(0, -s)) for n, s in zip(self.shape, self._steps(offset)))

    def _rolled(self, x: Array, offset: tuple[int, ...], sign: int) -> Array:
        """Moved along the periodic axes."""
        for axis, (step, wraps) in enumerate(zip(offset, self.periodic)):
            x = jnp.roll(x, sign * step, axis) if wraps and step else x
        return x

    def _padded(self, x: Array, place: tuple[slice, ...]) -> Array:
        pads = [(s.start, n - s.stop) for s, n in zip(place, self.shape)]
        return jnp.pad(x, [*pads, *[(0, 0)] * (x.ndim - len(pads))])
