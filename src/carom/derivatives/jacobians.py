"""Steps that leave behind their Jacobians: for few numbers there is less to compile, and nothing left to compute.

A step and its derivatives in all directions that matter are one program. In which they are is read off the traced
step: most numbers of a carry (memories of searches, sizes of steps) have no derivative.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from itertools import compress
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun
from jax.flatten_util import ravel_pytree
from jax.interpreters.partial_eval import dce_jaxpr
from jaxtyping import Array

from carom.derivatives.lines import Line
from carom.derivatives.tape import Columns, Given, in_one_call, pieces_of


class Jacobians:
    """Steps of one kind: `after(numbers, wholes, parts, i)` is what is behind one from a line that is `i` and `parts`.

    `parts_of` takes the numbers of a line apart.
    """

    def __init__(self, after: Callable[..., Any], parts_of: Callable[[Array], Any], given: Given, line: Line):
        def pushed(given: Given, parts: Any, i: Array, tangents: Any) -> tuple[Any, Array, Any]:
            moving, still, wholes = given

            def end(moving: Any, parts: Any) -> tuple[Any, Array]:
                return after(eqx.combine(moving, still), wholes, parts, i)

            parts, d_parts, i = jax.jvp(end, (moving, parts), tangents, has_aux=True)
            return parts, i, d_parts

        self.parts_of, parts = parts_of, parts_of(line.x)
        tangents = jax.tree.leaves((given[0], parts))
        program = jax.make_jaxpr(pushed)(given, parts, line.i, (given[0], parts))
        names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(parts)]
        many = len(names)
        jaxpr, used, self.changes = _relevant(program.jaxpr, names, len(tangents))  # parts that a step changes
        self.matters = used[-len(tangents) :]  # of (moving, parts)
        self.sizes = [x.size for x in tangents], [x.size for x in tangents[-many:]]
        shapes = [x.shape for x, matters in zip(tangents, self.matters) if matters]
        step = jaxpr_as_fun(ClosedJaxpr(jaxpr, program.consts))
        width, height = (sum(compress(*pair)) for pair in zip(self.sizes, (self.matters, self.changes)))

        def taken(numbers: list[Array]) -> tuple[list[Array], Array, Array]:
            cuts = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
            identity = jnp.split(jnp.asarray(np.eye(width)), cuts, axis=1)
            basis = [d.reshape(-1, *shape) for d, shape in zip(identity, shapes)]
            kept = list(compress(numbers, used))

            def pushed(*d: Array) -> tuple[list[Array], Array, Array]:
                found = step(*kept, *d)
                return found[:many], found[many], jnp.concatenate([jnp.zeros(0), *map(jnp.ravel, found[many + 1 :])])

            return jax.vmap(pushed, out_axes=(None, None, 1))(*basis)

        self.taken = jax.jit(taken)
        self.widths = [[line.x.size, height * width], [line.i.size]]

    @property
    def in_one_call(self) -> int:
        """How many steps XLA takes in one call of a loop."""
        return in_one_call(self.widths)

    def take(self, given: Given, line: Line) -> tuple[Line, Line]:
        """The line behind a step, and the row that it leaves: the line before it, and its Jacobian."""
        parts, i, J = self.taken(jax.tree.leaves((given, self.parts_of(line.x), line.i)))
        x = jnp.concatenate([jnp.ravel(part) for part in parts])
        return Line(x, i), Line(jnp.concatenate([line.x, J.ravel()]), line.i)

    def push(self, given: Given, columns: Columns) -> Callable[..., Array]:
        """The linear part of the step that left this row."""
        del given
        x, J = pieces_of(columns[0], self.widths[0])
        before, behind = self.sizes
        J = J.reshape(sum(compress(behind, self.changes)), -1)

        def pushed(d_moving: Any, dx: Array) -> Array:
            d = compress(_split(ravel_pytree((d_moving, dx))[0], before), self.matters)
            changed = iter(_split(jnp.sum(J * jnp.concatenate(list(d)), axis=1), compress(behind, self.changes)))
            return jnp.concatenate([next(changed) if c else jnp.zeros(n) for c, n in zip(self.changes, behind)])

        return pushed


def _split(x: Array, sizes: Iterable[int]) -> list[Array]:
    ends = np.cumsum([0, *sizes])
    return [x[a:b] for a, b in itertools.pairwise(ends)]


def _relevant(jaxpr: Any, names: list[str], last: int) -> tuple[Any, list[bool], list[bool]]:
    """A program without what no place and nothing gathered depends on, the arguments it uses, the parts it changes."""
    many, follows = len(names), _following(jaxpr, last)[-len(names) :]
    wanted = [name.startswith((".state", ".kept")) for name in names]
    while True:
        changes = [w and f for w, f in zip(wanted, follows)]
        lean, used = dce_jaxpr(jaxpr, [True] * (many + 1) + changes)
        more = [w or u for w, u in zip(wanted, used[-many:])]
        if more == wanted:
            return lean, used, changes
        wanted = more


def _following(jaxpr: Any, last: int) -> list[bool]:
    """Which results follow from the last so many arguments."""
    follow = set(jaxpr.invars[-last:])
    for equation in jaxpr.eqns:
        if any(v in follow for v in equation.invars if not isinstance(v, Literal)):
            follow.update(equation.outvars)
    return [not isinstance(v, Literal) and v in follow for v in jaxpr.outvars]
