"""The stage equations of implicit Runge-Kutta methods, `Z = offset + h A F(y0 + Z)`, solved by Newton's method.

Unknown are the stage increments Z = (Z_q, Z_v), one row per stage. Two ways to the Newton direction: the Jacobian of
the whole system ("full"), or one Jacobian J of F shared by all stages, for which `I - h A (x) J` falls apart into one
system `(I - h lambda J) x = b` per eigenvalue of A ("shared"); for chains each of these is one tridiagonal solve.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, ArrayLike, Float

from carom.solvers.newton import AbstractEquations, Newton, Root, newton, with_backtracking
from carom.solvers.small import times
from carom.solvers.structure import tridiagonal_jacobian

PyTree = Any
Pair = tuple[Array, Array]
Field = Callable[[Array, Array, Array], Pair]
_DIGITS = 1e-4  # of solves by iterations, where nothing else is said
_FULL_UP_TO = 64  # unknowns; beyond, factorising the coupled stages costs more than extra iterations


class Spectrum(eqx.Module):
    """A = T diag(values) T^{-1}, keeping one of each conjugate pair; `real` tells the real eigenvalues."""

    values: tuple[Array, ...]
    right: tuple[Array, ...]
    left: tuple[Array, ...]
    real: tuple[bool, ...] = eqx.field(static=True)

    def apply(self, solve: Callable[[Array, PyTree], PyTree], r: PyTree) -> PyTree:
        """T diag(solve(value_i, .)) T^{-1} r, for arrays with one row per stage."""
        total = jax.tree.map(jnp.zeros_like, r)
        for value, right, left, real in zip(self.values, self.right, self.left, self.real):
            x = solve(value, jax.tree.map(partial(times, left), r))
            back = jax.tree.map(lambda c, w=right: jnp.outer(w, c), x)
            total = jax.tree.map(lambda s, b, real=real: s + (b if real else 2.0 * b.real), total, back)
        return total


def spectrum(A: np.ndarray) -> Spectrum:
    """Eigenvalues of a concrete Runge-Kutta matrix, on the host."""
    values, T = np.linalg.eig(np.asarray(A, float))
    left = np.linalg.inv(T)
    keep = [i for i, value in enumerate(values) if value.imag >= 0]
    real = tuple(bool(values[i].imag == 0) for i in keep)

    def part(x, r):
        return jnp.asarray(np.real(x) if r else x)

    return Spectrum(
        tuple(part(values[i], r) for i, r in zip(keep, real)),
        tuple(part(T[:, i], r) for i, r in zip(keep, real)),
        tuple(part(left[i], r) for i, r in zip(keep, real)),
        real,
    )


def conjugate_spectrum(A: Float[Array, "2 2"]) -> Spectrum:
    """The same for a traced 2 x 2 matrix with a conjugate pair of eigenvalues, in closed form."""
    half_trace = 0.5 * (A[0, 0] + A[1, 1])
    determinant = A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    value = jax.lax.complex(half_trace, jnp.sqrt(determinant - half_trace**2))
    right = jnp.stack([A[0, 1] + 0j, value - A[0, 0]])
    left = jnp.stack([jnp.conj(right[1]), -jnp.conj(right[0])])
    return Spectrum((value,), (right,), (left / (left @ right),), (False,))


def at_stages(f: Callable[..., PyTree], *rows: Array) -> PyTree:
    """A function at every stage; a single one is no batch."""
    if rows[0].shape[0] > 1:
        return jax.vmap(f)(*rows)
    return jax.tree.map(lambda x: x[None], f(*(row[0] for row in rows)))


class StageEquations(eqx.Module):
    """The data of one step: field F(t, q, v) -> (q', v'), start, stage times, matrix and offset.

    `structured` says that the Jacobians of F couple neighbours only (of a chain, or pairs of bodies) and dq'/dv = 1;
    `q_in_rate` and `v_in_force` say whether q' depends on q and v' on v (never both on that path).
    `stiffness(q)` is that of dv'/dq which does not change with v, `damping(q)` is dv'/dv or dq'/dq, and
    `damping.along(q, v)` its derivative; those not given are probed. Functions are modules that hold their numbers.
    """

    field: Field
    t: Float[Array, " s"]
    start: Pair
    A: Float[Array, "s s"]
    h: Array
    offset: Pair
    stiffness: Callable[[Array], Any] | None = None
    damping: Any = None
    structured: bool = eqx.field(default=False, static=True)
    q_in_rate: bool = eqx.field(default=False, static=True)
    v_in_force: bool = eqx.field(default=True, static=True)

    def residual(self, Z: Pair) -> tuple[Pair, Pair]:
        """Z - offset - h A F(y0 + Z), and the stage rates F."""
        rates = at_stages(self.field, self.t, self.start[0] + Z[0], self.start[1] + Z[1])
        return jax.tree.map(lambda z, o, f: z - o - self.h * times(self.A, f), Z, self.offset, rates), rates

    def full_direction(self, Z: Pair, r: Pair) -> Pair:
        """Newton direction from the Jacobian of all stage equations."""
        z, unravel = ravel_pytree(Z)
        J = jax.jacfwd(lambda x: ravel_pytree(self.residual(unravel(x))[0])[0])(z)
        return unravel(jnp.linalg.solve(J, ravel_pytree(r)[0]))

    def shared_direction(self, spectrum: Spectrum, Z: Pair, r: Pair, accuracy: ArrayLike) -> Pair:
        """Newton direction with the Jacobian at the mean stage, one solve per eigenvalue of A."""
        q, v = self.start[0] + jnp.mean(Z[0], 0), self.start[1] + jnp.mean(Z[1], 0)
        solve = self.shared_solver(q, v, accuracy)
        return spectrum.apply(lambda value, b: solve(self.h * value, b), r)

    def shared_solver(self, q: Array, v: Array, accuracy: ArrayLike = _DIGITS) -> Callable[[Array, Pair], Pair]:
        """(I - hl J)^{-1} with the Jacobian at (q, v), for pairs of bodies to an accuracy."""
        return self.structured_solver(q, v, accuracy) if self.structured else self.dense_solver(q, v)

    def dense_solver(self, q: Array, v: Array) -> Callable[[Array, Pair], Pair]:
        """(I - hl J)^{-1} for the first-order system."""
        y, unravel = ravel_pytree((q, v))
        t = jnp.mean(self.t)
        J = jax.jacfwd(lambda x: ravel_pytree(self.field(t, *unravel(x)))[0])(y)

        def solve(hl: Array, b: Pair) -> Pair:
            x = jnp.linalg.solve(jnp.eye(y.size) - hl * J, jnp.concatenate(b))
            return x[: q.size], x[q.size :]

        return solve

    def jacobians(self, q: Array, v: Array) -> tuple[Any, Any, Any]:
        """v'_q, v'_v and q'_q, the latter None where they vanish."""
        t = jnp.mean(self.t)
        if self.damping is not None:
            K, D = self.stiffness(q), self.damping(q)  # pyright: ignore
            return (K + self.damping.along(q, v), D, None) if self.v_in_force else (K, None, D)
        probed = self.stiffness is None
        K = tridiagonal_jacobian(lambda x: self.field(t, x, v)[1], q) if probed else self.stiffness(q)  # pyright: ignore
        D = tridiagonal_jacobian(lambda x: self.field(t, q, x)[1], v) if self.v_in_force else None
        return K, D, tridiagonal_jacobian(lambda x: self.field(t, x, v)[0], q) if self.q_in_rate else None

    def structured_solver(self, q: Array, v: Array, accuracy: ArrayLike) -> Callable[[Array, Pair], Pair]:
        """(I - hl J)^{-1} with velocities eliminated: `I - hl (q'_q + v'_v) - hl^2 v'_q` keeps the structure."""
        K, D, G = self.jacobians(q, v)

        def solve(hl: Array, b: Pair) -> Pair:
            S = K.scaled(-hl * hl)
            right = b[0] + hl * b[1]
            if D is not None:
                S, right = S + D.scaled(-hl), right - hl * (D @ b[0])
            if G is not None:
                S = S + G.scaled(-hl)
            x = S.plus_diagonal(jnp.ones_like(q)).solve(right, accuracy)
            return x, (x - b[0]) / hl if G is None else b[1] + hl * (K @ x)

        return solve


