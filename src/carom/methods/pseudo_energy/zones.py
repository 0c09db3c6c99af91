"""Which particles and interactions step at which rate: the sets of [Marazzato2019 sec. 4.1] for any number of levels.

Particles of level l step with h / (r_1 ... r_l), and an interaction is evaluated at the rate of its fastest particle:
that of the slow and mixed particles at the fine rate, as (23) and (25b) ask. So the levels of the particles settle
everything. Naming fast *interactions* gives the level to all particles they touch; naming fast *particles* (that feel
only fast forces) names every interaction that touches them. In both cases the mixed particles come out by themselves.

A zone is what one level needs: a window of the coordinates that holds its particles and a halo, the slower particles
that its interactions touch. Zones of ranges use slices, other sets gather and scatter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import names_of
from carom.systems.flat_pairs import flat
from carom.systems.interactions import Interactions
from carom.systems.pair_interactions import PairInteractions
from carom.systems.system import System

Named = str | tuple[str, ...] | tuple[int, ...]  # a range of particles is the string "start:stop"


class RangeZone(eqx.Module):
    """Particles [start, stop) and a halo of `left` and `right` ones beside them; `below` starts the window above."""

    start: int = eqx.field(static=True)
    stop: int = eqx.field(static=True)
    left: int = eqx.field(static=True)
    right: int = eqx.field(static=True)
    below: int = eqx.field(static=True)
    runs: tuple[tuple[str, int, int], ...] = eqx.field(static=True)

    @property
    def first(self) -> int:
        """Where the window starts among all coordinates."""
        return self.start - self.left

    def take(self, x: Array) -> Array:
        """The window out of that of the level above."""
        return x[self.first - self.below : self.stop + self.right - self.below] if x.ndim else x

    def put(self, x: Array, window: Array) -> Array:
        """The level above with this zone's particles replaced."""
        own = window[self.left : window.size - self.right]
        return jnp.concatenate([x[: self.start - self.below], own, x[self.stop - self.below :]])

    def fill(self, everything: Array, window: Array) -> Array:
        """All coordinates with those of the window replaced."""
        return jax.lax.dynamic_update_slice(everything, window, (self.first,))

    def pick(self, everything: Array) -> Array:
        """The window out of all coordinates."""
        return everything[self.first : self.stop + self.right]

    def keep(self, new: Array, old: Array | float) -> Array:
        """`new` on the zone's particles, `old` on its halo."""
        i = jnp.arange(new.size)
        return (
            new if not self.left + self.right else jnp.where((i >= self.left) & (i < new.size - self.right), new, old)
        )

    def halo(self, a: Array) -> Array:
        """The entries of the halo."""
        return jnp.concatenate([a[: self.left], a[a.size - self.right :]])

    def add_halo(self, x: Array, a: Array) -> Array:
        """The level above with `a` added where the halo lies."""
        x = x.at[self.first - self.below : self.start - self.below].add(a[: self.left])
        return x.at[self.stop - self.below : self.stop + self.right - self.below].add(a[self.left :])

    def force(self, system: System, q: Array, n: int) -> Array:
        """Force of the interactions of this level, q the window."""
        total = jnp.zeros_like(q)
        for name, k0, k1 in self.runs:
            part = interactions_of(system)[name]
            at = part.places(n)
            pick = lambda x, at=at, k0=k0, k1=k1: x[k0 - at.start : k1 - at.start] if jnp.ndim(x) else x  # noqa: E731
            data = jax.tree.map(pick, part.data)
            total = total - part.gradient_of(q, k0 - self.first, k1 - self.first, data, pick(part.weight))
        return total

    def count(self) -> int:
        """Interactions of this level."""
        return sum(k1 - k0 for _, k0, k1 in self.runs)


