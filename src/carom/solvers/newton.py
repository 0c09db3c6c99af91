"""Newton's method: one search with backtracking on residuals, one that stops on its updates, and their derivative."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.names import register
from carom.plain import call
from carom.solvers.roots import Expanded, repeated, rooted

PyTree = Any


@register
class Newton(eqx.Module):
    """Settings of the implicit solves.

    Args:
        tol: wanted relative accuracy of the solution of a step; rounding limits are added to it.
        max_iter: iterations after which the step counts as failed.
        strategy: "full" differentiates the coupled stage equations; "shared" uses one Jacobian for all stages and
            solves one small (or tridiagonal) system per eigenvalue of the Runge-Kutta matrix; "auto" takes "full" for
            small dense systems.

    Example:
        >>> method = carom.IRK(carom.gauss(2), newton=carom.Newton(tol=1e-10))
    """

    tol: float = 1e-13
    max_iter: int = eqx.field(default=200, static=True)
    strategy: str = eqx.field(default="auto", static=True)

    __repr__ = call

    def __check_init__(self):
        if self.strategy not in ("auto", "full", "shared"):
            msg = f"Newton: strategy must be 'auto', 'full' or 'shared', got '{self.strategy}'"
            raise ValueError(msg)
        if self.max_iter < 1:
            msg = f"Newton: max_iter must be at least 1, got {self.max_iter}"
            raise ValueError(msg)


class Root(eqx.Module):
    """Where Newton's method got to; `aux` is what the residual function returned beside the residual at `x`."""

    x: PyTree
    aux: PyTree
    converged: Array
    error: Array
    iterations: Array
    evaluations: Array


class AbstractEquations(eqx.Module):
    """Equations `residual(x) = 0` of one step, and a way to Newton's direction."""

    @abc.abstractmethod
    def residual(self, x: PyTree) -> tuple[PyTree, PyTree]:
        """The residual, and what else follows from x."""

    @abc.abstractmethod
    def direction(self, x: PyTree, r: PyTree) -> PyTree:
        """J^{-1} r with the Jacobian at x, or nearly so."""

    def within(self, accuracy: Array) -> AbstractEquations:
        """The same equations with directions that are no more accurate than that, where it saves work."""
        del accuracy
        return self

    def update(self, x: PyTree) -> tuple[PyTree, PyTree]:
        """Newton's update at x, and what else follows from x."""
        r, aux = self.residual(x)
        return self.direction(x, r), aux

    @abc.abstractmethod
    def size(self, d: PyTree, x: PyTree) -> Array:
        """Size of a residual or of the update d that led to x, in units of the tolerance."""

    def blank(self, x: PyTree) -> PyTree:
        """Zeros in place of what else follows from x."""
        return jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(self.residual, x)[1])

    @property
    def exact(self) -> bool:
        """Whether `direction` takes the Jacobian itself."""
        return True


_SMALLEST_DAMPING = 1.0 / 256.0
_FIRST, _ROUGHEST = 1e-3, 0.1  # accuracies of directions: the first, the worst
_ENOUGH = 0.1  # tolerances: a residual this small leaves an error near rounding, and no direction need be better
_ROUNDING = 1e3  # updates this many tolerances large that no longer shrink are rounding
_REFINEMENTS = 100
_REFINED = 1e-15
_ROUGH, _PATIENCE = 1e-10, 5  # changes that no longer shrink are rounding under the first, and soon above it
_HARDLY = 1e-3  # changes larger than this in the end: no solution was found
_SMALLEST = 1e-290
_FEW = 32  # unknowns of which the Jacobian is formed where a root is differentiated


def newton(equations: AbstractEquations, x: PyTree, max_iter: int, search: Callable[..., Root]) -> Root:
    """Solve `residual(x) = 0` by `search`: `with_backtracking`, or `by_updates` of a rule."""

    def find(given: tuple[AbstractEquations, PyTree]) -> Root:
        return search(*given, max_iter)

    return rooted(find, _attached, (equations, x))


def _attached(root: Root, given: tuple[AbstractEquations, PyTree], still: tuple[AbstractEquations, PyTree]) -> Root:
    """One Newton step with the Jacobian held constant, and what else follows from the answer."""
    equations, fixed = given[0], still[0]
    about = Expanded.of(lambda equations, x: equations.residual(x), equations, fixed, root.x)
    r, more = about.changes(jax.tree.map(jnp.zeros_like, root.x))  # r is zero at the answer
    if equations.exact and isinstance(root.x, Array) and root.x.ndim == 1 and root.x.size <= _FEW:
        J, J_aux = jax.vmap(about.along, out_axes=-1)(jnp.asarray(np.eye(root.x.size)))
        d = jnp.linalg.solve(J, r)
        more = jax.tree.map(lambda dx, J: dx - J @ d if eqx.is_inexact_array(dx) else dx, more, J_aux)
    else:
        d = _improved(fixed, about, root.x, r) if equations.exact else _refined(fixed, root.x, r)
        more = about.changes(jax.tree.map(jnp.negative, d))[1]
    x, aux = jax.tree.map(jnp.subtract, root.x, d), jax.tree.map(_added, about.value[1], more)
    return eqx.tree_at(lambda root: (root.x, root.aux), root, (x, aux))