class PositionStages(eqx.Module):
    """Stage equations with velocities eliminated, `Z = offset + sum_a matrix_a g_a(t, q0 + Z)`, Z one row per stage.

    For x'' = sum_a g_a(t, x): matrix_a = h^2 A A_a, with A the matrix of x' = v and A_a that of the acceleration g_a.
    """

    fields: list[Callable[[Array, Array], Array]]
    matrices: list[Float[Array, "s s"]]
    times: Float[Array, " s"]
    start: Array
    offset: Float[Array, "s n"]
    stiffness: Callable[[Array], Any] | None

    def residual(self, Z: Array) -> tuple[Array, list[Array]]:
        """Z - offset - sum_a matrix_a g_a, and the stage accelerations g_a."""
        rates = [at_stages(g, self.times, self.start + Z) for g in self.fields]
        return Z - self.offset - sum(times(m, g) for m, g in zip(self.matrices, rates)), rates

    def full_direction(self, Z: Array, r: Array) -> Array:
        """Newton direction from the Jacobian of all stage equations."""
        J = jax.jacfwd(lambda x: self.residual(x.reshape(Z.shape))[0].ravel())(Z.ravel())
        return jnp.linalg.solve(J, r.ravel()).reshape(Z.shape)

    def shared_direction(self, spectrum: Spectrum, Z: Array, r: Array, accuracy: ArrayLike) -> Array:
        """Newton direction with one Jacobian for all stages and the spectrum of h A for all parts."""
        q = self.start + jnp.mean(Z, 0)
        t = jnp.mean(self.times)
        K = self.stiffness(q) if self.stiffness else jax.jacfwd(lambda x: sum(g(t, x) for g in self.fields))(q)

        def solve(value: Array, b: Array) -> Array:
            if self.stiffness is not None:
                return K.scaled(-value * value).plus_diagonal(jnp.ones_like(q)).solve(b, accuracy)
            return jnp.linalg.solve(jnp.eye(q.size) - value * value * K, b)

        return spectrum.apply(solve, r)


