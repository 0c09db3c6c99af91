"""Rows picked out of an array by number, with a transpose that picks too: XLA makes a slow loop of that of a gather."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

_MOST = 8  # rows that are added one by one; beyond, a loop compiles faster
Table = tuple[tuple[int, ...], ...]


def picked(x: Array, rows: Sequence[int]) -> Array:
    """x[rows], one row after another; zeros for the number behind the last."""
    return x if tuple(rows) == tuple(range(len(x))) else _summed.bind(x, table=tuple((int(row),) for row in rows))


def _sums(x: Array, *, table: Table) -> Array:
    """The sums of the rows that each line of the table names."""
    at = np.asarray(table)
    if at.shape[1] > _MOST:
        return jnp.sum(jnp.concatenate([x, jnp.zeros_like(x[:1])])[at], 1)
    filled = jnp.concatenate([x, jnp.zeros_like(x[:1])]) if (at == len(x)).any() else x
    return sum((filled[at[:, k]] for k in range(1, at.shape[1])), filled[at[:, 0]])


@lru_cache(maxsize=256)
def _transposed(table: Table, count: int) -> Table:
    """For every row, in which lines it is named."""
    lines: list[list[int]] = [[] for _ in range(count)]
    for i, line in enumerate(table):
        for row in line:
            if row < count:
                lines[row].append(i)
    most = max(1, *map(len, lines))
    return tuple(tuple(line + [len(table)] * (most - len(line))) for line in lines)


def _abstract(x: Any, *, table: Table) -> Any:
    return ShapedArray((len(table), *x.shape[1:]), x.dtype)


def _transpose(ct: Any, x: Any, *, table: Table) -> list[Any]:
    return [_summed.bind(ct, table=_transposed(table, x.aval.shape[0]))]


def _batched(arguments: Any, axes: Any, *, table: Table) -> tuple[Any, int]:
    return _summed.bind(jnp.moveaxis(arguments[0], axes[0], -1), table=table), arguments[0].ndim - 1


_summed = Primitive("carom_summed")
_summed.def_impl(_sums)
_summed.def_abstract_eval(_abstract)
ad.deflinear2(_summed, _transpose)
batching.primitive_batchers[_summed] = _batched
mlir.register_lowering(_summed, mlir.lower_fun(_sums, multiple_results=False))
