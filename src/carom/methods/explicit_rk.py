r"""Explicit Runge-Kutta methods: Y_i = y_0 + h sum_{j<i} a_ij F_j, y_1 = y_0 + h sum_i b_i F_i."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from carom.methods.base import SMOOTH, AbstractMethod
from carom.state import Info, State, Step
from carom.systems.system import System
from carom.tableaux import Tableau


class ExplicitRK(AbstractMethod):
    """Explicit Runge-Kutta method.

    Args:
        tableau: for instance `carom.explicit(4)`.

    Example:
        >>> method = carom.ExplicitRK(carom.explicit(4))
    """

    tableau: Tableau = eqx.field(static=True)

    handles = SMOOTH

    def __check_init__(self):
        if not isinstance(self.tableau, Tableau) or not self.tableau.is_explicit:
            msg = f"ExplicitRK: tableau must be an explicit carom.Tableau such as carom.explicit(4), got {self.tableau}"
            raise ValueError(msg)

    @property
    def order(self) -> int:
        """Order of the tableau."""
        return self.tableau.order

    def init(self, system: System, state: State) -> None:
        """No memory."""

    def step(self, system: System, state: State, memory: None, h: Array) -> Step:
        """One step."""
        tab = self.tableau
        rates: list[tuple[Array, Array]] = []
        for i in range(tab.stages):
            q, v = _advance(state, rates, h, tab.A[i])
            t = state.t + tab.c[i] * h
            rates.append((system.rate(t, q, v), system.acceleration(t, q, v)))
        q, v = _advance(state, rates, h, tab.b)
        return Step(state.moved(state.t + h, q, v), None, Info(evaluations=jnp.int32(tab.stages)))


def _advance(state: State, rates: list[tuple[Array, Array]], h: Array, weights) -> tuple[Array, Array]:
    used = [(float(w), rate) for w, rate in zip(weights, rates) if w]
    q, v = state.q, state.v
    if used:
        q = q + h * sum(w * rate[0] for w, rate in used)
        v = v + h * sum(w * rate[1] for w, rate in used)
    return q, v
