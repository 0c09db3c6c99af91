"""Long mechanisms: which velocities, coordinates and constraints meet, and the levels that follow from it."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.running.compiled import compiled_hastily
from carom.solvers.levels import levels_of
from carom.solvers.redundant import dependent
from carom.state import State
from carom.systems.constrained import directions, mass_matrix, multiplier_count, reaction, velocity_residual
from carom.systems.features import Feature
from carom.systems.system import System

_LONG = 300  # rows of a whole matrix from which levels are looked for
_WHOLE = 0.042  # ns per row of a whole matrix, cubed, to factorise it
_LEVEL, _BLOCK, _TURNED = 0.94, 30.0, 370.0  # ns per unknown of a level, cubed and squared, the latter with kinematics
_ASIDE = 1e-2  # relative to the largest coordinate: how far from the start dependences are looked at too


class Links(NamedTuple):
    """The levels of velocities, constraints and, where their rates are unknown, of coordinates."""

    velocities: tuple[int, ...]
    rows: tuple[int, ...]
    coordinates: tuple[int, ...]

    @property
    def of_accelerations(self) -> np.ndarray:
        """The levels of accelerations and multipliers."""
        return np.asarray(self.velocities + self.rows)

    def of_unknowns(self, stages: int) -> np.ndarray:
        """The levels of (V, U, v1, W), in this order."""
        each = [np.tile(np.asarray(level, int), stages) for level in (self.velocities, self.rows, self.coordinates)]
        return np.concatenate([*each[:2], np.asarray(self.velocities, int), each[2]])


def links(system: System, state: State, stages: int, strategy: str) -> Links | None:
    """The levels of a long mechanism whose constraints are independent, if they are faster than whole matrices."""
    n, turns = state.v.size, 0 if system.kinematics is None else state.q.size
    rows = lambda m: stages * (n + m + turns) + n if strategy == "full" else (stages - 1) * m  # noqa: E731
    if rows(n) < _LONG:  # independent constraints are no more than velocities; to count them takes a trace
        return None
    m = multiplier_count(system, state.t, state.q, state.v)
    if m == 0 or rows(m) < _LONG or {Feature.HAMILTONIAN, Feature.MULTIPLIER_FORCES} & system.features:
        return None
    away = _ASIDE * np.max(np.abs(state.q)) * np.random.default_rng(0).standard_normal(state.q.size)
    seen = [_dependences(system, state.moved(state.t, state.q + x, state.v)) for x in (0.0, away)]
    meets, touches, redundant = (np.asarray(x) != 0 for x in jax.tree.map(jnp.add, *seen))
    if redundant:
        return None
    level = levels_of(meets | (touches.T.astype(int) @ touches > 0), np.ones(len(meets)))
    last = np.where(touches, level, -1).max(1)
    found = Links(*(tuple(x.tolist()) for x in (level[:n], last, level[n:])))
    widths = np.bincount(found.of_unknowns(stages))
    along = widths.size * widths.max() ** 2 * (_LEVEL * widths.max() + (_TURNED if turns else _BLOCK))
    return found if along < _WHOLE * rows(m) ** 3 else None


@compiled_hastily
def _dependences(system: System, state: State) -> tuple[Array, Array, Array]:
    """Where velocities meet, where constraints touch them, and how many of these depend on others.

    Coordinates follow the velocities where their rates are not these.
    """
    t, q, v = state.t, state.q, state.v
    u, w = jnp.ones(multiplier_count(system, t, q, v)), jnp.linspace(1.0, 2.0, v.size)

    def acting(q: Array, v: Array) -> Array:
        return jnp.stack([system.mass_times(t, q, w), system.force(t, q, v, u), reaction(system, t, q, v, u)])

    size = lambda f, i, *z: jnp.abs(jax.jacfwd(f, i)(*z))  # noqa: E731
    by_q, by_v = (jnp.sum(size(acting, i, q, w), 0) for i in (0, 1))
    by_v = by_v + jnp.abs(mass_matrix(system, t, q, v.size))
    rows_q, rows_v = (size(lambda q, v: velocity_residual(system, t, q, v), i, q, w) for i in (0, 1))
    rows_q = rows_q.at[: system.constraint(t, q).size].add(size(system.constraint, 1, t, q))
    redundant = dependent(directions(system, t, q, v))
    if system.kinematics is None:
        return by_v + by_q, rows_v + rows_q, redundant
    rate_q, rate_v = (size(lambda q, v: system.rate(t, q, v), i, q, w) for i in (0, 1))
    return jnp.block([[by_v, by_q], [rate_v, rate_q]]), jnp.concatenate([rows_v, rows_q], 1), redundant
