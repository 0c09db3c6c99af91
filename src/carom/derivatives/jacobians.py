"""Steps that leave behind their Jacobians: for few numbers there is less to compile, and nothing left to compute.

A step and its derivatives in all directions that matter are one program. In which they are is read off the traced
step: most numbers of a carry (memories of searches, sizes of steps) have no derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.flatten_util import ravel_pytree
from jax.interpreters.partial_eval import dce_jaxpr
from jaxtyping import Array

from carom.derivatives.lines import Line
from carom.derivatives.tape import Columns, Given, in_one_call, pieces_of


class Jacobians:
    """Steps of one kind: `after(numbers, wholes, parts, i)` is the line behind one from a line that is `i` and `parts`.

    `parts_of` takes the numbers of a line apart.
    """

    def __init__(self, after: Callable[..., Line], parts_of: Callable[[Array], Any], given: Given, line: Line):
        def pushed(given: Given, parts: Any, i: Array, tangents: Any) -> tuple[Array, Array, Array]:
            moving, still, wholes = given

            def end(moving: Any, parts: Any) -> tuple[Array, Array]:
                new = after(eqx.combine(moving, still), wholes, parts, i)
                return new.x, new.i

            x, dx, i = jax.jvp(end, (moving, parts), tangents, has_aux=True)
            return x, i, dx

        parts = parts_of(line.x)
        tangents = (given[0], parts)
        program = jax.make_jaxpr(pushed)(given, parts, line.i, tangents)
        jaxpr, used = dce_jaxpr(program.jaxpr, [True] * len(program.jaxpr.outvars))
        self.parts_of, step = parts_of, jaxpr_as_fun(ClosedJaxpr(jaxpr, program.consts))
        leaves = jax.tree.leaves(tangents)
        first = len(used) - len(leaves)
        ends = np.cumsum([x.size for x in leaves])
        moved = [k for k, is_used in enumerate(used[first:]) if is_used]
        spans = [np.arange(ends[k] - leaves[k].size, ends[k]) for k in moved]
        self.columns = np.concatenate([np.zeros(0, int), *spans])  # of (moving, x) that anything depends on
        shapes = [leaves[k].shape for k in moved]
        cuts = np.cumsum([span.size for span in spans])[:-1]

        def taken(numbers: list[Array]) -> tuple[Array, Array, Array]:
            identity = jnp.split(jnp.asarray(np.eye(self.columns.size)), cuts, axis=1)
            basis = [d.reshape(-1, *shape) for d, shape in zip(identity, shapes)]
            kept = [x for x, is_used in zip(numbers, used) if is_used]
            return jax.vmap(lambda *d: tuple(step(*kept, *d)), out_axes=(None, None, 1))(*basis)

        self.taken = jax.jit(taken)
        self.widths = [[line.x.size, line.x.size * self.columns.size], [line.i.size]]

    @property
    def in_one_call(self) -> int:
        """How many steps XLA takes in one call of a loop."""
        return in_one_call(self.widths)

    def take(self, given: Given, line: Line) -> tuple[Line, Line]:
        """The line behind a step, and the row that it leaves: the line before it, and its Jacobian."""
        x, i, J = self.taken(jax.tree.leaves((given, self.parts_of(line.x), line.i)))
        return Line(x, i), Line(jnp.concatenate([line.x, J.ravel()]), line.i)

    def push(self, given: Given, columns: Columns) -> Callable[..., Array]:
        """The linear part of the step that left this row."""
        del given
        x, J = pieces_of(columns[0], self.widths[0])
        J = J.reshape(x.size, -1)
        return lambda d_moving, dx: jnp.sum(J * ravel_pytree((d_moving, dx))[0][self.columns], axis=1)
