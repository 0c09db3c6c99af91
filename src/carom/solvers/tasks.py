r"""What is done with the contacts of a block, each by itself: relaxed, pushed, or looked at.

Here it is written once, entry by entry: whole blocks are given on a CPU, pieces of them within a kernel on a GPU.
Letters: B places, R = 1 + directions rows, N bodies of f velocities.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from functools import reduce
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from carom.solvers.body_directions import Columns, Rows, added, push_of, velocity_of
from carom.solvers.contact_problem import TINY

Held = Callable[[Array], Array]  # the same, found once for all who ask for it
Found = tuple[tuple[Columns, ...], Columns, Columns]


class Places(eqx.Module):
    """Contacts: their bodies (of all sides, one after the other), rows, velocity without impulses, and friction."""

    body: Int[Array, " sides*B"]
    rows: Sequence[Rows]
    c: Float[Array, "R B"] | Columns
    friction: Float[Array, " B"]

    def wanted(self, P: Columns, own: list[Columns], held: Held, r: Array | float = 1.0) -> list[Array]:
        """prox(P - r (W u + c)), with the velocities of the own bodies."""
        x = [p - r * g for p, g in zip(P, self.velocity(own))]
        normal = held(jnp.where(x[0] > 0, x[0], 0.0))
        return [normal, *map(held, _within(x[1:], self.friction * normal))]

    def velocity(self, own: list[Columns]) -> list[Array]:
        """W u + c, with the velocities of the own bodies."""
        return [g + c for g, c in zip(velocity_of(self.rows, own), self.c)]

    def push(self, dP: Columns) -> list[list[Array]]:
        """What impulses are to the bodies, side by side."""
        return [push_of(rows, dP) for rows in self.rows]


class AbstractTask(eqx.Module):
    """What is done with contacts that do not act on each other.

    From some impulses of each, the velocities of its bodies and two counts: those impulses anew (where it `sets` them),
    the impulses that act on its bodies (where it `pushes`), and the counts, which are `joined` to one at the end.
    """

    sets: ClassVar[bool] = False
    pushes: ClassVar[bool] = False
    joined: ClassVar[Callable[..., Array]] = staticmethod(jnp.sum)

    @abc.abstractmethod
    def __call__(
        self, places: Places, P: tuple[Columns, ...], own: list[Columns], counts: Columns, held: Held
    ) -> Found:
        """Impulses, impulses that act, counts."""


class Relax(AbstractTask):
    """A round from y = P + beta (P - before): new impulses and P; counts |y - new|^2 and (y - new) . (new - P)."""

    beta: Array
    r: Array | float
    sets, pushes = True, True

    def __call__(
        self, places: Places, P: tuple[Columns, ...], own: list[Columns], counts: Columns, held: Held
    ) -> Found:
        """A round."""
        now, before = P
        y = [a + self.beta * (a - b) for a, b in zip(now, before)]
        wanted = places.wanted(y, own, held, self.r)
        down = [a - b for a, b in zip(y, wanted)]
        size, turn = added(d * d for d in down), added(d * (a - b) for d, a, b in zip(down, wanted, now))
        return (wanted, now), [-d for d in down], [counts[0] + size, counts[1] + turn]


class Push(AbstractTask):
    """The velocities that impulses bring about."""

    pushes = True

    def __call__(
        self, places: Places, P: tuple[Columns, ...], own: list[Columns], counts: Columns, held: Held
    ) -> Found:
        """Velocities."""
        del places, own, held
        return P, P[0], counts


class Meet(AbstractTask):
    """Relative velocities, in place of impulses."""

    sets = True

    def __call__(
        self, places: Places, P: tuple[Columns, ...], own: list[Columns], counts: Columns, held: Held
    ) -> Found:
        """W u + c."""
        del held
        return (places.velocity(own),), P[0], counts


class Look(AbstractTask):
    """The largest defect, and the largest impulse and velocity: what a residual is made of; infinite without numbers.

    The larger of two numbers is the one that is a number, within a kernel.
    """

    joined = staticmethod(jnp.max)

    def __call__(
        self, places: Places, P: tuple[Columns, ...], own: list[Columns], counts: Columns, held: Held
    ) -> Found:
        """Both."""
        defects = [jnp.abs(p - new) for p, new in zip(P[0], places.wanted(P[0], own, held))]
        sizes = [jnp.abs(p) + jnp.abs(c) for p, c in zip(P[0], places.c)]
        found = [[jnp.where(x < jnp.inf, x, jnp.inf) for x in each] for each in (defects, sizes)]
        return P, P[0], [reduce(jnp.maximum, each, so_far) for so_far, each in zip(counts, found)]


def _within(x: Columns, a: Array) -> list[Array]:
    """The nearest point of an interval (one column) or a disk (two) of radius a."""
    if len(x) < 2:
        return [jnp.where(y < -a, -a, jnp.where(y > a, a, y)) for y in x]
    size = jnp.sqrt(jnp.maximum(added(y * y for y in x), TINY))
    return [jnp.where(size > a, y * (a / size), y) for y in x]
