r"""Smooth motion while the modes of all laws stay: the index-1 form of the constrained equations [Acary2012 (62)-(64)].

    M v' = f + W^T lam,     W v' + kappa = 0 for held rows,  lam = 0 for open contacts,
    lam_T = -mu lam_N d     for friction that slides in the direction d; the limit of its force for an element,
    kappa = d/dt(W) v + d/dt(zeta): what the relative velocities gain at constant v (missing in (62)-(64): ERRATA)

Rows are those of `contact_rows`; held are closed contacts, sticking friction and bilateral constraints. Eliminating lam
stage by stage is the same as (64), and leaves an ordinary differential equation for any Runge-Kutta tableau.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from carom.methods.capturing.coefficients import Coefficients
from carom.methods.capturing.modes import Modes
from carom.methods.capturing.sliding import Sliding
from carom.methods.projection import projected
from carom.solvers.contact_laws import Laws
from carom.solvers.newton import AbstractEquations, Settled, by_updates, newton
from carom.solvers.redundant import multipliers
from carom.solvers.small import times
from carom.state import State, Status
from carom.systems.contact_rows import contact_rows, element_limits, over_mass, stacked_velocities, turning_rates
from carom.systems.system import System

_ITERATIONS = 30
_TOL = 1e-15
_ROUNDING = 1e-9  # updates this small (relative) that no longer shrink are rounding
_CANCELLED = 1e-5
_OWN_LIMITS = 8  # Newton iterations for multipliers on which limits of friction depend
_NOISE = 1e-13  # relative velocities this small (relative to their terms) are zero


class Motion(eqx.Module):
    """Multipliers and accelerations at one point with given modes."""

    point: Point
    lam: Array
    acceleration: Array

    @property
    def relative(self) -> Array:
        """Relative accelerations."""
        return times(self.point.W, self.acceleration) + self.point.kappa


class Point(eqx.Module):
    """The laws and the free accelerations at (t, q, v); `size` is that of the terms of the relative velocities.

    Where limits of friction follow from multipliers, `place` has what they need, and `limits` are those of the motion
    without friction.
    """

    gap: Array
    gamma: Array
    size: Array
    W: Array
    M_inv_W: Array
    kappa: Array
    free: Array
    friction: Array
    limits: Array
    laws: Laws
    place: tuple[System, Array, Array, Array] | None = None

    @property
    def G(self) -> Array:
        """Delassus matrix W M^{-1} W^T."""
        return times(self.W, self.M_inv_W)

    def gaps_kept(self, closed: Array) -> Array:
        """The gaps that closed contacts are to keep, also those of a start in penetration; zero for others."""
        return jnp.where(closed, self.gap, 0.0)

    def noise(self, span: Array) -> Array:
        """Relative velocities that are zero but for rounding, of velocities and of accelerations over `span`."""
        return _NOISE * (self.size + span * (jnp.abs(self.W) @ jnp.abs(self.free)))

    @property
    def rough(self) -> Array:
        """Friction laws that can stick."""
        contacts = self.laws.with_friction(self.friction) > 0
        return jnp.concatenate([contacts, self.limits[:, 0] < self.limits[:, 1]])

    def sliding(self, modes: Modes) -> Sliding:
        """How sliding friction follows from the multipliers of held rows."""
        laws = self.laws
        d = jnp.where(modes.slipping, modes.directions(self.gamma, _NOISE * self.size), 0.0)
        elements, bilateral = jnp.zeros(laws.elements), jnp.zeros(laws.bilateral)
        pull = -d * laws.by_row(jnp.zeros(laws.contacts), self.friction, elements, bilateral)
        given = []
        for block, slip in zip(laws.sliders, laws.split(d)[2]):
            low, high = self.limits[block.laws, :1], self.limits[block.laws, 1:]
            force = -high * slip if block.directions == 2 else jnp.where(slip > 0, low, high)
            given.append(jnp.where(slip != 0, force, 0.0).ravel())
        before = laws.rows - laws.bilateral - sum(part.size for part in given)
        return Sliding(pull, jnp.concatenate([jnp.zeros(before), *given, bilateral]), laws)

    def limited(self, lam: Array) -> Point:
        """The same with the limits of friction that belong to multipliers of the constraints."""
        assert self.place is not None
        limits = element_limits(*self.place, lam)
        return eqx.tree_at(lambda p: (p.limits, p.place), self, (limits, None), is_leaf=lambda x: x is None)

    def under(self, modes: Modes) -> Motion:
        """The motion with these modes."""
        if self.place is None:
            return self.pressed(modes)
        first = self.laws.rows - self.laws.bilateral

        def left(lam: Array) -> Array:
            return self.limited(lam).pressed(modes).lam[first:] + lam

        def corrected(_, lam: Array) -> Array:
            return lam - jnp.linalg.solve(jax.jacfwd(left)(lam), left(lam))

        start = left(jnp.zeros(self.laws.bilateral))
        return self.limited(jax.lax.fori_loop(0, _OWN_LIMITS, corrected, -start)).pressed(modes)

    def pressed(self, modes: Modes) -> Motion:
        """The motion with these modes and limits."""
        G, b = self.G, -(times(self.W, self.free) + self.kappa)
        if self.laws.count == self.laws.contacts:
            lam = multipliers(G, b, modes.held)
        else:
            slides = self.sliding(modes)
            b = b - times(G, slides.given) if self.laws.elements else b
            lam = slides.multipliers(multipliers(slides.columns(G), b, modes.held))
        return Motion(self, lam, self.free + times(self.M_inv_W, lam))

    def held_still(self, v: Array, rows: Array) -> Array:
        """Velocities moved along M^{-1} W^T until held rows have no relative velocity."""
        return v - self.M_inv_W @ multipliers(self.G, self.gamma, rows)

    def brought_to_rest(self, v: Array, modes: Modes) -> Array:
        """Velocities after impulses that leave held rows without relative velocity, with the friction that slides."""
        slides = self.sliding(modes)
        return v - slides.columns(self.M_inv_W) @ multipliers(slides.columns(self.G), self.gamma, modes.held)


class Piece(eqx.Module):
    """One Runge-Kutta step with constant modes; impulses and their work by row, multipliers by stage and row.

    `error` is the estimate of the error but for the rate at the end.
    """

    q: Array
    v: Array
    error: tuple[Array, Array]
    lam: Array
    impulse: Array
    work: Array
    status: Array
    residual: Array
    iterations: Array
    evaluations: Array

    @classmethod
    def of_no_length(cls, state: State, rows: int, stages: int) -> Piece:
        """The piece that ends where it begins."""
        zero, whole, none = jnp.zeros(()), jnp.zeros((), jnp.int32), jnp.zeros(rows)
        still = (jnp.zeros_like(state.q), jnp.zeros_like(state.v))
        return cls(state.q, state.v, still, jnp.zeros((stages, rows)), none, none, whole, zero, whole, whole)


def survey(system: System, t: Array, q: Array, v: Array) -> Point:
    """Everything at (t, q, v) that does not depend on modes."""
    at = contact_rows(system, t, q, v)

    kappa = turning_rates(system, t, q, v)
    W_M, free = over_mass(system, t, q, at.W, system.force(t, q, v))
    W, sets = at.W.dense(), (at.friction, at.limits, at.laws)
    free = free if system.constraints is None else free + at.blank
    point = Point(at.gap, at.gamma, jnp.abs(W) @ jnp.abs(v), W, W_M.dense().T, kappa, free, *sets)
    if not system.has_joint_friction:
        return point
    joints = np.arange(at.laws.rows) >= at.laws.rows - at.laws.bilateral
    lam = multipliers(point.G, times(W, free) + kappa, jnp.asarray(joints))[joints]
    placed = (element_limits(system, t, q, v, lam), (system, t, q, v))
    return eqx.tree_at(lambda p: (p.limits, p.place), point, placed, is_leaf=lambda x: x is None)


def smooth_piece(
    system: System, tableau: Coefficients, state: State, start: Motion, modes: Modes, h: Array, form: str
) -> Piece:
    """One step (64) of size h with constant modes; `start` is the motion at its beginning.

    `form` is "acceleration" (index 1), or "velocity" (index 2): W v + zeta = 0 in every stage.
    """
    rates = rates_of(system, state.t, state.q, state.v, start)
    stages = Stages(system, tableau, state, modes, h, form)
    if tableau.explicit:
        F, found = stages.explicit(rates), Found.at_once(tableau.b.size)
    else:
        F, found = stages.implicit(start, rates)
    dq, dv, impulse, work = (h * (tableau.b @ f) for f in F)
    error = tuple(h * (tableau.error[0] * f0 + tableau.error[1:-1] @ f) for f0, f in zip(rates[:2], F))
    solved = (found.status, found.update, found.iterations, found.evaluations)
    return Piece(state.q + dq, state.v + dv, error, F[2], impulse, work, *solved)  # pyright: ignore


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


Rates = tuple[Array, Array, Array, Array]


def rates_of(system: System, t: Array, q: Array, v: Array, at: Motion) -> Rates:
    """Rates of q, of v, of the impulses and of their work, the last two by row."""
    return system.rate(t, q, v), at.acceleration, at.lam, at.lam * at.point.gamma


class Stages(eqx.Module):
    """The stages of one step with constant modes."""

    system: System
    tableau: Coefficients
    state: State
    modes: Modes
    h: Array
    form: str = eqx.field(static=True)

    def field(self, t: Array, q: Array, v: Array) -> Rates:
        """The rates where multipliers are eliminated."""
        return rates_of(self.system, t, q, v, survey(self.system, t, q, v).under(self.modes))

    def pressed(self, t: Array, q: Array, v: Array, lam: Array) -> tuple[Rates, Array]:
        """The rates with multipliers lam, and what is left of the laws at the level of velocities."""
        at, modes = survey(self.system, t, q, v), self.modes
        pushed = Motion(at, lam, at.free + at.M_inv_W @ lam)
        follows = lam - at.sliding(modes).multipliers(jnp.where(modes.held, lam, 0.0))
        return rates_of(self.system, t, q, v, pushed), jnp.where(modes.held, at.gamma / self.h, follows)

    def residual(self, Z: tuple) -> tuple[tuple, Rates]:
        """What is left of (64), and the rates of the stages."""
        t, h = self.state.t + self.tableau.c * self.h, self.h
        places = (self.state.q + Z[0], self.state.v + Z[1])
        velocity = self.form == "velocity"
        F, held = jax.vmap(self.pressed)(t, *places, Z[2]) if velocity else (jax.vmap(self.field)(t, *places), ())
        defect = tuple(x - h * (self.tableau.A @ f) for x, f in zip(Z, F[:2]))
        return (*defect, held) if velocity else defect, F

    def explicit(self, rates: Rates) -> Rates:
        """The rates of the stages, one after the other."""
        tableau, state, h, s = self.tableau, self.state, self.h, self.tableau.b.size

        def stage(i: Array, F: Rates) -> Rates:
            q, v = (y + h * (tableau.A[i] @ f) for y, f in zip((state.q, state.v), F))
            new = self.field(state.t + tableau.c[i] * h, q, v)
            return tuple(jax.lax.dynamic_update_index_in_dim(f, x, i, 0) for f, x in zip(F, new))  # pyright: ignore

        first = tuple(jnp.concatenate([f[None], jnp.zeros((s - 1, f.size))]) for f in rates)
        return jax.lax.fori_loop(1, s, stage, first)  # pyright: ignore

    def implicit(self, start: Motion, rates: Rates) -> tuple[Rates, Found]:
        """The rates F of the last but one iterate of Newton's method."""
        state, h, stages = self.state, self.h, self.tableau.b.size
        guess = tuple(h * jnp.outer(self.tableau.c, f) for f in rates[:2])
        # from rest q' is zero now but not later; forces in balance leave rounding of the free accelerations
        noise = _CANCELLED * jnp.abs(start.point.free)
        later = (self.system.rate(state.t, state.q, state.v + h * (jnp.abs(rates[1]) + noise)), noise)
        size = tuple(
            jnp.max(jnp.abs(x)) + h * (jnp.max(jnp.abs(f)) + jnp.max(jnp.abs(g))) + 1e-290
            for x, f, g in zip((state.q, state.v), rates, later)
        )
        if self.form == "velocity":
            guess = (*guess, jnp.tile(start.lam, (stages, 1)))
            size = (*size, jnp.max(jnp.abs(start.lam), initial=0.0) + jnp.max(jnp.abs(start.point.free)) + 1e-290)
        scale = ravel_pytree(tuple(jnp.broadcast_to(x, z.shape) for x, z in zip(size, guess)))[0]
        root = newton(
            Scaled(self, scale), ravel_pytree(guess)[0], _ITERATIONS, by_updates(Settled(_TOL, _ROUNDING, 0.1))
        )
        status = jnp.where(root.error <= _ROUNDING, Status.OK, Status.NEWTON_DIVERGED).astype(jnp.int32)
        return root.aux, Found(status, root.error, root.iterations, stages * root.iterations)


