"""Who acts on whom: the bonds of a lattice, by slices, or a list of pairs of bodies, by their numbers.

A bond joins a body a to a body b. Bonds come in kinds: those of a lattice with one offset are of a kind, a list is one
kind. Arrays of bonds have their own shape per kind, arrays of bodies one entry per body.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from carom.solvers.roots import stored

Ends = tuple[Array, Array]
Columns = list[Array]


class AbstractBonds(eqx.Module):
    """Both ends of every bond, from bodies to bonds and back."""

    @property
    @abc.abstractmethod
    def form(self) -> tuple[int, ...]:
        """The shape in which `acting` and `at_ends` give the entries of bodies."""

    @abc.abstractmethod
    def ends(self, x: Array) -> list[Ends]:
        """The entries of bodies at the ends of bonds, kind by kind."""

    @abc.abstractmethod
    def onto(self, at_ends: Sequence[Ends]) -> Array:
        """The sums of what bonds bring to their ends, one entry per body: the transpose of `ends`."""

    @abc.abstractmethod
    def pulled(self, pulls: Sequence[Array], vectors: Sequence[Sequence[Array]]) -> Float[Array, "bodies d"]:
        """Numbers times the vectors of bonds, summed at b, their opposites at a; kind by kind."""

    @abc.abstractmethod
    def spread(self, x: Array) -> Array:
        """The entries of bodies as `acting` reads them."""

    @abc.abstractmethod
    def spread_bonds(self, kinds: Sequence[Columns]) -> list[Columns]:
        """Numbers of bonds as `acting` reads them, kind by kind."""

    @abc.abstractmethod
    def acting(self, f: Callable[[Columns, Columns], Columns], own: Sequence[Columns], x: Columns) -> Columns:
        """f of every bond's numbers and its difference of vectors, summed at b, its opposite at a; all is spread."""

    @abc.abstractmethod
    def at_ends(self, own: Sequence[Columns]) -> Columns:
        """The sums of the numbers of bonds, spread, at both their ends."""

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

    @property
    def form(self) -> tuple[int, ...]:
        """One after another."""
        return (self.count,)

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

    def spread(self, x: Array) -> Array:
        """As they are."""
        return x

    def spread_bonds(self, kinds: Sequence[Columns]) -> list[Columns]:
        """As they are."""
        return list(kinds)

    def acting(self, f: Callable[[Columns, Columns], Columns], own: Sequence[Columns], x: Columns) -> Columns:
        """Once per bond."""
        ends = [self.ends(column)[0] for column in x]
        return [self.onto([(-g, g)]) for g in f(own[0], [b - a for a, b in ends])]

    def at_ends(self, own: Sequence[Columns]) -> Columns:
        """Once per bond."""
        return [self.onto([(x, x)]) for x in own[0]]

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

    @property
    def form(self) -> tuple[int, ...]:
        """Their array."""
        return self.shape

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
        return stored(self.onto([(-f, f) for f in forces]))

    def spread(self, x: Array) -> Array:
        """With a margin as wide as offsets: what lies across a periodic border, zeros beyond an open one."""
        x = x.reshape(self.shape)
        for axis, wraps in enumerate(self.periodic):
            x = self._margins(x, axis, wraps)
        return x

    def spread_bonds(self, kinds: Sequence[Columns]) -> list[Columns]:
        """Each at its near end, zero where there is none."""
        return [[self.spread(self._padded(x, self._near(o))) for x in kind] for o, kind in zip(self.offsets, kinds)]

    def acting(self, f: Callable[[Columns, Columns], Columns], own: Sequence[Columns], x: Columns) -> Columns:
        """Once at each end: all is read by slices, and stored once."""
        still, total = (0,) * len(self.shape), [jnp.zeros(())] * len(x)
        here = [self._at(c, still) for c in x]
        for o, numbers in zip(self.offsets, own):
            back = tuple(-s for s in o)
            ahead, behind = ([self._at(c, side) for c in x] for side in (o, back))
            near = f([self._at(c, still) for c in numbers], [b - a for a, b in zip(here, ahead)])
            far = f([self._at(c, back) for c in numbers], [b - a for a, b in zip(behind, here)])
            total = [t - n + m for t, n, m in zip(total, near, far)]
        return total

    def at_ends(self, own: Sequence[Columns]) -> Columns:
        """By slices."""
        still = (0,) * len(self.shape)
        back = [tuple(-s for s in o) for o in self.offsets]
        return [sum(self._at(c, still) + self._at(c, o) for o, c in zip(back, kinds)) for kinds in zip(*own)]  # pyright: ignore

    @property
    def there(self) -> list[Array | None]:
        """Every place holds a bond."""
        return [None] * len(self.offsets)

    @property
    def numbers(self) -> list[Ends]:
        """From the places in the array."""
        return self.ends(jnp.arange(int(np.prod(self.shape))))

    def _reach(self, axis: int) -> int:
        """How far offsets go along an axis."""
        return max(abs(o[axis]) for o in self.offsets)

    def _margins(self, x: Array, axis: int, wraps: bool) -> Array:
        """With a margin at both ends of an axis."""
        wide, n = self._reach(axis), self.shape[axis]
        if not wraps:
            return jnp.pad(x, [(wide, wide) if k == axis else (0, 0) for k in range(x.ndim)])
        if wide > n:
            return jnp.take(x, np.arange(-wide, n + wide) % n, axis)
        last, first = jax.lax.slice_in_dim(x, n - wide, n, axis=axis), jax.lax.slice_in_dim(x, 0, wide, axis=axis)
        return jnp.concatenate([last, x, first], axis)

    def _at(self, x: Array, offset: tuple[int, ...]) -> Array:
        """The entries of the bodies at an offset, of a spread array."""
        first = [self._reach(axis) + step for axis, step in enumerate(offset)]
        return jax.lax.slice(x, first, [a + n for a, n in zip(first, self.shape)])

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
