"""The search history of switching points [Studer2008 Fig. 8]."""

from __future__ import annotations

from typing import NamedTuple

from carom.methods.base import AbstractMethod
from carom.running.run import prepare
from carom.state import State
from carom.stepping.switching import Outcome, Switching
from carom.systems.system import System


class Attempt(NamedTuple):
    """One actual step: where it began, its size, and how it ended (smooth, inaccurate, detected, resolved, failed)."""

    begin: float
    h: float
    outcome: str


def search_history(
    system: System, state: State, method: AbstractMethod, stepping: Switching, t1: float, most: int = 1000
) -> list[Attempt]:
    """Every attempt of a run, the rejected ones included, at most `most` of them.

    Example:
        >>> carom.measures.search_history(ball, state, method, carom.Switching(1e-3, 0.05), t1=0.2)
    """
    run = prepare(system, state, method, t1, stepping)
    attempts = []
    while not run.finished and len(attempts) < most:
        run.attempts = 1
        run.chunk()
        begin, h, outcome = (float(x) for x in run.carry.stepping.last)
        attempts.append(Attempt(float(run.carry.epoch) + begin, h, Outcome(int(outcome)).name.lower()))
    return attempts
