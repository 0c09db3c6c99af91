"""What was asked for, before anything runs: odd arguments, features nobody handles, steps that lead nowhere.

Hooks are called on the class: `method.caution` would first build a record of its own, some 30 us (equinox).
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import sys
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

from carom.arguments import UserFunction, names_of, user_function, users_frame, whole
from carom.methods.base import AbstractMethod, Gives
from carom.running.compiled import remembered, split
from carom.solvers.contact_solver import AbstractContactSolver
from carom.solvers.newton import Newton
from carom.state import State, reals, shortened
from carom.stepping.base import AbstractStepping
from carom.stepping.grid import Constant
from carom.systems.backward import backward
from carom.systems.check import check_once
from carom.systems.probe import probe_stop
from carom.systems.system import System

_COARSE = 1e-9  # of the run: a coarser time may matter where functions depend on it
_MOST_STEPS = 10**18


def segment_ends(system: System, state: State, t1: float) -> np.ndarray:
    """Start, jumps strictly inside, end; falling where the run goes backward in time."""
    t1 = t1 if isinstance(t1, float) else end_time(t1)
    if not math.isfinite(t1):
        msg = f"t1 must be finite, got t1 = {t1}"
        raise ValueError(msg)
    return instants(system, float(np.asarray(state.t)), t1)


def instants(system: System, t0: float, t1: float) -> np.ndarray:
    """Two times and the jumps between them, in order."""
    if t1 < t0:
        return instants(system, t1, t0)[::-1]
    return np.array([t0, *(t for t in _jumps(system) if t0 < t < t1), t1])


def stepped(system: System, ends: np.ndarray) -> System:
    """The system that a run over these segments steps: that of time running backward where they fall."""
    return backward(system) if ends[-1] < ends[0] else system


def end_time(t1: Any) -> float:
    """`t1` as a float; what is no number is refused by name."""
    if isinstance(t1, int) and not isinstance(t1, bool) and abs(t1) > sys.float_info.max:
        return math.inf if t1 > 0 else -math.inf
    time = np.asarray(reals(t1, "t1", "a number"))
    if time.ndim:
        msg = f"t1 must be one number, got {shortened(t1)} of shape {time.shape}"
        raise TypeError(msg)
    return float(time)


def refuse_traced(system: Any, state: Any, *numbers: Any) -> None:
    """Raise where a run is asked for inside a transformation of JAX."""
    if _traced(system) or _traced(state) or any(isinstance(x, Tracer) for x in numbers):
        msg = (
            "carom runs a compiled loop of its own, which cannot be called inside jax.jit, jax.grad or jax.vmap: "
            "call it from plain Python; for many runs at once use carom.simulate_batch"
        )
        raise TypeError(msg)


def _traced(record: Any) -> bool:
    return isinstance(record, (System, State)) and _holds_tracers(record)


@remembered
def _holds_tracers(record: Any) -> bool:
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(record))


@remembered
def _jumps(system: System) -> list[float]:
    return np.asarray(system.jumps).tolist()


def refuse(system: System, state: State, method: AbstractMethod, stepping: AbstractStepping, ends: np.ndarray) -> None:
    """Raise, by name, for anything the method or the stepping does not take into account."""
    refuse_features(system, state, method, stepping, ends)
    check_once(system, state)
    caution(system, state, method, stepping, ends)


def caution(system: System, state: State, method: AbstractMethod, stepping: AbstractStepping, ends: np.ndarray) -> None:
    """Warn about what can run, but perhaps not as it was meant."""
    span = abs(float(ends[-1] - ends[0]))
    if ends[0] != 0:
        system, state = system.since(ends[0]), State(state.q, state.v)
    type(method).caution(method, system, state, stepping.longest, span)
    told = type(stepping).caution(stepping, float(ends[-1] - ends[0])) if span else None
    resolution = float(np.spacing(np.abs(ends).max()))
    if told is None and resolution > _COARSE * span > 0 and sees_time(system):
        told = (
            f"t0 = {ends[0]:g}: functions of t see it in steps of {resolution:.2g}; give them an argument `elapsed` "
            f"(the time since the start) in place of t"
        )
    if told is not None:
        warnings.warn(told, stacklevel=users_frame())


def refuse_kinds(system: Any, state: Any, method: Any, stepping: Any) -> None:
    """Raise for an argument that is something else, and say what was probably meant."""
    wanted = {"system": System, "state": State, "method": AbstractMethod, "stepping": AbstractStepping}
    for (name, kind), value in zip(wanted.items(), (system, state, method, stepping)):
        if not isinstance(value, kind):
            hint = _meant(name, kind, value)
            word = f"a carom.{kind.__name__}" if name in ("system", "state") else f"one of carom's {name}s"
            msg = f"{name} must be {word}, got {_kind_of(value)}{hint and f'; {hint}'}"
            raise TypeError(msg)
    for record in (method, stepping):
        _refuse_settings(record)


@remembered
def _refuse_settings(record: eqx.Module) -> None:
    """Raise, by name, for a setting of another kind than its field is declared to hold; so for the records inside."""
    for name, value in vars(record).items():
        fits, wanted = _declared(type(record)).get(name, ((), ""))
        if fits and not any(fit(value) for fit in fits):
            msg = f"{type(record).__name__}: {name} must be {wanted}, got {_kind_of(value, plain=True)}"
            raise TypeError(msg)
        if isinstance(value, eqx.Module):
            _refuse_settings(value)


@functools.cache
def _declared(kind: type) -> dict[str, tuple[list[Callable[[Any], bool]], str]]:
    """What the fields of a record may hold, as tests and in words; fields of other kinds are left out."""
    found = {}
    for field in dataclasses.fields(kind):
        hint = str(field.type)
        known = [setting for word, setting in _SETTINGS.items() if re.search(rf"\b{word}\b", hint)]
        if known and "Any" not in hint:
            none = [lambda x: x is None] if "None" in hint else []
            words = " or ".join(dict.fromkeys(words for _, words in known))
            found[field.name] = ([*none, *(fit for fit, _ in known)], words)
    return found


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, (float, jax.Array))
        or not isinstance(value, (str, dict))
        and np.asarray(value).dtype.kind in "fiu"
    )


_SETTINGS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "float": (_is_number, "a number"),
    "Array": (_is_number, "a number"),
    "Float": (_is_number, "a number"),
    "int": (lambda x: isinstance(x, (int, np.integer)) and not isinstance(x, bool), "a whole number"),
    "bool": (lambda x: isinstance(x, (bool, np.bool_)), "True or False"),
    "str": (lambda x: isinstance(x, str), "a word"),
    "tuple": (lambda x: isinstance(x, (tuple, list)), "a list"),
    "dict": (lambda x: isinstance(x, dict), "a dictionary"),
    "Newton": (lambda x: isinstance(x, Newton), "a carom.Newton"),
    "AbstractContactSolver": (
        lambda x: isinstance(x, AbstractContactSolver),
        "a contact solver such as carom.PSOR()",
    ),
}


def _kind_of(value: Any, *, plain: bool = False) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return shortened(value) if plain else type(value).__name__


def _meant(name: str, kind: type, value: Any) -> str:
    if isinstance(value, type) and issubclass(value, kind):
        return f"write {value.__name__}(...)" if name == "stepping" else f"write {value.__name__}()"
    if name == "system" and isinstance(value, tuple):
        return "a model is a pair: system, state = carom.models.pendulum()"
    if isinstance(value, State if name == "system" else System if name == "state" else ()):
        return "system comes first, then state"
    if name == "state":
        return "write carom.State(q=..., v=...)"
    if name == "stepping" and isinstance(value, (int, float)):
        return f"for constant steps use h={value}"
    return f"write {value}{'' if '(' in value else '()'}, without quotes" if isinstance(value, str) else ""


def refuse_features(
    system: System, state: State, method: AbstractMethod, stepping: AbstractStepping, ends: np.ndarray
) -> None:
    """The part of `refuse` that needs no state."""
    refuse_unhandled(system, method, stepping)
    if ends[-1] < ends[0] and Gives.BACKWARD not in method.gives:
        msg = f"{type(method).__name__} runs forward in time only: t1 = {ends[-1]:g} lies before the start, {ends[0]:g}"
        raise ValueError(msg)
    unobjected = _unobjected(method)
    if unobjected.get(id(system)) is not system:
        _heed(type(method).objection(method, system))
        unobjected[id(system)] = system
    _heed(type(stepping).objection(stepping, system, state, ends))


def _heed(objection: str | None) -> None:
    if objection:
        raise ValueError(objection)


@remembered
def _unobjected(method: AbstractMethod) -> weakref.WeakValueDictionary[int, System]:
    """The systems to which a method does not object: to ask again costs a tenth of a short run (30 us)."""
    del method
    return weakref.WeakValueDictionary()


def refuse_unhandled(system: System, method: AbstractMethod, stepping: AbstractStepping) -> None:
    """The part of `refuse` that needs no numbers."""
    if not jax.config.read("jax_enable_x64"):
        msg = "carom needs 64-bit floats: remove CAROM_X64=0 or set jax_enable_x64"
        raise ValueError(msg)
    unhandled = sorted(system.features - method.handles)
    if unhandled:
        msg = f"{type(method).__name__} does not handle {names_of(unhandled)} of this system"
        raise ValueError(msg)
    missing = sorted(stepping.needs - method.gives)
    if missing:
        msg = f"{type(stepping).__name__} needs {names_of(missing)}, which {type(method).__name__} does not give"
        raise ValueError(msg)
    if system.has_lists and type(stepping).ahead is AbstractStepping.ahead:
        msg = f"{type(stepping).__name__} does not take lists of pairs: use h= or carom.Prescribed"
        raise ValueError(msg)


@remembered
def sees_time(system: System) -> bool:
    """Whether any function of the system takes t."""
    functions = jax.tree.leaves(system, is_leaf=lambda x: isinstance(x, UserFunction))
    return any(isinstance(f, UserFunction) and "t" in f.takes for f in functions)


def chosen_stepping(h: float | None, stepping: AbstractStepping | None) -> AbstractStepping:
    """The stepping of `h=` or `stepping=`."""
    if (h is None) == (stepping is None):
        msg = "give either h= (a constant step) or stepping=, not both and not none"
        raise ValueError(msg)
    if stepping is not None:
        return stepping
    return _constant(h) if isinstance(h, float) else Constant(h)  # pyright: ignore


@functools.lru_cache
def _constant(h: float) -> Constant:
    """The same record for the same size: to take a new one apart costs a tenth of a short run (45 us)."""
    return Constant(h)


def stop_function(stop: Callable[..., Any] | None) -> Any:
    """The stop condition, wrapped."""
    return None if stop is None else user_function(stop, "stop", ("t", "q", "v"))


def check_stop_once(stop: Any, system: System, state: State) -> None:
    """`probe_stop`, unless this function was looked at with this state before."""
    passed, seen = _stops(state), (split(stop).kind.key, split(system).kind.key)
    if seen not in passed:
        probe_stop(stop, system, state)
        passed.add(seen)


@remembered
def _stops(state: State) -> set[Any]:
    """The stop conditions that may be used from this state."""
    del state
    return set()


def stride(save_every: int) -> np.int64:
    """`save_every` as a number that is traced."""
    if not whole(save_every, "save_every", 1) < _MOST_STEPS:
        msg = f"save_every must be less than {_MOST_STEPS:.0e}, got {save_every:.3e}"
        raise ValueError(msg)
    return np.int64(save_every)
