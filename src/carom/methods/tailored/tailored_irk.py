r"""Two-stage implicit Runge-Kutta method whose numerical dissipation is the rate damping of the system.

[James2020 sec. 3.4]. The conservative system x'' = g(x) is stepped with the coefficients (64)-(66), a function of
C11 = gamma / (2 h) (58), so that the modified equation is x'' = g(x) + gamma Dg(x) x' up to O(h^3) (68). C11 = 0 is
Gauss-Legendre. Velocities are reported as

    x' = V + h C11 g(X) + (h^2 / 2) C11^2 Dg(X) V                                                             (69)

and the start uses V = x' - h C11 g(x) - (h^2 / 2) C11^2 Dg(x) x' (71), again whenever h changes.

`AdditiveTailoredIRK` is the additive extension that sec. 3.3 names: part a of the potential, with its own damping
gamma_a, gets the matrix A + (gamma_a / h - 2 C11) 1 w^T with w.1 = 1, w.c = 1/2, and the weights b. That keeps the
modified equation x'' = sum_a (g_a + gamma_a Dg_a x') up to O(h^3); the reported velocity has (gamma_a / h - C11) in
place of C11 in the first correction. Forces of the user are a part without damping. Damping that is no multiple of a
part, d/dt r(x), adds sum_j w_j r(X_j) to all stage velocities. The derivation is in docs/theory/tailored.md.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import TYPE_CHECKING, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.methods.base import AbstractMethod, Derivative, Gives
from carom.methods.runge_kutta.irk import neighbour_jacobian, newton_info
from carom.methods.tailored.damping import (
    damping_objection,
    damping_of,
    declared_damping,
    defect,
    dissipation,
    tailored_objection,
    velocity_caution,
)
from carom.names import register
from carom.solvers.newton import Newton
from carom.solvers.small import times
from carom.solvers.stages import PositionStages, conjugate_spectrum, solve_positions
from carom.state import State, Step
from carom.systems.features import Feature
from carom.systems.pair_friction import kick
from carom.systems.system import System
from carom.systems.terms import Part
from carom.tableaux.tailored import midpoint_weights, tailored_coefficients, tailored_part

_HANDLES = frozenset(
    {
        Feature.RATE_DAMPING,
        Feature.MASS_MATRIX,
        Feature.EXPLICIT_TIME,
        Feature.FORCES,
        Feature.MOVING_PAIRS,
        Feature.PAIR_MEMORY,
    }
)


class ScaledVelocity(eqx.Module):
    """The variable V of the scheme, valid for the step size `h`; h = 0 before the first step."""

    V: Array
    h: Array


class ForceGroup(eqx.Module):
    """Parts of the potential that share one rate damping h eta, or the forces of the user, which have none."""

    system: System
    parts: tuple[str, ...] = eqx.field(static=True)
    eta: Array

    def __call__(self, t: Array, q: Array) -> Array:
        """g_a(t, q) = -M^{-1} dV_a/dq."""
        system = self.system
        if not self.parts:
            return system.mass_solve(t, q, system.applied_force(t, q, jnp.zeros_like(q)))
        force = -jax.grad(lambda x: sum(system.part_energy(part, t, x) for part in self.parts))(q)
        return system.mass_solve(t, q, force)


class Remainder(eqx.Module):
    """r(t, q) of the damping that is no multiple of a part, beyond what is in the groups; `system` declares it."""

    system: System

    @classmethod
    def of(cls, system: System) -> list[Remainder]:
        """None, where every part has one number."""
        rates = {n: r if isinstance(r, Part) else r - jnp.max(r) for n, r in system.rate_damping.items()}
        left = {n: r for n, r in rates.items() if isinstance(r, Part) or r.ndim}
        return [cls(eqx.tree_at(lambda s: s.rate_damping, system, left))] if left else []

    def __call__(self, t: Array, q: Array) -> Array:
        """M^{-1} times the impulse whose rate damps."""
        return self.system.mass_solve(t, q, self.system.damped_impulse(t, q))


class TwoStages(AbstractMethod):
    """What both methods share; each has its `scheme`."""

    if TYPE_CHECKING:  # fields of each, in its own order
        newton: Newton
        convergent: bool

    handles = _HANDLES
    gives = frozenset({Gives.WHOLE_STEPS, Gives.LOCAL_ERROR})
    derivative = Derivative.EXACT
    least_growth = 1.5

    @property
    def order(self) -> int:
        """Order with the damping kept proportional to h."""
        return 3

    @property
    def error_orders(self) -> tuple[int, int]:
        """The powers of h of the defect of a step and of the error of a run."""
        return 4, 3

    def with_tolerances(self, rtol: Array, atol: Array) -> Self:
        """Errors must fall with h."""
        del rtol, atol
        return dataclasses.replace(self, convergent=True)

    def caution(self, system: System, state: State, longest: float | None, span: float) -> None:
        """No forces of velocities."""
        del longest, span
        velocity_caution(self, system, state)

    def init(self, system: System, state: State) -> ScaledVelocity:
        """V is set at the first step, when h is known."""
        return ScaledVelocity(state.v, jnp.zeros(()))

    @abc.abstractmethod
    def scheme(self, system: System, h: Array) -> Scheme:
        """The scheme of a step of size h."""

    def step(self, system: System, state: State, memory: ScaledVelocity, h: Array) -> Step:
        """One step."""
        return with_friction(self.scheme(system, h), state, memory, self)


@register
class TailoredIRK(TwoStages):
    """Tailored implicit Runge-Kutta method, third order for gamma = O(h).

    Args:
        damping: rate damping to imitate; None reads it from the system, another value than the system's is an error.
        newton: settings of the implicit solve.
        convergent: at steps below the damping take C11 = h / (2 gamma), and the rest of the damping directly, so that
            errors fall with h for a fixed damping (second order); `carom.Adaptive` switches it on.

    Every part of the potential must have the same rate damping; undamped attachments are refused. Forces of the user
    may depend on t and q, and are not damped.

    Example:
        >>> chain, state = carom.models.dimer_chain(25, mass_ratio=0.59, damping=0.06)
        >>> sol = carom.simulate(chain, state, carom.TailoredIRK(), t1=30.0, h=0.1)
    """

    damping: float | None = None
    newton: Newton = Newton()
    convergent: bool = eqx.field(default=False, static=True)

    def objection(self, system: System) -> str | None:
        """One uniform damping, on every part."""
        return tailored_objection(self, system) or damping_objection(self, system)

    def scheme(self, system: System, h: Array) -> Scheme:
        """All parts in one group."""
        gamma = declared_damping(system)
        return Scheme(system, dissipation(gamma, h, self.convergent), h, [(tuple(system.potential), gamma / h)])


@register
class AdditiveTailoredIRK(TwoStages):
    """Additive tailored implicit Runge-Kutta method: every part of the potential with its own rate damping.

    Any rate damping: another constant for every part or for every interaction, or the rate of another potential
    (`granular_chain(exponent=2)`). Forces of the user may depend on t and q, and are not damped.

    A part without damping keeps its amplitude to fourth order in z = h omega: it changes by (C11^3/2 - C11/12) z^4 per
    step, C11 = gamma / (2 h) with the largest gamma of the system. It decays for gamma < 0.816 h and grows for larger
    gamma; use `TailoredTheta` (which keeps such a part exactly) or a larger step there.

    Args:
        newton: settings of the implicit solve.
        convergent: at steps below the damping take C11 = h / (2 gamma), and the rest of the damping directly, so that
            errors fall with h for a fixed damping (second order); `carom.Adaptive` switches it on.

    Example:
        >>> cradle, state = carom.models.newtons_cradle(10, attachment=0.01, damping=0.3)
        >>> sol = carom.simulate(cradle, state, carom.AdditiveTailoredIRK(), t1=100.0, h=0.5)
    """

    newton: Newton = Newton()
    convergent: bool = eqx.field(default=False, static=True)

    def scheme(self, system: System, h: Array) -> Scheme:
        """Every part a group of its own."""
        parts = [((part,), damping_of(system, part) / h) for part in system.potential]
        return Scheme(system, dissipation(declared_damping(system), h, self.convergent), h, parts)


class Scheme(eqx.Module):
    """The scheme of one step: base coefficients of C11, every group of parts with its own damping."""

    system: System
    C11: Array
    h: Array
    groups: list[ForceGroup]
    rest: list[Remainder]

    def __init__(self, system: System, C11: Array, h: Array, parts: list[tuple[tuple[str, ...], Array]]):
        forces = [((), jnp.zeros(()))] if system.forces else []
        self.system, self.C11, self.h = system, C11, h
        self.groups = [ForceGroup(system, names, eta) for names, eta in (*parts, *forces)]
        self.rest = Remainder.of(system)

    @property
    def matrices(self) -> list[Array]:
        """A_a of every group."""
        return [jnp.asarray(tailored_part(self.C11, group.eta)) for group in self.groups]

    def total(self, t: Array, q: Array) -> Array:
        """g(t, q)."""
        system = self.system
        return system.mass_solve(t, q, system.conservative_force(t, q) + system.applied_force(t, q, jnp.zeros_like(q)))

    def correction(self, t: Array, q: Array, v: Array) -> Array:
        """x' - V of (69), (71)."""
        first = sum((group.eta - self.C11) * group(t, q) for group in self.groups)
        rate = jax.jvp(self.total, (t, q), (jnp.ones_like(t), v))[1]
        return self.h * first + 0.5 * (self.h * self.C11) ** 2 * rate + sum(r(t, q) for r in self.rest)


