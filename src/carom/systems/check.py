"""Checks of a system at a state, before any step is taken."""

from __future__ import annotations

import math
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import names_of, users_frame
from carom.running.compiled import compiled, compiled_hastily, remembered, split
from carom.state import State
from carom.systems.body_contacts import AbstractBodyContacts, partners
from carom.systems.consistent import constraint_residuals
from carom.systems.constrained import Saddle, contradiction, directions, velocity_residual
from carom.systems.contact_rows import contact_rows, laws_of
from carom.systems.interactions import Interactions
from carom.systems.lagrangian import Lagrangian
from carom.systems.probe import probe
from carom.systems.system import System
from carom.systems.terms import role_of

_CONSISTENT = 1e-8
_AHEAD = (0.0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of a step
_OF_CONTACTS = ("gap", "rate of gap", "slip velocity")
_AFFINE = 1e-9  # largest defect of what must be affine
_COUNTED = (*_OF_CONTACTS, "slip velocity of friction element", "limit", "constraint")


def check(system: System, state: State) -> None:
    """Raise, in the user's words, if `system` cannot be run from `state`.

    Looked at: lengths, finite start, mass symmetric and positive, forces and their derivatives free of NaN, kinematics
    affine in v, constraint residuals and rank, gap signs. `simulate` calls this first.

    Example:
        >>> carom.check(*carom.models.newtons_cradle(5))
    """
    _check(system, state)


def check_once(system: System, state: State) -> None:
    """`check`, unless this pair has passed it before: runs from one start with many steps or methods are common."""
    passed, kind = _passed(state), split(system).kind
    if passed.get(id(system)) is not kind:
        _check(system, state)
        passed[id(system)] = kind


def _check(system: System, state: State) -> None:
    check_lengths(system, state)
    probe(system, state)
    _judge(_measure_one(system, state).on_host(), system, state)


@remembered
def _passed(state: State) -> weakref.WeakValueDictionary[int, Any]:
    """The systems that may start from this state, by the kinds they had: a function may read another number now."""
    del state
    return weakref.WeakValueDictionary()


def check_lanes(lanes: list[tuple[System, State]], system: System, axes: Any, states: State) -> None:
    """Check the lanes of a batch in one vectorised call on the stacked `states` and `system` (stacked along `axes`)."""
    for one in lanes:
        check_lengths(*one)
    probe(*lanes[0])
    host = _measure_lanes(system, states, axes).on_host()
    for i, lane in enumerate(lanes):
        _judge({name: value[i] for name, value in host.items()}, *lane)


def failing_lanes(found: dict[str, np.ndarray], system: System, state: Callable[[int], State]) -> dict[int, str]:
    """Why lanes cannot run, of those that cannot; `found` has a row per lane, `state` gives that of a lane."""
    lanes = len(next(iter(found.values())))
    doubtful = np.zeros(lanes, bool)
    for name, value in found.items():
        fine = value == (0.0 if name == "mass singular" else 1.0)
        if name == "gap":
            fine = value >= 0
        elif name.endswith("defect"):
            fine = value <= _AFFINE
        doubtful |= ~fine.reshape(lanes, -1).all(axis=1)
    failed = {}
    for i in np.flatnonzero(doubtful).tolist():
        try:
            _judge({name: value[i] for name, value in found.items()}, system, state(i))
        except ValueError as error:
            failed[i] = str(error)
    return failed


class Findings(eqx.Module):
    """Named numbers in one vector (one per lane): one transfer to the host instead of a dozen."""

    values: Array
    names: tuple[str, ...] = eqx.field(static=True)
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    @classmethod
    def of(cls, found: dict[str, Array]) -> Findings:
        """Pack."""
        values = jnp.concatenate([jnp.ravel(value).astype(float) for value in found.values()])
        return cls(values, tuple(found), tuple(value.shape for value in found.values()))

    def on_host(self) -> dict[str, np.ndarray]:
        """Unpack."""
        values, parts, start = np.asarray(self.values), {}, 0
        for name, shape in zip(self.names, self.shapes):
            stop = start + math.prod(shape)
            parts[name] = values[..., start:stop].reshape((*values.shape[:-1], *shape))
            start = stop
        return parts


def _judge(found: dict[str, np.ndarray], system: System, state: State) -> None:
    """Raise for what cannot run, warn about what can."""
    bad = [name for name, value in found.items() if name.startswith("finite ") and not value]
    if bad:
        names = names_of([name.removeprefix("finite ") for name in bad])
        msg = f"NaN or infinity at the start (t = {float(state.t):g}) in {names}"
        raise ValueError(msg)
    unequal = [
        name.removeprefix("opposite ") for name, value in found.items() if name.startswith("opposite ") and not value
    ]
    if unequal:
        msg = f"potential {names_of(unequal)}: relative=True, but the forces on the two coordinates are not opposite"
        raise ValueError(msg)
    if found["mass singular"]:
        msg = "mass is singular at the start; if the constraints make up for it, use carom.augmented(system, state)"
        raise ValueError(msg)
    if not found["mass positive"]:
        msg = "mass is not symmetric positive definite at the start"
        raise ValueError(msg)
    if "kinematics defect" in found and found["kinematics defect"] > _AFFINE:
        msg = "kinematics must be affine in v"
        raise ValueError(msg)
    if "slip defect" in found and found["slip defect"] > _AFFINE:
        msg = "slip_velocity must be affine in v: a directed velocity, not its size"
        raise ValueError(msg)
    if "quadratic defect" in found and found["quadratic defect"] > 1e-8:
        msg = "the Lagrangian must be quadratic in v; for other ones use System.from_hamiltonian"
        raise ValueError(msg)
    if "constraint residual" in found:
        _check_constraints(found)
    if "gap" in found and (found["gap"] < 0).any():
        i = int(np.argmin(found["gap"]))
        msg = f"contact {_called(system, state, i)} starts with penetration: gap = {found['gap'][i]:.3g}"
        warnings.warn(msg, stacklevel=users_frame())


def not_finite_ahead(system: System, state: State, reach: float, stop: Any = None) -> str:
    """Names the function that is NaN or infinite at the last state, or up to `reach` ahead of it on a straight line."""
    rate = system.rate(state.t, state.q, state.v)
    for part in _AHEAD:
        t, q = state.t + part * reach, state.q + part * reach * rate
        for role, value in _values_by_name(system, t, q, state.v, stop):
            values = np.atleast_1d(np.asarray(value))
            bad = np.isnan(values) if role == "limit" else ~np.isfinite(values)  # a clutch has an infinite limit
            if bad.any():
                i = int(np.argmax(bad.reshape(len(bad), -1).any(axis=1)))
                name = _called(system, state, i) if role in _OF_CONTACTS else str(i)
                which = f" {name}" if role in _COUNTED else ""
                kind = "NaN" if np.isnan(values).any() else "infinite"
                when = float(system.epoch + system.turned(t))
                return f"{role}{which} is {kind} at t = {when:.9g}, q = {np.asarray(q)[:4]}"
    return ""


def _called(system: System, state: State, contact: int) -> str:
    groups = system.contact_groups
    if all(isinstance(group, AbstractBodyContacts) for group in groups):
        return partners(groups, contact)
    names = groups[0].names if len(groups) == 1 else laws_of(system, state).names  # sizes of several take a trace, 5 ms
    return names[contact] if names and names[contact] else str(contact)


def _values_by_name(system: System, t: Array, q: Array, v: Array, stop: Any) -> Iterator[tuple[str, Array]]:
    p, rate = system.given, system.rate(t, q, v)
    lam = jnp.zeros(system.constraint(t, q).size)
    if stop is not None:
        yield "stop", stop(p, t=system.turned(t), q=q, v=system.outer_velocity(t, q, v))
    if system.contacts is not None or system.friction is not None:
        at = contact_rows(system, t, q, v)
        laws, sizes = at.laws, at.laws.by_law(jnp.abs(at.gamma))
        rates, friction, elements = jnp.split(sizes, [laws.contacts, laws.contacts + laws.frictions])
        yield "gap", at.gap
        yield "rate of gap", rates
        yield "slip velocity", laws.on_contacts(friction)
        yield "slip velocity of friction element", elements
        yield "limit", at.limits
    yield "mass", system.dense_mass_at(t, q)
    for name in system.forces:
        yield f"force '{name}'", system.named_force(name, t, q, v, lam)
    for name in system.potential:
        yield role_of("potential", name), system.part_force(name, t, q)
        yield role_of("potential", name), system.part_energy(name, t, q)
    if system.rate_damping:
        yield "rate damping", system.damped_impulse(t, q)
    if system.hamiltonian is not None:
        yield "Hamiltonian", system.total_energy(t, q, v)
    yield "q'", rate
    yield "constraint", system.constraint(t, q)
    if system.constraints is not None or system.nonholonomic is not None:
        yield "rate of constraint", velocity_residual(system, t, q, v)


def check_lengths(system: System, state: State) -> None:
    """Raise where state, mass, labels or units do not fit each other."""
    n, m = state.q.size, state.v.size
    for name, value in (("q", state.q), ("v", state.v), ("t", state.t)):
        if not np.isfinite(np.asarray(value)).all():
            where = f"{name}[{int(np.argmax(~np.isfinite(np.asarray(value))))}]" if value.ndim else name
            msg = f"State: {where} is not finite"
            raise ValueError(msg)
    if system.kinematics is None and n != m:
        msg = f"State: q has {n} entries but v has {m}; they differ only with kinematics="
        raise ValueError(msg)
    if not callable(system.mass) and system.mass.ndim and system.mass.shape[0] != m:
        msg = f"mass has {system.mass.shape[0]} entries, but the state has {m} velocities"
        raise ValueError(msg)
    if system.labels and len(system.labels) != n:
        msg = f"labels has {len(system.labels)} entries, but the state has {n} coordinates"
        raise ValueError(msg)
    if len(system.units) not in (0, 1, n):
        msg = f"units has {len(system.units)} entries, but the state has {n} coordinates: give one for all or one each"
        raise ValueError(msg)


def _mass_facts(system: System, t: Array, q: Array, v: Array) -> tuple[Array, Array, Array]:
    """Eigenvalues of the mass (of its part tangent to the constraints), their sizes for the whole, and symmetry."""
    M = system.mass_at(t, q)
    if hasattr(M, "pivots"):
        return M.pivots(), jnp.abs(M.pivots()), jnp.asarray(True)
    if M.ndim < 2:
        return jnp.atleast_1d(M), jnp.ones(1), jnp.asarray(True)
    on_manifold = M
    if system.constraints is not None:
        tangent = jnp.linalg.svd(directions(system, t, q, v))[2][system.constraint(t, q).size :]
        on_manifold = tangent @ M @ tangent.T
    symmetric = jnp.all(jnp.abs(M - M.T) <= 1e-9 * jnp.max(jnp.abs(M)))
    return jnp.linalg.eigvalsh(on_manifold), jnp.abs(jnp.linalg.eigvalsh(M)), symmetric


def measure(system: System, state: State) -> Findings:
    """The numbers that `check` looks at."""
    system, t, q = system.since(state.t), jnp.zeros_like(state.t), state.q
    v = system.inner_velocity(t, q, state.v)
    eigenvalues, sizes, symmetric = _mass_facts(system, t, q, v)
    found = {
        "mass singular": jnp.min(sizes) <= 1e-13 * jnp.max(sizes),
        "mass positive": jnp.all(eigenvalues > 0) & symmetric,
        "finite potential": jnp.isfinite(system.potential_energy(t, q)),
        "finite forces": jnp.all(jnp.isfinite(system.conservative_force(t, q))),
        "finite q'": jnp.all(jnp.isfinite(system.rate(t, q, v))),
    }
    for name, part in system.potential.items():
        if isinstance(part, Interactions) and part.relative:
            found[f"opposite {name}"] = part.is_opposite(q)
    lam = jnp.zeros(system.constraint(t, q).size)
    if system.hamiltonian is not None:
        found["finite Hamiltonian"] = jnp.isfinite(system.total_energy(t, q, v))
    for name in system.forces:
        found[f"finite force {name}"] = jnp.all(jnp.isfinite(system.named_force(name, t, q, v, lam)))
    if system.potential:
        stiffness = jax.jvp(lambda x: system.conservative_force(t, x), (q,), (jnp.ones_like(q),))[1]
        found["finite derivative of the forces"] = jnp.all(jnp.isfinite(stiffness))
    if system.kinematics is not None:
        found["kinematics defect"] = _bend(lambda u: system.rate(t, q, u), v)
    if isinstance(owner := getattr(getattr(system.mass, "fn", None), "__self__", None), Lagrangian):
        found["quadratic defect"] = owner.quadratic_defect(t, q, v + 1.0, system.given)
    if system.constraints is not None or system.nonholonomic is not None:
        saddle = Saddle.of(system, t, q, v)
        found["constraint residual"], found["constraint rate"] = constraint_residuals(system, t, q, v, saddle.D)
        found["constraint acceleration"], at = contradiction(saddle)
        found["constraint rank"] = jnp.stack([at.u.size - at.redundant, at.u.size])
    if system.contacts is not None:
        found["gap"] = system.gaps(t, q)
        found["finite gap"] = jnp.all(jnp.isfinite(found["gap"]))
    owners = (*system.contact_groups, *system.friction_groups)
    slips = [owner.slip_rates for owner in owners if owner.has_slip_velocity]
    if slips:
        bends = [_bend(lambda u, s=s: s(system.given, t, q, system.rate(t, q, u), u), v) for s in slips]
        found["slip defect"] = jnp.max(jnp.stack(bends))
    return Findings.of(found)


def _bend(fn: Callable[[Array], Array], v: Array) -> Array:
    """How far a function of velocities is from an affine one, on both sides of rest; relative where it is large."""
    w = 1.0 + jnp.abs(v)
    ahead, rest, back = fn(w), fn(jnp.zeros_like(v)), fn(-2 * w)
    return jnp.max(jnp.abs(2 * ahead + back - 3 * rest) / (1 + jnp.abs(ahead) + jnp.abs(back)), initial=0.0)


_measure_one = compiled_hastily(measure)


@compiled
def _measure_lanes(system: System, states: State, axes: Any) -> Findings:
    return eqx.filter_vmap(measure, in_axes=(axes, eqx.if_array(0)))(system, states)


def _check_constraints(found: dict[str, np.ndarray]) -> None:
    for name, what in (("constraint residual", "g(q)"), ("constraint rate", "d/dt g(q) or k(q, v)")):
        if found[name] > _CONSISTENT:
            size = f"|{what}| = {float(found[name]):.3g} relative to the size of its terms"
            offer = "project it with state = carom.consistent(system, state)"
            msg = f"the start does not fulfil the constraints: {size}; {offer}"
            raise ValueError(msg)
    rank, count = found["constraint rank"].astype(int).tolist()
    if rank < count and not found["constraint acceleration"] <= _CONSISTENT:
        left = float(found["constraint acceleration"])
        msg = (
            f"the constraints contradict each other: rank {rank} of {count} at the start, and no acceleration fulfils "
            f"them; |d2/dt2 g(q)| = {left:.3g} relative to its terms is left"
        )
        raise ValueError(msg)
