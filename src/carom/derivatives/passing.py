"""The run that a derivative begins with: chunk by chunk on the host, watched, refused where its derivative is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import UserFunction
from carom.derivatives.asked import Asked, built, carry_with, course_with, scale
from carom.derivatives.final import ended, refusal
from carom.derivatives.until import Event
from carom.derivatives.walk import Line, first_carry, walk
from carom.derivatives.watch import Watch, doubts, jets
from carom.methods.base import Derivative
from carom.running.compiled import compiled, needed_rescue, remember_rescue, split
from carom.running.progress import Progress
from carom.running.signals import look
from carom.state import SimulationError, State, Status
from carom.systems.system import System

_TOUCHING = 1e-10  # gaps this small beside coordinates, and their rates beside velocities, are none
_UNKNOWN = 1e-6  # of the coordinates: their error where nothing is known about it


class Passed(NamedTuple):
    """A run: of what, the lines before its chunks and at the end, ways back through the first ones, what was seen.

    `jumps` are the functions gathered along it that jumped inside a step, with a time of that.
    """

    asked: Asked
    lines: list[Line]
    ways: list[Any]
    watch: Watch
    end: tuple[State, dict[str, float] | None]
    jumps: dict[str, float]
    steps: int


def passed(asked: Asked, numbers: Any, biased: bool, bar: Progress, begun: float, most_ways: int) -> Passed:
    """Run to the end, with ways back through at most so many chunks; a run that fails raises with what was reached.

    It is run with the lean form of its method, and once more with the method itself where that needs more.
    """
    key, lean = split(asked).kind.key, asked._replace(method=asked.method.lean())
    if lean.method is not asked.method and key not in needed_rescue:
        try:
            return _passed(lean, numbers, biased, bar, begun, most_ways)
        except SimulationError as error:
            if error.status is not Status.NEEDS_RESCUE:
                raise
        remember_rescue(key)
    return _passed(asked, numbers, biased, bar, begun, most_ways)


def _passed(asked: Asked, numbers: Any, biased: bool, bar: Progress, begun: float, most_ways: int) -> Passed:
    look()
    lines, ways, together, going, status, steps = [_start(asked, numbers)], [], None, True, Status.OK, 0
    while going:
        if len(ways) < most_ways:
            line, summary, way = chunk_with_way_back(asked, numbers, lines[-1])
        else:
            (line, summary), way = _chunk(asked, numbers, lines[-1], together), None
        t, t1, going, status, steps = np.asarray(summary).tolist()
        look()
        lines.append(line)
        ways.append(way)
        together = int(steps) if way is not None and together is None else together
        bar.update(begun + (t / t1 if t1 else 1.0), int(steps))
    state, along, watch = _reached(asked, numbers, lines[-1])
    if status != Status.OK:
        raise_failure(asked, Status(int(status)), state, int(steps))
    method = asked.method
    if not biased and method.derivative is not Derivative.EXACT and int(watch.events):
        msg = refusal(built(asked.build, numbers)[0], method)
        raise ValueError(f"{msg} ({int(watch.events)} contact events happened in this run)")  # noqa: EM102
    gathered = None if along is None else {name: float(sofar.number) for name, sofar in along.items()}
    jumps = {name: float(sofar.jumped) for name, sofar in (along or {}).items() if np.isfinite(sofar.jumped)}
    return Passed(asked, lines, ways, watch, (state, gathered), jumps, int(steps))


def raise_failure(asked: Asked, status: Status, state: State, steps: int) -> NoReturn:
    """Raise for a run that did not come to its end, with where it got to."""
    cause, remedy = status.message
    where = f"at t = {float(state.t):.9g} (after {steps} steps) with {type(asked.method).__name__}"
    msg = f"{cause} {where}. {remedy}. `.state` holds where the run got to"
    error = SimulationError(msg, None, status)
    error.state = state
    raise error


@compiled
def _start(asked: Asked, numbers: Any) -> Line:
    return Line.of(first_carry(*course_with(asked, numbers)))


@compiled
def back_to_start(asked: Asked, numbers: Any, ct: Array) -> Any:
    """What a cotangent at the start is for the parameters."""
    _, pull = jax.vjp(lambda numbers: Line.of(first_carry(*course_with(asked, numbers))).x, numbers)
    return pull(ct)[0]


@compiled
def _chunk(asked: Asked, numbers: Any, line: Line, most: int | None) -> tuple[Line, Array]:
    """The line behind a chunk; time, its end, whether the run goes on, the status, steps."""
    x, (i, summary) = _behind(asked, line.i, most)(numbers, line.x)
    return Line(x, i), summary


@compiled
def chunk_with_way_back(asked: Asked, numbers: Any, line: Line) -> tuple[Line, Array, Any]:
    """The same with the way back: from a cotangent behind the chunk to those of the parameters, and before it."""
    x, way, (i, summary) = jax.vjp(_behind(asked, line.i, None), numbers, line.x, has_aux=True)
    return Line(x, i), summary, way


def _behind(asked: Asked, i: Array, most: int | None) -> Any:
    def end(numbers: Any, x: Array) -> tuple[Array, Any]:
        course, state = course_with(asked, numbers)
        carry = walk(course, carry_with(course, state, Line(x, i)), most)
        status = ended(course, carry)[1]
        going = status == Status.MAX_STEPS_REACHED
        status = jnp.where(going, Status.OK, status)
        summary = [jnp.asarray(n, float) for n in (carry.state.t, course.ends[-1], going, status, carry.k)]
        new = Line.of(carry)
        return new.x, (new.i, jax.lax.stop_gradient(jnp.stack(summary)))

    return end


@compiled
def _reached(asked: Asked, numbers: Any, line: Line) -> tuple[State, Any, Watch]:
    course, state = course_with(asked, numbers)
    carry = carry_with(course, state, line)
    system = course.problem.system.since(carry.epoch)
    at = carry.state
    v = system.outer_velocity(at.t, at.q, at.v)
    return at.moved(system.epoch + at.t, at.q, v), carry.kept.along, carry.kept.watch


def told_of(asked: Asked, numbers: Any, run: Passed, rough: Passed | None) -> list[str]:
    """What makes the derivative of a run doubtful; `rough` is a coarser one."""
    (end, _), system = run.end, built(asked.build, numbers)[0]
    errors = []
    for name in ("q", "v"):
        x = np.asarray(getattr(end, name))
        known = scale(asked.stepping, x)
        if known is None and rough is not None:
            known = float(np.max(np.abs(x - np.asarray(getattr(rough.end[0], name)))))
        errors.append(_UNKNOWN * float(np.max(np.abs(x))) if known is None else known)
    gaps = np.asarray(system.gaps(end.t, end.q)) if system.contacts is not None else np.zeros(0)
    gaps = gaps[~np.asarray(run.watch.closed)]
    t0 = float(built(asked.build, numbers)[1].t)
    ends_there = asked.until is None
    seen = gaps if ends_there else np.zeros(0)
    told = doubts(run.watch, end, seen, (errors[0], errors[1]), float(asked.t1) - t0, t0, ends_there)
    if rough is not None and int(rough.watch.order) != int(run.watch.order):
        told.append("a coarser run has other events, or in another order: the derivative may be another one nearby")
    friction, restitution = (lambda system, _, of=of: of(system) for of in (_frictions, _restitutions))
    told += [
        f"{name} makes friction that is exactly zero now, whose direction is not known where slip turns round: the "
        f"derivative by it may be wrong"
        for name in _movers(asked, numbers, friction, lambda values: values == 0)
    ]
    if isinstance(asked.until, Event) and asked.until.kind == "closes":
        told += [
            f"{name} makes a restitution that is exactly zero now: that the contact would close later is left out"
            for name in _movers(asked, numbers, restitution, lambda values: values == 0)
        ]
    told += [
        f"the integrand of '{name}' jumps inside a step at t = {t0 + t:.6g}: the derivative lacks how that time changes"
        for name, t in run.jumps.items()
    ]
    return told + [
        f"{name} opens or presses a contact that touches at the start: the derivative is that of one side"
        for name in _opening(asked, numbers)
    ]


def _opening(asked: Asked, numbers: Any) -> list[str]:
    """The parameters that open contacts which touch at the start, or throw those that leave it at once."""
    system, state = built(asked.build, numbers)
    if system.contacts is None or np.all(np.asarray(system.gaps(state.t, state.q)) > _touch(state.q)):
        return []
    gap, rate, bend = (np.asarray(x) for x in jets(system, state))
    touches, falls = np.abs(gap) <= _touch(state.q), rate <= _touch(state.v)
    rests = touches & falls
    leaves = (touches | (gap < 0)) & falls & (rate >= -_touch(state.v)) & (bend > 0)

    def ways(system: System, state: State) -> Array:
        return jnp.concatenate(jets(system, state)[:2])

    return _movers(asked, numbers, ways, lambda _: np.concatenate([rests, leaves]))


def _touch(x: Array) -> float:
    """How much of a gap or its rate is none, beside coordinates or velocities."""
    return _TOUCHING * (1.0 + float(np.max(np.abs(x))))


def _movers(
    asked: Asked, numbers: Any, of: Callable[[System, State], Array], which: Callable[[Array], Any]
) -> list[str]:
    """The parameters that change those numbers `of` system and start at which the derivative is in doubt."""
    doubtful = np.asarray(which(of(*built(asked.build, numbers))))
    if not doubtful.any():
        return []
    values, pull = jax.vjp(lambda numbers: of(*built(asked.build, numbers)), numbers)
    moving = jax.tree_util.tree_leaves_with_path(pull(jnp.where(doubtful, 1.0 + jnp.arange(values.size), 0.0))[0])
    return [f"parameters{jax.tree_util.keystr(path)}" for path, x in moving if np.any(np.asarray(x) != 0)]


def _frictions(system: System) -> Array:
    """All coefficients and limits of friction that are numbers."""
    found = [group.friction for group in system.contact_groups if group.has_friction]
    limits = [group.limit for group in system.friction_groups]
    found += [limit for limit in limits if not isinstance(limit, UserFunction) and limit.ndim < 2]
    return jnp.concatenate([jnp.zeros(0), *(jnp.ravel(x) for x in found)])


def _restitutions(system: System) -> Array:
    """Those of all contacts."""
    return jnp.concatenate([jnp.zeros(0), *(jnp.ravel(group.restitution) for group in system.contact_groups)])
