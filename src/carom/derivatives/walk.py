"""Runs as pure functions: from one carry to the last, with a derivative that replays the steps that were kept.

The loop has no derivative of its own in reverse. Where one is wanted, the run stores the carry before every step, and
the derivative is a scan over these: one linearised step after the other, each of them computed anew from its carry, so
that memory is `most` carries and not the inside of every step. Step sizes that a stepping has chosen are held.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from carom.running.loop import Problem, step
from carom.solvers.roots import changing, held, is_zero
from carom.state import Carry, Status

_BLOCK = 32  # steps that are skipped together behind the last one


class Course(NamedTuple):
    """What stays the same on the way: the problem, its segments, where it ends, and what is summed up."""

    problem: Problem
    ends: Any
    instants: Any
    until: Any = None


class Line(NamedTuple):
    """The numbers of a carry, those that have derivatives and the others; or those of many, row by row."""

    x: Array
    i: Array


class Walked(NamedTuple):
    """Where a run got to, and the lines before its steps."""

    end: Line
    before: Line


def one_step(course: Course, carry: Carry) -> Carry:
    """One attempt with the size of the step held."""
    new, row = step(course.problem, hold_size(carry))
    new = eqx.tree_at(lambda c: c.kept, new, carry.kept, is_leaf=lambda x: x is None)
    if course.until is not None:
        new = course.until.after(course.problem, carry, new, row)
    if course.ends.shape[0] > 2:  # jumps behind the end are segments of no length
        new = eqx.tree_at(lambda c: c.done, new, new.done | (new.state.t >= course.ends[-1]))
    return new


def hold_size(carry: Carry) -> Carry:
    """The same carry; derivatives do not see what the stepping has chosen."""
    return eqx.tree_at(lambda c: c.stepping, carry, held(carry.stepping))


def alive(carry: Carry) -> Array:
    """Whether a run goes on."""
    return ~carry.done & (carry.status == Status.OK)


class _Form:
    """How carries of one kind become lines."""

    def __init__(self, carry: Carry):
        numbers, rest = eqx.partition(_bare(carry), eqx.is_inexact_array)
        wholes, self.fixed = eqx.partition(rest, eqx.is_array)
        self.from_x, self.from_i = (ravel_pytree(part)[1] for part in (numbers, wholes))

    def line(self, carry: Carry) -> Line:
        """The numbers of a carry."""
        numbers, rest = eqx.partition(_bare(carry), eqx.is_inexact_array)
        return Line(ravel_pytree(numbers)[0], ravel_pytree(eqx.filter(rest, eqx.is_array))[0])

    def carry(self, course: Course, line: Line) -> Carry:
        """The carry with these numbers."""
        bare = eqx.combine(self.from_x(line.x), self.from_i(line.i), self.fixed)
        times = (course.ends, course.instants)
        return eqx.tree_at(lambda c: (c.ends, c.instants), bare, times, is_leaf=lambda x: x is None)


def _bare(carry: Carry) -> Carry:
    """A carry without what stays the same."""
    return eqx.tree_at(lambda c: (c.ends, c.instants), carry, (None, None))


def walk(course: Course, carry: Carry, most: int, refused: str | None = None) -> Carry:
    """The carry after at most so many steps from this one; differentiable forward and in reverse, repeatedly.

    `refused` says why it must not be differentiated.
    """
    walker, start = _Walker(course, carry, most, refused), Start.of(course, carry)
    return walker.form.carry(course, walker.last(start))


def walk_and_tell(course: Course, carry: Carry, most: int, refused: str | None = None) -> tuple[Carry, Line, Any]:
    """As `walk`, with the lines before all steps, and the function that makes a carry of one."""
    walker, start = _Walker(course, carry, most, refused), Start.of(course, carry)
    walked = walker.told(start)
    return walker.form.carry(course, walked.end), walked.before, lambda line: walker.form.carry(course, line)


class Start(NamedTuple):
    """All numbers that a walk begins with."""

    numbers: Any
    wholes: Any
    line: Line
    first: Array

    @classmethod
    def of(cls, course: Course, carry: Carry) -> Start:
        """Those of a course and a carry."""
        numbers, rest = eqx.partition(course, eqx.is_inexact_array)
        return cls(numbers, eqx.filter(rest, eqx.is_array), _Form(carry).line(carry), carry.k)


class _Walker:
    """The walk of at most so many steps, as a function of all its numbers: the last line, or all lines."""

    def __init__(self, course: Course, carry: Carry, most: int, refused: str | None):
        self.form, self.refused = _Form(carry), refused
        self.fixed = eqx.filter(course, eqx.is_array, inverse=True)
        self.most, self.blocks = most, -(-most // _BLOCK)
        self.last, self.told = jax.custom_jvp(self._last), jax.custom_jvp(self._told)
        self.last.defjvp(self._last_rule, symbolic_zeros=True)
        self.told.defjvp(self._told_rule, symbolic_zeros=True)

    def advanced(self, numbers: Any, wholes: Any, line: Line) -> Line:
        """The line after one attempt."""
        course = eqx.combine(numbers, wholes, self.fixed)
        return self.form.line(one_step(course, self.form.carry(course, line)))

    def steps(self, line: Line, start: Start) -> Array:
        """How many were taken."""
        return self.form.from_i(line.i).k - start.first

    def goes_on(self, line: Line, start: Start) -> Array:
        """Whether there is another step to take."""
        return alive(self.form.from_i(line.i)) & (self.steps(line, start) < self.most)

    def _last(self, start: Start) -> Line:
        def once(line: Line) -> Line:
            return self.advanced(start.numbers, start.wholes, line)

        return jax.lax.while_loop(lambda line: self.goes_on(line, start), once, start.line)

    def _told(self, start: Start) -> Walked:
        def once(walked: Walked) -> Walked:
            place = self.steps(walked.end, start)
            put = lambda a, x: jax.lax.dynamic_update_index_in_dim(a, x, place, 0)  # noqa: E731
            before = jax.tree.map(put, walked.before, walked.end)
            return Walked(self.advanced(start.numbers, start.wholes, walked.end), before)

        room = self.blocks * _BLOCK
        none = jax.tree.map(lambda x: jnp.zeros((room, *x.shape), x.dtype), start.line)
        return jax.lax.while_loop(lambda walked: self.goes_on(walked.end, start), once, Walked(start.line, none))

    def _last_rule(self, primals: tuple[Start], tangents: tuple[Start]) -> tuple[Line, Line]:
        walked = self.told(*primals)
        dx, _ = self.pushed(walked, *primals, *tangents, tells=False)
        return walked.end, Line(dx, _none(walked.end.i))

    def _told_rule(self, primals: tuple[Start], tangents: tuple[Start]) -> tuple[Walked, Walked]:
        walked = self.told(*primals)
        dx, before = self.pushed(walked, *primals, *tangents, tells=True)
        lines = Line(dx, _none(walked.end.i)), Line(before, _none(walked.before.i))
        return walked, Walked(*lines)

    def pushed(self, walked: Walked, start: Start, tangent: Start, *, tells: bool) -> tuple[Array, Any]:
        """The derivative of the last x along a tangent of the start, and (if it `tells`) of those before the steps."""
        if self.refused is not None:
            raise TypeError(self.refused)
        numbers, d_numbers, still = changing(start.numbers, tangent.numbers)
        dx = start.line.x * 0.0 if is_zero(tangent.line.x) else tangent.line.x

        def linear(dx: Array, line: Line) -> Array:
            def end(numbers: Any, x: Array) -> Array:
                return self.advanced(eqx.combine(numbers, still), start.wholes, Line(x, line.i)).x

            return jax.jvp(end, (numbers, line.x), (d_numbers, dx))[1]

        return self.over(jax.checkpoint(linear), dx, walked.before, self.steps(walked.end, start), tells=tells)

    def over(self, linear: Any, dx: Array, before: Line, count: Array, *, tells: bool) -> tuple[Array, Any]:
        """A linear map for each of `count` lines, one after the other; blocks behind the last are skipped."""
        shape = (self.blocks, _BLOCK)
        lines = jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), before)

        def once(dx: Array, place: tuple[Array, Line]) -> tuple[Array, Any]:
            new = jax.lax.cond(place[0] < count, linear, lambda dx, _: dx, dx, place[1])
            return new, dx if tells else None

        def block(dx: Array, places: Any) -> tuple[Array, Any]:
            return jax.lax.scan(once, dx, places)

        def skipped(dx: Array, places: Any) -> tuple[Array, Any]:
            del places
            return dx, jnp.zeros((_BLOCK, *dx.shape)) if tells else None

        def either(dx: Array, places: Any) -> tuple[Array, Any]:
            return jax.lax.cond(places[0][0] < count, block, skipped, dx, places)

        dx, told = jax.lax.scan(either, dx, (jnp.arange(self.blocks * _BLOCK).reshape(shape), lines))
        return dx, told.reshape(-1, *dx.shape) if tells else None


def _none(x: Array) -> np.ndarray:
    """The derivative of whole numbers."""
    return np.zeros(x.shape, jax.dtypes.float0)
