"""The contact problem of a step of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.contact_problems.problem import LocalProblem
from carom.methods.moreau.moreau_midpoint import MoreauMemory, MoreauMidpoint
from carom.running.compiled import compiled
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.contact_solver import AbstractContactSolver, ContactResult
from carom.state import State
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
    memory = method.init(system, state)
    if before > 0:
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
    G = np.where(there[:, None] & there, np.asarray(problem.G.dense())[rows][:, rows], np.eye(rows.size))
    c = np.where(there, np.asarray(problem.c)[rows], 0.0)
    names = ", ".join(laws.called(i) for i in np.flatnonzero(shut).tolist())
    info = {"title": title, "description": f"contacts {names}"}
    local = LocalProblem(G[:m, :m], c[:m], problem.friction[shut], directions + 1, info=info)
    return replace(local, V=G[:m, m:], R=G[m:, m:], s=c[m:]) if laws.bilateral else local
