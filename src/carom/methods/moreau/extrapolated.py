r"""Extrapolation of a time-stepping scheme over smooth steps [Studer2008 secs 7-9.2].

A main step h is done in n_1, n_2, ... substeps of the base scheme; Aitken and Neville's rule

    T_{i,j+1} = T_{i,j} + (T_{i,j} - T_{i-1,j}) / (n_i / n_{i-j} - 1)                  (42)

raises the order by one with every row, as long as all substeps have the modes of the step before. If one has not, the
step contains a switching point: the result is that of a single base step, and the new modes are reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from carom.arguments import is_traced, names_of, numbers, whole
from carom.methods.base import AbstractMethod, Derivative, Gives
from carom.names import register
from carom.running.compiled import traced_once
from carom.solvers.roots import repeated
from carom.state import Numbers, State, Status, Step, shortened
from carom.systems.features import Feature
from carom.systems.system import System

_SAME = 1e-9  # relative size of steps that count as equal


def _float_or_none(value: Any) -> Any:
    return None if value is None else jnp.asarray(value, float)


class Rows(eqx.Module):
    """The tableau (43) so far: its last row (the last column holds T_ii), and what happened on the way."""

    i: Array
    T: Float[Array, "max_order unknowns"]
    first: Step
    last: Step
    error: Array
    iterations: Array
    evaluations: Array
    residual: Array


@register
class Extrapolated(AbstractMethod):
    """Extrapolation of any method that reports modes; loses exact symmetry and symplecticity of the base.

    Positions and velocities are extrapolated, and (beyond the paper) impulses, multipliers and work. `order` of the
    solution is the number of rows used, `error` the last change of the diagonal in units of the tolerance.

    Args:
        base: the scheme of the substeps.
        max_order: most rows of the tableau.
        atol: absolute tolerance of `||T_ii - T_{i-1,i-1}||` (largest entry of q and v).
        rtol: relative tolerance.
        substeps: "odd" for 1, 3, 5, ...; "all" for 1, 2, 3, ..., which makes resting contacts rattle (sec. 8.1).
        restitution: "newton", or "fading" for `eps^(h / h_min)` (sec. 8.2, last paragraph; needs a smallest step).
        fixed_order: always use this many rows (or as many as the smallest step allows) and judge no error; the studies
            of orders in one batch give one value per run.
        h_min: smallest substep; `Switching` sets it.

    Example:
        >>> method = carom.Extrapolated(carom.MoreauMidpoint(), max_order=6, atol=1e-8, rtol=0.0)
    """

    base: AbstractMethod
    max_order: int = 4
    atol: float = 1e-8
    rtol: float = 1e-8
    substeps: str = eqx.field(default="odd", static=True)
    restitution: str = eqx.field(default="newton", static=True)
    fixed_order: Array | float | None = eqx.field(default=None, converter=_float_or_none)
    h_min: float | Array = 0.0

    def __check_init__(self):
        if not isinstance(self.base, AbstractMethod):
            msg = f"Extrapolated: base must be a method such as carom.MoreauMidpoint(), got {shortened(self.base)}"
            raise TypeError(msg)
        for name, value in (("atol", self.atol), ("rtol", self.rtol)):
            if not hasattr(value, "dtype"):
                numbers(value, f"Extrapolated: {name}", nonnegative=True)
        missing = sorted({Gives.MODES, Gives.WHOLE_STEPS} - self.base.gives)
        if missing:
            msg = f"Extrapolated: the base must give {names_of(missing)}, {type(self.base).__name__} does not"
            raise ValueError(msg)
        whole(self.max_order, "Extrapolated: max_order", 1)
        p: Any = self.fixed_order
        known = isinstance(p, jax.Array) and not is_traced(p) and p.ndim == 0
        if known and p.is_fully_addressable and not 1 <= float(p) <= self.max_order:
            msg = f"Extrapolated: fixed_order must lie between 1 and max_order = {self.max_order}, got {float(p):g}"
            raise ValueError(msg)
        if self.substeps not in ("odd", "all"):
            msg = f"Extrapolated: substeps must be 'odd' or 'all', got '{self.substeps}'"
            raise ValueError(msg)
        if self.restitution not in ("newton", "fading"):
            msg = f"Extrapolated: restitution must be 'newton' or 'fading', got '{self.restitution}'"
            raise ValueError(msg)

    @property
    def handles(self) -> frozenset[Feature]:  # pyright: ignore
        """What the base handles, but for listed pairs: substeps would need lists of their own."""
        return self.base.handles - {Feature.LISTED_PAIRS}

    @property
    def derivative(self) -> Derivative:  # pyright: ignore
        """That of the base."""
        return self.base.derivative

    @property
    def gives(self) -> frozenset[Gives]:  # pyright: ignore
        """Modes of whole steps, and an error estimate unless the order is fixed."""
        estimate = {Gives.ERROR_RATIO} if self.fixed_order is None else set()
        return frozenset({Gives.WHOLE_STEPS, Gives.MODES} | estimate)

    @property
    def order(self) -> int:
        """One more than the base's with every further row."""
        return self.base.order + self.max_order - 1

    @property
    def counts(self) -> np.ndarray:
        """n_1, n_2, ..."""
        i = np.arange(self.max_order)
        return 2 * i + 1 if self.substeps == "odd" else i + 1

    def objection(self, system: System) -> str | None:
        """That of the base."""
        return self.base.objection(system)

    def with_smallest_step(self, h_min: Array) -> AbstractMethod:
        """No substep shall be smaller than h_min (sec. 9.2)."""
        return eqx.tree_at(lambda m: m.h_min, self, h_min)

    def init(self, system: System, state: State) -> Any:
        """The memory of the base."""
        return self.base.init(system, state)

    def modes(self, memory: Any) -> Array:
        """Those of the base."""
        return self.base.modes(memory)

    def step(self, system: System, state: State, memory: Any, h: Array) -> Step:
        """One main step."""
        base, shapes = traced_once(Extrapolated.substep, self, system, state, memory, h)
        blank = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
        main = MainStep(self, base, system, state, memory, h, blank)
        zero = jnp.zeros((), jnp.int32)
        T = jnp.zeros((self.max_order, ravel_pytree(unknowns(blank))[0].size))
        rows = Rows(zero, T, blank, blank, jnp.asarray(jnp.inf), zero, zero, jnp.zeros(()))
        rows = repeated(_goes_on, _add_row, rows, main, most=self.max_order)
        return main.conclude(rows)

    def substep(self, system: System, state: State, memory: Any, h: Array) -> Step:
        """One step of the base, with the restitution of sec. 8.2 on request."""
        if self.restitution == "fading" and system.contacts is not None:
            given = [group.restitution for group in system.contact_groups]
            share = h / jnp.maximum(self.h_min, 1e-290)
            faded = [jnp.where(self.h_min > 0, eps**share, eps) for eps in given]
            system = eqx.tree_at(lambda s: [group.restitution for group in s.contact_groups], system, faded)
        return self.base.step(system, state, memory, h)


