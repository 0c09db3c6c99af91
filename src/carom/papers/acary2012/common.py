"""The two examples of the paper, their exact solutions, and errors against them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from carom.measures import filled_graph
from carom.models import exact, oscillator_with_stop
from carom.solution import Solution
from carom.state import State, Status
from carom.systems.system import System

_SIDE = 1e-13  # how far from an impact its one-sided limits are taken


@dataclass(frozen=True)
class Example:
    """A model with its exact solution and its impacts."""

    name: str
    build: Callable[..., tuple[System, State]]
    solve: Callable[..., tuple[np.ndarray, np.ndarray]]
    impacts: np.ndarray
    data: dict[str, float] = field(default_factory=dict)

    @property
    def model(self) -> tuple[System, State]:
        """System and initial state."""
        return self.build(**self.data)

    def exact(self, t: Any) -> tuple[np.ndarray, np.ndarray]:
        """Exact position and velocity."""
        return self.solve(t, **self.data)

    def position_error(self, run: Solution) -> float:
        """Largest error of the position at the nodes; infinite if the run (a lane of a batch) did not reach its end."""
        return float(np.abs(run.q[:, 0] - self.exact(run.t)[0]).max()) if run.status is Status.OK else np.inf

    def velocity_graph(self, t1: float, points: int = 20_001) -> np.ndarray:
        """The filled-in graph of the exact velocity, with both limits at every impact."""
        t = np.linspace(0.0, t1, points)
        before, after = (np.ravel(self.exact(self.impacts + side)[1]) for side in (-_SIDE, _SIDE))
        times = np.concatenate([t, self.impacts, self.impacts])
        later = np.concatenate([np.zeros(t.size + self.impacts.size), np.ones(self.impacts.size)])
        order = np.lexsort((later, times))
        return filled_graph(times[order], np.concatenate([self.exact(t)[1], before, after])[order])


_falling = partial(
    oscillator_with_stop, damping=0.0, stiffness=0.0, preload=2.0
)  # the ball, in the oscillator's program
BALL = Example("bouncing ball", _falling, exact.bouncing_ball, 3.0 - 2.0 ** -np.arange(-1.0, 24.0))
OSCILLATOR = Example(
    "oscillator", oscillator_with_stop, exact.oscillator_with_stop, np.array([0.8396908773, 2.4184005858, 3.9971102943])
)
PRELOADED = Example(
    "preloaded oscillator",
    oscillator_with_stop,
    exact.oscillator_with_stop,
    np.zeros(0),
    {"damping": 0.2, "stiffness": 9.0, "preload": 0.3, "restitution": 0.6, "position": 0.5},
)
T1 = 4.9137  # keeps impacts off the grid


def grid(levels: int, t1: float = T1, first: float = 0.194) -> np.ndarray:
    """Step sizes t1 / N, halved from about `first`."""
    return t1 / np.round(t1 / (first * 0.5 ** np.arange(levels)))
