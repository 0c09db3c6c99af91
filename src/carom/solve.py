"""One call for any system: `carom.solve` looks at it, picks method and stepping, and says what and why."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from carom.methods import IRK, EventCapturing, ExplicitRK, Extrapolated, MoreauMidpoint, Spark
from carom.methods.base import AbstractMethod
from carom.progress import Progress
from carom.run import segment_ends, simulate
from carom.solution import Solution
from carom.state import Numbers, SimulationError, State, Status
from carom.stepping import Adaptive, Switching
from carom.stepping.base import AbstractStepping
from carom.systems.arguments import names_of
from carom.systems.system import System
from carom.tableaux import explicit, gauss, radau_iia

_STIFF = 3e5  # highest frequency (or rate) times the length of the run, from which stability would cost too many steps
_POWER_ITERATIONS = 30
_SMALLEST_PART = 1e-2  # of rtol times the run: the step with which Switching passes an event
_LONGEST_PART = 0.02  # of the run: the longest step of Switching
_COMPARED = 200
_LOOSE = 100.0  # evidence that is so many times worse than the tolerance is a warning
_HAND_OVER = (
    Status.TOO_MANY_EVENTS,
    Status.EVENT_NOT_LOCATED,
    Status.STEP_TOO_SMALL,
    Status.NEWTON_DIVERGED,
    Status.CONTACT_NOT_SOLVED,
)


@dataclass(frozen=True)
class Choice:
    """What `carom.solve` picked, why, and what it checked afterwards."""

    method: str
    stepping: str
    reasons: tuple[str, ...]
    checks: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        checks = [f"{name}: {value:.2g}" for name, value in self.checks.items()]
        return "\n".join([f"{self.method} with {self.stepping}", *self.reasons, *checks])

    def to_json(self) -> str:
        """The choice as text for a file."""
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Plan:
    """A method and a stepping that can take a system, in words too, and the method of a second opinion."""

    method: AbstractMethod
    stepping: AbstractStepping
    other: AbstractMethod | None
    words: tuple[str, str]
    reasons: tuple[str, ...]


def solve(
    system: System,
    state: State,
    t1: float,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    *,
    save_at: Numbers | None = None,
    stop: Callable[..., Any] | None = None,
    verify: bool = False,
    progress: bool | Progress | None = None,
) -> Solution:
    """Run `system` from `state` to `t1` to an accuracy, with a method of carom's choice.

    What was chosen, why, and what was checked afterwards is in `sol.choice`. Contacts and friction are followed event by
    event; if events become too many, the run goes on with time-stepping from the last state, which `choice` reports.

    Args:
        system: the equations: masses, potential, forces, constraints, contacts, friction.
        state: where to start.
        t1: end of the run.
        rtol: relative tolerance of coordinates and velocities, at least 1e-13.
        atol: absolute tolerance, a number or one per coordinate.
        save_at: times at which to keep values; by default every step.
        stop: function `stop(t, q, v)`; the run ends where it turns negative.
        verify: run again with another method and report the difference in `sol.choice.checks`.
        progress: as in `carom.simulate`.

    Example:
        >>> ball = carom.System(
        ...     mass=1.0, potential=lambda q: 9.81 * q[0], contacts=carom.Contacts(lambda q: q[:1], restitution=0.7)
        ... )
        >>> sol = carom.solve(ball, carom.State(q=[1.0], v=[0.0]), t1=3.0)
        >>> print(sol.choice)
    """
    plan = planned(system, state, t1, rtol, atol)
    run = {"t1": t1, "stop": stop, "progress": progress}
    solution = _run(plan, system, state, run, save_at, (rtol, atol))
    checks = evidence(solution, rtol)
    if verify and plan.other is not None:
        second = _run(replace(plan, method=plan.other), system, state, run, None, (rtol, atol))
        checks["difference to " + type(plan.other).__name__] = difference(solution, second)
    solution.choice = replace(solution.choice, checks=checks)
    return solution


def planned(system: System, state: State, t1: float, rtol: float, atol: Any) -> Plan:
    """The first of carom's usual methods that takes the system; which one, and why, in words."""
    stepping = Adaptive(rtol, atol)
    features = system.features
    if not isinstance(state, State):
        msg = f"state must be a carom State, got {type(state).__name__}"
        raise TypeError(msg)
    span = segment_ends(system, state, t1)[-1] - float(state.t)
    rate = fastest_rate(system, state)
    stiff = rate * span > _STIFF
    pace = f"its fastest rate at the start, {rate:.2g}, times the length of the run is {rate * span:.2g}"
    why = f"{'stiff' if stiff else 'not stiff'}: {pace}"
    tableau, second = (radau_iia(3), gauss(3)) if stiff else (explicit(5), radau_iia(3))
    smooth = IRK(tableau) if stiff else ExplicitRK(tableau)
    nonsmooth = bool({"contacts", "friction"} & features)
    kind = "contacts or friction" if nonsmooth else "constraints" if "constraints" in features else "smooth motion"
    choices: list[tuple[AbstractMethod, AbstractMethod, str]] = [
        (smooth, IRK(second), "smooth"),
        (Spark(3), Spark(4), "constraints"),
        (EventCapturing(tableau, projection=True), EventCapturing(second, projection=True), "events"),
    ]
    names = {"smooth": tableau.name, "constraints": "3", "events": tableau.name}
    for method, other, key in choices:
        if features <= method.handles and not method.objection(system) and not (stiff and key == "constraints"):
            words = (f"{type(method).__name__}({names[key]})", f"Adaptive(rtol={rtol:g}, atol={np.min(atol):g})")
            return Plan(method, stepping, other, words, (kind, why))
    method, stepping, words = time_stepping(rtol, atol, span)
    missing = sorted(features - method.handles)
    if missing or method.objection(system):
        tried = [m for m, _, _ in choices] + [method]
        best = min(tried, key=lambda m: len(features - m.handles))
        rest = names_of(sorted(features - best.handles)) if features - best.handles else best.objection(system)
        msg = f"carom.solve: no method takes this system; {type(best).__name__}, the closest, does not handle {rest}"
        raise ValueError(msg)
    return Plan(method, stepping, None, words, (kind, "time-stepping, located by Switching"))