class SetZone(eqx.Module):
    """Any set of particles: indices of the window among all and in the window above, rows of the interactions."""

    everywhere: Array
    window: Array
    particles: Array
    inside: Array
    outside: Array
    chosen: dict[str, Array]
    rows: dict[str, Array]

    def take(self, x: Array) -> Array:
        """The window out of that of the level above."""
        return x[self.window] if x.ndim else x

    def put(self, x: Array, window: Array) -> Array:
        """The level above with this zone's particles replaced."""
        return x.at[self.window[self.inside]].set(window[self.inside])

    def fill(self, everything: Array, window: Array) -> Array:
        """All coordinates with those of the window replaced."""
        return everything.at[self.everywhere].set(window)

    def pick(self, everything: Array) -> Array:
        """The window out of all coordinates."""
        return everything[self.everywhere]

    def keep(self, new: Array, old: Array | float) -> Array:
        """`new` on the zone's particles, `old` on its halo."""
        return jnp.where(self.particles, new, old)

    def halo(self, a: Array) -> Array:
        """The entries of the halo."""
        return a[self.outside]

    def add_halo(self, x: Array, a: Array) -> Array:
        """The level above with `a` added where the halo lies."""
        return x.at[self.window[self.outside]].add(a)

    def force(self, system: System, q: Array, n: int) -> Array:
        """Force of the interactions of this level, q the window."""
        del n
        return -jax.grad(lambda x: self._energy(system, x))(q)

    def _energy(self, system: System, q: Array) -> Array:
        total = jnp.zeros(())
        for name, rows in self.rows.items():
            part = interactions_of(system)[name]
            pick = lambda x, name=name: x[self.chosen[name]] if jnp.ndim(x) else x  # noqa: E731
            data = () if part.data is None else (jax.tree.map(pick, part.data),)
            total = total + jnp.sum(pick(part.weight) * jax.vmap(part.energy)(*[q[c] for c in rows.T], *data))
        return total

    def count(self) -> int:
        """Interactions of this level."""
        return sum(rows.shape[0] for rows in self.rows.values())


def named(fast: Any) -> Named:
    """What a user calls fast, in a form that can be compared and stored."""
    if isinstance(fast, str):
        return fast
    if isinstance(fast, slice):
        if fast.step not in (None, 1) or fast.start is None or fast.stop is None or not 0 <= fast.start < fast.stop:
            msg = f"fast: a slice needs 0 <= start < stop and no step, got {fast}"
            raise ValueError(msg)
        return f"{fast.start}:{fast.stop}"
    items = tuple(fast) if isinstance(fast, (Sequence, np.ndarray)) else ()
    if items and all(isinstance(x, str) for x in items):
        return items
    if items and all(isinstance(x, (int, np.integer)) and x >= 0 for x in items):
        whole = tuple(sorted({int(x) for x in items}))
        return f"{whole[0]}:{whole[-1] + 1}" if whole[-1] - whole[0] + 1 == len(whole) else whole
    msg = f"fast must name parts of the potential or list particles (a slice, a range or indices), got {fast!r}"
    raise TypeError(msg)


def levels(system: System, n: int, fast: Sequence[Named], shift: int) -> np.ndarray:
    """The level of every coordinate, 0 for the slow ones; raises where there is no split."""
    touched = {name: interaction_rows(part, n) for name, part in interactions_of(system).items()}
    level = np.zeros(n, int)
    for depth, name in enumerate(fast):
        inside = _grown(_seed(name, touched, n), touched, shift)
        if depth and not np.all(level[inside] == depth):
            msg = f"fast: level {depth + 1} must lie inside level {depth}"
            raise ValueError(msg)
        level[inside] = depth + 1
    if np.all(level > 0):
        msg = "fast: no slow particle is left: every particle feels a fast interaction, so there is nothing to gain"
        raise ValueError(msg)
    return level


def interactions_of(system: System) -> dict[str, Interactions]:
    """The parts of the potential, refused unless all are interactions."""
    fixed = {n: flat(p) for n, p in system.potential.items() if isinstance(p, PairInteractions) and not p.is_listed}
    parts = {**system.potential, **fixed}
    functions = [name for name, part in parts.items() if not isinstance(part, Interactions)]
    if functions or not system.potential:
        msg = (
            "AsynchronousPseudoEnergy needs a potential given as carom.Interactions, to know which particles "
            f"they touch; {names_of(functions)} is a function"
        )
        raise ValueError(msg)
    return parts  # pyright: ignore


def interaction_rows(part: Interactions, n: int) -> np.ndarray:
    """The coordinates of every interaction, one row each."""
    if part.stencil is None:
        return np.asarray(part.indices)
    return np.asarray(part.places(n), int)[:, None] + np.asarray(part.stencil)


def _seed(name: Named, touched: dict[str, np.ndarray], n: int) -> np.ndarray:
    """The particles that step fast: all that fast interactions touch."""
    inside = np.zeros(n, bool)
    particles = _particles(name)
    if particles is None:
        for part in [name] if isinstance(name, str) else name:
            inside[_rows_of(part, touched).ravel()] = True  # pyright: ignore
        return inside
    if particles[-1] >= n:
        msg = f"fast: particle {particles[-1]} does not exist; there are {n}"
        raise ValueError(msg)
    inside[particles] = True
    return _grown(inside, touched, 1)


