"""Which Lobatto coefficients treat which term of the equations of motion (Jay1998 secs 3.2, 5, 7 and 8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import is_traced, names_of, numpy_for
from carom.systems.system import System
from carom.tableaux import Tableau, lobatto_iiia, lobatto_iiib, lobatto_iiic, lobatto_iiic_star, lobatto_iiid

LETTERS = {"A": lobatto_iiia, "B": lobatto_iiib, "C": lobatto_iiic, "C*": lobatto_iiic_star, "D": lobatto_iiid}
OTHER = "other"
DEFAULTS = {
    "kinematic": "A",
    "rotation": "D",
    "inertia": "B",
    "constraint": "B",
    "conservative": "B",
    "dissipative": "C",
    "rate damping": "C",
    "exciting": "C*",
    OTHER: "B",
}


def coefficients(stages: int, families: Any, damping: Any) -> dict[str, Array]:
    """The matrices a_ij of every term: (s, s), or (n, s, s) where components are treated differently.

    `damping` gives a part the split of sec. 7, `(1 - beta) D + beta C`. Together with it the kinematic equation gets
    the split with the largest beta: with IIIA there a small beta is unstable.
    """
    given = _mapping(families, "families", "{part: 'A' | 'B' | 'C' | 'C*' | 'D'}")
    shares = _mapping(damping, "damping", "{part: beta}")
    matrices = {name: _matrices(stages, name, value) for name, value in {**DEFAULTS, **given}.items()}
    for name, beta in shares.items():
        if name in given:
            msg = f"Spark: the part '{name}' has both a family and damping; damping sets its family (IIID and IIIC)"
            raise ValueError(msg)
        matrices[name] = _damped(stages, name, beta)
    if shares:
        if "kinematic" in given:
            msg = "Spark: damping sets the family of 'kinematic' too; leave it out of families"
            raise ValueError(msg)
        xp = numpy_for(shares)
        matrices["kinematic"] = _damped(stages, "kinematic", xp.max(xp.stack([xp.max(b) for b in shares.values()])))
    if not is_traced(matrices["constraint"]) and np.any(_is_iiia(stages, matrices["constraint"])):
        msg = (
            "Spark: the multiplier term 'constraint' cannot use Lobatto IIIA (Jay1998 (5b)); use 'B', 'C', 'C*' or 'D'"
        )
        raise ValueError(msg)
    return {name: jnp.asarray(matrix) for name, matrix in matrices.items()}


def part_names(system: System) -> tuple[str, ...]:
    """The terms of (M v)' that a system has, in the order in which `part_forces` evaluates them."""
    names = ["inertia"] if callable(system.mass) else []
    names += ["conservative"] if system.hamiltonian is not None else list(system.potential)
    names += list(system.forces)
    names += ["rate damping"] if system.rate_damping else []
    return (*names, "constraint") if has_constraints(system) else tuple(names)


def has_constraints(system: System) -> bool:
    """Whether there are bilateral constraints of any kind."""
    return system.constraints is not None or system.nonholonomic is not None


def objection(stages: int, matrices: Mapping[str, Array], system: System) -> str | None:
    """Why these families do not fit a system; None if they do."""
    known = (*DEFAULTS, *part_names(system))
    unknown = [name for name in matrices if name not in known]
    if unknown:
        return (
            f"Spark: families or damping name {names_of(unknown)}, but this system has {names_of(part_names(system))}"
        )
    for name, force in system.forces.items():
        if "lam" in force.takes and np.any(_is_iiia(stages, matrices.get(name, matrices[OTHER]))):
            return f"Spark: force '{name}' depends on the multipliers, so it cannot use Lobatto IIIA (Jay1998 (5b))"
    return None


def _is_iiia(stages: int, matrix: Array) -> np.ndarray:
    return np.all(np.abs(np.asarray(matrix) - lobatto_iiia(stages).A) < 1e-13, axis=(-2, -1))


def _matrices(stages: int, name: str, value: Any) -> Any:
    if isinstance(value, Tableau):
        value = value.A
    if isinstance(value, str):
        return _letter(name, value)(stages).A
    if isinstance(value, (list, tuple)) and all(isinstance(letter, str) for letter in value):
        return np.stack([_matrices(stages, f"{name}[{i}]", letter) for i, letter in enumerate(value)])
    matrix = numpy_for(value).asarray(value, float)
    if matrix.shape[-2:] != (stages, stages) or matrix.ndim not in (2, 3):
        msg = f"Spark: families['{name}'] must be a letter, one letter per component, or a tableau of {stages} stages"
        raise ValueError(msg)
    return matrix


def _letter(name: str, letter: str) -> Any:
    if letter not in LETTERS:
        msg = f"Spark: unknown family '{letter}' for '{name}'; there are {names_of(list(LETTERS))}"
        raise ValueError(msg)
    return LETTERS[letter]


def _damped(stages: int, name: str, beta: Any) -> Any:
    share = numpy_for(beta).asarray(beta, float)
    if share.ndim > 1 or (not is_traced(share) and not ((share >= 0) & (share <= 1)).all()):
        msg = f"Spark: damping['{name}'] must lie between 0 and 1 (a number, or one per component), got {beta}"
        raise ValueError(msg)
    D, C = lobatto_iiid(stages).A, lobatto_iiic(stages).A
    return D + share[..., None, None] * (C - D)


def _mapping(value: Any, name: str, wanted: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        msg = f"Spark: {name} must be a dictionary {wanted}, got {type(value).__name__}"
        raise TypeError(msg)
    return dict(value)
