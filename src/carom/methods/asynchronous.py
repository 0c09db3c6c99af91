r"""The pseudo-energy scheme with several rates in one step [Marazzato2019 sec. 4], for any number of levels.

During a step h of the slow particles the fast and mixed ones take `ratio` steps. Every particle flies freely through
its own steps (22), (24); an interaction is integrated over the steps of its fastest particle, and each of its particles
collects the impulse until its own next node (21b), (23), (25b). Where the quadrature is exact the pseudo-energy (26) is
conserved at the slow nodes [Prop. 9]; the proof holds level by level, so it nests.

Conservation does not give stability: the coarse map of a linear system can have eigenvalues outside the unit circle at
isolated steps and ratios (the paper's own run has). `caution` looks for them before the run.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.methods.base import AbstractMethod
from carom.methods.pseudo_energy import pseudo_energies
from carom.methods.quadrature import impulse, rule
from carom.methods.stability import StabilityWarning, refuse_unstable, stability_limit, warn_if_torn
from carom.methods.zones import Named, levels, named, zones
from carom.solvers.spectral import growth, start_vector
from carom.state import Info, State, Step
from carom.systems.system import System

_WORK = 2e7  # particles times fine steps spent on the search for a resonance, a step costing at least 1000 particles
_GROWTH = 3.0  # logarithm of the growth in its second half that counts as one; powers of t give less


class Rates(eqx.Module):
    """Velocity jumps, forces at the node per level (rules that share nodes), and the zones."""

    w: Array
    forces: tuple[Array | None, ...]
    zones: tuple[Any, ...]


class AsynchronousPseudoEnergy(AbstractMethod):
    """Pseudo-energy scheme in which named parts step `ratio` times faster than the rest; h is the slow step.

    Args:
        fast: parts of the potential, by name, or the particles that feel only fast forces: a slice (the fast path) or
            any indices. With several levels a list, each inside the one before.
        ratio: fast steps per slow step; with several levels a list, each relative to the level before.
        quadrature: as for `PseudoEnergy`.
        shift: rings of neighbours by which the mixed particles are moved into the slower medium (cures resonances).
        beyond_limit: run even if a step lies above the stability limit of its level.

    Example:
        >>> wave, state = carom.models.inhomogeneous_wave(2000)
        >>> method = carom.AsynchronousPseudoEnergy("layer 0", ratio=10)
        >>> sol = carom.simulate(wave, state, method, t1=0.5, h=2.5e-4)
    """

    fast: tuple[Named, ...] = eqx.field(static=True)
    ratio: tuple[int, ...] = eqx.field(static=True)
    quadrature: str = eqx.field(static=True)
    shift: int = eqx.field(static=True)
    beyond_limit: bool = eqx.field(static=True)

    handles = frozenset()
    gives = frozenset({"momentum jump"})

    def __init__(
        self,
        fast: Any,
        ratio: int | Sequence[int],
        quadrature: str = "midpoint",
        shift: int = 0,
        beyond_limit: bool = False,
    ):
        several = isinstance(ratio, (Sequence, np.ndarray))
        self.ratio = tuple(_whole(r, "ratio", 1) for r in ratio) if several else (_whole(ratio, "ratio", 1),)
        sets = list(fast) if several else [fast]
        if len(sets) != len(self.ratio):
            msg = f"fast and ratio must name as many levels: got {len(sets)} and {len(self.ratio)}"
            raise ValueError(msg)
        self.fast = tuple(named(f) for f in sets)
        rule(quadrature)
        self.quadrature = quadrature
        self.shift = _whole(shift, "shift", 0)
        self.beyond_limit = bool(beyond_limit)

    @property
    def order(self) -> int:
        """Two."""
        return 2

    def caution(self, system: System, state: State, longest: float | None, span: float) -> None:
        """Hold the steps against the limit of their level, and look for a resonance of the levels."""
        level = levels(system, state.q.size, self.fast, self.shift)
        if longest is None:
            return
        for depth, fraction in enumerate(np.cumprod([1, *self.ratio])):
            limit = stability_limit(system, state, level == depth)
            refuse_unstable(longest / fraction, limit, self.beyond_limit, f" of level {depth}")
        radius = spectral_radius(self, system, state, longest, span)
        if radius > 1:
            msg = (
                f"resonance: the linearised coarse map has spectral radius {radius:.4f} > 1 at h = {longest:.6g} and "
                f"ratio {', '.join(map(str, self.ratio))}, so errors grow like {radius:.4f}^n. Reduce h, change the "
                f"ratio, or move the mixed particles into the slower medium (shift={self.shift + 1})"
            )
            warnings.warn(msg, StabilityWarning, stacklevel=5)

    def review(self, solution: Any) -> None:
        """Look at the gap."""
        warn_if_torn(solution)

    @property
    def concrete_init(self) -> bool:
        """The zones follow from the indices of the interactions."""
        return True

    def init(self, system: System, state: State) -> Rates:
        """No jump (5); the zones follow from the system."""
        n = state.q.size
        found = zones(system, levels(system, n, self.fast, self.shift))
        forces, q = [], state.q
        for depth, zone in enumerate(found):
            q = zone.take(q) if depth else q
            forces.append(_force(system, zone, n)(q) if rule(self.quadrature).shared else None)
        return Rates(jnp.zeros_like(state.v), tuple(forces), found)

    def step(self, system: System, state: State, memory: Rates, h: Array) -> Step:
        """One slow step."""
        motion = (state.q, state.v, memory.w)
        mass = system.mass_at(state.t, state.q)
        (q, v, w), forces, _ = self._flight(system, state.q.size, memory.zones, motion, mass, memory.forces, h)
        info = Info(evaluations=jnp.int32(self.evaluations(memory.zones)), extra={"jump": w})
        return Step(state.moved(state.t + h, q, v), Rates(w, forces, memory.zones), info)

    def _flight(
        self, system: System, n: int, levels: tuple, motion: tuple, mass: Array, forces: tuple, h: Array
    ) -> tuple:
        """Particles of `levels[0]` fly for h, those inside it meanwhile step faster.

        Returns the motion, the forces at its end, and the impulse on the halo.
        """
        zone, *inner = levels
        q, v, w = motion
        side = jnp.sign(h)
        u = v + 0.5 * side * w
        a, last = impulse(_force(system, zone, n), rule(self.quadrature), q, u, h, forces[0])  # (21b), (25b)
        deeper = forces[1:]
        sub: tuple = ()
        if inner:
            z, r = inner[0], self.ratio[len(self.ratio) - len(inner)]
            sub = (z.take(q), z.keep(z.take(v), z.take(u)), z.keep(z.take(w), 0.0))
            sub_mass = z.take(mass)

            def substep(_, loop: tuple) -> tuple:
                sub, deeper, collected = loop
                sub, deeper, halo = self._flight(system, n, tuple(inner), sub, sub_mass, deeper, h / r)
                return sub, deeper, collected + halo

            start = (sub, deeper, jnp.zeros_like(z.halo(sub[0])))
            sub, deeper, collected = jax.lax.fori_loop(0, r, substep, start)
            a = z.add_halo(a, collected)  # (23), (25b)
        halo = zone.halo(a)
        a = a / mass
        moved = (q + h * u, zone.keep(v + a, v), zone.keep(2.0 * side * a - w, 0.0))  # (21a), (25a)
        if inner:
            moved = tuple(inner[0].put(x, y) for x, y in zip(moved, sub))
        return moved, (last, *deeper), halo

    def evaluations(self, found: Sequence[Any]) -> int:
        """Interactions times quadrature points of one slow step."""
        steps = np.cumprod([1, *self.ratio])
        return rule(self.quadrature).evaluations * int(sum(k * zone.count() for k, zone in zip(steps, found)))

    def evidence(self, solution: Any, energy: np.ndarray) -> dict[str, np.ndarray]:
        """Pseudo-energy (26), gap and balance."""
        return pseudo_energies(solution, energy, solution.columns["extra.jump"])


def _force(system: System, zone: Any, n: int) -> Any:
    return lambda x: zone.force(system, x, n)


def spectral_radius(method: AsynchronousPseudoEnergy, system: System, state: State, h: float, span: float) -> float:
    """Spectral radius of the coarse map linearised at `state`, as seen in at most the steps of a run; 1 if none grows.

    Power iteration: growth like a power of t, which the double eigenvalues of a stable map allow, does not count.
    """
    run = int(np.ceil(span / h))
    fine = int(np.prod(method.ratio))
    steps = int(min(run, max(200, _WORK / (max(state.q.size, 1000) * fine))))
    memory = method.init(system, state)
    half, total = _growth(method, system, state, memory, jnp.asarray(float(h)), jnp.asarray(steps))
    rise = float(total - half)
    return float(np.exp(rise / (steps - steps // 2))) if rise > _GROWTH else 1.0


@eqx.filter_jit
def _growth(method: Any, system: System, state: State, memory: Rates, h: Array, steps: Array) -> tuple[Array, Array]:
    def advance(y: tuple) -> tuple:
        q, v, w, forces = y
        new = method.step(system, state.moved(state.t, q, v), Rates(w, forces, memory.zones), h)
        return new.state.q, new.state.v, new.memory.w, new.memory.forces

    def size(y: tuple) -> Array:
        q, v, w, _ = y
        return jnp.sqrt(jnp.vdot(q, q) / h**2 + jnp.vdot(v, v) + jnp.vdot(w, w))

    at = (state.q, state.v, memory.w, memory.forces)
    start = jax.tree.map(jnp.zeros_like, at)
    start = (start[0], start_vector(state.q.size), *start[2:])
    return growth(lambda y: jax.jvp(advance, (at,), (y,))[1], size, start, steps)


def _whole(value: Any, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        msg = f"{name} must be a whole number of at least {least}, got {value!r}"
        raise ValueError(msg)
    return int(value)