class MainStep(eqx.Module):
    """One main step in the making: what its rows share."""

    method: Extrapolated
    base: Any
    system: System
    state: State
    memory: Any
    h: Array
    blank: Step

    def is_smooth(self, step: Step) -> Array:
        """Whether a substep has the modes of the step before."""
        return jnp.all(step.info.mode == self.method.modes(self.memory)) & (step.info.status == Status.OK)

    def substeps(self, n: Array) -> tuple[Step, Array, Array, Array]:
        """Take n substeps, or fewer if a mode changes; impulses and work summed, iterations counted, worst residual."""
        start = eqx.tree_at(lambda s: (s.state, s.memory), self.blank, (self.state, self.memory))
        zero = jnp.zeros((), jnp.int32)
        loop = (start, zero, zero, jnp.zeros(()))
        return repeated(_substeps_go_on, _substep, loop, self, n, most=int(self.method.counts[-1]))

    def goes_on(self, rows: Rows) -> Array:
        """Whether another row is wanted and possible (Fig. 6)."""
        method = self.method
        n = jnp.asarray(method.counts)[jnp.minimum(rows.i, method.max_order - 1)]
        possible = (rows.i < method.max_order) & (self.h >= n * method.h_min * (1 - _SAME)) & self.is_smooth(rows.last)
        wanted = rows.error > 1.0 if method.fixed_order is None else rows.i < method.fixed_order
        return (rows.i == 0) | (possible & wanted)

    def add_row(self, rows: Rows) -> Rows:
        """Compute T_{i,1} and extrapolate."""
        n = jnp.asarray(self.method.counts)[rows.i]
        step, count, iterations, residual = self.substeps(n)
        T = neville(rows.T, ravel_pytree(unknowns(step))[0], jnp.asarray(divisors(self.method.counts))[rows.i])
        size = self.state.q.size + self.state.v.size
        change = jnp.max(jnp.abs(T[-1] - rows.T[-1])[:size])
        tolerance = self.method.atol + self.method.rtol * jnp.max(jnp.abs(T[-1, :size]))
        first = rows.i == 0
        return Rows(
            rows.i + 1,
            jnp.where(self.is_smooth(step) | first, T, rows.T),
            jax.tree.map(lambda a, b: jnp.where(first, a, b), step, rows.first),
            step,
            jnp.where(first, jnp.inf, change / tolerance),
            rows.iterations + iterations,
            rows.evaluations + count,
            jnp.maximum(rows.residual, residual),
        )

    def conclude(self, rows: Rows) -> Step:
        """The extrapolated step, or the single base step if a switching point was met (Table II)."""
        first, last, smooth = rows.first, rows.last, self.is_smooth(rows.last)
        single, unravel = ravel_pytree(unknowns(first))
        best = unravel(jnp.where(smooth, rows.T[-1], single))
        judged = self.method.fixed_order is None and self.method.max_order > 1
        info = eqx.tree_at(
            lambda i: (i.status, i.residual, i.iterations, i.evaluations, i.mode, i.event),
            first.info,
            (last.info.status, rows.residual, rows.iterations, rows.evaluations, last.info.mode, last.info.event),
        )
        info = replace(
            info,
            impulse=best["impulse"],
            multiplier=best["multiplier"],
            work=best["work"],
            order=jnp.where(smooth, rows.i, 1),
            error=jnp.where(smooth, rows.error, jnp.inf) if judged else jnp.zeros(()),
        )
        memory = eqx.tree_at(self.method.modes, first.memory, last.info.mode)
        q, v = jnp.split(best[""], [self.state.q.size])
        return Step(self.state.moved(self.state.t + self.h, q, v), memory, info)


