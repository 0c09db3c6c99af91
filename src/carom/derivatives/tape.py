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
from jax.extend.core import Literal, jaxpr_as_fun
from jaxtyping import Array

from carom.derivatives.lines import Line
from carom.running.loop import SMALL
from carom.solvers.roots import FOUND

_POLICY = jax.checkpoint_policies.save_only_these_names(FOUND)
Given = tuple[Any, Any, Any]  # numbers that have a tangent, other numbers, whole numbers; the same in all steps
Columns = tuple[Sequence[Array], Sequence[Array]]  # a row of floats and one of whole numbers, in parts


class Steps:
    """Linearised steps of one kind: `after(numbers, wholes, line)` is the line behind one."""

    def __init__(self, after: Callable[[Any, Any, Line], Line], given: Given, line: Line):
        def taken(moving: Any, still: Any, wholes: Any, line: Line) -> tuple[Line, Any]:
            def end(moving: Any, x: Array) -> tuple[Array, Array]:
                new = after(eqx.combine(moving, still), wholes, Line(x, line.i))
                return new.x, new.i

            anew = jax.checkpoint(end, prevent_cse=False, policy=_POLICY)
            x, push, i = jax.linearize(anew, moving, line.x, has_aux=True)
            return Line(x, i), push

        program, (_, push) = jax.make_jaxpr(taken, return_shape=True)(*given, line)
        self.taken, self.consts = jaxpr_as_fun(program), program.consts
        self.numbers, self.tree = jax.tree.flatten(push)
        *same, x, i = program.jaxpr.invars
        same += program.jaxpr.constvars
        self.literal: dict[int, Any] = {}
        self.same: dict[int, int] = {}  # where among what is given and constant
        self.own: dict[int, int] = {}  # the line's x, and what has no derivative
        self.rows: tuple[list[int], list[int]] = ([], [])
        for k, v in enumerate(program.jaxpr.outvars[2:]):
            if isinstance(v, Literal):
                self.literal[k] = v.val
            elif v in same:
                self.same[k] = same.index(v)
            elif v in (x, i):
                self.own[k] = (x, i).index(v)
            else:
                self.rows[self.numbers[k].dtype.kind != "f"].append(k)
        self.widths = [[own.size, *(self.numbers[k].size for k in some)] for own, some in zip(line, self.rows)]

    @property
    def in_one_call(self) -> int:
        """XLA makes one call of a loop in which no array is large: two steps at once, if their numbers fit."""
        return 2 if max(max(some) for some in self.widths) <= SMALL else 1

    def take(self, given: Given, line: Line) -> tuple[Line, Line]:
        """The line behind a step, and the row that it leaves: the line before it, and numbers of the linear part."""
        x, i, *numbers = self.taken(*jax.tree.leaves((*given, line)))
        rows = [
            jnp.concatenate([own, *(jnp.ravel(numbers[k]).astype(own.dtype) for k in some)])
            for own, some in zip(line, self.rows)
        ]
        return Line(x, i), Line(*rows)

    def push(self, given: Given, columns: Columns) -> Callable[..., Array]:
        """The linear part of the step that left this row."""
        same = [*jax.tree.leaves(given), *self.consts]
        numbers = self.literal | {k: same[place] for k, place in self.same.items()}
        (x, *floats), (i, *wholes) = (_pieces(*pair) for pair in zip(columns, self.widths))
        numbers |= {k: (x, i)[place] for k, place in self.own.items()}
        for k, piece in zip((*self.rows[0], *self.rows[1]), (*floats, *wholes)):
            numbers[k] = piece.reshape(self.numbers[k].shape).astype(self.numbers[k].dtype)
        return jax.tree.unflatten(self.tree, [numbers[k] for k in range(len(numbers))])


def _pieces(columns: Sequence[Array], widths: Sequence[int]) -> list[Array]:
    """Vectors of these widths out of a row that lies in columns."""
    found, begins = [], np.cumsum([0, *(c.size for c in columns)])
    for begin, width in zip(np.cumsum([0, *widths]), widths):
        cuts = [(c, max(begin - at, 0), min(begin + width - at, c.size)) for c, at in zip(columns, begins)]
        parts = [c[low:high] for c, low, high in cuts if low < high]
        found.append(parts[0] if len(parts) == 1 else jnp.concatenate([columns[0][:0], *parts]))
    return found
