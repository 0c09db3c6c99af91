"""The last state of a run as a pure function: for `jit`, `vmap`, `jvp`, `grad`, `jacfwd`, `jacrev`, `hessian`."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from carom.arguments import is_traced, numpy_for, whole
from carom.derivatives.along import AbstractAlong
from carom.derivatives.closures import refuse_closures
from carom.derivatives.until import AbstractUntil
from carom.derivatives.walk import Course, Line, alive, first_carry, hold_size, walk, walk_and_tell
from carom.methods.base import AbstractMethod, Derivative
from carom.running.asking import chosen_stepping, refuse_features, refuse_kinds, refuse_unhandled
from carom.running.compiled import compiled, tracing
from carom.running.crossing import inside_step
from carom.running.loop import Problem, step
from carom.state import Carry, Numbers, State, Status, lift, reals
from carom.stepping.base import AbstractStepping
from carom.systems.check import check_once
from carom.systems.features import Feature
from carom.systems.system import System

_ROUNDING = 64 * float(np.finfo(float).eps)  # of times: one behind the end by so little is at the end


class End(NamedTuple):
    """Where a run ended; NaN, and so are its derivatives, where `status` is not `carom.Status.OK`.

    `saved` are the states at the times that were asked for, stacked; NaN at those that the run did not come to.
    """

    state: State
    status: Array
    steps: Array
    saved: State | None = None


def final_state(
    system: System,
    state: State,
    method: AbstractMethod,
    *,
    t1: ArrayLike,
    h: ArrayLike | None = None,
    stepping: AbstractStepping | None = None,
    until: AbstractUntil | None = None,
    save_at: Numbers | None = None,
    max_steps: int = 4096,
    allow_biased: bool = False,
) -> End:
    """The state at `t1`, as a pure function of every number in system, state, method, t1 and h.

    It can be transformed: `jax.jit`, `jax.vmap`, `jax.jvp`, `jax.grad`, `jax.jacfwd`, `jax.jacrev`, `jax.hessian`. A
    derivative includes how the times of impacts, of slip that ends, of contacts that open change. Nothing is raised
    while it runs: look at `status`. A derivative stores `max_steps` carries (state and memory of the method) and what
    inner solves of small systems found.

    Args:
        system: the equations; numbers to differentiate go through models, `params` and other arguments, not through
            functions that read them from around.
        state: where to start.
        method: one step. With contacts, only methods that locate impacts have a derivative: `carom.EventCapturing`.
        t1: end of the run.
        h: constant step size.
        stepping: who chooses the step size; give this or `h`. Sizes that it chooses are held in derivatives.
        until: end at a `carom.Section` or a `carom.Event` instead, if it comes before t1.
        save_at: times at which states are wanted too, in `saved`.
        max_steps: more steps than these end the run with `Status.MAX_STEPS_REACHED`.
        allow_biased: differentiate methods that step over impacts all the same: their derivatives lack the change of
            the times of impacts, at any step size.

    Example:
        >>> def height(g):
        ...     ball, state = carom.models.bouncing_ball(gravity=g)
        ...     method = carom.EventCapturing(carom.explicit(4))
        ...     return carom.final_state(ball, state, method, t1=1.5, h=0.01).state.q[0]
        >>> jax.value_and_grad(height)(2.0)
    """
    chosen = chosen_stepping(h, stepping)  # pyright: ignore
    most = whole(max_steps, "max_steps", 1)
    times = None if save_at is None else jnp.asarray(times_of(save_at))
    refuse_kinds(system, state, method, chosen)
    course = course_of(system, state, method, chosen, t1, until)
    refuse_closures(course)
    with tracing():
        return _end(course, state, times, most, None if allow_biased else refusal(system, method))


def times_of(save_at: Numbers) -> Any:
    """The times at which states are wanted."""
    times = reals(save_at, "save_at", "a list of times")
    if times.ndim != 1:
        msg = f"save_at must be a list of times, got shape {times.shape}"
        raise ValueError(msg)
    return times


def course_of(
    system: System,
    state: State,
    method: AbstractMethod,
    stepping: AbstractStepping,
    t1: Any,
    until: Any = None,
    along: dict[str, AbstractAlong] | None = None,
) -> Course:
    """What a run goes through; refused, by name, where it cannot."""
    if until is not None and not isinstance(until, AbstractUntil):
        msg = f"until must be a carom.Section or a carom.Event, got {type(until).__name__}"
        raise TypeError(msg)
    if system.has_lists or method.concrete_init:
        what = "lists of pairs" if system.has_lists else f"{type(method).__name__}, whose memory follows from numbers"
        msg = f"final_state does not take {what}: use carom.simulate"
        raise ValueError(msg)
    refuse_unhandled(system, method, stepping)
    instants = _instants(system, state, reals(t1, "t1", "a number"))
    if not is_traced(instants, stepping):
        refuse_features(system, state, method, stepping, np.asarray(instants))
    if until is not None:
        until.check(system, state)
    if not is_traced(system, state):
        with jax.ensure_compile_time_eval():  # numbers may be known inside `jit`
            check_once(system, state)
    if not is_traced(system, state, stepping):
        with jax.ensure_compile_time_eval():
            method = type(method).tuned(method, system, state, stepping.longest)
    problem = Problem(system, method, stepping, None, np.int64(1))
    return lift(Course(problem, instants - instants[0], instants, until, along))


def _instants(system: System, state: State, t1: Any) -> Any:
    """Start, jumps, end; jumps outside are moved to the start or the end."""
    if t1.ndim:
        msg = f"t1 must be one number, got shape {t1.shape}"
        raise TypeError(msg)
    if not is_traced(t1, state.t) and not float(state.t) <= float(t1) < np.inf:
        msg = f"t1 must be finite and not before the start, t = {float(state.t):g}: got t1 = {float(t1):g}"
        raise ValueError(msg)
    xp = numpy_for(t1, state.t, system.jumps)
    t0, t1 = xp.asarray(state.t), xp.asarray(t1)
    return xp.concatenate([t0[None], xp.clip(xp.asarray(system.jumps), t0, t1), t1[None]])


def refusal(system: System, method: AbstractMethod) -> str | None:
    """Why runs of this method with this system have no right derivative; None if they have."""
    name = type(method).__name__
    if method.derivative is Derivative.NONE:
        return f"{name} has no derivative"
    if method.derivative is Derivative.WITHOUT_SALTATION and Feature.CONTACTS in system.features:
        return (
            f"{name} steps over impacts without locating them: derivatives of its runs lack the change of the times of "
            f"impacts, at any step size. Use carom.EventCapturing, or allow_biased=True"
        )
    return None


def end_of(course: Course, state: State, times: Any, most: int, refused: str | None) -> End:
    """Where a run ends, and its states at given times; under `vmap` alone NumPy's arrays would meet traced indices."""
    course = jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, np.ndarray) else x, course)
    carry = first_carry(course, state)
    if times is None:
        return End(*ended(course, walk(course, carry, most, refused)))
    carry, lines, carry_of = walk_and_tell(course, carry, most, refused)
    state, status, steps = ended(course, carry)
    return End(state, status, steps, _saved(course, times, lines, carry, carry_of, status))


