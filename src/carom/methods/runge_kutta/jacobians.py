"""Jacobians of accelerations with structure: those of chains of neighbours, and those of pairs of bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from carom.arguments import UserFunction
from carom.bodies import Bodies, Each
from carom.solvers.pair_blocks import PairBlocks, PairTerm, columns_of
from carom.solvers.structure import Tridiagonal, acceleration_jacobian
from carom.systems.pair_interactions import PairInteractions
from carom.systems.system import System
from carom.systems.wall_interactions import WallInteractions


class NeighbourJacobian(eqx.Module):
    """Q -> d/dq of the accelerations of a chain of neighbours."""

    system: System

    def __call__(self, q: Array) -> Tridiagonal:
        """The Jacobian at q."""
        return acceleration_jacobian(*self.system.neighbour_stiffness(q), self.system.mass)


class PairJacobian(eqx.Module):
    """Q -> d/dq of M^{-1} sum_a weight_a force_a for pairs of bodies, and energies of single bodies."""

    system: System
    weights: Mapping[str, Array] | None

    def __call__(self, q: Array) -> PairBlocks:
        """The Jacobian at q."""
        return self._blocks(q, *self._entries(q))

    def along(self, q: Array, v: Array) -> PairBlocks:
        """How the Jacobian changes along v."""
        return self._blocks(q, *jax.jvp(self._entries, (q,), (v,))[1])

    def _blocks(self, q: Array, pairs: list[Any], own: Array | None) -> PairBlocks:
        parts = _pair_parts(self.system)
        listed, c = zip(parts, pairs), parts[0].bodies.coordinates
        terms = tuple(PairTerm(part.bodies, part.bonds, blocks, part.dimension) for part, blocks in listed)
        mass = columns_of(jnp.broadcast_to(self.system.mass, q.shape), c)
        entries = None if own is None else [own[:, i, j] for i in range(c) for j in range(i, c)]
        return PairBlocks(terms, entries, [jnp.zeros_like(m) for m in mass], mass)

    def _entries(self, q: Array) -> tuple[Any, Array | None]:
        """The blocks of pairs, part by part, and the blocks of bodies, of minus the weighted second derivatives."""
        system, pairs, own = self.system, [], None
        for name, part in system.potential.items():
            w = -jnp.asarray(1.0 if self.weights is None else self.weights.get(name, 0.0))
            if isinstance(part, PairInteractions):
                pairs.append(part.scaled(w).stiffness(q))
            else:
                walls = isinstance(part, WallInteractions)
                more = part.scaled(w).own_blocks(q) if walls else w * _own_blocks(part, system, q)  # pyright: ignore
                own = more if own is None else own + more
        return pairs, own


def stage_jacobians(system: System) -> dict[str, Any]:
    """What the stage equations of a system are told of the structure of its Jacobians."""
    in_force, blocks = velocity_in_force(system), has_pair_blocks(system)
    return {
        "structured": system.is_tridiagonal or blocks,
        "q_in_rate": system.shift is not None,
        "v_in_force": in_force,
        "stiffness": neighbour_jacobian(system) if blocks or not in_force else None,
        "damping": PairJacobian(system, system.rate_damping) if blocks and system.rate_damping else None,  # pyright: ignore
    }


def velocity_in_force(system: System) -> bool:
    """Whether M v' depends on v in the variables the method steps."""
    return system.shift is None and bool(system.rate_damping or system.forces)


def neighbour_jacobian(system: System) -> NeighbourJacobian | PairJacobian | None:
    """The Jacobian of the accelerations of a chain of neighbours, or of pairs of bodies; None for other systems."""
    if system.is_tridiagonal and system.has_neighbour_potential:
        return NeighbourJacobian(system)
    return PairJacobian(system, None) if has_pair_blocks(system) else None


def has_pair_blocks(system: System) -> bool:
    """Whether forces are those of pairs of bodies and of single bodies, so that no whole matrix need be formed."""
    parts, pairs = system.potential.values(), _pair_parts(system)
    others = [part for part in parts if not isinstance(part, PairInteractions)]
    if not pairs or system.structure != "auto" or system.forces or system.kinematics or system.constraints:
        return False
    if isinstance(system.mass, UserFunction) or system.mass.ndim == 2 or system.hamiltonian is not None:
        return False
    each = [p for p in others if not isinstance(p, WallInteractions)]
    if not all(isinstance(p, UserFunction) and isinstance(p.fn, Each) and not p.sees_time for p in each):
        return False
    damped = all(name in system.potential and not callable(g) for name, g in system.rate_damping.items())
    owners: list[Bodies] = [p.fn.bodies if isinstance(p, UserFunction) else p.bodies for p in parts]  # pyright: ignore
    return (
        damped
        and len({(b.count, b.dof, b.coordinates) for b in owners}) == 1
        and owners[0].dof == owners[0].coordinates
    )


def _pair_parts(system: System) -> list[PairInteractions]:
    return [part for part in system.potential.values() if isinstance(part, PairInteractions)]


def _own_blocks(part: UserFunction, system: System, q: Array) -> Array:
    """Second derivatives of an energy of single bodies, a block each."""
    each: Any = part.fn
    named = {name: system.params for name in part.named}
    data = () if each.data is None else (each.data,)

    def energy(row: Array, *own: Any) -> Array:
        return jnp.asarray(each.f(row, *own, **named), float).reshape(())

    bodies = each.bodies
    blocks = jax.vmap(jax.hessian(energy))(bodies.positions(q), *data)
    whole = jnp.zeros((bodies.count, bodies.coordinates, bodies.coordinates))
    return whole.at[bodies._slice].set(blocks)
