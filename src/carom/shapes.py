"""Ready-made shapes for `Contacts.between` and walls for `Contacts.each`, in the plane and in space.

A disk has the coordinates (x, y, angle) and the velocities (x', y', angular velocity); a sphere has its place as first
three coordinates, and the velocities (x', y', z', angular velocity in space). Their data is the radius.

The lever arms of a pair end at one point on the line of centres, which divides it like the radii: where disks overlap a
little, friction then still acts at one point on both, and angular momentum is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import numbers, plain_numbers
from carom.state import Numbers
from carom.systems.shape import Shape, Wall


def _length(x: Array) -> Array:
    return jnp.sqrt(jnp.sum(x * x))


def _disk_gap(a: Array, b: Array, r: Array, s: Array) -> Array:
    return _length(b[:2] - a[:2]) - (r + s)


def _disk_slip(a: Array, b: Array, u: Array, w: Array, r: Array, s: Array) -> Array:
    across = b[:2] - a[:2]
    n = across / _length(across)
    arm = _length(across) / (r + s)
    return n[0] * (w[1] - u[1]) - n[1] * (w[0] - u[0]) - arm * (r * u[2] + s * w[2])


def _sphere_gap(a: Array, b: Array, r: Array, s: Array) -> Array:
    return _length(b[:3] - a[:3]) - (r + s)


def _sphere_slip(a: Array, b: Array, u: Array, w: Array, r: Array, s: Array) -> Array:
    across = b[:3] - a[:3]
    n = across / _length(across)
    arm = _length(across) / (r + s)
    return tangents(n) @ (w[:3] - u[:3] - jnp.cross(arm * (r * u[3:] + s * w[3:]), n))


def tangents(n: Array) -> Array:
    """Two unit vectors across n, and across each other; they turn with n but for a jump where n[2] changes sign."""
    sign = jnp.where(n[2] >= 0, 1.0, -1.0)
    a = -1.0 / (sign + n[2])
    b = n[0] * n[1] * a
    return jnp.array([[1.0 + sign * n[0] ** 2 * a, sign * b, -sign * n[0]], [b, sign + n[1] ** 2 * a, -n[1]]])


disk = Shape(_disk_gap, _disk_slip, dimension=2, radii=True)
sphere = Shape(_sphere_gap, _sphere_slip, dimension=3, radii=True)


def _slip_of(n: Array, relative: Array, spin: Array, r: Array) -> Array:
    """Slip velocity, along a surface with the normal n, of a disk or sphere that moves by `relative` beside it."""
    if n.size == 2:
        return (n[1] * relative[0] - n[0] * relative[1] + r * spin[0])[None]
    return tangents(n) @ (relative - jnp.cross(r * spin, n))


class _Plane(eqx.Module):
    """Planes with normals that point to the inside, each at its distance from the origin."""

    normals: Array
    offsets: Array

    def gap(self, q: Array, r: Array) -> Array:
        return self.normals @ q[: self.normals.shape[1]] - self.offsets - r

    def slip(self, q: Array, v: Array, r: Array) -> Array:
        del q
        d = self.normals.shape[1]
        return jnp.stack([_slip_of(n, v[:d], v[d:], r) for n in self.normals])


def _unit(normal: Any, name: str) -> np.ndarray:
    n = np.asarray(normal, float)
    if n.shape not in ((2,), (3,)) or not np.isfinite(n).all() or not n.any():
        msg = f"{name}: normal must be a vector of two or three numbers, not all zero, got {normal!r}"
        raise ValueError(msg)
    return n / np.linalg.norm(n)


def _wall(surface: Any) -> Wall:
    return Wall(surface.gap, surface.slip, radii=True)


def half_plane(normal: Numbers, offset: float = 0.0) -> Wall:
    """The half plane (in space: half space) `normal . x >= offset`.

    Example:
        >>> floor = carom.shapes.half_plane((0, 1))
    """
    n = _unit(normal, "half_plane")
    return _wall(_Plane(jnp.asarray(n[None]), numbers(offset, "half_plane: offset").reshape(1)))


def box(lower: Numbers, upper: Numbers) -> Wall:
    """The inside of a box; infinite bounds leave a side open.

    Example:
        >>> open_above = carom.shapes.box(lower=(0, 0), upper=(10, jnp.inf))
    """
    bounds = np.concatenate([np.asarray(lower, float), -np.asarray(upper, float)])
    d = bounds.size // 2
    if (
        np.shape(lower) != np.shape(upper)
        or d not in (2, 3)
        or np.isnan(bounds).any()
        or (bounds[:d] >= -bounds[d:]).any()
    ):
        msg = f"box: lower must lie below upper, two or three numbers each, got {lower!r} and {upper!r}"
        raise ValueError(msg)
    there = np.isfinite(bounds)
    return _wall(_Plane(jnp.asarray(np.vstack([np.eye(d), -np.eye(d)])[there]), jnp.asarray(bounds[there])))


class _Drum(eqx.Module):
    radius: Array
    speed: Array

    def gap(self, q: Array, r: Array) -> Array:
        return self.radius - _length(q[:2]) - r

    def slip(self, q: Array, v: Array, r: Array) -> Array:
        inward = -q[:2] / _length(q[:2])
        wall = self.speed * self.radius * jnp.array([inward[1], -inward[0]])
        return _slip_of(inward, v[:2] - wall, v[2:], r)


def drum(radius: float, speed: float = 0.0) -> Wall:
    """The inside of a drum around the origin that turns with an angular velocity, in the plane.

    Example:
        >>> mixer = carom.shapes.drum(20.0, speed=0.1)
    """
    return _wall(_Drum(numbers(radius, "drum: radius", positive=True), numbers(speed, "drum: speed")))


class _Plate(eqx.Module):
    normal: Array
    position: Callable[..., Any]

    def gap(self, t: Array, q: Array, r: Array) -> Array:
        place = jnp.asarray(self.position(t), float)
        return self.normal @ (q[: self.normal.size] - place) - r

    def slip(self, t: Array, q: Array, v: Array, r: Array) -> Array:
        del q
        d = self.normal.size
        velocity = jax.jvp(lambda s: jnp.asarray(self.position(s), float), (t,), (jnp.ones_like(t),))[1]
        return _slip_of(self.normal, v[:d] - velocity, v[d:], r)


def plate(normal: Numbers, position: Callable[..., Any]) -> Wall:
    """A plate that moves: its point at `position(t)`, the free side where `normal` points.

    Example:
        >>> shaker = carom.shapes.plate((0, 1), lambda t: jnp.array([0.0, 0.1 * jnp.sin(10 * t)]))
    """
    if not callable(position):
        msg = f"plate: position must be a function of t, got {position!r}"
        raise TypeError(msg)
    return _wall(_Plate(jnp.asarray(_unit(normal, "plate")), position))


class _Segments(eqx.Module):
    starts: Array
    ends: Array

    def gap(self, q: Array, r: Array) -> Array:
        return jnp.sqrt(jnp.sum(self._across(q) ** 2, axis=1)) - r

    def slip(self, q: Array, v: Array, r: Array) -> Array:
        across = self._across(q)
        normals = across / jnp.sqrt(jnp.sum(across**2, axis=1, keepdims=True))
        return jnp.stack([_slip_of(n, v[:2], v[2:], r) for n in normals])

    def _across(self, q: Array) -> Array:
        """From the nearest point of each segment to the body."""
        along, from_start = self.ends - self.starts, q[:2] - self.starts
        share = jnp.sum(along * from_start, axis=1) / jnp.sum(along * along, axis=1)
        return from_start - jnp.clip(share, 0.0, 1.0)[:, None] * along


def hopper(opening: float, angle: float, height: float) -> Wall:
    """Two straight walls up from an opening at y = 0, each turned from the upright by `angle`, up to `height`.

    Example:
        >>> funnel = carom.shapes.hopper(opening=5.0, angle=jnp.pi / 6, height=30.0)
    """
    half = 0.5 * float(plain_numbers(opening, "hopper: opening", positive=True))
    height = float(plain_numbers(height, "hopper: height", positive=True))
    turned = float(plain_numbers(angle, "hopper: angle"))
    top = half + height * np.tan(turned)
    if not (abs(turned) < np.pi / 2 and top > 0):
        msg = f"hopper: angle must lie between -pi / 2 and pi / 2, with walls that do not cross, got {angle!r}"
        raise ValueError(msg)
    starts, ends = [[-half, 0.0], [half, 0.0]], [[-top, height], [top, height]]
    return _wall(_Segments(jnp.asarray(starts, float), jnp.asarray(ends, float)))
