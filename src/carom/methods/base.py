"""What every method offers: one pure step, its memory, and a declaration of what it handles."""

from __future__ import annotations

import abc
import enum
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array

from carom.interpolation import Field
from carom.plain import call
from carom.state import State, Step
from carom.systems.features import NONSMOOTH, Feature
from carom.systems.features import SMOOTH as SMOOTH
from carom.systems.system import System

PyTree = Any


class Gives(enum.StrEnum):
    """What the steps of a method offer beyond the state, for a stepping to build on."""

    WHOLE_STEPS = "steps that never stop short"
    MODES = "modes"  # `Info.mode`, and `modes(memory)` for those of the step before
    LOCAL_ERROR = "local error"  # `Info.local_error` of the orders `error_orders`
    SYMMETRIC_ERROR = "symmetric error estimate"  # `Info.error` of the order `error_orders[0]`
    ERROR_RATIO = "error in units of its tolerance"  # `Info.error`
    MOMENTUM_JUMP = "momentum jump"  # `Info.extra["jump"]`
    BACKWARD = "runs backward in time"  # smooth steps, which make sense with any sign of the forces that dissipate


class Derivative(enum.StrEnum):
    """What differentiating a run of a method gives (`carom.final_state`)."""

    EXACT = "exact"  # converges to the derivative of the motion, as values do to the motion
    WITHOUT_SALTATION = "without saltation"  # exact but for the times of impacts, which are not located
    NONE = "none"


class AbstractMethod(eqx.Module):
    """One step of a method. Concrete methods are final; variants are fields or wrappers.

    `handles` names the features of a system (`System.features`) that the method takes into account; `simulate` refuses
    any other. `order` is the order of convergence on smooth problems, `gives` says what its steps offer
    (`Gives`), and steppings refuse a method that does not give what they need. `derivative` is that of its runs: a
    method that steps over impacts without locating them says so. Where a change of h costs an error of its own,
    `least_growth` above 1 keeps steps constant for stretches: they grow by that factor at least. `newer_emitters` has
    its programs compiled by those emitters of XLA for processors that carom switches off elsewhere; `mostly_lapack` has
    those for large systems compiled faster, since what calls LAPACK is no slower for it.
    """

    handles: ClassVar[frozenset[Feature]] = frozenset()
    gives: ClassVar[frozenset[Gives]] = frozenset({Gives.WHOLE_STEPS})
    derivative: ClassVar[Derivative] = Derivative.NONE
    least_growth: ClassVar[float] = 1.0
    newer_emitters: ClassVar[bool] = False
    mostly_lapack: ClassVar[bool] = False

    __repr__ = call

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
        """(k, p): the error estimate of a step falls like h^k, the error of a run like h^p; where one is given."""
        msg = f"{type(self).__name__} gives no error estimate"
        raise NotImplementedError(msg)

    def modes(self, memory: PyTree) -> Array:
        """The modes of the step that left this memory, a part of it; for methods that give `Gives.MODES`."""
        del memory
        msg = f"{type(self).__name__} gives no modes"
        raise NotImplementedError(msg)

    def with_tolerances(self, rtol: Array, atol: Array) -> AbstractMethod:
        """The same method, told by the stepping how accurate its steps must be; most have nothing to adapt."""
        del rtol, atol
        return self

    def field(self, system: System, mode: Array | None) -> Field | None:
        """(t, q, v) -> (q', v') of the smooth piece that reports `mode`; None where contact forces are not known."""
        del mode
        if (NONSMOOTH | {Feature.MOVING_PAIRS}) & system.features:
            return None
        return lambda t, q, v: (system.rate(t, q, v), system.acceleration(t, q, v))

    def with_smallest_step(self, h_min: Array) -> AbstractMethod:
        """The same method, told by the stepping which step it must not go below; most have no inner steps."""
        del h_min
        return self

    def among_lanes(self) -> AbstractMethod:
        """The same method in a batch, where every attempt waits for the slowest lane; most have no work to spread."""
        return self

    def lean(self) -> AbstractMethod:
        """The same method without what its steps rarely need; where they do, their status is `NEEDS_RESCUE`."""
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
