r"""The pseudo-energy scheme with several rates in one step [Marazzato2019 sec. 4], for any number of levels.

During a step h of the slow particles the fast and mixed ones take `ratio` steps. Every particle flies freely through
its own steps (22), (24); an interaction is integrated over the steps of its fastest particle, and each of its particles
collects the impulse until its own next node (21b), (23), (25b). Where the quadrature is exact the pseudo-energy (26) is
conserved at the slow nodes [Prop. 9]; the proof holds level by level, so it nests.

Applied forces that act on each particle by itself take the particle's own steps and mid-flights, as in the synchronous
scheme; the pseudo-energy changes by exactly their work, summed over all steps of all levels. Forces between particles
are refused unless they are interactions: a fast particle does not know the velocity of a slow one until both meet at
the slow node.

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

from carom.arguments import names_of, whole
from carom.methods.base import Derivative, Gives
from carom.methods.pseudo_energy.local_stiffness import nested_levels
from carom.methods.pseudo_energy.locality import forces_between_particles
from carom.methods.pseudo_energy.pseudo_energy import applied_impulse, pseudo_energies
from carom.methods.pseudo_energy.quadrature import impulse, rule
from carom.methods.pseudo_energy.zones import Named, levels, named, zones
from carom.methods.stability import LimitedMethod, Rate, StabilityWarning, stability_limit
from carom.names import register
from carom.running.compiled import compiled
from carom.solvers.spectral import growth, start_vector
from carom.state import Info, State, Step
from carom.systems.features import Feature
from carom.systems.system import System

_SHIFTS = 3  # rings tried by `automatic`
_WORK = 2e7  # particles times fine steps spent on the search for a resonance, a step costing at least 1000 particles
_GROWTH = 3.0  # logarithm of the growth in its second half that counts as one; powers of t give less


class Rates(eqx.Module):
    """Velocity jumps, forces at the node per level (rules that share nodes), work of applied forces, and the zones."""

    w: Array
    forces: tuple[Array | None, ...]
    work: Array | None
    zones: tuple[Any, ...]


@register
class AsynchronousPseudoEnergy(LimitedMethod):
    """Pseudo-energy scheme in which named parts step `ratio` times faster than the rest; h is the slow step.

    Args:
        fast: parts of the potential, by name ("layer 1", or "layer 1[20:40]" for some of its interactions), or the
            particles that feel only fast forces: a slice (the fast path) or any indices. With several levels a list,
            each inside the one before.
        ratio: fast steps per slow step; with several levels a list, each relative to the level before.
        quadrature: as for `PseudoEnergy`.
        shift: rings of neighbours by which the mixed particles are moved into the slower medium (cures resonances).
        beyond_limit: run even if a step lies above the stability limit of its level.
        corrections: as for `PseudoEnergy`.

    `AsynchronousPseudoEnergy.automatic` finds the levels from the stiffness of the interactions.

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
    corrections: int = eqx.field(static=True)

    handles = frozenset({Feature.FORCES})
    gives = frozenset({Gives.WHOLE_STEPS, Gives.MOMENTUM_JUMP})
    derivative = Derivative.EXACT

    def __init__(
        self,
        fast: Any,
        ratio: int | Sequence[int],
        quadrature: str = "midpoint",
        shift: int = 0,
        beyond_limit: bool = False,
        corrections: int = 1,
    ):
        several = isinstance(ratio, (Sequence, np.ndarray))
        self.ratio = tuple(whole(r, "ratio", 1) for r in ratio) if several else (whole(ratio, "ratio", 1),)
        sets = list(fast) if several else [fast]
        if len(sets) != len(self.ratio):
            msg = f"fast and ratio must name as many levels: got {len(sets)} and {len(self.ratio)}"
            raise ValueError(msg)
        self.fast = tuple(named(f) for f in sets)
        rule(quadrature)
        self.quadrature = quadrature
        self.shift = whole(shift, "shift", 0)
        self.beyond_limit = bool(beyond_limit)
        self.corrections = whole(corrections, "corrections", 1)

    @classmethod
    def automatic(
        cls, system: System, state: State, h: float, quadrature: str = "midpoint", courant: float = 0.75, most: int = 4
    ) -> AsynchronousPseudoEnergy:
        """The cheapest levels that are stable for the slow step h, from the stiffness of every interaction at `state`.

        Args:
            system: the equations.
            state: where the interactions are linearised.
            h: the slow step.
            quadrature: as for `PseudoEnergy`.
            courant: largest step of an interaction over its own stability limit.
            most: levels, the slow one included.

        The mixed particles are moved by the first `shift` for which no resonance is found. `explain(system, state)`
        says what was chosen.

        Example:
            >>> string, state = carom.models.layered_string(100, speeds=(1.0, 4.0, 16.0))
            >>> method = carom.AsynchronousPseudoEnergy.automatic(string, state, h=2.5e-3)
        """
        fast, ratio = nested_levels(system, state, h, courant, whole(most, "most", 2))
        for shift in range(_SHIFTS):
            method = cls(fast, ratio, quadrature, shift)
            if spectral_radius(method, system, state, h, np.inf) <= 1:
                return method
        return cls(fast, ratio, quadrature)

    @property
    def order(self) -> int:
        """Two."""
        return 2

    def rates(self, system: System, n: int) -> list[Rate]:
        """Steps of every level per slow step."""
        level = levels(system, n, self.fast, self.shift)
        return [(int(k), level == depth, f" of level {depth}") for depth, k in enumerate(np.cumprod([1, *self.ratio]))]

    def caution(self, system: System, state: State, longest: float | None, span: float) -> None:
        """Refuse forces between particles, hold the steps against their limits, look for a resonance of the levels."""
        if between := forces_between_particles(system, state):
            msg = (
                f"AsynchronousPseudoEnergy takes forces that act on each particle by itself; {names_of(between)} on "
                f"one depends on others: write it as carom.Interactions if it has a potential, or use PseudoEnergy"
            )
            raise ValueError(msg)
        super().caution(system, state, longest, span)
        radius = 1.0 if longest is None else spectral_radius(self, system, state, longest, span)
        if radius > 1:
            msg = (
                f"resonance: the linearised coarse map has spectral radius {radius:.4f} > 1 at h = {longest:.6g} and "
                f"ratio {', '.join(map(str, self.ratio))}, so errors grow like {radius:.4f}^n. Reduce h, change the "
                f"ratio, or move the mixed particles into the slower medium (shift={self.shift + 1})"
            )
            warnings.warn(msg, StabilityWarning, stacklevel=5)

    def explain(self, system: System, state: State, memory: Any = None, status: Any = None) -> str:
        """The levels: who belongs to them, and up to which step they are stable at `state`."""
        del memory, status
        n = state.q.size
        found = zones(system, levels(system, n, self.fast, self.shift))
        words = []
        for depth, ((k, among, _), zone) in enumerate(zip(self.rates(system, n), found)):
            limit = k * stability_limit(system, state, among)
            size = f"{np.count_nonzero(among)} particles and {zone.count()} interactions"
            words.append(f"level {depth}: {size}, step h / {k}, stable for h < {limit:.6g}")
        return "; ".join(words)

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
        return Rates(jnp.zeros_like(state.v), tuple(forces), jnp.zeros(()) if system.forces else None, found)

    def step(self, system: System, state: State, memory: Rates, h: Array) -> Step:
        """One slow step."""
        motion = (state.q, state.v, memory.w)
        mass = system.mass_at(state.t, state.q)
        (q, v, w), forces, _, done = self._flight(system, state, memory.zones, motion, mass, memory.forces, state.t, h)
        work = None if memory.work is None else memory.work + done
        extra = {"jump": w} | ({} if work is None else {"work": work})
        info = Info(evaluations=jnp.int32(self.evaluations(memory.zones)), extra=extra)
        return Step(state.moved(state.t + h, q, v), Rates(w, forces, work, memory.zones), info)

    def _flight(
        self,
        system: System,
        start: State,
        levels: tuple,
        motion: tuple,
        mass: Array,
        forces: tuple,
        t: Array,
        h: Array,
    ) -> tuple:
        """Particles of `levels[0]` fly from t for h, those inside it meanwhile step faster; `start` is the slow node.

        Returns the motion, the forces at its end, the impulse on the halo, and the work of applied forces.
        """
        zone, *inner = levels
        q, v, w = motion
        side = jnp.sign(h)
        u = v + 0.5 * side * w
        a, last = impulse(_force(system, zone, start.q.size), rule(self.quadrature), q, u, h, forces[0])  # (21b), (25b)
        deeper, sub, work = forces[1:], (), jnp.zeros(())
        if inner:
            z, r = inner[0], self.ratio[len(self.ratio) - len(inner)]
            sub = (z.take(q), z.keep(z.take(v), z.take(u)), z.keep(z.take(w), 0.0))
            sub_mass = z.take(mass)

            def substep(k: Array, loop: tuple) -> tuple:
                sub, deeper, collected, work = loop
                now = t + k * (h / r)
                flown = self._flight(system, start, tuple(inner), sub, sub_mass, deeper, now, h / r)
                sub, deeper, halo, done = flown
                return sub, deeper, collected + halo, work + done

            begin = (sub, deeper, jnp.zeros_like(z.halo(sub[0])), work)
            sub, deeper, collected, work = jax.lax.fori_loop(0, r, substep, begin)
            a = z.add_halo(a, collected)  # (23), (25b)
        a = a / mass
        halo = zone.halo(mass * a)  # with two uses of the impulse itself XLA would store every part of it
        if system.forces:
            applied = self._applied(system, start, levels, motion, mass, a, t, h)
            a, work = a + applied / mass, work + jnp.vdot(u, applied)
        moved = (q + h * u, zone.keep(v + a, v), zone.keep(2.0 * side * a - w, 0.0))  # (21a), (25a)
        if inner:
            moved = tuple(inner[0].put(x, y) for x, y in zip(moved, sub))
        return moved, (last, *deeper), halo, work

    def _applied(
        self, system: System, start: State, levels: tuple, motion: tuple, mass: Array, a: Array, t: Array, h: Array
    ) -> Array:
        """Impulse of the applied forces at mid-flight on the particles that step at the rate of `levels[0]`."""
        zone, *inner = levels
        q, v, w = motion
        own = zone.keep(jnp.ones(q.size, bool), False)
        own = inner[0].put(own, jnp.zeros(inner[0].take(own).size, bool)) if inner else own
        here = zone.fill(start.q, q + 0.5 * h * (v + 0.5 * jnp.sign(h) * w))

        def force(x: Array) -> Array:
            return jnp.where(own, zone.pick(system.applied_force(t + 0.5 * h, here, zone.fill(start.v, x))), 0.0)

        return applied_impulse(force, lambda f: f / mass, v + 0.5 * a, h, self.corrections)

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
    fine = int(np.prod(method.ratio))
    steps = int(min(np.ceil(span / h), max(200, _WORK / (max(state.q.size, 1000) * fine))))
    memory = method.init(system, state)
    half, total = _growth(method, system, state, memory, jnp.asarray(float(h)), jnp.asarray(steps))
    rise = float(total - half)
    return float(np.exp(rise / (steps - steps // 2))) if rise > _GROWTH else 1.0


@compiled
def _growth(method: Any, system: System, state: State, memory: Rates, h: Array, steps: Array) -> tuple[Array, Array]:
    def advance(y: tuple) -> tuple:
        q, v, w, forces = y
        new = method.step(system, state.moved(state.t, q, v), Rates(w, forces, memory.work, memory.zones), h)
        return new.state.q, new.state.v, new.memory.w, new.memory.forces

    def size(y: tuple) -> Array:
        q, v, w, _ = y
        return jnp.sqrt(jnp.vdot(q, q) / h**2 + jnp.vdot(v, v) + jnp.vdot(w, w))

    at = (state.q, state.v, memory.w, memory.forces)
    start = jax.tree.map(jnp.zeros_like, at)
    start = (start[0], start_vector(state.q.size), *start[2:])
    return growth(lambda y: jax.jvp(advance, (at,), (y,))[1], size, start, steps)
