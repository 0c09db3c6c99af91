"""A traced function of one lane, computed for a block of lanes number by number.

Every array of a lane is taken apart into its numbers, and each of them is one vector over the lanes of the block, so
that all of a step is arithmetic of such vectors: what a GPU runs in one kernel, a lane per thread. Loops go on, and
branches are entered, as long as any lane of the block wants them; the others keep what they had. Numbers that are
known while tracing are computed then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np

from carom.running import lane_arrays
from carom.running.lane_numbers import (
    ELEMENTWISE,
    UnknownOperationError,
    Value,
    apart,
    constant,
    each,
    known,
    number,
    refuse_kind,
    select,
)

UNROLLED = 64  # rounds of a loop of fixed length that are written out: what is known of them is computed here
_SHORT = 24  # equations: both sides of such a branch are computed

Rule = Callable[..., list[Value]]


def evaluated(closed: Any, given: Sequence[Value]) -> list[Value]:
    """Results of traced equations for these arguments."""
    values: dict[Any, Value] = dict(zip(closed.jaxpr.constvars, map(constant, closed.consts), strict=True))
    values |= dict(zip(closed.jaxpr.invars, given, strict=True))

    def value(variable: Any) -> Value:
        return constant(_typed(variable)) if hasattr(variable, "val") else values[variable]

    for equation in closed.jaxpr.eqns:
        for x in equation.outvars:
            refuse_kind(x.aval.dtype)
        values |= dict(zip(equation.outvars, _applied(equation, [value(x) for x in equation.invars]), strict=True))
    return [value(x) for x in closed.jaxpr.outvars]


def _typed(literal: Any) -> Any:
    refuse_kind(literal.aval.dtype)
    return np.asarray(literal.val, literal.aval.dtype)


def _applied(equation: Any, given: list[Value]) -> list[Value]:
    name, params = equation.primitive.name, equation.params
    if name in _RULES:
        return _RULES[name](equation, given, **params)
    if all(v.aval.size == 0 for v in equation.outvars):
        return [np.empty(v.aval.shape, object) for v in equation.outvars]
    if name in lane_arrays.RULES:
        found = lane_arrays.RULES[name](equation, *given, **params)
        return found if isinstance(found, list) else [found]
    if name in ELEMENTWISE:
        return [each(partial(number, equation.primitive, params), equation.outvars[0].aval.shape, *given)]
    raise UnknownOperationError(name)


_RULES: dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def note(fn: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, fn))
        return fn

    return note


def _closed(jaxpr: Any) -> Any:
    return jaxpr if hasattr(jaxpr, "consts") else jax.extend.core.ClosedJaxpr(jaxpr, ())


@_rule("jit", "pjit", "closed_call", "core_call", "remat", "checkpoint", "custom_jvp_call", "custom_vjp_call")
def _(_: Any, given: list[Value], **params: Any) -> list[Value]:
    return evaluated(_closed(params.get("jaxpr", params.get("call_jaxpr"))), given)


@_rule("custom_linear_solve")
def _(_: Any, given: list[Value], const_lengths: Any, jaxprs: Any) -> list[Value]:
    before = const_lengths.matvec + const_lengths.vecmat
    sides = given[before + const_lengths.solve + const_lengths.transpose_solve :]
    return evaluated(_closed(jaxprs.solve), given[before : before + const_lengths.solve] + sides)


@_rule("platform_index")
def _(_: Any, __: list[Value], platforms: Any, **___: Any) -> list[Value]:
    """The way of a processor, whose operations have rules."""
    way = next((i for i, names in enumerate(platforms) if names is None or "cpu" in names), 0)
    return [constant(np.int32(way))]


# ---- loops and branches ---------------------------------------------------------------------------------------------


def wide(x: Any, like: jax.Array, dtype: Any) -> jax.Array:
    """A number as a vector over the lanes."""
    return x if getattr(x, "ndim", 0) else jax.lax.broadcast(jnp.asarray(x, dtype), like.shape)


def any_lane(mask: Any) -> Any:
    """Whether any lane of the block says so."""
    return jnp.max(mask.astype(jnp.int32)) > 0 if mask.ndim else mask


def _flat(values: Sequence[Value], variables: Sequence[Any], like: jax.Array) -> list[jax.Array]:
    return [wide(one, like, v.aval.dtype) for x, v in zip(values, variables) for one in x.ravel()]


def shaped(flat: Sequence[Any], variables: Sequence[Any]) -> list[Value]:
    """Numbers in the arrays that these variables stand for."""
    numbers = iter(flat)
    return [apart([next(numbers) for _ in range(v.aval.size)], v.aval.shape) for v in variables]


def _lanes(values: Sequence[Value]) -> jax.Array | None:
    """Any vector over lanes among these."""
    return next((one for x in values for one in x.ravel() if getattr(one, "ndim", 0)), None)


def _masked(mask: Any, new: Sequence[Any], old: Sequence[Any]) -> list[Any]:
    return [select(mask, a, b) for a, b in zip(new, old)]


@_rule("while")
def _(
    equation: Any, given: list[Value], cond_jaxpr: Any, body_jaxpr: Any, cond_nconsts: int, body_nconsts: int
) -> list[Value]:
    split = cond_nconsts + body_nconsts
    of_cond, of_body, start = given[:cond_nconsts], given[cond_nconsts:split], given[split:]
    variables, like = equation.outvars, _lanes(given)
    if like is None or cond_jaxpr.out_avals[0].shape:
        msg = "a loop that is alike in all lanes, or a batch of loops"
        raise UnknownOperationError(msg)

    def wanted(flat: Sequence[Any]) -> Any:
        return wide(evaluated(cond_jaxpr, of_cond + shaped(flat, variables))[0][()], like, bool)

    def turn(loop: Any) -> Any:
        flat, on, _ = loop
        new = _flat(evaluated(body_jaxpr, of_body + shaped(flat, variables)), variables, like)
        flat = _masked(on, new, flat)
        on = on & wanted(flat)
        return flat, on, any_lane(on)

    flat = _flat(start, variables, like)
    on = wanted(flat)
    flat, _, _ = jax.lax.while_loop(lambda loop: loop[2], turn, (flat, on, any_lane(on)))
    return shaped(flat, variables)


@_rule("scan")
def _(equation: Any, given: list[Value], jaxpr: Any, length: int, reverse: bool, **_: Any) -> list[Value]:
    num_carry = len(equation.outvars) - _stacked(equation.outvars, jaxpr.jaxpr.outvars)
    split = len(given) - _stacked(equation.invars, jaxpr.jaxpr.invars)
    num_consts = split - num_carry
    consts, carry, columns = given[:num_consts], given[num_consts:split], given[split:]
    like, variables = _lanes(given), equation.outvars[:num_carry]
    if length > UNROLLED:
        if like is None or columns or len(equation.outvars) > num_carry:
            msg = "a long loop that reads or leaves rows"
            raise UnknownOperationError(msg)

        def once(_: Any, flat: Any) -> Any:
            return _flat(evaluated(jaxpr, consts + shaped(flat, variables)), variables, like)

        return shaped(jax.lax.fori_loop(0, length, once, _flat(carry, variables, like)), variables)
    rows: list[list[Value]] = []
    for k in range(length)[::-1] if reverse else range(length):
        results = evaluated(jaxpr, [*consts, *carry, *(x[k, ...] for x in columns)])
        carry, row = results[:num_carry], results[num_carry:]
        rows.append(row)
    if reverse:
        rows.reverse()
    stacked = [np.empty(v.aval.shape, object) for v in equation.outvars[num_carry:]]
    for k, row in enumerate(rows):
        for column, x in zip(stacked, row, strict=True):
            column[k, ...] = x
    return [*carry, *stacked]


def _stacked(outside: Sequence[Any], inside: Sequence[Any]) -> int:
    """How many variables of a scan are taken row by row; releases of JAX name the others differently."""
    return sum(x.aval.ndim > y.aval.ndim for x, y in zip(outside, inside))


@_rule("cond")
def _(equation: Any, given: list[Value], branches: Any, **_: Any) -> list[Value]:
    index, rest, variables = given[0][()], given[1:], equation.outvars
    if len(branches) == 1 or known(index):
        return evaluated(branches[min(max(int(index), 0), len(branches) - 1)], rest)
    like = _lanes(given)
    here = [_is_branch(index, k, len(branches)) for k in range(len(branches))]
    if like is None or all(_length(branch.jaxpr) <= _SHORT for branch in branches):
        return _all_ways(here, [evaluated(branch, rest) for branch in branches])
    found = [jnp.zeros(like.shape, v.aval.dtype) for v in variables for _ in range(v.aval.size)]
    for mask, branch in zip(here, branches):
        enter = lambda found, mask=mask, branch=branch: _masked(  # noqa: E731
            mask, _flat(evaluated(branch, rest), variables, like), found
        )
        found = jax.lax.cond(any_lane(mask), enter, lambda found: found, found)
    return shaped(found, variables)


def _all_ways(here: Sequence[Any], ways: Sequence[list[Value]]) -> list[Value]:
    """Results of branches that were all computed, each where it holds."""
    found = ways[0]
    for mask, way in zip(here[1:], ways[1:]):
        found = [each(partial(select, mask), a.shape, a, b) for a, b in zip(way, found)]
    return found


def _is_branch(index: Any, k: int, count: int) -> Any:
    """Whether a branch of `count` is the k-th; indices outside name the nearest."""
    if index.dtype == bool:
        return index if k else ~index
    if k in (0, count - 1):
        return index >= k if k else index <= 0
    return index == k


def _length(jaxpr: Any) -> int:
    """Equations of a list; loops and branches are long."""
    count = 0
    for equation in jaxpr.eqns:
        inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
        is_long = equation.primitive.name in ("while", "scan", "cond")
        count += _SHORT + 1 if is_long else 1 if inner is None else _length(getattr(inner, "jaxpr", inner))
    return count
