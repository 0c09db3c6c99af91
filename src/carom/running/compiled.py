"""Compiled functions of whole records: arrays are traced, everything else chooses the program.

`equinox.filter_jit` does the same, but waits for the result (and Ctrl-C with it), takes the records apart on every
call, does not see that a user's function reads another number than before, and holds every function for ever. Here a
record that was seen before is not taken apart again: records are immutable, so its identity is enough; its functions
are asked again what they read. A program is dropped when the last function it was made of is gone.
"""

from __future__ import annotations

import functools
import gc
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple, ParamSpec, TypeVar

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

from carom.running.functions import has_name, owner, reading
from carom.running.memory import give_back, is_crowded
from carom.running.signals import deferred

P = ParamSpec("P")
T = TypeVar("T")
_TRACED = (jax.Array, np.ndarray, np.generic, float)
_MOST_PROGRAMS = 256  # of a few MB each; a system and a method take about four
_MOST_BLANKS = 32
_MOST_REMEMBERED = 256
_BETWEEN_TRIMS = 8  # dropped programs; a trim takes some 10 ms, a compilation more
_BETWEEN_LOOKS = 8  # new programs; a look takes some 10 ms too
_OPTIONS = {"xla_cpu_use_fusion_emitters": False}  # half the time to compile, and kernels that run no slower
_HASTY = {**_OPTIONS, "xla_backend_optimization_level": 1}
_ROUGH = {**_OPTIONS, "xla_backend_optimization_level": 0}  # breaks derivatives of `jnp.maximum`


@contextmanager
def tracing() -> Iterator[None]:
    """Ctrl-C waits for the compiler, and the garbage collector too: what is traced lives on, and is looked at often."""
    collects = gc.isenabled()
    gc.disable()
    try:
        with deferred():
            yield
    finally:
        if collects:
            gc.enable()


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


class Key:
    """What two trees of one kind have in common, without holding any of their functions."""

    def __init__(self, *content: Any):
        self.content, self.hash = content, hash(content)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Key) and self.hash == other.hash and self.content == other.content)


needed_rescue: set[Key] = set()  # what the lean form of a method could not run


def remember_rescue(key: Key) -> None:
    """What has this key is run by the whole method from now on; all is forgotten when there are many."""
    if len(needed_rescue) >= _MOST_REMEMBERED:
        needed_rescue.clear()
    needed_rescue.add(key)


class Kind:
    """Everything of a tree that is not numbers; kinds with equal keys share one compiled program.

    A user's functions are held weakly: they live as long as the tree does, and may refer to it.
    """

    def __init__(self, treedef: Any, fixed: tuple[Any, ...], traced: tuple[bool, ...]):
        self.treedef, self.traced = treedef, traced
        users = [callable(x) and not isinstance(x, type) and not has_name(x) for x in fixed]
        self.fixed = tuple([_Weakly(x) if is_users else x for x, is_users in zip(fixed, users)])
        self.functions = tuple([x for x, is_users in zip(self.fixed, users) if is_users])
        self.rest = tuple([None if is_users else (type(x), x) for x, is_users in zip(fixed, users)])
        self.read = self.reading()
        self.key = Key(treedef, traced, self.rest, tuple([tuple(read.items()) for read in self.read]))

    def reading(self) -> list[Any]:
        """What the functions read now."""
        return [reading(fn()) for fn in self.functions]

    def tree(self, arrays: list[Any]) -> Any:
        """The tree with these numbers."""
        numbers, rest = iter(arrays), iter(self.strong())
        leaves = [next(numbers) if is_traced else next(rest) for is_traced in self.traced]
        return jax.tree.unflatten(self.treedef, leaves)

    def strong(self) -> tuple[Any, ...]:
        """Everything that is not numbers, functions included."""
        return tuple([x() if isinstance(x, _Weakly) else x for x in self.fixed])


