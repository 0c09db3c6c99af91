"""Which method and stepping suit a system, and why: the choice of `carom.solve`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.methods.base import AbstractMethod
from carom.methods.capturing.event_capturing import EventCapturing
from carom.methods.moreau.extrapolated import Extrapolated
from carom.methods.moreau.moreau_midpoint import MoreauMidpoint
from carom.methods.runge_kutta.explicit_rk import ExplicitRK
from carom.methods.runge_kutta.irk import IRK
from carom.methods.spark.families import DEFAULTS
from carom.methods.spark.spark import Spark
from carom.methods.tailored.tailored_theta import TailoredTheta
from carom.running.asking import refuse_features, refuse_kinds, refuse_traced, segment_ends
from carom.running.compiled import compiled_roughly
from carom.solvers.gauss_seidel import AcceleratedGaussSeidel
from carom.state import State
from carom.stepping.adaptive import Adaptive
from carom.stepping.base import AbstractStepping
from carom.stepping.switching import Switching
from carom.systems.check import check_once
from carom.systems.constrained import linearised, time_scale
from carom.systems.system import System
from carom.tableaux import Tableau, explicit, gauss, radau_iia

_STIFF = 3e5  # fastest rate times the length of the run, from which stability would cost an explicit method too much
_DAMPED = 3e4  # the same for the fastest rate of damping: what dies out at once need not be followed
_STAGES = ((1e-5, 4), (1e-7, 5), (0.0, 6))  # of Spark, from so large an rtol on
_LONGEST = 0.01  # of the run: a motion without force allows steps of any length, over forces and contacts to come
_SECOND_LONGEST = 1 / 173  # of the run, for a second opinion: its stages lie elsewhere
_SMALL = 50  # coordinates up to which an implicit second opinion is cheap
_POWER_ITERATIONS = 30
_ANY = IRK(gauss(1)), Adaptive()  # take the place of method and stepping where only system and state are looked at
_BEST_TIME_STEPPING = 1e-9  # relative accuracy that is asked of time-stepping as a second opinion
_SMALLEST_PART = 1e-2  # of rtol times the run: the step with which Switching passes an event
_LONGEST_PART = 0.02  # of the run: the longest step of Switching


@dataclass(frozen=True)
class Choice:
    """What `carom.solve` picked, why, and what it checked afterwards.

    Example:
        >>> print(carom.solve(system, state, t1=1.0).choice)
    """

    method: str
    stepping: str
    reasons: tuple[str, ...]
    checks: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        checks = [f"checked: {name} {value:.2g}" for name, value in self.checks.items()]
        return "\n".join([f"{self.method} with {self.stepping}", *self.reasons, *checks])

    def to_json(self) -> str:
        """The choice as text for a file."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Choice:
        """The choice that `to_json` wrote."""
        plain = json.loads(text)
        return cls(plain["method"], plain["stepping"], tuple(plain["reasons"]), plain["checks"])


@dataclass(frozen=True)
class Plan:
    """A method with its stepping, the accuracy asked of them, all in words, and what makes a plan to compare with."""

    method: AbstractMethod
    stepping: AbstractStepping
    rtol: float
    choice: Choice
    second: Callable[[], Plan] | None = None


