"""All modes of a few contacts with friction along a line or none: open, stick, slip forward, slip backward."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.solvers.contact_laws import Laws
from carom.solvers.contact_problem import ContactProblem
from carom.solvers.contact_solver import ContactResult
from carom.solvers.roots import repeated
from carom.solvers.small import solve_rolled
from carom.state import Status

MOST_CONTACTS = 4
_OPEN, _STICK, _FORWARD, _BACKWARD = range(4)
_SLACK = 1e-9  # a sign may be wrong by this much, relative to the impulses or velocities of the problem


def can_be_enumerated(laws: Laws) -> bool:
    """Whether all friction acts along lines and belongs to contacts."""
    return bool(laws.frictions) and 2 not in laws.directions and not laws.elements


def consistent_modes(problem: ContactProblem, found: ContactResult, doubtful: Array) -> ContactResult:
    """If `doubtful` and few contacts are closed: the only consistent mode, or a bad status for none or several."""
    n = problem.laws.contacts
    few = min(n, MOST_CONTACTS)
    chosen = jnp.arange(n) if few == n else jnp.argsort(~problem.active)[:few]
    digits = 4 ** jnp.arange(few)

    def try_mode(loop: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        code, P, count = loop
        trial, consistent = solve_mode(problem, jnp.zeros(n, int).at[chosen].set((code // digits) % 4))
        # modes that give the same motion (redundant contacts, the border between two modes) count as one
        jump, first = problem.G @ trial, problem.G @ P
        same = (count > 0) & (jnp.max(jnp.abs(jump - first)) <= _SLACK * (jnp.max(jnp.abs(first)) + 1e-290))
        consistent = consistent & ~same
        return code + 1, jnp.where(consistent & (count == 0), trial, P), count + consistent

    tries = doubtful & (jnp.sum(problem.active) <= MOST_CONTACTS)
    last = jnp.where(tries, 4**few, 0)  # no tries in the lanes of a batch that need none
    start = (jnp.zeros((), last.dtype), found.P, jnp.zeros((), jnp.int32))
    code, P, count = repeated(lambda loop: loop[0] < last, try_mode, start)
    status = jnp.where(
        count == 0, Status.NO_CONSISTENT_MODE, jnp.where(count > 1, Status.SEVERAL_CONSISTENT_MODES, Status.OK)
    )
    tried = ContactResult(
        P, problem.residual(P, problem.equation(P)), found.iterations + code.astype(jnp.int32), status.astype(jnp.int32)
    )
    return jax.tree.map(lambda a, b: jnp.where(tries, a, b), tried, found)


def solve_mode(problem: ContactProblem, mode: Array) -> tuple[Array, Array]:
    """Impulses of one mode of every contact, and whether they are consistent with all laws."""
    G, c, n, owner = problem.G.dense(), problem.c, problem.laws.contacts, problem.laws.owners
    slip_rows = n + np.arange(owner.size)
    mu = problem.friction
    shut, stick = mode != _OPEN, mode == _STICK
    sign = jnp.where(mode == _FORWARD, -1.0, jnp.where(mode == _BACKWARD, 1.0, 0.0))  # of the friction impulse
    rows = jnp.eye(c.size).at[slip_rows, owner].set((-sign * mu)[owner])
    enforced = jnp.concatenate([shut, stick[owner], jnp.ones(c.size - n - owner.size, bool)])
    J = jnp.where(enforced[:, None], G / problem.diagonal[:, None], rows)
    P = solve_rolled(J, jnp.where(enforced, -c / problem.diagonal, 0.0)[:, None])[:, 0]
    velocity = problem.velocity(P)
    P_N, P_T, w_N, w_T = P[:n], P[slip_rows], velocity[:n], velocity[slip_rows]
    impulse = _SLACK * (jnp.max(jnp.abs(P)) + 1e-290)
    speed = _SLACK * (jnp.max(jnp.where(problem.taking_part, jnp.abs(c), 0.0)) + 1e-290)
    normal_ok = jnp.where(shut, (P_N + impulse >= 0) & (jnp.abs(w_N) <= speed), ~problem.active | (w_N + speed >= 0))
    slip_ok = sign[owner] * w_T <= speed
    within = (jnp.abs(P_T) <= (mu * P_N)[owner] + impulse) & (jnp.abs(w_T) <= speed)
    friction_ok = jnp.where(stick[owner], within, slip_ok)
    fine = jnp.all(normal_ok & (problem.active | ~shut)) & jnp.all(friction_ok | ~shut[owner])
    return P, fine & jnp.all(jnp.isfinite(P))
