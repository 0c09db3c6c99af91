"""Bodies and joints as an ordinary system and state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from carom.arguments import is_traced, names_of, numpy_for, plain_numbers
from carom.bodies import Bodies
from carom.mechanisms.acting import Damping, Elastic, Motors, Rubbing, Spring
from carom.mechanisms.assembling import assembled, assembled_unknown
from carom.mechanisms.body import RigidBody
from carom.mechanisms.building import corners, holding, lengths, limits, row_count
from carom.mechanisms.equations import KINDS
from carom.mechanisms.framing import Scene, rows
from carom.mechanisms.joints import Joint
from carom.mechanisms.poses import Gyroscopic, Kinematics, Normalised, Poses, Weight, frames
from carom.mechanisms.touching import Plane
from carom.state import Numbers, State
from carom.systems.contact import FrictionElements
from carom.systems.system import System

_ACTING = ("stiffness", "damping", "friction")
_AXES = {2: ("x", "y", "angle"), 3: ("x", "y", "z", "p0", "p1", "p2", "p3")}


class Mechanism:
    """Rigid bodies and what joins them, assembled: `system, state = carom.Mechanism(bodies, joints)`.

    The coordinates of a body are (x, y, angle) in the plane, place and unit quaternion in space; its velocities those
    of its centre of mass and the angular velocity, in space in body axes. Bodies that do not stand where the joints
    hold are moved there, by as little as possible, and velocities likewise.

    Args:
        bodies: `carom.RigidBody`, all in the plane or all in space.
        joints: of `carom.joints`; `joint.name` tells them apart, by default "revolute 0" and so on.
        springs: `carom.Spring`s and dampers between points.
        planes: `carom.Plane`s that the corners of bodies touch.
        gravity: along -y in the plane and -z in space, or a vector.
        potential: further energies, `{name: V(q)}`.
        forces: further forces, `{name: f(t, q, v)}`.
        contacts: further `carom.Contacts`.
        friction: further `carom.FrictionElements`.
        t: the time at the start.
        options: further arguments of `carom.System`.

    Attributes:
        system: the `carom.System`.
        state: the `carom.State` at the start.
        cut: the `carom.Bodies` that cuts q and v into bodies.
        joints: with their names.
        rows: where in the multipliers those of a joint are, by its name.
        rank: of the rows of all joints at the start; more rows are redundant.
        freedom: degrees of freedom at the start.

    Example:
        >>> rod = carom.RigidBody.rod(1.0, 1.0, position=(0.5, 0.0), name="rod")
        >>> pendulum = carom.Mechanism([rod], [carom.joints.revolute("ground", "rod.left")], gravity=9.81)
        >>> sol = carom.solve(*pendulum, t1=1.0)
    """

    def __init__(
        self,
        bodies: Sequence[RigidBody],
        joints: Sequence[Joint] = (),
        *,
        springs: Sequence[Spring] = (),
        planes: Sequence[Plane] = (),
        gravity: Numbers = 0.0,
        potential: Mapping[str, Any] | None = None,
        forces: Mapping[str, Any] | None = None,
        contacts: Any = None,
        friction: Any = None,
        t: float = 0.0,
        **options: Any,
    ):
        self.bodies, self.joints = _named_bodies(bodies), _named_joints(joints)
        springs, planes = _all_of(Spring, springs, "springs"), _all_of(Plane, planes, "planes")
        scene, d, count = Scene(self.bodies), self.bodies[0].dimension, len(self.bodies)
        self.cut = Bodies(count, dof=3 if d == 2 else 6, coordinates=3 if d == 2 else 7)
        q, v = (_joined([getattr(body, name) for body in self.bodies]) for name in ("coordinates", "velocities"))
        held = holding(scene, self.cut, self.joints, q)
        ends = np.cumsum([0, *(row_count(joint, d) for joint in self.joints)]).tolist()
        spans = [slice(a, b) for a, b in zip(ends, ends[1:])]
        self.rows = {joint.name: span for joint, span in zip(self.joints, spans)}
        self.rank = ends[-1]
        if self.joints and is_traced(q, v, held):
            q, v = assembled_unknown(held, q, v)
        elif self.joints:
            q, v, self.rank = assembled(held, self.joints, spans, q, v)
        self.freedom = v.size - self.rank
        self.state = State(q, v, t)
        groups = [*_listed(contacts), *(corners(scene, self.cut, plane) for plane in planes)]
        stops = limits(self.joints, held.coordinates)
        self.system = System(
            _mass(self.bodies),
            {**self._energies(scene, held, springs, _gravity(gravity, d)), **(potential or {})},
            {**self._forces(scene, held, springs), **(forces or {})},
            kinematics=None if d == 2 else Kinematics(self.cut),
            manifold=None if d == 2 else Normalised(self.cut),
            constraints=held if self.joints else None,
            nonholonomic=held.rolling,
            contacts=[*groups, *([] if stops is None else [stops])] or None,
            friction=[*_listed(friction), *self._friction(held)] or None,
            labels=[f"{body.name}.{axis}" for body in self.bodies for axis in _AXES[d]],
            **options,
        )

    def assemble(self) -> tuple[System, State]:
        """The system and the state."""
        return self.system, self.state

    def __iter__(self) -> Iterator[Any]:
        """The same, so that a mechanism stands wherever both do: `carom.solve(*mechanism, t1=1.0)`."""
        return iter(self.assemble())

    def __repr__(self) -> str:
        return (
            f"<Mechanism of {len(self.bodies)} bodies and {len(self.joints)} joints, {self.freedom} degrees of freedom>"
        )

    def _energies(self, scene: Scene, held: Any, springs: Sequence[Spring], g: Any) -> dict[str, Any]:
        parts: dict[str, Any] = {}
        if is_traced(g) or g.any():
            parts["gravity"] = Weight(self.cut, rows([body.mass * g for body in self.bodies]))
        if any(_there(spring.stiffness) for spring in springs):
            numbers = (rows([getattr(spring, name) for spring in springs]) for name in ("stiffness", "length"))
            parts["springs"] = Elastic(lengths(scene, self.cut, springs), *numbers)
        free = self._with_coordinates()
        if any(_there(joint.stiffness) for joint in free):
            numbers = (rows([getattr(joint, name) for joint in free]) for name in ("stiffness", "rest"))
            parts["joint springs"] = Elastic(held.coordinates, *numbers)
        return parts

    def _forces(self, scene: Scene, held: Any, springs: Sequence[Spring]) -> dict[str, Any]:
        parts, free = {}, self._with_coordinates()
        if scene.dimension == 3:
            parts["gyroscopic"] = Gyroscopic(self.cut, rows([body.tensor for body in self.bodies]))
        if any(_there(spring.damping) for spring in springs):
            c = rows([spring.damping for spring in springs])
            parts["dampers"] = Damping(self.cut, lengths(scene, self.cut, springs), c)
        if any(_there(joint.damping) for joint in free):
            parts["joint damping"] = Damping(self.cut, held.coordinates, rows([joint.damping for joint in free]))
        if any(joint.motor is not None for joint in free):
            drives = tuple(m if m is None or callable(m) else jnp.asarray(m, float) for m in (j.motor for j in free))
            parts["motors"] = Motors(self.cut, held.coordinates, drives)
        return parts

    def _friction(self, held: Any) -> list[FrictionElements]:
        """Friction in joints, from their own multipliers."""
        d, free = self.bodies[0].dimension, self._with_coordinates()
        rough = [(i, joint) for i, joint in enumerate(free) if _there(joint.friction)]
        if not rough:
            return []
        starts = [self.rows[joint.name].start for _, joint in rough]
        pressed = [KINDS[joint.kind].pressed[d - 2] for _, joint in rough]
        owned = tuple(tuple(range(start, start + count)) for start, count in zip(starts, pressed))
        if () in owned:
            msg = f"{rough[owned.index(())][1]}: friction needs a hinge, a slider, a sleeve or a slot"
            raise ValueError(msg)
        given = tuple(f if callable(f) else jnp.asarray(f, float) for f in (joint.friction for _, joint in rough))
        rubbing = Rubbing(self.cut, held.coordinates, tuple(i for i, _ in rough), owned, given)
        return [FrictionElements(rubbing.slip, rubbing.limit)]

    def _with_coordinates(self) -> list[Joint]:
        free = [joint for joint in self.joints if joint.kind in KINDS and KINDS[joint.kind].coordinate is not None]
        for joint in self.joints:
            acts = joint.motor is not None or any(_there(getattr(joint, name)) for name in _ACTING)
            if joint not in free and acts:
                msg = f"{joint}: it has no single coordinate for a spring, a damper, a motor or friction"
                raise ValueError(msg)
        return free

    def frames(self, at: Any) -> Poses:
        """Places (row, body, axis) and rotation matrices (row, body, axis, axis) of a solution, state, or of rows of q.

        Example:
            >>> place, turn, _ = mechanism.frames(sol)
        """
        rows = np.asarray(getattr(at, "q", at))
        found = jax.vmap(lambda q: frames(q, self.cut))(jnp.asarray(np.atleast_2d(rows)))
        return Poses(*(np.asarray(x) if rows.ndim == 2 else np.asarray(x)[0] for x in found))

    def point(self, at: Any, marker: str) -> np.ndarray:
        """Where a marker "body.name" (or a body's centre of mass) is, in every row.

        Example:
            >>> path = mechanism.point(sol, "rod.right")
        """
        scene = Scene(self.bodies)
        i, name = scene.find(marker, "point")
        if i == len(self.bodies):
            msg = "point: name a body or a marker, as in 'rod.right'; the ground does not move"
            raise ValueError(msg)
        place, turn, _ = self.frames(at)
        own = np.asarray(self.bodies[i].marker(name).point, float)
        return place[..., i, :] + turn[..., i, :, :] @ own


def _all_of(kind: type, given: Any, what: str) -> tuple[Any, ...]:
    """One or several of a kind, as a tuple."""
    found = tuple(given) if isinstance(given, Iterable) else (given,)
    for item in found:
        if not isinstance(item, kind):
            of = "those of carom.joints" if kind is Joint else f"carom.{kind.__name__}"
            msg = f"Mechanism: {what} must be {of}, got {type(item).__name__}"
            raise TypeError(msg)
    return found


def _named_bodies(bodies: Sequence[RigidBody]) -> tuple[RigidBody, ...]:
    given = _all_of(RigidBody, bodies, "bodies")
    if not given:
        msg = "Mechanism: there must be one body at least"
        raise ValueError(msg)
    if len({body.dimension for body in given}) != 1:
        msg = "Mechanism: bodies must all be in the plane (inertia one number) or all in space (three, or a matrix)"
        raise ValueError(msg)
    named = tuple(body if body.name else replace(body, name=f"body {i}") for i, body in enumerate(given))
    _refuse_repeated([body.name for body in named], "bodies")
    return named


def _named_joints(joints: Sequence[Joint]) -> tuple[Joint, ...]:
    given = _all_of(Joint, joints, "joints")
    named = tuple(joint if joint.name else joint.called(f"{joint.kind} {i}") for i, joint in enumerate(given))
    _refuse_repeated([joint.name for joint in named], "joints")
    return named


def _refuse_repeated(names: list[str], what: str) -> None:
    if repeated := [name for name, times in Counter(names).items() if times > 1]:
        msg = f"Mechanism: names of {what} must differ, but {names_of(repeated)} occurs more than once"
        raise ValueError(msg)


def _gravity(gravity: Any, dimension: int) -> Any:
    g = plain_numbers(gravity, "Mechanism: gravity", size=dimension)
    return -g * np.eye(dimension)[-1] if g.ndim == 0 else g


def _mass(bodies: Sequence[RigidBody]) -> Any:
    """The diagonal of the mass matrix, or all of it where axes are not principal ones."""
    d = bodies[0].dimension
    tensors = [body.tensor for body in bodies]
    if all(np.ndim(body.inertia) < 2 for body in bodies):
        parts = [([body.mass] * d, numpy_for(J).diagonal(J)) for body, J in zip(bodies, tensors)]
        return _joined([part for pair in parts for part in pair])
    n, xp = d + len(tensors[0]), numpy_for(tensors, [body.mass for body in bodies])
    rows_of = []
    for i, (body, J) in enumerate(zip(bodies, tensors)):
        block = xp.block([[body.mass * np.eye(d), np.zeros((d, n - d))], [np.zeros((n - d, d)), J]])
        rows_of.append(xp.hstack([np.zeros((n, n * i)), block, np.zeros((n, n * (len(bodies) - 1 - i)))]))
    return xp.vstack(rows_of)


def _joined(parts: Sequence[Any]) -> Any:
    xp = numpy_for(*parts)
    return xp.concatenate([xp.asarray(part, float) for part in parts])


def _there(value: Any) -> bool:
    return is_traced(value) or bool(value)


def _listed(contacts: Any) -> list[Any]:
    return list(contacts) if isinstance(contacts, (list, tuple)) else [] if contacts is None else [contacts]
