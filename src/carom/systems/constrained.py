"""Constraints at the level of velocities and accelerations, and the multipliers that keep them (Jay1998 sec. 3).

Letters: g holonomic constraints with G = dg/dq, k nonholonomic ones with K = dk/dv, u = (lambda, psi) all multipliers;
the reaction is `-G^T lambda - K^T psi`. `v` is the momentum where the system has a Hamiltonian.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import numpy_for
from carom.solvers.colouring import jacobian
from carom.solvers.levels import Factorised
from carom.solvers.redundant import dependent, doubtful, idle
from carom.solvers.roots import rarely
from carom.systems.features import Feature

if TYPE_CHECKING:
    from carom.systems.equations import Equations

_NONLINEAR_ITERATIONS = 12


def constraint_rate(system: Equations, t: Array, q: Array, v: Array) -> Array:
    """d/dt g(t, q) = g_t + G q', Jay1998 (2d)."""
    return jax.jvp(system.constraint, (t, q), (jnp.ones_like(t), system.rate(t, q, v)))[1]


def slip(system: Equations, t: Array, q: Array, v: Array) -> Array:
    """k(t, q, v) of the nonholonomic constraints, a vector."""
    if system.nonholonomic is None:
        return jnp.zeros(0)
    return jnp.atleast_1d(system.nonholonomic(system.given, t=t, q=q, v=v))


def velocity_residual(system: Equations, t: Array, q: Array, v: Array) -> Array:
    """(d/dt g, k): zero for a consistent velocity."""
    return jnp.concatenate([constraint_rate(system, t, q, v), slip(system, t, q, v)])


def reaction(system: Equations, t: Array, q: Array, v: Array, u: Array) -> Array:
    """-G^T lambda - K^T psi."""
    g, pull_q = jax.vjp(lambda x: system.constraint(t, x), q)
    force = -system.to_velocities(t, q, v, pull_q(u[: g.size])[0])
    if system.nonholonomic is None:
        return force
    return force - jax.vjp(lambda x: slip(system, t, q, x), v)[1](u[g.size :])[0]


def directions(system: Equations, t: Array, q: Array, v: Array) -> Array:
    """The rows of G (as they act on velocities) and K: what the multipliers act along."""
    holds, rolls = (touched(f, v.size) for f in (system.constraints, system.nonholonomic))
    if system.kinematics is not None:
        both = None if holds is None or rolls is None else np.concatenate([holds, rolls])
        return jacobian(lambda x: velocity_residual(system, t, q, x), v, both)
    G = jacobian(lambda x: system.constraint(t, x), q, holds)
    return jnp.concatenate([G, jacobian(lambda x: slip(system, t, q, x), v, rolls)])


def touched(constraints: Any, n: int) -> np.ndarray | None:
    """Which velocities each row acts on, (m, n): known of functions that tell by `touches`, and where there is none."""
    return np.zeros((0, n), bool) if constraints is None else getattr(constraints.fn, "touches", None)


def multiplier_count(system: Equations, t: Array, q: Array, v: Array) -> int:
    """How many multipliers there are."""
    return jax.eval_shape(lambda: velocity_residual(system, t, q, v)).size


def mass_matrix(system: Equations, t: Array, q: Array, n: int) -> Array:
    """M as a matrix."""
    M = system.dense_mass_at(t, q)
    return M if M.ndim == 2 else jnp.diag(jnp.broadcast_to(M, (n,)))


def linearised(system: Equations, t: Array, q: Array, v: Array) -> tuple[Array, Callable[[Array, Array], Array]]:
    """v', and what it gains by a change of the coordinates and one of the velocities."""
    if system.constraints is None and system.nonholonomic is None:
        return jax.linearize(lambda x, w: system.acceleration(t, x, w), q, v)
    return Saddle.of(system, t, q, v).linearised()


class Accelerations(NamedTuple):
    """v', the multipliers u, how many of their directions depend on others, and the multipliers without effect."""

    a: Array
    u: Array
    redundant: Array
    idle: Array


