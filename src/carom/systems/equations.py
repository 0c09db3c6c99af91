"""The equations of motion as numbers: masses, energies, forces, rates and gaps of a system at (t, q, v)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import Given, UserFunction
from carom.solvers.roots import moving_as
from carom.systems.constrained import accelerations
from carom.systems.contact import FrictionElements
from carom.systems.contact_base import AbstractContacts
from carom.systems.features import Feature, features_of
from carom.systems.interactions import Interactions
from carom.systems.terms import INTERACTIONS, LISTABLE, Part


class Origin:
    """Name and arguments of what a record was built from; all are equal, so that none makes JAX recompile."""

    def __init__(self, name: str, arguments: Any):
        self.name, self.arguments = name, arguments

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin)

    def __hash__(self) -> int:
        return hash(Origin)


class Equations(eqx.Module):
    """The terms of `M v' = f` and `q' = B v + a`, and everything that follows from them; `System` builds them."""

    mass: Any
    potential: dict[str, Part]
    forces: dict[str, UserFunction]
    rate_damping: dict[str, Array | Part]
    kinematics: UserFunction | None
    manifold: UserFunction | None
    shift: Callable[..., Array] | None
    constraints: UserFunction | None
    nonholonomic: UserFunction | None
    contacts: Any
    friction: Any
    hamiltonian: UserFunction | None
    params: Any
    epoch: Any
    pairs: Any
    jumps: Array
    backward: bool = eqx.field(static=True)
    structure: str = eqx.field(static=True)
    labels: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)
    time_unit: str = eqx.field(static=True)
    origin: Origin | None = eqx.field(static=True)

    # ---- what there is ------------------------------------------------------------------------------------------

    @property
    def rates(self) -> bool:
        """Whether the velocities are the rates of the coordinates, so that they have their units per unit of time."""
        return self.kinematics is None and self.shift is None and self.hamiltonian is None

    @property
    def features(self) -> frozenset[Feature]:
        """The features a method must handle to take this system."""
        return features_of(self)

    @property
    def is_listed(self) -> bool:
        """Whether contacts are those of listed pairs of bodies: no matrix is formed of their directions."""
        return any(group.is_listed for group in self.contact_groups)

    @property
    def has_lists(self) -> bool:
        """Whether a run holds lists of pairs."""
        return not self.features.isdisjoint((Feature.LISTED_PAIRS, Feature.MOVING_PAIRS))

    @property
    def turns(self) -> bool:
        """Whether steps count how directions of contact and friction turn within them."""
        return self.friction is not None or any(group.turns for group in self.contact_groups)

    @property
    def contact_groups(self) -> tuple[AbstractContacts, ...]:
        """The contacts as a list, which may be empty."""
        return _listed(self.contacts)

    @property
    def pair_potentials(self) -> dict[str, Any]:
        """The parts of the potential whose pairs a run lists, by their names (as JAX keeps dictionaries)."""
        return {n: part for n, part in sorted(self.potential.items()) if isinstance(part, LISTABLE) and part.is_listed}

    @property
    def pair_groups(self) -> tuple[Any, ...]:
        """All that may have lists of pairs: contacts, then parts of the potential."""
        return (*self.contact_groups, *self.pair_potentials.values())

    @property
    def friction_groups(self) -> tuple[FrictionElements, ...]:
        """The friction elements as a list, which may be empty."""
        return _listed(self.friction)

    @property
    def has_joint_friction(self) -> bool:
        """Whether friction follows from the multipliers of the constraints."""
        return any(group.reads_multipliers for group in self.friction_groups)

    @property
    def given(self) -> Given:
        """What every function of the user is given besides its place."""
        return Given(self.params, self.epoch)

    def since(self, epoch: Any, pairs: Any = None) -> Self:
        """The system of a run that began at `epoch` (its `t` is the time since then), with the pairs it lists."""
        if pairs is None:
            return eqx.tree_at(lambda s: s.epoch, self, epoch)
        groups = [group.with_list(*own) for group, own in zip(self.pair_groups, pairs.lists)]
        contacts = self.contacts and tuple(groups[: len(self.contact_groups)])
        listed = dict(zip(self.pair_potentials, groups[len(self.contact_groups) :]))
        where = lambda s: (s.epoch, s.contacts, s.potential, s.pairs)  # noqa: E731
        new = (epoch, contacts, {**self.potential, **listed}, pairs)
        return eqx.tree_at(where, self, new, is_leaf=lambda x: x is None)

    def turned(self, x: Any) -> Any:
        """What changes its sign with the direction of time, as the user knows it: times since the start, velocities."""
        return -x if self.backward else x

    def beside(self, t: Any, side: float) -> Any:
        """The next elapsed time before (`side` -1) or after t (1) that the user's functions can tell from it."""
        if isinstance(t, np.ndarray):
            return _beside(t, self.epoch, self.turned(t), side, np)
        still, epoch = jax.lax.stop_gradient((jnp.asarray(t), jnp.asarray(self.epoch)))
        return moving_as(_beside(still, epoch, self.turned(still), side, jnp), t)

    @property
    def is_tridiagonal(self) -> bool:
        """Whether the Jacobians of all forces are tridiagonal (declared, or seen from neighbour stencils)."""
        if self.structure != "auto":
            return self.structure == "tridiagonal"
        damped = (r for r in self.rate_damping.values() if isinstance(r, Part))
        neighbours = all(isinstance(r, Interactions) and r.span is not None and r.span <= 1 for r in damped)
        alone = bool(self.potential) and not self.forces and self.kinematics is None
        return alone and neighbours and self.has_neighbour_potential

    # ---- mass ---------------------------------------------------------------------------------------------------

    def mass_at(self, t: Array, q: Array) -> Any:
        """Mass as a scalar, a diagonal or a matrix."""
        return jnp.asarray(self.mass(self.given, t=t, q=q)) if isinstance(self.mass, UserFunction) else self.mass

    def dense_mass_at(self, t: Array, q: Array) -> Array:
        """`mass_at` with a banded matrix written out."""
        M = self.mass_at(t, q)
        return M.dense() if hasattr(M, "dense") else M

    def mass_times(self, t: Array, q: Array, v: Array) -> Array:
        """M v."""
        M = self.mass_at(t, q)
        return M @ v if M.ndim == 2 else M * v

    def mass_solve(self, t: Array, q: Array, f: Array) -> Array:
        """M^{-1} f; with constraints M is positive only along them."""
        M = self.mass_at(t, q)
        if hasattr(M, "solve"):
            return M.solve(f)
        if M.ndim == 2 and self.constraints is not None:
            return jnp.linalg.solve(M, f)
        return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(M), True), f) if M.ndim == 2 else f / M

    # ---- energies and forces ------------------------------------------------------------------------------------

    def part_energy(self, name: str, t: Array, q: Array) -> Array:
        """Energy of one part of the potential."""
        value = _evaluate(self.potential[name], self.given, t, q)
        return seen(value, q) if self.energy_is_seen and isinstance(self.potential[name], UserFunction) else value

    @property
    def energy_is_seen(self) -> bool:
        """Whether forces are NaN where the energy is; with contacts and friction constant forces stay constant."""
        return self.contacts is None and self.friction is None

    def potential_energy(self, t: Array, q: Array) -> Array:
        """V(t, q), all parts; H(t, q, 0) of a Hamiltonian system."""
        if self.hamiltonian is not None:
            return self.total_energy(t, q, jnp.zeros_like(q))
        return sum((self.part_energy(name, t, q) for name in self.potential), jnp.zeros((), q.dtype))

    def kinetic_energy(self, t: Array, q: Array, v: Array) -> Array:
        """Kinetic energy v M v / 2; H(t, q, p) - H(t, q, 0) of a Hamiltonian system."""
        if self.hamiltonian is not None:
            return self.total_energy(t, q, v) - self.total_energy(t, q, jnp.zeros_like(q))
        return 0.5 * jnp.vdot(v, self.mass_times(t, q, v))

    def total_energy(self, t: Array, q: Array, v: Array) -> Array:
        """Kinetic and potential energy together, or H."""
        if self.hamiltonian is not None:
            return seen(self.hamiltonian(self.given, t=t, q=q, v=v), q)
        return self.kinetic_energy(t, q, v) + self.potential_energy(t, q)

    def part_force(self, name: str, t: Array, q: Array) -> Array:
        """-dV_name/dq."""
        part = self.potential[name]
        if isinstance(part, INTERACTIONS):
            return -part.gradient(q)
        return -jax.grad(lambda x: self.part_energy(name, t, x))(q)

    def conservative_force(self, t: Array, q: Array) -> Array:
        """-dV/dq, all parts."""
        return sum((self.part_force(name, t, q) for name in self.potential), jnp.zeros_like(q))

    def neighbour_stiffness(self, q: Array) -> tuple[Array, Array]:
        """Diagonal and off-diagonal of d2V/dq2, for potentials made of neighbour interactions."""
        diagonal, beside = jnp.zeros_like(q), jnp.zeros(q.shape[0] - 1)
        for part in self.potential.values():
            assert isinstance(part, Interactions)
            own, other = part.neighbour_hessian(q)
            diagonal, beside = diagonal + own, beside + other
        return diagonal, beside

    @property
    def has_neighbour_potential(self) -> bool:
        """Whether the potential is made of interactions between neighbours only, and the mass is diagonal."""
        parts = self.potential.values()
        diagonal = not isinstance(self.mass, UserFunction) and self.mass.ndim < 2
        return diagonal and all(isinstance(p, Interactions) and p.span is not None and p.span <= 1 for p in parts)

    def damping_potential(self, t: Array, q: Array) -> Array:
        """R(q): rate damping is the force d/dt(-dR/dq)."""
        total = jnp.zeros((), q.dtype)
        for name, rate in self.rate_damping.items():
            part = rate if isinstance(rate, Part) else _scaled(self.potential[name], rate)
            total = total + _evaluate(part, self.given, t, q)
        return total

    def damped_impulse(self, t: Array, q: Array) -> Array:
        """r(q) = -dR/dq, whose time derivative is the rate-damping force."""
        return -jax.grad(lambda x: self.damping_potential(t, x))(q)

    def damping_force(self, t: Array, q: Array, v: Array) -> Array:
        """d/dt r: the rate damping."""
        return jax.jvp(self.damped_impulse, (t, q), (jnp.ones_like(t), self.rate(t, q, v)))[1]

    def applied_force(self, t: Array, q: Array, v: Array, lam: Array | None = None) -> Array:
        """Sum of the named forces."""
        return sum((self.named_force(name, t, q, v, lam) for name in self.forces), jnp.zeros_like(v))

    def named_force(self, name: str, t: Array, q: Array, v: Array, lam: Array | None = None) -> Array:
        """One named force."""
        return jnp.asarray(self.forces[name](self.given, t=t, q=q, v=v, lam=lam), float)

    def inertia_force(self, t: Array, q: Array, v: Array) -> Array:
        """dT/dq - (dM/dt) v: what M(t, q) adds to the right-hand side of M v' (zero for a constant mass)."""
        if not isinstance(self.mass, UserFunction):
            return jnp.zeros_like(v)
        _, gained = jax.jvp(lambda s, x: self.mass_times(s, x, v), (t, q), (jnp.ones_like(t), self.rate(t, q, v)))
        return self.to_velocities(t, q, v, jax.grad(lambda x: self.kinetic_energy(t, x, v))(q)) - gained

    def force(self, t: Array, q: Array, v: Array, lam: Array | None = None) -> Array:
        """Everything on the right-hand side of M v', constraint and contact forces excepted."""
        if self.hamiltonian is not None:
            return self.applied_force(t, q, v, lam) - jax.grad(self.total_energy, 1)(t, q, v)
        moving = v if self.shift is None else v + self.shift(self, t, q)
        f = self.to_velocities(t, q, v, self.conservative_force(t, q)) + self.applied_force(t, q, moving, lam)
        f = f + self.inertia_force(t, q, v)
        return f + self.damping_force(t, q, v) if self.rate_damping and self.shift is None else f

    def acceleration(self, t: Array, q: Array, v: Array) -> Array:
        """M^{-1} force; with bilateral constraints, what they leave of it."""
        if self.constraints is not None or self.nonholonomic is not None:
            return accelerations(self, t, q, v).a
        return self.mass_solve(t, q, self.force(t, q, v))

    # ---- kinematics ---------------------------------------------------------------------------------------------

    def rate(self, t: Array, q: Array, v: Array) -> Array:
        """The rate q' = B(t, q) v + a(t, q), or dH/dp."""
        if self.hamiltonian is not None:
            return jax.grad(self.total_energy, 2)(t, q, v)
        if self.kinematics is not None:
            return self.kinematics(self.given, t=t, q=q, v=v)
        return v if self.shift is None else v + self.shift(self, t, q)

    def onto_manifold(self, q: Array) -> Array:
        """The coordinates where they belong."""
        return q if self.manifold is None else jnp.asarray(self.manifold(self.given, q=q, t=0.0), float)

    def to_velocities(self, t: Array, q: Array, v: Array, covector: Array) -> Array:
        """B^T covector: a gradient with respect to q as a generalised force."""
        if self.kinematics is None:
            return covector
        return jax.vjp(lambda u: self.rate(t, q, u), v)[1](covector)[0]

    def inner_velocity(self, t: Array, q: Array, v: Array) -> Array:
        """The velocity variable a method steps, from the one the user gives."""
        v = self.turned(v)
        return v if self.shift is None else v - self.shift(self, t, q)

    def outer_velocity(self, t: Array, q: Array, v: Array) -> Array:
        """The velocity the user sees, from the variable a method steps."""
        return self.turned(v if self.shift is None else v + self.shift(self, t, q))

    def constraint(self, t: Array, q: Array) -> Array:
        """g(t, q) of the bilateral constraints, a vector."""
        if self.constraints is None:
            return jnp.zeros(0)
        return jnp.atleast_1d(self.constraints(self.given, t=t, q=q))

    def gaps(self, t: Array, q: Array) -> Array:
        """g(t, q) of all contacts, a vector."""
        return jnp.concatenate([jnp.zeros(0), *(group.gaps(self.given, t, q) for group in self.contact_groups)])

    def gap_rates(self, t: Array, q: Array, rate: Array) -> Array:
        """gamma_N = dg/dq q' + dg/dt of all contacts."""
        rates = (group.gap_rates(self.given, t, q, rate) for group in self.contact_groups)
        return jnp.concatenate([jnp.zeros(0), *rates])


def _beside(t: Any, epoch: Any, turned: Any, side: float, xp: Any) -> Any:
    size = xp.maximum(abs(t), abs(epoch + turned))
    apart = t + side * 2 * (xp.nextafter(size, np.inf) - size)  # two, as the sum of both times is rounded
    return xp.where(epoch == 0, xp.nextafter(t, side * np.inf), apart)


def _listed(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else () if value is None else (value,)


def _evaluate(part: Any, given: Given, t: Array, q: Array) -> Array:
    return part(q) if isinstance(part, INTERACTIONS) else jnp.asarray(part(given, t=t, q=q), float).reshape(())


def _scaled(part: Part, gamma: Array) -> Any:
    if isinstance(part, INTERACTIONS):
        return part.scaled(gamma)
    return lambda given, t, q: gamma * part(given, t=t, q=q)


def seen(energy: Any, q: Array) -> Array:
    """An energy whose gradient is NaN where the energy is: `jnp.where` hides the NaN of its branches from gradients."""
    value = jnp.asarray(energy, float).reshape(())
    return value + 0.0 * jax.lax.stop_gradient(value) * q[0]
