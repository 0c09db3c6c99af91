"""Rotations in the plane (an angle) and in space (a unit quaternion, its real part first)."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import is_traced, numpy_for
from carom.state import reals


def plane_rotation(angle: Array) -> Array:
    """The matrix of an angle."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([jnp.stack([c, -s], -1), jnp.stack([s, c], -1)], -2)


def space_rotation(p: Array) -> Array:
    """The matrix of a quaternion of any length: from body axes to those of space."""
    w, x, y, z = jnp.moveaxis(p, -1, 0)
    s = 2.0 / jnp.sum(p * p, -1)
    rows = (
        (1 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)),
        (s * (x * y + w * z), 1 - s * (x * x + z * z), s * (y * z - w * x)),
        (s * (x * z - w * y), s * (y * z + w * x), 1 - s * (x * x + y * y)),
    )
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


def quaternion_rate(p: Array, omega: Array) -> Array:
    """p' = p (0, omega) / 2, with the angular velocity in body axes."""
    w, u = p[..., :1], p[..., 1:]
    real = -jnp.sum(u * omega, -1, keepdims=True)
    return 0.5 * jnp.concatenate([real, w * omega + jnp.cross(u, omega)], -1)


def quaternion(rotation: Any, name: str) -> Any:
    """A unit quaternion from a quaternion, a rotation matrix, or a rotation vector (axis times angle)."""
    given = reals(rotation, name, "a quaternion, a rotation vector or a rotation matrix")
    xp, known = numpy_for(given), not is_traced(given)
    if given.shape not in ((3,), (4,), (3, 3)) or (known and not np.isfinite(given).all()):
        msg = f"{name} must be a quaternion (w, x, y, z), a rotation vector or a rotation matrix, got {rotation!r}"
        raise ValueError(msg)
    if given.shape == (3,):
        angle = xp.sqrt(given @ given + (0.0 if known else 1e-300))
        return xp.append(xp.cos(angle / 2), 0.5 * xp.sinc(angle / (2 * np.pi)) * given)
    if given.shape == (3, 3):
        return _of_matrix(np.asarray(given), name)
    if known and not np.linalg.norm(given) > 0:
        msg = f"{name} must not be the quaternion zero"
        raise ValueError(msg)
    return given / xp.linalg.norm(given)


def _of_matrix(R: np.ndarray, name: str) -> np.ndarray:
    if np.abs(R @ R.T - np.eye(3)).max() > 1e-9 or np.linalg.det(R) < 0:
        msg = f"{name} must be a rotation matrix: R R^T = 1 and det R = 1"
        raise ValueError(msg)
    squares = np.array([1 + np.trace(R), *(1 - np.trace(R) + 2 * np.diag(R))])
    k = int(np.argmax(squares))
    odd = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    if k == 0:
        p = np.append(squares[0], odd)
    else:
        even = (R + R.T)[k - 1]
        p = np.concatenate([odd[k - 1 : k], even])
        p[k] = squares[k]
    return p / np.linalg.norm(p)


def axes_with(z: Any, x: Any = None) -> Any:
    """A right-handed frame with the third axis along z, its first one near x; columns are its axes."""
    xp = numpy_for(z, x)
    z = z / xp.linalg.norm(z)
    x = xp.eye(3)[xp.argmin(xp.abs(z))] if x is None else x
    x = x - (x @ z) * z
    x = x / xp.linalg.norm(x)
    return xp.stack([x, xp.cross(z, x), z], 1)
