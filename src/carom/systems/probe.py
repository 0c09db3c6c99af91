"""Every function of a user called once on the host, before anything is compiled, with errors in the user's words.

JAX clamps an index out of range, broadcasts a force of the wrong shape and explains a Python `if` in its own words.
Here each function is traced twice, which compiles nothing: with traced coordinates, for its shape, and with NumPy ones,
which refuse a wrong index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from carom.arguments import Given, UserFunction, names_of
from carom.running.compiled import split
from carom.state import State
from carom.systems.body_contacts import AbstractBodyContacts, PairContacts
from carom.systems.contact import Contacts
from carom.systems.lagrangian import Lagrangian
from carom.systems.system import System
from carom.systems.terms import role_of

NOT_TRACEABLE = (
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.ConcretizationTypeError,
)
TO_BE_TRACEABLE = "use jax.numpy in place of numpy and math, and jnp.where in place of if"
_ROUNDING = 1e-9
_MOST_PASSED = 1000
_passed: set[Any] = set()  # keys of systems and sizes of states: numbers do not change shapes


def probe(system: System, state: State) -> None:
    """Raise, naming role and function, where a function of the system cannot be traced or returns the wrong shape."""
    numbers, kind = split(system)
    seen = (kind.key, tuple(np.shape(x) for x in numbers), state.q.shape, state.v.shape)
    if seen not in _passed:
        of_system = ((*one, {}) for one in _functions(system, state))
        for role, fn, expect, arguments in chain(of_system, _functions_of_bodies(system)):
            got = result(fn, role, state, system, **arguments)
            if got.dtype == bool:
                msg = f"{role} must return numbers, got True or False"
                raise TypeError(msg)
            expect(role, got)
        if len(_passed) >= _MOST_PASSED:
            _passed.clear()
        _passed.add(seen)


def probe_stop(stop: UserFunction, system: System, state: State) -> None:
    """Refuse a stop condition that is no number, or negative at the start."""
    value = probe_number(stop, "stop", system, state)
    arguments = _arguments(state, system)
    size = 1.0 + max(np.max(np.abs(arguments[name]), initial=0.0) for name in ("q", "v"))
    if not value >= -_ROUNDING * size:  # a run may start where another one was stopped
        msg = f"stop is {value:g} at the start (t = {float(state.t):g}); the run ends where it turns negative"
        raise ValueError(msg)


def probe_number(fn: UserFunction, role: str, system: System, state: State) -> float:
    """The value at the start of a function whose sign matters; refused if it is no number."""
    shape = result(fn, role, state, system)
    _one_number(role, shape)
    if shape.dtype == bool:
        where = "turns negative where the run shall end" if role == "stop" else "changes its sign"
        msg = f"{role} must return a number that {where}, got True or False"
        raise TypeError(msg)
    return float(np.squeeze(fn(_given(system, state), **_arguments(state, system))))


def result(fn: UserFunction, role: str, state: State, system: System, arrays: Any = jnp.asarray, **more: Any) -> Any:
    """Shape and type of what a function returns; its failure is told in the user's words.

    `arrays` makes arrays of what it returns, `more` are arguments beyond those of functions of a system.
    """
    given, arguments = _given(system, state), _arguments(state, system) | more
    name = _called(fn.fn, role)

    def with_numpy() -> Any:
        return arrays(fn(jax.tree.map(np.asarray, given), **arguments))

    with np.errstate(all="ignore"):
        try:
            jax.eval_shape(with_numpy)
        except IndexError as error:
            msg = f"{name}: {_index(error, arguments)}"
            raise IndexError(msg) from None
        except Exception:  # noqa: BLE001, S110
            pass  # NumPy arrays lack some of what traced ones have
    try:
        return jax.eval_shape(lambda available: arrays(_something(fn(given, **available))), arguments)
    except NOT_TRACEABLE:
        msg = f"{name}: {TO_BE_TRACEABLE}"
        raise TypeError(msg) from None
    except Exception as error:
        if "p" in fn.named and given.params is None:
            msg = f"{name} takes p, but the system has no params="
            raise TypeError(msg) from error
        if isinstance(error, KeyError) and "p" in fn.named and isinstance(given.params, dict):
            msg = f"{name}: params has no {error}; it has {names_of(list(given.params))}"
            raise ValueError(msg) from None
        msg = f"{name}: {(str(error) or repr(error)).splitlines()[0]}"
        raise _same_kind(error)(msg) from error


def _given(system: System, state: State) -> Given:
    """What functions are given in a run from this state."""
    return Given(system.params, np.asarray(state.t)[()])


def _arguments(state: State, system: System) -> dict[str, Any]:
    q = np.asarray(state.q)
    lam = np.zeros(0)
    if system.constraints is not None and any("lam" in f.takes for f in system.forces.values()):
        lam = np.zeros(jax.eval_shape(system.constraint, state.t, state.q).shape)
    return {"t": np.float64(0.0), "q": q, "v": np.asarray(state.v), "lam": lam}


def _something(value: Any) -> Any:
    if value is None:
        msg = "returned nothing (is there a return?)"
        raise TypeError(msg)
    if any(jnp.iscomplexobj(x) for x in jax.tree.leaves(value)):
        msg = "returned complex numbers: carom's are real"
        raise TypeError(msg)
    return value


def _same_kind(error: Exception) -> type[Exception]:
    return type(error) if type(error) in (TypeError, ValueError, IndexError, AttributeError, NameError) else ValueError


def _called(fn: Any, role: str) -> str:
    """The role, and the function's name if it has one of its own."""
    name = getattr(fn, "__name__", "<lambda>")
    return role if name == "<lambda>" or role.startswith("the ") or f"'{name}'" in role else f"{role} ({name})"


