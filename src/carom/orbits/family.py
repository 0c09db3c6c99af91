"""A system as a function of its parameters: those of `System(params=...)`, or those of a function that builds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from carom.arguments import did_you_mean, is_traced, names_of
from carom.state import State, shortened
from carom.systems.system import System


class Family(NamedTuple):
    """A system, or a function that builds it, with the numbers that it depends on by name."""

    build: Any
    parameters: dict[str, Any]

    def member(self, parameters: dict[str, Any]) -> System:
        """The system with these parameters."""
        return self.made(parameters)[0]

    def made(self, parameters: dict[str, Any]) -> tuple[System, State | None]:
        """The system with these parameters, and the state if the function builds one."""
        if isinstance(self.build, System):
            if not parameters:
                return self.build, None
            return eqx.tree_at(lambda s: s.params, self.build, self.build.params | parameters), None
        made = self.build(**parameters)
        return made if isinstance(made, tuple) else (made, None)

    @property
    def nowhere(self) -> dict[str, Any]:
        """No direction among the parameters."""
        return {name: np.zeros(np.shape(value)) for name, value in self.parameters.items()}

    def at(self, name: str, value: float) -> Family:
        """The same family where one parameter has another value."""
        return self._replace(parameters=self.parameters | {name: np.asarray(value)})

    def refuse_unknown(self, name: Any) -> None:
        """A parameter that is followed is one number of the family."""
        if not isinstance(name, str) or name not in self.parameters:
            self._refuse_whole(name)
            known = names_of([k for k, v in self.parameters.items() if np.ndim(v) == 0])
            close = did_you_mean(str(name), self.parameters)
            msg = f"parameter must be one of {known}, got {shortened(name)}{close}"
            raise ValueError(msg)
        if np.ndim(self.parameters[name]):
            msg = f"parameter '{name}' must be one number, got shape {np.shape(self.parameters[name])}"
            raise ValueError(msg)

    def _refuse_whole(self, name: Any) -> None:
        own = _own(self.build) if isinstance(self.build, System) else {}
        if isinstance(name, str) and name in own and np.asarray(own[name]).dtype.kind in "iu":
            write = f": write {name}={float(own[name])}" if np.ndim(own[name]) == 0 else ""
            msg = f"parameter '{name}' must be a real number, but is whole{write}"
            raise ValueError(msg)


def _own(system: System) -> dict[str, Any]:
    return system.params if isinstance(system.params, dict) else {}


def family(system: Any, parameters: Mapping[str, Any] | None = None) -> Family:
    """The family of a system, or of a function of parameters that builds one."""
    if isinstance(system, System):
        if parameters is not None:
            msg = "parameters= belongs to a function that builds the system; a System has its own, System(params=...)"
            raise ValueError(msg)
        return Family(system, {name: value for name, value in _own(system).items() if _is_number(value)})
    if not callable(system):
        msg = f"system must be a carom.System, or a function of parameters that builds one, got {shortened(system)}"
        raise TypeError(msg)
    return Family(system, real_parameters(parameters))


def real_parameters(parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Parameters as arrays of floats; whole numbers and texts have no derivative."""
    if not isinstance(parameters, Mapping) or not parameters:
        msg = f"parameters must be a dict of numbers by name, got {shortened(parameters)}"
        raise TypeError(msg)
    for name, value in parameters.items():
        if not _is_number(value):
            msg = f"parameters: {name} must be a real number such as 1.0, got {shortened(value)}"
            raise TypeError(msg)
    return {name: jnp.asarray(value, float) for name, value in parameters.items()}


def _is_number(value: Any) -> bool:
    if is_traced(value):
        return True
    known = isinstance(value, (float, np.ndarray, np.generic, jax.Array, list, tuple))
    return known and np.asarray(value).dtype.kind == "f"
