"""Limit cycle of the woodpecker toy by Newton's method on its return map."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from carom.methods.moreau.extrapolated import Extrapolated
from carom.methods.moreau.moreau_midpoint import MoreauMidpoint
from carom.models import woodpecker
from carom.running.run import simulate
from carom.solution import Solution
from carom.state import State
from carom.stepping.switching import Switching
from carom.systems.contact_rows import Event

_DIFFERENCES = np.array([1e-4, 1e-5, 1e-3, 1e-3])  # of y', phi_M, phi_M', phi_S'


@dataclass(frozen=True)
class Cycle:
    """A periodic motion: its period, the height lost per period, its largest Floquet multiplier and its start."""

    period: float
    drop: float
    multiplier: float
    start: State


def run(state: State, t1: float, h_min: float = 1e-9, atol: float = 1e-9) -> Solution:
    """The toy with the settings of sec. 10.4."""
    method = Extrapolated(MoreauMidpoint(), max_order=6, atol=atol, rtol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return simulate(woodpecker()[0], state, method, t1=t1, stepping=Switching(h_min, 5e-3))


def after_beak_impact(sol: Solution) -> tuple[float, np.ndarray, np.ndarray]:
    """Time, q and v at the end of the first beak impact that is not at the start."""
    hits = np.flatnonzero(np.isin(sol.event[:, 0], (Event.CLOSES, Event.BOUNCES)) & (sol.t > 0.05))
    i = hits[0]
    return float(sol.t[i]), sol.q[i], sol.v[i]


def limit_cycle(run: Callable[[State, float], Solution] = run, iterations: int = 4) -> Cycle:
    """Newton on the map from one beak impact to the next; y does not matter, phi_S is fixed by the closed beak.

    `run(state, t1)` simulates the toy.
    """
    _, q, v = after_beak_impact(run(woodpecker()[1], 0.12))
    phi_S = q[2]

    def start(x: np.ndarray) -> State:
        return State([0.0, x[1], phi_S], [x[0], x[2], x[3]])

    def once_around(x: np.ndarray) -> tuple[np.ndarray, float, float]:
        t, q, v = after_beak_impact(run(start(x), 0.16))
        return np.array([v[0], q[1], v[1], v[2]]), t, -float(q[0])

    x = np.array([v[0], q[1], v[1], v[2]])
    J = np.zeros((4, 4))
    for _ in range(iterations):
        image = once_around(x)[0]
        for j, d in enumerate(_DIFFERENCES):
            J[:, j] = (once_around(x + d * np.eye(4)[j])[0] - image) / d
        step = np.linalg.solve(np.eye(4) - J, image - x)
        x = x + step
        if np.max(np.abs(step) / _DIFFERENCES) < 1e-4:
            break
    _, period, drop = once_around(x)
    eigenvalues = np.linalg.eigvals(J)
    return Cycle(period, drop, float(eigenvalues[np.argmax(np.abs(eigenvalues))].real), start(x))
