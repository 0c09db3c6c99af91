"""Steps that leave behind what their derivatives need: the way back repeats no inner solve.

A step is linearised where it is taken. What its inner solves found is kept (`solvers/roots.py`), everything else is
computed anew from the line before it. Numbers of the linear part that are the same in all steps are not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal
from jaxtyping import Array

from carom.derivatives.lines import Line
from carom.running.loop import SMALL
from carom.solvers.roots import FOUND

_POLICY = jax.checkpoint_policies.save_only_these_names(FOUND)


class Steps:
    """Linearised steps of one kind: `after(numbers, wholes, line)` is the line behind one.

    `given` are (moving, still, wholes): numbers with a tangent, others, and whole numbers; they stay the same.
    """

    def __init__(self, after: Callable[[Any, Any, Line], Line], given: tuple[Any, Any, Any], line: Line):
        def taken(moving: Any, still: Any, wholes: Any, line: Line) -> tuple[Line, Any]:
            def end(moving: Any, x: Array) -> tuple[Array, Array]:
                new = after(eqx.combine(moving, still), wholes, Line(x, line.i))
                return new.x, new.i

            anew = jax.checkpoint(end, prevent_cse=False, policy=_POLICY)
            x, push, i = jax.linearize(anew, moving, line.x, has_aux=True)
            return Line(x, i), push

        program, (_, push) = jax.make_jaxpr(taken, return_shape=True)(*given, line)
        numbers, self.tree = jax.tree.flatten(push)
        jaxpr, self.consts = program.jaxpr, program.consts
        self.jaxpr, kept = jaxpr, jaxpr.outvars[2:]
        same = [*jaxpr.invars[:-2], *jaxpr.constvars]
        self.fixed = {k: same.index(v) for k, v in enumerate(kept) if v in same}
        self.literal = {k: v.val for k, v in enumerate(kept) if isinstance(v, Literal)}
        self.own = [k for k, v in enumerate(kept) if v is jaxpr.invars[-2]]
        others = [k for k in range(len(kept)) if k not in {*self.fixed, *self.literal, *self.own}]
        self.floats = [k for k in others if numbers[k].dtype == line.x.dtype]
        self.others = [k for k in others if numbers[k].dtype != line.x.dtype]
        self.kinds = numbers
        self.widths = Line(
            *([size, *(numbers[k].size for k in some)] for size, some in zip((line.x.size, line.i.size), self.groups))
        )

    @property
    def groups(self) -> tuple[list[int], list[int]]:
        """Which numbers of the linear part are in rows of floats, and which in rows of whole numbers."""
        return self.floats, self.others

    @property
    def in_one_call(self) -> int:
        """XLA makes one call of a loop in which no array is large: two steps at once, if their numbers fit."""
        return 2 if max(max(widths) for widths in self.widths) <= SMALL else 1

    def take(self, given: tuple[Any, Any, Any], line: Line) -> tuple[Line, Line]:
        """The line behind a step, and the row that it leaves: the line before it, and numbers of the linear part."""
        outs = jax.core.eval_jaxpr(self.jaxpr, self.consts, *jax.tree.leaves((*given, line)))
        rows = (
            jnp.concatenate([before, *(jnp.ravel(outs[2 + k]).astype(before.dtype) for k in some)])
            for before, some in zip(line, self.groups)
        )
        return Line(*outs[:2]), Line(*rows)

    def push(self, given: tuple[Any, Any, Any], columns: Line) -> Callable[..., Array]:
        """The linear part of the step that left a row, which lies in `columns`."""
        same = [*jax.tree.leaves(given), *self.consts]
        numbers: dict[int, Any] = {k: same[place] for k, place in self.fixed.items()} | self.literal
        for columns_of, widths, some in zip(columns, self.widths, self.groups):
            first, *pieces = pieces_of(columns_of, widths)
            if some is self.floats:
                numbers |= dict.fromkeys(self.own, first)
            for k, piece in zip(some, pieces):
                numbers[k] = piece.reshape(self.kinds[k].shape).astype(self.kinds[k].dtype)
        return jax.tree.unflatten(self.tree, [numbers[k] for k in range(len(self.kinds))])


def pieces_of(columns: Sequence[Array], widths: Sequence[int]) -> list[Array]:
    """Vectors of these sizes out of columns in a row."""
    borders = np.cumsum([0, *(c.size for c in columns)])
    found, begin = [], 0
    for width in widths:
        end = begin + width
        parts = [
            c[max(begin - a, 0) : end - a] for c, a, b in zip(columns, borders, borders[1:]) if a < end and begin < b
        ]
        found.append(parts[0] if len(parts) == 1 else jnp.concatenate(parts) if parts else columns[0][:0])
        begin = end
    return found
