"""Levels for the asynchronous scheme from the stiffness of every interaction.

Let every particle share its mass equally among the interactions that resist it, and let lambda_e be the largest
eigenvalue of `M_e^{-1} D^2 V_e` of interaction e with its shares. Then `2 / sqrt(lambda_e)` is its own stable step, and
since `x D^2V x = sum_e x D^2V_e x <= max lambda_e x M x` a step under all of them is under the limit (16). In a uniform
chain the two agree.

An interaction that is stable with h / k needs the rate k. Levels have rates 1, r_1, r_1 r_2, ...: every interaction
takes the first that suffices, and the ratios are those with the fewest evaluations.
"""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.methods.pseudo_energy.zones import interaction_rows, interactions_of
from carom.running.compiled import compiled
from carom.state import State
from carom.systems.interactions import Interactions
from carom.systems.system import System

_MOST_STEPS = 4096
_SAME = 1e-9


def local_limits(system: System, state: State) -> dict[str, np.ndarray]:
    """Stable step of every interaction by itself, part by part; infinite where it does not resist."""
    q = state.q
    parts = interactions_of(system)
    rows = {name: interaction_rows(part, q.size) for name, part in parts.items()}
    stiffness = {name: np.asarray(_stiffness(part, q[rows[name]])) for name, part in parts.items()}
    resists = {name: np.abs(K).max((1, 2), initial=0.0) > 0 for name, K in stiffness.items()}
    sharers = np.zeros(q.size)
    for name, r in rows.items():
        np.add.at(sharers, r[resists[name]], 1.0)
    share = np.asarray(system.mass_at(state.t, q)) / np.maximum(sharers, 1.0)
    return {name: _limits(stiffness[name], share[rows[name]]) for name in parts}


@compiled
def _stiffness(part: Interactions, local: Array) -> Array:
    """Second derivatives of every interaction, its coordinates along the rows of `local`."""
    data = () if part.data is None else (part.data,)
    second = jax.vmap(jax.hessian(lambda x, *d: part.energy(*x, *d)))(local, *data)
    return jnp.reshape(part.weight, (-1, 1, 1)) * second


def _limits(stiffness: np.ndarray, mass: np.ndarray) -> np.ndarray:
    root = np.sqrt(mass)
    eigenvalue = np.linalg.eigvalsh(stiffness / (root[:, :, None] * root[:, None, :]))[:, -1]
    return np.where(eigenvalue > 0, 2.0 / np.sqrt(np.where(eigenvalue > 0, eigenvalue, 1.0)), np.inf)


def nested_levels(
    system: System, state: State, h: float, courant: float, most: int
) -> tuple[list[tuple[str, ...]], tuple[int, ...]]:
    """Fast interactions by name and ratios, level by level, for steps of at most `courant` times their limits."""
    limits = local_limits(system, state)
    needs = {name: np.maximum(np.ceil(h / (courant * limit) - _SAME), 1) for name, limit in limits.items()}
    every = np.concatenate(list(needs.values())).astype(int)
    if not every.min() == 1 < every.max() <= _MOST_STEPS:
        longest = courant * max(limit.max(initial=0.0) for limit in limits.values())
        fact = f"the stiffest interaction needs {every.max()} steps in one of it, more than {_MOST_STEPS}: reduce h"
        fact = f"no interaction is stable with it: reduce h below {longest:.6g}" if every.min() > 1 else fact
        fact = "all interactions are stable with it: use PseudoEnergy" if every.max() == 1 else fact
        msg = f"AsynchronousPseudoEnergy.automatic finds no levels for h = {h:.6g}: {fact}"
        raise ValueError(msg)
    rates = cheapest_rates(every, most)
    fast = [
        tuple(part for name, need in needs.items() for part in _ranges(name, need > slower)) for slower in rates[:-1]
    ]
    return fast, tuple(fine // coarse for coarse, fine in zip(rates, rates[1:]))


def cheapest_rates(needs: np.ndarray, most: int) -> list[int]:
    """Rates from 1 on, each a multiple of the one before, with the fewest evaluations of all.

    Args:
        needs: the rate that every interaction needs; it gets the first that is not less.
        most: how many rates there may be.

    Example:
        >>> cheapest_rates(np.array([1, 1, 4, 15]), most=3)
    """
    top = int(needs.max())
    up_to = np.cumsum(np.bincount(needs, minlength=2 * top + 1))

    @cache
    def beyond(rate: int, left: int) -> tuple[float, tuple[int, ...]]:
        """Evaluations of those that need more than `rate`, and the rates they take."""
        if rate >= top:
            return 0, ()
        last = rate * -(-top // rate)
        choices = range(last if left == 1 else 2 * rate, last + 1, rate)
        taken = {finer: up_to[finer] - up_to[rate] for finer in choices}
        rest = {finer: beyond(finer, left - 1) for finer, count in taken.items() if count}
        return min((finer * taken[finer] + more, (finer, *finest)) for finer, (more, finest) in rest.items())

    return [1, *beyond(1, most - 1)[1]]


def _ranges(name: str, chosen: np.ndarray) -> list[str]:
    """Names of the chosen interactions of a part: the part, or ranges of it."""
    if chosen.all():
        return [name]
    edges = np.flatnonzero(np.diff(chosen.astype(int), prepend=0, append=0))
    return [f"{name}[{a}:{b}]" for a, b in zip(edges[::2], edges[1::2])]
