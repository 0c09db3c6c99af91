"""Where the bodies of a mechanism are, how they move, and the forces that act on each of them alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.bodies import Bodies
from carom.mechanisms.equations import At
from carom.mechanisms.picking import picked
from carom.mechanisms.rotations import plane_rotation, quaternion_rate, space_rotation


class Poses(NamedTuple):
    """Places, rotation matrices and (in the plane) angles of all bodies; with the ground as the last one."""

    place: Any
    turn: Any
    angle: Any


def frames(q: Array, bodies: Bodies) -> Poses:
    """Places and rotations of the bodies without the ground."""
    each = bodies.positions(q)
    if bodies.coordinates == 3:
        return Poses(each[:, :2], plane_rotation(each[:, 2]), each[:, 2])
    return Poses(each[:, :3], space_rotation(each[:, 3:]), jnp.zeros(len(bodies)))


def poses(q: Array, bodies: Bodies) -> Poses:
    """Places and rotations of the bodies and the ground."""
    moving = frames(q, bodies)
    d = moving.place.shape[1]
    still = (jnp.zeros((1, d)), jnp.eye(d)[None], jnp.zeros(1))
    return Poses(*(jnp.concatenate(pair) for pair in zip(moving, still)))


def on_bodies(x: Array, rows: tuple[int, ...]) -> Array:
    """The rows of the bodies with these numbers, of which the ground is the last; it does not move."""
    ground = np.asarray(rows) == len(x) - 1
    found = picked(x[:-1], rows)
    return found + ground.reshape(-1, *(1,) * (x.ndim - 1)) * x[-1] if ground.any() else found


class Side(eqx.Module):
    """One frame per joint, each fixed to a body."""

    body: tuple[int, ...] = eqx.field(static=True)
    point: Array
    axes: Array
    angle: Array

    def at(self, bodies: Poses) -> At:
        """The frames in space, one row per joint."""
        d = self.point.shape[1]
        found = on_bodies(jnp.concatenate([bodies.turn, bodies.place[..., None]], 2), self.body)
        fixed = jnp.concatenate([self.axes, self.point[..., None]], 2)
        turned = jnp.sum(found[..., :d, None] * fixed[:, None], 2)
        angle = on_bodies(bodies.angle, self.body) + self.angle if d == 2 else self.angle
        return At(found[..., d] + turned[..., d], turned[..., :d], angle)

    @classmethod
    def joined(cls, sides: Sequence[Side]) -> Side:
        """The frames of several, one after another."""
        arrays = (jnp.concatenate([getattr(side, name) for side in sides]) for name in ("point", "axes", "angle"))
        return cls(tuple(i for side in sides for i in side.body), *arrays)


class Kinematics(eqx.Module):
    """Places follow velocities, quaternions the angular velocities in body axes."""

    bodies: Bodies

    def __call__(self, t: Array, q: Array, v: Array) -> Array:
        """The rate of q."""
        del t
        each, moving = self.bodies.positions(q), self.bodies.velocities(v)
        return jnp.concatenate([moving[:, :3], quaternion_rate(each[:, 3:], moving[:, 3:])], 1).reshape(-1)


class Normalised(eqx.Module):
    """Quaternions of length one."""

    bodies: Bodies

    def __call__(self, q: Array) -> Array:
        """The coordinates with quaternions divided by their lengths."""
        each = self.bodies.positions(q)
        p = each[:, 3:]
        return jnp.concatenate([each[:, :3], p / jnp.sqrt(jnp.sum(p * p, 1, keepdims=True))], 1).reshape(-1)


def rate(bodies: Bodies, q: Array, v: Array) -> Array:
    """q' of a mechanism."""
    return v if bodies.coordinates == bodies.dof else Kinematics(bodies)(jnp.zeros(()), q, v)


class Weight(eqx.Module):
    """The energy of the bodies in a homogeneous field."""

    bodies: Bodies
    weights: Array

    def __call__(self, q: Array) -> Array:
        """-sum of m g . x."""
        return -jnp.sum(self.weights * self.bodies.positions(q)[:, : self.weights.shape[1]])


class Gyroscopic(eqx.Module):
    """What the rotation of body axes asks for: the torque -omega x J omega."""

    bodies: Bodies
    inertia: Array

    def __call__(self, t: Array, q: Array, v: Array) -> Array:
        """The torques, and no forces."""
        del t, q
        omega = self.bodies.velocities(v)[:, 3:]
        torque = jnp.cross(jnp.sum(self.inertia * omega[:, None], 2), omega)
        return jnp.concatenate([jnp.zeros_like(torque), torque], 1).reshape(-1)


def spins(bodies: Bodies, at: Poses, v: Array) -> Array:
    """Angular velocities in space, one row per body; in the plane one number."""
    moving = bodies.velocities(v)
    if bodies.dof == 3:
        return moving[:, 2:]
    return jnp.einsum("nij,nj->ni", at.turn[: len(bodies)], moving[:, 3:])
