"""What a user's function reads: its code, defaults, closure, the globals and attributes it names, and so on from there.

A compiled program holds the numbers that its functions read while they were traced, and a stored run belongs to them.
So both are known by what is read, not by which function object does it: a changed global or a mutated array gives
another program, and a stored run says which number differs.

Things of libraries (carom, JAX, NumPy, the standard library, installed packages) that have a name are known by it.
"""

from __future__ import annotations

import builtins
import dis
import functools
import hashlib
import sys
import types
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

Reading = dict[str, Any]  # what is read, by name: a text, or `Same` where nothing but identity is known
_JITTED = type(jax.jit(lambda: None))
_last_read: weakref.WeakKeyDictionary[Any, Reading] = weakref.WeakKeyDictionary()
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), slice, range, np.dtype)
_SHOWN = 4  # entries of an array that are written out
_LONG = 8  # entries of a list from which on numbers are known by their digest
_MOST = 5000  # names; an object that refers to more is known by its identity
_IMPLICIT = {"__init__", "__new__", "__repr__", "__str__", "__init_subclass__", "__class_getitem__", "__getattribute__"}


class Same:
    """Stands for an object that nothing is known about: equal only to itself."""

    def __init__(self, thing: Any):
        self.id = id(thing)
        try:
            self.thing = weakref.ref(thing)
        except TypeError:
            self.thing = lambda: thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.id == other.id and self.thing() is other.thing()

    def __hash__(self) -> int:
        return self.id

    def __str__(self) -> str:
        return f"an object of type {type(self.thing()).__qualname__}"


def reading(fn: Any) -> Reading:
    """What a function reads, by name; "code" is the code itself.

    Example:
        >>> k = 3.0
        >>> reading(lambda q: k * q)  # {"code": "code 1f0c...", "k": "3.0"}
    """
    walk = _Walk()
    walk.take("", fn, frozenset())
    return walk.found


def has_name(thing: Any) -> bool:
    """Whether this belongs to a library and is known by its name alone."""
    return _library_name(thing) is not None


def owner(fn: Any) -> Any:
    """The object in whose life a function can be called: itself, or what a method is bound to."""
    return getattr(fn, "__self__", fn)


