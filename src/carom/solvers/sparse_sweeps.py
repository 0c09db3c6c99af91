"""Sweeps over the rows of a sparse Delassus matrix: of each contact the normal impulse first, then its friction."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.solvers.contact_laws import Laws
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.sparse import SparseDelassus
from carom.solvers.sweeps import AbstractSweeps


class SparseSweeps(AbstractSweeps):
    """For every colour its own laws, their rows, and the velocity of slip that a unit of normal impulse brings."""

    colours: tuple[ContactProblem, Array, Array]
    problem: ContactProblem

    @classmethod
    def of(cls, problem: ContactProblem, G: SparseDelassus) -> SparseSweeps:
        """The sweeps of a problem."""
        contacts, n, directions = G.colours, problem.laws.contacts, next(iter(problem.laws.directions))
        there, normals = contacts < n, np.arange(n)
        slips = (n + contacts[..., None] * directions + jnp.arange(directions)).reshape(contacts.shape[0], -1)
        slips = jnp.where(jnp.repeat(there, directions, axis=1), slips, problem.laws.rows)
        rows = jnp.concatenate([jnp.where(there, contacts, problem.laws.rows), slips], axis=1)
        own = ContactProblem(
            SparseDelassus(G.columns[rows], G.values[rows], contacts),
            problem.diagonal[rows],
            problem.c[rows],
            active=problem.active[contacts] & there,
            friction=problem.friction[contacts],
            limits=jnp.zeros((contacts.shape[0], 0, 2)),
            laws=Laws([(contacts.shape[1], directions)]),
        )
        cross = G.entries(n + np.arange(n * directions), np.repeat(normals, directions))[slips - n]
        return cls((own, rows, cross), problem)

    def start(self, P: Array) -> Array:
        """The impulses."""
        return P

    def sweep(self, x: Array, old: Array, beta: Array) -> tuple[Array, Array, Array, Array]:
        """After all colours, one after the other; products are in units of energy."""
        y = x + beta * (x - old)
        new = jax.lax.scan(lambda P, colour: (_relaxed(P, *colour), None), y, self.colours)[0]
        down, diagonal = y - new, self.problem.diagonal
        return new, x, jnp.sum(diagonal * down**2), jnp.sum(diagonal * down * (new - x))

    def fresh(self, x: Array) -> Array:
        """The same."""
        return x

    def residual(self, x: Array) -> Array:
        """The residual."""
        return self.problem.residual(x, self.problem.equation(x))

    def impulses(self, x: Array) -> Array:
        """The impulses."""
        return x


def _relaxed(P: Array, own: ContactProblem, rows: Array, cross: Any) -> Array:
    """P after one colour."""
    n, directions = own.laws.contacts, next(iter(own.laws.directions))
    old, u = P[rows], own.velocity(P)
    normal = own.project(old - u / own.diagonal, old)[:n]
    push = jnp.repeat(normal - old[:n], directions)
    half = jnp.concatenate([normal, old[n:] - (u[n:] + cross * push) / own.diagonal[n:]])
    return P.at[rows].set(own.project(half, half), mode="drop")
