"""Stormer-Verlet, the baseline of [Marazzato2019 Remark 7]: symplectic, but only for constant steps.

    v^{n+1/2} = v^n + h/2 M^{-1} f(q^n),   q^{n+1} = q^n + h v^{n+1/2},   v^{n+1} = v^{n+1/2} + h/2 M^{-1} f(q^{n+1})

Between nodes this is the leapfrog of Remark 7 for constant steps. Friction with memory acts before and after
(`carom.systems.pair_friction`).
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from carom.methods.base import Derivative, Gives
from carom.methods.pseudo_energy.pseudo_energy import evaluations
from carom.methods.stability import LimitedMethod
from carom.names import register
from carom.state import Info, State, Step
from carom.systems.features import Feature
from carom.systems.pair_friction import kick
from carom.systems.system import System


@register
class StormerVerlet(LimitedMethod):
    """Stormer-Verlet (velocity form), second order, one force evaluation per step.

    Args:
        beyond_limit: run even if h lies above the stability limit, that of `PseudoEnergy`.

    Its energy error stays bounded for constant steps and drifts for others.

    Example:
        >>> sol = carom.simulate(*carom.models.fermi_pasta_ulam(3, omega=50.0), carom.StormerVerlet(), t1=10.0, h=1e-3)
    """

    beyond_limit: bool = eqx.field(default=False, static=True)

    handles = frozenset({Feature.MASS_MATRIX, Feature.MOVING_PAIRS, Feature.PAIR_MEMORY})
    gives = frozenset({Gives.WHOLE_STEPS, Gives.BACKWARD})
    derivative = Derivative.EXACT

    @property
    def order(self) -> int:
        """Two."""
        return 2

    def init(self, system: System, state: State) -> Array:
        """The acceleration at the start."""
        return system.mass_solve(state.t, state.q, system.conservative_force(state.t, state.q))

    def step(self, system: System, state: State, memory: Array, h: Array) -> Step:
        """One step."""
        friction = kick(system, state, h)
        start = friction.on(state)
        half = start.v + 0.5 * h * memory
        q = state.q + h * half
        a = system.mass_solve(state.t, q, system.conservative_force(state.t, q))
        count = evaluations(system, q.size, "midpoint")
        step = Step(state.moved(state.t + h, q, half + 0.5 * h * a), a, Info(evaluations=jnp.int32(count)))
        return friction.ended(state, step)