class _Walk:
    """From a function to everything it reads."""

    def __init__(self):
        self.found: Reading = {}
        self.seen: dict[int, tuple[str, Any]] = {}

    def take(self, name: str, thing: Any, attributes: frozenset[str]) -> None:
        """Note one thing; `attributes` are the names of attributes in the code that reads it."""
        if isinstance(thing, _PLAIN):
            self.found[name] = repr(thing)
        elif isinstance(thing, jax.Array):
            self.found[name] = Same(thing) if isinstance(thing, Tracer) else _jax_array(thing)
        elif isinstance(thing, np.ndarray | np.generic) and thing.dtype != object:
            self.found[name] = _array("numpy", np.asarray(thing))
        elif (known := _library_name(thing)) is not None:
            self.found[name] = known
        elif id(thing) in self.seen:
            self.found[name] = f"as {self.seen[id(thing)][0] or 'itself'}"
        elif len(self.found) > _MOST:
            self.found[name] = Same(thing)
        else:
            self.seen[id(thing)] = (name, thing)
            try:
                self._inside(name, thing, attributes)
            except Exception:  # noqa: BLE001  # an object that does not like to be looked at
                self.found[name] = Same(thing)

    def _inside(self, name: str, thing: Any, attributes: frozenset[str]) -> None:
        if isinstance(thing, types.FunctionType):
            self._function(name, thing)
        elif isinstance(thing, types.MethodType):
            self.take(name, thing.__func__, attributes)
            self.take(_join(name, "self"), thing.__self__, _names(_code(thing.__func__))[1])
        elif isinstance(thing, types.BuiltinMethodType):
            self.found[name] = f"method {thing.__name__}"
            self.take(_join(name, "self"), thing.__self__, attributes)
        elif isinstance(thing, _JITTED):
            self._jitted(name, thing)
        elif isinstance(thing, functools.partial):
            self._entries(name, "partial", {"function": thing.func, "arguments": thing.args, **thing.keywords})
        elif isinstance(thing, tuple | list | Mapping | set | frozenset):
            self._container(name, thing, attributes)
        elif isinstance(thing, types.ModuleType | type):
            self.found[name] = f"{'class' if isinstance(thing, type) else 'module'} {thing.__name__}"
            self._named(name, thing, attributes)
        elif isinstance(thing, property | staticmethod | classmethod):
            self.take(name, _plain_function(thing), attributes)
        else:
            self._object(name, thing, attributes)

    def _function(self, name: str, fn: Any) -> None:
        code = fn.__code__
        names, attributes, modules = _names(code)
        self.found[_join(name, "code")] = _digest(code)
        for cell_name, cell in zip(code.co_freevars, fn.__closure__ or ()):
            self.take(_join(name, cell_name), _contents(cell), attributes)
        arguments = code.co_varnames[: code.co_argcount]
        values = fn.__defaults__ or ()
        for argument, value in zip(arguments[len(arguments) - len(values) :], values):
            self.take(_join(name, argument), value, attributes)
        for argument, value in (fn.__kwdefaults__ or {}).items():
            self.take(_join(name, argument), value, attributes)
        if _is_library(fn.__globals__.get("__name__")):
            return
        for global_name in names:
            place = fn.__globals__ if global_name in fn.__globals__ else vars(builtins)
            if global_name in place:
                self.take(_join(name, global_name), place[global_name], attributes)
        for module in modules:
            if module in sys.modules:
                self.take(_join(name, module), sys.modules[module], attributes)

    def _jitted(self, name: str, thing: Any) -> None:
        """A user's own `jax.jit(f)`, which must not remember what it read before either."""
        inner = _Walk()
        inner.take("", thing.__wrapped__, frozenset())
        if _last_read.get(thing, inner.found) != inner.found:
            thing.clear_cache()
        _last_read[thing] = inner.found
        self.found |= {_join(name, n): value for n, value in inner.found.items()}

    def _named(self, name: str, place: Any, attributes: frozenset[str]) -> None:
        """The attributes of a module or class that the code names."""
        there = _class_attributes(place) if isinstance(place, type) else vars(place)
        for attribute in sorted(attributes & there.keys()):
            self.take(_join(name, attribute), there[attribute], attributes)

    def _entries(self, name: str, kind: str, entries: Mapping[str, Any]) -> None:
        self.found[name] = kind
        for key, value in entries.items():
            self.take(_join(name, key), value, frozenset())

    def _container(self, name: str, thing: Any, attributes: frozenset[str]) -> None:
        entries = list(thing.items()) if isinstance(thing, Mapping) else list(enumerate(thing))
        kind = f"{type(thing).__qualname__} of {len(entries)}"
        if isinstance(thing, set | frozenset):
            self.found[name] = f"{kind} {_short(repr(sorted(map(repr, thing))).encode())}"
        elif len(entries) > _LONG and all(type(x) in _PLAIN for entry in entries for x in entry):
            self.found[name] = f"{kind} {_short(repr(entries).encode())}"
        else:
            self.found[name] = kind
            for key, value in entries:
                self.take(f"{name}[{key!r}]" if isinstance(key, _PLAIN) else f"{name}[?]", value, attributes)

    def _object(self, name: str, thing: Any, attributes: frozenset[str]) -> None:
        """The data of an object, and of its class what the code names or Python calls by itself."""
        data = dict(_data(thing))
        if not data and not _is_users(type(thing)):
            self.found[name] = Same(thing)
            return
        self.found[name] = type(thing).__qualname__
        called = {n for n in _class_attributes(type(thing)) if n.startswith("__") and n not in _IMPLICIT}
        more = {n for n in called if isinstance(getattr(type(thing), n, None), types.FunctionType)}
        self._named(name, type(thing), _reached(type(thing), attributes | more) - data.keys())
        for attribute, value in data.items():
            self.take(_join(name, attribute), value, attributes)


def _join(name: str, more: str) -> str:
    return f"{name}.{more}" if name else more


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return "nothing yet"


