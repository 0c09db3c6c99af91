"""The terms of a mechanism's equations, from its joints, springs and planes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from carom.arguments import did_you_mean, names_of
from carom.bodies import Bodies
from carom.mechanisms.acting import Lengths, Spring
from carom.mechanisms.equations import KINDS
from carom.mechanisms.framing import Scene, stacked
from carom.mechanisms.holding import Alike, Coordinates, Gears, Holding, Rolling
from carom.mechanisms.joints import Joint
from carom.mechanisms.touching import Corners, Limits, Plane
from carom.systems.contact import Contacts

_DIRECT = tuple(KINDS)


def _numbers(scene: Scene, joint: Joint, frames: Any) -> tuple[float, ...]:
    if joint.kind != "distance":
        return joint.numbers
    length = joint.numbers[0] if joint.numbers else scene.apart(*frames)
    if not length > 0:
        msg = f"{joint}: length must be positive, got {length:g}"
        raise ValueError(msg)
    return (length,)


def row_count(joint: Joint, dimension: int) -> int:
    """How many holonomic rows a joint has."""
    if joint.kind not in KINDS:
        return 1
    count = KINDS[joint.kind].plane if dimension == 2 else KINDS[joint.kind].space
    if not count:
        known = [name for name, kind in KINDS.items() if kind.plane]
        msg = f"{joint}: in the plane there is no such joint; there are {names_of(known)}"
        raise ValueError(msg)
    return count


def holding(scene: Scene, bodies: Bodies, joints: Sequence[Joint], q: np.ndarray) -> Holding:
    """g(q) of all joints."""
    counts = [row_count(joint, scene.dimension) for joint in joints]
    kinds = {
        kind: [i for i, joint in enumerate(joints) if joint.kind == kind] for kind in (*_DIRECT, "gear", "rolling")
    }
    groups = tuple(_alike(scene, kind, [joints[i] for i in which]) for kind in _DIRECT if (which := kinds[kind]))
    made = [i for which in kinds.values() for i in which]
    offset = dict(zip(made, np.cumsum([0, *(counts[i] for i in made)]).tolist()))
    order = [offset[i] + k for i, count in enumerate(counts) for k in range(count)]
    with_x = [i for kind in _DIRECT if KINDS[kind].coordinate is not None for i in kinds[kind]]
    where = tuple(np.argsort(with_x, kind="stable").tolist())
    coordinates = Coordinates(bodies, tuple(g for g in groups if KINDS[g.kind].coordinate is not None), where)
    names = {joints[i].name: n for n, i in enumerate(sorted(with_x))}
    gears = _gears([joints[i] for i in kinds["gear"]], names, coordinates, q)
    rolling = _rolling(scene, bodies, [joints[i] for i in kinds["rolling"]])
    return Holding(bodies, groups, gears, rolling, coordinates, tuple(order))


def _alike(scene: Scene, kind: str, joints: Sequence[Joint]) -> Alike:
    frames = [scene.sides(joint) for joint in joints]
    numbers = [_numbers(scene, joint, pair) for joint, pair in zip(joints, frames)]
    sides = (stacked([pair[k] for pair in frames]) for k in (0, 1))
    return Alike(kind, *sides, jnp.asarray(np.array(numbers, float).reshape(len(joints), -1)))


def _gears(joints: Sequence[Joint], names: dict[str, int], coordinates: Coordinates, q: np.ndarray) -> Gears | None:
    if not joints:
        return None
    for joint in joints:
        for name in (joint.a, joint.b):
            if name not in names:
                msg = f"{joint}: there is no joint '{name}' with a coordinate; there are {names_of(list(names))}"
                raise ValueError(msg + did_you_mean(name, names))
    pairs = tuple((names[joint.a], names[joint.b]) for joint in joints)
    teeth = np.array([joint.numbers for joint in joints])
    x = np.asarray(coordinates(jnp.asarray(q)))
    return Gears(pairs, jnp.asarray(teeth), jnp.asarray(np.sum(teeth * x[np.asarray(pairs)], 1)))


def _rolling(scene: Scene, bodies: Bodies, joints: Sequence[Joint]) -> Rolling | None:
    if not joints:
        return None
    d, rows = scene.dimension, []
    for joint in joints:
        i, _ = scene.find(joint.b, str(joint))
        n = scene.vector(np.eye(d)[-1] if joint.at is None else joint.at, str(joint), "normal")
        e = np.zeros(d) if joint.axis is None else scene.turn[i].T @ scene.vector(joint.axis, str(joint), "axis")
        rows.append((i, e / (np.linalg.norm(e) or 1.0), n / np.linalg.norm(n), *joint.numbers))
    which, axis, normal, radius, offset = zip(*rows)
    arrays = (jnp.asarray(np.array(x, float)) for x in (radius, axis, normal, offset))
    return Rolling(bodies, which, *arrays)


def lengths(scene: Scene, bodies: Bodies, springs: Sequence[Spring]) -> Lengths:
    """The lengths of all springs."""
    ends = [[scene.end(end, f"Spring of {s.a!r} and {s.b!r}") for end in (s.a, s.b)] for s in springs]
    return Lengths(bodies, *(stacked([pair[k] for pair in ends]) for k in (0, 1)))


def corners(scene: Scene, bodies: Bodies, plane: Plane) -> Contacts:
    """The contacts of one plane with the corners of bodies."""
    who = "Plane"
    carrier, _ = scene.find(plane.of, who)
    named = [body.name for body in scene.bodies if body.corners is not None and body.name != plane.of]
    which = [scene.find(name, who)[0] for name in (named if plane.touches is None else plane.touches)]
    bare = [scene.bodies[i].name for i in which if scene.bodies[i].corners is None]
    if bare or not which:
        what = f"'{bare[0]}' has none" if bare else "there is none"
        msg = f"{who}: touches bodies with corners, but {what}: give RigidBody(..., corners=) or RigidBody.box"
        raise ValueError(msg)
    n = scene.vector(plane.normal, who, "normal")
    found = [
        (i, np.asarray(c, float), scene.bodies[i].radius) for i in which for c in np.asarray(scene.bodies[i].corners)
    ]
    owner, point, radius = zip(*found)
    k, size = len(found), np.linalg.norm(n)
    arrays = (np.array(point), np.array(radius, float), np.tile(n / size, (k, 1)), np.full(k, plane.offset / size))
    at = Corners(bodies, owner, (carrier,) * k, *(jnp.asarray(x) for x in arrays))
    slip = {"slip_velocity": at.slip, "friction": plane.friction} if np.any(plane.friction) else {}
    return Contacts(at.gap, restitution=plane.restitution, **slip)


def limits(joints: Sequence[Joint], coordinates: Coordinates) -> Contacts | None:
    """The contacts of all limits of joints."""
    with_x = [joint for joint in joints if joint.kind in KINDS and KINDS[joint.kind].coordinate is not None]
    strange = [joint for joint in joints if joint.limits is not None and joint not in with_x]
    if strange:
        msg = f"{strange[0]}: it has no single coordinate, so that limits say nothing"
        raise ValueError(msg)
    rows = [(i, sign, joint, end) for i, joint in enumerate(with_x) if joint.limits for sign, end in ((1, 0), (-1, 1))]
    rows = [(i, sign, joint, end) for i, sign, joint, end in rows if joint.limits and np.isfinite(joint.limits[end])]
    if not rows:
        return None
    sign, bound = np.array([r[1] for r in rows], float), np.array([r[2].limits[r[3]] for r in rows], float)  # pyright: ignore
    gap = Limits(coordinates, tuple(r[0] for r in rows), jnp.asarray(sign), jnp.asarray(bound))
    names = [f"{joint.name} {('lowest', 'highest')[end]}" for _, _, joint, end in rows]
    return Contacts(gap, restitution=np.array([r[2].restitution for r in rows], float), names=names)
