"""The terms of a mechanism's equations, from its joints, springs and planes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from carom.arguments import did_you_mean, is_traced, names_of, numpy_for
from carom.bodies import Bodies
from carom.mechanisms.acting import Lengths, Spring
from carom.mechanisms.equations import KINDS
from carom.mechanisms.framing import Scene, rows, stacked
from carom.mechanisms.holding import Alike, Coordinates, Gears, Holding, Rolling
from carom.mechanisms.joints import Joint
from carom.mechanisms.touching import Corners, Limits, Plane
from carom.systems.contact import Contacts


def _numbers(scene: Scene, joint: Joint, frames: Any) -> tuple[float, ...]:
    if joint.kind != "distance":
        return joint.numbers
    length = joint.numbers[0] if joint.numbers else scene.apart(*frames)
    if not is_traced(length) and not length > 0:
        msg = f"{joint}: length must be positive, got {length:g}"
        raise ValueError(msg)
    return (length,)


def row_count(joint: Joint, dimension: int) -> int:
    """How many holonomic rows a joint has."""
    if joint.kind not in KINDS:
        return 1
    count = KINDS[joint.kind].rows(dimension)
    if not count:
        known = [name for name, kind in KINDS.items() if kind.plane]
        msg = f"{joint}: in the plane there is no such joint; there are {names_of(known)}"
        raise ValueError(msg)
    return count


def holding(scene: Scene, bodies: Bodies, joints: Sequence[Joint], q: Any) -> Holding:
    """g(q) of all joints."""
    counts = [row_count(joint, scene.dimension) for joint in joints]
    kinds = {kind: [i for i, joint in enumerate(joints) if joint.kind == kind] for kind in (*KINDS, "gear", "rolling")}
    groups = tuple(_alike(scene, kind, [joints[i] for i in which]) for kind in KINDS if (which := kinds[kind]))
    made = [i for which in kinds.values() for i in which]
    offset = dict(zip(made, np.cumsum([0, *(counts[i] for i in made)]).tolist()))
    order = [offset[i] + k for i, count in enumerate(counts) for k in range(count)]
    with_x = [i for kind in KINDS if KINDS[kind].coordinate is not None for i in kinds[kind]]
    where = tuple(np.argsort(with_x, kind="stable").tolist())
    coordinates = Coordinates(bodies, tuple(g for g in groups if KINDS[g.kind].coordinate is not None), where)
    geared = [joints[i] for i in kinds["gear"]]
    _refuse_teeth(geared, {joints[i].name: joints[i] for i in with_x}, scene.dimension)
    names = {joints[i].name: n for n, i in enumerate(sorted(with_x))}
    gears = _gears(geared, names, coordinates, q)
    rolling = _rolling(scene, bodies, [joints[i] for i in kinds["rolling"]])
    return Holding(bodies, groups, gears, rolling, coordinates, tuple(order))


def _alike(scene: Scene, kind: str, joints: Sequence[Joint]) -> Alike:
    frames = [scene.sides(joint) for joint in joints]
    numbers = [_numbers(scene, joint, pair) for joint, pair in zip(joints, frames)]
    a, b = (stacked([pair[k] for pair in frames]) for k in (0, 1))
    return Alike(kind, a, b, jnp.asarray(numpy_for(numbers).array(numbers, float).reshape(len(joints), -1)))


def _gears(joints: Sequence[Joint], names: dict[str, int], coordinates: Coordinates, q: Any) -> Gears | None:
    if not joints:
        return None
    pairs = tuple((names[joint.a], names[joint.b]) for joint in joints)
    teeth = jnp.asarray([joint.numbers for joint in joints], float)
    return Gears(pairs, teeth, jnp.sum(teeth * coordinates(jnp.asarray(q))[np.asarray(pairs)], 1))


def _refuse_teeth(gears: Sequence[Joint], named: dict[str, Joint], dimension: int) -> None:
    """Raise where a gear names no joint with a coordinate, or a hinge in space has a broken number of teeth."""
    for gear in gears:
        for name, teeth in zip((gear.a, gear.b), gear.numbers):
            if name not in named:
                msg = f"{gear}: there is no joint '{name}' with a coordinate; there are {names_of(list(named))}"
                raise ValueError(msg + did_you_mean(name, named))
            if dimension == 3 and named[name].kind == "revolute" and not is_traced(teeth) and teeth != round(teeth):
                msg = f"{gear}: hinges in space have a whole number of teeth, got {teeth:g}"
                raise ValueError(msg)
        if gear.a == gear.b:
            msg = f"{gear}: a gear ties two different joints"
            raise ValueError(msg)


def _rolling(scene: Scene, bodies: Bodies, joints: Sequence[Joint]) -> Rolling | None:
    if not joints:
        return None
    d, found = scene.dimension, []
    for joint in joints:
        i, who, (radius, offset) = scene.body(joint.b, str(joint)), str(joint), joint.numbers
        if i == len(scene.bodies):
            msg = f"{who}: name the body that rolls"
            raise ValueError(msg)
        n, offset = scene.plane(np.eye(d)[-1] if joint.at is None else joint.at, offset, who)
        e = np.zeros(d) if joint.axis is None else scene.direction(joint.axis, who, "axis")
        if not is_traced(n, e) and abs(n @ e) > 1 - 1e-12:
            msg = f"{who}: a disk that lies flat on its plane, its axis along the normal, does not roll"
            raise ValueError(msg)
        found.append((i, scene.turn[i].T @ e, n, radius, offset))
    which, axis, normal, radius, offset = zip(*found)
    return Rolling(bodies, which, *(rows(x) for x in (radius, axis, normal, offset)))


def lengths(scene: Scene, bodies: Bodies, springs: Sequence[Spring]) -> Lengths:
    """The lengths of all springs."""
    ends = [[scene.end(end, f"Spring of {s.a!r} and {s.b!r}") for end in (s.a, s.b)] for s in springs]
    return Lengths(bodies, *(stacked([pair[k] for pair in ends]) for k in (0, 1)))


def corners(scene: Scene, bodies: Bodies, plane: Plane) -> Contacts:
    """The contacts of one plane with the corners of bodies."""
    who = "Plane"
    carrier = scene.body(plane.of, who)
    named = [body.name for body in scene.bodies if body.corners is not None and body.name != plane.of]
    which = [scene.body(name, who) for name in (named if plane.touches is None else plane.touches)]
    if carrier in which:
        msg = f"{who}: '{plane.of}' carries the plane and cannot touch it"
        raise ValueError(msg)
    bare = [scene.bodies[i].name for i in which if scene.bodies[i].corners is None]
    if bare or not which:
        what = f"'{bare[0]}' has none" if bare else "there is none"
        msg = f"{who}: touches bodies with corners, but {what}: give RigidBody(..., corners=) or RigidBody.box"
        raise ValueError(msg)
    n, offset = scene.plane(plane.normal, plane.offset, who)
    found = [(i, *corner) for i in which for corner in scene.bodies[i].rounded]
    owner, point, radius = zip(*found)
    k = len(found)
    at = Corners(bodies, owner, (carrier,) * k, rows(point), rows(radius), rows([n] * k), rows([offset] * k))
    rough = is_traced(plane.friction) or np.any(plane.friction)
    slip = {"slip_velocity": at.slip, "friction": plane.friction} if rough else {}
    return Contacts(at.gap, restitution=plane.restitution, **slip)


def limits(joints: Sequence[Joint], coordinates: Coordinates) -> Contacts | None:
    """The contacts of all limits of joints."""
    with_x = [joint for joint in joints if joint.kind in KINDS and KINDS[joint.kind].coordinate is not None]
    strange = [joint for joint in joints if joint.limits is not None and joint not in with_x]
    if strange:
        msg = f"{strange[0]}: it has no single coordinate, so that limits say nothing"
        raise ValueError(msg)
    stops = [(i, joint, end) for i, joint in enumerate(with_x) if joint.limits for end in (0, 1) if _ends(joint, end)]
    if not stops:
        return None
    which, owners, ends = zip(*stops)
    bound = rows([joint.limits[end] for joint, end in zip(owners, ends)])
    turning = coordinates.turning
    middle = [_middle(joint) if turns else 0.0 for joint, turns in zip(with_x, turning)]
    sign = jnp.asarray([1.0 - 2.0 * end for end in ends])
    gap = Limits(coordinates, which, sign, bound, rows(middle) if turning[list(which)].any() else None)
    names = [f"{joint.name} {('lowest', 'highest')[end]}" for joint, end in zip(owners, ends)]
    return Contacts(gap, restitution=rows([joint.restitution for joint in owners]), names=names)


def _middle(joint: Joint) -> Any:
    """Between the limits of an angle that does not count turns: both are needed, less than a turn apart."""
    if joint.limits is None:
        return 0.0
    lowest, highest = joint.limits
    if not is_traced(joint.limits) and not highest - lowest < 2 * np.pi:
        why = "the angle of a hinge in space does not count turns: its limits must be less than a turn apart"
        msg = f"{joint}: {why}, got {joint.limits!r}"
        raise ValueError(msg)
    return 0.5 * (lowest + highest)


def _ends(joint: Joint, end: int) -> bool:
    return joint.limits is not None and (is_traced(joint.limits[end]) or bool(np.isfinite(joint.limits[end])))
