"""Parameters of a system from measured motion: least squares with exact Jacobians, and confidence intervals."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from carom.arguments import names_of, plain_numbers, user_function, users_frame, whole
from carom.derivatives.asked import coarser
from carom.derivatives.final import final_state
from carom.methods.base import AbstractMethod
from carom.orbits.asking import refuse_run
from carom.orbits.family import Family, real_parameters
from carom.orbits.statistics import Fit, Found, at_bounds, covariance, interval_width, misfit, stacked_names
from carom.running.asking import chosen_stepping
from carom.running.compiled import compiled
from carom.state import Numbers, SimulationError, State, reals, shortened
from carom.stepping.base import AbstractStepping
from carom.systems.probe import NOT_TRACEABLE, TO_BE_TRACEABLE, result
from carom.systems.system import System

_ROUNDING = 1e-9  # of the data
_ROUGH = 1e-3  # of the data: two runs that differ by more are not of one motion


@dataclass(frozen=True)
class Identified:
    """Parameters that fit measured motion best.

    Attributes:
        parameters: their values by name.
        intervals: (lowest, highest) by name, at the level that was asked for.
        errors: standard errors by name.
        covariance: of the parameters, in the order of `names`.
        names: of the parameters, one per number.
        times: of the data.
        predicted: what the system shows at the times of the data, of the shape of the data.
        residuals: data - predicted; NaN where nothing was measured.
        sigma: standard deviation of the noise, as given or as estimated.
        iterations: how many Jacobians were needed.
        counted: whether a number of the data decided: not where nothing was measured, nor where what is predicted
            jumps (a velocity at an impact) within the errors of the parameters.
        warnings: what makes parameters or intervals doubtful.
    """

    parameters: dict[str, Any]
    intervals: dict[str, Any]
    errors: dict[str, Any]
    covariance: np.ndarray
    names: tuple[str, ...]
    times: np.ndarray
    predicted: np.ndarray
    residuals: np.ndarray
    sigma: Any
    iterations: int
    counted: np.ndarray
    warnings: tuple[str, ...]

    @property
    def correlation(self) -> np.ndarray:
        """Correlations of the errors of parameters."""
        d = np.sqrt(np.diag(self.covariance))
        with np.errstate(invalid="ignore"):
            return self.covariance / np.outer(d, d)

    def __repr__(self) -> str:
        told = ", ".join(
            f"{name} = {_told(x, 6)} +- {_told(self.errors[name], 2)}" for name, x in self.parameters.items()
        )
        return f"<Identified: {told}; {self.iterations} iterations>"


class _Experiment(NamedTuple):
    family: Family
    method: AbstractMethod
    stepping: AbstractStepping
    times: Any
    observe: Any
    max_steps: int


def identify(
    build: Callable[..., tuple[Any, State]],
    parameters: Mapping[str, Any],
    data: Numbers,
    method: AbstractMethod,
    *,
    times: Numbers,
    observe: Callable[..., Any] | None = None,
    sigma: Any = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    level: float = 0.95,
    h: float | None = None,
    stepping: AbstractStepping | None = None,
    max_steps: int = 4096,
) -> Identified:
    """The parameters with which a system moves as measured, by least squares, with confidence intervals.

    Args:
        build: function of the parameters that returns (system, state); both may depend on them.
        parameters: first guesses by name: numbers or arrays of numbers.
        data: what was measured, a row per time; NaN where nothing was.
        method: one step; `carom.EventCapturing` where there are contacts.
        times: of the rows.
        observe: what was measured, a function of (q), (q, v) or (t, q, v); None measures all coordinates.
        sigma: standard deviation of the noise, one for all or one per column; None estimates one for all.
        bounds: (lowest, highest) by name, for those parameters that have any.
        level: of the intervals.
        h: constant step size.
        stepping: who chooses the step size; give this or `h`.
        max_steps: most steps of a run.

    Example:
        >>> def build(gravity, restitution):
        ...     return carom.models.bouncing_ball(gravity=gravity, restitution=restitution)
        >>> guess = {"gravity": 9.0, "restitution": 0.7}
        >>> found = carom.identify(build, guess, heights, method, times=times, h=0.01)
        >>> found.parameters, found.intervals
    """
    if not callable(build):
        msg = f"build must be a function of the parameters that returns (system, state), got {shortened(build)}"
        raise TypeError(msg)
    known = Family(build, real_parameters(parameters))
    system, state = known.made(known.parameters)
    if state is None:
        msg = "build must return (system, state): where a measured motion began is part of what is fitted"
        raise TypeError(msg)
    if not 0 < level < 1:
        msg = f"level must lie between 0 and 1, got {level}"
        raise ValueError(msg)
    instants = _times(times, float(state.t))
    seen = None if observe is None else user_function(observe, "observe", ("t", "q", "v"), ("q", "v"), ("q",))
    experiment = _Experiment(
        known, method, chosen_stepping(h, stepping), instants, seen, whole(max_steps, "max_steps", 1)
    )
    refuse_run(system, state, method, experiment.stepping, float(instants[-1]))
    _refuse_tables(seen, system, state)
    theta, limits = ravel_pytree(known.parameters)[0], _limits(bounds, known.parameters)
    first, slopes = (np.asarray(x) for x in _predicted(experiment, theta))
    if not (np.isfinite(first).all() and np.isfinite(slopes).all()):
        msg = "the run with the first guesses fails: try carom.simulate with them, or raise max_steps"
        raise SimulationError(msg)
    measured, noise = _data(data, first, theta.size), _noise(sigma, first)

    def predict(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, J = _predicted(experiment, jnp.asarray(theta))
        return np.asarray(values), np.asarray(J)

    found = Fit(predict, measured, noise, limits, known=sigma is not None).found(np.asarray(theta))
    return _judged(experiment, found, measured, noise, sigma, level, limits)


def _judged(
    experiment: _Experiment,
    found: Found,
    measured: np.ndarray,
    noise: np.ndarray,
    sigma: Any,
    level: float,
    limits: Any,
) -> Identified:
    """The intervals of a fit, and what makes them doubtful."""
    numbers = experiment.family.parameters
    free, names = int(found.counted.sum()) - found.theta.size, stacked_names(numbers)
    spread = 2 * found.cost / free if sigma is None else 1.0
    predicted = np.asarray(_predicted(experiment, jnp.asarray(found.theta))[0])
    values_off, J_off = _inaccuracy(experiment, found.theta, measured)
    C, told = covariance(found.J, names, (J_off / noise[..., None])[found.counted])
    C = spread * C
    errors = np.sqrt(np.diag(C))
    told += at_bounds(found.theta, errors, limits, names)
    left = np.where(found.counted, (measured - predicted) / noise, np.nan)
    told += misfit(left, values_off / noise, found.theta.size, known=sigma is not None)
    for text in told:
        warnings.warn(f"identify: {text}", stacklevel=users_frame())
    half = interval_width(level, free if sigma is None else None) * errors
    ends = [found.theta, found.theta - half, found.theta + half, errors]
    best, low, high, by_name = (_by_name(x, numbers) for x in ends)
    intervals = {name: (low[name], high[name]) for name in best}
    evidence = (experiment.times, predicted, measured - predicted, np.sqrt(spread) if sigma is None else sigma)
    return Identified(best, intervals, by_name, C, names, *evidence, found.looks, found.counted, tuple(told))


def _inaccuracy(experiment: _Experiment, theta: np.ndarray, measured: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How much a coarser run changes what is predicted, and its derivative where that is the same motion."""
    less = coarser(experiment.stepping)
    fine = [np.asarray(x) for x in _predicted(experiment, jnp.asarray(theta))]
    coarse = fine if less is None else _predicted(experiment._replace(stepping=less), jnp.asarray(theta))
    values_off, J_off = (np.nan_to_num(np.abs(np.asarray(x) - y), posinf=0.0) for x, y in zip(coarse, fine))
    largest = np.nanmax(np.abs(measured))
    alike = values_off <= _ROUGH * largest
    return values_off + _ROUNDING * largest, np.where(alike[..., None], J_off, 0.0)


