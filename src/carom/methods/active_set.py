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
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from carom.methods.contact_rows import contact_rows, relative_velocities
from carom.solvers.small import inverse_small, solve_small
from carom.state import State, Status
from carom.systems.system import Origin, System
from carom.tableaux import Tableau, embedded

_DAMPING = 1e-7  # of the multipliers' matrix, refined away: leaves least-squares multipliers for redundant rows
_REFINEMENTS = 4
_REDUNDANT = 1e-9
_PROJECTIONS = 3
_ITERATIONS = 30
_TOL = 1e-15
_ROUNDING = 1e-9  # updates this small (relative) that no longer shrink are rounding


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
    """One Runge-Kutta step on the active set; `error` is the estimate but for the rate at the end."""

    q: Array
    v: Array
    error: tuple[Array, Array]
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
    if S.shape[0] < 2:
        return count
    diagonal = jnp.diag(table)
    for k in range(S.shape[0]):
        gone = jnp.abs(table[k, k]) <= _REDUNDANT * diagonal[k]
        row = jnp.where(gone, 0.0, table[k] / jnp.where(gone, 1.0, table[k, k]))
        table = table - table[:, k : k + 1] * row * (jnp.arange(S.shape[0]) > k)[:, None]
        count = count + gone
    return count


class Coefficients(eqx.Module):
    """A tableau as traced numbers: tableaux with equally many stages share one compiled program."""

    A: Array
    b: Array
    c: Array
    power: Array
    error: Array
    error_power: Array
    explicit: bool = eqx.field(static=True)
    source: Origin = eqx.field(static=True)

    def __init__(self, tableau: Tableau):
        self.source = Origin(tableau.name)
        self.A, self.b, self.c = (jnp.asarray(x) for x in (tableau.A, tableau.b, tableau.c))
        self.power = jnp.asarray(tableau.order + 1.0)
        companion = embedded(tableau)
        self.error = jnp.full(tableau.stages + 2, jnp.nan) if companion is None else jnp.asarray(companion.weights)
        self.error_power = jnp.asarray(jnp.nan if companion is None else float(companion.power))
        self.explicit = tableau.is_explicit


def smooth_piece(
    system: System, tableau: Coefficients, state: State, start: Motion, rows: Array, h: Array, form: str
) -> Piece:
    """One step (64) of size h with a constant active set; `start` is the motion at its beginning.

    `form` is "acceleration" (index 1), or "velocity" (index 2): W v + zeta = 0 in every stage.
    """
    y, rates = (state.q, state.v), (system.rate(state.t, state.q, state.v), start.acceleration)
    t = state.t + tableau.c * h

    def field(t: Array, q: Array, v: Array) -> tuple[Array, Array]:
        return system.rate(t, q, v), motion(system, t, q, v, rows).acceleration

    def pressed(t: Array, q: Array, v: Array, lam: Array) -> tuple[tuple[Array, Array], Array]:
        at = motion(system, t, q, v, rows)
        rates = (system.rate(t, q, v), at.free + at.M_inv_W @ lam)
        return rates, jnp.where(rows, at.gamma / h, lam)

    def residual(Z: tuple) -> tuple[tuple, tuple[Array, Array]]:
        places = (y[0] + Z[0], y[1] + Z[1])
        F, held = jax.vmap(pressed)(t, *places, Z[2]) if form == "velocity" else (jax.vmap(field)(t, *places), ())
        defect = tuple(x - h * (tableau.A @ f) for x, f in zip(Z, F))
        return (*defect, held) if form == "velocity" else defect, F

    if tableau.explicit:
        F, found = _explicit_stages(field, tableau, state, rates, h), Found.at_once(tableau.b.size)
    else:
        guess = tuple(h * jnp.outer(tableau.c, f) for f in rates)
        size = tuple(jnp.max(jnp.abs(x)) + h * jnp.max(jnp.abs(f)) + 1e-290 for x, f in zip(y, rates))
        if form == "velocity":
            guess = (*guess, jnp.tile(start.lam, (tableau.b.size, 1)))
            size = (*size, jnp.max(jnp.abs(start.lam), initial=0.0) + jnp.max(jnp.abs(start.free)) + 1e-290)
        F, found = _newton(residual, guess, size, tableau.b.size)
    q, v = (x + h * (tableau.b @ f) for x, f in zip(y, F))
    error = tuple(h * (tableau.error[0] * f0 + tableau.error[1:-1] @ f) for f0, f in zip(rates, F))
    return Piece(q, v, error, found.status, found.update, found.iterations, found.evaluations)


class Found(eqx.Module):
    """How the stage equations were solved."""

    status: Array
    update: Array
    iterations: Array
    evaluations: Array

    @classmethod
    def at_once(cls, stages: int) -> Found:
        """Explicitly."""
        return cls(jnp.int32(Status.OK), jnp.zeros(()), jnp.int32(0), jnp.int32(stages))


def _explicit_stages(field, tableau: Coefficients, state: State, rates: tuple[Array, Array], h: Array):
    s = tableau.b.size

    def stage(i: Array, F: tuple[Array, Array]) -> tuple[Array, Array]:
        q, v = (y + h * (tableau.A[i] @ f) for y, f in zip((state.q, state.v), F))
        new = field(state.t + tableau.c[i] * h, q, v)
        return F[0].at[i].set(new[0]), F[1].at[i].set(new[1])

    first = (jnp.zeros((s, rates[0].size)).at[0].set(rates[0]), jnp.zeros((s, rates[1].size)).at[0].set(rates[1]))
    return jax.lax.fori_loop(1, s, stage, first)


def _newton(residual, guess: tuple, size: tuple, stages: int) -> tuple[tuple[Array, Array], Found]:
    """Newton's method on the stage unknowns, one row per stage; returns the rates F of the last iterate."""
    first, unravel = ravel_pytree(guess)
    scale = ravel_pytree(tuple(jnp.broadcast_to(x, z.shape) for x, z in zip(size, guess)))[0]

    def flat(z: Array) -> tuple[Array, tuple[Array, Array]]:
        r, F = residual(unravel(z))
        return ravel_pytree(r)[0], F

    def iterate(loop):
        z, _, last, _, k = loop
        r, along, F = jax.linearize(flat, z, has_aux=True)
        J = jax.vmap(along, out_axes=1)(jnp.asarray(np.eye(z.size)))
        d = jnp.linalg.solve(J, r)
        update = jnp.max(jnp.abs(d) / scale)
        settled = (update <= _TOL) | ((update <= _ROUNDING) & (update >= 0.1 * last))
        return z - d, F, update, settled, k + 1

    def running(loop):
        _, _, update, settled, k = loop
        return ~settled & (k < _ITERATIONS) & ((k == 0) | jnp.isfinite(update))

    nothing = (jnp.zeros_like(guess[0]), jnp.zeros_like(guess[1]))
    start = (first, nothing, jnp.asarray(jnp.inf), jnp.asarray(False), jnp.zeros((), jnp.int32))
    _, F, update, _, k = jax.lax.while_loop(running, iterate, start)
    status = jnp.where(update <= _ROUNDING, Status.OK, Status.NEWTON_DIVERGED).astype(jnp.int32)
    return F, Found(status, update, k, stages * k)


def onto_active(system: System, t: Array, q: Array, v: Array, rows: Array, positions: bool) -> tuple[Array, Array]:
    """Velocities (and positions) moved along M^{-1} W^T until active rows have no relative velocity (no gap)."""

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