def time_stepping(rtol: float, atol: Any, span: float) -> tuple[AbstractMethod, AbstractStepping, tuple[str, str]]:
    """Moreau's scheme, extrapolated over smooth steps, with switching points passed by a small step."""
    h_min, h_max = max(_SMALLEST_PART * rtol, 1e-13) * span, _LONGEST_PART * span
    method = Extrapolated(MoreauMidpoint(), max_order=6, atol=float(np.min(atol)), rtol=float(rtol))
    words = ("Extrapolated(MoreauMidpoint(), max_order=6)", f"Switching(h_min={h_min:.2g}, h_max={h_max:.2g})")
    return method, Switching(h_min, h_max), words


def _run(
    plan: Plan, system: System, state: State, run: dict[str, Any], save_at: Numbers | None, tolerances: tuple[Any, Any]
) -> Solution:
    """Carry out a plan; hand over to time-stepping where events become too many."""
    choice = Choice(*plan.words, plan.reasons)
    try:
        solution = simulate(system, state, plan.method, stepping=plan.stepping, save_at=save_at, **run)
    except SimulationError as error:
        if error.status not in _HAND_OVER or isinstance(plan.stepping, Switching) or error.solution is None:
            raise
        if not {"contacts", "friction"} & system.features:
            raise
        return handed_over(error, choice, run, save_at, tolerances)
    solution.choice = choice
    return solution


def handed_over(
    error: SimulationError, choice: Choice, run: dict[str, Any], save_at: Numbers | None, tolerances: tuple[Any, Any]
) -> Solution:
    """Go on with time-stepping from the last accepted state."""
    first = error.solution
    assert first is not None
    assert error.status is not None
    when = float(first.state.t)
    method, stepping, words = time_stepping(*tolerances, run["t1"] - when)
    second = simulate(first.system, first.state, method, stepping=stepping, **run)
    reason = f"from t = {when:.9g} on {words[0]} with {words[1]}: {error.status.message[0]}"
    warnings.warn(f"carom.solve: {reason}", stacklevel=4)
    parts = [first, second]
    if save_at is not None:
        times = np.sort(np.atleast_1d(np.asarray(save_at, float)))
        parts = [first.interpolated(times[times < when]), second.interpolated(times[times >= when])]
    solution = joined(*parts, keep_start=save_at is not None)
    solution.choice = Choice(*words, (*choice.reasons, f"until t = {when:.9g} {choice.method}", reason))
    return solution


