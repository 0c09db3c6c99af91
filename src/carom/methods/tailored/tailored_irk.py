r"""Two-stage implicit Runge-Kutta method whose numerical dissipation is the rate damping of the system.

[James2020 sec. 3.4]. The conservative system x'' = g(x) is stepped with the coefficients (64)-(66), a function of
C11 = gamma / (2 h) (58), so that the modified equation is x'' = g(x) + gamma Dg(x) x' up to O(h^3) (68). C11 = 0 is
Gauss-Legendre. Velocities are reported as

    x' = V + h C11 g(X) + (h^2 / 2) C11^2 Dg(X) V                                                             (69)

and the start uses V = x' - h C11 g(x) - (h^2 / 2) C11^2 Dg(x) x' (71), again whenever h changes.

`AdditiveTailoredIRK` is the additive extension that sec. 3.3 names: part a of the potential, with its own damping
gamma_a, gets the matrix A + (gamma_a / h - 2 C11) 1 w^T with w.1 = 1, w.c = 1/2, and the weights b. That keeps the
modified equation x'' = sum_a (g_a + gamma_a Dg_a x') up to O(h^3); the reported velocity has (gamma_a / h - C11) in
place of C11 in the first correction. The derivation is in docs/theory/tailored.md.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.methods.base import AbstractMethod, Derivative
from carom.methods.runge_kutta.irk import neighbour_jacobian, newton_info
from carom.methods.tailored.damping import damping_of, declared_damping, tailored_objection
from carom.names import register
from carom.solvers.newton import Newton
from carom.solvers.small import times
from carom.solvers.stages import PositionStages, conjugate_spectrum, solve_positions
from carom.state import State, Step
from carom.systems.features import Feature
from carom.systems.system import System
from carom.tableaux.tailored import tailored_coefficients, tailored_part


class ScaledVelocity(eqx.Module):
    """The variable V of the scheme, valid for the step size `h`; h = 0 before the first step."""

    V: Array
    h: Array


class ForceGroup(eqx.Module):
    """Parts of the potential that share one rate damping h eta."""

    parts: tuple[str, ...] = eqx.field(static=True)
    eta: Array

    def acceleration(self, system: System, t: Array, q: Array) -> Array:
        """g_a(q) = -M^{-1} dV_a/dq."""
        force = -jax.grad(lambda x: sum(system.part_energy(part, t, x) for part in self.parts))(q)
        return system.mass_solve(t, q, force)


@register
class TailoredIRK(AbstractMethod):
    """Tailored implicit Runge-Kutta method, third order for gamma = O(h).

    Args:
        damping: rate damping to imitate; None reads it from the system, another value than the system's is an error.
        newton: settings of the implicit solve.

    Every part of the potential must have the same rate damping; undamped attachments are refused.

    Example:
        >>> chain, state = carom.models.dimer_chain(25, mass_ratio=0.59, damping=0.06)
        >>> sol = carom.simulate(chain, state, carom.TailoredIRK(), t1=30.0, h=0.1)
    """

    damping: float | None = None
    newton: Newton = Newton()

    handles = frozenset({Feature.RATE_DAMPING, Feature.MASS_MATRIX, Feature.MOVING_PAIRS})
    derivative = Derivative.EXACT

    @property
    def order(self) -> int:
        """Order with the damping kept proportional to h."""
        return 3

    def objection(self, system: System) -> str | None:
        """One uniform damping, on every part."""
        return tailored_objection(self, system, every_part=True)

    def init(self, system: System, state: State) -> ScaledVelocity:
        """V is set at the first step, when h is known."""
        return ScaledVelocity(state.v, jnp.zeros(()))

    def step(self, system: System, state: State, memory: ScaledVelocity, h: Array) -> Step:
        """One step."""
        C11 = 0.5 * declared_damping(system) / h  # (58)
        whole = ForceGroup(tuple(system.potential), 2.0 * C11)
        return tailored_step(system, state, memory, h, C11, [whole], self.newton)


@register
class AdditiveTailoredIRK(AbstractMethod):
    """Additive tailored implicit Runge-Kutta method: every part of the potential with its own rate damping.

    A part without damping keeps its amplitude to fourth order in z = h omega: it changes by (C11^3/2 - C11/12) z^4 per
    step, C11 = gamma / (2 h) with the largest gamma of the system. It decays for gamma < 0.816 h and grows for larger
    gamma; use `TailoredTheta` (which keeps such a part exactly) or a larger step there.

    Args:
        newton: settings of the implicit solve.

    Example:
        >>> cradle, state = carom.models.newtons_cradle(10, attachment=0.01, damping=0.3)
        >>> sol = carom.simulate(cradle, state, carom.AdditiveTailoredIRK(), t1=100.0, h=0.5)
    """

    newton: Newton = Newton()
    damping: None = eqx.field(default=None, static=True)

    handles = frozenset({Feature.RATE_DAMPING, Feature.MASS_MATRIX, Feature.MOVING_PAIRS})
    derivative = Derivative.EXACT

    @property
    def order(self) -> int:
        """Order with the dampings kept proportional to h."""
        return 3

    def objection(self, system: System) -> str | None:
        """One uniform damping within each part."""
        singles = [eqx.tree_at(lambda s: s.rate_damping, system, {p: g}) for p, g in system.rate_damping.items()]
        return next((o for o in (tailored_objection(self, s, every_part=False) for s in singles) if o), None)

    def init(self, system: System, state: State) -> ScaledVelocity:
        """V is set at the first step, when h is known."""
        return ScaledVelocity(state.v, jnp.zeros(()))

    def step(self, system: System, state: State, memory: ScaledVelocity, h: Array) -> Step:
        """One step."""
        groups = [ForceGroup((part,), damping_of(system, part) / h) for part in system.potential]
        return tailored_step(system, state, memory, h, 0.5 * declared_damping(system) / h, groups, self.newton)


def tailored_step(
    system: System,
    state: State,
    memory: ScaledVelocity,
    h: Array,
    C11: Array,
    groups: list[ForceGroup],
    settings: Newton,
) -> Step:
    """One step: base coefficients of C11, every group of parts with its own matrix."""
    A, b = (jnp.asarray(x) for x in tailored_coefficients(C11))
    matrices = [jnp.asarray(tailored_part(C11, group.eta)) for group in groups]

    def g(q: Array) -> Array:
        return system.mass_solve(state.t, q, system.conservative_force(state.t, q))

    def correction(q: Array, v: Array) -> Array:  # (69), (71)
        first = sum((group.eta - C11) * group.acceleration(system, state.t, q) for group in groups)
        return h * first + 0.5 * (h * C11) ** 2 * jax.jvp(g, (q,), (v,))[1]

    V = jax.lax.cond(h == memory.h, lambda: memory.V, lambda: state.v - correction(state.q, state.v))  # (71)
    stages = PositionStages(
        fields=[eqx.Partial(group.acceleration, system, state.t) for group in groups],
        matrices=[h * h * times(A, matrix) for matrix in matrices],
        start=state.q,
        offset=h * jnp.outer(jnp.sum(A, 1), V),
        stiffness=neighbour_jacobian(system),
    )
    scale = jnp.max(jnp.abs(state.q)) + h * jnp.max(jnp.abs(V))
    root = solve_positions(stages, scale, settings, conjugate_spectrum(h * A))
    X = state.q + h * V + h * h * sum(times(times(b, m), a) for m, a in zip(matrices, root.aux))  # (44)
    V = V + h * sum(times(b, a) for a in root.aux)  # (44)
    memory = ScaledVelocity(V, h)
    return Step(state.moved(state.t + h, X, V + correction(X, V)), memory, newton_info(root, settings, 2))
