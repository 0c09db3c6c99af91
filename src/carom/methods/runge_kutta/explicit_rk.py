r"""Explicit Runge-Kutta methods: Y_i = y_0 + h sum_{j<i} a_ij F_j, y_1 = y_0 + h sum_i b_i F_i."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from carom.methods.runge_kutta.stages import TableauMethod
from carom.names import register
from carom.state import Info, State, Step
from carom.systems.system import System
from carom.tableaux import Tableau, embedded


@register
class ExplicitRK(TableauMethod):
    """Explicit Runge-Kutta method.

    Args:
        tableau: for instance `carom.explicit(4)`.

    Example:
        >>> method = carom.ExplicitRK(carom.explicit(4))
    """

    def __check_init__(self):
        if not isinstance(self.tableau, Tableau) or not self.tableau.is_explicit:
            msg = f"ExplicitRK: tableau must be an explicit carom.Tableau such as carom.explicit(4), got {self.tableau}"
            raise ValueError(msg)

    def step(self, system: System, state: State, memory: None, h: Array) -> Step:
        """One step."""
        tab = self.tableau
        rates: list[tuple[Array, Array]] = []
        for i in range(tab.stages):
            q, v = _advance(state, rates, h, tab.A[i])
            t = state.t + tab.c[i] * h
            rates.append((system.rate(t, q, v), system.acceleration(t, q, v)))
        q, v = _advance(state, rates, h, tab.b)
        reached = state.moved(state.t + h, q, v)
        info = Info(evaluations=jnp.int32(tab.stages), local_error=self.error(system, rates, h, reached))
        return Step(reached, None, info)

    def error(self, system: System, rates: list[tuple[Array, Array]], h: Array, end: State) -> Any:
        """The embedded estimate."""
        companion = embedded(self.tableau)
        if companion is None:
            return None
        first, *weights, last = companion.weights
        if last:
            rates = [*rates, (system.rate(end.t, end.q, end.v), system.acceleration(end.t, end.q, end.v))]
        return _weighted(rates, h, [first + weights[0], *weights[1:], last])


def _advance(state: State, rates: list[tuple[Array, Array]], h: Array, weights) -> tuple[Array, Array]:
    change = _weighted(rates, h, weights)
    return (state.q, state.v) if change is None else (state.q + change[0], state.v + change[1])


def _weighted(rates: list[tuple[Array, Array]], h: Array, weights) -> tuple[Array, Array] | None:
    used = [(float(w), rate) for w, rate in zip(weights, rates) if w]
    return tuple(h * sum(w * rate[i] for w, rate in used) for i in (0, 1)) if used else None  # pyright: ignore