class _Weakly:
    """A function that may go; one that knows no weak references stays."""

    def __init__(self, fn: Any):
        try:
            self.get = weakref.ref(fn)
        except TypeError:
            self.get = lambda: fn

    def __call__(self) -> Any:
        return self.get()


class Kinds:
    """The kinds of the members of a named tuple, which are taken apart one by one."""

    def __init__(self, group: type, members: tuple[Any, ...]):
        self.group, self.members = group, members
        self.key = Key(group, *[kind.key for kind in members])
        self.functions = tuple([fn for kind in members for fn in kind.functions])

    def tree(self, arrays: list[Any]) -> Any:
        """The named tuple with these numbers."""
        return self.group(*(kind.tree(numbers) for kind, numbers in zip(self.members, arrays)))


class Split(NamedTuple):
    """The numbers of a tree (Python floats among them), and the rest."""

    numbers: list[Any]
    kind: Kind | Kinds


def split(tree: Any) -> Split:
    """Take a tree apart; its functions are asked what they read now."""
    return _way(type(tree))(tree)


@functools.cache
def _way(kind: type) -> Callable[[Any], Split]:
    """How trees of this type are split: members one by one, numbers and constants directly, records once."""
    if kind is Split:
        return lambda parts: parts
    if hasattr(kind, "_fields"):
        return _split_members
    if issubclass(kind, (jax.Array, np.ndarray, np.generic)):
        return lambda number: Split([number], _ONE_NUMBER)
    if kind in (type(None), bool, int, str):
        return functools.cache(_split)
    return _split_record if issubclass(kind, eqx.Module) else _split


def _split_members(group: Any) -> Split:
    parts = [split(member) for member in group]
    return Split([numbers for numbers, _ in parts], Kinds(type(group), tuple([kind for _, kind in parts])))


def _split(tree: Any) -> Split:
    leaves, treedef = jax.tree.flatten(tree)
    traced = tuple([isinstance(leaf, _TRACED) for leaf in leaves])
    numbers = [np.float64(x) if isinstance(x, float) else x for x, is_traced in zip(leaves, traced) if is_traced]
    fixed = tuple([x for x, is_traced in zip(leaves, traced) if not is_traced])
    return Split(numbers, Kind(treedef, fixed, traced))


@remembered
def _last_split(record: Any) -> list[Split]:
    return [_split(record)]


def _split_record(record: Any) -> Split:
    last = _last_split(record)
    kind: Any = last[0].kind
    if kind.functions and kind.reading() != kind.read:
        last[0] = Split(last[0].numbers, Kind(kind.treedef, kind.strong(), kind.traced))
    return last[0]


_ONE_NUMBER = Kind(jax.tree.structure(0.0), (), (True,))


# ---- programs ------------------------------------------------------------------------------------------------------


class Program:
    """One compiled function of trees of certain kinds, and the functions that it was made of."""

    def __init__(self, fn: Callable[..., Any], name: Any, kinds: tuple[Kind | Kinds, ...], options: dict[str, Any]):
        self.name = name
        self.here = here = threading.local()
        self.function = lambda arrays: _rebuilt(fn, here.kinds, arrays)
        self.jitted = jax.jit(self.function, compiler_options=options)
        self.used, self.warm = next(_clock), False
        self.owners: list[dict[int, Any]] = [{} for kind in kinds for _ in kind.functions]

    def __call__(self, kinds: tuple[Kind | Kinds, ...], arrays: list[Any]) -> Any:
        """Run; the functions are at hand for tracing, and are not held afterwards. Ctrl-C waits for the compiler."""
        self.used, self.here.kinds = next(_clock), kinds
        try:
            with nullcontext() if self.warm else tracing():
                result = self.jitted(arrays) if self.warm else self.first(arrays)
        finally:
            self.here.kinds = None
        self.warm = True
        return result

    def first(self, arrays: list[Any]) -> Any:
        """Compile and run; by a compiler that no longer knows the options, without them."""
        try:
            return self.jitted(arrays)
        except jax.errors.JaxRuntimeError as error:
            if "No such compile option" not in str(error):
                raise
            self.jitted = jax.jit(self.function)
            return self.jitted(arrays)

    def claim(self, kinds: tuple[Kind | Kinds, ...]) -> None:
        """Stay as long as these functions do."""
        functions = [fn for kind in kinds for fn in kind.functions]
        for living, fn in zip(self.owners, functions):
            one = owner(fn())
            if id(one) not in living:
                try:
                    living[id(one)] = weakref.ref(one, functools.partial(_leave, self.name, living, id(one)))
                except TypeError:
                    living[id(one)] = one


