"""Bring bodies to where their joints hold: the nearest pose and the nearest velocities, redundant joints included."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.bodies import Bodies
from carom.mechanisms.holding import Holding, Rolling
from carom.mechanisms.joints import Joint
from carom.mechanisms.poses import Normalised, rate
from carom.running.compiled import compiled_hastily
from carom.solvers.roots import held

_STEPS = 100
_HELD = 1e-12  # largest residual of joints that hold, relative to the size of the mechanism
_RANK = 1e-9  # singular values this small (relative) are those of dependent rows
_ROUNDING = 1e-14  # velocities this small (relative to those given) are zero
_LONGEST = 0.5  # of a step, relative to the size of the mechanism


@compiled_hastily
def _rows(holding: Holding | None, rolling: Rolling | None, q: Array, v: Array) -> tuple[Array, Array, Array]:
    """g, the rows d(g', k)/dv, and the values of g' and k."""
    bodies: Bodies = (holding or rolling).bodies  # pyright: ignore

    def velocities(u: Array) -> Array:
        held = jnp.zeros(0) if holding is None else jax.jvp(holding, (q,), (rate(bodies, q, u),))[1]
        return held if rolling is None else jnp.concatenate([held, rolling(q, u)])

    return jnp.zeros(0) if holding is None else holding(q), jax.jacfwd(velocities)(v), velocities(v)


def assembled(holding: Holding, joints: Sequence[Joint], spans: Sequence[slice], q: np.ndarray, v: np.ndarray):
    """(q, v) on the joints next to the given ones in the norm of unit masses, and the rank of their rows."""
    bodies, rolling = holding.bodies, holding.rolling
    moved = _mover(bodies)
    places = np.asarray(bodies.positions(q))[:, : 2 if bodies.dof == 3 else 3]  # pyright: ignore
    size = float(np.ptp(places, axis=0).max()) + 1.0
    for _ in range(_STEPS):
        g, C, _ = (np.asarray(x) for x in _rows(holding, rolling, jnp.asarray(q), jnp.asarray(v)))
        if not np.isfinite(g).all() or np.abs(g).max(initial=0.0) <= 1e-15 * size:
            break
        step = np.linalg.lstsq(C[: g.size], -g, rcond=_RANK)[0]
        longest = np.abs(step).max()
        q = np.asarray(moved(jnp.asarray(q), jnp.asarray(step * min(1.0, _LONGEST * size / longest))))
        if longest <= 1e-16 * size:
            break
    g, C, rates = (np.asarray(x) for x in _rows(holding, rolling, jnp.asarray(q), jnp.asarray(v)))
    _refuse(g, size, joints, spans)
    values = np.linalg.svd(C, compute_uv=False)
    u = v - np.linalg.lstsq(C, rates, rcond=_RANK)[0]
    u = u - np.linalg.lstsq(C, np.asarray(_rows(holding, rolling, jnp.asarray(q), jnp.asarray(u))[2]), rcond=_RANK)[0]
    u = np.where(np.abs(u) <= _ROUNDING * np.abs(v).max(), 0.0, u)
    return q, u, int(np.sum(values > _RANK * values.max(initial=0.0)))


def assembled_unknown(holding: Holding, q: Array, v: Array) -> tuple[Array, Array]:
    """The same pose and velocities where numbers are traced, with their derivatives; NaN where none is near."""
    bodies, rolling = holding.bodies, holding.rolling
    moved, q, v = _mover(bodies), jnp.asarray(q), jnp.asarray(v)
    places = jnp.asarray(bodies.positions(q))[:, : 2 if bodies.dof == 3 else 3]
    size = held(jnp.max(jnp.max(places, axis=0) - jnp.min(places, axis=0)) + 1.0)

    def nearer(q: Array, _: None) -> tuple[Array, None]:
        g, C = _rows(holding, rolling, q, v)[:2]
        step = -jnp.linalg.pinv(C[: g.size], rtol=_RANK) @ g
        longest = held(jnp.max(jnp.abs(step)))
        far = longest > _LONGEST * size
        return moved(q, step * jnp.where(far, _LONGEST * size / jnp.where(far, longest, 1.0), 1.0)), None

    q = jax.lax.scan(nearer, q, None, length=_STEPS)[0]
    g, C, rates = _rows(holding, rolling, q, v)
    onto = jnp.linalg.pinv(C, rtol=_RANK)
    u = v - onto @ rates
    there = jnp.max(jnp.abs(g), initial=0.0) <= _HELD * size
    return jnp.where(there, q, jnp.nan), u - onto @ _rows(holding, rolling, q, u)[2]


def _mover(bodies: Bodies):
    """q after a small motion with the velocities v."""
    if bodies.coordinates == bodies.dof:
        return lambda q, v: q + v
    return lambda q, v: Normalised(bodies)(q + rate(bodies, q, v))


def _refuse(g: np.ndarray, size: float, joints: Sequence[Joint], spans: Sequence[slice]) -> None:
    left = [np.abs(g[span]).max(initial=0.0) for span in spans]
    if np.isfinite(left).all() and max(left, default=0.0) <= _HELD * size:
        return
    worst = np.argsort(np.nan_to_num(left, nan=np.inf))[::-1]
    parts = [f"{joints[i]} by {left[i]:.3g}" for i in worst[:3] if not left[i] <= _HELD * size]
    msg = (
        "the joints cannot be assembled: next to the given start there is no pose that all of them allow; left open "
        f"are {', '.join(parts)}. Check lengths and points, or start nearer to a closed pose"
    )
    raise ValueError(msg)
