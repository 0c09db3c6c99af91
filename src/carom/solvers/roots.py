"""Inner solves and loops with derivatives: of the equation that was solved, not of the way to its answer.

Every loop whose number of rounds follows from numbers goes through one of these, so that derivatives flow through a
whole step of a method, forward and in reverse. Both cost nothing unless somebody differentiates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import jaxpr_as_fun

PyTree = Any
FOUND = "found"  # for policies of `jax.checkpoint` that do not solve again
_KEPT_UP_TO = 512  # real numbers of one solve: those of larger systems are found again


def rooted(
    find: Callable[[PyTree], PyTree], attach: Callable[[PyTree, PyTree, PyTree], PyTree], given: PyTree
) -> PyTree:
    """`find(given)`, with the derivatives of `attach(found, given, still)` with respect to `given`.

    `find` iterates and is never differentiated; `attach` takes one Newton step at the answer, of which the derivative
    is that of the implicit function. `still` is `given` held constant, and so is what was found: the Jacobian of that
    step is taken there. A second derivative sees how both of them change with the answer. `given` holds every number
    that matters: a number that `find` or `attach` reads from elsewhere is refused where it is differentiated.
    """
    numbers, rest = eqx.partition(given, eqx.is_array)

    once = _traced_once(lambda numbers: find(eqx.combine(numbers, rest)))  # where it is solved and where differentiated

    @jax.custom_jvp
    def solve(numbers: PyTree) -> PyTree:
        return once(numbers)

    def rule(primals: tuple[PyTree], tangents: tuple[PyTree]) -> tuple[PyTree, PyTree]:
        found, still = _named(solve(*primals)), eqx.combine(*primals, rest)
        moving, along, others = changing(*primals, *tangents)

        def attached(moving: PyTree) -> PyTree:
            return attach(found, eqx.combine(moving, others, rest), still)

        return found, jax.jvp(attached, (moving,), (along,))[1]

    solve.defjvp(rule, symbolic_zeros=True)
    return solve(numbers)


def _traced_once(find: Callable[[PyTree], PyTree]) -> Callable[[PyTree], PyTree]:
    """`find` for numbers of the same shapes in every call, traced in the first one."""
    known: list[Any] = []

    def arrays_of(numbers: PyTree) -> PyTree:
        found, rest = eqx.partition(find(numbers), eqx.is_array)
        known.append(rest)
        return found

    def call(numbers: PyTree) -> PyTree:
        if not known:
            program, shapes = jax.make_jaxpr(arrays_of, return_shape=True)(numbers)
            known[1:] = [jaxpr_as_fun(program), jax.tree.structure(shapes)]
        rest, program, structure = known
        return eqx.combine(jax.tree.unflatten(structure, program(*jax.tree.leaves(numbers))), rest)

    return call


def _named(found: PyTree) -> PyTree:
    numbers, rest = eqx.partition(found, eqx.is_array)
    leaves = jax.tree.leaves(numbers)
    keeps = sum(x.size for x in leaves) <= _KEPT_UP_TO and not any(jnp.iscomplexobj(x) for x in leaves)
    return eqx.combine(checkpoint_name(numbers, FOUND), rest) if keeps else found


class Expanded(NamedTuple):
    """A function of numbers and places about fixed ones: its value, its linear part, by how much the numbers differ.

    The linear part may be applied many times; the function is there once.
    """

    value: PyTree
    linear: Callable[..., PyTree]
    by: list[jax.Array]

    @classmethod
    def of(cls, fn: Callable[..., PyTree], given: PyTree, still: PyTree, *places: PyTree) -> Expanded:
        """Of `fn(given, *places)` about `still`; numbers that are the same there do not change."""
        leaves, structure = jax.tree.flatten(still)
        pairs = list(zip(jax.tree.leaves(given), leaves))
        changed = [i for i, (x, y) in enumerate(pairs) if x is not y and eqx.is_inexact_array(y)]

        def about(numbers: list[jax.Array], *places: PyTree) -> PyTree:
            filled = list(leaves)
            for i, x in zip(changed, numbers):
                filled[i] = x
            return fn(jax.tree.unflatten(structure, filled), *places)

        value, linear = jax.linearize(about, [leaves[i] for i in changed], *places)
        return cls(value, linear, [pairs[i][0] - pairs[i][1] for i in changed])

    def along(self, *tangents: PyTree) -> PyTree:
        """What changes with the places alone."""
        return self.linear([jnp.zeros_like(x) for x in self.by], *tangents)

    def changes(self, *tangents: PyTree) -> PyTree:
        """What changes with the numbers, and with the places."""
        return self.linear(self.by, *tangents)


def is_zero(tangent: Any) -> bool:
    """Whether a tangent that a rule was given is known to be zero."""
    return type(tangent) is SymbolicZero or getattr(tangent, "dtype", None) == jax.dtypes.float0


def changing(numbers: PyTree, tangents: PyTree) -> tuple[PyTree, PyTree, PyTree]:
    """The numbers that have a tangent, their tangents, and the other numbers."""
    moving = jax.tree.map(lambda x, dx: None if is_zero(dx) else x, numbers, tangents, is_leaf=is_zero)
    along = jax.tree.map(lambda dx: None if is_zero(dx) else dx, tangents, is_leaf=is_zero)
    others = jax.tree.map(lambda x, dx: x if is_zero(dx) else None, numbers, tangents, is_leaf=is_zero)
    return moving, along, others


@jax.custom_jvp
def moving_as(x: PyTree, other: PyTree) -> PyTree:
    """`x` with the derivative of `other`, which are the same numbers but for rounding."""
    del other
    return x


@moving_as.defjvp
def _(primals: tuple[PyTree, PyTree], tangents: tuple[PyTree, PyTree]) -> tuple[PyTree, PyTree]:
    return moving_as(*primals), tangents[1]


def repeated(
    goes_on: Callable[..., Any], body: Callable[..., PyTree], x: PyTree, *given: PyTree, most: int | None = None
) -> PyTree:
    """`x <- body(x, *given)` as long as `goes_on(x, *given)`: a loop that is no root.

    Derivatives flow forward; with a bound `most` of the rounds also in reverse, and then `given` holds every number
    that matters.
    """

    def loop(x: PyTree, given: PyTree) -> PyTree:
        return jax.lax.while_loop(lambda x: goes_on(x, *given), lambda x: body(x, *given), x)

    if most is None:
        return loop(x, given)
    numbers, rest = eqx.partition(given, eqx.is_array)

    @jax.custom_jvp
    def run(x: PyTree, numbers: PyTree) -> PyTree:
        return loop(x, eqx.combine(numbers, rest))

    @run.defjvp
    def _(primals: tuple[PyTree, PyTree], tangents: tuple[PyTree, PyTree]) -> tuple[PyTree, PyTree]:
        def bounded(x: PyTree, numbers: PyTree) -> PyTree:
            given = eqx.combine(numbers, rest)

            def once(x: PyTree, _: None) -> tuple[PyTree, None]:
                return jax.lax.cond(goes_on(x, *given), lambda x: body(x, *given), lambda x: x, x), None

            return jax.lax.scan(once, x, None, length=most)[0]

        return jax.jvp(bounded, primals, tangents)

    return run(x, numbers)


def rarely(needed: Any, fn: Callable[..., PyTree], x: PyTree, *given: PyTree) -> PyTree:
    """`fn(x, *given)` if needed, else x; in a batch `fn` runs only if some lane needs it (`cond` would run it always).

    Where there is `given`, it holds every number that matters, and derivatives flow in reverse too.
    """

    def goes_on(c: tuple[Any, PyTree], *_: PyTree) -> Any:
        return c[0]

    def once(c: tuple[Any, PyTree], *given: PyTree) -> tuple[Any, PyTree]:
        return jnp.zeros_like(c[0]), fn(c[1], *given)

    return repeated(goes_on, once, (needed, x), *given, most=1 if given else None)[1]


def stored(tree: PyTree) -> PyTree:
    """The same numbers, in memory: XLA would make them anew wherever they are read (on CPUs, barriers do not last).

    A branch ends a program; the one that is not taken keeps what is not a number.
    """
    first = jnp.ravel(jax.tree.leaves(tree)[0])[0]
    return jax.lax.cond(jnp.isnan(first), lambda x: jax.tree.map(jnp.negative, x), lambda x: x, tree)


def held(tree: PyTree) -> PyTree:
    """The same numbers, constant as far as derivatives are concerned."""
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, tree)