def joined(first: Solution, second: Solution, keep_start: bool) -> Solution:
    """Two solutions one after the other; columns that only one of them has are left out."""
    skip = 0 if keep_start else 1
    columns = {
        name: np.concatenate([values, second.columns[name][skip:]])
        for name, values in first.columns.items()
        if name in second.columns and values.shape[1:] == second.columns[name].shape[1:]
    }
    columns["k"] = np.arange(len(columns["t"]))
    timing = {name: value + second.timing[name] for name, value in first.timing.items()}
    return Solution(second.system, second.method, second.stepping, columns, second.carry, timing)


def fastest_rate(system: System, state: State) -> float:
    """sqrt|dv'/dq| + |dv'/dv| at the start, by the power method: the highest frequency, or rate of damping."""
    return float(_fastest_rate(system, state))


@eqx.filter_jit
def _fastest_rate(system: System, state: State) -> jax.Array:
    t, q, v = state.t, state.q, state.v

    def of_positions(x: jax.Array) -> jax.Array:
        rate = system.rate(t, q, x) - system.rate(t, q, jnp.zeros_like(x))
        return jax.jvp(lambda y: system.acceleration(t, y, v), (q,), (rate,))[1]

    def of_velocities(x: jax.Array) -> jax.Array:
        return jax.jvp(lambda y: system.acceleration(t, q, y), (v,), (x,))[1]

    def radius(operator: Any) -> jax.Array:
        def iterate(_, found):
            x, _ = found
            y = operator(x)
            size = jnp.linalg.norm(y)
            return jnp.where(size > 0, y / jnp.where(size > 0, size, 1.0), x), size

        rough = jnp.sin(1.0 + jnp.arange(v.size) ** 2)
        return jax.lax.fori_loop(0, _POWER_ITERATIONS, iterate, (rough / jnp.linalg.norm(rough), jnp.zeros(())))[1]

    total = jnp.sqrt(radius(of_positions)) + radius(of_velocities)
    return jnp.where(jnp.isfinite(total), total, jnp.inf)


def evidence(solution: Solution, rtol: float) -> dict[str, float]:
    """What can be checked afterwards: residuals, drift, penetration, and energy where it must stay."""
    worst, system = solution.account.worst, solution.system
    size = float(np.max(np.abs(solution.q))) + 1e-290
    checks = {"residual": worst["residual"]}
    for name in ("drift", "penetration"):
        if name in worst:
            checks[name] = worst[name] / size
    if is_conservative(system):
        energy = solution.account.energy
        swing = float(np.max(solution.account.kinetic)) + float(np.ptp(solution.account.potential)) + 1e-290
        checks["energy"] = float(np.max(np.abs(energy - energy[0]))) / swing
    for name in ("drift", "energy"):
        if checks.get(name, 0.0) > _LOOSE * rtol:
            msg = f"carom.solve: the {name} of {checks[name]:.2g} is far above rtol = {rtol:g}; check with a smaller rtol"
            warnings.warn(msg, stacklevel=3)
    return checks


def is_conservative(system: System) -> bool:
    """Whether nothing but a potential without time acts, so that the energy must stay."""
    return not {"forces", "explicit time", "rate damping", "contacts", "friction"} & system.features


def difference(one: Solution, other: Solution) -> float:
    """The largest difference of coordinates in units of their largest value, at times of both runs."""
    end = min(one.t[-1], other.t[-1])
    times = np.linspace(one.t[0], end, _COMPARED)
    size = np.max(np.abs(one.q), axis=0) + 1e-290
    return float(np.max(np.abs(one.at(times)[0] - other.at(times)[0]) / np.max(size)))
