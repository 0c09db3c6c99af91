"""Tasks over the contacts of a colour as one kernel of a GPU (Pallas); velocities and impulses change in place.

A program takes a block of places; no body occurs twice in a colour, so that programs do not meet.
Letters: b blocks of B places, R rows, N bodies of f velocities.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from carom.solvers.tasks import AbstractTask, Places

PLACES = 128  # of a program: a power of two
_WARPS = 4
_BACKENDS = ("gpu",)
_CAPABILITY = 8


class Worked(NamedTuple):
    """What a task works on: impulses, velocities, its counts."""

    P: tuple[Float[Array, "b R B"], ...]
    u: Float[Array, "N f"]
    counts: Float[Array, "2 programs B"]


def at_hand() -> bool:
    """Whether tasks are kernels here."""
    return jax.default_backend() in _BACKENDS and _compile()


@cache
def _compile() -> bool:
    """Whether they compile for the device: Triton asks for a compute capability of 8, and JAX may come without it."""
    capability = str(getattr(jax.devices()[0], "compute_capability", _CAPABILITY)).split(".")[0]
    known = find_spec("jax.experimental.pallas.triton") is not None
    return known and capability.isdigit() and int(capability) >= _CAPABILITY


def over_colours(
    task: AbstractTask, places: Places, filled: Int[Array, " colours"], at: Worked, seen: Array | None
) -> Worked:
    """What a task makes of impulses and velocities, colour by colour.

    A colour has its `filled` blocks after those of the one before. The loop goes over all colours that
    there may be: one of a known length does not wait for the device.
    """
    blocks = jnp.stack([jnp.cumsum(filled) - filled, filled]).astype(jnp.int32)

    def after(colour: Array, at: Worked) -> Worked:
        kept = at._replace(P=() if task.sets else at.P, u=None if task.pushes else at.u, counts=None)
        changed = at._replace(P=at.P if task.sets else (), u=at.u if task.pushes else None)
        found = _colour((task, places, blocks, colour, seen, kept), changed)
        return Worked(found.P or at.P, at.u if found.u is None else found.u, found.counts)

    return jax.lax.fori_loop(0, filled.size, after, at)


def _colour(given: Any, changed: Worked) -> Worked:
    """One colour: what is only read, and what changes."""
    from jax.experimental import pallas as pl  # noqa: PLC0415 -- only where there is a GPU
    from jax.experimental.pallas import triton  # noqa: PLC0415

    read, tree = jax.tree.flatten(jax.tree.map(jnp.asarray, given))
    written, own_tree = jax.tree.flatten(changed)

    def kernel(*refs: Any) -> None:
        task, places, blocks, colour, seen, kept = tree.unflatten(refs[: len(read)])
        own, program = own_tree.unflatten(refs[-len(written) :]), pl.program_id(0)
        first, count = (blocks[j, colour[()]] for j in range(2))
        at = Worked(kept.P or own.P, own.u if kept.u is None else kept.u, own.counts)
        pl.when(program < count)(lambda: _block(task, places, (first + program, program), seen, at))

    call = pl.pallas_call(
        kernel,
        grid=changed.counts.shape[1:2],
        out_shape=[jax.ShapeDtypeStruct(x.shape, x.dtype) for x in written],
        input_output_aliases={len(read) + j: j for j in range(len(written))},
        compiler_params=triton.CompilerParams(num_warps=_WARPS),
        interpret=jax.default_backend() == "cpu",
    )
    return own_tree.unflatten(call(*read, *written))


def _block(task: AbstractTask, places: Places, number: tuple[Array, Array], seen: Any, at: Any) -> None:
    """What one program does: read a block, work, write. All arrays are references here."""
    from jax.experimental.pallas import triton  # noqa: PLC0415

    (k, program), (N, f), B = number, at.u.shape, places.friction.shape[1]
    body = [places.body[k, side * B : (side + 1) * B] for side, _ in enumerate(places.rows)]

    def columns(of: Any) -> list[Array]:
        return [of[k, r, :] for r in range(of.shape[1])]

    def velocities(of: Any) -> list[list[Array]]:
        return [[triton.load(of.at[b, i], mask=b < N, other=0.0) for i in range(f)] for b in body]

    block = Places(body[0], jax.tree.map(lambda x: x[k, :], places.rows), columns(places.c), places.friction[k, :])
    own, counts = velocities(at.u), [at.counts[j, program, :] for j in range(2)]
    of_task = jax.tree.map(lambda x: x[()], task)
    P, dP, counts = of_task(block, tuple(map(columns, at.P)), own if seen is None else velocities(seen), counts, list)
    for of, new in zip(at.P, P if task.sets else ()):
        for r, p in enumerate(new):
            of[k, r, :] = p
    for b, u, push in zip(body, own, block.push(dP) if task.pushes else ()):
        for i in range(f):
            triton.store(at.u.at[b, i], u[i] + push[i], mask=b < N)
    for j, count in enumerate(counts):
        at.counts[j, program, :] = count