def accelerations(system: Equations, t: Array, q: Array, v: Array, level: np.ndarray | None = None) -> Accelerations:
    """Accelerations v' and multipliers u from the twice differentiated constraints, Jay1998 (2e), (8e), (17h).

    They solve `M v' + D^T u = f(u)`, `C v' = -c` with D the directions of the reaction and C = d(velocity residual)/dv;
    one linear system unless forces depend on the multipliers in a nonlinear way. Where constraints depend on each other
    the multipliers are those of least length, each counted in units of the motion that it brings about. `level` tells
    the levels of accelerations and multipliers of a long mechanism.
    """
    return Saddle.of(system, t, q, v).accelerations(level)


def ineffective(system: Equations, t: Array, q: Array, C: Array, D: Array) -> tuple[Array, Array]:
    """How many rows depend on others, and the projection on multipliers that move nothing, in units of the motion."""
    m, M = len(D), system.dense_mass_at(t, q)
    if m < 2:
        redundant = dependent(D)
        return redundant, jnp.full((m, m), redundant, float)  # one row of zeros takes no force
    none = (jnp.zeros((), jnp.int32), jnp.zeros((m, m)))
    return rarely(doubtful(D), lambda _, M, C, D: idle(C @ over(M, D.T)), none, M, C, D)


def over(M: Array, X: Array) -> Array:
    """M^{-1} X of a matrix, of a diagonal or of one number."""
    return jnp.linalg.solve(M, X) if M.ndim == 2 else X / jnp.reshape(M, (-1, 1))


def _as_a_whole(_: Array, equations: Saddle, P: Array) -> Array:
    """Accelerations and the shortest multipliers."""
    return equations.solved(P)


