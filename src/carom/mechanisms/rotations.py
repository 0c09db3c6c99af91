"""Rotations in the plane (an angle) and in space (a unit quaternion, its real part first)."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import is_traced, numpy_for
from carom.state import reals


def _products(terms: str, count: int, scale: float) -> np.ndarray:
    """Sums of products, `+wx-yz`, as columns of a matrix: of two quaternions, or of one and a vector."""
    table = np.zeros((4, count, len(terms.split())))
    for k, term in enumerate(terms.split()):
        for sign, a, b in zip(term[::3], term[1::3], term[2::3]):
            table["wxyz".index(a), ("wxyz" if count == 4 else "xyz").index(b), k] = scale * (1 - 2 * (sign == "-"))
    return table


_TURN = _products("-yy-zz +xy-wz +xz+wy +xy+wz -xx-zz +yz-wx +xz-wy +yz+wx -xx-yy", 4, 1.0).reshape(16, 9)
_RATE = np.moveaxis(_products("-xx-yy-zz +wx+yz-zy +wy+zx-xz +wz+xy-yx", 3, 0.5), 1, 2).reshape(4, 12)


def plane_rotation(angle: Array) -> Array:
    """The matrix of an angle."""
    xp = numpy_for(angle)
    c, s = xp.cos(angle), xp.sin(angle)
    return xp.stack([xp.stack([c, -s], -1), xp.stack([s, c], -1)], -2)


def space_rotation(p: Array) -> Array:
    """The matrix of a quaternion of any length: from body axes to those of space."""
    xp = numpy_for(p)
    squares = p[..., :, None] * (p * (2.0 / xp.sum(p * p, -1, keepdims=True)))[..., None, :]
    turned = squares.reshape(*p.shape[:-1], 16) @ xp.asarray(_TURN, p.dtype)
    return xp.eye(3, dtype=p.dtype) + turned.reshape(*p.shape[:-1], 3, 3)


def quaternion_rate(p: Array, omega: Array) -> Array:
    """p' = p (0, omega) / 2, with the angular velocity in body axes."""
    products = (p @ jnp.asarray(_RATE, p.dtype)).reshape(*p.shape[:-1], 4, 3)
    return jnp.sum(products * omega[..., None, :], -1)


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


def _span(z: np.ndarray, x: np.ndarray | None) -> bool:
    """Whether z and x are directions, and not the same one."""
    size = np.linalg.norm(z)
    return bool(size > 0 and (x is None or np.linalg.norm(np.cross(z / size, x)) > 1e-12 * np.linalg.norm(x)))


def axes_with(z: Any, x: Any, who: str) -> Any:
    """A right-handed frame with the third axis along z, its first one near x if given; columns are its axes."""
    if not is_traced(z, x) and not _span(z, x):
        msg = f"{who}: axis must not be zero, nor parallel to across, got {z} and {x}"
        raise ValueError(msg)
    xp = numpy_for(z, x)
    z = z / xp.linalg.norm(z)
    x = xp.eye(3)[xp.argmin(xp.abs(z))] if x is None else x
    x = x - (x @ z) * z
    x = x / xp.linalg.norm(x)
    return xp.stack([x, xp.cross(z, x), z], 1)
