"""Structure [Jay1998 sec. 6]: symplecticity and reversibility of steps, invariants, energy drift, constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.methods.base import AbstractMethod
from carom.running.compiled import compiled
from carom.running.run import prepare, raise_failure
from carom.solution import Solution
from carom.state import State, lift
from carom.stepping.base import AbstractStepping
from carom.systems.consistent import constraint_residuals as residuals_of
from carom.systems.constrained import velocity_residual
from carom.systems.system import System


def symplectic_defect(system: System, state: State, method: AbstractMethod, h: float) -> float:
    """How far one step is from keeping dq ^ d(M(q) v) on the constraint manifold, relative to the form itself.

    The derivative of the step is taken along a basis of the manifold's tangent space at `state`, which must be
    consistent.

    Example:
        >>> carom.measures.symplectic_defect(system, state, carom.LobattoIIIAB(3), h=0.1)
    """
    method = method.tuned(system, state, h)
    return float(_symplectic_defect(system, state, lift(method), jnp.asarray(h, float)))


@compiled
def _symplectic_defect(system: System, state: State, method: AbstractMethod, h: Array) -> Array:
    n, memory = state.q.size, method.init(system, state)

    def canonical(t: Array, y: Array) -> Array:
        return jnp.concatenate([y[:n], system.mass_times(t, y[:n], y[n:])])

    def mapped(y: Array) -> Array:
        step = method.step(system, state.moved(state.t, y[:n], y[n:]), memory, h)
        return canonical(step.state.t, jnp.concatenate([step.state.q, step.state.v]))

    def manifold(y: Array) -> Array:
        g = system.constraint(state.t, y[:n])
        return jnp.concatenate([g, velocity_residual(system, state.t, y[:n], y[n:])])

    y = jnp.concatenate([state.q, state.v])
    count = jax.eval_shape(manifold, y).size
    tangent = jnp.linalg.svd(jax.jacfwd(manifold)(y))[2][count:].T if count else jnp.eye(2 * n)
    omega = jnp.block([[jnp.zeros((n, n)), jnp.eye(n)], [-jnp.eye(n), jnp.zeros((n, n))]])
    before = jax.jacfwd(lambda z: canonical(state.t, z))(y) @ tangent
    after = jax.jacfwd(mapped)(y) @ tangent
    form = before.T @ omega @ before
    return jnp.max(jnp.abs(after.T @ omega @ after - form)) / jnp.max(jnp.abs(form))


def reversibility_defect(
    system: System, state: State, method: AbstractMethod, stepping: AbstractStepping, steps: int
) -> float:
    """Distance to the start after `steps` steps, the velocity turned round, and `steps` steps more.

    Example:
        >>> carom.measures.reversibility_defect(system, state, carom.LobattoIIIAB(3), carom.Reversible(1e-6), 200)
    """
    turned = state
    for _ in range(2):
        end = _after(system, turned, method, stepping, steps)
        turned = State(end.q, -end.v, state.t)
    return float(jnp.max(jnp.abs(jnp.concatenate([turned.q - state.q, turned.v - state.v]))))


def _after(system: System, state: State, method: AbstractMethod, stepping: AbstractStepping, steps: int) -> State:
    run = prepare(system, state, method, float(state.t) + 1e9, stepping)
    while int(run.carry.k) < steps and not run.finished:
        run.attempts = steps - int(run.carry.k)
        run.chunk()
    if run.failed:
        raise_failure(run, run.solution())
    return run.solution().state


class Drift(NamedTuple):
    """Slope of the energy error per unit of time, and its largest size."""

    slope: float
    bound: float


def energy_drift(solution: Solution, since: float | None = None) -> Drift:
    """How the energy error moves: least-squares slope over time, and the largest deviation from its value at `since`.

    Example:
        >>> carom.measures.energy_drift(sol).bound
    """
    used = solution.clock.turned(solution.t - (solution.t[0] if since is None else since)) >= 0
    t, error = solution.t[used], solution.account.energy[used]
    error = error - error[0]
    return Drift(float(np.polyfit(t - t[0], error, 1)[0]), float(np.max(np.abs(error))))


def constraint_residuals(system: System, solution: Solution) -> tuple[np.ndarray, np.ndarray]:
    """|g| relative to |G| |q|, and |(d/dt g, k)| relative to |G| |v|, of every row.

    Example:
        >>> position, velocity = carom.measures.constraint_residuals(system, sol)
    """
    rows = _rows(residuals_of, system, solution)
    return rows[0], rows[1]


def momentum(system: System, solution: Solution) -> np.ndarray:
    """Total linear momentum, the sum of M v, of every row, for coordinates that are translations along one line.

    Example:
        >>> carom.measures.momentum(system, sol)
    """
    return _rows(lambda s, t, q, v: (jnp.sum(s.mass_times(t, q, v)),), system, solution)[0]


def angular_momentum(system: System, solution: Solution, dim: int) -> np.ndarray:
    """Total angular momentum about the origin of point masses in 2 or 3 dimensions, (rows,) or (rows, 3).

    Example:
        >>> carom.measures.angular_momentum(system, sol, dim=2)
    """

    def one(s: System, t: Array, q: Array, v: Array) -> tuple[Array, ...]:
        x, p = q.reshape(-1, dim), s.mass_times(t, q, v).reshape(-1, dim)
        return (jnp.sum(jnp.cross(x, p), 0) if dim == 3 else jnp.sum(x[:, 0] * p[:, 1] - x[:, 1] * p[:, 0]),)

    return _rows(one, system, solution)[0]


def quadratic_invariant(system: System, solution: Solution, S: np.ndarray) -> np.ndarray:
    """q^T S M(q) v of every row, which Lobatto IIIA-B keeps if the flow does [Jay1998 sec. 6.6].

    Example:
        >>> carom.measures.quadratic_invariant(system, sol, S)
    """
    matrix = jnp.asarray(S)
    return _rows(lambda s, t, q, v: (q @ matrix @ s.mass_times(t, q, v),), system, solution)[0]


def project_energy(system: System, solution: Solution, energy: float | None = None, iterations: int = 8) -> np.ndarray:
    """Velocities of every row scaled onto the energy surface, as post-processing only [Jay1998 sec. 6.5].

    Positions stay; with constraints linear in v the scaled velocity still fulfils them.

    Args:
        system: the system of the solution.
        solution: what to project.
        energy: the energy wanted; default that of the first row.
        iterations: of Newton's method for the scale of v.

    Example:
        >>> v = carom.measures.project_energy(system, sol)
    """
    wanted = jnp.asarray(solution.account.energy[0] if energy is None else energy)

    def one(s: System, t: Array, q: Array, v: Array) -> tuple[Array, ...]:
        def newton(_, scale: Array) -> Array:
            excess, slope = jax.jvp(lambda x: s.total_energy(t, q, x * v) - wanted, (scale,), (jnp.ones(()),))
            return scale - jnp.where(slope > 0, excess / jnp.where(slope > 0, slope, 1.0), 0.0)

        return (v * jax.lax.fori_loop(0, iterations, newton, jnp.ones(())),)

    return _rows(one, system, solution)[0]


def _rows(fn: Callable[..., tuple[Array, ...]], system: System, solution: Solution) -> tuple[np.ndarray, ...]:
    columns = tuple(jnp.asarray(x) for x in (solution.elapsed, solution.q, solution.v))
    return tuple(np.asarray(x) for x in _mapped(fn, system.since(solution.clock.epoch), columns))


@compiled
def _mapped(fn: Callable[..., tuple[Array, ...]], system: System, columns: tuple[Array, ...]) -> tuple[Array, ...]:
    return jax.lax.map(lambda row: fn(system, *row), columns)
