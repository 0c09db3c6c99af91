r"""Closed contacts that press against each other: normal impulses y >= 0 that no motion feels, `W_N^T y = 0`.

A bead between two walls may be squeezed by any force. Rigid bodies leave it open; a step that starts from the impulses
of the step before would keep every squeeze that ever arose, and friction would grow with it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.solvers.contact_problem import ContactProblem
from carom.solvers.redundant import masked
from carom.solvers.roots import held, rarely, repeated

_DAMPING = 1e-4  # of the normalised Delassus matrix
_SOLVES = 4  # each brings the direction nearer by the damping
_ITERATIONS = 10
_NOTHING = 1e-9  # of the largest entry


def without_self_stress(problem: ContactProblem, P: Array) -> Array:
    """The same impulses, with the normal ones that only press against each other taken away (if G is a matrix).

    A guess for solvers: it has no derivative.
    """
    n = problem.laws.contacts
    if n < 2 or not problem.G.has_matrix:
        return P
    problem, P = held((problem, P))

    def reduced(x: Array) -> Array:
        G = problem.G.dense()[:n, :n]
        size = jnp.sqrt(jnp.where(jnp.diag(G) > 0, jnp.diag(G), 1.0))
        return _taken_away(problem, G / size[:, None] / size, x * size) / size

    return jnp.concatenate([rarely(may_be_stressed(problem, P), reduced, P[:n]), P[n:]])


def may_be_stressed(problem: ContactProblem, P: Array) -> Array:
    """Whether some pressed contacts push each other open: without that there is no self-stress."""
    n = problem.laws.contacts
    if n < 2 or not problem.G.has_matrix:
        return jnp.asarray(False)
    pressed = _pressed(problem, P[:n])
    return jnp.any(pressed[:, None] & pressed & (problem.G.dense()[:n, :n] < 0))


def _pressed(problem: ContactProblem, x: Array) -> Array:
    return problem.active & (x > 0)


def _taken_away(problem: ContactProblem, S: Array, x: Array) -> Array:
    """Normal impulses without the self-stress of a normalised Delassus matrix, one after the other."""
    n = x.size

    def taken_away(loop: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, _, k = loop
        y = self_stress(S, _pressed(problem, x))
        share = jnp.where(y > 0, x / jnp.where(y > 0, y, 1.0), jnp.inf)
        least = jnp.where(jnp.any(y > 0), jnp.min(share), 0.0)
        x = jnp.where(share == least, 0.0, x - least * y)
        return x, jnp.any(y > 0) & may_be_stressed(problem, x), k + 1

    loop = (x, jnp.asarray(True), jnp.zeros((), jnp.int32))
    return repeated(lambda c: c[1] & (c[2] < n), taken_away, loop)[0]


def self_stress(S: Array, candidates: Array) -> Array:
    """Entries y >= 0 of candidates with S y = 0, zero if there are none but y = 0: inverse iteration with a cone."""
    damped = S + _DAMPING * jnp.asarray(np.eye(S.shape[0]))

    def complementary(y: Array, b: Array) -> Array:
        """`y >= 0`, `damped y - b >= 0`, product zero."""

        def iterate(_, y: Array) -> Array:
            active = candidates & (y - (damped @ y - b) > 0)
            return jnp.linalg.solve(masked(damped, active), jnp.where(active, b, 0.0))

        return jax.lax.fori_loop(0, _ITERATIONS, iterate, y)

    def solve(_, y: Array) -> Array:
        y = complementary(y, y)
        return y / jnp.maximum(jnp.max(jnp.abs(y)), 1e-290)

    y = jax.lax.fori_loop(0, _SOLVES, solve, candidates.astype(float))
    y = jnp.where(y > _NOTHING, y, 0.0)
    return jnp.where(jnp.max(jnp.abs(S @ y)) <= _NOTHING, y, 0.0)
