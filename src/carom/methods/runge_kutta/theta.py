r"""The theta method, y_1 = y_0 + h (theta F(y_1) + (1 - theta) F(y_0)) [James2020 (78)]."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.methods.base import SMOOTH, AbstractMethod, Derivative, Gives
from carom.methods.runge_kutta.irk import FirstOrder, newton_info
from carom.methods.runge_kutta.jacobians import stage_jacobians
from carom.names import register
from carom.solvers.newton import Newton
from carom.solvers.stages import Spectrum, StageEquations, solve_stages
from carom.state import State, Step
from carom.systems.features import Feature
from carom.systems.system import System


@register
class Theta(AbstractMethod):
    """Theta method: 0.5 is the trapezoidal rule (order 2), 1 backward Euler (order 1).

    Args:
        theta: weight of the new state, in [0.5, 1] for stability on stiff problems.
        newton: settings of the implicit solve.

    Example:
        >>> method = carom.Theta(0.5)
    """

    theta: float = 0.5
    newton: Newton = Newton()

    handles = SMOOTH | {Feature.MOVING_PAIRS}
    gives = frozenset({Gives.WHOLE_STEPS, Gives.BACKWARD})
    derivative = Derivative.EXACT

    def __check_init__(self):
        if isinstance(self.theta, (int, float)) and not 0 < self.theta <= 1:
            msg = f"Theta: theta must lie in (0, 1], got {self.theta}"
            raise ValueError(msg)

    @property
    def order(self) -> int:
        """2 for theta = 1/2, else 1."""
        return 2 if float(self.theta) == 0.5 else 1

    def init(self, system: System, state: State) -> None:
        """No memory."""

    def step(self, system: System, state: State, memory: None, h: Array) -> Step:
        """One step."""
        y = (state.q, state.v)
        field = FirstOrder(system)
        rates = field(state.t, *y)
        equations = StageEquations(
            field=field,
            t=(state.t + h)[None],
            start=y,
            A=jnp.asarray(self.theta)[None, None],
            h=h,
            offset=jax.tree.map(lambda f: h * (1 - self.theta) * f[None], rates),
            **stage_jacobians(system),
        )
        guess = jax.tree.map(lambda f: h * f[None], rates)
        root = solve_stages(equations, guess, rates, self.newton, one_stage(self.theta))
        q, v = (y0 + h * (self.theta * F[0] + (1 - self.theta) * f) for y0, f, F in zip(y, rates, root.aux))
        return Step(state.moved(state.t + h, q, v), None, newton_info(root, self.newton, 1))


def one_stage(value) -> Spectrum:
    """The spectrum of a 1 x 1 Runge-Kutta matrix."""
    one = jnp.ones(1)
    return Spectrum((jnp.asarray(value, float),), (one,), (one,), (True,))