def planned(system: System, state: State, t1: float, rtol: Any, atol: Any) -> Plan:
    """The first of carom's usual methods that takes the system."""
    refuse_traced(system, state, t1, rtol)
    refuse_kinds(system, state, *_ANY)
    if system.has_lists:
        told = "carom.solve: steps with lists of pairs have no error control"
        msg = f"{told}; use carom.simulate(system, state, {default_method(system)}, t1=..., h=...)"
        raise ValueError(msg)
    ends = segment_ends(system, state, t1)
    span = abs(float(ends[-1] - ends[0]))
    control, words = _control(rtol, atol, _LONGEST * span)
    if objection := control.objection(system, state, ends):
        raise ValueError(objection)
    check_once(system, state)
    rate, damping, turning = np.asarray(fastest_rate(system, state)).tolist()
    stiff = rate * span > _STIFF or damping * span > _DAMPED
    pace = f"fastest rate at the start {rate:.2g}, times the length of the run {rate * span:.2g}"
    if damping * span > _DAMPED:
        pace += f"; of damping {damping:.2g} and {damping * span:.2g}"
    refusals = []
    stages = stages_for(float(rtol), max(rate, turning) * _LONGEST * span)
    for one in candidates(stiff, state.q.size <= _SMALL, stages):
        refusal = refused(system, state, one.method, control, ends)
        if refusal is None:
            reasons = (f"{one.why}: {features_of(system)}", f"{'stiff' if stiff else 'not stiff'}: {pace}")
            second = partial(second_opinion, one, rtol, atol, span) if span > 0 else None
            return Plan(one.method, control, float(rtol), Choice(one.name, words, reasons), second)
        refusals.append((len(system.features - one.method.handles), refusal))
    msg = f"carom.solve: no method takes this system; the closest one says: {min(refusals)[1]}"
    raise ValueError(msg)


def stages_for(rtol: float, turns: float) -> int:
    """Of Spark: as many as rtol is worth, no more than steps of the longest size need, over which motions turn so far.

    With s stages steps are about `rtol^{1/(2s - 2)}` long, in units of the fastest rate or the time scale at the start.
    """
    most = next(s for least, s in _STAGES if rtol >= least)
    fewest = _STAGES[0][1]
    return next((s for s in range(fewest, most) if turns <= rtol ** (1 / (2 * s - 2))), most)


def second_opinion(first: Candidate, rtol: Any, atol: Any, span: float) -> Plan:
    """Another discretisation on steps of its own; time-stepping where events are located."""
    if first.second is None:
        return time_stepping(max(float(rtol), _BEST_TIME_STEPPING), atol, span)
    method, name = first.second
    control, words = _control(rtol, atol, _SECOND_LONGEST * span)
    return Plan(method, control, float(rtol), Choice(name, words, ()))


def _control(rtol: Any, atol: Any, h_max: float) -> tuple[Adaptive, str]:
    """The stepping, and the same in words."""
    control = Adaptive(rtol, atol, h_max) if h_max > 0 else Adaptive(rtol, atol)
    words = f"rtol={float(rtol):g}, atol={np.asarray(atol).tolist()}"
    return control, f"Adaptive({words}, h_max={h_max:.3g})" if h_max > 0 else f"Adaptive({words})"


@dataclass(frozen=True)
class Candidate:
    """A method, its name, what it is good for, and another one for a second opinion (None: time-stepping)."""

    method: AbstractMethod
    name: str
    why: str
    second: tuple[AbstractMethod, str] | None


@cache
def candidates(stiff: bool, small: bool, stages: int) -> list[Candidate]:
    """The best first; explicit ones only where stability costs little; constrained ones with so many stages."""
    implicit, cheap = radau_iia(3), explicit(5)
    collocation = IRK(gauss(3)), "IRK(gauss(3))"
    if stiff:
        smooth = Candidate(IRK(implicit), "IRK(radau_iia(3))", "smooth motion", collocation)
        return [smooth, _constrained(3, dict.fromkeys(DEFAULTS, "C")), _capturing(implicit)]
    other = collocation if small else (ExplicitRK(explicit(4)), "ExplicitRK(explicit(4))")
    smooth = Candidate(ExplicitRK(cheap), "ExplicitRK(explicit(5))", "smooth motion", other)
    return [smooth, _constrained(stages, None), _capturing(cheap), _capturing(implicit)]


def _constrained(stages: int, families: dict[str, str] | None) -> Candidate:
    parts = "" if families is None else ", all parts with Lobatto IIIC"
    first, second = ((Spark(s, families), f"Spark({s}){parts}") for s in (stages, stages + 1))
    return Candidate(*first, "constraints are kept exactly", second)


