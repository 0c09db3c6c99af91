r"""Additive theta method whose numerical dissipation is the rate damping of the system [James2020 sec. 3.2].

The conservative system is stepped; damped parts of the potential (force f_c) and undamped parts (f_l) get different
weights of the new state:

    X^{k+1} = X^k + h (theta V^{k+1} + (1 - theta) V^k)                                                       (34)
    M V^{k+1} = M V^k + h (theta f_c^{k+1} + (1 - theta) f_c^k + (1 - mu) f_l^{k+1} + mu f_l^k)                (34)
    theta = 1/2 + gamma / (2 h),   mu = theta                                                                 (41)

mu weighs the *old* position. The scheme imitates the damping gamma on f_c and h (theta - mu) on f_l: none for
mu = theta, gamma_l for mu = theta - gamma_l / h. Velocities are reported as x' = V + h (theta - 1/2) M^{-1} (f_c + f_l)
(43); the start inverts that.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.methods.base import AbstractMethod, Derivative
from carom.methods.runge_kutta.irk import neighbour_jacobian, newton_info
from carom.methods.runge_kutta.theta import one_stage
from carom.methods.tailored.damping import declared_damping, tailored_objection
from carom.names import register
from carom.solvers.newton import Newton
from carom.solvers.stages import PositionStages, solve_positions
from carom.state import State, Step
from carom.systems.features import Feature
from carom.systems.pair_friction import kick
from carom.systems.system import System


class Weighted(eqx.Module):
    """M^{-1} (damped f_c + undamped f_l): accelerations with one weight for each kind of part."""

    system: System
    damped: Array
    undamped: Array

    @property
    def weights(self) -> dict[str, Array]:
        """The weight of every part of the potential."""
        system = self.system
        return {name: self.damped if name in system.rate_damping else self.undamped for name in system.potential}

    def __call__(self, t: Array, q: Array) -> Array:
        """The accelerations at (t, q)."""
        system, weights = self.system, self.weights
        total = -jax.grad(lambda x: sum(w * system.part_energy(n, t, x) for n, w in weights.items()))(q)
        return system.mass_solve(t, q, total)


@register
class TailoredTheta(AbstractMethod):
    """Additive theta method for conservative systems with declared rate damping, second order for gamma = O(h).

    Args:
        damping: rate damping to imitate; None reads it from the system, another value than the system's is an error.
        mu: weight of the old position in the undamped parts; None takes mu = theta, no damping of those parts.
        newton: settings of the implicit solve.

    It does not converge for a fixed damping and h -> 0 (theta grows without bound): use it at steps of the size of the
    damping constant or larger.

    Example:
        >>> cradle, state = carom.models.newtons_cradle(10, attachment=0.01, damping=0.3)
        >>> sol = carom.simulate(cradle, state, carom.TailoredTheta(), t1=100.0, h=0.5)
    """

    damping: float | None = None
    mu: float | None = None
    newton: Newton = Newton()

    handles = frozenset(
        {Feature.RATE_DAMPING, Feature.EXPLICIT_TIME, Feature.MASS_MATRIX, Feature.MOVING_PAIRS, Feature.PAIR_MEMORY}
    )
    derivative = Derivative.EXACT

    @property
    def order(self) -> int:
        """Order with the damping kept proportional to h."""
        return 2

    def objection(self, system: System) -> str | None:
        """One uniform damping, on at least one part."""
        return tailored_objection(self, system, every_part=False)

    def init(self, system: System, state: State) -> None:
        """No memory: (43) is inverted exactly at every step."""

    def step(self, system: System, state: State, memory: None, h: Array) -> Step:
        """One step; friction with memory acts before and after it."""
        friction = kick(system, state, h)
        return friction.ended(state, self._step(system, friction.on(state), h))

    def _step(self, system: System, state: State, h: Array) -> Step:
        gamma = declared_damping(system)
        theta = 0.5 + 0.5 * gamma / h  # (41)
        mu = theta if self.mu is None else jnp.asarray(self.mu)

        def correction(t: Array, q: Array) -> Array:  # (43)
            one = jnp.ones(())
            return h * (theta - 0.5) * Weighted(system, one, one)(t, q)

        t1 = state.t + h
        V = state.v - correction(state.t, state.q)
        old, new = Weighted(system, 1 - theta, mu)(state.t, state.q), Weighted(system, theta, 1 - mu)
        stages = PositionStages(
            fields=[eqx.Partial(new, t1)],
            matrices=[h * h * theta * jnp.ones((1, 1))],
            start=state.q,
            offset=h * (V + h * theta * old)[None],
            stiffness=neighbour_jacobian(system, new.weights),
        )
        scale = jnp.max(jnp.abs(state.q)) + h * jnp.max(jnp.abs(V))
        root = solve_positions(stages, scale, self.newton, one_stage(h * jnp.sqrt(theta)))
        v = V + h * (old + root.aux[0][0])  # (34)
        q = state.q + h * (theta * v + (1 - theta) * V)  # (34)
        return Step(state.moved(t1, q, v + correction(t1, q)), None, newton_info(root, self.newton, 1))