_programs: dict[Any, Program] = {}
_clock, _looks = itertools.count(), itertools.count()
_dropped: list[None] = []


def _leave(name: Any, living: dict[int, Any], gone: int, _: Any) -> None:
    """A function is gone; the program made of it goes too, unless an equal function lives."""
    living.pop(gone, None)
    if not living and _programs.pop(name, None) is not None:
        _dropped.append(None)


def _program(fn: Callable[..., Any], kinds: tuple[Kind | Kinds, ...], options: dict[str, Any]) -> Program:
    """The program of these kinds; those used longest ago make room for a new one."""
    name = (fn, *[kind.key for kind in kinds])
    found = _programs.get(name)
    if found is None:
        _make_room()
        found = _programs.setdefault(name, Program(fn, name, kinds, options))
    if found.owners:
        found.claim(kinds)
    return found


def _make_room() -> None:
    """Drop the programs used longest ago, half of them in a crowded process; now and then give memory back."""
    oldest = sorted(_programs.copy().items(), key=lambda item: item[1].used)
    count = max(0, len(oldest) - _MOST_PROGRAMS + 1)
    if next(_looks) % _BETWEEN_LOOKS == _BETWEEN_LOOKS - 1 and is_crowded():
        count = max(count, len(oldest) // 2)
    for name, _ in oldest[:count]:
        _programs.pop(name, None)
    if len(_dropped) >= _BETWEEN_TRIMS:
        _dropped.clear()
        give_back()


def compiled(fn: Callable[P, T], options: dict[str, Any] = _OPTIONS) -> Callable[P, T]:
    """`fn` of positional arguments, compiled; its result is a tree of arrays, returned before the work is done.

    Inside another compiled function it is `fn` itself.
    """

    @functools.wraps(fn)
    def call(*trees: Any) -> Any:
        parts = [split(tree) for tree in trees]
        arrays = [numbers for numbers, _ in parts]
        if any([isinstance(x, Tracer) for x in jax.tree.leaves(arrays)]):
            return fn(*trees)  # pyright: ignore
        kinds = tuple([kind for _, kind in parts])
        return _program(fn, kinds, options)(kinds, arrays)

    return call  # pyright: ignore


compiled_hastily = functools.partial(compiled, options=_HASTY)  # for a look before or after a run: it runs slower
compiled_roughly = functools.partial(compiled, options=_ROUGH)  # for an estimate by which something is chosen


def blank(fn: Callable[P, T]) -> Callable[P, T]:
    """`fn` with zeros for its result, which is traced once for arguments of one kind and shape and never computed."""
    known: dict[Any, T] = {}

    @functools.wraps(fn)
    def call(*trees: Any) -> Any:
        parts = [split(tree) for tree in trees]
        numbers, structure = jax.tree.flatten([numbers for numbers, _ in parts])
        keys = tuple([kind.key for _, kind in parts])
        name = (keys, structure, tuple([(x.shape, x.dtype) for x in numbers]))
        if name not in known:
            shapes = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in numbers])
            kinds = tuple([kind for _, kind in parts])
            result = jax.eval_shape(functools.partial(_rebuilt, fn, kinds), shapes)
            if len(known) >= _MOST_BLANKS:
                known.pop(next(iter(known)), None)
            known[name] = jax.device_put(jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), result))
        return known[name]

    return call  # pyright: ignore


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
