r"""The closed contacts of a group, in blocks of one colour each, in units of the root of energy.

Open contacts take no part in a step: those that do are brought together, and a loop goes over as many blocks as they
fill. With S^2 the diagonal of the Delassus matrix and M the masses, rows are S^{-1} W M^{-1/2}, impulses S P,
velocities of bodies M^{1/2} u, and the diagonal is one:

    P_i <- prox(P_i - (W_i u + c_i)),   u <- u + W_i^T dP_i

An empty place has no row, no velocity, no body, and keeps its zero impulse.
Letters: b blocks of B places, R = 1 + directions rows, N bodies of f velocities, K contacts of the group.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from carom.solvers.body_directions import Blocks, Colours, Side, velocity_of
from carom.solvers.contact_problem import nearest
from carom.sorting import running_sum

_PLACES = {"cpu": 192}  # of a block: more no longer stay in the cache
_MOST = 2**17  # on other devices, where a round of the loop costs as much as so many places


class Closed(eqx.Module):
    """The closed contacts of a group: how many blocks they fill, their numbers, and what a round takes of them."""

    used: Int[Array, ""]
    number: Int[Array, "b B"]
    sides: tuple[Side, ...]
    c: Float[Array, "b R B"]
    friction: Float[Array, "b B"]
    root: Float[Array, "b R B"]

    @classmethod
    def of(cls, own: Blocks, c: Array, diagonal: Array, active: Array, friction: Array, root_M: Array) -> Closed:
        """Those of a group whose rows (R, K) these are."""
        number, used = _places(active, own.colours, block_size(root_M.shape[0], len(own.sides)))
        B, N = number.shape[1], root_M.shape[0]

        def taken(x: Array, at: Array, fill: float = 0.0) -> Array:
            return jnp.stack([y.at[at].get(mode="fill", fill_value=fill) for y in x.reshape(-1, own.count)])

        def block(at: Array) -> Any:
            root = jnp.sqrt(taken(diagonal, at, 1.0))
            sides = []
            for side in own.sides:
                body = side.body.at[at].get(mode="fill", fill_value=N).astype(jnp.int32)
                rows = taken(side.rows, at).reshape(*side.rows.shape[:2], B)
                mass = root_M.at[body].get(mode="fill", fill_value=1.0).T
                sides.append(
                    Side(jnp.where(body < N, body, N + jnp.arange(B, dtype=jnp.int32)), rows / mass / root[:, None])
                )
            mu = taken(friction, at)[0]
            return tuple(sides), taken(c, at) / root, mu * root[-1] / root[0], root

        empty = jax.tree.map(
            lambda x: jnp.zeros((number.shape[0], *x.shape), x.dtype), jax.eval_shape(block, number[0])
        )
        put = lambda k, all_: jax.tree.map(lambda x, new: put_block(x, k, new), all_, block(block_of(number, k)))  # noqa: E731
        return cls(used, number, *jax.lax.fori_loop(0, used, put, empty))

    def gathered(self, P: Float[Array, "R K"]) -> Float[Array, "b R B"]:
        """Impulses of the group, in blocks."""

        def put(k: Array, all_: Array) -> Array:
            at = block_of(self.number, k)
            own = jnp.stack([y.at[at].get(mode="fill", fill_value=0.0) for y in P])
            return put_block(all_, k, own * block_of(self.root, k))

        return jax.lax.fori_loop(0, self.used, put, jnp.zeros_like(self.c))

    def scattered(self, P: Float[Array, "b R B"], count: int) -> Float[Array, "R K"]:
        """Impulses of the group in their order; open contacts have none."""

        def put(k: Array, all_: tuple[Array, ...]) -> tuple[Array, ...]:
            own, at = block_of(P, k) / block_of(self.root, k), block_of(self.number, k)
            return tuple(x.at[at].set(y, mode="drop") for x, y in zip(all_, own))

        return jnp.stack(jax.lax.fori_loop(0, self.used, put, tuple(jnp.zeros((self.c.shape[1], count)))))

    def over_blocks(self, body: Callable[[Closed, Array, Any], Any], x: Any) -> Any:
        """x after `body(block, its number, x)` of one used block after the other."""
        rest = (self.number, self.sides, self.c, self.friction, self.root)

        def once(k: Array, x: Any) -> Any:
            return body(Closed(self.used, *jax.tree.map(lambda y: block_of(y, k), rest)), k, x)

        return jax.lax.fori_loop(0, self.used, once, x)

    # ---- one block: arrays without b ---------------------------------------------------------------------------------

    def own(self, u: Float[Array, "N f"]) -> list[Array]:
        """Velocities of the bodies of each side."""
        return [u.at[side.body].get(mode="clip") for side in self.sides]

    def wanted(self, P: Float[Array, "R B"], own: list[Array], r: Array | float = 1.0) -> Float[Array, "R B"]:
        """prox(P - r (W u + c))."""
        x = P - r * (velocity_of(self.sides, own) + self.c)
        normal = jnp.where(x[0] > 0, x[0], 0.0)
        if len(x) == 1:
            return normal[None]
        a = (self.friction * normal)[:, None]
        return jnp.vstack([normal, nearest(x[1:].T, -a, a).T])

    def pushed(self, u: Float[Array, "N f"], dP: Array) -> Float[Array, "N f"]:
        """u with the change that impulses bring about.

        Added, not set: what is set would be read from u in the kernel that writes it, and an accelerator would copy u
        for each block (1e6 disks on an H200: 2.6 ms per sweep, added 1.7).
        """
        for side in self.sides:
            u = u.at[side.body].add(side.push(dP), mode="drop", unique_indices=True)
        return u


def block_of(x: Array, k: Array) -> Array:
    """Block k, which exists."""
    return jax.lax.dynamic_index_in_dim(x, k, keepdims=False)


def put_block(x: Array, k: Array, new: Array) -> Array:
    """x with another block k, which exists."""
    return jax.lax.dynamic_update_index_in_dim(x, new, k, 0)


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

    It follows from the number of bodies, not from the room of lists, on which no bit of a result depends. Of contacts
    with the world mostly those along a border are closed.
    """
    likely = bodies // 8 if sides > 1 else 2 * math.isqrt(bodies)
    return max(8, min(_PLACES.get(jax.default_backend(), _MOST), likely))
