"""Turning what a user writes into one calling convention, with errors in the user's words."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from carom.state import reals, shortened

_NAMED = ("p", "elapsed")


class Given(NamedTuple):
    """What a system gives to every function of a user: its parameters, and the time at which the run began."""

    params: Any
    epoch: Any


class UserFunction(eqx.Module):
    """A user's function called by carom with the full set of arguments; it receives those it asked for.

    The argument named `p` receives the system's parameters, `elapsed` the time since the start of the run; the others
    are recognised by their number.
    """

    fn: Callable[..., Any]
    takes: tuple[str, ...] = eqx.field(static=True)
    named: tuple[str, ...] = eqx.field(static=True)

    @property
    def sees_time(self) -> bool:
        """Whether the function depends on time."""
        return "t" in self.takes or "elapsed" in self.named

    def __call__(self, given: Given, **available: Any) -> Any:
        """Call with the arguments the function takes, by position or name; `t` is the time since the start."""
        named = {"p": given.params, "elapsed": available["t"]}
        if "t" in self.takes:
            available["t"] = given.epoch + available["t"]
        return self.fn(*(available[name] for name in self.takes), **{name: named[name] for name in self.named})


class DerivedFunction(UserFunction):
    """A function of carom's own, made of users' functions: it takes the elapsed time, and what they are given."""

    def __call__(self, given: Given, **available: Any) -> Any:
        """Call by position, with what the user's functions inside are given."""
        return self.fn(*(available[name] for name in self.takes), given)


def user_function(fn: Any, role: str, *signatures: tuple[str, ...]) -> UserFunction:
    """Wrap `fn`, whose positional arguments must match one of `signatures` in number."""
    if isinstance(fn, UserFunction):
        return fn
    wanted = " or ".join(f"({', '.join(names)})" for names in signatures)
    if not callable(fn):
        msg = f"{role} must be a function of {wanted}, got {type(fn).__name__}"
        raise TypeError(msg)
    names = _parameter_names(fn)
    named = tuple(name for name in _NAMED if name in names)
    positional = [name for name in names if name not in _NAMED]
    misnamed = [name for name in positional if name in ("params", "param", "parameters")]
    if misnamed:
        msg = f"{role}: name the argument p, not {misnamed[0]}, to receive the system's params"
        raise TypeError(msg)
    for signature in signatures:
        if len(signature) == len(positional) and _in_order(positional, signature):
            return UserFunction(fn, signature, named)
    msg = f"{role} must be a function of {wanted} (and optionally p and elapsed), got ({', '.join(names)})"
    raise TypeError(msg)


def _in_order(names: list[str], signature: tuple[str, ...]) -> bool:
    """Whether no argument bears the name of another one."""
    return not any(name in ("t", "q", "v") and name != wanted for name, wanted in zip(names, signature))


def _parameter_names(fn: Callable[..., Any]) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(fn).parameters.values()
    return [p.name for p in parameters if (p.kind in kinds and p.default is p.empty) or p.name in _NAMED]


def numbers(value: Any, name: str, **wanted: Any) -> Array:
    """A scalar or a vector of `size` finite numbers; errors name the argument and the index."""
    return jnp.asarray(plain_numbers(value, name, **wanted))


def plain_numbers(
    value: Any,
    name: str,
    *,
    size: int | None = None,
    positive: bool = False,
    nonnegative: bool = False,
    of: str = "entry",
) -> Any:
    """`numbers` as a NumPy array, which takes 2 us instead of 50; values that are traced cannot be judged."""
    several = "" if size == 1 or of == "entry" else f" or one number per {of}"
    array = reals(value, name, f"a number{several}")
    if array.ndim > 1 or (size is not None and array.ndim == 1 and array.size != size):
        msg = f"{name} must be a number or one number per {of} ({size}), got shape {array.shape}"
        raise ValueError(msg)

    def judge(array: np.ndarray) -> None:
        bad = ~np.isfinite(array)
        wanted = "finite"
        if positive:
            bad, wanted = bad | ~(array > 0), "positive"
        elif nonnegative:
            bad, wanted = bad | ~(array >= 0), "zero or positive"
        if bad.any():
            short = name.rpartition(": ")[2]
            where = f"{short}[{int(np.flatnonzero(bad)[0])}]" if array.ndim else short
            msg = f"{name} must be {wanted}, got {where} = {array[bad][0] if array.ndim else float(array)}"
            raise ValueError(msg)

    return judged(array, judge)


_postponed: ContextVar[list[tuple[Any, Callable[[np.ndarray], None]]] | None] = ContextVar("postponed", default=None)


def judged(array: Any, judge: Callable[[np.ndarray], None]) -> Any:
    """The array, after `judge` had a look at each of its numbers; at those that are traced somebody may look later."""
    if not is_traced(array):
        array = np.asarray(array)
        judge(array)
    elif (postponed := _postponed.get()) is not None:
        postponed.append((array, judge))
    return array


@contextmanager
def postponed_judgements() -> Iterator[list[tuple[Any, Callable[[np.ndarray], None]]]]:
    """Traced numbers that are given to constructors inside, each with the function that raises for bad ones."""
    found: list[tuple[Any, Callable[[np.ndarray], None]]] = []
    token = _postponed.set(found)
    try:
        yield found
    finally:
        _postponed.reset(token)


def per_entry(value: Any, name: str, size: int, of: str, **kind: bool) -> Array:
    """Like `numbers`, spread over `size` entries."""
    return jnp.asarray(plain_entries(value, name, size, of, **kind))


def plain_entries(value: Any, name: str, size: int, of: str, **kind: bool) -> Any:
    """`per_entry` as a NumPy array."""
    return numpy_for(value).broadcast_to(plain_numbers(value, name, size=size, of=of, **kind), (size,))


def is_traced(*values: Any) -> bool:
    """Whether some of these numbers are not known yet: inside `jax.jit`, `jax.vmap` or `jax.grad`."""
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(values))


def numpy_for(*values: Any) -> Any:
    """NumPy, or its likeness in JAX where some of these numbers are traced."""
    return jnp if is_traced(*values) else np


def real(value: Any) -> Any:
    """`value` as a float, or as it is where it is traced."""
    return value if is_traced(value) else float(value)


def names_of(items: Sequence[str]) -> str:
    """A readable list of names."""
    return ", ".join(f"'{item}'" for item in items) if items else "none"


def texts(values: Any, name: str, wanted: str) -> tuple[str, ...]:
    """A tuple of texts that a file can hold."""
    found: tuple[Any, ...] = tuple(values) if isinstance(values, (Sequence, np.ndarray)) else (None,)
    for i, text in enumerate(found):
        if not isinstance(text, str):
            msg = f"{name} must be {wanted}, got {shortened(values)}"
            raise TypeError(msg)
        if "\0" in text or not text.isprintable():
            msg = f"{name}[{i}] must be printable text, got {text!r}"
            raise ValueError(msg)
    return found


def users_frame() -> int:
    """The `stacklevel` with which a warning points at the line that called carom."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("carom", "carom_cli"):
        frame, level = frame.f_back, level + 1
    return level


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the known one most like it, if any is."""
    close = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean '{close[0]}'?" if close else ""


def whole(value: Any, name: str, least: int) -> int:
    """`value` as an int, refused by name unless it is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        msg = f"{name} must be a whole number of at least {least}, got {value!r}"
        raise ValueError(msg)
    return int(value)