def _goes_on(rows: Rows, main: MainStep) -> Array:
    return main.goes_on(rows)


def _add_row(rows: Rows, main: MainStep) -> Rows:
    return main.add_row(rows)


_Loop = tuple[Step, Array, Array, Array]


def _substeps_go_on(loop: _Loop, main: MainStep, n: Array) -> Array:
    step, j, _, _ = loop
    return (j < n) & ((j == 0) | main.is_smooth(step))


def _substep(loop: _Loop, main: MainStep, n: Array) -> _Loop:
    step, j, iterations, residual = loop
    new = main.base(main.method, main.system, step.state, step.memory, main.h / n)
    worst = jnp.maximum(residual, new.info.residual)
    return summed(step, new, n), j + 1, iterations + new.info.iterations, worst


def unknowns(step: Step) -> dict[str, Array | None]:
    """What is extrapolated; q and v come first in the flattened vector."""
    info = step.info
    extra = {"impulse": info.impulse, "multiplier": info.multiplier, "work": info.work}
    return {"": jnp.concatenate([step.state.q, step.state.v])} | extra


def summed(total: Step, new: Step, n: Array) -> Step:
    """The newest substep, with impulses and work summed and multipliers averaged since the first."""
    a, b = total.info, new.info
    impulse, work = jax.tree.map(jnp.add, (a.impulse, a.work), (b.impulse, b.work))
    multiplier = jax.tree.map(lambda x, y: x + y / n, a.multiplier, b.multiplier)
    return Step(new.state, new.memory, replace(b, impulse=impulse, work=work, multiplier=multiplier))


def divisors(counts: np.ndarray) -> np.ndarray:
    """Divisors n_i / n_{i-j} - 1 of (42); infinite beyond the diagonal, so that T_ii is carried to the right."""
    m = len(counts)
    table = np.full((m, max(m - 1, 1)), np.inf)
    for i in range(m):
        for j in range(1, i + 1):
            table[i, j - 1] = counts[i] / counts[i - j] - 1
    return table


def neville(T: Float[Array, "max_order unknowns"], y: Array, divisor: Array) -> Float[Array, "max_order unknowns"]:
    """The next row of the tableau from the row before and T_{i,1} = y [Studer2008 (42)]."""
    row = [y]
    for j in range(T.shape[0] - 1):
        row.append(row[j] + (row[j] - T[j]) / divisor[j])
    return jnp.stack(row)


def extrapolate(values: Numbers, counts: Sequence[int]) -> np.ndarray:
    """The diagonal T_11, T_22, ... of the tableau (43) from first-column values T_{i,1} with n_i substeps.

    Example:
        >>> from carom.methods.moreau.extrapolated import extrapolate
        >>> extrapolate([0.0, 3 / 8, 21 / 32], [1, 2, 4])  # Studer2008 (44): 0, 3/4, 1
    """
    column, table = np.asarray(values, float), divisors(np.asarray(counts))
    T = jnp.zeros((len(column), 1))
    result = []
    for y, divisor in zip(column, table):
        T = neville(T, jnp.atleast_1d(y), jnp.asarray(divisor))
        result.append(float(T[-1, 0]))
    return np.array(result)