class Scaled(AbstractEquations):
    """The stage equations of flat unknowns with their sizes."""

    stages: Stages
    scale: Array

    def residual(self, x: Array) -> tuple[Array, Rates]:
        """That of the stages, flat."""
        s, n, m = self.stages.tableau.b.size, self.stages.state.q.size, self.stages.state.v.size
        q, v, lam = x[: s * n], x[s * n : s * (n + m)], x[s * (n + m) :]
        Z = (q.reshape(s, n), v.reshape(s, m), *([lam.reshape(s, -1)] if self.stages.form == "velocity" else []))
        r, F = self.stages.residual(Z)
        return ravel_pytree(r)[0], F

    def update(self, x: Array) -> tuple[Array, Rates]:
        """Newton's update and the rates, linearised together."""
        r, along, F = jax.linearize(self.residual, x, has_aux=True)
        J = jax.vmap(along, out_axes=1)(jnp.asarray(np.eye(x.size)))
        return jnp.linalg.solve(J, r), F

    def blank(self, x: Array) -> Rates:
        """Rates that are zero, without a trace of the residual."""
        del x
        stages, size = self.stages, self.stages.tableau.b.size
        columns = (stages.state.q.size, stages.state.v.size, stages.modes.laws.rows, stages.modes.laws.rows)
        return tuple(jnp.zeros((size, n)) for n in columns)  # pyright: ignore

    def direction(self, x: Array, r: Array) -> Array:
        """Newton direction."""
        return jnp.linalg.solve(jax.jacfwd(lambda y: self.residual(y)[0])(x), r)

    def size(self, d: Array, x: Array) -> Array:
        """Largest update; relative to the unknowns where these are beyond their sizes: at first nothing may move."""
        s, n, m = self.stages.tableau.b.size, self.stages.state.q.size, self.stages.state.v.size
        ends = (s * n, s * (n + m))
        kinds = zip(jnp.split(d / self.scale, ends), jnp.split(x / self.scale, ends))
        top = lambda y: jnp.max(jnp.abs(y), initial=0.0)  # noqa: E731
        return jnp.max(jnp.stack([top(a) / jnp.maximum(top(b), 1.0) for a, b in kinds]))


def onto_active(
    system: System, t: Array, q: Array, v: Array, at: Point, rows: Array, gaps: Array
) -> tuple[Array, Array]:
    """Positions and velocities moved along M^{-1} W^T of `at` until held rows have these gaps and no velocity."""
    friction = jnp.zeros(rows.size - gaps.size - at.laws.bilateral)

    def left(x: Array, u: Array) -> tuple[Array, Array]:
        level = jnp.concatenate([system.gaps(t, x) - gaps, friction, system.constraint(t, x)])
        return jnp.pad(level, (0, rows.size - level.size)), stacked_velocities(system, t, x, u)

    return projected(system, t, q, v, left, lambda r: times(at.M_inv_W, multipliers(at.G, r, rows)))