def with_friction(scheme: Scheme, state: State, memory: ScaledVelocity, method: TwoStages) -> Step:
    """One step; friction with memory acts before and after it."""
    friction = kick(scheme.system, state, scheme.h)
    start = friction.on(state)
    step = tailored_step(scheme, start, _kicked(scheme, memory, state, start), method)
    whole = friction.ended(state, step)
    memory = _kicked(scheme, step.memory, step.state, whole.state)
    return Step(whole.state, memory, whole.info, whole.pending, whole.pairs)


def _kicked(scheme: Scheme, memory: ScaledVelocity, before: State, after: State) -> ScaledVelocity:
    """V of (69) after a kick of the velocities."""
    if after is before:
        return memory
    old, new = (scheme.correction(before.t, before.q, v) for v in (before.v, after.v))
    return ScaledVelocity(memory.V + after.v - before.v - (new - old), memory.h)


def tailored_step(scheme: Scheme, state: State, memory: ScaledVelocity, method: TwoStages) -> Step:
    """One step."""
    system, C11, h = scheme.system, scheme.C11, scheme.h
    A, b = (jnp.asarray(x) for x in tailored_coefficients(C11))
    w, c, matrices = jnp.asarray(midpoint_weights(C11)), jnp.sum(A, 1), scheme.matrices
    V = jax.lax.cond(
        h == memory.h, lambda: memory.V, lambda: state.v - scheme.correction(state.t, state.q, state.v)
    )  # (71)
    stages = PositionStages(
        fields=[*scheme.groups, *scheme.rest],
        matrices=[*(h * h * times(A, m) for m in matrices), *(h * jnp.outer(c, w) for _ in scheme.rest)],
        times=state.t + c * h,
        start=state.q,
        offset=h * jnp.outer(c, V),
        stiffness=neighbour_jacobian(system),
    )
    scale = jnp.max(jnp.abs(state.q)) + h * jnp.max(jnp.abs(V))
    root = solve_positions(stages, scale, method.newton, conjugate_spectrum(h * A))
    g, r = root.aux[: len(matrices)], root.aux[len(matrices) :]
    X = state.q + h * V + h * h * sum(times(times(b, m), a) for m, a in zip(matrices, g))  # (44)
    X = X + h * sum(times(w, x) for x in r)
    V = V + h * sum(times(b, a) for a in g)  # (44)
    end = state.moved(state.t + h, X, V + scheme.correction(state.t + h, X, V))
    info = newton_info(root, method.newton, 2)
    if method.convergent:
        error = defect(system, state, end, h)
        info = eqx.tree_at(lambda i: i.local_error, info, error, is_leaf=lambda x: x is None)
    return Step(end, ScaledVelocity(V, h), info)