@compiled
def _predicted(experiment: _Experiment, theta: Array) -> tuple[Array, Array]:
    """What the system shows at the times of the data, and its derivative with respect to the parameters."""
    back = ravel_pytree(experiment.family.parameters)[1]

    def shown(theta: Array) -> tuple[Array, Array]:
        system, state = _traced("build", experiment.family.made, back(theta))
        assert state is not None
        more = {"stepping": experiment.stepping, "save_at": experiment.times, "max_steps": experiment.max_steps}
        saved = final_state(system, state, experiment.method, t1=experiment.times[-1], **more).saved
        values = jax.vmap(lambda s: _seen(experiment.observe, system, s))(saved)
        return values, values

    J, values = jax.jacfwd(shown, has_aux=True)(theta)
    return values, J


def _seen(observe: Any, system: System, state: State) -> Array:
    """What is observed of a state, as a vector."""
    if observe is None:
        return state.q
    return jnp.atleast_1d(jnp.asarray(observe(system.given, t=state.t, q=state.q, v=state.v), float))


def _traced(role: str, fn: Callable[..., Any], *args: Any) -> Any:
    """What a user's function makes of traced numbers."""
    try:
        return fn(*args)
    except NOT_TRACEABLE:
        msg = f"{role}: {TO_BE_TRACEABLE}; float() makes a number that no derivative sees"
        raise TypeError(msg) from None


