r"""What the tailored methods of James2020 share: the damping, what numerical dissipation leaves of it, local errors.

A base scheme with the constant C damps all accelerations a = M^{-1} (-dV/dq + forces) alike: its modified equation has
the term 2 C h da/dt. The declared damping is dr/dt, r = M^{-1} (-dR/dq). What is left, s = r - 2 C h a, is added to the
scheme as a velocity; docs/theory/tailored.md derives it. Where r is gamma times an acceleration, 2 C h = gamma leaves
nothing, which is the paper's case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import names_of
from carom.methods.runge_kutta.jacobians import PairJacobian, has_pair_blocks
from carom.solvers.structure import Tridiagonal, acceleration_jacobian
from carom.state import State
from carom.systems.interactions import Interactions
from carom.systems.system import System
from carom.systems.terms import INTERACTIONS, Part


def damping_of(system: System, part: str) -> Array:
    """The largest rate damping of one part of the potential, in its own units of time; zero if none is declared."""
    rate = system.rate_damping.get(part, 0.0)
    return jnp.zeros(()) if isinstance(rate, Part) else jnp.max(jnp.asarray(rate))


def declared_damping(system: System) -> Array:
    """The largest rate damping of all parts of the potential."""
    return jnp.max(jnp.stack([jnp.zeros(()), *(damping_of(system, part) for part in system.rate_damping)]))


def dissipation(gamma: Array, h: Array, convergent: bool) -> Array:
    """C11 = gamma / (2 h), (41) and (58); `convergent`: h / (2 gamma) where that is smaller."""
    ratio = gamma / h
    return 0.5 * ratio / jnp.maximum(1.0, ratio * ratio) if convergent else 0.5 * ratio


class Blend(eqx.Module):
    """M^{-1} (whole f + rate r): accelerations, and the velocities r whose time derivatives damp.

    `undamped` is the damping, in units of time, of parts that declare none.
    """

    system: System
    whole: Array
    rate: Array
    undamped: Array

    @property
    def parts(self) -> Sequence[tuple[str | None, Part, Array]]:
        """Name in the potential, part and weight of every energy."""
        rates, potential = self.system.rate_damping, self.system.potential.items()
        own = [(n, part, self.whole + self.rate * _number(rates, n, self.undamped)) for n, part in potential]
        return own + [(None, r, self.rate) for r in rates.values() if isinstance(r, Part)]

    def energy(self, t: Array, q: Array) -> Array:
        """The energy of all parts, with their weights."""
        system, total = self.system, jnp.zeros((), q.dtype)
        for name, part, weight in self.parts:
            if isinstance(part, INTERACTIONS):
                total = total + (part.scaled(weight)(q) if weight.ndim else weight * part(q))
            else:
                plain = system.part_energy(name, t, q) if name else part(system.given, t=t, q=q)
                total = total + weight * jnp.asarray(plain, float).reshape(())
        return total

    def __call__(self, t: Array, q: Array, v: Array) -> Array:
        """At (t, q); v is for the forces of the user."""
        f = -jax.grad(lambda x: self.energy(t, x))(q)
        if self.system.forces:
            f = f + self.whole * self.system.applied_force(t, q, v)
        return self.system.mass_solve(t, q, f)

    def jacobian(self) -> ChainJacobian | PairJacobian | None:
        """That of a chain of neighbours, or of pairs of bodies; None for other systems."""
        system, parts = self.system, [part for _, part, _ in self.parts]
        if has_pair_blocks(system):
            return PairJacobian(system, {name: weight for name, _, weight in self.parts if name})
        chain = system.is_tridiagonal and system.has_neighbour_potential
        if not chain or not all(isinstance(p, Interactions) for p in parts):
            return None
        return ChainJacobian([p.scaled(w) for _, p, w in self.parts], system.mass)  # pyright: ignore


class ChainJacobian(eqx.Module):
    """Q -> d/dq of M^{-1} times the forces of interactions between neighbours."""

    parts: list[Interactions]
    mass: Array

    def __call__(self, q: Array) -> Tridiagonal:
        """The Jacobian at q."""
        diagonals, besides = zip(*(part.neighbour_hessian(q) for part in self.parts))
        return acceleration_jacobian(sum(diagonals), sum(besides), self.mass)  # pyright: ignore


def _number(rates: dict[str, Array | Part], name: str, otherwise: Array) -> Array:
    rate = rates.get(name)
    return otherwise if rate is None else jnp.zeros(()) if isinstance(rate, Part) else rate


def defect(system: System, start: State, end: State, h: Array) -> tuple[Array, Array]:
    """How far the ends of a step are from (10)-(11), q' = v and (v - r)' = a, by Hermite's quadrature.

    y_1 - y_0 - h/2 (y'_0 + y'_1) - h^2/12 (y''_0 - y''_1) with y = q and y = v - r: O(h^5) on a solution.
    """

    def a(t: Array, q: Array, v: Array) -> Array:
        return system.mass_solve(t, q, system.conservative_force(t, q) + system.applied_force(t, q, v))

    def r(t: Array, q: Array) -> Array:
        return system.mass_solve(t, q, system.damped_impulse(t, q))

    def rates(at: State) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
        one = jnp.ones_like(at.t)
        shift, damping = jax.jvp(r, (at.t, at.q), (one, at.v))
        v_rate = a(at.t, at.q, at.v) + damping
        a_now, a_rate = jax.jvp(a, (at.t, at.q, at.v), (one, at.v, v_rate))
        return (at.q, at.v, v_rate), (at.v - shift, a_now, a_rate)

    q, v = (
        y1 - y0 - h / 2 * (f0 + f1) - h * h / 12 * (d0 - d1)
        for (y0, f0, d0), (y1, f1, d1) in zip(rates(start), rates(end))
    )
    return q, v


def tailored_objection(method, system: System) -> str | None:
    """Why one damping cannot stand for the rate damping of this system; None if it can."""
    name, advice = type(method).__name__, "Use carom.AdditiveTailoredIRK or carom.TailoredTheta"
    foreign = [part for part, rate in system.rate_damping.items() if isinstance(rate, Part)]
    if foreign:
        return (
            f"{name} imitates damping of the form gamma d/dt(force of a part of the potential); "
            f"the rate damping {names_of(foreign)} is not of this form. {advice}"
        )
    values = {part: np.asarray(gamma) for part, gamma in system.rate_damping.items()}
    uneven = [part for part, gamma in values.items() if gamma.size > 1 and np.ptp(gamma) > 1e-14 * np.max(gamma)]
    if uneven:
        return f"{name} needs one damping, but rate_damping[{names_of(uneven)}] varies between interactions. {advice}"
    gammas = {part: float(np.max(values.get(part, 0.0))) for part in system.potential}
    if len(set(gammas.values())) > 1:
        listed = ", ".join(f"'{part}': {gamma:g}" for part, gamma in gammas.items())
        return f"{name} damps every part of the potential alike, but the system declares {listed}. {advice}"
    return None


def damping_objection(method, system: System) -> str | None:
    """Why the damping that a method was given is not that of the system; None if it is, or none was given."""
    name, given = type(method).__name__, method.damping
    if given is None:
        return None
    if np.ndim(given) or isinstance(given, str):
        return f"{name}: damping must be one number, got {given!r}"
    numbers = [np.max(np.asarray(rate)) for rate in system.rate_damping.values() if not isinstance(rate, Part)]
    largest = float(max(numbers, default=0.0))
    if float(given) != largest:
        return f"{name}(damping={float(given):g}) differs from the system's rate damping {largest:g}"
    return None


def velocity_caution(method, system: System, state: State) -> None:
    """Raise where a force of the user reads velocities, which the stages of the method do not have."""
    unknown: Any = np.full(state.v.shape, np.nan)
    for name in system.forces:
        if not np.isfinite(system.named_force(name, state.t, state.q, unknown)).all():
            msg = (
                f"{type(method).__name__} takes forces of t and q, but the force '{name}' depends on v. "
                f"Use carom.TailoredTheta, or carom.regularise with carom.IRK"
            )
            raise ValueError(msg)
