r"""The closed contacts of a group, in blocks of one colour each, in units of the root of energy.

Open contacts take no part in a step: those that do are brought together, and a loop goes over as many blocks as they
fill. With S^2 the diagonal of the Delassus matrix and M the masses, rows are S^{-1} W M^{-1/2}, impulses S P,
velocities of bodies M^{1/2} u, and the diagonal is one:

    P_i <- prox(P_i - (W_i u + c_i)),   u <- u + W_i^T dP_i

An empty place has no row, no velocity, no body, and keeps its zero impulse.
Letters: b blocks of B places, R = 1 + directions rows, N bodies of f velocities, m rows of the problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from carom.solvers.body_directions import BodyDirections, Colours, Columns, columns
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.tasks import AbstractTask, Places
from carom.sorting import running_sum

_PLACES = {"cpu": 256}  # of a block: more no longer stay in the cache
_MOST = 2**19  # on other devices, where every round of a loop costs time


class Closed(eqx.Module):
    """The closed contacts of a group: of each colour its first block and how many it fills, at most `room`.

    Their rows in the problem, and what a round takes.

    Bodies of all sides stand one after the other: a block gathers and scatters once.
    """

    spans: tuple[Int[Array, " 2"], ...]
    row: Int[Array, "b R B"]
    places: Places
    room: int = eqx.field(static=True)

    @classmethod
    def of(cls, W: BodyDirections, k: int, problem: ContactProblem, contacts: slice, root_M: Array) -> Closed:
        """Those of group k of W, which has these contacts of a problem."""
        own, N, active, friction = W.groups[k], root_M.shape[0], problem.active[contacts], problem.friction[contacts]
        B = cls.block_size(N, len(own.sides))
        number, filled = _places(active, own.colours, B)

        def block(at: Array) -> Any:
            row = W.places(k, at)
            root = jnp.sqrt(_taken(problem.diagonal, row, 1.0))
            bodies = [_taken(side.body, at, N).astype(jnp.int32) for side in own.sides]
            masses = [_taken(root_M, body, 1.0).T for body in bodies]
            rows = [
                [[_taken(x, at) / m / r for x, m in zip(entries, mass)] for entries, r in zip(side.rows, root)]
                for side, mass in zip(own.sides, masses)
            ]
            body = jnp.concatenate(bodies)
            body = jnp.where(body < N, body, N + jnp.arange(body.size, dtype=jnp.int32))
            mu = _taken(friction, at) * root[-1] / root[0]
            return row.astype(jnp.int32), Places(body, rows, _taken(problem.c, row) / root, mu)

        row, places = cls.each_block(block, jnp.sum(filled), number)
        spans = jnp.stack([jnp.cumsum(filled) - filled, filled], axis=1).astype(jnp.int32)
        return cls(tuple(spans), row, places, -(-max(own.colours.sizes, default=0) // B))

    @property
    def used(self) -> Int[Array, ""]:
        """Blocks in use."""
        return jnp.sum(self.spans[-1])

    def gathered(self, x: Float[Array, " m"]) -> Float[Array, "b R B"]:
        """Their entries of all rows of the problem, in blocks."""
        return self.each_block(lambda row: _taken(x, row), self.used, self.row)

    def scattered(self, x: Float[Array, "b R B"], onto: Float[Array, " m"]) -> Float[Array, " m"]:
        """All rows of the problem with theirs, from blocks."""

        def put(k: Array, onto: Array) -> Array:
            return put_rows(block_of(self.row, k), block_of(x, k), onto)

        return jax.lax.fori_loop(0, self.used, put, onto)

    def over(
        self, task: AbstractTask, P: tuple[Array, ...], u: Array, seen: Array | None = None
    ) -> tuple[tuple[Array, ...], Array, list[Array]]:
        """What a task makes of impulses (b, R, B) and velocities, one block after the other, and its counts.

        Blocks see the velocities that those before them left, or else those that are given.
        """
        places, (_, B) = self.places, self.places.friction.shape

        def after(k: Array, at: tuple[Any, Array, Array]) -> tuple[Any, Array, Array]:
            P, u, counts = at
            block = block_of(places, k)
            own = (u if seen is None else seen).at[block.body].get(mode="clip").reshape(-1, B, u.shape[1])
            P_k = jax.lax.optimization_barrier(jnp.stack(block_of(P, k)))
            new, dP, counts = task(block, tuple(P_k), list(map(columns, own)), list(counts), partial(_held, k))
            P = put_block(P, k, tuple(map(jnp.stack, new))) if task.sets else P
            return P, _pushed(u, block, dP) if task.pushes else u, jnp.stack(counts)

        P, u, counts = jax.lax.fori_loop(0, self.used, after, (P, u, jnp.zeros((2, B))))
        return P, u, list(map(task.joined, counts))

    @staticmethod
    def ahead(u: Array, old: Array, beta: Array) -> tuple[Array, Array]:
        """u + beta (u - old), and u."""
        return u + beta * (u - old), u

    @staticmethod
    def block_size(bodies: int, sides: int) -> int:
        """Places of a block: large ones cost fewer rounds of a loop, small ones fill better.

        It follows from the number of bodies, not from the room of lists, on which no bit of a result depends. In a pile
        a colour has a quarter as many closed pairs as there are bodies; of contacts with the world those along a border
        are.
        """
        likely = 3 * bodies // 10 if sides > 1 else 2 * math.isqrt(bodies)
        return max(8, min(_PLACES.get(jax.default_backend(), _MOST), likely))

    @staticmethod
    def each_block(f: Callable[[Any], Any], used: Array, x: Any) -> Any:
        """f of each block of arrays, one after the other; zero for those not in use."""
        count, first = jax.tree.leaves(x)[0].shape[0], jax.tree.map(lambda y: y[0], x)
        empty = jax.tree.map(lambda y: jnp.zeros((count, *y.shape), y.dtype), jax.eval_shape(f, first))
        return jax.lax.fori_loop(0, used, lambda k, all_: put_block(all_, k, f(block_of(x, k))), empty)


def _held(k: Array, x: Float[Array, " B"]) -> Float[Array, " B"]:
    """The same, kept in memory: a compiler would find it anew for everyone who asks for it.

    It is written to a row that is known only when the program runs (the first, k being a number of a block) and read
    back. Stacked with others it would be kept too, but entries of a stack are found one by one, each with a question
    to which row it belongs: a sweep over 1000 disks takes 45 ns per contact that way instead of 34, over 1e4 26 instead
    of 24.
    """
    first = jnp.minimum(k, 0)
    return block_of(jax.lax.optimization_barrier(put_block(jnp.zeros((2, x.size)), first, x)), first)


def _pushed(u: Float[Array, "N f"], block: Places, dP: Columns) -> Float[Array, "N f"]:
    """u with the change that impulses bring about.

    Added, not set: what is set would be read from u in the kernel that writes it, and u be copied for each block.
    """
    push = jnp.concatenate([jnp.stack(side, axis=1) for side in block.push(dP)])
    return u.at[block.body].add(push, mode="drop", unique_indices=True)


def put_rows(row: Array, x: Array, onto: Float[Array, " m"]) -> Float[Array, " m"]:
    """All rows with others in their place."""
    return onto.at[row].set(x, mode="drop")


def _taken(x: Array, at: Array, fill: float = 0.0) -> Array:
    """Entries, `fill` beyond the last."""
    return x.at[at].get(mode="fill", fill_value=fill)


def block_of(x: Any, k: Array) -> Any:
    """Block k, which exists, of all arrays."""
    return jax.tree.map(lambda y: jax.lax.dynamic_index_in_dim(y, k, keepdims=False), x)


def put_block(x: Any, k: Array, new: Any) -> Any:
    """Arrays with another block k, which exists."""
    return jax.tree.map(lambda y, z: jax.lax.dynamic_update_index_in_dim(y, z, k, 0), x, new)


def _places(active: Array, colours: Colours, B: int) -> tuple[Int[Array, "b B"], Array]:
    """Numbers of the closed contacts in blocks of one colour each (too large in an empty place); blocks of colours."""
    K = active.shape[0]
    blocks = min(sum(-(-size // B) for size in colours.sizes), K // B + len(colours.sizes))
    closed, entry = active.astype(jnp.int32), jnp.arange(K, dtype=jnp.int32)
    before = running_sum(closed) - closed
    total = before[-1] + closed[-1]
    starts = jnp.append(before, total)[colours.starts]
    filled = -(-(jnp.append(starts[1:], total) - starts) // B)
    shift = B * (jnp.cumsum(filled) - filled) - starts
    jumps = jnp.zeros(K, jnp.int32).at[colours.starts].add(jnp.diff(shift, prepend=0).astype(jnp.int32), mode="drop")
    place = jnp.where(active, before + running_sum(jumps), blocks * B + entry)
    number = jnp.full(blocks * B, K, jnp.int32).at[place].set(entry, mode="drop", unique_indices=True)
    return number.reshape(blocks, B), filled.astype(jnp.int32)
