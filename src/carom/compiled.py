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


def split(tree: Any) -> tuple[list[Any], Kind | Kinds]:
    """The numbers of a tree (Python floats among them), and the rest."""
    if hasattr(tree, "_fields"):
        parts = [split(member) for member in tree]
        return [numbers for numbers, _ in parts], Kinds(type(tree), tuple([kind for _, kind in parts]))
    return _split_once(tree) if isinstance(tree, eqx.Module) else _split(tree)


def _split(tree: Any) -> tuple[list[Any], Kind]:
    leaves, treedef = jax.tree.flatten(tree)
    traced = tuple([isinstance(leaf, _TRACED) for leaf in leaves])
    numbers = [np.float64(x) if isinstance(x, float) else x for x, is_traced in zip(leaves, traced) if is_traced]
    fixed = tuple([x for x, is_traced in zip(leaves, traced) if not is_traced])
    return numbers, Kind(treedef, fixed, traced)


_split_once = remembered(_split)


def compiled(fn: Callable[P, T]) -> Callable[P, T]:
    """`fn` compiled; its result is a tree of arrays, returned before the work is done."""

    @functools.partial(jax.jit, static_argnums=0)
    def run(kinds: tuple[Kind | Kinds, ...], arrays: list[list[Any]]) -> T:
        return fn(*(kind.tree(numbers) for kind, numbers in zip(kinds, arrays)))  # pyright: ignore[reportCallIssue]

    @functools.wraps(fn)
    def call(*trees: P.args, **_: P.kwargs) -> T:
        parts = [split(tree) for tree in trees]
        return run(tuple([kind for _, kind in parts]), [numbers for numbers, _ in parts])

    return call