def _rows_of(part: str, touched: dict[str, np.ndarray]) -> np.ndarray:
    """The coordinates of the interactions of a part, or of a range of them."""
    if part in touched:
        return touched[part]
    match = re.fullmatch(r"(.*)\[(\d+):(\d+)\]", part)
    if match is None or match[1] not in touched:
        msg = f"fast names '{part}', but the potential has the parts {names_of(list(touched))}"
        raise ValueError(msg)
    rows = touched[match[1]]
    start, stop = int(match[2]), int(match[3])
    if not start < stop <= len(rows):
        msg = f"fast names '{part}', but '{match[1]}' has {len(rows)} interactions, counted from 0"
        raise ValueError(msg)
    return rows[start:stop]


def _particles(name: Named) -> np.ndarray | None:
    if isinstance(name, str) and (match := re.fullmatch(r"(\d+):(\d+)", name)):
        return np.arange(int(match[1]), int(match[2]))
    return None if isinstance(name, str) or isinstance(name[0], str) else np.asarray(name)


def _grown(inside: np.ndarray, touched: dict[str, np.ndarray], rings: int) -> np.ndarray:
    for _ in range(rings):
        grown = inside.copy()
        for rows in touched.values():
            grown[rows[inside[rows].any(1)].ravel()] = True
        inside = grown
    return inside


def zones(system: System, level: np.ndarray) -> tuple[RangeZone, ...] | tuple[SetZone, ...]:
    """One zone per level: ranges if every level is one, other sets else."""
    rows = {name: interaction_rows(part, level.size) for name, part in interactions_of(system).items()}
    rates = {name: level[r].max(1, initial=0) for name, r in rows.items()}
    depth = range(level.max() + 1)
    insides = [level >= d for d in depth]
    windows = []
    for d in depth:
        window = insides[d].copy()
        for name, r in rows.items():
            window[r[rates[name] >= d].ravel()] = True
        windows.append(window)
    sliced = all(part.stencil is not None for part in interactions_of(system).values())
    if sliced and all(_is_range(inside) for inside in insides):
        return _range_zones(system, level, insides, windows, rates)
    return tuple(_set_zone(d, insides, windows, rows, rates) for d in depth)


def _is_range(mask: np.ndarray) -> bool:
    return np.count_nonzero(np.diff(mask.astype(int), prepend=0, append=0)) == 2


def _range_zones(system: System, level: np.ndarray, insides: list, windows: list, rates: dict) -> tuple[RangeZone, ...]:
    found, below = [], 0
    for d, (inside, window) in enumerate(zip(insides, windows)):
        own, hull = np.flatnonzero(inside), np.flatnonzero(window)
        start, stop, first, end = (int(i) for i in (own[0], own[-1] + 1, hull[0], hull[-1] + 1))
        runs = []
        for name, rate in rates.items():
            edges = (
                np.flatnonzero(np.diff((rate == d).astype(int), prepend=0, append=0))
                + interactions_of(system)[name].places(level.size).start
            )
            runs += [(name, int(a), int(b)) for a, b in zip(edges[::2], edges[1::2])]
        found.append(RangeZone(start, stop, start - first, end - stop, below, tuple(runs)))
        below = first
    return tuple(found)


def _set_zone(d: int, insides: list, windows: list, rows: dict, rates: dict) -> SetZone:
    above = np.flatnonzero(windows[d - 1]) if d else np.arange(windows[0].size)
    here = np.flatnonzero(windows[d]) if d else above
    local = np.zeros(windows[0].size, int)
    local[here] = np.arange(here.size)
    particles = insides[d][here]
    chosen = {name: np.flatnonzero(rate == d) for name, rate in rates.items() if (rate == d).any()}
    return SetZone(
        everywhere=jnp.asarray(here),
        window=jnp.asarray(np.searchsorted(above, here)),
        particles=jnp.asarray(particles),
        inside=jnp.asarray(np.flatnonzero(particles)),
        outside=jnp.asarray(np.flatnonzero(~particles)),
        chosen={name: jnp.asarray(c) for name, c in chosen.items()},
        rows={name: jnp.asarray(local[rows[name][c]]) for name, c in chosen.items()},
    )
