"""One call for any system: `carom.solve` looks at it, picks method and stepping, and says what and why."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from carom.choice import Plan, planned, time_stepping
from carom.joining import joined
from carom.rows import times_in_order
from carom.running.evidence import moves
from carom.running.progress import Progress
from carom.running.run import reached, simulate
from carom.running.threads import one_for_lapack
from carom.solution import Solution
from carom.state import Numbers, SimulationError, State, Status
from carom.systems.constrained import velocity_residual
from carom.systems.features import NONSMOOTH, Feature
from carom.systems.system import System

_COMPARED = 1000  # rows at which two runs are compared
_LOOSE = 100.0  # evidence that is so many times worse than the tolerance is a warning
_HAND_OVER = (
    Status.TOO_MANY_EVENTS,
    Status.EVENT_NOT_LOCATED,
    Status.STEP_TOO_SMALL,
    Status.NEWTON_DIVERGED,
    Status.CONTACT_NOT_SOLVED,
)


def solve(
    system: System,
    state: State,
    t1: float,
    rtol: float = 1e-6,
    atol: Any = 1e-9,
    *,
    save_at: Numbers | None = None,
    stop: Callable[..., Any] | None = None,
    verify: bool = False,
    progress: bool | Progress | None = None,
) -> Solution:
    """Run `system` from `state` to `t1` to an accuracy, with a method of carom's choice.

    What was chosen, why, and what was checked afterwards is in `sol.choice`. Contacts and friction are followed event
    by event; where that fails, because events become too many, the run goes on with time-stepping from the last state:
    a warning and `sol.choice` say so.

    Args:
        system: the equations: masses, potential, forces, constraints, contacts, friction.
        state: where to start.
        t1: end of the run; before `state.t` for one backward in time, without contacts and friction.
        rtol: relative tolerance of coordinates and velocities, at least 1e-13.
        atol: absolute tolerance, a number or one per coordinate.
        save_at: times at which to keep values; by default every step.
        stop: function `stop(t, q, v)`; the run ends where it turns negative.
        verify: run again with another method (with contacts or friction: time-stepping, which locates no events) and
            report the difference in `sol.choice.checks`.
        progress: as in `carom.simulate`.

    Example:
        >>> ball = carom.System(
        ...     mass=1.0, potential=lambda q: 9.81 * q[0], contacts=carom.Contacts(lambda q: q[:1], restitution=0.7)
        ... )
        >>> sol = carom.solve(ball, carom.State(q=[1.0], v=[0.0]), t1=3.0)
        >>> print(sol.choice)
    """
    with one_for_lapack(np.size(getattr(state, "q", 0))):  # what is no state is refused inside
        plan = planned(system, state, t1, rtol, atol)
        if save_at is not None:
            times_in_order(save_at, float(state.t), t1)
        options = {"t1": t1, "stop": stop, "progress": progress}
        solution = carried_out(plan, system, state, options, None if verify else save_at)
        checks = evidence(solution, rtol)
        if verify and plan.second is not None:
            second = plan.second()
            checks[f"difference to {second.choice.method}"] = compared(solution, second, system, state, options)
        solution.choice = replace(solution.choice, checks=checks)
        return solution.interpolated(reached(solution, save_at)) if verify and save_at is not None else solution


def carried_out(plan: Plan, system: System, state: State, options: dict[str, Any], save_at: Any) -> Solution:
    """The run; handed over to time-stepping where events become too many."""
    try:
        solution = simulate(system, state, plan.method, stepping=plan.stepping, save_at=save_at, **options)
    except SimulationError as error:
        if error.status not in _HAND_OVER or not NONSMOOTH & system.features:
            raise
        return handed_over(error, plan, options, save_at)
    solution.choice = plan.choice
    return solution


def compared(solution: Solution, plan: Plan, system: System, state: State, options: dict[str, Any]) -> float:
    """How far the run of another plan lies from a solution; a warning where that is far above its tolerance."""
    name = plan.choice.method
    try:
        second = simulate(system, state, plan.method, stepping=plan.stepping, **options)
    except SimulationError as error:
        warnings.warn(f"carom.solve: nothing to compare with, {name} failed: {error}", stacklevel=3)
        return float("nan")
    apart = difference(solution, second)
    if apart > _LOOSE * plan.rtol:
        msg = f"carom.solve: {name} differs by {apart:.2g}, far above rtol = {plan.rtol:g}: lower rtol"
        warnings.warn(msg, stacklevel=3)
    return apart


def handed_over(error: SimulationError, plan: Plan, options: dict[str, Any], save_at: Any) -> Solution:
    """Go on with time-stepping from the last accepted state."""
    first, status = error.solution, error.status
    assert first is not None
    assert status is not None
    when = float(first.state.t)
    control: Any = plan.stepping
    rest = time_stepping(control.rtol, control.atol, options["t1"] - when)
    reason = f"from t = {when:.9g} on time-stepping: {status.message[0]}"
    warnings.warn(f"carom.solve: {reason}", stacklevel=4)
    second = simulate(first.system, first.state, rest.method, stepping=rest.stepping, **options)
    reasons = (*plan.choice.reasons, f"until t = {when:.9g} {plan.choice.method} with {plan.choice.stepping}", reason)
    both = joined(first, second, replace(rest.choice, reasons=reasons))
    return both if save_at is None else both.interpolated(reached(both, save_at))


def evidence(solution: Solution, rtol: float) -> dict[str, float]:
    """What can be checked afterwards: residual, drift and penetration, and energy where it must stay."""
    worst = solution.account.worst
    size = float(np.max(np.abs(solution.q))) + 1e-290
    checks = {"residual": worst["residual"]}
    checks |= {name: worst[name] / size for name in ("drift", "penetration") if name in worst}
    if is_conservative(solution):
        account = solution.account
        swing = float(np.max(account.kinetic) + np.ptp(account.potential)) + 1e-290
        checks["energy"] = float(np.max(np.abs(account.energy - account.energy[0]))) / swing
    for name in ("drift", "energy"):
        if checks.get(name, 0.0) > _LOOSE * rtol:
            msg = f"carom.solve: a relative {name} of {checks[name]:.2g} is far above rtol = {rtol:g}: lower rtol"
            warnings.warn(msg, stacklevel=3)
    return checks


def is_conservative(solution: Solution) -> bool:
    """Whether nothing but a potential acts, and nothing moves by itself, so that the energy must stay."""
    system = solution.system
    if moves(system) or {Feature.FORCES, Feature.RATE_DAMPING, *NONSMOOTH} & system.features:
        return False
    return all(at_rest(system, solution.t[i], solution.q[i], solution.v[i]) for i in (0, -1))


def at_rest(system: System, t: Any, q: Any, v: Any) -> bool:
    """Whether kinematics and constraints on velocities let the system rest where it is."""
    if system.hamiltonian is not None or not {Feature.KINEMATICS, Feature.NONHOLONOMIC} & system.features:
        return True
    place = jnp.asarray(t), jnp.asarray(q), jnp.zeros_like(jnp.asarray(v))
    return not (np.any(system.rate(*place)) or np.any(velocity_residual(system, *place)))


def difference(one: Solution, other: Solution) -> float:
    """The largest difference of coordinates in units of the largest one, at many rows of the other solution."""
    rows = np.unique(np.linspace(0, len(other) - 1, _COMPARED).astype(int))
    low, high = sorted((one.t[0], one.t[-1]))
    rows = rows[(other.t[rows] >= low) & (other.t[rows] <= high)]
    return float(np.max(np.abs(one.at(other.t[rows])[0] - other.q[rows])) / (np.max(np.abs(one.q)) + 1e-290))