class Saddle(NamedTuple):
    """The linear equations of accelerations and multipliers at one place."""

    system: Equations
    place: tuple[Array, Array, Array]
    M: Array
    D: Array
    C: Array
    c: Array

    @classmethod
    def of(cls, system: Equations, t: Array, q: Array, v: Array) -> Saddle:
        """Mass, directions, and what the constraints' velocities gain at constant v."""
        D = directions(system, t, q, v)
        still = (jnp.ones_like(t), system.rate(t, q, v), jnp.zeros_like(v))
        c = jax.jvp(lambda *x: velocity_residual(system, *x), (t, q, v), still)[1]
        C = D if system.hamiltonian is None else jax.jacfwd(lambda x: velocity_residual(system, t, q, x))(v)
        return cls(system, (t, q, v), system.dense_mass_at(t, q), D, C, c)

    def accelerations(self, level: np.ndarray | None = None) -> Accelerations:
        """Accelerations and multipliers; along levels if these are given."""
        redundant, P = ineffective(self.system, *self.place[:2], self.C, self.D)
        along = None if level is None else self.solved_along(level)
        z = self.solved(P) if along is None else rarely(redundant > 0, _as_a_whole, along, self, P)
        n = self.D.shape[1]
        return Accelerations(z[:n], z[n:], redundant, P)

    def inert(self, a: Array) -> Array:
        """M a."""
        return self.M @ a if self.M.ndim == 2 else self.M * a

    def solved(self, P: Array) -> Array:
        """z = (v', u) with `P u = 0` in place of what P leaves out of the constraints."""
        z = self.corrected(jnp.zeros(sum(self.D.shape)), P)
        if Feature.MULTIPLIER_FORCES in self.system.features:
            z = jax.lax.fori_loop(0, _NONLINEAR_ITERATIONS, lambda _, z: self.corrected(z, P), z)
        return z

    def pull(self, u: Array) -> Array:
        """What M a loses by each multiplier: D^T, less what forces that depend on multipliers gain."""
        if Feature.MULTIPLIER_FORCES not in self.system.features:
            return self.D.T
        return self.D.T - jax.jacfwd(lambda x: self.system.force(*self.place, x))(u)

    def linearised(self) -> tuple[Array, Callable[[Array, Array], Array]]:
        """v', and what it gains by a change of the coordinates and one of the velocities.

        The equations are differentiated with their solution fixed, not the way to it, which takes longer to compile:
        .3 s for ten bodies.
        """
        system, (t, q, v), (m, n) = self.system, self.place, self.D.shape
        u = self.accelerations().u if Feature.MULTIPLIER_FORCES in system.features else jnp.zeros(m)
        whole = jnp.block([[mass_matrix(system, t, q, n), self.pull(u)], [self.C, jnp.zeros((m, m))]])
        shortest = jnp.linalg.pinv(whole)
        z = shortest @ jnp.concatenate([system.force(t, q, v, u) + (self.pull(u) - self.D.T) @ u, -self.c])
        a, u = z[:n], z[n:]

        def left(x: Array, w: Array) -> Array:
            forces = system.mass_times(t, x, a) - reaction(system, t, x, w, u) - system.force(t, x, w, u)
            moving = (jnp.ones_like(t), system.rate(t, x, w), a)
            return jnp.concatenate([forces, jax.jvp(lambda *z: velocity_residual(system, *z), (t, x, w), moving)[1]])

        change = jax.linearize(left, q, v)[1]
        return a, lambda dq, dv: -shortest[:n] @ change(dq, dv)

    def solved_along(self, level: np.ndarray) -> Array:
        """The same level by level, for independent constraints and forces that do not depend on multipliers."""
        n = self.D.shape[1]
        linear = lambda z: jnp.concatenate([self.inert(z[:n]) + self.D.T @ z[n:], self.C @ z[:n]])  # noqa: E731
        f = self.system.force(*self.place, jnp.zeros(len(self.D)))
        return Factorised.of(linear, level).solve(jnp.concatenate([f, -self.c]))

    def corrected(self, z: Array, P: Array) -> Array:
        """z after one Newton step."""
        n = self.D.shape[1]
        a, u = z[:n], z[n:]
        left = self.C @ a + self.c - P @ u
        pushed = self.inert(a) + self.D.T @ u - self.system.force(*self.place, u)
        moved = over(self.M, jnp.concatenate([pushed[:, None], self.pull(u)], 1))
        du = jnp.linalg.solve(self.C @ moved[:, 1:] + P, self.C @ moved[:, 0] - left)
        return z - jnp.concatenate([moved[:, 0] - moved[:, 1:] @ du, du])


def motion_of(M: Array, D: Array) -> Array:
    """The motion d_i M^{-1} d_i^T that a unit of each multiplier brings about along its own direction; 1 for none."""
    size = jnp.abs(jnp.sum(D.T * jnp.linalg.solve(M, D.T), axis=0))
    return jnp.where(size > 0, size, 1.0)


def contradiction(equations: Saddle) -> tuple[Array, Accelerations]:
    """What accelerations leave of the twice differentiated constraints, relative to their terms; and these."""
    found = equations.accelerations()
    left = equations.C @ found.a + equations.c
    heaviest = jnp.max(jnp.abs(equations.M if equations.M.ndim < 2 else jnp.diagonal(equations.M)))
    free = jnp.max(jnp.abs(equations.system.force(*equations.place, found.u))) / heaviest
    size = jnp.abs(equations.C) @ (jnp.abs(found.a) + free) + jnp.abs(equations.c)
    return jnp.max(jnp.abs(left), initial=0.0) / (jnp.max(size, initial=0.0) + 1e-300), found


def time_scale(q: Any, v: Any, a: Any) -> Any:
    """The shortest of q/v, sqrt(q/a) and v/a, of those that are neither zero nor infinite."""
    xp = numpy_for(q, v, a)
    with np.errstate(divide="ignore", invalid="ignore"):
        times = xp.stack([q / v, xp.sqrt(q / a), v / a])
    return xp.min(xp.where(xp.isfinite(times) & (times > 0), times, xp.inf))
