r"""Fourth order by symmetric composition of a two-step scheme.

The map `Phi_h` of (q, v, w) is symmetric but does not tend to the identity with h: it turns w into -w. Two of its steps
do, `Psi_{2h} = Phi_h o Phi_h`, a symmetric method of order two for q' = v, v' = M^{-1} f, w' = 0. Its error expansion
is not even, though: it moves w by `2 h |h| M^{-1} Df v`, a term of degree two that is odd in h, so the usual triple
jump stays at order two. A palindrome

    Psi_{g_1 h} o ... o Psi_{g_s h},    sum g_i = 1,   sum g_i |g_i| = 0,   sum g_i^3 = 0

has order four in (q, v): what remains at degree four changes w alone, by O(h^3) in all, and w enters (q, v) times h^2.
carom takes g = (a, a, a, a, -b, c, -b, a, a, a, a), the shortest kind with max |g_i| near one.

What survives: the pseudo-energy, which every base step conserves whatever its sign (exact quadrature); momentum;
reversibility. What is lost: 22 base steps per step, and a stability limit of 1.9 base limits per step.

Applied forces keep the order and the exact balance of the pseudo-energy, if their velocity is corrected three times:
then it differs from that of a symmetric step by O(h^5), after one or two corrections by terms that leave order three.
Reversibility holds to the same order only. Base steps reach 0.023 h beyond both ends, so forces must not jump in time.
The derivation is in docs/theory/pseudo_energy.md.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.methods.base import AbstractMethod, Derivative, Gives
from carom.methods.pseudo_energy.asynchronous import AsynchronousPseudoEnergy
from carom.methods.pseudo_energy.pseudo_energy import PseudoEnergy
from carom.methods.stability import warn_if_torn
from carom.names import register
from carom.state import Info, State, Step
from carom.systems.features import Feature
from carom.systems.system import System

_CORRECTIONS = 3  # of the velocity that applied forces see; fewer leave order three


def composition() -> np.ndarray:
    """The eleven g_i. With b = 1 before scaling, `8 a^2 + c^2 = 2` and `8 a^3 + c^3 = 2`, c > 1, by Newton's method."""
    c = 1.25
    for _ in range(50):
        a = np.sqrt((2 - c * c) / 8)
        c -= (8 * a**3 + c**3 - 2) / (3 * c * (c - a))
    a = np.sqrt((2 - c * c) / 8)
    return np.array([a, a, a, a, -1, c, -1, a, a, a, a]) / (8 * a + c - 2)


@register
class Composed(AbstractMethod):
    """`PseudoEnergy` or `AsynchronousPseudoEnergy` composed with itself to order four.

    Args:
        base: the scheme, with the jump-free start.

    Conserves the pseudo-energy and the momentum exactly and stays reversible; with applied forces the pseudo-energy
    changes by exactly their work, and `corrections` is raised to three. One step is 22 base steps, the longest of
    0.52 h.

    Example:
        >>> method = carom.Composed(carom.PseudoEnergy("gauss-2"))
    """

    base: PseudoEnergy | AsynchronousPseudoEnergy

    handles = frozenset({Feature.MASS_MATRIX, Feature.FORCES, Feature.RATE_DAMPING})
    gives = frozenset({Gives.WHOLE_STEPS, Gives.MOMENTUM_JUMP})
    derivative = Derivative.EXACT

    def __init__(self, base: PseudoEnergy | AsynchronousPseudoEnergy):
        if not isinstance(base, (PseudoEnergy, AsynchronousPseudoEnergy)):
            msg = f"Composed: base must be PseudoEnergy or AsynchronousPseudoEnergy, got {type(base).__name__}"
            raise TypeError(msg)
        if getattr(base, "start", "jump-free") != "jump-free":
            msg = "Composed: base needs the start 'jump-free'; a jump of size h would lower the order"
            raise ValueError(msg)
        self.base = dataclasses.replace(base, corrections=max(base.corrections, _CORRECTIONS))

    @property
    def order(self) -> int:
        """Four."""
        return 4

    @property
    def fractions(self) -> np.ndarray:
        """Sizes of the base steps relative to h."""
        return np.repeat(0.5 * composition(), 2)

    def objection(self, system: System) -> str | None:
        """What the base objects to, and forces that jump."""
        if unhandled := sorted(system.features - self.base.handles):
            return f"Composed: {type(self.base).__name__} does not handle {unhandled[0]}"
        if system.forces and system.jumps.size:
            return "Composed: base steps reach beyond the ends of a step, so forces must not jump; use the base alone"
        return None

    def caution(self, system: System, state: State, longest: float | None, span: float) -> None:
        """As the base, for the largest of its steps."""
        largest = None if longest is None else longest * float(np.max(np.abs(self.fractions)))
        self.base.caution(system, state, largest, span)

    def review(self, solution: Any) -> None:
        """Look at the gap."""
        warn_if_torn(solution)

    @property
    def concrete_init(self) -> bool:
        """As the base."""
        return self.base.concrete_init

    def init(self, system: System, state: State) -> Any:
        """The base's memory."""
        return self.base.init(system, state)

    def step(self, system: System, state: State, memory: Any, h: Array) -> Step:
        """One step: the base's, forward and backward."""
        sizes = h * jnp.asarray(self.fractions)

        def substep(i: Array, loop: tuple[State, Any, Array]) -> tuple[State, Any, Array]:
            step = self.base.step(system, loop[0], loop[1], sizes[i])
            return step.state, step.memory, loop[2] + step.info.evaluations

        start = (state, memory, jnp.zeros((), jnp.int32))
        end, memory, count = jax.lax.fori_loop(0, sizes.size, substep, start)
        extra = {"jump": memory.w} | ({} if memory.work is None else {"work": memory.work})
        info = Info(evaluations=count, extra=extra)
        return Step(end.moved(state.t + h, end.q, end.v), memory, info)

    def evidence(self, solution: Any, energy: np.ndarray) -> dict[str, np.ndarray]:
        """The base's."""
        return self.base.evidence(solution, energy)
