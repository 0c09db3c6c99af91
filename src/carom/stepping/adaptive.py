r"""Step sizes from tolerances: the embedded error estimate of the method, and a control that knows pieces.

    err = max_i |e_i| / (atol' + rtol' max(|y_0|, |y_1|)_i),    y = (q, v),  e the method's `local_error` = O(h^k)
    h_new = h min(5, max(1/5, 0.9 err^{-0.7/k} err_before^{0.4/k}))

(PI control, Gustafsson; Hairer and Wanner, ODEs II, (IV.2.43)). A step with err > 1 is repeated. Estimates are mostly
of lower order than the method, whose error falls like h^p; so that the error of the run falls like rtol, the step is
controlled with `rtol' = rtol^{k/p}` and `atol' = atol rtol'/rtol` (as RADAU5 does; Jay1998 (39)).

Methods to which a change of h costs an error (`least_growth`) keep h where that factor lies in (0.9, least_growth).

Pieces: a step that stops short at an event leaves the proposed size as it is, and the first step after it has no
`err_before`.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from carom.arguments import is_traced, numpy_for, plain_numbers
from carom.methods.base import AbstractMethod, Gives
from carom.names import register
from carom.state import Carry, Info, Row, State, Status
from carom.stepping.base import AbstractStepping, Aim, Tried, after, crawls, take
from carom.systems.constrained import time_scale
from carom.systems.system import System

_SAFETY = 0.9
_LEAST, _MOST = 0.2, 5.0
_FAILED = 0.25  # of the step that could not be computed
_LEAST_RTOL = 1e-13  # below, rounding errors of a few hundred steps are larger
_SMALLEST_PART = 1e-13  # of the run: a smaller step is an error
_ROUNDING = 64 * float(np.finfo(float).eps)
_LONGEST = 0.01  # of the run: a longer step could pass over a force that acts only for a while
_FIRST = 0.01  # error of an explicit Euler step of the first size, Hairer, Norsett and Wanner, ODEs I, sec. II.4


class Pace(eqx.Module):
    """The next step size, the error of the step before (1 where a piece begins), and whether it was repeated."""

    h: Array
    error: Array
    repeated: Array


@register
class Adaptive(AbstractStepping):
    """Steps as large as the tolerances allow, for methods that estimate their local error.

    Args:
        rtol: relative tolerance, at least 1e-13.
        atol: absolute tolerance, a number, or one per coordinate, used for coordinates and velocities alike.
        h_max: largest step size, `np.inf` for none; by default a hundredth of the run, so that no force that acts that
            long is stepped over.
        first: first step size; by default chosen from the motion at the start.

    Example:
        >>> method = carom.ExplicitRK(carom.explicit(5))
        >>> sol = carom.simulate(system, state, method, t1=10.0, stepping=carom.Adaptive(rtol=1e-8, atol=1e-10))
    """

    rtol: Any
    atol: Any
    h_max: Any
    first: Any

    needs = frozenset({Gives.LOCAL_ERROR})
    remedy = "Loosen rtol or atol; a motion that becomes infinite in finite time has no step small enough"

    def __init__(
        self,
        rtol: ArrayLike = 1e-6,
        atol: ArrayLike = 1e-9,
        h_max: ArrayLike | None = None,
        first: ArrayLike | None = None,
    ):
        self.rtol = plain_numbers(rtol, "Adaptive: rtol", positive=True)
        if self.rtol.ndim or (not is_traced(rtol) and not _LEAST_RTOL <= float(self.rtol) < 1):
            msg = f"Adaptive: rtol must be one number of at least {_LEAST_RTOL:g} (rounding) and below 1, got {rtol}"
            raise ValueError(msg)
        self.atol = plain_numbers(atol, "Adaptive: atol", positive=True)
        self.h_max = _size(h_max, "h_max")
        self.first = _size(first, "first")

    def objection(self, system: System, state: State, ends: Any) -> str | None:
        """One atol for all, or one per coordinate."""
        if self.atol.ndim and self.atol.shape != state.q.shape:
            return f"Adaptive: atol has shape {self.atol.shape}, but there are {state.q.size} coordinates"
        if self.atol.ndim and state.q.shape != state.v.shape:
            return "Adaptive: atol must be one number where coordinates and velocities differ in number"
        return None

    def longest_of(self, ends: Array) -> Array:
        """The longest step of a run over these segments."""
        return jnp.where(jnp.isnan(self.h_max), _LONGEST * (ends[-1] - ends[0]), self.h_max)

    def init(self, system: System, method: AbstractMethod, state: State, ends: Array) -> Pace:
        """The first step size: Hairer, Norsett and Wanner, ODEs I, sec. II.4."""
        size = jnp.where(jnp.isnan(self.first), self.first_size(system, method, state, ends), self.first)
        return Pace(size, jnp.ones(()), jnp.asarray(False))

    def first_size(self, system: System, method: AbstractMethod, state: State, ends: Array) -> Array:
        """As there, but with a first guess that does not mind a start from rest: a hundredth of the time scale."""
        k, _ = method.error_orders

        def ahead(at: Any, _: None) -> Any:
            """A step of Euler's method from one place, its size and the rates there."""
            t, y = at
            f = system.rate(t, *y), system.acceleration(t, *y)
            h = _FIRST * jnp.minimum(time_scale(*(jnp.max(jnp.abs(x)) for x in (*y, f[1]))), ends[1] - ends[0])
            return (t + h, tuple(a + h * b for a, b in zip(y, f))), (y, f, h)

        t = state.t if ends.size == 2 else system.beside(ends[0], 1)
        _, (places, rates, sizes) = jax.lax.scan(ahead, (t, (state.q, state.v)), None, 2)  # compiles rates once
        (y, moved), (f, later), h0 = *(tuple(zip(*x)) for x in (places, rates)), sizes[0]
        scales = self.scales(method, y, moved)
        bend = tuple((a - b) / h0 for a, b in zip(later, f))
        d = jnp.maximum(largest(f, scales), largest(bend, scales))
        h1 = (_FIRST / jnp.maximum(d, 1e-290)) ** (1.0 / k)
        size = jnp.minimum(jnp.minimum(100.0 * h0, h1), ends[1] - ends[0])
        return jnp.where(jnp.isfinite(size) & (size > 0), size, 1e-6 * (ends[-1] - ends[0]))

    def attempt(self, system: System, method: AbstractMethod, carry: Carry) -> tuple[Carry, Row]:
        """One step, kept if its error is within the tolerance."""
        aim = Aim.within(system, carry, jnp.minimum(carry.stepping.h, self.longest_of(carry.ends)))
        tried = take(system, method.with_tolerances(self.rtol, self.atol), carry, aim)
        error = self.error(method, carry.state, tried.ahead.state, tried.info, aim.inner)
        failed = tried.status != Status.OK
        ok = ~failed & (error <= 1.0)
        pace = self.paced(method, carry.stepping, aim, tried, ok, error)
        hopeless = ~ok & (pace.h < _SMALLEST_PART * carry.ends[-1]) | crawls(pace.h, tried)
        status = jnp.where(hopeless, jnp.where(failed, tried.status, Status.STEP_TOO_SMALL), Status.OK)
        return after(system, carry, tried, ok, pace, status)

    def paced(self, method: AbstractMethod, pace: Pace, aim: Aim, tried: Tried, ok: Array, error: Array) -> Pace:
        """The next step size and what to remember of this one."""
        failed, arrived = tried.status != Status.OK, tried.arrived
        taken = jnp.where(failed, aim.h, tried.h)
        k, _ = method.error_orders
        error = jnp.maximum(error, 1e-12)
        steady = jnp.clip(_SAFETY * error ** (-0.7 / k) * pace.error ** (0.4 / k), _LEAST, _MOST)
        steady = jnp.where(pace.repeated, jnp.minimum(steady, 1.0), steady)
        if method.least_growth > 1.0:
            steady = jnp.where((steady > _SAFETY) & (steady < method.least_growth), 1.0, steady)
        forward = jnp.where(arrived, taken * steady, pace.h)
        forward = jnp.where(aim.lands, jnp.maximum(forward, pace.h), forward)
        back = taken * jnp.clip(_SAFETY * error ** (-1.0 / k), _LEAST, _SAFETY)
        size = jnp.where(ok, forward, jnp.where(failed, _FAILED * taken, back))
        before = jnp.where(ok & arrived, jnp.maximum(error, 1e-4), 1.0)
        return Pace(size, before, ~ok)

    def error(self, method: AbstractMethod, start: State, end: State, info: Info, h: Array) -> Array:
        """The largest local error in units of its tolerance; what rounding adds to an estimate does not count."""
        scales = self.scales(method, (start.q, start.v), (end.q, end.v))
        q, v = jnp.max(jnp.abs(start.q)), jnp.max(jnp.abs(start.v))
        rounding = (_ROUNDING * q, _ROUNDING * (v + q / h))
        size = largest(info.local_error, tuple(s + r for s, r in zip(scales, rounding)))
        return jnp.where(jnp.isfinite(size), size, 1e12)

    def scales(self, method: AbstractMethod, y0: Any, y1: Any) -> Any:
        """Tolerances of q and v for the estimate."""
        k, p = method.error_orders
        rtol = self.rtol ** (k / p)
        atol = self.atol * (rtol / self.rtol)
        return tuple(atol + rtol * jnp.maximum(jnp.abs(a), jnp.abs(b)) for a, b in zip(y0, y1))


def largest(values: Any, scales: Any) -> Array:
    """The largest of all components in units of their scales."""
    return jnp.max(jnp.concatenate([jnp.abs(x) / s for x, s in zip(values, scales)]))


def _size(value: Any, name: str) -> Any:
    if value is None:
        return np.asarray(np.nan)
    size = numpy_for(value).asarray(value)
    if size.ndim or size.dtype.kind not in "fiu" or not (is_traced(size) or np.isnan(size) or size > 0):
        msg = f"Adaptive: {name} must be positive, got {value}"
        raise ValueError(msg)
    return size.astype(float)
