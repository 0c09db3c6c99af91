"""Parameters of a system from measured motion: least squares with exact Jacobians, and confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array
from scipy.optimize import least_squares

from carom.arguments import names_of, plain_numbers, user_function, whole
from carom.derivatives.final import final_state
from carom.methods.base import AbstractMethod
from carom.orbits.asking import refuse_run
from carom.orbits.family import Family, real_parameters
from carom.orbits.statistics import covariance, interval_width, stacked_names
from carom.running.asking import chosen_stepping
from carom.running.compiled import compiled
from carom.state import Numbers, SimulationError, State, reals, shortened
from carom.stepping.base import AbstractStepping
from carom.systems.system import System


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

    @property
    def correlation(self) -> np.ndarray:
        """Correlations of the errors of parameters."""
        d = np.sqrt(np.diag(self.covariance))
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
    theta = ravel_pytree(known.parameters)[0]
    first, _ = _predicted(experiment, theta)
    if not np.isfinite(first).all():
        msg = "the run with the first guesses fails: try carom.simulate with them, or raise max_steps"
        raise SimulationError(msg)
    measured, noise = _data(data, np.asarray(first), theta.size), _noise(sigma, np.asarray(first))
    found = _fitted(experiment, theta, measured, noise, _limits(bounds, known.parameters))
    free, names = found.fun.size - found.x.size, stacked_names(known.parameters)
    spread = 2 * found.cost / free if sigma is None else 1.0
    C = spread * covariance(found.jac, names)
    half = interval_width(level, free if sigma is None else None) * np.sqrt(np.diag(C))
    ends = [found.x, found.x - half, found.x + half, np.sqrt(np.diag(C))]
    best, low, high, errors = (_by_name(x, known.parameters) for x in ends)
    predicted = np.asarray(_predicted(experiment, jnp.asarray(found.x))[0])
    evidence = (instants, predicted, measured - predicted, np.sqrt(spread) if sigma is None else sigma, int(found.njev))
    return Identified(best, {name: (low[name], high[name]) for name in best}, errors, C, names, *evidence)


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
    ends = []
    for side, far in enumerate((-np.inf, np.inf)):
        wanted = {k: np.full(np.shape(x), bounds[k][side] if k in bounds else far) for k, x in parameters.items()}
        ends.append(np.asarray(ravel_pytree(wanted)[0]))
    start = np.asarray(ravel_pytree(parameters)[0])
    outside = ~((ends[0] < start) & (start < ends[1]))
    if outside.any():
        name = stacked_names(parameters)[int(np.argmax(outside))]
        msg = f"bounds: the first guess of {name} must lie inside them"
        raise ValueError(msg)
    return ends[0], ends[1]