def _capturing(tableau: Tableau) -> Candidate:
    name = f"EventCapturing({tableau.name}, projection=True)"
    return Candidate(EventCapturing(tableau, projection=True), name, "events are located, pieces are smooth", None)


def features_of(system: System) -> str:
    """The features of a system in words."""
    return ", ".join(sorted(system.features)) or "a potential only"


def time_stepping(rtol: Any, atol: Any, span: float) -> Plan:
    """Moreau's scheme, extrapolated over smooth steps, with switching points passed by a small step."""
    h_min, h_max = max(_SMALLEST_PART * float(rtol), 1e-13) * span, _LONGEST_PART * span
    method = Extrapolated(MoreauMidpoint(), max_order=6, atol=float(np.min(atol)), rtol=float(rtol))
    words = ("Extrapolated(MoreauMidpoint(), max_order=6)", f"Switching(h_min={h_min:.2g}, h_max={h_max:.2g})")
    return Plan(method, Switching(h_min, h_max), float(rtol), Choice(*words, ()))


def refused(
    system: System, state: State, method: AbstractMethod, stepping: AbstractStepping, ends: np.ndarray
) -> str | None:
    """Why a method cannot take the system; None if it can."""
    try:
        refuse_features(system, state, method, stepping, ends)
        method.caution(system, state, None, abs(float(ends[-1] - ends[0])))
    except ValueError as error:
        return str(error)
    return None


@compiled_roughly
def fastest_rate(system: System, state: State) -> Array:
    """sqrt|dv'/dq| + |dv'/dv| at the start, by the power method, how much of the latter is damping, and 1 / time scale.

    The highest frequency, or rate of damping; velocities that only turn others are no damping.
    """
    t, q, v = state.t, state.q, state.v

    a, change = linearised(system, t, q, v)

    def by_both(along: Array) -> Array:
        """What accelerations gain by a motion, and by another velocity."""
        moved = system.rate(t, q, along[0]) - system.rate(t, q, jnp.zeros_like(v))
        none = jnp.zeros_like(moved), jnp.zeros_like(v)
        return jax.vmap(change)(jnp.stack([moved, none[0]]), jnp.stack([none[1], along[1]]))

    def iterate(_, found):
        y = by_both(found[0])
        size = jnp.linalg.norm(y, axis=1, keepdims=True)
        along = jnp.where(size > 0, y / jnp.where(size > 0, size, 1.0), found[0])
        return along, size[:, 0], jnp.maximum(-jnp.sum(found[0] * y, 1), 0.0)

    rough = jnp.sin(1.0 + jnp.arange(v.size) ** 2)
    start = (jnp.tile(rough / jnp.linalg.norm(rough), (2, 1)), jnp.zeros(2), jnp.zeros(2))
    _, (frequency, damping), (_, dissipated) = jax.lax.fori_loop(0, _POWER_ITERATIONS, iterate, start)
    turning = 1.0 / time_scale(*(jnp.max(jnp.abs(x)) for x in (q, v, a)))
    rates = jnp.stack([jnp.sqrt(frequency) + damping, dissipated, turning])
    return jnp.where(jnp.isfinite(rates), rates, jnp.inf)


def default_method(system: System) -> AbstractMethod:
    """The first of a few methods for constant steps that takes the system.

    Tailored methods are for systems that declare rate damping they can imitate.
    """
    tailored = [TailoredTheta()] if system.rate_damping else []
    many = MoreauMidpoint(solver=AcceleratedGaussSeidel())
    for method in (*tailored, IRK(gauss(2)), Spark(3), MoreauMidpoint(), many):
        if system.features <= method.handles and not method.objection(system):
            return method
    msg = f"name a method: none of carom's usual choices handles {', '.join(sorted(system.features))}"
    raise ValueError(msg)