_end = compiled(end_of)


def ended(course: Course, carry: Carry) -> tuple[State, Array, Array]:
    """The last state as the user knows it, NaN where the run did not come to its end, its status, and its steps."""
    status = carry.status
    if course.until is not None:
        missed = carry.done & (carry.kept.left.count > 0)
        status = jnp.where(missed & (status == Status.OK), Status.NOT_REACHED, status)
    status = jnp.where(alive(carry), Status.MAX_STEPS_REACHED, status).astype(carry.status.dtype)
    system = course.problem.system.since(carry.epoch)
    return as_known(system, carry.state, status), status, carry.k


def as_known(system: System, state: State, status: Array) -> State:
    """A state with the time and the velocities of the user; NaN, and so its derivatives, where the status is bad."""
    factor = jnp.where(status == Status.OK, 1.0, jnp.nan)
    v = system.outer_velocity(state.t, state.q, state.v)
    return state.moved(*(factor * x for x in (system.epoch + state.t, state.q, v)))


def _saved(course: Course, times: Array, lines: Line, last: Carry, carry_of: Any, status: Array) -> State:
    """The states at given times, interpolated on the steps."""
    system = course.problem.system.since(course.instants[0])
    begins = jax.vmap(lambda line: carry_of(line).state.t)(lines)
    begins = jnp.where(jnp.arange(begins.size) < last.k, begins, jnp.inf)
    elapsed, end = times - course.instants[0], last.state.t + _ROUNDING * jnp.max(jnp.abs(course.instants))
    place = jnp.clip(jnp.searchsorted(begins, elapsed, side="right") - 1, 0, last.k - 1)

    def at(t: Array, k: Array) -> State:
        carry = carry_of(jax.tree.map(lambda x: x[k], lines))
        new, row = step(course.problem, hold_size(carry))
        outside = (t < 0.0) | (t > end)
        state = inside_step(system, course.problem.method, carry.state, new.state, row)(t)
        return as_known(system, state, jnp.where(outside, Status.NOT_REACHED, status))

    return jax.vmap(at)(elapsed, place)