def _index(error: IndexError, arguments: dict[str, Any]) -> str:
    found = re.match(r"index (-?\d+) is out of bounds for axis \d+ with size (\d+)", str(error))
    if found is None:
        return str(error)
    sizes = (("coordinates", arguments["q"].size), ("velocities", arguments["v"].size))
    what = next((name for name, size in sizes if size == int(found[2])), "entries")
    return f"index {found[1]} is out of range for {found[2]} {what}"


# ---- what each function must return --------------------------------------------------------------------------------

Expect = Callable[[str, jax.ShapeDtypeStruct], None]


def _functions(system: System, state: State) -> Iterator[tuple[str, UserFunction, Expect]]:
    n, m = state.q.size, state.v.size
    lagrangian = getattr(getattr(system.mass, "fn", None), "__self__", None)
    if isinstance(lagrangian, Lagrangian):
        yield "the Lagrangian", lagrangian.fn, _one_number
    elif isinstance(system.mass, UserFunction):
        yield "mass", system.mass, _shape((), (m,), (m, m))
    for name, part in system.potential.items():
        if isinstance(part, UserFunction):
            yield role_of("potential", name), part, _one_number
    for name, part in system.rate_damping.items():
        if isinstance(part, UserFunction):
            yield f"rate_damping '{name}'", part, _one_number
    if system.hamiltonian is not None:
        yield "the Hamiltonian", system.hamiltonian, _one_number
    if system.kinematics is not None:
        yield "kinematics", system.kinematics, _shape((n,))
    if system.manifold is not None:
        yield "manifold", system.manifold, _shape((n,))
    if system.constraints is not None:
        yield "constraints", system.constraints, _entries("constraints")
    if system.nonholonomic is not None:
        yield "nonholonomic", system.nonholonomic, _entries("constraints")
    for name, force in system.forces.items():
        yield f"force '{name}'", force, _shape((m,))
    for contacts, which in _numbered(system.contact_groups, "contacts"):
        if not isinstance(contacts, Contacts):
            continue
        gap = f"gap{which}"
        yield gap, contacts.gap, _entries("contacts")
        count = int(np.prod(result(contacts.gap, gap, state, system).shape))
        for name in ("slip", "slip_velocity"):
            if getattr(contacts, name) is not None:
                yield f"{name}{which}", getattr(contacts, name), _per_law(count)
    for friction, which in _numbered(system.friction_groups, "friction"):
        yield f"slip_velocity{which}", friction.slip_velocity, _per_law(None)


