r"""Implicit Runge-Kutta methods for any tableau.

With y = (q, v) and F(t, y) = (q', M^{-1} f):

    Y_i = y_0 + h sum_j a_ij F(t_0 + c_j h, Y_j),    y_1 = y_0 + h sum_i b_i F(t_0 + c_i h, Y_i).

Gauss-Legendre with two stages is James2020 (13)-(15), Lobatto IIIA with two stages is Crank-Nicolson (12). On
`carom.regularise(system)` they become (17)-(18) and (16). A first explicit stage costs no unknowns, a stiffly accurate
tableau ends in its last stage.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.methods.runge_kutta.jacobians import neighbour_jacobian as neighbour_jacobian
from carom.methods.runge_kutta.jacobians import stage_jacobians
from carom.methods.runge_kutta.stages import TableauMethod
from carom.names import register
from carom.solvers.newton import Newton, Root
from carom.solvers.small import times
from carom.solvers.stages import Pair, StageEquations, solve_stages, spectrum
from carom.state import Info, State, Status, Step
from carom.systems.system import System
from carom.tableaux import Tableau, embedded


@register
class IRK(TableauMethod):
    """Implicit Runge-Kutta method.

    Args:
        tableau: for instance `carom.gauss(2)`, `carom.radau_iia(3)`, `carom.lobatto_iiia(2)`.
        newton: settings of the implicit solve.

    Example:
        >>> method = carom.IRK(carom.gauss(2))
    """

    newton: Newton = Newton()

    def __check_init__(self):
        if not isinstance(self.tableau, Tableau):
            msg = f"IRK: tableau must be a carom.Tableau such as carom.gauss(2), got {type(self.tableau).__name__}"
            raise TypeError(msg)
        if self.tableau.is_explicit:
            msg = f"IRK: {self.tableau.name} is explicit; use carom.ExplicitRK"
            raise ValueError(msg)

    def step(self, system: System, state: State, memory: None, h: Array) -> Step:
        """One step."""
        tab = self.tableau
        first = int(tab.first_stage_explicit)
        A, b, c = jnp.asarray(tab.A), jnp.asarray(tab.b), jnp.asarray(tab.c)
        t, y = state.t + c * h, (state.q, state.v)
        rates = FirstOrder(system)(state.t, *y)
        equations = StageEquations(
            field=FirstOrder(system),
            t=t[first:],
            start=y,
            A=A[first:, first:],
            h=h,
            offset=jax.tree.map(lambda f: h * jnp.outer(jnp.sum(A[first:, :first], 1), f), rates),
            **stage_jacobians(system),
        )
        guess = jax.tree.map(lambda f: h * jnp.outer(c[first:], f), rates)
        root = solve_stages(equations, guess, rates, self.newton, spectrum(tab.A[first:, first:]))
        if tab.is_stiffly_accurate:
            q, v = (y0 + z[-1] for y0, z in zip(y, root.x))
        else:
            q, v = (y0 + h * (b[:first].sum() * f + times(b[first:], F)) for y0, f, F in zip(y, rates, root.aux))
        info = newton_info(root, self.newton, tab.stages - first)
        reached = state.moved(state.t + h, q, v)
        error = self.error(equations, rates, root.aux)
        info = eqx.tree_at(lambda i: i.local_error, info, error, is_leaf=lambda x: x is None)
        return Step(reached, None, info)

    def error(self, equations: StageEquations, rates: Pair, stage_rates: Pair) -> Pair | None:
        """The embedded estimate, its stiff part damped by (I - h e_0 J)^{-1}."""
        companion = embedded(self.tableau)
        if companion is None:
            return None
        w, explicit = companion.weights, self.tableau.stages - equations.t.size
        start, stages = w[: 1 + explicit].sum(), w[1 + explicit : -1]
        raw = jax.tree.map(lambda f0, F: equations.h * (start * f0 + stages @ F), rates, stage_rates)
        return equations.shared_solver(*equations.start)(equations.h * companion.filter, raw)


class FirstOrder(eqx.Module):
    """F(t, q, v) = (q', M^{-1} f)."""

    system: System

    def __call__(self, t: Array, q: Array, v: Array) -> tuple[Array, Array]:
        """Rates of q and v."""
        return self.system.rate(t, q, v), self.system.acceleration(t, q, v)


def newton_info(root: Root, settings: Newton, stages: int) -> Info:
    """Status, relative error and counters of one implicit solve."""
    return Info(
        status=jnp.where(root.converged, Status.OK, Status.NEWTON_DIVERGED),
        residual=root.error * settings.tol,
        iterations=root.iterations,
        evaluations=1 + stages * root.evaluations,
    )
