r"""Step size by halving, on positions only [Acary2012 sec. 4].

Every attempt does one step of size h and two of size h/2 from the same start, and compares the positions:

    error = max_k |q_{1/2} - q_1|_k / (atol + rtol max(|q_0|, |q_{1/2}|)_k)                       (59), (61)
    h_new = h min(largest, max(smallest, safety (1 / error)^{1/(p+1)}))                          (60)

The estimate is blind where the full and the halved step miss an impact alike; a step that starts from g > 0 and ends
with g < -tol and g' < 0 is therefore rejected too (beyond the paper).
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import is_traced
from carom.methods.base import AbstractMethod, Gives
from carom.names import register
from carom.state import Carry, Info, Row, State, Status, Step, choose, reals
from carom.stepping.base import AbstractStepping, Aim, after, crawls, tried
from carom.systems.system import System

_SMALLEST_PART = 1e-12  # of the run: a smaller step is an error


@register
class StepHalving(AbstractStepping):
    """Steps chosen from the difference between one whole and two half steps; the half steps are kept.

    Args:
        atol: absolute tolerance of positions, a number or one per coordinate.
        rtol: relative tolerance.
        factors: smallest, largest and safety factor of (60).
        order: p of (58): the positions of Moreau's scheme have the local order p + 1 = 1 at impacts.
        inspect: take p = 1 where no contact changes its mode inside the step (end of sec. 4.2).
        first: first step size; by default a thousandth of the run.
        reject_missed: reject steps that end under the surface on their way down.

    Example:
        >>> stepping = carom.StepHalving(atol=1e-6, rtol=0.0)
    """

    atol: Array
    rtol: Array
    factors: Array
    first: Array
    order: int = eqx.field(static=True)
    inspect: bool = eqx.field(static=True)
    reject_missed: bool = eqx.field(static=True)

    needs = frozenset({Gives.WHOLE_STEPS})
    remedy = "Loosen atol or rtol"

    def __init__(
        self,
        atol: Any,
        rtol: Any = 0.0,
        factors: tuple[float, float, float] = (0.5, 5.0, 1.0),
        order: int = 0,
        inspect: bool = False,
        first: float | None = None,
        reject_missed: bool = True,
    ):
        for name, value, least in (("atol", atol, np.nextafter(0, 1)), ("rtol", rtol, 0.0)):
            reals(value, f"StepHalving: {name}", "a number or one per coordinate")
            if not is_traced(value) and not (np.isfinite(value).all() and (np.asarray(value) >= least).all()):
                kind = "positive" if name == "atol" else "zero or positive"
                msg = f"StepHalving: {name} must be {kind}, got {value}"
                raise ValueError(msg)
        if not (len(factors) == 3 and 0 < factors[0] < 1 < factors[1] and factors[2] > 0):
            msg = f"StepHalving: factors must be (smallest < 1, largest > 1, safety > 0), got {factors}"
            raise ValueError(msg)
        if first is not None and not (np.isfinite(first) and first > 0):
            msg = f"StepHalving: first must be positive, got {first}"
            raise ValueError(msg)
        self.atol, self.rtol, self.factors = (jnp.asarray(x, float) for x in (atol, rtol, factors))
        self.first = jnp.asarray(np.nan if first is None else first, float)
        self.order, self.inspect, self.reject_missed = int(order), bool(inspect), bool(reject_missed)

    def init(self, system: System, method: AbstractMethod, state: State, ends: Array) -> Array:
        """The first step size."""
        return jnp.where(jnp.isfinite(self.first), self.first, 1e-3 * (ends[-1] - ends[0]))

    def attempt(self, system: System, method: AbstractMethod, carry: Carry) -> tuple[Carry, Row]:
        """One whole and two half steps, and the choice of the next size."""
        aim = Aim.within(system, carry, carry.stepping)
        whole, half, last = whole_and_halves(system, method, aim.start, carry.memory, aim.inner)
        both = tried(carry, aim, eqx.tree_at(lambda s: s.info, last, together(whole.info, half.info, last.info)))
        failed = both.status != Status.OK
        error = self.error(carry.state, whole.state, last.state)
        missed = self.missed(system, carry.state, last.state)
        ok = ~failed & (error <= 1.0) & ~missed
        p = self.order + self.smooth(method, carry.memory, half.info, last.info)
        size = aim.h * self.factor(error, p, missed | failed)
        size = jnp.where(ok & aim.lands, jnp.maximum(size, carry.stepping), size)
        too_small = ~ok & (size < _SMALLEST_PART * carry.ends[-1]) | crawls(size, both)
        status = jnp.where(too_small, jnp.where(failed, both.status, Status.STEP_TOO_SMALL), Status.OK)
        return after(system, carry, both, ok, size, status)

    def error(self, start: State, whole: State, halves: State) -> Array:
        """(59) with the estimate (61)."""
        scale = self.atol + self.rtol * jnp.maximum(jnp.abs(start.q), jnp.abs(halves.q))
        return jnp.max(jnp.abs(halves.q - whole.q) / scale)

    def factor(self, error: Array, p: Any, failed: Array) -> Array:
        """The bounded factor (60)."""
        least, most, safety = self.factors
        wanted = safety * (1.0 / jnp.maximum(error, 1e-290)) ** (1.0 / (p + 1))
        wanted = jnp.where(jnp.isfinite(wanted), wanted, 0.0)
        return jnp.where(failed, least, jnp.minimum(most, jnp.maximum(least, wanted)))

    def smooth(self, method: AbstractMethod, memory: Any, *infos: Info) -> Any:
        """1 where the modes stay through the step and the variant that inspects events is on."""
        if not self.inspect or Gives.MODES not in method.gives:
            return 0
        same = [jnp.all(info.mode == method.modes(memory)) for info in infos]
        return jnp.where(same[0] & same[1], 1, 0)

    def missed(self, system: System, start: State, end: State) -> Array:
        """Whether an open contact ends under the surface, still on its way down."""
        if system.contacts is None or not self.reject_missed:
            return jnp.asarray(False)
        before, after = (system.gaps(s.t, s.q) for s in (start, end))
        rate = system.gap_rates(end.t, end.q, system.rate(end.t, end.q, end.v))
        return jnp.any((before > 0) & (after < -jnp.min(self.atol)) & (rate < 0))


def whole_and_halves(
    system: System, method: AbstractMethod, start: State, memory: Any, h: Array
) -> tuple[Step, Step, Step]:
    """One step of size h, and the two steps of size h/2; one call site of `method.step`."""

    def substep(before: tuple[State, Any], i: Array):
        state, inner = choose(i == 2, before, (start, memory))
        step = method.step(system, state, inner, jnp.where(i == 0, h, 0.5 * h))
        return (step.state, step.memory), step

    steps = jax.lax.scan(substep, (start, memory), jnp.arange(3))[1]
    whole, half, last = (jax.tree.map(lambda x, i=i: x[i], steps) for i in range(3))
    return whole, half, last


def together(whole: Info, first: Info, second: Info) -> Info:
    """What both half steps (and the whole one) report: sums of impulses, work and counts, the later modes."""
    added = {
        name: getattr(first, name) + getattr(second, name)
        for name in ("impulse", "work")
        if getattr(second, name) is not None
    }
    event = None
    if first.event is not None and second.event is not None:
        event = jnp.where(second.event != 0, second.event, first.event)
    counts = {"iterations": first.iterations + second.iterations, "evaluations": 3 * second.evaluations}
    status = jnp.where(first.status != Status.OK, first.status, second.status)
    counts["status"] = jnp.where(whole.status == Status.NEEDS_RESCUE, whole.status, status)
    changed = added | counts | ({} if event is None else {"event": event})
    names = list(changed)
    return eqx.tree_at(lambda i: [getattr(i, n) for n in names], second, [changed[n] for n in names])
