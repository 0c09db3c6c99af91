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
from scipy import stats
from scipy.optimize import least_squares

from carom.arguments import names_of, plain_numbers, user_function, users_frame
from carom.derivatives.final import final_state
from carom.methods.base import AbstractMethod
from carom.orbits.asking import refuse_run
from carom.orbits.family import Family, real_parameters
from carom.running.asking import chosen_stepping
from carom.running.compiled import compiled
from carom.state import Numbers, SimulationError, State, reals, shortened
from carom.stepping.base import AbstractStepping
from carom.systems.system import System

_ALIKE = 1e-10  # ratio of singular values of parameters that cannot be told apart


@dataclass(frozen=True)
class Identified:
    """Parameters that fit measured motion best.

    Attributes:
        parameters: their values by name.
        intervals: (lowest, highest) by name, at the level that was asked for.
        errors: standard errors by name.
        covariance: of the parameters, in the order of `names`.
        names: of the parameters, one per number.
        predicted: what the system shows at the times of the data, of the shape of the data.
        residuals: data - predicted; NaN where nothing was measured.
        sigma: standard deviation of the noise, as given or as estimated.
        iterations: how many Jacobians were needed.
    """

    parameters: dict[str, Any]
    intervals: dict[str, Any]
    errors: dict[str, Any]
    covariance: np.ndarray
    names: tuple[str, ...]
    predicted: np.ndarray
    residuals: np.ndarray
    sigma: Any
    iterations: int

    @property
    def correlation(self) -> np.ndarray:
        """Correlations of the errors of parameters."""
        d = np.sqrt(np.diag(self.covariance))
        return self.covariance / np.outer(d, d)

    def __repr__(self) -> str:
        told = ", ".join(f"{name} = {_told(x)} +- {_told(self.errors[name], 2)}" for name, x in self.parameters.items())
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
    experiment = _Experiment(known, method, chosen_stepping(h, stepping), instants, seen, max_steps)
    refuse_run(system, state, method, experiment.stepping, float(instants[-1]))
    theta, back = ravel_pytree(known.parameters)
    first, _ = _predicted(experiment, theta)
    if not np.isfinite(first).all():
        msg = "the run with the first guesses fails: try carom.simulate with them, or raise max_steps"
        raise SimulationError(msg)
    measured, noise = _data(data, np.asarray(first)), _noise(sigma, np.asarray(first))
    names = _names(known.parameters)
    found = _fitted(experiment, theta, measured, noise, _limits(bounds, known.parameters))
    return _judged(experiment, found, measured, noise, sigma is None, names, level, back)


@compiled
def _predicted(experiment: _Experiment, theta: Array) -> tuple[Array, Array]:
    """What the system shows at the times of the data, and its derivative with respect to the parameters."""
    back = ravel_pytree(experiment.family.parameters)[1]

    def shown(theta: Array) -> tuple[Array, Array]:
        system, state = experiment.family.made(back(theta))
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


def _fitted(experiment: _Experiment, theta: Any, measured: np.ndarray, noise: np.ndarray, limits: Any) -> Any:
    there = ~np.isnan(measured)
    last: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

    def both(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        key = theta.tobytes()
        if key not in last:
            last.clear()
            values, J = (np.asarray(x) for x in _predicted(experiment, jnp.asarray(theta)))
            last[key] = (((values - measured) / noise)[there], (J / noise[..., None])[there])
        return last[key]

    settings: dict[str, Any] = {"jac": lambda x: both(x)[1], "bounds": limits, "x_scale": "jac"}
    close = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-12)
    return least_squares(lambda x: both(x)[0], np.asarray(theta), **settings, **close)


def _judged(experiment, found, measured, noise, estimate, names, level, back) -> Identified:
    """The fit with its covariance."""
    J, free = found.jac, found.fun.size - found.x.size
    if free <= 0:
        msg = f"data must have more numbers than there are parameters, {found.x.size}, got {found.fun.size}"
        raise ValueError(msg)
    units = np.linalg.norm(J, axis=0)
    units = np.where(units > 0, units, 1.0)
    _, s, V = np.linalg.svd(J / units, full_matrices=False)
    if s[-1] < _ALIKE * s[0]:
        alike = [names[i] for i in np.flatnonzero(np.abs(V[-1]) > 0.1)]
        msg = f"these data do not determine {names_of(alike)}: their intervals are unbounded"
        warnings.warn(msg, stacklevel=users_frame())
        s = np.where(s < _ALIKE * s[0], 0.0, s)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = 2 * found.cost / free if estimate else 1.0
        root = np.where(V.T == 0, 0.0, V.T / s)
        covariance = spread * (root @ root.T) / np.outer(units, units)
        errors = np.sqrt(np.diag(covariance))
    width = (stats.t(free) if estimate else stats.norm).ppf(0.5 + level / 2)
    predicted = np.asarray(_predicted(experiment, jnp.asarray(found.x))[0])
    half = width * errors
    low, high, std = (_by_name(back(jnp.asarray(x))) for x in (found.x - half, found.x + half, errors))
    intervals = {name: (low[name], high[name]) for name in low}
    sigma = np.sqrt(spread) if estimate else noise
    evidence = (predicted, measured - predicted, sigma, int(found.njev))
    return Identified(_by_name(back(jnp.asarray(found.x))), intervals, std, covariance, names, *evidence)


def _by_name(tree: dict[str, Any]) -> dict[str, Any]:
    return {name: float(x) if np.ndim(x) == 0 else np.asarray(x) for name, x in tree.items()}


def _told(x: Any, digits: int = 6) -> str:
    return np.array2string(np.asarray(x), precision=digits)


def _names(parameters: dict[str, Any]) -> tuple[str, ...]:
    """A name per number, in the order in which they are stacked."""
    found = []
    for name in sorted(parameters):
        shape = np.shape(parameters[name])
        found += [name] if not shape else [f"{name}{list(i)}" for i in np.ndindex(shape)]
    return tuple(found)


def _times(times: Numbers, t0: float) -> np.ndarray:
    found = np.atleast_1d(np.asarray(reals(times, "times", "a list of times")))
    if found.ndim != 1 or not np.isfinite(found).all() or np.any(np.diff(found) <= 0) or found[0] < t0:
        msg = f"times must be finite, rise, and not lie before the start, t = {t0:g}"
        raise ValueError(msg)
    return found


def _data(data: Numbers, like: np.ndarray) -> np.ndarray:
    found = np.asarray(reals(data, "data", "numbers, a row per time"))
    found = found[:, None] if found.ndim == 1 and like.shape[1] == 1 else found
    if found.shape != like.shape:
        msg = f"data must have a row per time and a column per number that is observed, {like.shape}, got {found.shape}"
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
    ends = []
    for side, far in enumerate((-np.inf, np.inf)):
        wanted = {k: np.full(np.shape(x), bounds[k][side] if k in bounds else far) for k, x in parameters.items()}
        ends.append(np.asarray(ravel_pytree(wanted)[0]))
    start = np.asarray(ravel_pytree(parameters)[0])
    outside = ~((ends[0] < start) & (start < ends[1]))
    if outside.any():
        name = _names(parameters)[int(np.argmax(outside))]
        msg = f"bounds: the first guess of {name} must lie inside them"
        raise ValueError(msg)
    return ends[0], ends[1]
