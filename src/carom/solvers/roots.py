"""Inner solves and loops with derivatives: of the equation that was solved, not of the way to its answer.

Every loop whose number of rounds follows from numbers goes through one of these, so that derivatives flow through a
whole step of a method, forward and in reverse. Both cost nothing unless somebody differentiates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

PyTree = Any


def rooted(find: Callable[[PyTree], PyTree], attach: Callable[[PyTree, PyTree], PyTree], given: PyTree) -> PyTree:
    """`find(given)`, with the first derivative of `attach(found, given)`, which holds what was found constant.

    `find` iterates and is never differentiated; `attach` takes one Newton step at the answer, of which the derivative
    is that of the implicit function. `given` holds every number that matters: a number that `find` or `attach` reads
    from elsewhere is refused where it is differentiated, and so is a second derivative.
    """
    numbers, rest = eqx.partition(given, eqx.is_array)

    @jax.custom_jvp
    def solve(numbers: PyTree) -> PyTree:
        return find(eqx.combine(numbers, rest))

    @solve.defjvp
    def _(primals: tuple[PyTree], tangents: tuple[PyTree]) -> tuple[PyTree, PyTree]:
        found = solve(*primals)
        fixed = _once(found)
        return found, jax.jvp(lambda numbers: attach(fixed, eqx.combine(numbers, rest)), primals, tangents)[1]

    return solve(numbers)


@jax.custom_jvp
def _once(found: PyTree) -> PyTree:
    """What was found, to be differentiated once only: a second derivative would need that of the Jacobian."""
    return found


@_once.defjvp
def _(primals: Any, tangents: Any) -> Any:
    del primals, tangents
    msg = "the inner solve of an implicit step has first derivatives only: differentiate once"
    raise TypeError(msg)


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


def held(tree: PyTree) -> PyTree:
    """The same numbers, constant as far as derivatives are concerned."""
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, tree)
