"""What orbits, exponents and fits refuse before they compile anything."""

from __future__ import annotations

import numpy as np

from carom.derivatives.final import refusal
from carom.methods.base import AbstractMethod
from carom.running.asking import refuse_features, refuse_kinds
from carom.state import SimulationError, State, Status
from carom.stepping.base import AbstractStepping
from carom.systems.system import System


def refuse_run(system: System, state: State, method: AbstractMethod, stepping: AbstractStepping, t1: float) -> None:
    """Refuse runs to t1 that cannot be made, or whose derivatives would be wrong."""
    refuse_kinds(system, state, method, stepping)
    refuse_features(system, state, method, stepping, np.array([float(state.t), t1]))
    why = refusal(system, method)
    if why is not None:
        raise TypeError(why.removesuffix(", or allow_biased=True"))


def failure(code: int, what: str, remedy: str) -> SimulationError:
    """The error of a run that did not come to its end."""
    status = Status(code)
    return SimulationError(f"{what}: {status.message[0]}. {remedy}", status=status)