def _improved(equations: AbstractEquations, about: Expanded, x: PyTree, r: PyTree) -> PyTree:
    """J^{-1} r, refined once: rows of constraints, with 1/h^2, cost an LU of J eight digits."""
    d = equations.direction(x, r)
    left = jax.tree.map(jnp.subtract, r, about.along(d)[0])
    return jax.tree.map(jnp.add, d, equations.direction(x, left))


def _added(x: Array, dx: Array) -> Array:
    return x + dx if eqx.is_inexact_array(x) else x


class Refining(NamedTuple):
    """A solution, its last relative change, the one before, the smallest, how many came since that, and how many."""

    y: PyTree
    change: Array
    last: Array
    best: Array
    since: Array
    k: Array


def _refined(equations: AbstractEquations, x: PyTree, r: PyTree) -> PyTree:
    """J^{-1} r by directions that only approximate it, repeated until nothing changes; NaN where changes do not shrink.

    They may grow at first: where something turns fast, the second one was larger than the first.
    """

    def along(d: PyTree) -> PyTree:
        return jax.jvp(lambda y: equations.residual(y)[0], (x,), (d,))[1]

    def solve(direction: Callable[[PyTree], PyTree], product: Callable[[PyTree], PyTree], b: PyTree) -> PyTree:
        def goes_on(loop: Refining) -> Array:
            shrinks = loop.change < loop.last
            patient = (loop.change > _ROUGH) & (loop.since < _PATIENCE)
            return (loop.change > 0) & (shrinks | patient) & (loop.k < _REFINEMENTS)

        def improve(loop: Refining) -> Refining:
            d = direction(jax.tree.map(jnp.subtract, b, product(loop.y)))
            y = jax.tree.map(jnp.add, loop.y, d)
            change = _largest(d) / jnp.maximum(_largest(y), _SMALLEST)
            change = jnp.where(change <= _REFINED, 0.0, change)
            since = jnp.where(change < loop.best, 0, loop.since + 1)
            return Refining(y, change, loop.change, jnp.minimum(change, loop.best), since, loop.k + 1)

        one, none = jnp.asarray(1.0), jnp.zeros((), jnp.int32)
        start = Refining(jax.tree.map(jnp.zeros_like, b), one, jnp.asarray(jnp.inf), jnp.asarray(jnp.inf), none, none)
        end = repeated(goes_on, improve, start)
        return jax.tree.map(lambda y: jnp.where(end.change <= _HARDLY, y, jnp.nan), end.y)

    def direction(b: PyTree) -> PyTree:
        return equations.direction(x, b)

    def backward(b: PyTree) -> PyTree:
        return jax.linear_transpose(direction, b)(b)[0]

    return jax.lax.custom_linear_solve(
        along,
        r,
        lambda product, b: solve(direction, product, b),
        lambda product, b: solve(backward, product, b),
    )


def _largest(x: PyTree) -> Array:
    return jnp.max(jnp.stack([jnp.max(jnp.abs(leaf), initial=0.0) for leaf in jax.tree.leaves(x)]))


def with_backtracking(equations: AbstractEquations, x: PyTree, max_iter: int) -> Root:
    """Newton's method on the residual: a step that does not lower it is halved.

    The error left after an update d is estimated as `ratio / (1 - ratio) |d|` with the ratio of successive updates; the
    iteration ends when that is below 1. Directions are as accurate as the iteration can use [Eisenstat and Walker
    1996]: the square of how much the last one lowered the residual, and no better than what is left to gain.
    """

    def running(c):
        _, _, _, _, facts = c
        _, last, _, _, done, k, _ = facts
        return (done == 0) & (k < max_iter) & jnp.isfinite(last)

    def iterate(c):
        x, r, aux, accuracy, facts = c
        alpha, last, error, defect, _, k, count = facts
        d = equations.within(accuracy).direction(x, r)
        size = equations.size(d, x)
        trial = jax.tree.map(lambda a, b: a - alpha * b, x, d)
        r_trial, aux = equations.residual(trial)
        defect_trial = equations.size(r_trial, x)
        better = (defect_trial <= jnp.maximum(defect, 1.0)) | (alpha <= _SMALLEST_DAMPING)
        ratio, left = _error_left(size, last, k)
        whole = alpha == 1.0
        rounding = (k > 2) & (ratio > 0.5) & (size <= _ROUNDING)
        settled = (size <= 1.0) | (whole & ((left <= 1.0) | (defect_trial <= _ENOUGH) | rounding))
        useful = jnp.maximum((defect_trial / defect) ** 2, _ENOUGH / defect_trial)
        accuracy = jnp.where(better, jnp.minimum(useful, _ROUGHEST), accuracy)
        x, r = jax.tree.map(lambda a, b: jnp.where(better, a, b), (trial, r_trial), (x, r))
        done = better & settled & jnp.isfinite(size)
        after = (1.0, size, jnp.minimum(left, size), defect_trial, done, k + 1)
        before = (0.5 * alpha, last, error, defect, done, k)
        chosen = [jnp.where(better, a, b) for a, b in zip(after, before)]
        return x, r, aux, accuracy, jnp.stack([*chosen, count + 1])

    r, aux = equations.residual(x)
    huge = float(jnp.finfo(float).max)
    first, defect = jnp.asarray(_FIRST), equations.size(r, x)
    start = (x, r, aux, first, jnp.stack([1.0, huge, huge, defect, 0.0, 0.0, 1.0]))
    x, r, aux, _, (_, _, error, _, done, k, count) = repeated(running, iterate, start)
    return Root(x, aux, done > 0, error, k.astype(jnp.int32), count.astype(jnp.int32))


