"""The contact problem of a step of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import sparse

from carom.contact_problems.problem import LocalProblem
from carom.methods.moreau.moreau_midpoint import MoreauMemory, MoreauMidpoint
from carom.running.compiled import compiled
from carom.solvers.body_directions import BodyDirections
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.contact_solver import AbstractContactSolver, ContactResult
from carom.solvers.directions import AbstractDelassus, DelassusMap
from carom.state import State
from carom.systems.listed_pairs import lists_at
from carom.systems.system import System


class _Listener(AbstractContactSolver):
    """Keeps what it is asked, and solves nothing."""

    asked: list[ContactProblem]

    needs_matrix = False

    def __call__(self, problem: ContactProblem, guess: Array) -> ContactResult:
        """Keep the problem."""
        return self.solve(problem, guess)

    def solve(self, problem: ContactProblem, guess: Array) -> ContactResult:
        """Keep the problem."""
        self.asked.append(problem)
        return ContactResult(guess, jnp.zeros(()), jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


@compiled
def _asked(system: System, state: State, memory: MoreauMemory, h: Array) -> list[ContactProblem]:
    listener = _Listener([])
    MoreauMidpoint(listener).step(system, state, memory, h)
    return listener.asked


def of_step(sol: Any, row: int) -> LocalProblem:
    """The problem that the step to a saved row solved, from the row before."""
    method, system, before = sol.method, sol.running, row - 1
    if not isinstance(method, MoreauMidpoint):
        msg = f"contact_problem: {type(method).__name__} does not lay its contact problems open: run MoreauMidpoint"
        raise TypeError(msg)
    h, t = sol.h[row], sol.elapsed[before]
    if not np.isclose(sol.elapsed[row] - t, h, rtol=1e-6):
        msg = f"contact_problem: the row before t = {sol.t[row]:.9g} is no start of a step: keep every step"
        raise ValueError(msg)
    q, t = jnp.asarray(sol.q[before]), jnp.asarray(t)
    state = State(q, system.inner_velocity(t, q, jnp.asarray(sol.v[before])), t)
    if sol.carry.pairs is not None:
        system = system.since(system.epoch, lists_at(system, state, sol.carry.pairs, jnp.asarray(h)))
    memory = method.init(system, state)
    if before > 0 and sol.carry.pairs is None:
        multiplier = -sol.multiplier[before] if "multiplier" in sol.columns else np.zeros(0)
        force = jnp.asarray(np.concatenate([sol.impulse[before] / sol.h[before], multiplier]))
        memory = eqx.tree_at(lambda m: (m.force, m.mode), memory, (force, jnp.asarray(sol.mode[before])))
    asked = _asked(system, state, memory, jnp.asarray(h))
    if not asked:
        msg = "contact_problem: this system has neither contacts nor constraints"
        raise ValueError(msg)
    return closed(asked[0], f"step of {h:.9g} to t = {sol.t[row]:.9g}")


def closed(problem: ContactProblem, title: str) -> LocalProblem:
    """The closed contacts of a problem, with a decoupled row for every direction of friction that one lacks."""
    laws, shut = problem.laws, np.asarray(problem.active)
    if laws.elements or not shut.any():
        lack = "friction elements have no place in it" if laws.elements else "no contact is closed"
        msg = f"contact_problem: {title}: {lack}"
        raise ValueError(msg)
    directions = max(1, *laws.directions)
    rows = np.concatenate([laws.cones(directions)[shut].ravel(), np.arange(laws.rows - laws.bilateral, laws.rows)])
    there, m = rows >= 0, rows.size - laws.bilateral
    chosen = sparse.csr_array((np.ones(there.sum()), (np.flatnonzero(there), rows[there])), (rows.size, laws.rows))
    G = chosen @ _matrix(problem.G) @ chosen.T + sparse.diags_array((~there).astype(float))
    c = np.where(there, np.asarray(problem.c)[rows], 0.0)
    names = f"{shut.sum()} contacts of listed pairs"
    if problem.G.has_matrix:
        names = "contacts " + ", ".join(laws.called(i) for i in np.flatnonzero(shut).tolist())
    info = {"title": title, "description": names}
    local = LocalProblem(G[:m, :m], c[:m], problem.friction[shut], directions + 1, info=info)
    return replace(local, V=G[:m, m:], R=G[m:, m:], s=c[m:]) if laws.bilateral else local


def _matrix(G: AbstractDelassus) -> Any:
    """W M^{-1} W^T; of contacts of bodies as a sparse matrix."""
    if not isinstance(G, DelassusMap) or not isinstance(G.W, BodyDirections):
        return np.asarray(G.dense())
    W, M = _rows(G.W), np.asarray(G.W_M.masses).ravel()  # pyright: ignore
    return sparse.csr_array(W @ sparse.diags_array(1.0 / M) @ W.T)


def _rows(W: BodyDirections) -> sparse.csr_array:
    """W of contacts of bodies, a row for each direction and a column for each velocity."""
    size = sum(group.count * (1 + group.directions) for group in W.groups)
    values, rows, columns = [], [], []
    for group, number in zip(W.groups, W.by_group(jnp.arange(size))):
        for side in group.sides:
            body, own = np.asarray(side.body), np.moveaxis(np.asarray(side.rows), 1, 0)  # f, R, K
            there = np.broadcast_to(body < W.bodies, own.shape)
            velocity = W.dof * body + np.arange(W.dof)[:, None, None]
            for found, x in ((values, own), (rows, np.asarray(number)), (columns, velocity)):
                found.append(np.broadcast_to(x, own.shape)[there])
    parts = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.csr_array(sparse.coo_array(parts, shape=(size, W.bodies * W.dof)))
