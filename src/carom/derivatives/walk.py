"""Runs as pure functions: from one carry to the last, with a derivative that replays the steps that were kept.

The loop has no derivative of its own in reverse. Where one is wanted, the run stores a row before every step: its carry
and what its inner solves found (`tape.py`). The derivative is a scan over these, one linearised step after the other,
each of them computed anew from its row, so that memory is `most` rows and not the inside of every step. Step sizes that
a stepping has chosen are held.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from carom.derivatives.along import AbstractAlong, Sofar
from carom.derivatives.lines import Line, bare
from carom.derivatives.tape import Columns, Steps
from carom.derivatives.until import AbstractUntil, Left, hits
from carom.derivatives.watch import Watch
from carom.running.crossing import inside_step, number_at
from carom.running.loop import SMALL, Problem, Start, begin, step
from carom.solvers.roots import changing, held, is_zero
from carom.state import Carry, Row, State, Status

_BLOCK = 32  # steps that are skipped together behind the last one
_BYTES = 8e6  # of the rows of a chunk
_LONGEST = 8192  # steps of a chunk


class Course(NamedTuple):
    """What stays the same on the way: the problem, its segments, where it ends before, and what is gathered.

    One that is `watched` sees what makes its derivative doubtful, at these times too, counted from the start.
    """

    problem: Problem
    ends: Any
    instants: Any
    until: AbstractUntil | None = None
    along: dict[str, AbstractAlong] | None = None
    watched: Any = None


class Gathered(NamedTuple):
    """What a course remembers beside the carry: what is left to come before its end, numbers on the way, and doubts."""

    left: Left | None
    along: dict[str, Sofar] | None
    watch: Watch | None


class Walked(NamedTuple):
    """Where a run got to, and the lines before its steps."""

    end: Line
    before: Line


def first_carry(course: Course, state: State) -> Carry:
    """The carry of a run that has not begun."""
    carry = hold_size(begin(course.problem, Start(state, course.instants)))
    system, state = course.problem.system.since(carry.epoch), carry.state
    left = None if course.until is None else course.until.init(system, state, course.ends[-1])
    along = None if course.along is None else {name: a.init(system, state) for name, a in course.along.items()}
    gathered = Gathered(left, along, None if course.watched is None else Watch.of(system, state))
    segment = jnp.sum(course.ends[1:-1] <= 0.0)
    where = lambda c: (c.work, c.kept, c.segment)  # noqa: E731
    return eqx.tree_at(where, carry, (None, gathered, segment), is_leaf=lambda x: x is None)


def one_step(course: Course, carry: Carry) -> Carry:
    """One attempt with the size of the step held."""
    whole, row = step(course.problem, hold_size(carry))
    new, (left, along, watch) = whole, carry.kept
    if course.until is not None:
        new, left = course.until.after(course.problem, carry, whole, row, left)
    if course.along is not None:
        moves = row.keep & (new.state.t > carry.state.t)
        sofar = along
        along = jax.lax.cond(moves, lambda: _gathered(course, carry, whole, new.state.t, row), lambda: sofar)
    if course.ends.shape[0] > 2:  # jumps behind the end are segments of no length
        new = eqx.tree_at(lambda c: c.done, new, new.done | (new.state.t >= course.ends[-1]))
    if watch is not None:
        watch = held(watch).after(*held((course.problem, carry, new, row, course.watched)))
    return eqx.tree_at(lambda c: c.kept, new, Gathered(left, along, watch), is_leaf=lambda x: x is None)


def _gathered(course: Course, old: Carry, new: Carry, end: Array, row: Row) -> dict[str, Sofar]:
    """The numbers along the way after a step of which the part up to `end` counts."""
    step = (course.problem.system.since(old.epoch), course.problem.method, old.state, new.state, row)

    def along(a: AbstractAlong, step: Any) -> Callable[[Array], Array]:
        between = inside_step(*step)
        return lambda t: number_at(a.f, step[0], between(t))

    def over(a: AbstractAlong, sofar: Sofar) -> Sofar:
        return a.after(sofar, along(a, step), along(a, held(step)), old.state.t, end)

    def across(a: AbstractAlong, sofar: Sofar) -> Sofar:
        before, behind = (number_at(a.f, step[0], state) for state in (old.state, new.state))
        return a.across(sofar, before, behind, end - old.state.t)

    def after(way: Callable[[AbstractAlong, Sofar], Sofar]) -> dict[str, Sofar]:
        return {name: way(a, old.kept.along[name]) for name, a in (course.along or {}).items()}

    return jax.lax.cond(hits(step[0], old.state, row), lambda: after(across), lambda: after(over))


def hold_size(carry: Carry) -> Carry:
    """The same carry; derivatives do not see what the stepping has chosen."""
    return eqx.tree_at(lambda c: c.stepping, carry, held(carry.stepping))


def alive(carry: Carry) -> Array:
    """Whether a run goes on."""
    return ~carry.done & (carry.status == Status.OK)


class Form:
    """How carries of one kind become lines."""

    def __init__(self, carry: Carry):
        numbers, rest = eqx.partition(bare(carry), eqx.is_inexact_array)
        wholes, self.fixed = eqx.partition(rest, eqx.is_array)
        self.from_x, self.from_i = (ravel_pytree(part)[1] for part in (numbers, wholes))

    def carry(self, course: Course, line: Line) -> Carry:
        """The carry with these numbers."""
        bare = eqx.combine(self.from_x(line.x), self.from_i(line.i), self.fixed)
        times = (course.ends, course.instants)
        return eqx.tree_at(lambda c: (c.ends, c.instants), bare, times, is_leaf=lambda x: x is None)


def form_of(carry: Carry) -> Form:
    """How carries like this one become lines."""
    return Form(carry)


def shaped_carry(course: Course, state: State) -> Carry:
    """A carry of this course without its numbers."""
    shapes = eqx.filter_eval_shape(first_carry, course, state)
    blank = lambda x: jnp.zeros(x.shape, x.dtype) if isinstance(x, jax.ShapeDtypeStruct) else x  # noqa: E731
    return jax.tree.map(blank, shapes)


def walk(course: Course, carry: Carry, most: int | None, refused: str | None = None) -> Carry:
    """The carry after at most so many steps from this one; differentiable forward and in reverse, repeatedly.

    Without `most` it is a chunk: as many as fit into a few megabytes where derivatives are wanted. `refused` says why
    it must not be differentiated.
    """
    walker, start = _Walker(course, carry, most, refused), Origin.of(course, carry)
    return walker.form.carry(course, walker.last(start))


def walk_and_tell(course: Course, carry: Carry, most: int, refused: str | None = None) -> tuple[Carry, Line, Any]:
    """As `walk`, with the lines before all steps, and the function that makes a carry of one."""
    walker, start = _Walker(course, carry, most, refused), Origin.of(course, carry)
    walked = walker.told(start)
    return walker.form.carry(course, walked.end), walked.before, lambda line: walker.form.carry(course, line)


class Origin(NamedTuple):
    """All numbers that a walk begins with."""

    numbers: Any
    wholes: Any
    line: Line
    first: Array

    @classmethod
    def of(cls, course: Course, carry: Carry) -> Origin:
        """Those of a course and a carry."""
        numbers, rest = eqx.partition(course, eqx.is_inexact_array)
        return cls(numbers, eqx.filter(rest, eqx.is_array), Line.of(carry), carry.k)


class _Walker:
    """The walk of at most so many steps, as a function of all its numbers: the last line, or all lines."""

    def __init__(self, course: Course, carry: Carry, most: int | None, refused: str | None):
        self.form, self.refused = Form(carry), refused
        self.fixed = eqx.filter(course, eqx.is_array, inverse=True)
        self.most, self.is_chunk = most or _LONGEST, most is None
        self.last, self.told = jax.custom_jvp(self._last), jax.custom_jvp(self._told)
        self.last.defjvp(self._last_rule, symbolic_zeros=True)
        self.told.defjvp(self._told_rule, symbolic_zeros=True)

    def advanced(self, numbers: Any, wholes: Any, line: Line) -> Line:
        """The line after one attempt."""
        course = eqx.combine(numbers, wholes, self.fixed)
        return Line.of(one_step(course, self.form.carry(course, line)))

    def steps(self, line: Line, first: Array) -> Array:
        """How many were taken."""
        return self.form.from_i(line.i).k - first

    @property
    def blocks(self) -> int:
        """Of steps."""
        return -(-self.most // _BLOCK)

    def goes_on(self, line: Line, first: Array) -> Array:
        """Whether there is another step to take."""
        return alive(self.form.from_i(line.i)) & (self.steps(line, first) < self.most)

    def _last(self, start: Origin) -> Line:
        def once(line: Line) -> Line:
            return self.advanced(start.numbers, start.wholes, line)

        return jax.lax.while_loop(lambda line: self.goes_on(line, start.first), once, start.line)

    def _told(self, start: Origin) -> Walked:
        return self.storing(lambda line: (self.advanced(start.numbers, start.wholes, line), line), start)

    def storing(self, take: Callable[[Line], tuple[Line, Line]], start: Origin) -> Walked:
        """The walk by `take`, which returns the next line and a row that is stored."""

        def once(walked: Walked) -> Walked:
            place, (end, row) = self.steps(walked.end, start.first), take(walked.end)
            put = lambda a, x: jax.lax.dynamic_update_index_in_dim(a, x, place, 0)  # noqa: E731
            return Walked(end, jax.tree.map(put, walked.before, row))

        room, row = self.blocks * _BLOCK, jax.eval_shape(take, start.line)[1]
        none = jax.tree.map(lambda x: jnp.zeros((room, *x.shape), x.dtype), row)
        return jax.lax.while_loop(lambda walked: self.goes_on(walked.end, start.first), once, Walked(start.line, none))

    def _last_rule(self, primals: tuple[Origin], tangents: tuple[Origin]) -> tuple[Line, Line]:
        walked, dx, _ = self.pushed(*primals, *tangents, tells=False)
        return walked.end, Line(dx, _none(walked.end.i))

    def _told_rule(self, primals: tuple[Origin], tangents: tuple[Origin]) -> tuple[Walked, Walked]:
        walked, dx, before = self.pushed(*primals, *tangents, tells=True)
        lines = Line(*(rows[:, : x.size] for rows, x in zip(walked.before, walked.end)))
        tangent = Walked(Line(dx, _none(walked.end.i)), Line(before, _none(lines.i)))
        return Walked(walked.end, lines), tangent

    def pushed(self, start: Origin, tangent: Origin, *, tells: bool) -> tuple[Walked, Array, Any]:
        """A walk that stores rows, the derivative of its last x, and (if it `tells`) of those before the steps."""
        if self.refused is not None:
            raise TypeError(self.refused)
        moving, d_moving, still = changing(start.numbers, tangent.numbers)
        dx = jnp.zeros_like(start.line.x) if is_zero(tangent.line.x) else tangent.line.x
        given = (moving, still, start.wholes)
        steps = Steps(self.advanced, given, start.line)
        if self.is_chunk:
            width = 8 * sum(map(sum, steps.widths))
            self.most = _BLOCK * int(np.clip(_BYTES / (_BLOCK * width), 1, _LONGEST / _BLOCK))
        walked = self.taped(steps)(given, start)

        def linear(dx: Array, columns: Columns) -> tuple[Array, Any]:
            return steps.push(given, columns)(d_moving, dx), dx if tells else None

        few, width = (1, dx.size) if tells else (steps.in_one_call, 0)
        return walked, *self.over(linear, dx, walked, start.first, few, width)

    def taped(self, steps: Steps) -> Callable[..., Walked]:
        """The walk that stores the rows of `steps`; its derivative, which second ones need, takes all steps again."""

        def walk(given: Any, start: Origin) -> Walked:
            return self.storing(lambda line: steps.take(given, line), start)

        def rule(primals: tuple[Any, Origin], tangents: tuple[Any, Origin]) -> tuple[Walked, Walked]:
            (given, start), (d_given, d_start) = primals, tangents
            walked, (moving, d_moving, still) = walker(given, start), changing(given, d_given)
            dx = jnp.zeros_like(start.line.x) if is_zero(d_start.line.x) else d_start.line.x

            def linear(dx: Array, columns: Columns) -> tuple[Array, Array]:
                x, i = (some[0][: n.size] for some, n in zip(columns, start.line))

                def end(moving: Any, x: Array) -> tuple[Array, Array]:
                    new, row = steps.take(eqx.combine(moving, still), Line(x, i))
                    return new.x, row.x

                return jax.jvp(end, (moving, x), (d_moving, dx))[1]

            dx, rows = self.over(linear, dx, walked, start.first, 1, walked.before.x.shape[1])
            return walked, Walked(Line(dx, _none(walked.end.i)), Line(rows, _none(walked.before.i)))

        walker = jax.custom_jvp(walk)
        walker.defjvp(rule, symbolic_zeros=True)
        return walker

    def over(self, linear: Any, dx: Array, walked: Walked, first: Array, few: int, width: int) -> tuple[Array, Any]:
        """A linear map for each row of a walk, `few` in one call; blocks behind the last one are skipped.

        Returns what comes out in the end, and `width` numbers that each of the maps tells.
        """
        count, shape = self.steps(walked.end, first), (self.blocks, _BLOCK // few, few)
        rows = tuple(_cut(x, shape) for x in walked.before)
        places = (jnp.arange(self.blocks * _BLOCK).reshape(shape), rows)

        def nothing(*more: int) -> Any:
            return jnp.zeros((*more, width)) if width else None

        def once(dx: Array, place: tuple[Array, Any]) -> tuple[Array, Any]:
            return jax.lax.cond(place[0] < count, linear, lambda dx, _: (dx, nothing()), dx, place[1])

        def some(dx: Array, places: Any) -> tuple[Array, Any]:
            return jax.lax.scan(jax.checkpoint(once, prevent_cse=False), dx, places)

        def block(dx: Array, places: Any) -> tuple[Array, Any]:
            return jax.lax.scan(some, dx, places)

        def either(dx: Array, places: Any) -> tuple[Array, Any]:
            begun = places[0][0, 0] < count
            return jax.lax.cond(begun, block, lambda dx, _: (dx, nothing(*shape[1:])), dx, places)

        dx, told = jax.lax.scan(jax.checkpoint(either, prevent_cse=False), dx, places)
        return dx, told.reshape(-1, width) if width else None


def _cut(x: Array, shape: tuple[int, ...]) -> list[Array]:
    """Rows in groups of this shape, their columns in parts that are small in the innermost group."""
    x = x.reshape(*shape, *x.shape[1:])
    return (
        jnp.split(x, list(range(SMALL // shape[-1], x.shape[-1], SMALL // shape[-1])), axis=-1)
        if shape[-1] > 1
        else [x]
    )


def _none(x: Array) -> Any:
    """The derivative of whole numbers."""
    return np.zeros(x.shape, jax.dtypes.float0)
