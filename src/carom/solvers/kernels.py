"""Tasks over the contacts of a colour as one kernel of a GPU (Pallas); velocities and impulses change in place.

A program takes a block of places; no body occurs twice in a colour, so that programs do not meet.
Letters: b blocks of B places, R rows, N bodies of f velocities.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from carom.solvers.closed_contacts import Closed, put_rows
from carom.solvers.tasks import AbstractTask, Places

T = TypeVar("T")

_PLACES, _WARPS = 256, 8  # of a program: powers of two
_ENTRIES = 1024  # of a program over velocities
_PLATFORM = "cuda"
_CAPABILITY = 8


def fitting(solve: Callable[[type[Closed]], T]) -> T:
    """What is found with kernels where it is compiled for a GPU, and without them elsewhere."""
    if not _at_hand():
        return solve(Closed)
    return jax.lax.platform_dependent(**{_PLATFORM: partial(solve, Fused)}, default=partial(solve, Closed))


@cache
def _at_hand() -> bool:
    """Whether there is a device for them: Triton asks for a compute capability of 8, and JAX may come without it."""
    if jax.default_backend() != "gpu" or find_spec("jax.experimental.pallas.triton") is None:
        return False
    capability = str(getattr(jax.devices()[0], "compute_capability", "")).split(".")[0]
    return capability.isdigit() and int(capability) >= _CAPABILITY


class Worked(NamedTuple):
    """What a task works on: impulses, velocities, its counts of each block."""

    P: tuple[Float[Array, "b R B"], ...]
    u: Float[Array, "N f"]
    counts: Float[Array, "2 b"]


class Fused(Closed):
    """The closed contacts of a group; a colour is a kernel."""

    def over(
        self, task: AbstractTask, P: tuple[Array, ...], u: Array, seen: Array | None = None
    ) -> tuple[tuple[Array, ...], Array, list[Array]]:
        """What a task makes of impulses and velocities, colour by colour; at once where it pushes nothing.

        Programs beyond the blocks that a colour fills end at once.
        """
        blocks = P[0].shape[0]
        at, spans, programs = Worked(P, u, jnp.zeros((2, blocks))), self.spans, min(self.room, blocks)
        if not task.pushes:
            spans, programs = (jnp.stack([jnp.zeros_like(self.used), self.used]),), blocks
        for span in spans if programs else ():
            at = _colour((task, self.places, span, seen), at, programs, _PLATFORM == "cpu")
        return at.P, at.u, list(task.joined(at.counts, axis=1))

    def scattered(self, x: Float[Array, "b R B"], onto: Float[Array, " m"]) -> Float[Array, " m"]:
        """All rows of the problem with theirs, from blocks."""
        return put_rows(self.row, x, onto)

    @staticmethod
    def ahead(u: Array, old: Array, beta: Array) -> tuple[Array, Array]:
        """u + beta (u - old), and u, each in place of the other argument."""
        return _ahead(u, old, beta, _PLATFORM == "cpu")

    @staticmethod
    def block_size(bodies: int, sides: int) -> int:
        """Places of a program."""
        del bodies, sides
        return _PLACES

    @staticmethod
    def each_block(f: Callable[[Any], Any], used: Array, x: Any) -> Any:
        """f of each block of arrays."""
        del used
        return jax.vmap(f)(x)


@partial(jax.jit, static_argnums=(2, 3))
def _colour(given: Any, at: Worked, programs: int, interpret: bool) -> Worked:
    """One colour, with what is only read, and what may change; traced once for all colours."""
    task = given[0]
    kept = at._replace(P=() if task.sets else at.P, u=None if task.pushes else at.u, counts=None)
    changed = at._replace(P=at.P if task.sets else (), u=at.u if task.pushes else None)
    read, tree = jax.tree.flatten(jax.tree.map(jnp.asarray, (given, kept)))
    written, own_tree = jax.tree.flatten(changed)

    def kernel(*refs: Any) -> None:
        (task, places, span, seen), kept = tree.unflatten(refs[: len(read)])
        own = own_tree.unflatten(refs[-len(written) :])
        at, program = Worked(kept.P or own.P, own.u if kept.u is None else kept.u, own.counts), _program()
        _pallas().when(program < span[1])(lambda: _block(task, places, span[0] + program, seen, at))

    found = own_tree.unflatten(_in_place(kernel, programs, read, written, interpret))
    return Worked(found.P or at.P, at.u if found.u is None else found.u, found.counts)


def _block(task: AbstractTask, places: Places, k: Array, seen: Any, at: Any) -> None:
    """What one program does: read a block, work, write. All arrays are references here."""
    from jax.experimental.pallas import triton  # noqa: PLC0415 -- only where there is a GPU

    (N, f), B = at.u.shape, places.friction.shape[1]
    body = [places.body[k, side * B : (side + 1) * B] for side, _ in enumerate(places.rows)]

    def columns(of: Any) -> list[Array]:
        return [of[k, r, :] for r in range(of.shape[1])]

    def velocities(of: Any) -> list[list[Array]]:
        return [[triton.load(of.at[b, i], mask=b < N, other=0.0) for i in range(f)] for b in body]

    block = Places(body[0], jax.tree.map(lambda x: x[k, :], places.rows), columns(places.c), places.friction[k, :])
    own, counts = velocities(at.u), [jnp.zeros(B, places.friction.dtype)] * 2
    of_task = jax.tree.map(lambda x: x[()], task)
    P, dP, counts = of_task(
        block, tuple(map(columns, at.P)), own if seen is None else velocities(seen), counts, jnp.asarray
    )
    for of, new in zip(at.P, P if task.sets else ()):
        for r, p in enumerate(new):
            of[k, r, :] = p
    for b, u, push in zip(body, own, block.push(dP) if task.pushes else ()):
        for i in range(f):
            triton.store(at.u.at[b, i], u[i] + push[i], mask=b < N)
    for j, count in enumerate(counts):
        at.counts[j, k] = task.joined(count)


def _ahead(u: Array, old: Array, beta: Array, interpret: bool) -> tuple[Array, Array]:
    """u + beta (u - old), and u: a loop that carries both copies neither, unless somebody changes their shape."""
    N, f = u.shape

    def kernel(beta: Any, *refs: Any) -> None:
        from jax.experimental.pallas import triton  # noqa: PLC0415

        u, old = refs[-2:]
        place = _program() * _ENTRIES + jnp.arange(_ENTRIES, dtype=jnp.int32)
        at = jax.lax.div(place, jnp.int32(f)), jax.lax.rem(place, jnp.int32(f))
        a, b = (triton.load(x.at[at], mask=place < N * f, other=0.0) for x in (u, old))
        for x, new in ((u, a + beta[()] * (a - b)), (old, a)):
            triton.store(x.at[at], new, mask=place < N * f)

    y, before = _in_place(kernel, -(-u.size // _ENTRIES), [beta], [u, old], interpret)
    return y, before


def _in_place(
    kernel: Callable[..., None], programs: int, read: list[Array], written: list[Array], interpret: bool
) -> list[Array]:
    """What a kernel makes of arrays that it may write."""
    from jax.experimental.pallas import triton  # noqa: PLC0415

    return _pallas().pallas_call(
        kernel,
        grid=(programs,),
        out_shape=[jax.ShapeDtypeStruct(x.shape, x.dtype) for x in written],
        input_output_aliases={len(read) + j: j for j in range(len(written))},
        compiler_params=triton.CompilerParams(num_warps=_WARPS),
        interpret=interpret,
    )(*read, *written)


def _program() -> Array:
    return _pallas().program_id(0)


def _pallas() -> Any:
    from jax.experimental import pallas  # noqa: PLC0415

    return pallas