def _functions_of_bodies(system: System) -> Iterator[tuple[str, UserFunction, Expect, dict[str, Any]]]:
    """The functions of one pair or one body, with arguments of that size."""
    for contacts, which in _numbered(system.contact_groups, "contacts"):
        if not isinstance(contacts, AbstractBodyContacts):
            continue
        q, v = np.ones(contacts.bodies.coordinates), np.ones(contacts.bodies.dof)
        data = jax.tree.map(lambda x: np.asarray(x[0]), contacts.data)
        arguments = {
            "a": q,
            "b": 2 * q,
            "u": v,
            "w": 2 * v,
            "data_a": data,
            "data_b": data,
            "q": q,
            "v": v,
            "data": data,
        }
        of_pair = isinstance(contacts, PairContacts)
        functions, gaps = (contacts.shape, 1) if of_pair else (contacts.wall, contacts.walls)  # pyright: ignore
        yield f"gap{which}", functions.gap, _one_number if of_pair else _entries("contacts"), arguments
        if functions.slip is not None:
            yield f"slip{which}", functions.slip, _per_pair if of_pair else _per_gap(gaps), arguments


def _per_gap(gaps: int) -> Expect:
    """Of one gap a pair alone is friction in a plane."""

    def expect(role: str, got: jax.ShapeDtypeStruct) -> None:
        if (gaps, got.shape) != (1, (2,)):
            _per_law(gaps)(role, got)

    return expect


def _per_pair(role: str, got: jax.ShapeDtypeStruct) -> None:
    if got.shape not in ((), (1,), (2,)):
        msg = f"{role} must return one number, or two for friction in a plane, got shape {got.shape}"
        raise ValueError(msg)


def _numbered(groups: tuple[Any, ...], name: str) -> list[tuple[Any, str]]:
    """Groups, and how to call them where there are several."""
    return [(group, f" of {name}[{i}]" if len(groups) > 1 else "") for i, group in enumerate(groups)]


def _one_number(role: str, got: jax.ShapeDtypeStruct) -> None:
    if int(np.prod(got.shape)) != 1:
        msg = f"{role} must return one number, got shape {got.shape}"
        raise ValueError(msg)


def _shape(*wanted: tuple[int, ...]) -> Expect:
    def expect(role: str, got: jax.ShapeDtypeStruct) -> None:
        scalar = () in wanted or (1,) in wanted
        if got.shape not in wanted and not (got.shape == () and scalar):
            several = " or ".join(str(shape) for shape in wanted if shape)
            msg = f"{role} returned shape {got.shape}, expected {several}"
            raise ValueError(msg)

    return expect


def _entries(what: str) -> Expect:
    def expect(role: str, got: jax.ShapeDtypeStruct) -> None:
        if got.shape == (0,):
            msg = f"{role} returned 0 {what}: a slice past the end is empty"
            raise ValueError(msg)
        if len(got.shape) > 1:
            msg = f"{role} must return one number per {what.removesuffix('s')}, got shape {got.shape}"
            raise ValueError(msg)

    return expect


def _per_law(count: int | None) -> Expect:
    def expect(role: str, got: jax.ShapeDtypeStruct) -> None:
        rows = got.shape[0] if got.shape else 1
        if len(got.shape) > 2 or rows == 0:
            msg = f"{role} must return one number or one pair per law, got shape {got.shape}"
            raise ValueError(msg)
        if count is not None and rows != count:
            msg = f"gap gives {count} contacts, but the slip directions are those of {rows} ({role})"
            raise ValueError(msg)

    return expect