class Scaled(AbstractEquations):
    """Stage equations with the sizes that count as zero; with a `spectrum` all stages share one Jacobian."""

    stages: StageEquations | PositionStages
    spectrum: Spectrum | None
    tol: Any
    accuracy: ArrayLike = _DIGITS

    def within(self, accuracy: Array) -> Scaled:
        """With less accurate directions."""
        return eqx.tree_at(lambda s: s.accuracy, self, accuracy)

    @property
    def exact(self) -> bool:
        """Whether the whole Jacobian is used."""
        return self.spectrum is None

    def residual(self, x: PyTree) -> tuple[PyTree, PyTree]:
        """That of the stages, and their rates."""
        return self.stages.residual(x)

    def direction(self, x: PyTree, r: PyTree) -> PyTree:
        """Newton direction."""
        if self.spectrum is None:
            return self.stages.full_direction(x, r)
        return self.stages.shared_direction(self.spectrum, x, r, self.accuracy)

    def size(self, d: PyTree, x: PyTree) -> Array:
        """Largest entry."""
        del x
        return reduce(jnp.maximum, jax.tree.leaves(jax.tree.map(lambda y, tol: jnp.max(jnp.abs(y)) / tol, d, self.tol)))


def solve_positions(stages: PositionStages, scale: Array, settings: Newton, spectrum: Spectrum) -> Root:
    """Solve the stage equations for positions; `scale` is the size of positions and their change over the step."""
    whole = coupled(settings, stages.offset.size, stages.start.size, stages.stiffness is not None)
    now = [g(stages.times[0], stages.start) for g in stages.fields]
    guess = stages.offset + sum(jnp.outer(jnp.sum(m, 1), g) for m, g in zip(stages.matrices, now))
    rounding = 4 * jnp.finfo(guess.dtype).eps * jnp.max(jnp.abs(stages.start))
    tol = settings.tol * (scale + jnp.max(jnp.abs(guess))) + rounding + 1e-290
    return newton(Scaled(stages, None if whole else spectrum, tol), guess, settings.max_iter, with_backtracking)


def coupled(settings: Newton, unknowns: int, coordinates: int, structured: bool) -> bool:
    """Whether to factorise the coupled stage equations: on request, or for small systems."""
    small = unknowns <= _FULL_UP_TO and not (structured and coordinates > 8)
    return settings.strategy == "full" or (settings.strategy == "auto" and small)


def solve_stages(equations: StageEquations, guess: Pair, rates: Pair, settings: Newton, spectrum: Spectrum) -> Root:
    """Solve the stage equations from `guess`; `rates` at the start of the step set the scale of the tolerance."""
    (q, v), h = equations.start, jnp.abs(equations.h)
    eps = jnp.finfo(q.dtype).eps
    q_size, v_size = jnp.max(jnp.abs(q)), jnp.max(jnp.abs(v))
    v_scale = v_size + h * jnp.max(jnp.abs(rates[1]))
    q_scale = q_size + h * jnp.max(jnp.abs(rates[0])) + h * v_scale
    q_tol = settings.tol * q_scale + 4 * eps * q_size + 1e-290
    v_tol = settings.tol * v_scale + 4 * eps * (v_size + q_size / h) + 1e-290
    whole = coupled(settings, guess[0].size + guess[1].size, q.size, equations.structured)
    scaled = Scaled(equations, None if whole else spectrum, (q_tol, v_tol))
    return newton(scaled, guess, settings.max_iter, with_backtracking)
