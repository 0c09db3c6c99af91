"""Checks of a system at a state, before any step is taken."""

from __future__ import annotations

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from carom.state import State
from carom.systems.arguments import names_of
from carom.systems.system import System

_CONSISTENT = 1e-8


def check(system: System, state: State) -> None:
    """Raise, in the user's words, if `system` cannot be run from `state`.

    Looked at: lengths, finite start, mass symmetric and positive, forces and their derivatives free of NaN, kinematics
    affine in v, constraint residuals and rank, gap signs. `simulate` calls this first.

    Example:
        >>> carom.check(*carom.models.newtons_cradle(5))
    """
    _check_lengths(system, state)
    found = {name: np.asarray(value) for name, value in _measure(system, state).items()}
    bad = [name for name, value in found.items() if name.startswith("finite ") and not value]
    if bad:
        names = names_of([name.removeprefix("finite ") for name in bad])
        msg = f"NaN or infinity at the start (t = {float(state.t):g}) in {names}"
        raise ValueError(msg)
    if not found["mass positive"]:
        msg = "mass is not symmetric positive definite at the start"
        raise ValueError(msg)
    if "kinematics defect" in found and found["kinematics defect"] > 1e-9:
        msg = "kinematics must be affine in v"
        raise ValueError(msg)
    if "constraint residual" in found:
        _check_constraints(found)
    if "gap" in found and (found["gap"] < 0).any():
        i = int(np.argmin(found["gap"]))
        warnings.warn(f"contact {i} starts with penetration: gap = {found['gap'][i]:.3g}", stacklevel=3)


def _check_lengths(system: System, state: State) -> None:
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


@eqx.filter_jit
def _measure(system: System, state: State) -> dict[str, jax.Array]:
    t, q, v = state.t, state.q, system.inner_velocity(state.t, state.q, state.v)
    M = system.mass_at(t, q)
    eigenvalues = jnp.linalg.eigvalsh(M) if M.ndim == 2 else M
    symmetric = jnp.all(jnp.abs(M - M.T) <= 1e-9 * jnp.max(jnp.abs(M))) if M.ndim == 2 else True
    found = {
        "mass positive": jnp.all(eigenvalues > 0) & symmetric,
        "finite potential": jnp.isfinite(system.potential_energy(t, q)),
        "finite forces": jnp.all(jnp.isfinite(system.conservative_force(t, q))),
        "finite q'": jnp.all(jnp.isfinite(system.rate(t, q, v))),
    }
    lam = jnp.zeros(system.constraint(t, q).size)
    for name in system.forces:
        found[f"finite force {name}"] = jnp.all(jnp.isfinite(system.named_force(name, t, q, v, lam)))
    if system.potential:
        stiffness = jax.jvp(lambda x: system.conservative_force(t, x), (q,), (jnp.ones_like(q),))[1]
        found["finite derivative of the forces"] = jnp.all(jnp.isfinite(stiffness))
    if system.kinematics is not None:
        rate = lambda u: system.rate(t, q, u)  # noqa: E731
        found["kinematics defect"] = jnp.max(jnp.abs(rate(2 * v + 1) - 2 * rate(v + 0.5) + rate(jnp.zeros_like(v))))
    if system.constraints is not None:
        G = jax.jacfwd(lambda x: system.constraint(t, x))(q)
        dg = jax.jvp(system.constraint, (t, q), (jnp.ones_like(t), system.rate(t, q, v)))[1]
        scale = jnp.max(jnp.abs(G)) * (jnp.max(jnp.abs(q)) + 1e-300)
        found["constraint residual"] = jnp.max(jnp.abs(system.constraint(t, q))) / scale
        found["constraint rate"] = jnp.max(jnp.abs(dg)) / (
            jnp.max(jnp.abs(G)) * jnp.maximum(jnp.max(jnp.abs(v)), 1e-12)
        )
        found["constraint singular values"] = jnp.linalg.svd(G, compute_uv=False)
    if system.contacts is not None:
        found["finite gap"] = jnp.all(jnp.isfinite(system.contacts.gaps(system.params, t, q)))
        found["gap"] = system.contacts.gaps(system.params, t, q)
    return found


def _check_constraints(found: dict[str, np.ndarray]) -> None:
    singular = found["constraint singular values"]
    if singular.size and singular.min() < 1e-10 * singular.max():
        msg = f"constraints are redundant: rank {int((singular > 1e-10 * singular.max()).sum())} of {singular.size}"
        raise ValueError(msg)
    for name, what in (("constraint residual", "g(q)"), ("constraint rate", "d/dt g(q)")):
        if found[name] > _CONSISTENT:
            size = f"|{what}| = {float(found[name]):.3g} relative"
            msg = f"the start does not fulfil the constraints: {size}; use carom.consistent"
            raise ValueError(msg)
