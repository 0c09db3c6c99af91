"""What `gradient` and `sensitivity` were asked for, and the compiled programs of their runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.derivatives.closures import refuse_closures
from carom.derivatives.final import course_of
from carom.derivatives.walk import Course, Line, form_of, shaped_carry
from carom.methods.base import AbstractMethod
from carom.running.asking import refuse_kinds
from carom.running.compiled import compiled_hastily
from carom.state import Carry, State, shortened
from carom.stepping.adaptive import Adaptive
from carom.stepping.base import AbstractStepping
from carom.stepping.grid import Constant
from carom.systems.constrained import directions, velocity_residual
from carom.systems.features import Feature
from carom.systems.probe import NOT_TRACEABLE, TO_BE_TRACEABLE
from carom.systems.system import System

_COARSER = 10.0  # times the tolerance
_TWICE = 2.0  # times the step
_SAME_START = 1e-8  # relative
_TINY = 1e-300


class Asked(NamedTuple):
    """What a run is made of, where it ends, and the times at which states are wanted too."""

    build: Callable[..., tuple[System, State]]
    method: AbstractMethod
    stepping: AbstractStepping
    t1: Any
    until: Any = None
    along: Any = None
    saves: Any = None


def parameters_of(parameters: Any) -> Any:
    """The parameters as arrays of floats; others are refused by name."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(parameters)
    if not leaves:
        msg = "parameters must hold the numbers to differentiate by, such as {'height': 1.0}, got none"
        raise ValueError(msg)
    found = []
    for path, leaf in leaves:
        name = f"parameters{jax.tree_util.keystr(path)}"
        array = np.asarray(leaf) if not isinstance(leaf, (str, type(None))) else np.asarray("")
        if array.dtype.kind in "iub":
            msg = f"{name} is a whole number, which has no derivative: write {array.astype(float).tolist()}"
            raise TypeError(f"{msg}, or give it to build beforehand (functools.partial)")  # noqa: EM102
        if array.dtype.kind != "f":
            msg = f"{name} must be a float or an array of floats, got {shortened(leaf)}"
            raise TypeError(msg)
        if not np.isfinite(array).all():
            msg = f"{name} must be finite, got {shortened(leaf)}"
            raise ValueError(msg)
        found.append(jnp.asarray(array, float))
    return jax.tree.unflatten(structure, found)


def built(build: Callable[..., Any], parameters: Any) -> tuple[System, State]:
    """What `build` makes of the parameters: by name if they are a dictionary, else as its one argument."""
    named = isinstance(parameters, Mapping)
    if named:
        _refuse_names(build, parameters)
    try:
        made = build(**parameters) if named else build(parameters)
    except NOT_TRACEABLE:
        msg = f"build: {TO_BE_TRACEABLE}; float() makes a number that no derivative sees"
        raise TypeError(msg) from None
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], System)):
        msg = f"build must return (system, state), as carom.models do, got {shortened(made)}"
        raise TypeError(msg)
    return made


def _refuse_names(build: Callable[..., Any], parameters: Mapping[str, Any]) -> None:
    """Raise where `build` lacks an argument or has none of that name."""
    try:
        inspect.signature(build).bind(**parameters)
    except TypeError as error:
        msg = f"build takes {inspect.signature(build)}, but parameters are {', '.join(parameters)}: {error}"
        raise TypeError(msg) from None


def asked_for(
    build: Any, parameters: Any, method: Any, stepping: AbstractStepping, t1: Any, until: Any, along: Any
) -> tuple[Asked, Course, State]:
    """What was asked for, after everything about it was looked at, and the course and start with these numbers."""
    system, state = built(build, parameters)
    refuse_kinds(system, state, method, stepping)
    course = course_of(system, state, method, stepping, t1, until, along)
    for name, one in (along or {}).items():
        one.check(name, system, state)
    if system.features & {Feature.CONSTRAINTS, Feature.NONHOLONOMIC}:
        _refuse_start(build, parameters, state)
    return Asked(build, course.problem.method, stepping, np.float64(t1), until, along), course, state


@compiled_hastily
def _start_and_defects(build: Callable[..., Any], parameters: Any) -> tuple[State, Array, Array]:
    """The start, and how fast g and (g', k) leave zero there as all parameters grow; relative to their terms."""

    def left(numbers: Any) -> tuple[tuple[Array, Array], tuple[Array, Array, Array, Array]]:
        system, state = built(build, numbers)
        t, q, v = state.t, state.q, state.v
        return (system.constraint(t, q), velocity_residual(system, t, q, v)), (q, v, directions(system, t, q, v), t)

    grow = jax.tree.map(lambda x: jnp.where(x == 0, 1.0, x), parameters)
    (_, (q, v, D, t)), ((dg, du), (dq, dv, *_)) = jax.jvp(left, (parameters,), (grow,))
    size, largest = jnp.max(jnp.abs(D), initial=0.0), lambda *x: sum(jnp.max(jnp.abs(y), initial=0.0) for y in x)
    return State(q, v, t), largest(dg) / (size * largest(q, dq) + _TINY), largest(du) / (size * largest(v, dv) + _TINY)


def _refuse_start(build: Callable[..., Any], parameters: Any, state: State) -> None:
    """Raise where a start is not the one of known numbers, or leaves the constraints when they change."""
    blind, *defects = _start_and_defects(build, parameters)
    moved = [(np.asarray(getattr(state, name)), np.asarray(getattr(blind, name))) for name in ("q", "v")]
    same = all(np.abs(x - y).max() <= _SAME_START * (1.0 + np.abs(x).max()) for x, y in moved)
    if not (same and max(float(x) for x in defects) <= _SAME_START):
        msg = (
            "the start that build makes does not fulfil the constraints where its parameters are not known yet, or "
            "leaves them when they change: compute places and velocities that fit in build (a carom.Mechanism does)"
        )
        raise ValueError(msg)


def course_with(asked: Asked, parameters: Any) -> tuple[Course, State]:
    """The watched course and the start with these numbers, which may be traced."""
    system, state = built(asked.build, parameters)
    course = course_of(system, state, asked.method, asked.stepping, asked.t1, asked.until, asked.along)
    saves = jnp.zeros(0) if asked.saves is None else asked.saves - course.instants[0]
    course = eqx.tree_at(lambda c: c.problem.method, course, asked.method)._replace(watched=saves)
    refuse_closures(course)
    return course, state


def carry_with(course: Course, state: State, line: Line) -> Carry:
    """The carry of a line."""
    return form_of(shaped_carry(course, state)).carry(course, line)


def coarser(stepping: AbstractStepping) -> AbstractStepping | None:
    """The same stepping with steps of twice the size or ten times the tolerance; None if there is none."""
    if isinstance(stepping, Constant):
        return Constant(_TWICE * stepping.h)
    if isinstance(stepping, Adaptive):
        less = (min(_COARSER * stepping.rtol, 0.5), _COARSER * stepping.atol)
        return eqx.tree_at(lambda s: (s.rtol, s.atol), stepping, (np.asarray(less[0]), np.asarray(less[1])))
    return None


def differences(a: Any, b: Any) -> Any:
    """Entry by entry, how much two results differ."""
    return jax.tree.map(lambda x, y: np.abs(np.asarray(x) - np.asarray(y)), a, b)


def scale(stepping: AbstractStepping, x: np.ndarray) -> float | None:
    """The error of coordinates, or velocities, that the tolerance allows; None where there is no tolerance."""
    if not isinstance(stepping, Adaptive):
        return None
    return float(np.max(stepping.atol) + stepping.rtol * np.max(np.abs(x)))
