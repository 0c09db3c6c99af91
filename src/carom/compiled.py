"""Compiled functions of whole records: arrays are traced, everything else chooses the program.

`equinox.filter_jit` does the same, but waits for the result (and Ctrl-C with it) and takes the records apart on every
call. Here a record that was seen before is not taken apart again: records are immutable, so its identity is enough.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import equinox as eqx
import jax
import numpy as np

P = ParamSpec("P")
T = TypeVar("T")
_TRACED = (jax.Array, np.ndarray, np.generic, float)


def remembered(fn: Callable[[Any], T]) -> Callable[[Any], T]:
    """`fn` of an immutable object, evaluated once in the object's life."""
    known: dict[int, tuple[weakref.ref, T]] = {}

    @functools.wraps(fn)
    def recall(thing: Any) -> T:
        key = id(thing)
        if key in known:
            return known[key][1]
        value = fn(thing)
        known[key] = (weakref.ref(thing, lambda _: known.pop(key, None)), value)
        return value

    return recall


class Kind:
    """Everything of a tree that is not numbers; equal kinds share one compiled program."""

    def __init__(self, treedef: Any, fixed: tuple[Any, ...], traced: tuple[bool, ...]):
        self.treedef, self.fixed, self.traced = treedef, fixed, traced
        self.hash = hash((treedef, fixed, traced))

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Kind) or self.hash != other.hash:
            return False
        same = self.treedef == other.treedef and self.traced == other.traced
        return same and self.fixed == other.fixed

    def tree(self, arrays: list[Any]) -> Any:
        """The tree with these numbers."""
        numbers, rest = iter(arrays), iter(self.fixed)
        leaves = [next(numbers) if is_traced else next(rest) for is_traced in self.traced]
        return jax.tree.unflatten(self.treedef, leaves)


class Kinds:
    """The kinds of the members of a named tuple, which are taken apart one by one."""

    def __init__(self, group: type, members: tuple[Any, ...]):
        self.group, self.members = group, members
        self.hash = hash((group, members))

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kinds) and self.group is other.group and self.members == other.members

    def tree(self, arrays: list[Any]) -> Any:
        """The named tuple with these numbers."""
        return self.group(*(kind.tree(numbers) for kind, numbers in zip(self.members, arrays)))


Parts = tuple[list[Any], Kind | Kinds]


def split(tree: Any) -> Parts:
    """The numbers of a tree (Python floats among them), and the rest."""
    return _way(type(tree))(tree)


@functools.cache
def _way(kind: type) -> Callable[[Any], Parts]:
    """How trees of this type are split: members one by one, numbers and constants directly, records once."""
    if hasattr(kind, "_fields"):
        return _split_members
    if issubclass(kind, (jax.Array, np.ndarray, np.generic)):
        return lambda number: ([number], _ONE_NUMBER)
    if kind in (type(None), bool, int, str):
        return functools.cache(_split)
    return _split_once if issubclass(kind, eqx.Module) else _split


def _split_members(group: Any) -> Parts:
    parts = [split(member) for member in group]
    return [numbers for numbers, _ in parts], Kinds(type(group), tuple([kind for _, kind in parts]))


def _split(tree: Any) -> Parts:
    leaves, treedef = jax.tree.flatten(tree)
    traced = tuple([isinstance(leaf, _TRACED) for leaf in leaves])
    numbers = [np.float64(x) if isinstance(x, float) else x for x, is_traced in zip(leaves, traced) if is_traced]
    fixed = tuple([x for x, is_traced in zip(leaves, traced) if not is_traced])
    return numbers, Kind(treedef, fixed, traced)


_split_once = remembered(_split)
_ONE_NUMBER = Kind(jax.tree.structure(0.0), (), (True,))


def compiled(fn: Callable[P, T]) -> Callable[P, T]:
    """`fn` compiled; its result is a tree of arrays, returned before the work is done."""
    run = jax.jit(functools.partial(_rebuilt, fn), static_argnums=0)

    @functools.wraps(fn)
    def call(*trees: P.args, **_: P.kwargs) -> T:
        parts = [split(tree) for tree in trees]
        return run(tuple([kind for _, kind in parts]), [numbers for numbers, _ in parts])

    return call


def blank(fn: Callable[P, T]) -> Callable[P, T]:
    """`fn` with zeros for its result, which is traced once for arguments of one kind and shape and never computed."""

    @functools.lru_cache(maxsize=32)
    def zeros(kinds: tuple[Kind | Kinds, ...], structure: Any, shapes: tuple[tuple[Any, Any], ...]) -> T:
        arrays = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes])
        result = jax.eval_shape(functools.partial(_rebuilt, fn, kinds), arrays)
        return jax.device_put(jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), result))

    @functools.wraps(fn)
    def call(*trees: P.args, **_: P.kwargs) -> T:
        parts = [split(tree) for tree in trees]
        numbers, structure = jax.tree.flatten([numbers for numbers, _ in parts])
        return zeros(tuple([kind for _, kind in parts]), structure, tuple([(x.shape, x.dtype) for x in numbers]))

    return call


def _rebuilt(fn: Callable[..., T], kinds: tuple[Kind | Kinds, ...], arrays: list[Any]) -> T:
    """`fn` of the trees with these kinds and numbers."""
    return fn(*(kind.tree(numbers) for kind, numbers in zip(kinds, arrays)))


def traced_once(fn: Callable[..., T], *trees: Any) -> tuple[Callable[..., T], T]:
    """`fn` for trees like these, traced now and never again, and the shapes of its result."""
    numbers, rest = eqx.partition(trees, eqx.is_array)
    other: list[Any] = []

    @jax.jit
    def inner(numbers: Any) -> Any:
        result, fixed = eqx.partition(fn(*eqx.combine(numbers, rest)), eqx.is_array)
        other[:] = [fixed]
        return result

    shapes = eqx.combine(jax.eval_shape(inner, numbers), other[0])
    return lambda *trees: eqx.combine(inner(eqx.filter(trees, eqx.is_array)), other[0]), shapes
