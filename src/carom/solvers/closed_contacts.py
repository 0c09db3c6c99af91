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
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from carom.solvers.body_directions import BodyDirections, Colours, Rows, added, push_of, velocity_of
from carom.solvers.contact_problem import TINY, ContactProblem
from carom.sorting import running_sum

_PLACES = {"cpu": 256}  # of a block: more no longer stay in the cache
_MOST = 2**19  # on other devices, where every round of a loop costs time


class Closed(eqx.Module):
    """The closed contacts of a group: how many blocks they fill, their rows in the problem, what a round takes.

    Bodies of all sides stand one after the other: a block gathers and scatters once.
    """

    used: Int[Array, ""]
    row: Int[Array, "b R B"]
    body: Int[Array, "b sides*B"]
    rows: list[Rows]
    c: Float[Array, "b R B"]
    friction: Float[Array, "b B"]
    root: Float[Array, "b R B"]

    @classmethod
    def of(cls, W: BodyDirections, k: int, problem: ContactProblem, contacts: slice, root_M: Array) -> Closed:
        """Those of group k of W, which has these contacts of a problem."""
        own, N, active, friction = W.groups[k], root_M.shape[0], problem.active[contacts], problem.friction[contacts]
        number, used = _places(active, own.colours, block_size(N, len(own.sides)))

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
            return row.astype(jnp.int32), body, rows, _taken(problem.c, row) / root, mu, root

        empty = jax.tree.map(lambda x: jnp.zeros((len(number), *x.shape), x.dtype), jax.eval_shape(block, number[0]))
        put = lambda k, all_: put_block(all_, k, block(block_of(number, k)))  # noqa: E731
        return cls(used, *jax.lax.fori_loop(0, used, put, empty))

    def gathered(self, P: Float[Array, " m"]) -> Float[Array, "b R B"]:
        """Their impulses, in blocks."""

        def put(k: Array, all_: Array) -> Array:
            return put_block(all_, k, _taken(P, block_of(self.row, k)) * block_of(self.root, k))

        return jax.lax.fori_loop(0, self.used, put, jnp.zeros_like(self.c))

    def scattered(self, P: Float[Array, "b R B"], onto: Float[Array, " m"]) -> Float[Array, " m"]:
        """All impulses of the problem with theirs, from blocks."""

        def put(k: Array, all_: Array) -> Array:
            return all_.at[block_of(self.row, k)].set(block_of(P, k) / block_of(self.root, k), mode="drop")

        return jax.lax.fori_loop(0, self.used, put, onto)

    def over_blocks(self, body: Callable[[Closed, Array, Any], Any], x: Any) -> Any:
        """x after `body(block, its number, x)` of one used block after the other."""
        rest = (self.row, self.body, self.rows, self.c, self.friction, self.root)
        return jax.lax.fori_loop(0, self.used, lambda k, x: body(Closed(self.used, *block_of(rest, k)), k, x), x)

    def relaxed(
        self, P: tuple[Array, Array], beta: Array, u: Array, seen: Callable[[Array], Array], r: Array | float = 1.0
    ) -> tuple[tuple[Array, Array], Array, Array]:
        """A round from P + beta (P - before), with P the impulses (b, R, B) and those before: both after it.

        Also the velocities of bodies after it (a block sees `seen(u)` of them) and |y - new|^2, (y - new) . (new - P).
        What is read of P is kept together: then P is overwritten block by block, and nobody copies it.
        """

        def relax(block: Closed, k: Array, at: tuple[Any, Array, Array]) -> tuple[Any, Array, Array]:
            both, u, products = at
            now, before = jax.lax.optimization_barrier(jnp.stack(block_of(both, k)))
            y = now + beta * (now - before)
            wanted = block.wanted(y, seen(u), r)
            down = y - wanted
            products = products + jnp.stack([added(down * down), added(down * (wanted - now))])
            return put_block(both, k, (wanted, now)), block.pushed(u, -down), products

        P, u, products = self.over_blocks(relax, (P, u, jnp.zeros((2, self.c.shape[2]))))
        return P, u, jnp.sum(products, axis=1)

    # ---- one block: arrays without b ---------------------------------------------------------------------------------

    def wanted(self, P: Float[Array, "R B"], u: Float[Array, "N f"], r: Array | float = 1.0) -> Float[Array, "R B"]:
        """prox(P - r (W u + c)).

        Kept together: a compiler would find the same impulses anew for everyone who asks for them.
        """
        own = u.at[self.body].get(mode="clip").reshape(len(self.rows), -1, u.shape[1])
        gamma = velocity_of(self.rows, own)
        x = [p - r * (g + c) for p, g, c in zip(P, gamma, self.c)]
        normal = jnp.where(x[0] > 0, x[0], 0.0)
        return jax.lax.optimization_barrier(jnp.stack([normal, *_within(x[1:], self.friction * normal)]))

    def pushed(self, u: Float[Array, "N f"], dP: Float[Array, "R B"]) -> Float[Array, "N f"]:
        """u with the change that impulses bring about.

        Added, not set: what is set would be read from u in the kernel that writes it, and an accelerator would copy u
        for each block (1e6 disks on an H200: 2.6 ms per sweep, added 1.7).
        """
        push = jnp.concatenate([push_of(rows, dP) for rows in self.rows])
        return u.at[self.body].add(push, mode="drop", unique_indices=True)


def _within(x: list[Array], a: Array) -> list[Array]:
    """The nearest point of an interval (one column) or a disk (two) of radius a."""
    if len(x) < 2:
        return [jnp.where(y < -a, -a, jnp.where(y > a, a, y)) for y in x]
    size = jnp.sqrt(jnp.maximum(added(y * y for y in x), TINY))
    return [jnp.where(size > a, y * (a / size), y) for y in x]


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
    """Numbers of the closed contacts in blocks of one colour each (too large in an empty place), and blocks in use."""
    K = active.shape[0]
    blocks = sum(-(-size // B) for size in colours.sizes)
    closed, entry = active.astype(jnp.int32), jnp.arange(K, dtype=jnp.int32)
    before = running_sum(closed) - closed
    total = before[-1] + closed[-1]
    starts = jnp.append(before, total)[colours.starts]
    filled = -(-(jnp.append(starts[1:], total) - starts) // B)
    shift = B * (jnp.cumsum(filled) - filled) - starts
    jumps = jnp.zeros(K, jnp.int32).at[colours.starts].add(jnp.diff(shift, prepend=0).astype(jnp.int32), mode="drop")
    place = jnp.where(active, before + running_sum(jumps), blocks * B + entry)
    number = jnp.full(blocks * B, K, jnp.int32).at[place].set(entry, mode="drop", unique_indices=True)
    return number.reshape(blocks, B), jnp.sum(filled).astype(jnp.int32)


def block_size(bodies: int, sides: int) -> int:
    """Places of a block: large ones cost fewer rounds of a loop, small ones fill better.

    It follows from the number of bodies, not from the room of lists, on which no bit of a result depends. In a pile a
    colour has a quarter as many closed pairs as there are bodies; of contacts with the world those along a border are.
    """
    likely = 3 * bodies // 10 if sides > 1 else 2 * math.isqrt(bodies)
    return max(8, min(_PLACES.get(jax.default_backend(), _MOST), likely))
