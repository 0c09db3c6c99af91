"""The equations (17) of one SPARK step and the two ways to a Newton direction (Jay1998 Definition 4.1).

Unknown are the stage velocities V_i = Z_i, the multipliers U_i and the end velocity v1 = z_1 (for a Hamiltonian system
V_i are momenta, and the stage rates W_i = q' are unknown too). Rows of g are scaled by 1/h^2, rows of velocities by
1/h, so that the Jacobian has a limit for h -> 0.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from carom.methods.spark.families import has_constraints
from carom.solvers.newton import AbstractEquations, Foreseen, Newton, Root, by_updates, newton
from carom.systems.constrained import constraint_rate, directions, mass_matrix, reaction, slip
from carom.systems.system import System
from carom.tableaux import Tableau, lobatto_iiib


class Unknowns(eqx.Module):
    """V (s, n), U (s, m), v1 (n) and, for Hamiltonians, the rates W (s, n)."""

    V: Float[Array, "s n"]
    U: Float[Array, "s m"]
    v1: Float[Array, " n"]
    W: Float[Array, "s n"] | None = None


class StageEquations(eqx.Module):
    """The data of one step: start (q0, p0 = M v0), step h, and the matrices of `kinematic` and of all force parts."""

    system: System
    t: Array
    q: Array
    v: Array
    h: Array
    kinematic: Array
    parts: Array
    base: Tableau = eqx.field(static=True)

    @property
    def times(self) -> Array:
        """t0 + c_i h, also where rows of a tableau do not sum to c."""
        return self.t + jnp.asarray(self.base.c) * self.h

    def rates(self, x: Unknowns) -> Array:
        """The stage values of q'."""
        return x.V if x.W is None else x.W

    def end(self, x: Unknowns) -> Array:
        """q1, Jay1998 (17d)."""
        return self.q + self.h * (jnp.asarray(self.base.b) @ self.rates(x))

    def residual(self, x: Unknowns) -> tuple[Unknowns, tuple[Array, Array]]:
        """The residuals of (17a)-(17g), and the stage rates of q and of M v."""
        system, h, b, c = self.system, self.h, jnp.asarray(self.base.b), jnp.asarray(self.base.c)
        times, t1, W, q1 = self.times, self.t + h, self.rates(x), self.end(x)
        Q = self.q + h * combine(self.kinematic, W)  # (17a)
        F = jax.vmap(lambda *z: part_forces(system, *z), out_axes=1)(times, Q, x.V, x.U)
        p0 = system.mass_times(self.t, self.q, self.v)
        P = jax.vmap(system.mass_times)(times, Q, x.V)
        total = jnp.sum(F, 0)
        on_grid = self.q + h * (jnp.asarray(self.base.A[1:]) @ W)
        g = jax.vmap(system.constraint)(times[1:], on_grid) / h**2  # (17c), i = 1 holds at the start
        moments = (b * c ** jnp.arange(self.base.stages - 1)[:, None]) @ jax.vmap(lambda *z: slip(system, *z))(
            times, Q, x.V
        )
        upper = jnp.concatenate([g, moments / h], 1)
        last = jnp.concatenate([constraint_rate(system, t1, q1, x.v1), slip(system, t1, q1, x.v1)]) / h  # (17g)
        r = Unknowns(
            P - p0 - h * combine_parts(self.parts, F),  # (17b)
            jnp.concatenate([upper, last[None]]),
            system.mass_times(t1, q1, x.v1) - p0 - h * (b @ total),  # (17f)
            None if x.W is None else x.W - jax.vmap(system.rate)(times, Q, x.V),
        )
        return r, (W, total)

    def full_direction(self, x: Unknowns, r: Unknowns) -> Unknowns:
        """Newton direction from the Jacobian of all equations."""
        flat, unravel = ravel_pytree(x)
        J = jax.jacfwd(lambda y: ravel_pytree(self.residual(unravel(y))[0])[0])(flat)
        return unravel(jnp.linalg.solve(J, ravel_pytree(r)[0]))

    def solve(self, guess: Unknowns, settings: Newton) -> Root:
        """Solve (17a)-(17g) to the tolerance."""
        middle = Middle.of(self) if settings.strategy == "shared" else None
        scaled = Scaled(self, middle, jnp.asarray(settings.tol))
        return newton(scaled, guess, settings.max_iter, by_updates(Foreseen()))


