"""Attempts of many lanes as one kernel of a GPU: a thread per lane, a block of lanes waits for no other.

A batch of small systems costs an accelerator mostly the launches of its kernels, thousands per attempt. Here the
traced attempt of one lane is computed number by number (`lanewise`) inside a Pallas kernel, which goes on until all
lanes of its block are done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.running.batch import pick
from carom.running.lane_numbers import refuse_kind
from carom.running.lanewise import any_lane, evaluated, shaped, wide
from carom.running.loop import SMALL, Problem, masked_attempt
from carom.state import Carry, Status

_WARP = 32  # lanes: the threads of a GPU that go together


class Numbers(NamedTuple):
    """Arrays as rows of numbers, one column per lane; of `shared` ones a single column."""

    leaves: list[jax.ShapeDtypeStruct]

    @classmethod
    def like(cls, arrays: Sequence[Any]) -> Numbers:
        """For lanes with arrays like these."""
        return cls([jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays])

    @property
    def size(self) -> int:
        """Numbers of a lane."""
        return sum(x.size for x in self.leaves)

    def packed(self, arrays: Sequence[Any], lanes: int) -> Array:
        """Arrays of all lanes as rows."""
        flat = [_stored(x.reshape(lanes, x.size // lanes)) for x in arrays]
        return jnp.concatenate([*flat, jnp.zeros((lanes, 1))], axis=1).T

    def unpacked(self, rows: Array) -> list[Array]:
        """Arrays of all lanes."""
        borders = np.cumsum([0, *(x.size for x in self.leaves)])
        parts = [rows[a:b].T.reshape(rows.shape[1], *x.shape) for a, b, x in zip(borders, borders[1:], self.leaves)]
        return [_read(part, x.dtype) for part, x in zip(parts, self.leaves)]

    def typed(self, rows: Sequence[Any]) -> list[Any]:
        """Rows as numbers of their own kind."""
        kinds = [x.dtype for x in self.leaves for _ in range(x.size)]
        return [_read(row, kind) for row, kind in zip(rows, kinds, strict=True)]


def _stored(x: Array) -> Array:
    """Numbers as float64, of which whole ones keep all their bits."""
    is_whole = jnp.issubdtype(x.dtype, jnp.integer)
    return jax.lax.bitcast_convert_type(x.astype(jnp.int64), jnp.float64) if is_whole else x.astype(jnp.float64)


def _read(x: Array, kind: Any) -> Array:
    """What was stored."""
    if jnp.issubdtype(kind, jnp.bool_):
        return x != 0
    is_whole = jnp.issubdtype(kind, jnp.integer)
    return (jax.lax.bitcast_convert_type(x, jnp.int64) if is_whole else x).astype(kind)


def platform() -> str:
    """What computes with arrays that are made now."""
    device = jax.config.jax_default_device  # pyright: ignore
    return jax.default_backend() if device is None else getattr(device, "platform", device)


class Kernel:
    """The attempts of batches like this one; on a processor and on a GPU what blocks of lanes gain differs."""

    def __init__(self, problem: Problem, carry: Carry, axes: Problem):
        self.block, self.run = (SMALL, self.in_turn) if platform() == "cpu" else (_WARP, self.at_once)
        alone, leaves = pick(problem, axes, 0), jax.tree.leaves(eqx.filter(problem, eqx.is_array))
        numbers, rest = eqx.partition(alone, eqx.is_array)
        lane = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), carry)
        one = lambda numbers, carry: masked_attempt(eqx.combine(numbers, rest), carry)[0]  # noqa: E731
        self.traced, shapes = jax.make_jaxpr(one, return_shape=True)(numbers, lane)
        self.structure = jax.tree.structure(shapes)
        for x in self.traced.jaxpr.invars:
            refuse_kind(x.aval.dtype)
        mine = jax.tree.leaves(numbers)
        self.own = [x.ndim > y.ndim for x, y in zip(leaves, mine)]
        self.each = Numbers.like([x for x, own in zip(mine, self.own) if own])
        self.both = Numbers.like([x for x, own in zip(mine, self.own) if not own])
        self.state = Numbers.like(jax.tree.leaves(lane))
        places = jax.tree.unflatten(self.structure, np.cumsum([0, *(x.size for x in self.state.leaves)])[:-1].tolist())
        self.done, self.status = places.done, places.status

    def __call__(self, problem: Problem, carry: Carry, most: Any) -> tuple[Carry, Array]:
        """The carry after at most so many attempts, and the most that a block made."""
        leaves, lanes = jax.tree.leaves(eqx.filter(problem, eqx.is_array)), carry.done.shape[0]
        pad = (0, 0), (0, -lanes % self.block)
        states = jnp.pad(self.state.packed(jax.tree.leaves(carry), lanes), pad, mode="edge")
        each = jnp.pad(self.each.packed([x for x, own in zip(leaves, self.own) if own], lanes), pad, mode="edge")
        both = self.both.packed([x for x, own in zip(leaves, self.own) if not own], 1)[:, 0]
        rows, attempts = self.run(states, each, both, jnp.asarray(most, jnp.int32))
        return jax.tree.unflatten(self.structure, self.state.unpacked(rows[:, :lanes])), jnp.max(attempts)

    def in_turn(self, states: Array, each: Array, both: Array, most: Array) -> tuple[Array, Array]:
        """Blocks one after the other."""

        def one(rows: tuple[Array, Array]) -> tuple[Array, Array]:
            state, own = (list(x)[:-1] for x in rows)
            end, n = self.advanced(state, own, list(both)[:-1], most)
            return jnp.stack([*end, rows[0][-1]]), n

        cut = [x.reshape(len(x), -1, self.block).swapaxes(0, 1) for x in (states, each)]
        rows, attempts = jax.lax.map(one, tuple(cut))
        return rows.swapaxes(0, 1).reshape(states.shape), attempts

    def at_once(self, states: Array, each: Array, both: Array, most: Array, interpret: bool = False) -> Any:
        """Every block by a program of its own on a GPU."""
        from jax.experimental import pallas as pl
        from jax.experimental.pallas.triton import CompilerParams

        lanes = states.shape[1]
        shapes = [jax.ShapeDtypeStruct(states.shape, states.dtype), jax.ShapeDtypeStruct((lanes,), jnp.int32)]
        how: Any = {} if interpret else {"compiler_params": CompilerParams(num_warps=self.block // 32, num_stages=1)}
        run = pl.pallas_call(self.one_block, out_shape=shapes, grid=(lanes // self.block,), interpret=interpret, **how)
        return run(states, each, both, most.reshape(1))

    def one_block(self, states: Any, each: Any, both: Any, most: Any, end: Any, attempts: Any) -> None:
        """The kernel: one block."""
        from jax.experimental import pallas as pl

        lanes = pl.ds(pl.program_id(0) * self.block, self.block)
        start = [states[k, lanes] for k in range(self.state.size)]
        own = [each[k, lanes] for k in range(self.each.size)]
        common = [both[k] for k in range(self.both.size)]
        final, n = self.advanced(start, own, common, most[0])
        for k, x in enumerate(final):
            end[k, lanes] = x
        attempts[lanes] = jnp.full(self.block, n, jnp.int32)

    def advanced(self, start: Sequence[Any], own: Sequence[Any], common: Sequence[Any], most: Any) -> tuple[Any, Any]:
        """Rows of a block after at most so many attempts, and how many were made."""
        each, both = iter(_arrays(self.each, own)), iter(_arrays(self.both, common))
        fixed = [next(each) if own else next(both) for own in self.own]

        def alive(state: Sequence[Any]) -> Any:
            return any_lane(~state[self.done] & (state[self.status] == Status.OK))

        def turn(loop: Any) -> Any:
            state, n, _ = loop
            results = evaluated(self.traced, fixed + shaped(state, _variables(self.state)))
            new = [wide(one, start[0], x.dtype) for y, x in zip(results, self.state.leaves) for one in y.ravel()]
            return new, n + 1, alive(new)

        state = self.state.typed(start)
        loop = (state, jnp.int32(0), alive(state))
        state, n, _ = jax.lax.while_loop(lambda loop: loop[2] & (loop[1] < most), turn, loop)
        return [_stored(x) for x in state], n


class _Variable(NamedTuple):
    aval: jax.ShapeDtypeStruct


def _variables(numbers: Numbers) -> list[_Variable]:
    return [_Variable(x) for x in numbers.leaves]


def _arrays(numbers: Numbers, rows: Sequence[Any]) -> list[Any]:
    return shaped(numbers.typed(rows), _variables(numbers))
