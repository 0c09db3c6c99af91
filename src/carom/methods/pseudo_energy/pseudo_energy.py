r"""Explicit scheme that conserves a pseudo-energy for any sequence of steps [Marazzato2019 sec. 2].

Momenta are constant between nodes and jump at them. With velocities `v^{n+1/2} = M^{-1} p^{n+1/2}`,

    v^{n+1/2} = v^{n-1/2} + w^n                                                                               (3a)
    q^{n+1}   = q^n + h v^{n+1/2}                                                                             (3b)
    (w^{n+1} + w^n) / 2 = a,   a = M^{-1} h sum_i b_i f(q^n + c_i h v^{n+1/2})                                (10)

w = M^{-1} [p] the jump. The state holds the mean `v^n = (v^{n-1/2} + v^{n+1/2}) / 2`, so that (10) reads
`v^{n+1} = v^n + a`, `w^{n+1} = 2 a - w^n`; a step of negative size leaves the node on the other side, `v^n - w^n / 2`
(proof of Prop. 4). Where the quadrature is exact the pseudo-energy (13)

    H~^n = V(q^n) + v^{n-1/2} M v^{n+1/2} / 2 = H^n - w^n M w^n / 8                                           (18)

is constant; H^n is the energy (17) of the state. Applied forces (damping, driving) act at mid-flight,

    F = h f(t + h/2, q^n + h v^{n+1/2} / 2, v^n + (a + M^{-1} F) / 2),

by `corrections` iterations from `F = 0` on the right, and change H~ by exactly the work `v^{n+1/2} . F`, converged or
not. Taking them at v^{n+1/2} instead would excite the parasitic root of the two-step scheme, which then grows as fast
as the damping should decay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import whole
from carom.methods.base import Derivative, Gives
from carom.methods.pseudo_energy.quadrature import impulse, rule
from carom.methods.stability import LimitedMethod
from carom.names import register
from carom.running.compiled import compiled
from carom.state import Info, State, Step
from carom.systems.features import Feature
from carom.systems.system import System
from carom.systems.terms import INTERACTIONS

STARTS = ("jump-free", "one-step")


class Jump(eqx.Module):
    """What a two-step scheme remembers at a node.

    `w` is the velocity jump, `force` that at q^n (rules that share nodes), `work` that of the applied forces so far,
    `factor` the Cholesky factor of a dense mass, `fresh` whether w still is an acceleration to be scaled by h.
    """

    w: Array
    force: Array | None
    work: Array | None
    factor: Array | None
    fresh: Array | None


@register
class PseudoEnergy(LimitedMethod):
    """Explicit scheme of second order that conserves the pseudo-energy (13) for any steps, if the quadrature is exact.

    Args:
        quadrature: "midpoint", "gauss-n" or "lobatto-n"; exact for potentials of degree 2, 2n and 2n - 2.
        start: "jump-free", the start (5), or "one-step", with the jump `h M^{-1} f(q^0)` of a leapfrog start.
        beyond_limit: run even if h lies above the stability limit (16).
        corrections: of the velocity that applied forces see; one keeps the order, three that of `Composed`.

    The account has `pseudo_energy` (13), `gap` (18), the momentum-like `jump`, and `balance`: the change of the
    pseudo-energy less the work of applied forces, zero up to quadrature errors.

    Example:
        >>> chain, state = carom.models.fermi_pasta_ulam(3, omega=50.0)
        >>> sol = carom.simulate(chain, state, carom.PseudoEnergy("gauss-2"), t1=200.0, h=1e-3)
    """

    quadrature: str = eqx.field(default="midpoint", static=True)
    start: str = eqx.field(default="jump-free", static=True)
    beyond_limit: bool = eqx.field(default=False, static=True)
    corrections: int = eqx.field(default=1, static=True)

    handles = frozenset({Feature.MASS_MATRIX, Feature.FORCES, Feature.RATE_DAMPING, Feature.MOVING_PAIRS})
    gives = frozenset({Gives.WHOLE_STEPS, Gives.MOMENTUM_JUMP})
    derivative = Derivative.EXACT

    def __check_init__(self):
        rule(self.quadrature)
        if self.start not in STARTS:
            msg = f"PseudoEnergy: start must be 'jump-free' or 'one-step', got {self.start!r}"
            raise ValueError(msg)
        whole(self.corrections, "corrections", 1)

    @property
    def order(self) -> int:
        """Two, whatever the quadrature [Thm 5]."""
        return 2

    def init(self, system: System, state: State) -> Jump:
        """No jump (5), or the acceleration that the first step turns into one."""
        force = system.conservative_force(state.t, state.q)
        M = system.mass_at(state.t, state.q)
        leap = self.start == "one-step"
        return Jump(
            w=system.mass_solve(state.t, state.q, force) if leap else jnp.zeros_like(state.v),
            force=force if rule(self.quadrature).shared else None,
            work=jnp.zeros(()) if _is_driven(system) else None,
            factor=jnp.linalg.cholesky(M) if M.ndim == 2 and not hasattr(M, "solve") else None,
            fresh=jnp.asarray(True) if leap else None,
        )

    def step(self, system: System, state: State, memory: Jump, h: Array) -> Step:
        """One step."""
        t, q, v, side = state.t, state.q, state.v, jnp.sign(h)
        w = memory.w if memory.fresh is None else memory.w * jnp.where(memory.fresh, jnp.abs(h), 1.0)
        u = v + 0.5 * side * w  # (3a)

        def force(x: Array) -> Array:
            return system.conservative_force(t, x)

        total, last = impulse(force, rule(self.quadrature), q, u, h, memory.force)  # (9)
        a = _solve(system, memory, state, total)
        work = memory.work
        if work is not None:
            applied = self._applied(system, memory, state, u, a, h)
            a = a + _solve(system, memory, state, applied)
            work = work + jnp.vdot(u, applied)
        jump = 2.0 * side * a - w  # (10)
        extra = {"jump": jump} | ({} if work is None else {"work": work})
        fresh = None if memory.fresh is None else jnp.zeros_like(memory.fresh)
        return Step(
            state.moved(t + h, q + h * u, v + a),  # (3b)
            Jump(jump, last, work, memory.factor, fresh),
            Info(evaluations=jnp.int32(evaluations(system, q.size, self.quadrature)), extra=extra),
        )

    def _applied(self, system: System, memory: Jump, state: State, u: Array, a: Array, h: Array) -> Array:
        """Impulse of the applied forces and of rate damping at mid-flight."""
        t, q = state.t + 0.5 * h, state.q + 0.5 * h * u

        def force(v: Array) -> Array:
            f = system.applied_force(t, q, v)
            if system.rate_damping:
                f = f + system.damping_force(t, q, v)
            return f

        return applied_impulse(
            force, lambda f: _solve(system, memory, state, f), state.v + 0.5 * a, h, self.corrections
        )

    def evidence(self, solution: Any, energy: np.ndarray) -> dict[str, np.ndarray]:
        """Pseudo-energy (13), gap (18), and the balance of the pseudo-energy."""
        jump = np.array(solution.columns["extra.jump"])
        if self.start == "one-step" and len(solution) > 1:
            start, system = (solution.elapsed[0], jnp.asarray(solution.q[0])), solution.running
            jump[0] = solution.h[1] * system.mass_solve(*start, system.conservative_force(*start))
        return pseudo_energies(solution, energy, jump)


def pseudo_energies(solution: Any, energy: np.ndarray, jump: np.ndarray) -> dict[str, np.ndarray]:
    """Pseudo-energy (13), gap (18) and balance, from the energy (17) and the jumps."""
    gap = 0.25 * np.asarray(_kinetic(solution.running, solution.elapsed, solution.q, jump))  # (18)
    pseudo = energy - gap
    return {
        "pseudo_energy": pseudo,
        "gap": gap,
        "balance": pseudo - pseudo[0] - solution.columns.get("extra.work", 0.0),
    }


def evaluations(system: System, n: int, quadrature: str) -> int:
    """Interactions times new quadrature points; a potential given as a function counts as one interaction."""
    parts = system.potential.values()
    return rule(quadrature).evaluations * sum(p.count(n) if isinstance(p, INTERACTIONS) else 1 for p in parts)


def _is_driven(system: System) -> bool:
    return bool(system.forces or system.rate_damping)


def _solve(system: System, memory: Jump, state: State, f: Array) -> Array:
    if memory.factor is not None:
        return jax.scipy.linalg.cho_solve((memory.factor, True), f)
    return system.mass_solve(state.t, state.q, f)


def applied_impulse(
    force: Callable[[Array], Array], solve: Callable[[Array], Array], middle: Array, h: Array, corrections: int
) -> Array:
    """`F = h force(middle + M^{-1} F / 2)` by fixed-point iteration; `middle` is the mean velocity without F."""
    impulse = h * force(middle)
    for _ in range(corrections):
        impulse = h * force(middle + 0.5 * solve(impulse))
    return impulse


@compiled
def _kinetic(system: System, t: Any, q: Any, v: Any) -> Array:
    rows = (jnp.asarray(t), jnp.asarray(q), jnp.asarray(v))
    return jax.lax.map(lambda row: system.kinetic_energy(*row), rows)
