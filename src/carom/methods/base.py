"""What every method offers: one pure step, its memory, and a declaration of what it handles."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array

from carom.state import State, Step
from carom.systems.system import System

PyTree = Any

SMOOTH = frozenset({"mass of q", "mass matrix", "explicit time", "forces", "rate damping", "kinematics"})


class AbstractMethod(eqx.Module):
    """One step of a method. Concrete methods are final; variants are fields or wrappers.

    `handles` names the features of a system (`System.features`) that the method takes into account; `simulate` refuses
    any other. `order` is the order of convergence on smooth problems, `gives` names what its steps report beyond the
    state ("modes", "error estimate", "local error").
    """

    handles: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[frozenset[str]] = frozenset()

    @property
    @abc.abstractmethod
    def order(self) -> int:
        """Order of convergence on smooth problems."""

    @property
    def concrete_init(self) -> bool:
        """Whether `init` must see numbers: where the shape of its memory follows from them, it is not compiled."""
        return False

    @abc.abstractmethod
    def init(self, system: System, state: State) -> PyTree:
        """The method's memory before its first step."""

    @abc.abstractmethod
    def step(self, system: System, state: State, memory: PyTree, h: Array) -> Step:
        """One step of size h; `Step.state.t` says where it got to."""

    @property
    def error_orders(self) -> tuple[Any, Any]:
        """(k, p): `Info.local_error` falls like h^k, the error of a run like h^p; for methods that give it."""
        msg = f"{type(self).__name__} gives no local error"
        raise NotImplementedError(msg)

    def with_tolerances(self, rtol: Array, atol: Array) -> AbstractMethod:
        """The same method, told by the stepping how accurate its steps must be; most have nothing to adapt."""
        del rtol, atol
        return self

    def with_smallest_step(self, h_min: Array) -> AbstractMethod:
        """The same method, told by the stepping which step it must not go below; most have no inner steps."""
        del h_min
        return self

    def explain(self, system: System, state: State, memory: PyTree, status: Any) -> str:
        """More about a failure in the step from `state`, for the error's message."""
        return ""

    def objection(self, system: System) -> str | None:
        """Why this method cannot take this system, beyond the declared features; None if it can."""
        return None

    def caution(self, system: System, state: State, longest: float | None, span: float) -> None:
        """Warn, or raise, before a run of length `span` with steps up to `longest` (None if not known beforehand)."""
        del system, state, longest, span

    def evidence(self, solution: Any, energy: np.ndarray) -> dict[str, np.ndarray]:
        """What the account says beyond energies, from the rows of a `carom.Solution` and their energy."""
        del solution, energy
        return {}

    def review(self, solution: Any) -> None:
        """Warn after a run about what only its course could show."""
        del solution

    def tuned(self, system: System, state: State, h: float | None) -> AbstractMethod:
        """This method with the choices that are made on the host before compiling; h is the first step, if known."""
        del system, state, h
        return self

    @staticmethod
    def alike(methods: list[Any]) -> list[Any]:
        """The tuned methods of the lanes of a batch with one choice for all."""
        return methods


def hermite(t0: Any, t1: Any, y0: Any, y1: Any, d0: Any, d1: Any, t: Any) -> Any:
    """Cubic Hermite interpolation at t between (t0, y0) and (t1, y1) with slopes d0, d1; broadcasts over rows."""
    width = t1 - t0
    x = (t - t0) / np.where(width > 0, width, 1.0) if isinstance(width, np.ndarray) else (t - t0) / width
    return (
        (1 + 2 * x) * (1 - x) ** 2 * y0
        + x * (1 - x) ** 2 * width * d0
        + x * x * (3 - 2 * x) * y1
        - x * x * (1 - x) * width * d1
    )
