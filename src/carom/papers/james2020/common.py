"""What the items share: the schemes of the paper by name, reference solutions and global errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from carom.measures.convergence import observed_order
from carom.methods.base import AbstractMethod
from carom.methods.runge_kutta.explicit_rk import ExplicitRK
from carom.methods.runge_kutta.irk import IRK
from carom.methods.tailored.tailored_irk import TailoredIRK
from carom.methods.tailored.tailored_theta import TailoredTheta
from carom.running.batch import simulate_batch
from carom.solution import Solution
from carom.state import State, Status
from carom.systems import regularise
from carom.systems.system import System
from carom.tableaux import explicit, gauss, lobatto_iiia

Numbers = Sequence[float] | np.ndarray

#: Reference solutions: order 5 on (10)-(11) at small steps (the change of variables makes an explicit method fit).
REFERENCE = ExplicitRK(explicit(5))


class Scheme(NamedTuple):
    """A method and whether it runs on the variables (x, w) of (10)-(11)."""

    method: AbstractMethod
    regularised: bool = False


CN, GL = IRK(lobatto_iiia(2)), IRK(gauss(2))
DIRECT = {
    "CN (x, v), (12)": Scheme(CN),
    "CN (x, w), (16)": Scheme(CN, regularised=True),
    "GL (x, v), (13)": Scheme(GL),
    "GL (x, w), (17)": Scheme(GL, regularised=True),
}
THETA, TAILORED = Scheme(TailoredTheta()), Scheme(TailoredIRK())


def run(scheme: Scheme, systems: Sequence[System], state: State, t1: float, h: Numbers) -> list[Solution]:
    """One batch: a system and a step size per lane. Always lists, so that all studies of a scheme share a program."""
    chosen = [regularise(s) for s in systems] if scheme.regularised else list(systems)
    return simulate_batch(chosen, state, scheme.method, t1=t1, h=[float(x) for x in h])


def references(systems: Sequence[System], state: State, t1: float, h: float, node: float) -> list[Solution]:
    """Reference solutions on (10)-(11) at steps h, kept at multiples of `node`."""
    every = round(node / h)
    lanes = [regularise(system) for system in systems]
    return simulate_batch(lanes, state, REFERENCE, t1=t1, h=[h] * len(lanes), save_every=every)


class Errors(NamedTuple):
    """Sup over beads and nodes."""

    displacement: float
    velocity: float


def global_error(solution: Solution, reference: Solution) -> Errors:
    """Sup of the error over beads and the nodes of `solution`, which must be nodes of `reference`.

    A run that ended early (an implicit equation without solution) has infinite error.
    """
    if solution.status != Status.OK:
        return Errors(np.inf, np.inf)
    rows = np.rint((solution.t - reference.t[0]) / (reference.t[1] - reference.t[0])).astype(int)
    if np.max(np.abs(reference.t[rows] - solution.t)) > 1e-9 * max(1.0, solution.t[-1]):
        msg = "global_error: the nodes of the solution are not nodes of the reference"
        raise ValueError(msg)
    q, v = np.abs(solution.q - reference.q[rows]), np.abs(solution.v - reference.v[rows])
    return Errors(float(q.max()), float(v.max()))


def largest_errors(solutions: Sequence[Solution], reference: Sequence[Solution]) -> np.ndarray:
    """The larger of the two errors, per lane."""
    return np.array([max(global_error(s, r)) for s, r in zip(solutions, reference)])


def slopes(h: np.ndarray, errors: Mapping[str, np.ndarray], largest: float, smallest: float = 0.0) -> dict[str, float]:
    """Observed orders from the step sizes between `smallest` and `largest`."""
    used = (h <= largest * (1 + 1e-9)) & (h >= smallest * (1 - 1e-9))
    return {name: observed_order(h[used], np.asarray(error)[used]) for name, error in errors.items()}
