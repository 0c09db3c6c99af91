"""Numbers that are known while tracing, alike in all lanes, or vectors over lanes, and arrays of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Value = np.ndarray  # of objects: known numbers (NumPy's), numbers alike in all lanes, vectors over lanes

ELEMENTWISE = frozenset(
    """abs acos add add_any and asin atan atan2 cbrt ceil clamp convert_element_type copy cos cosh div eq exp exp2 expm1
    floor ge gt integer_pow is_finite le le_to log log1p logistic lt lt_to max min mul ne neg nextafter not or pow rem
    round rsqrt select_n sign sin sinh sqrt square stop_gradient sub tan tanh xor""".split()  # noqa: SIM905
)


_KINDS = tuple("biuf")  # truth values, integers, floats


class UnknownOperationError(NotImplementedError):
    """An operation that has no rule for lanes."""


def known(x: Any) -> bool:
    """Whether a number is known while tracing."""
    return isinstance(x, np.generic)


def refuse_kind(kind: Any) -> None:
    """Raise where numbers are other than real ones that NumPy knows: keys of random numbers, say.

    Derivatives of whole numbers (`float0`) are handed on, but nothing is computed with them.
    """
    if kind != jax.dtypes.float0 and getattr(kind, "kind", "") not in _KINDS:
        raise UnknownOperationError(str(kind))


def constant(x: Any) -> Value:
    """An array whose numbers are known."""
    refuse_kind(x.dtype)
    x = np.asarray(x)
    found = np.empty(x.shape, object)
    for i in np.ndindex(x.shape):
        found[i] = x.dtype.type(x[i])
    return found


def apart(flat: Sequence[Any], shape: tuple[int, ...]) -> Value:
    """An array of these numbers."""
    found = np.empty(len(flat), object)
    for i, x in enumerate(flat):
        found[i] = x
    return found.reshape(shape)


def each(fn: Callable[..., Any], shape: tuple[int, ...], *given: Value) -> Value:
    """`fn` of the numbers of arrays."""
    found, spread = np.empty(shape, object), [np.broadcast_to(x, shape) for x in given]
    for i in np.ndindex(shape):
        found[i] = fn(*[x[i] for x in spread])
    return found


# ---- numbers --------------------------------------------------------------------------------------------------------

_NUMPY = {
    "add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
    "neg": np.negative, "abs": np.abs, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal, "and": np.bitwise_and, "or": np.bitwise_or, "not": np.invert, "sqrt": np.sqrt,
    "is_finite": np.isfinite, "square": np.square,
}  # fmt: skip


def number(primitive: Any, params: Any, *given: Any) -> Any:
    """An operation on numbers."""
    name = primitive.name
    if name in ("stop_gradient", "copy"):
        return given[0]
    if all(known(x) for x in given):
        return _known(primitive, params, *given)
    if name == "select_n":
        return _selected(*given)
    if name == "convert_element_type" and given[0].dtype == params["new_dtype"]:
        return given[0]
    if name == "round":
        return _rounded(given[0], int(params["rounding_method"]))
    if (short := _shortened(name, *given)) is not None:
        return short
    return primitive.bind(*alike(*given), **params)


def alike(*given: Any) -> list[Any]:
    """Numbers in one shape: vectors over lanes if one of them is."""
    like = next((x for x in given if getattr(x, "ndim", 0)), None)
    arrays = [jnp.asarray(x, x.dtype) if known(x) and like is None else x for x in given]
    return arrays if like is None else [x if x.ndim else jax.lax.broadcast(x, like.shape) for x in arrays]


def _known(primitive: Any, params: Any, *given: Any) -> Any:
    name = primitive.name
    with np.errstate(all="ignore"):
        if name in _NUMPY:
            return _NUMPY[name](*given)
        if name == "convert_element_type" and (given[0].dtype.kind != "f" or params["new_dtype"].kind in "fb"):
            return given[0].astype(params["new_dtype"])
    return given[1 + int(given[0])] if name == "select_n" else computed(primitive, params, *given)[()]


def computed(primitive: Any, params: Any, *given: Any) -> np.ndarray:
    """An operation on known arrays, as JAX does it on a processor."""
    with jax.ensure_compile_time_eval(), jax.default_device(jax.local_devices(backend="cpu")[0]):
        return np.asarray(primitive.bind(*given, **params))


def is_known_as(x: Any, value: float) -> bool:
    """Whether a number is known to be this one."""
    return known(x) and x == value


def _shortened(name: str, *given: Any) -> Any:
    """What an operation amounts to where one of its numbers is 0 or 1; None where it must be done."""
    if name in ("and", "or") and given[0].dtype == bool:
        a, b = given if known(given[0]) else given[::-1]
        return None if not known(a) else b if bool(a) == (name == "and") else a
    if name in ("add", "add_any", "sub", "mul", "div"):
        a, b = given
        neutral = 1 if name in ("mul", "div") else 0
        if is_known_as(b, neutral):
            return a
        if is_known_as(a, neutral) and name not in ("sub", "div"):
            return b
    return None


def select(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b."""
    if a is b or (known(a) and known(b) and a.tobytes() == b.tobytes()):  # zeros have signs
        return a
    if known(condition):
        return a if condition else b
    return jax.lax.select_n_p.bind(*(alike(condition, b, a)))


def _selected(which: Any, *cases: Any) -> Any:
    if which.dtype == bool:
        return select(which, cases[1], cases[0])
    found = cases[0]
    for k, case in enumerate(cases[1:], 1):
        found = select(equal(which, k), case, found)
    return found


def _rounded(x: Any, method: int) -> Any:
    """To whole numbers: 0 rounds halves away from zero, 1 to even ones."""
    size = abs(x)
    down = jnp.floor(size)
    rest = size - down
    is_odd = down - 2.0 * jnp.floor(0.5 * down) != 0.0
    size = jnp.where((rest > 0.5) | ((rest == 0.5) & ((method == 0) | is_odd)), down + 1.0, down)
    return jnp.where(x == 0, x, jnp.where(x < 0, -size, size))


add, mul, sub, div = (partial(number, p, {}) for p in (jax.lax.add_p, jax.lax.mul_p, jax.lax.sub_p, jax.lax.div_p))
both, absolute, larger, smaller = (
    partial(number, p, {}) for p in (jax.lax.and_p, jax.lax.abs_p, jax.lax.max_p, jax.lax.min_p)
)
gt, eq, ge, le = (partial(number, p, {}) for p in (jax.lax.gt_p, jax.lax.eq_p, jax.lax.ge_p, jax.lax.le_p))
either, ne = (partial(number, p, {}) for p in (jax.lax.or_p, jax.lax.ne_p))


def equal(x: Any, k: int) -> Any:
    """Whether a number is k."""
    return eq(x, x.dtype.type(k))
