"""The equations (17) of one SPARK step and the two ways to a Newton direction (Jay1998 Definition 4.1).

Unknown are the stage velocities V_i = Z_i, the multipliers U_i and the end velocity v1 = z_1; the stage rates W_i = q'
too, where they are not the velocities (with kinematics, and for a Hamiltonian system, where V_i are momenta). Rows of g
are scaled by 1/h^2, rows of velocities by 1/h, so that the Jacobian has a limit for h -> 0. Where constraints depend on
each other, `P U = 0` takes the place of those that follow from others, P the projection on multipliers that move
nothing at the start of the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from carom.methods.spark.families import has_constraints
from carom.methods.spark.linking import Links
from carom.solvers.levels import Cut, Factorised
from carom.solvers.newton import AbstractEquations, Foreseen, Newton, Root, by_updates, newton
from carom.solvers.roots import rarely
from carom.solvers.small import Factors, times
from carom.systems.constrained import constraint_rate, directions, reaction, slip
from carom.systems.system import System
from carom.tableaux import Tableau, lobatto_iiib


class Unknowns(eqx.Module):
    """V (s, n), U (s, m), v1 (n) and, where they are not V, the rates W (s, n_q)."""

    V: Float[Array, "s n"]
    U: Float[Array, "s m"]
    v1: Float[Array, " n"]
    W: Float[Array, "s nq"] | None = None


class StageEquations(eqx.Module):
    """The data of one step: start (q0, p0 = M v0), step h, and the matrices of `kinematic` and of all force parts.

    `idle` projects on multipliers without effect; zero unless constraints depend on each other. `links` are there for
    long mechanisms, whose matrices are factorised level by level.
    """

    system: System
    t: Array
    q: Array
    v: Array
    h: Array
    kinematic: Array
    parts: Array
    idle: Float[Array, "m m"]
    base: Tableau = eqx.field(static=True)
    links: Links | None = eqx.field(static=True, default=None)

    @property
    def levels(self) -> np.ndarray:
        """K: what multipliers do to the positions at c_2 .. c_s and on the end velocity, by (21b) of any family."""
        return np.vstack([self.base.A[1:] @ lobatto_iiib(self.base.stages).A, self.base.b])

    @property
    def holonomic(self) -> int:
        """How many constraints are on positions."""
        return jax.eval_shape(self.system.constraint, self.t, self.q).size

    @property
    def moments(self) -> Array:
        """Weights b_j c_j^k of the stages, for constraints on velocities."""
        return jnp.asarray(self.base.b * self.base.c ** np.arange(self.base.stages - 1)[:, None])

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
        system, h, b = self.system, self.h, jnp.asarray(self.base.b)
        times, t1, W, q1 = self.times, self.t + h, self.rates(x), self.end(x)
        Q = self.q + h * combine(self.kinematic, W)  # (17a)
        F = jax.vmap(lambda *z: part_forces(system, *z), out_axes=1)(times, Q, x.V, x.U)
        p0 = system.mass_times(self.t, self.q, self.v)
        P = jax.vmap(system.mass_times)(times, Q, x.V)
        total = jnp.sum(F, 0)
        on_grid = self.q + h * (jnp.asarray(self.base.A[1:]) @ W)
        g = jax.vmap(system.constraint)(times[1:], on_grid) / h**2  # (17c), i = 1 holds at the start
        moments = self.moments @ jax.vmap(lambda *z: slip(system, *z))(times, Q, x.V)
        upper = jnp.concatenate([g, moments / h], 1)
        last = jnp.concatenate([constraint_rate(system, t1, q1, x.v1), slip(system, t1, q1, x.v1)]) / h  # (17g)
        lower = jnp.concatenate([upper, last[None]])
        r = Unknowns(
            P - p0 - h * combine_parts(self.parts, F),  # (17b)
            lower - jnp.asarray(self.levels) @ x.U @ self.idle if x.U.shape[1] > 1 else lower,
            system.mass_times(t1, q1, x.v1) - p0 - h * (b @ total),  # (17f)
            None if x.W is None else x.W - jax.vmap(system.rate)(times, Q, x.V),
        )
        return r, (W, total)

    def full_direction(self, x: Unknowns, r: Unknowns) -> Unknowns:
        """Newton direction from the Jacobian of all equations."""
        if self.links is not None:
            return Linked.of(self, x).direction(self, r)
        flat, unravel = ravel_pytree(x)
        J = jax.jacfwd(lambda y: ravel_pytree(self.residual(unravel(y))[0])[0])(flat)
        return unravel(jnp.linalg.solve(J, ravel_pytree(r)[0]))

    def solve(self, guess: Unknowns, settings: Newton) -> Root:
        """Solve (17a)-(17g) to the tolerance."""
        simplified = Structured if self.links is None else Linked
        structured = simplified.of(self, guess) if settings.strategy == "shared" else None
        scaled = Scaled(self, structured, jnp.asarray(settings.tol))
        return newton(scaled, guess, settings.max_iter, by_updates(Foreseen()))


class Structured(eqx.Module):
    """Newton direction without the derivatives of the forces: M in the middle of the step, D = (G, K) in the stages.

    Then the multipliers decouple: blocks `K_ij D_i M^{-1} D_j^T` remain.
    """

    M_inv: Array
    D: Float[Array, "s m n"]
    factors: Stairs | None
    turned: Turned | None

    @classmethod
    def of(cls, equations: StageEquations, guess: Unknowns) -> Structured:
        """Mass in the middle of the step, directions in the stages of the guess."""
        system, h, base, n = equations.system, equations.h, equations.base, equations.v.size
        t, q = equations.t + 0.5 * h, equations.q + 0.5 * h * system.rate(equations.t, equations.q, equations.v)
        M = system.dense_mass_at(t, q)
        M_inv = jnp.linalg.inv(M) if M.ndim == 2 else jnp.broadcast_to(1.0 / M, (n,))
        Q = equations.q + h * combine(equations.kinematic, equations.rates(guess))
        turned = None if guess.W is None else Turned.of(equations, Q, guess.V)
        if not has_constraints(system):
            return cls(M_inv, jnp.zeros((base.stages, 0, n)), None, turned)
        D = jax.vmap(lambda *z: directions(system, *z))(equations.times, Q, guess.V)
        s, m, _ = D.shape
        K, pushed = equations.levels, per_mass(D, M_inv)

        def blocks(i: slice, j: slice) -> Array:
            """Rows of positions or, behind them, of the end velocity: what multipliers of stages do there."""
            rows = jnp.concatenate([D[1:], D[-1:]])[i]
            S = rows.reshape(-1, n) @ pushed[j].reshape(-1, n).T
            S = S.reshape(len(rows), m, -1, m) + equations.idle[:, None]
            return (jnp.asarray(K[i, j])[:, None, :, None] * S).reshape(len(rows) * m, -1)

        if system.nonholonomic is None:  # the last multipliers act on the end velocity alone
            early, last = slice(0, s - 1), slice(s - 1, s)
            return cls(M_inv, D, Stairs.of(blocks(early, early), blocks(last, early), blocks(last, last)), turned)
        whole, g, a = slice(0, s), equations.holonomic, equations.parts[-1]
        lower = blocks(whole, whole).reshape(s, m, s, m)
        rolls = jnp.einsum("kl,lj,lmn,jin->kmji", equations.moments, a, D[:, g:], pushed)
        lower = lower.at[:-1, g:].set(rolls + jnp.asarray(K[:-1])[:, None, :, None] * equations.idle[g:, None])
        none = jnp.zeros((0, s * m))
        return cls(M_inv, D, Stairs.of(lower.reshape(s * m, s * m), none, none[:, :0]), turned)

    def direction(self, equations: StageEquations, r: Unknowns) -> Unknowns:
        """The update that removes r."""
        base, h, D = equations.base, equations.h, self.D
        V, v1 = per_mass(r.V, self.M_inv), per_mass(r.v1, self.M_inv)
        if self.factors is None:
            return Unknowns(V, r.U, v1, self.rates(r, V))
        lower = jnp.concatenate([along(D[1:], jnp.asarray(base.A[1:]) @ V), along(D[-1:], v1[None])])
        if equations.system.nonholonomic is not None:
            g = equations.holonomic
            lower = lower.at[:-1, g:].set(equations.moments @ along(D[:, g:], V))
        if self.turned is not None and r.W is not None:
            lower = lower.at[:-1, : equations.holonomic].add(self.turned.carried(jnp.asarray(base.A[1:]) @ r.W))
        U = self.factors.solve((lower / h - r.U).ravel()).reshape(r.U.shape)
        pull = per_mass(h * pulled(D, U), self.M_inv)
        V, v1 = V - combine(equations.parts[-1], pull), v1 - jnp.asarray(base.b) @ pull
        return Unknowns(V, U, v1, self.rates(r, V))

    def rates(self, r: Unknowns, V: Array) -> Array | None:
        """The update of the stage rates, if they are unknown."""
        return None if self.turned is None or r.W is None else r.W + self.turned.rates(V)


class Stairs(eqx.Module):
    """Factors of a matrix whose first rows do not know the last unknowns."""

    early: Factors
    below: Array
    last: Factors

    @classmethod
    def of(cls, early: Array, below: Array, last: Array) -> Stairs:
        """Factorise the blocks on the diagonal."""
        return cls(Factors.of(early), below, Factors.of(last))

    def solve(self, b: Array) -> Array:
        """The unknowns from the right hand sides."""
        first = self.early.solve(b[: len(b) - len(self.below)])
        return jnp.concatenate([first, self.last.solve(b[first.size :] - times(self.below, first))])


class Turned(eqx.Module):
    """Linear maps at the stages Q, where rates are not velocities.

    `carried` is G of the stages from the second on, times motions of the coordinates; `rates` those of velocities.
    """

    carried: Callable[[Array], Array]
    rates: Callable[[Array], Array]

    @classmethod
    def of(cls, equations: StageEquations, Q: Array, V: Array) -> Turned:
        """The maps at these coordinates."""
        system, times = equations.system, equations.times
        carried = jax.linearize(lambda x: jax.vmap(system.constraint)(times[1:], x), Q[1:])[1]
        return cls(carried, jax.linearize(lambda x: jax.vmap(system.rate)(times, Q, x), V)[1])


class Linked(eqx.Module):
    """Newton direction with the Jacobian of all equations at one place, factorised along a long mechanism.

    Where constraints depend on each other, which here happens in passing, the Jacobian is that of the guess as a whole.
    """

    guess: Unknowns
    factors: Factorised

    @classmethod
    def of(cls, equations: StageEquations, guess: Unknowns) -> Linked:
        """The Jacobian at the guess, but for the multipliers without effect, which meet all over the mechanism."""
        assert equations.links is not None
        M = equations.system.mass
        cut = Cut.of(M, np.asarray(equations.links.velocities)) if getattr(M, "ndim", 0) == 2 else M
        free = eqx.tree_at(lambda e: (e.idle, e.system.mass), equations, (jnp.zeros_like(equations.idle), cut))
        flat, unravel = ravel_pytree(guess)
        linear = jax.linearize(lambda y: ravel_pytree(free.residual(unravel(y))[0])[0], flat)[1]
        return cls(guess, Factorised.of(linear, equations.links.of_unknowns(equations.base.stages)))

    def direction(self, equations: StageEquations, r: Unknowns) -> Unknowns:
        """The update that removes r."""
        flat, unravel = ravel_pytree(r)
        whole = replace(equations, links=None)
        found = rarely(jnp.any(equations.idle != 0), _whole, self.factors.solve(flat), whole, self.guess, flat)
        return unravel(found)


def _whole(_: Array, equations: StageEquations, guess: Unknowns, flat: Array) -> Array:
    """The update that removes residuals, without regard to links."""
    unravel = ravel_pytree(guess)[1]
    return ravel_pytree(equations.full_direction(guess, unravel(flat)))[0]


def per_mass(x: Array, M_inv: Array) -> Array:
    """x M^{-1}, of a symmetric matrix or a diagonal."""
    return x @ M_inv if M_inv.ndim == 2 else x * M_inv


def along(D: Float[Array, "s m n"], V: Float[Array, "s n"]) -> Float[Array, "s m"]:
    """D_i V_i, stage by stage."""
    return jnp.einsum("smn,sn->sm", D, V)


def pulled(D: Float[Array, "s m n"], U: Float[Array, "s m"]) -> Float[Array, "s n"]:
    """D_i^T U_i, stage by stage."""
    return jnp.einsum("smn,sm->sn", D, U)


class Scaled(AbstractEquations):
    """The equations with the size of updates that counts as zero: of the velocities, U carries noise of eps/h^2."""

    equations: StageEquations
    structured: Structured | Linked | None
    tol: Array

    @property
    def exact(self) -> bool:
        """Whether the derivatives of the forces are there."""
        return self.structured is None

    def residual(self, x: Unknowns) -> tuple[Unknowns, tuple[Array, Array]]:
        """Those of (17a)-(17g)."""
        return self.equations.residual(x)

    def direction(self, x: Unknowns, r: Unknowns) -> Unknowns:
        """Newton direction, or a simplified one."""
        if self.structured is None:
            return self.equations.full_direction(x, r)
        return self.structured.direction(self.equations, r)

    def update(self, x: Unknowns) -> tuple[Unknowns, tuple[Array, Array]]:
        """The update, and the rates after it: those before it carry multipliers that are far less accurate."""
        d, (W, total) = super().update(x)
        if isinstance(self.structured, Structured):
            total = total + pulled(self.structured.D, d.U)
        return d, (W - self.equations.rates(d), total)

    def size(self, d: Unknowns, x: Unknowns) -> Array:
        """Largest update of a velocity."""
        eps, equations = jnp.finfo(x.V.dtype).eps, self.equations
        noise = eps * jnp.max(jnp.abs(equations.q)) / jnp.abs(equations.h)
        scale = jnp.maximum(jnp.max(jnp.abs(x.V)), jnp.max(jnp.abs(equations.v)))
        tol = (self.tol + 4 * eps) * scale + 1e-290
        return jnp.maximum(jnp.max(jnp.abs(d.V)) / (tol + noise), jnp.max(jnp.abs(d.v1)) / tol)


def part_forces(system: System, t: Array, q: Array, v: Array, u: Array) -> Float[Array, "P n"]:
    """The terms of (M v)', one row each, in the order of `part_names`; Coriolis forces do not occur, Jay1998 (8f)."""
    on_velocities = lambda f: system.to_velocities(t, q, v, f)  # noqa: E731
    rows = [on_velocities(jax.grad(system.kinetic_energy, 1)(t, q, v))] if callable(system.mass) else []
    if system.hamiltonian is not None:
        rows.append(-jax.grad(system.total_energy, 1)(t, q, v))
    rows += [on_velocities(system.part_force(name, t, q)) for name in system.potential]
    lam = u[: jax.eval_shape(system.constraint, t, q).size]
    rows += [system.named_force(name, t, q, v, lam) for name in system.forces]
    if system.rate_damping:
        rows.append(system.damping_force(t, q, v))
    if has_constraints(system):
        rows.append(reaction(system, t, q, v, u))
    return jnp.stack(rows) if rows else jnp.zeros((0, v.size))


def combine(matrix: Array, values: Float[Array, "s n"]) -> Float[Array, "s n"]:
    """sum_j a_ij values_j, the matrix shared by all components or one per component."""
    return matrix @ values if matrix.ndim == 2 else jnp.einsum("nij,jn->in", matrix, values)


def combine_parts(matrices: Array, values: Float[Array, "P s n"]) -> Float[Array, "s n"]:
    """The sum over parts of `combine`."""
    return jnp.einsum("pij,pjn->in" if matrices.ndim == 3 else "pnij,pjn->in", matrices, values)
