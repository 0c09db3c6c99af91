r"""Additive theta method whose numerical dissipation is the rate damping of the system [James2020 sec. 3.2].

The conservative system is stepped; every part of the potential (force f_a, damping gamma_a) has its own weight of the
new state:

    X^{k+1} = X^k + h (theta V^{k+1} + (1 - theta) V^k)                                                       (34)
    M V^{k+1} = M V^k + h sum_a (theta_a f_a^{k+1} + (1 - theta_a) f_a^k)                                     (34)
    theta = 1/2 + gamma / (2 h),   theta_a = 1 - theta + gamma_a / h                                          (41)

with gamma the largest gamma_a. The paper has two kinds of parts: contacts, theta_a = theta, and attachments,
theta_a = 1 - mu with mu = theta; mu weighs the *old* position, and damps those by h (theta - mu). Damping that is no
multiple of a part, d/dt r(x), adds r^{k+1} - r^k to the second line. Forces of the user are a part without damping.
Velocities are reported as x' = V + h (theta - 1/2) M^{-1} sum_a f_a (43); a step begins with that solved for V, so that
h may change from step to step.
"""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from carom.methods.base import AbstractMethod, Derivative, Gives
from carom.methods.runge_kutta.irk import newton_info
from carom.methods.runge_kutta.theta import one_stage
from carom.methods.tailored.damping import Blend, damping_objection, declared_damping, defect, dissipation
from carom.names import register
from carom.solvers.newton import Newton
from carom.solvers.stages import PositionStages, solve_positions
from carom.state import State, Step
from carom.systems.features import Feature
from carom.systems.pair_friction import kick
from carom.systems.system import System


@register
class TailoredTheta(AbstractMethod):
    """Additive theta method for systems with declared rate damping, second order for gamma = O(h).

    Any rate damping: another constant for every part of the potential, or for every interaction, or the rate of another
    potential (`granular_chain(exponent=2)`); forces of the user are not damped.

    Args:
        damping: rate damping to imitate, the largest one of the system; None reads it from the system, another value is
            an error.
        mu: weight of the old position in the undamped parts; None takes mu = theta, no damping of those parts.
        newton: settings of the implicit solve.
        convergent: at steps below the damping take theta = 1/2 + h / (2 gamma), and the rest of the damping directly.
            Without it, as in the paper, theta grows without bound and errors do not fall below O(gamma^2).
            `carom.Adaptive`, which may need such steps, switches it on.

    Example:
        >>> cradle, state = carom.models.newtons_cradle(10, attachment=0.01, damping=0.3)
        >>> sol = carom.simulate(cradle, state, carom.TailoredTheta(), t1=100.0, h=0.5)
    """

    damping: float | None = None
    mu: float | None = None
    newton: Newton = Newton()
    convergent: bool = eqx.field(default=False, static=True)

    handles = frozenset(
        {
            Feature.RATE_DAMPING,
            Feature.EXPLICIT_TIME,
            Feature.MASS_MATRIX,
            Feature.FORCES,
            Feature.MOVING_PAIRS,
            Feature.PAIR_MEMORY,
        }
    )
    gives = frozenset({Gives.WHOLE_STEPS, Gives.LOCAL_ERROR})
    derivative = Derivative.EXACT
    least_growth = 1.5
    newer_emitters = True  # .8 of the time (1000 beads, 256 chains of 25), .3 s more to compile

    @property
    def order(self) -> int:
        """Order with the damping kept proportional to h."""
        return 2

    @property
    def error_orders(self) -> tuple[int, int]:
        """The powers of h of the defect of a step and of the error of a run."""
        return 3, 2

    def with_tolerances(self, rtol: Array, atol: Array) -> TailoredTheta:
        """Errors must fall with h."""
        del rtol, atol
        return dataclasses.replace(self, convergent=True)

    def objection(self, system: System) -> str | None:
        """The given damping is that of the system."""
        return damping_objection(self, system)

    def init(self, system: System, state: State) -> None:
        """No memory: (43) is inverted exactly at every step."""

    def step(self, system: System, state: State, memory: None, h: Array) -> Step:
        """One step; friction with memory acts before and after it."""
        friction = kick(system, state, h)
        return friction.ended(state, self._step(system, friction.on(state), h))

    def _step(self, system: System, state: State, h: Array) -> Step:
        C = dissipation(declared_damping(system), h, self.convergent)
        theta, one, none = 0.5 + C, jnp.ones(()), jnp.zeros(())  # (41)
        undamped = none if self.mu is None else h * (theta - jnp.asarray(self.mu))
        whole = Blend(system, one, none, none)
        old, new = Blend(system, theta, -1 / h, undamped), Blend(system, 1 - theta, 1 / h, undamped)
        t1, ahead = state.t + h, h * C * whole(state.t, state.q, state.v)
        V = state.v - ahead  # (43)
        F = old(state.t, state.q, state.v)
        field = AtEnd(new, state.q, (1 / theta - 1) * V - ahead, h * theta)
        stages = PositionStages(
            fields=[field],
            matrices=[h * h * theta * jnp.ones((1, 1))],
            times=t1[None],
            start=state.q,
            offset=h * (V + h * theta * F)[None],
            stiffness=new.jacobian(),
        )
        scale = jnp.max(jnp.abs(state.q)) + h * jnp.max(jnp.abs(V))
        root = solve_positions(stages, scale, self.newton, one_stage(h * jnp.sqrt(theta)))
        v = V + h * (F + root.aux[0][0])  # (34)
        q = state.q + h * (theta * v + (1 - theta) * V)  # (34)
        end = state.moved(t1, q, v + h * C * whole(t1, q, field.velocity(q)))  # (43)
        info = newton_info(root, self.newton, 1)
        if self.convergent:
            error = defect(system, state, end, h)
            info = eqx.tree_at(lambda i: i.local_error, info, error, is_leaf=lambda x: x is None)
        return Step(end, None, info)


class AtEnd(eqx.Module):
    """The accelerations at the end of a step as a function of the position there, which tells the velocity too."""

    blend: Blend
    start: Array
    less: Array
    span: Array

    def velocity(self, q: Array) -> Array:
        """V of (34), with the correction (43) of the start: x' up to O(h^2)."""
        return (q - self.start) / self.span - self.less

    def __call__(self, t: Array, q: Array) -> Array:
        """The accelerations."""
        return self.blend(t, q, self.velocity(q))