class Updates(NamedTuple):
    """The last update of an iteration, the smallest one, the error left, whether that is small, and how many."""

    last: Array
    smallest: Array
    error: Array
    done: Array
    k: Array


class Foreseen(NamedTuple):
    """Until the error left, estimated from successive updates, is below 1; updates that grow mean divergence."""

    growth: float = 1e6  # of an update over the smallest one so far
    rounding: float = _ROUNDING

    def diverges(self, now: Array, smallest: Array) -> Array:
        """Whether an update is far larger than one before."""
        return now > self.growth * smallest

    def error(self, now: Array, last: Array, k: Array) -> tuple[Array, Array]:
        """The error left, and whether it is small."""
        ratio, error = _error_left(now, last, k)
        settled = (now <= 1.0) | (error <= 1.0) | ((k > 2) & (ratio > 0.5) & (now <= self.rounding))
        return jnp.minimum(error, now), settled & jnp.isfinite(now)


class Settled(NamedTuple):
    """Until the update itself is below `tol`, or below `rounding` and no smaller than `ratio` of the one before."""

    tol: float
    rounding: float
    ratio: float

    def diverges(self, now: Array, smallest: Array) -> Array:
        """Never told from the updates."""
        del now, smallest
        return jnp.asarray(False)

    def error(self, now: Array, last: Array, k: Array) -> tuple[Array, Array]:
        """The update, and whether it is small."""
        before = jnp.where(k > 0, last, jnp.inf)
        return now, (now <= self.tol) | ((now <= self.rounding) & (now >= self.ratio * before))


def iterated(
    improve: Callable[[PyTree, Array], tuple[PyTree, Array]], x: PyTree, max_iter: int, rule: Foreseen | Settled
) -> tuple[PyTree, Updates]:
    """`x, update <- improve(x, k)` until the rule is content with the size of the updates."""

    def running(c: tuple[PyTree, Updates]) -> Array:
        at = c[1]
        return ~at.done & (at.k < max_iter) & jnp.isfinite(at.last) & ~rule.diverges(at.last, at.smallest)

    def once(c: tuple[PyTree, Updates]) -> tuple[PyTree, Updates]:
        x, at = c
        x, now = improve(x, at.k)
        error, done = rule.error(now, at.last, at.k)
        return x, Updates(now, jnp.minimum(at.smallest, now), error, done, at.k + 1)

    inf = jnp.asarray(jnp.inf)
    start = Updates(jnp.zeros(()), inf, inf, jnp.asarray(False), jnp.zeros((), jnp.int32))
    return repeated(running, once, (x, start))


def by_updates(rule: Foreseen | Settled) -> Callable[[AbstractEquations, PyTree, int], Root]:
    """Newton's method until a rule is content with its updates; `aux` is then that of the last but one iterate.

    No line search: rows scaled by 1/h^2 carry rounding noise that would stop it.
    """

    def search(equations: AbstractEquations, x: PyTree, max_iter: int) -> Root:
        def improve(pair: tuple[PyTree, PyTree], k: Array) -> tuple[tuple[PyTree, PyTree], Array]:
            del k
            d, aux = equations.update(pair[0])
            x = jax.tree.map(jnp.subtract, pair[0], d)
            return (x, aux), equations.size(d, x)

        (x, aux), at = iterated(improve, (x, equations.blank(x)), max_iter, rule)
        return Root(x, aux, at.done, at.error, at.k, at.k)

    return search


def _error_left(now: Array, last: Array, k: Array) -> tuple[Array, Array]:
    """The ratio of successive updates, and the error that it leaves."""
    ratio = jnp.where(k > 0, now / jnp.maximum(last, 1e-300), 1.0)
    return ratio, jnp.where(ratio < 1.0, ratio / jnp.maximum(1.0 - ratio, 1e-16) * now, jnp.inf)