def _data(thing: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an object itself, and the function it wraps."""
    for name, value in getattr(thing, "__dict__", {}).items():
        if name == "__wrapped__" or not name.startswith("__"):
            yield name, value
    for kind in type(thing).__mro__:
        slots = vars(kind).get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in ("__dict__", "__weakref__") and hasattr(thing, slot):
                yield slot, getattr(thing, slot)


def _class_attributes(kind: type) -> dict[str, Any]:
    """What a user's class and its bases define."""
    return {n: x for base in reversed(kind.__mro__) if _is_users(base) for n, x in vars(base).items()}


def reads_traced(function: Any) -> str | None:
    """The name of a traced number that a function reads from around it, if there is one."""
    found = reading(function).items()
    return next((name for name, x in found if isinstance(x, Same) and isinstance(x.thing(), Tracer)), None)


def _reached(kind: type, attributes: frozenset[str] | set[str]) -> frozenset[str]:
    """The attributes named, and those that the methods among them name."""
    there, reached, new = _class_attributes(kind), frozenset(), frozenset(attributes)
    while new:
        reached |= new
        named = [_names(_code(_plain_function(there[n])))[1] for n in new if n in there]
        new = frozenset().union(*named) - reached
    return reached


def _plain_function(thing: Any) -> Any:
    """The function in a method of a class, however it is bound."""
    return thing.fget if isinstance(thing, property) else getattr(thing, "__func__", thing)


def _is_users(kind: type) -> bool:
    return not _is_library(kind.__module__)


# ---- libraries -----------------------------------------------------------------------------------------------------


def _library_name(thing: Any) -> str | None:
    """The name by which a thing of a library is found again; None if it has none."""
    if isinstance(thing, types.ModuleType):
        return f"module {thing.__name__}" if _is_library(thing.__name__) else None
    module = getattr(thing, "__module__", None) or getattr(type(thing), "__module__", None)
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not _is_library(module):
        return None
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}.{name}" if found is thing else None


def _is_library(module: str | None) -> bool:
    return module is not None and _is_library_package(module.partition(".")[0])


@functools.cache
def _is_library_package(package: str) -> bool:
    if package in ("carom", "carom_cli") or package in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


# ---- code and arrays -----------------------------------------------------------------------------------------------


def _code(fn: Any) -> types.CodeType:
    return getattr(fn, "__code__", _NO_CODE)


_NO_CODE = (lambda: None).__code__


@functools.lru_cache(maxsize=1024)
def _names(code: types.CodeType) -> tuple[tuple[str, ...], frozenset[str], tuple[str, ...]]:
    """The globals, the attributes and the modules that a code names, with the functions inside it."""
    names, attributes, modules = dict.fromkeys(()), set(), dict.fromkeys(())
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names[step.argval] = None
        elif step.opname == "IMPORT_NAME":
            modules[step.argval] = None
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM"):
            attributes.add(step.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            more = _names(inner)
            names |= dict.fromkeys(more[0])
            attributes |= more[1]
            modules |= dict.fromkeys(more[2])
    return tuple(names), frozenset(attributes), tuple(modules)


@functools.lru_cache(maxsize=1024)
def _digest(code: types.CodeType) -> str:
    return f"code {_short(_plain_code(code).encode())}"


def _plain_code(code: types.CodeType) -> str:
    """A code without the places where it stands."""
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return repr((code.co_code, counts, names, [_plain_constant(x) for x in code.co_consts]))


def _plain_constant(value: Any) -> str:
    if isinstance(value, types.CodeType):
        return _plain_code(value)
    return repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)


def _array(library: str, array: np.ndarray) -> str:
    shown = array.tolist() if array.size <= _SHOWN else _short(np.ascontiguousarray(array).data)
    return f"{library} {array.dtype}{list(array.shape) or ''} {shown}"


def _jax_array(array: Any) -> Any:
    key = id(array)
    if key not in _known_arrays:
        try:
            text = _array("jax weak" if array.weak_type else "jax", np.asarray(array))
        except TypeError:  # a key of random numbers
            return Same(array)
        _known_arrays[key] = (weakref.ref(array, lambda _: _known_arrays.pop(key, None)), text)
    return _known_arrays[key][1]


_known_arrays: dict[int, tuple[weakref.ref, str]] = {}  # arrays of JAX do not change


def _short(content: Any) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
