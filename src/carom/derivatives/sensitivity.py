"""Derivatives of the motion by a few parameters: forward mode."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from carom.arguments import users_frame, whole
from carom.derivatives.asked import Asked, asked_for, coarser, course_with, differences, parameters_of
from carom.derivatives.final import End, end_of, times_of
from carom.derivatives.passing import passed, raise_failure, told_of
from carom.derivatives.until import AbstractUntil
from carom.methods.base import AbstractMethod
from carom.running.asking import chosen_stepping
from carom.running.compiled import compiled
from carom.running.progress import Progress
from carom.running.signals import deferred
from carom.state import Numbers, State, Status
from carom.stepping.base import AbstractStepping


@dataclass(frozen=True)
class Sensitivity:
    """The last state, and the derivatives of its t, q and v by every parameter.

    `jacobian.q` has the shape of the parameters; each of its entries has one row per coordinate. `saved` and
    `saved_jacobian` are the same at the times of `save_at`. `error` is how much `jacobian` differs from that of a
    coarser run, None where none was made; `warnings` say what makes the derivative doubtful.
    """

    state: State
    jacobian: State
    error: State | None
    warnings: list[str]
    saved: State | None
    saved_jacobian: State | None
    steps: int


def sensitivity(
    build: Callable[..., Any],
    parameters: Any,
    method: AbstractMethod,
    *,
    t1: float,
    h: float | None = None,
    stepping: AbstractStepping | None = None,
    until: AbstractUntil | None = None,
    save_at: Numbers | None = None,
    max_steps: int = 4096,
    check: bool = True,
    allow_biased: bool = False,
) -> Sensitivity:
    """How the motion changes with the parameters, as exact as the run, through impacts and friction.

    Forward mode: for a few parameters, and all coordinates at once. For many parameters and one number that follows
    from the motion use `carom.gradient`. Arguments as there; `save_at` are times at which derivatives are wanted too,
    `max_steps` bounds the steps, whose carries are all stored.

    Example:
        >>> found = carom.sensitivity(
        ...     carom.models.bouncing_ball, {"height": 1.0, "gravity": 2.0},
        ...     carom.EventCapturing(carom.explicit(4)), t1=1.5, h=0.01,
        ... )
        >>> found.jacobian.q["gravity"]
    """
    numbers, chosen = parameters_of(parameters), chosen_stepping(h, stepping)
    asked, _, _ = asked_for(build, numbers, method, chosen, t1, until, None)
    times = None if save_at is None else np.asarray(times_of(save_at))
    asked = asked._replace(saves=times)
    most, less = whole(max_steps, "max_steps", 1), coarser(chosen)
    with deferred():
        run = passed(asked, numbers, allow_biased, Progress(), 0.0, 0)
        if run.steps > most:
            raise_failure(asked, Status.MAX_STEPS_REACHED, run.end[0], run.steps)
        jacobian, end = _slopes(run.asked, numbers, times, most)
        error = rough = None
        if check and less is not None:
            other = asked._replace(stepping=less)
            rough = passed(other, numbers, allow_biased, Progress(), 0.0, 0)
            error = differences(jacobian.state, _slopes(rough.asked, numbers, times, most)[0].state)
    told = told_of(asked, numbers, run, rough)
    for text in told:
        warnings.warn(f"sensitivity: {text}", stacklevel=users_frame())
    host = jax.tree.map(np.asarray, (end.state, jacobian.state, end.saved, jacobian.saved))
    return Sensitivity(host[0], host[1], error, told, host[2], host[3], run.steps)


@compiled
def _slopes(asked: Asked, numbers: Any, times: Any, most: int) -> tuple[Any, End]:
    """The derivatives of the end by the parameters, and the end."""

    def end(numbers: Any) -> tuple[End, End]:
        course, state = course_with(asked, numbers)
        found = end_of(course, state, times, most, None)
        return found._replace(status=jnp.zeros(()), steps=jnp.zeros(())), found

    return jax.jacfwd(end, has_aux=True)(numbers)
