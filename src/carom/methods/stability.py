"""The stability limit of explicit schemes, before and after a run [Marazzato2019 Prop. 6]."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import users_frame
from carom.methods.base import AbstractMethod, Gives
from carom.running.compiled import compiled
from carom.solvers.spectral import lanczos, largest_ritz_value, start_vector
from carom.state import State
from carom.systems.first_lists import with_lists
from carom.systems.listed_pairs import lists_at
from carom.systems.system import System

_STEPS = 60
_NEAR = 0.005
_REVIEWED = 4
_TORN = 0.5

Rate = tuple[int, Any, str]  # steps per step of the method, mask of the coordinates that take them, words for messages
ONE_RATE: list[Rate] = [(1, None, "")]


class StabilityWarning(UserWarning):
    """A step at its stability limit, a limit that fell during the run, or a resonance."""


class LimitedMethod(AbstractMethod):
    """A method whose steps are held against the stability limit before a run, and looked at again after it."""

    @property
    def told(self) -> bool:
        """Whether to run above the limit: the field `beyond_limit`, which declared here would be the first argument."""
        return self.beyond_limit  # pyright: ignore[reportAttributeAccessIssue]

    def rates(self, system: System, n: int) -> list[Rate]:
        """Who steps how often; all once by default."""
        del system, n
        return ONE_RATE

    def caution(self, system: System, state: State, longest: float | None, span: float) -> None:
        """Hold the longest step of every rate against its stability limit at the start."""
        del span
        if longest is not None:
            for count, among, where in self.rates(system, state.q.size):
                limit = stability_limit(system, state, among)
                refuse_unstable(longest / count, limit, self.told, where)

    def review(self, solution: Any) -> None:
        """Look at the stability limit again, and at the gap between energy and pseudo-energy if there is one."""
        if not self.told:
            warn_if_fallen(solution, self.rates(solution.system, solution.q.shape[1]))
        if Gives.MOMENTUM_JUMP in self.gives:
            warn_if_torn(solution)


def stability_limit(system: System, state: State, among: Any = None) -> float:
    """Largest stable step `2 / sqrt(lambda)`, lambda the largest eigenvalue of M^{-1} D^2 V at `state` (16).

    Sharper than (16), which bounds lambda by the extreme eigenvalues of M and D^2 V apart. Matrix-free (Lanczos).

    Args:
        system: the equations.
        state: where the potential is linearised.
        among: mask of the coordinates that may move, the others held; all by default.

    Example:
        >>> carom.stability_limit(*carom.models.fermi_pasta_ulam(3, omega=50.0))
    """
    seen = with_lists(system, state)
    eigenvalue = largest_ritz_value(*_lanczos(seen, state.t, state.q, among))
    return 2.0 / float(np.sqrt(eigenvalue)) if eigenvalue > 0 else np.inf


@compiled
def _lanczos(system: System, t: Array, q: Array, among: Any) -> tuple[Array, Array]:
    kept = jnp.ones_like(q) if among is None else jnp.asarray(among, q.dtype)

    def apply(x: Array) -> Array:
        force = jax.jvp(lambda y: system.conservative_force(t, y), (q,), (kept * x,))[1]
        return -kept * system.mass_solve(t, q, force)

    def inner(x: Array, y: Array) -> Array:
        return jnp.vdot(x, system.mass_times(t, q, y))

    return lanczos(apply, inner, kept * start_vector(q.size), _STEPS)


def refuse_unstable(h: float, limit: float, told: bool, where: str) -> None:
    """Raise above the limit unless told, warn at it."""
    if h < (1 - _NEAR) * limit:
        return
    facts = f"the step{where} h = {h:.6g} lies {{}} the stability limit {limit:.6g} [Marazzato2019 (16)]"
    if h <= (1 + _NEAR) * limit:
        msg = f"{facts.format('at')}: errors may grow with time; reduce h"
        warnings.warn(msg, StabilityWarning, stacklevel=users_frame())
    elif not told:
        msg = f"{facts.format('above')}: reduce h, or pass beyond_limit=True to run all the same"
        raise ValueError(msg)


def warn_if_fallen(solution: Any, rates: list[Rate]) -> None:
    """Warn if the limit at a few later states lies under the steps taken there."""
    rows = np.unique(np.linspace(0, len(solution) - 1, _REVIEWED + 1).astype(int))[1:]
    for row, (count, among, where) in itertools.product(rows, rates):
        state = State(solution.q[row], solution.v[row], solution.elapsed[row])
        limit, h = stability_limit(_listed(solution, state), state, among), solution.h[row] / count
        if h > (1 + _NEAR) * limit:
            msg = (
                f"at t = {solution.t[row]:.6g} the step{where} h = {h:.6g} lies above the stability limit there, "
                f"{limit:.6g} [Marazzato2019 (16)]: run again with a smaller h"
            )
            warnings.warn(msg, StabilityWarning, stacklevel=users_frame())
            return


def _listed(solution: Any, state: State) -> System:
    """The system with lists of pairs at a state of the run, as roomy as those of its end."""
    system, carry = solution.running, solution.carry
    if not system.has_lists or carry is None or carry.pairs is None:
        return system
    return system.since(system.epoch, lists_at(system, state, carry.pairs, jnp.zeros(())))


def warn_if_torn(solution: Any) -> None:
    """Warn if the jumps hold most of the energy at the end: conserved, the pseudo-energy says nothing any more."""
    s = solution.state
    system = _listed(solution, s)
    energy = system.kinetic_energy(s.t, s.q, s.v) + system.potential_energy(s.t, s.q)
    gap = 0.25 * system.kinetic_energy(s.t, s.q, jnp.asarray(solution.columns["extra.jump"][-1]))
    if float(gap) > _TORN * abs(float(energy)):
        msg = (
            f"at t = {float(s.t):.6g} the energy lies {float(gap):.3g} above the pseudo-energy, more than half of "
            f"itself: the velocities before and after a node have nothing to do with each other any more. Take a "
            f"smaller or a constant h, or carom.EnergyGap"
        )
        warnings.warn(msg, StabilityWarning, stacklevel=users_frame())