def _refuse_tables(seen: Any, system: System, state: State) -> None:
    """Refuse what is observed where it is no vector."""
    shape = () if seen is None else result(seen, "observe", state, system).shape
    if len(shape) > 1:
        msg = f"observe must return a number or a vector, got shape {shape}"
        raise ValueError(msg)


def _by_name(theta: np.ndarray, like: dict[str, Any]) -> dict[str, Any]:
    """Stacked numbers by the names of parameters."""
    tree = ravel_pytree(like)[1](jnp.asarray(theta))
    return {name: float(tree[name]) if np.ndim(tree[name]) == 0 else np.asarray(tree[name]) for name in like}


def _told(x: Any, digits: int) -> str:
    return f"{x:.{digits}g}" if np.ndim(x) == 0 else np.array2string(x, precision=digits)


def _times(times: Numbers, t0: float) -> np.ndarray:
    found = np.atleast_1d(np.asarray(reals(times, "times", "a list of times")))
    if found.ndim != 1 or not np.isfinite(found).all() or np.any(np.diff(found) <= 0) or found[0] < t0:
        msg = f"times must be finite, rise, and not lie before the start, t = {t0:g}"
        raise ValueError(msg)
    return found


def _data(data: Numbers, like: np.ndarray, unknown: int) -> np.ndarray:
    found = np.asarray(reals(data, "data", "numbers, a row per time"))
    found = found[:, None] if found.ndim == 1 and like.shape[1] == 1 else found
    if found.shape != like.shape:
        msg = f"data must have a row per time and a column per number that is observed, {like.shape}, got {found.shape}"
        raise ValueError(msg)
    if np.isinf(found).any():
        row = int(np.flatnonzero(np.isinf(found).any(axis=1))[0])
        msg = f"data must be finite, or NaN where nothing was measured, got an infinite number in row {row}"
        raise ValueError(msg)
    count = int(np.sum(~np.isnan(found)))
    if count <= unknown:
        msg = f"data must have more numbers than there are parameters, {unknown}, got {count}"
        raise ValueError(msg)
    return found


def _noise(sigma: Any, like: np.ndarray) -> np.ndarray:
    given = 1.0 if sigma is None else plain_numbers(sigma, "sigma", size=like.shape[1], positive=True, of="column")
    return np.broadcast_to(np.asarray(given), like.shape)


def _limits(bounds: Mapping[str, tuple[float, float]] | None, parameters: dict[str, Any]) -> tuple[Any, Any]:
    """Lowest and highest values, stacked as the parameters are."""
    bounds = {} if bounds is None else bounds
    unknown = [name for name in bounds if name not in parameters]
    if unknown:
        msg = f"bounds: {unknown[0]} is no parameter; there are {names_of(list(parameters))}"
        raise ValueError(msg)
    for name, pair in bounds.items():
        if np.shape(reals(pair, f"bounds: {name}", "a pair of numbers, (lowest, highest)"))[:1] != (2,):
            msg = f"bounds: {name} must be a pair of numbers, (lowest, highest), got {shortened(pair)}"
            raise ValueError(msg)
    ends = []
    for side, far in enumerate((-np.inf, np.inf)):
        wanted = {k: np.full(np.shape(x), bounds[k][side] if k in bounds else far) for k, x in parameters.items()}
        ends.append(np.asarray(ravel_pytree(wanted)[0]))
    start = np.asarray(ravel_pytree(parameters)[0])
    if not np.isfinite(start).all():
        msg = f"parameters: {stacked_names(parameters)[int(np.argmin(np.isfinite(start)))]} must be finite"
        raise ValueError(msg)
    outside = ~((ends[0] < start) & (start < ends[1]))
    if outside.any():
        name = stacked_names(parameters)[int(np.argmax(outside))]
        msg = f"bounds: the first guess of {name} must lie inside them"
        raise ValueError(msg)
    return ends[0], ends[1]