class Middle(eqx.Module):
    """Newton direction without the derivatives of the forces, M and G taken in the middle of the step.

    Then the multipliers decouple: `K (x) (G M^{-1} G^T)` with K = [(A^A A^B)_{2..s}; b^T] remains, and by (21b) K is
    the same for every family of the reaction. `constraints` are G, G M^{-1}, (G M^{-1} G^T)^{-1}, if any.
    """

    M_inv: Array
    constraints: tuple[Array, Array, Array] | None

    @classmethod
    def of(cls, equations: StageEquations) -> Middle:
        """Mass and directions in the middle of the step."""
        system = equations.system
        t, q = equations.t + 0.5 * equations.h, equations.q + 0.5 * equations.h * equations.v
        M_inv = jnp.linalg.inv(mass_matrix(system, t, q, equations.v.size))
        if not has_constraints(system):
            return cls(M_inv, None)
        G = directions(system, t, q, equations.v)
        G_M = G @ M_inv
        return cls(M_inv, (G, G_M, jnp.linalg.inv(G_M @ G.T)))

    def direction(self, equations: StageEquations, r: Unknowns) -> Unknowns:
        """The update that removes r."""
        base, h = equations.base, equations.h
        V, v1 = r.V @ self.M_inv, self.M_inv @ r.v1
        if self.constraints is None:
            return Unknowns(V, r.U, v1)
        G, G_M, S_inv = self.constraints
        K = np.vstack([base.A[1:] @ lobatto_iiib(base.stages).A, base.b])
        lower = jnp.concatenate([jnp.asarray(base.A[1:]) @ V, v1[None]]) @ G.T / h
        U = jnp.asarray(np.linalg.inv(K)) @ (lower - r.U) @ S_inv
        pull = h * (U @ G_M)
        return Unknowns(V - combine(equations.parts[-1], pull), U, v1 - jnp.asarray(base.b) @ pull)


class Scaled(AbstractEquations):
    """The equations with the size of updates that counts as zero: of the velocities, U carries noise of eps/h^2."""

    equations: StageEquations
    middle: Middle | None
    tol: Array

    @property
    def exact(self) -> bool:
        """Whether the derivatives of the forces are there."""
        return self.middle is None

    def residual(self, x: Unknowns) -> tuple[Unknowns, tuple[Array, Array]]:
        """Those of (17a)-(17g)."""
        return self.equations.residual(x)

    def direction(self, x: Unknowns, r: Unknowns) -> Unknowns:
        """Newton direction, or a simplified one."""
        if self.middle is None:
            return self.equations.full_direction(x, r)
        return self.middle.direction(self.equations, r)

    def size(self, d: Unknowns, x: Unknowns) -> Array:
        """Largest update of a velocity."""
        eps, equations = jnp.finfo(x.V.dtype).eps, self.equations
        noise = eps * jnp.max(jnp.abs(equations.q)) / jnp.abs(equations.h)
        scale = jnp.maximum(jnp.max(jnp.abs(x.V)), jnp.max(jnp.abs(equations.v)))
        tol = (self.tol + 4 * eps) * scale + 1e-290
        return jnp.maximum(jnp.max(jnp.abs(d.V)) / (tol + noise), jnp.max(jnp.abs(d.v1)) / tol)


def part_forces(system: System, t: Array, q: Array, v: Array, u: Array) -> Float[Array, "P n"]:
    """The terms of (M v)', one row each, in the order of `part_names`; Coriolis forces do not occur, Jay1998 (8f)."""
    rows = [jax.grad(system.kinetic_energy, 1)(t, q, v)] if callable(system.mass) else []
    if system.hamiltonian is not None:
        rows.append(-jax.grad(system.total_energy, 1)(t, q, v))
    rows += [system.part_force(name, t, q) for name in system.potential]
    lam = u[: jax.eval_shape(system.constraint, t, q).size]
    rows += [system.named_force(name, t, q, v, lam) for name in system.forces]
    if system.rate_damping:
        rows.append(jax.jvp(lambda x: system.damped_impulse(t, x), (q,), (v,))[1])
    if has_constraints(system):
        rows.append(reaction(system, t, q, v, u))
    return jnp.stack(rows) if rows else jnp.zeros((0, v.size))


def combine(matrix: Array, values: Float[Array, "s n"]) -> Float[Array, "s n"]:
    """sum_j a_ij values_j, the matrix shared by all components or one per component."""
    return matrix @ values if matrix.ndim == 2 else jnp.einsum("nij,jn->in", matrix, values)


def combine_parts(matrices: Array, values: Float[Array, "P s n"]) -> Float[Array, "s n"]:
    """The sum over parts of `combine`."""
    return jnp.einsum("pij,pjn->in" if matrices.ndim == 3 else "pnij,pjn->in", matrices, values)
