"""What may stand for each term of a system: masses, parts of the potential, rate damping, parameters, jumps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import UserFunction, is_traced, judged, names_of, texts, user_function
from carom.state import Numbers, reals, strong
from carom.systems.interactions import Interactions
from carom.systems.pair_interactions import PairInteractions
from carom.systems.wall_interactions import WallInteractions

Part = Interactions | PairInteractions | WallInteractions | UserFunction
LISTABLE = (PairInteractions, WallInteractions)
INTERACTIONS = (Interactions, *LISTABLE)
CONSERVATIVE = "conservative"


def role_of(kind: str, name: str) -> str:
    """How messages call a part: by its name, if the user gave one."""
    return kind if name == CONSERVATIVE else f"{kind} '{name}'"


def given_names(value: Any, name: str) -> Mapping[str, Any]:
    """Terms by name; none if nothing is given."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        msg = f"{name} must be a dictionary {{name: value}}, got {type(value).__name__}"
        raise TypeError(msg)
    return value


def given_params(params: Any) -> Any:
    """Parameters of real numbers."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        if not eqx.is_array_like(leaf) or jnp.iscomplexobj(leaf):
            msg = f"params{jax.tree_util.keystr(path)} must be a real number or an array of them, got {leaf!r}"
            raise TypeError(msg)
    return strong(params)


def given_mass(value: Any) -> Any:
    """A mass that is a number, one per coordinate, or a symmetric matrix."""
    if hasattr(value, "solve"):
        return _symmetric_band(value)
    mass = reals(value, "mass", "a number, one per coordinate, or a square matrix")
    if mass.ndim > 2 or (mass.ndim == 2 and mass.shape[0] != mass.shape[1]):
        msg = f"mass must be a number, one per coordinate, or a square matrix, got shape {mass.shape}"
        raise ValueError(msg)
    return jnp.asarray(judged(mass, _judge_mass))


def _judge_mass(mass: np.ndarray) -> None:
    if not np.isfinite(mass).all():
        msg = f"mass must be finite, got {_first_bad(mass, ~np.isfinite(mass))}"
        raise ValueError(msg)
    if mass.ndim < 2 and (mass <= 0).any():
        msg = f"mass must be positive, got {_first_bad(mass, mass <= 0)}"
        raise ValueError(msg)
    if mass.ndim == 2 and not np.allclose(mass, mass.T, rtol=1e-12, atol=0.0):
        i, j = np.unravel_index(np.argmax(np.abs(mass - mass.T)), mass.shape)
        msg = f"mass must be symmetric, got mass[{i},{j}] = {mass[i, j]} but mass[{j},{i}] = {mass[j, i]}"
        raise ValueError(msg)


def _symmetric_band(mass: Any) -> Any:
    if is_traced(mass):
        return mass
    lower, upper = np.asarray(mass.lower)[1:], np.asarray(mass.upper)[:-1]
    if not np.allclose(lower, upper, rtol=1e-12, atol=0.0):
        i = int(np.argmax(np.abs(lower - upper)))
        msg = f"mass must be symmetric, got mass[{i},{i + 1}] = {upper[i]} but mass[{i + 1},{i}] = {lower[i]}"
        raise ValueError(msg)
    return mass


def _first_bad(values: np.ndarray, bad: np.ndarray) -> str:
    index = tuple(int(i) for i in np.argwhere(bad)[0]) if values.ndim else ()
    return f"mass[{', '.join(map(str, index))}] = {values[index]}" if index else f"mass = {float(values)}"


def given_part(value: Any, role: str) -> Part:
    """A part of the potential."""
    return value if isinstance(value, INTERACTIONS) else user_function(value, role, ("q",), ("t", "q"))


def given_rate(value: Any, name: str, potential: Mapping[str, Part]) -> Array | Part:
    """Rate damping: coefficients of a part of the potential, or a potential of its own."""
    if isinstance(value, INTERACTIONS) or callable(value):
        return given_part(value, f"rate_damping '{name}'")
    if name not in potential:
        msg = f"rate_damping names '{name}', but the potential has the parts {names_of(list(potential))}"
        raise ValueError(msg)
    gamma = reals(value, f"rate_damping['{name}']", "a number or one per interaction")

    def judge(gamma: np.ndarray) -> None:
        if not (np.isfinite(gamma) & (gamma >= 0)).all():
            msg = f"rate_damping['{name}'] must be zero or positive, got {gamma}"
            raise ValueError(msg)

    gamma = judged(gamma, judge)
    if gamma.ndim and not isinstance(potential[name], INTERACTIONS):
        msg = f"rate_damping['{name}']: one value per interaction needs a potential given as Interactions"
        raise ValueError(msg)
    return jnp.asarray(gamma)


def given_jumps(jumps: Numbers) -> Array:
    """Instants, ascending."""
    times = reals(jumps, "jumps", "a list of times")
    if is_traced(times):
        return jnp.sort(jnp.ravel(times))
    instants = np.unique(np.asarray(times))
    if not np.isfinite(instants).all():
        msg = f"jumps must be finite times, got {jumps}"
        raise ValueError(msg)
    return jnp.asarray(instants)


def given_time_unit(unit: str, units: tuple[str, ...]) -> str:
    """The unit of the time: seconds, if none is given and coordinates have units."""
    (text,) = texts((unit,), "time_unit", "a text such as 'ms'")
    return text or ("s" if any(units) else "")
