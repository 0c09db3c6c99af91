"""Gradients of losses of long runs with many parameters: reverse mode, replayed chunk by chunk on the host."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import users_frame
from carom.derivatives.along import AbstractAlong
from carom.derivatives.asked import Asked, asked_for, carry_with, coarser, course_with, differences, parameters_of
from carom.derivatives.final import ended
from carom.derivatives.passing import Passed, back_to_start, chunk_with_way_back, passed, told_of
from carom.derivatives.until import AbstractUntil
from carom.derivatives.walk import Line
from carom.methods.base import AbstractMethod
from carom.running.asking import chosen_stepping
from carom.running.compiled import compiled
from carom.running.progress import Progress, progress_bar
from carom.running.signals import deferred, look
from carom.state import State, shortened
from carom.stepping.base import AbstractStepping
from carom.systems.probe import NOT_TRACEABLE, TO_BE_TRACEABLE

_WAYS = 32  # chunks of a few megabytes whose derivatives are kept


@dataclass(frozen=True)
class Gradient:
    """The value of a loss and its gradient, shaped as the parameters.

    `error` is how much the gradient differs from that of a coarser run (steps of twice the size, or ten times the
    tolerance): mostly more than its own error; None where no coarser run was made. `warnings` say what makes the
    derivative doubtful. `state` is the last state, `along` the numbers gathered on the way, `steps` their number.
    """

    value: float
    gradient: Any
    error: Any
    warnings: list[str]
    state: State
    along: dict[str, float] | None
    steps: int


def gradient(
    loss: Callable[..., Any],
    build: Callable[..., Any],
    parameters: Any,
    method: AbstractMethod,
    *,
    t1: float,
    h: float | None = None,
    stepping: AbstractStepping | None = None,
    until: AbstractUntil | None = None,
    along: Mapping[str, AbstractAlong] | None = None,
    check: bool = True,
    allow_biased: bool = False,
    progress: bool | Progress | None = None,
) -> Gradient:
    """The gradient of `loss` with respect to all parameters, as exact as the run, through impacts and friction.

    The run is made in chunks, its state noted before each of them. Derivatives of the first ones are kept, further ones
    are made again on the way back: memory does not grow with the length of the run, and thousands of parameters cost as
    much as one.

    Args:
        loss: function of the last `State`, or of (state, along) where `along` is given; returns one number.
        build: makes (system, state) of the parameters: one of `carom.models`, or a function of your own. Functions of
            the system receive numbers through `System(params=...)`.
        parameters: a dictionary of floats and arrays, passed by name; or any tree of arrays, passed as it is.
        method: one step.
        t1: end of the run.
        h: constant step size.
        stepping: who chooses the step size; give this or `h`.
        until: end at a `carom.Section` or a `carom.Event` instead.
        along: names and what to gather on the way: `carom.Integral(f)`, `carom.Peak(f)`.
        check: make a coarser run too, for the error figure.
        allow_biased: go on with a method that steps over impacts.
        progress: True or False for a progress bar; None shows one on a terminal when it takes more than a second.

    Example:
        >>> found = carom.gradient(
        ...     lambda state: state.q[0], carom.models.bouncing_ball, {"height": 1.0, "gravity": 2.0},
        ...     carom.EventCapturing(carom.explicit(4)), t1=1.5, h=0.01,
        ... )
        >>> found.gradient["gravity"]
    """
    numbers, chosen = parameters_of(parameters), chosen_stepping(h, stepping)
    gathered = None if along is None else _gathered(along)
    asked, course, state = asked_for(build, numbers, method, chosen, t1, until, gathered)
    _refuse_loss(loss, state, gathered)
    bar = progress_bar(progress, 0.0, 4.0 if check else 2.0, "pass")
    with deferred(), bar:
        run, value, found = _made(loss, asked, numbers, allow_biased, bar, 0.0)
        error, other, less = None, None, coarser(chosen)
        if check and less is not None:
            other, _, rough = _made(loss, asked._replace(stepping=less), numbers, allow_biased, bar, 2.0)
            error = differences(found, rough)
    doubts = told_of(asked, numbers, run, other) + _not_finite(value, found)
    for text in doubts:
        warnings.warn(f"gradient: {text}", stacklevel=users_frame())
    final, gathered = run.end
    return Gradient(float(value), jax.tree.map(np.asarray, found), error, doubts, final, gathered, run.steps)


def _gathered(along: Any) -> dict[str, AbstractAlong]:
    """What is gathered on the way, by name."""
    if not isinstance(along, Mapping) or not all(isinstance(one, AbstractAlong) for one in along.values()):
        wanted = "carom.Integral or carom.Peak by name, such as {'work': carom.Integral(f)}"
        msg = f"along must hold {wanted}, got {shortened(along)}"
        raise TypeError(msg)
    return dict(along)


def _refuse_loss(loss: Any, state: State, along: Any) -> None:
    """The loss must take the last state (and what is gathered) and give one real number."""
    values = () if along is None else ({name: jnp.zeros(()) for name in along},)
    names = "(state)" if along is None else "(state, along)"
    try:
        inspect.signature(loss).bind(state, *values)
    except TypeError as error:
        msg = f"loss must be a function of {names} here, got {shortened(loss)}: {error}"
        raise TypeError(msg) from None
    try:
        made = jax.eval_shape(lambda *given: loss(*given), state, *values)
    except NOT_TRACEABLE:
        msg = f"loss: {TO_BE_TRACEABLE}"
        raise TypeError(msg) from None
    if not (isinstance(made, jax.ShapeDtypeStruct) and made.shape == () and made.dtype.kind == "f"):
        what = f"{made.dtype} of shape {made.shape}" if isinstance(made, jax.ShapeDtypeStruct) else type(made).__name__
        msg = f"loss must return one float, got {what}"
        raise ValueError(msg)


def _not_finite(value: Any, found: Any) -> list[str]:
    """What to say of a loss or a gradient with NaN in it."""
    lost = [
        jax.tree_util.keystr(path) for path, x in jax.tree_util.tree_leaves_with_path(found) if not np.isfinite(x).all()
    ]
    if not np.isfinite(value):
        return [f"the loss is {float(value)} at the end of the run"]
    return [f"the derivative by {', '.join(lost)} is not finite: loss or system have none there"] if lost else []


def _made(loss: Any, asked: Asked, numbers: Any, biased: bool, bar: Progress, begun: float) -> tuple[Passed, Any, Any]:
    """A run, the value of its loss, and the gradient of that."""
    run = passed(asked, numbers, biased, bar, begun, _WAYS)
    asked = run.asked
    value, (ct_numbers, ct_x) = _loss(loss, asked, numbers, run.lines[-1])
    for i, (line, way) in enumerate(zip(reversed(run.lines[:-1]), reversed(run.ways))):
        look()
        again = way is None
        more, ct_x = _back(chunk_with_way_back(asked, numbers, line)[2] if again else way, ct_x)
        ct_numbers = jax.tree.map(jnp.add, ct_numbers, more)
        jax.block_until_ready(ct_x)
        bar.update(begun + 1.0 + (i + 1) / len(run.lines), run.steps)
    more = back_to_start(asked, numbers, ct_x)
    return run, value, jax.tree.map(jnp.add, ct_numbers, more)


@compiled
def _loss(loss: Any, asked: Asked, numbers: Any, line: Line) -> tuple[Array, tuple[Any, Array]]:
    """The loss at the end, and its derivatives by the parameters and by the numbers of the last line."""

    def value(numbers: Any, x: Array) -> Array:
        course, state = course_with(asked, numbers)
        carry = carry_with(course, state, Line(x, line.i))
        state = ended(course, carry)[0]
        if course.along is None:
            return jnp.asarray(loss(state))
        return jnp.asarray(loss(state, {name: sofar.number for name, sofar in carry.kept.along.items()}))

    return jax.value_and_grad(value, (0, 1))(numbers, line.x)


@compiled
def _back(way: Any, ct: Array) -> tuple[Any, Array]:
    """What a cotangent behind a chunk is for the parameters, and before it."""
    return way(ct)
