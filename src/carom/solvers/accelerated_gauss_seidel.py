r"""Gauss-Seidel by colours, accelerated: contact problems of many bodies without a matrix.

A colour is a set of contacts of which no two share a body: all of them are relaxed at once,

    P_i <- prox(P_i - (W_i u + c_i) / G_ii),   u <- u + M^{-1} W_i^T dP_i,

and one colour after the other is a sweep S. With Nesterov's extrapolation,

    Q = S(Y),   Y <- Q + beta (Q - P),   beta = (theta - 1) / theta',   theta' = (1 + sqrt(1 + 4 theta^2)) / 2,

P <- Q. It is taken in the impulses and in u alike, so that u = M^{-1} W^T P needs no new sum. theta starts anew where
the sweep turns against the motion, (Y - Q) . (Q - P) > 0, or where the defect |Y - Q|^2 exceeds four times the least
since the last start: with the first test alone large piles with friction diverge. Both products are those of kinetic
energy, taken over the bodies.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.names import register
from carom.solvers.body_directions import BodyDirections, Side
from carom.solvers.contact_problem import ContactProblem, nearest
from carom.solvers.contact_solver import AbstractContactSolver, ContactResult, refuse_settings
from carom.solvers.directions import DelassusMap
from carom.state import Status

_GUARD = 4.0
_LOOK = 10  # sweeps between two looks at the residual


@register
class AcceleratedGaussSeidel(AbstractContactSolver):
    """Coloured Gauss-Seidel sweeps with Nesterov's extrapolation, for contacts of `carom.Bodies`.

    A step that is not solved to `tol` within `max_iter` sweeps goes on with the best impulses found; such steps are
    counted (`sol.counts["unsolved"]`) and warned of.

    Args:
        tol: wanted residual, relative to the impulses.
        max_iter: most sweeps in a step.

    Example:
        >>> method = carom.MoreauMidpoint(solver=carom.AcceleratedGaussSeidel(tol=1e-4))
    """

    tol: float = 1e-4
    max_iter: int = 1000

    needs_matrix: ClassVar[bool] = False

    def __check_init__(self):
        refuse_settings(self, "tol")

    def solve(self, problem: ContactProblem, guess: Array) -> ContactResult:
        """Solve from a guess."""
        W, W_M = by_bodies(problem, self)
        colours = by_colours(problem, W, W_M)
        assert W_M.M is not None
        mass = W_M.M

        def sweep(P: Any, u: Array) -> tuple[Any, Array]:
            found = []
            for own, colour in zip(P, colours):
                own, u = colour.swept(own, u)
                found.append(own)
            return tuple(found), u

        def look(loop: Any) -> Any:
            pace, best, least, k, _ = loop
            P = joined(W, pace.P)
            now = problem.residual(P, problem.equation(P))
            best = jnp.where(now < least, P, best)
            more = (now > self.tol) & (k < self.max_iter)
            sweeps = jnp.where(more, _LOOK, 0)
            pace = jax.lax.fori_loop(0, sweeps, lambda _, p: p.after(*sweep(p.Y, p.u_Y), mass), pace)
            return pace, best, jnp.fmin(now, least), k + sweeps, more

        P = jnp.where(problem.taking_part, guess, 0.0)
        pace = Pace.at(cut_by_colours(W, P), W.cut(W_M.force(P)))
        start = (pace, P, jnp.asarray(jnp.inf), jnp.zeros((), jnp.int32), jnp.asarray(True))
        _, P, least, k, _ = jax.lax.while_loop(lambda loop: loop[4], look, start)
        status = jnp.where(jnp.isfinite(least), Status.OK, Status.NOT_FINITE)
        return ContactResult(P, least, k, status.astype(jnp.int32), least > self.tol)


class Pace(eqx.Module):
    """Impulses and velocities of bodies, the same extrapolated, theta, and the least defect since the last start."""

    P: Any
    u: Array
    Y: Any
    u_Y: Array
    theta: Array
    least: Array

    @classmethod
    def at(cls, P: Any, u: Array) -> Pace:
        """At rest."""
        return cls(P, u, P, u, jnp.ones(()), jnp.asarray(jnp.inf))

    def after(self, Q: Any, u_Q: Array, mass: Array) -> Pace:
        """After a sweep that led from Y to Q."""
        down, ahead = self.u_Y - u_Q, u_Q - self.u
        defect = jnp.sum(mass * down * down)
        anew = (jnp.sum(mass * down * ahead) > 0) | (defect > _GUARD * self.least)
        theta = 0.5 * (1.0 + jnp.sqrt(1.0 + 4.0 * self.theta**2))
        beta = jnp.where(anew, 0.0, (self.theta - 1.0) / theta)
        Y, u_Y = jax.tree.map(lambda q, p: q + beta * (q - p), (Q, u_Q), (self.P, self.u))
        least = jnp.where(anew, defect, jnp.minimum(defect, self.least))
        return Pace(Q, u_Q, Y, u_Y, jnp.where(anew, 1.0, theta), least)


class Relaxed(eqx.Module):
    """Contacts of one colour with what relaxing them takes; impulses are arrays (R, K)."""

    W: tuple[Side, ...]
    W_M: tuple[Side, ...]
    c: Array
    diagonal: Array
    active: Array
    friction: Array

    def swept(self, P: Array, u: Array) -> tuple[Array, Array]:
        """Impulses, and velocities of bodies (N, f), after all contacts of the colour."""
        own = [side.own(u) for side in self.W]
        x = P - (sum(side.velocity(v) for side, v in zip(self.W, own)) + self.c) / self.diagonal
        normal = jnp.where(self.active & (x[0] > 0), x[0], 0.0)
        a = (self.friction * normal)[:, None]
        new = jnp.vstack([normal, nearest(x[1:].T, -a, a).T]) if len(x) > 1 else normal[None]
        for side, v in zip(self.W_M, own):
            u = u.at[side.body].set(v + side.push(new - P), mode="drop", unique_indices=True)
        return new, u


def by_bodies(problem: ContactProblem, solver: AbstractContactSolver) -> tuple[BodyDirections, BodyDirections]:
    """W and W M^{-1} by bodies, or a refusal."""
    G = problem.G
    if isinstance(G, DelassusMap) and isinstance(G.W, BodyDirections) and isinstance(G.W_M, BodyDirections):
        return G.W, G.W_M
    where = "listed pairs of bodies (Contacts.between with carom.CellList or carom.Fixed)"
    msg = f"{type(solver).__name__} is for contacts of {where}: use carom.SemismoothNewton()"
    raise TypeError(msg)


def by_colours(problem: ContactProblem, W: BodyDirections, W_M: BodyDirections) -> list[Relaxed]:
    """All contacts, colour by colour; what a colour has of the next ones is left alone."""
    found, first = [], 0
    for group, over, c, diagonal in zip(W.groups, W_M.groups, W.by_group(problem.c), W.by_group(problem.diagonal)):
        own, cut = slice(first, first + group.count), group.colours.cut
        numbers = zip(*(cut(x) for x in (c, diagonal, problem.active[own], problem.friction[own])))
        bodies = [cut(side.body) for side in group.sides]
        rows = [[cut(side.rows) for side in blocks.sides] for blocks in (group, over)]
        ends = jnp.append(group.colours.starts[1:], group.count)
        for k, (c_k, diagonal_k, active_k, friction_k) in enumerate(numbers):
            there = jnp.arange(active_k.size) < ends[k] - group.colours.starts[k]
            its = [jnp.where(there, body[k], W.bodies + jnp.arange(there.size)) for body in bodies]
            sides = (tuple(Side(b, r[k]) for b, r in zip(its, side)) for side in rows)
            found.append(Relaxed(*sides, c_k, diagonal_k, active_k & there, friction_k))
        first += group.count
    return found


def cut_by_colours(W: BodyDirections, x: Array) -> tuple[Array, ...]:
    """Rows, colour by colour."""
    return tuple(part for group, own in zip(W.groups, W.by_group(x)) for part in group.colours.cut(own))


def joined(W: BodyDirections, colours: tuple[Array, ...]) -> Array:
    """Rows in their order, from those by colour."""
    rest, groups = list(colours), []
    for group in W.groups:
        count = len(group.colours.sizes)
        groups.append(group.colours.joined(tuple(rest[:count]), group.count))
        rest = rest[count:]
    return W.stacked(tuple(groups))
