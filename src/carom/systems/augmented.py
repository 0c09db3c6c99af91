"""Singular masses: the augmented system (13) of Jay1998, whose mass matrix is invertible."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.arguments import DerivedFunction, Given, names_of
from carom.solvers.redundant import dependent
from carom.state import State
from carom.systems.constrained import directions, mass_matrix
from carom.systems.features import Feature
from carom.systems.system import System

_WITHIN = {
    Feature.MASS_OF_Q,
    Feature.MASS_MATRIX,
    Feature.EXPLICIT_TIME,
    Feature.FORCES,
    Feature.MULTIPLIER_FORCES,
    Feature.CONSTRAINTS,
}


class Augmented(eqx.Module):
    """The parts of `system` on Q = (q, r), V = (v, w): mass [[M, G^T], [G, 0]], constraints (g(q), r)."""

    system: System
    n: int = eqx.field(static=True)

    def mass(self, t: Array, q: Array, given: Given) -> Array:
        """[[M, G^T], [G, 0]], Jay1998 (13b)."""
        system = self.system.since(given.epoch)
        M = mass_matrix(system, t, q[: self.n], self.n)
        G = jax.jacfwd(lambda x: system.constraint(t, x))(q[: self.n])
        return jnp.block([[M, G.T], [G, jnp.zeros((len(G), len(G)))]])

    def constraints(self, t: Array, q: Array, given: Given) -> Array:
        """(g(q), r), Jay1998 (13c)."""
        return jnp.concatenate([self.system.since(given.epoch).constraint(t, q[: self.n]), q[self.n :]])


class Head(eqx.Module):
    """A part of the potential as a function of (q, r)."""

    system: System
    name: str = eqx.field(static=True)
    n: int = eqx.field(static=True)

    def energy(self, t: Array, q: Array, given: Given) -> Array:
        """V_name(t, q)."""
        return self.system.since(given.epoch).part_energy(self.name, t, q[: self.n])

    def force(self, t: Array, q: Array, v: Array, lam: Array, given: Given) -> Array:
        """The named force on q; none on r."""
        m = lam.size // 2
        f = self.system.since(given.epoch).named_force(self.name, t, q[: self.n], v[: self.n], lam[:m])
        return jnp.pad(f, (0, m))

    def plain_force(self, t: Array, q: Array, v: Array, given: Given) -> Array:
        """The same for a force that does not depend on the multipliers."""
        f = self.system.since(given.epoch).named_force(self.name, t, q[: self.n], v[: self.n])
        return jnp.pad(f, (0, q.size - self.n))


def augmented(system: System, state: State) -> tuple[System, State]:
    """The system with variables (q, r), (v, w) and an invertible mass where M alone is singular [Jay1998 (13)].

    The exact solution has r = w = 0; the multipliers are (lambda, mu), and `sol.q[:, :n]` are the coordinates.

    Raises:
        ValueError: if even [[M, G^T], [G, 0]] is singular, or the system has features beyond (13).

    Example:
        >>> system, state = carom.augmented(system, state)
    """
    beyond = sorted(system.features - _WITHIN)
    if system.constraints is None or beyond:
        msg = f"carom.augmented needs bilateral constraints, and does not handle {names_of(beyond)} of this system"
        raise ValueError(msg)
    n, m = state.q.size, system.constraint(state.t, state.q).size
    whole = Augmented(system, n)
    wide = jnp.concatenate([state.q, jnp.zeros(m)])
    sizes = jnp.abs(jnp.linalg.eigvalsh(whole.mass(state.t, wide, system.given)))
    if not float(jnp.min(sizes)) > 1e-13 * float(jnp.max(sizes)):
        redundant = int(dependent(directions(system, state.t, state.q, state.v)))
        why = (
            f"{redundant} of the {m} constraints depend on others"
            if redundant
            else "some motion has neither mass nor constraint"
        )
        msg = f"augmented: [[M, G^T], [G, 0]] is singular (Jay1998 (10)): {why}"
        raise ValueError(msg)
    heads = {name: Head(system, name, n) for name in (*system.potential, *system.forces)}
    parts = {name: DerivedFunction(heads[name].energy, ("t", "q"), ()) for name in system.potential}
    forces = {
        name: DerivedFunction(heads[name].force, ("t", "q", "v", "lam"), ())
        if "lam" in f.takes
        else DerivedFunction(heads[name].plain_force, ("t", "q", "v"), ())
        for name, f in system.forces.items()
    }
    mass, constraints = (DerivedFunction(f, ("t", "q"), ()) for f in (whole.mass, whole.constraints))
    wider = System(mass, parts, forces, constraints=constraints, jumps=[float(t) for t in system.jumps])
    return wider, State(wide, jnp.concatenate([state.v, jnp.zeros(m)]), state.t)
