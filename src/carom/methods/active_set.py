r"""Smooth motion on a set of active contacts: the index-1 form of the constrained equations [Acary2012 (62)-(64)].

    M v' = f + W^T lam,     W v' + kappa = 0 for active rows,  lam = 0 for the others,
    kappa = d/dt(W) v + d/dt(zeta): what the relative velocities gain at constant v (missing in (62)-(64): ERRATA)

Rows are those of `contact_rows`: unilateral contacts (masked), then bilateral constraints (always active). Eliminating
lam stage by stage is the same as (64), and leaves an ordinary differential equation for any Runge-Kutta tableau.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.methods.contact_rows import contact_rows, relative_velocities
from carom.solvers.newton import Newton
from carom.solvers.small import inverse_small, solve_small
from carom.solvers.stages import StageEquations, solve_stages, spectrum
from carom.state import State, Status
from carom.systems.system import System
from carom.tableaux import Tableau

_DAMPING = 1e-7  # of the multipliers' matrix, refined away: leaves least-squares multipliers for redundant rows
_REFINEMENTS = 4
_REDUNDANT = 1e-9
_PROJECTIONS = 3


class Motion(eqx.Module):
    """Accelerations of the active set at one point."""

    gap: Array
    gamma: Array
    W: Array
    M_inv_W: Array
    kappa: Array
    free: Array
    lam: Array
    acceleration: Array

    @property
    def opening(self) -> Array:
        """Second derivative of the gaps."""
        return self.W @ self.acceleration + self.kappa


class Piece(eqx.Module):
    """One Runge-Kutta step on the active set."""

    q: Array
    v: Array
    status: Array
    residual: Array
    iterations: Array
    evaluations: Array


def motion(system: System, t: Array, q: Array, v: Array, rows: Array) -> Motion:
    """Everything at (t, q, v) with the mask `rows` of active rows."""
    at = contact_rows(system, t, q, v)

    def gamma(s: Array, x: Array) -> Array:
        return jnp.concatenate([part.ravel() for part in relative_velocities(system, s, x, v)])

    kappa = jax.jvp(gamma, (t, q), (jnp.ones_like(t), system.rate(t, q, v)))[1]
    columns = over_mass(system, t, q, jnp.vstack([system.force(t, q, v), at.W]))
    free, M_inv_W = columns[:, 0], columns[:, 1:]
    lam = multipliers(at.W @ M_inv_W, -(at.W @ free + kappa), rows)
    return Motion(at.gap, at.gamma, at.W, M_inv_W, kappa, free, lam, free + M_inv_W @ lam)


def over_mass(system: System, t: Array, q: Array, rows: Array) -> Array:
    """M^{-1} rows^T."""
    M = system.mass_at(t, q)
    return solve_small(M, rows.T) if M.ndim == 2 else (rows / M).T


def masked(S: Array, rows: Array) -> Array:
    """S on the active rows, the identity elsewhere, scaled to unit diagonal."""
    both = rows[:, None] & rows[None, :]
    return jnp.where(both, S, jnp.asarray(np.eye(S.shape[0])))


def multipliers(S: Array, b: Array, rows: Array) -> Array:
    """S lam = b on the active rows, of least squares and least length where rows are redundant."""
    if S.shape[0] == 0:
        return b
    S, b = masked(S, rows), jnp.where(rows, b, 0.0)
    damping = _DAMPING * jnp.diag(S)
    inverse = inverse_small(S + jnp.diag(damping))
    lam = inverse @ b
    for _ in range(_REFINEMENTS):
        lam = lam + inverse @ (b - S @ lam)
    return jnp.where(rows, lam, 0.0)


def redundancy(S: Array, rows: Array) -> Array:
    """How many active rows depend on the others, counted by vanishing pivots."""
    table, count = masked(S, rows), jnp.zeros((), jnp.int32)
    diagonal = jnp.diag(table)
    for k in range(S.shape[0]):
        gone = jnp.abs(table[k, k]) <= _REDUNDANT * diagonal[k]
        row = jnp.where(gone, 0.0, table[k] / jnp.where(gone, 1.0, table[k, k]))
        table = table - table[:, k : k + 1] * row * (jnp.arange(S.shape[0]) > k)[:, None]
        count = count + gone
    return count


def smooth_piece(system: System, tableau: Tableau, settings: Newton, state: State, rows: Array, h: Array) -> Piece:
    """One step (64) of size h with a constant active set."""

    def field(t: Array, q: Array, v: Array) -> tuple[Array, Array]:
        return system.rate(t, q, v), motion(system, t, q, v, rows).acceleration

    if tableau.is_explicit:
        return _explicit_piece(field, tableau, state, h)
    return _implicit_piece(field, tableau, settings, state, h)


def _explicit_piece(field, tableau: Tableau, state: State, h: Array) -> Piece:
    A, b, c = (jnp.asarray(x) for x in (tableau.A, tableau.b, tableau.c))
    s = tableau.stages

    def stage(i: Array, rates: tuple[Array, Array]) -> tuple[Array, Array]:
        q, v = (y + h * (A[i] @ f) for y, f in zip((state.q, state.v), rates))
        new = field(state.t + c[i] * h, q, v)
        return rates[0].at[i].set(new[0]), rates[1].at[i].set(new[1])

    empty = (jnp.zeros((s, state.q.size)), jnp.zeros((s, state.v.size)))
    rates = jax.lax.fori_loop(0, s, stage, empty)
    q, v = (y + h * (b @ f) for y, f in zip((state.q, state.v), rates))
    zero = jnp.zeros((), jnp.int32)
    return Piece(q, v, jnp.int32(Status.OK), jnp.zeros(()), zero, zero + s)


def _implicit_piece(field, tableau: Tableau, settings: Newton, state: State, h: Array) -> Piece:
    first = int(tableau.first_stage_explicit)
    A, b, c = (jnp.asarray(x) for x in (tableau.A, tableau.b, tableau.c))
    y = (state.q, state.v)
    rates = field(state.t, *y)
    equations = StageEquations(
        field=field,
        t=state.t + c[first:] * h,
        start=y,
        A=A[first:, first:],
        h=h,
        offset=jax.tree.map(lambda f: h * jnp.outer(jnp.sum(A[first:, :first], 1), f), rates),
    )
    guess = jax.tree.map(lambda f: h * jnp.outer(c[first:], f), rates)
    root = solve_stages(equations, guess, rates, settings, spectrum(tableau.A[first:, first:]))
    if tableau.is_stiffly_accurate:
        q, v = (y0 + z[-1] for y0, z in zip(y, root.x))
    else:
        q, v = (y0 + h * (b[:first].sum() * f + b[first:] @ F) for y0, f, F in zip(y, rates, root.aux))
    status = jnp.where(root.converged, Status.OK, Status.NEWTON_DIVERGED).astype(jnp.int32)
    evaluations = 1 + (tableau.stages - first) * root.evaluations
    return Piece(q, v, status, root.error * settings.tol, root.iterations, evaluations)


def onto_active(system: System, t: Array, q: Array, v: Array, rows: Array, positions: bool) -> tuple[Array, Array]:
    """v (and q) moved along M^{-1} W^T until the active rows have no relative velocity (and no gap)."""

    def directions(x: Array) -> tuple[Array, Array, Array]:
        at = contact_rows(system, t, x, v)
        M_inv_W = over_mass(system, t, x, at.W)
        return at.gamma, M_inv_W, at.W @ M_inv_W

    def correct(_, x: Array) -> Array:
        _, M_inv_W, S = directions(x)
        gap = jnp.zeros(0) if system.contacts is None else system.contacts.gaps(system.params, t, x)
        depth = multipliers(S, jnp.concatenate([gap, system.constraint(t, x)]), rows)
        return x - system.rate(t, x, M_inv_W @ depth) + system.rate(t, x, jnp.zeros_like(v))

    if positions:
        q = jax.lax.fori_loop(0, _PROJECTIONS, correct, q)
    gamma, M_inv_W, S = directions(q)
    return q, v - M_inv_W @ multipliers(S, gamma, rows)
