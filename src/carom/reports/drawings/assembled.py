"""The drawing of any `carom.Mechanism`, from what its system is made of: joints, corners, planes, springs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial import ConvexHull, QhullError
from scipy.spatial.transform import Rotation

from carom.bodies import Bodies
from carom.mechanisms.acting import Lengths
from carom.mechanisms.holding import Alike, Holding, Rolling
from carom.mechanisms.poses import Kinematics, Poses, Side, Weight, poses
from carom.mechanisms.touching import Corners
from carom.reports.shapes import Circles, Drawing, Line, Shape, Solid, Spring, Touches, stack
from carom.shapes import tangents
from carom.systems.system import System

_JOINT, _CENTRE = 0.012, 0.007  # of the size of the drawing: radii of dots
_NET = 8  # lines of a plane


class Parts(NamedTuple):
    """Joints, wheels, corners on planes and springs of a mechanism; bodies are None where there is no mechanism."""

    bodies: Bodies | None
    joints: Sequence[Alike]
    rolling: Rolling | None
    touching: Sequence[Corners]
    springs: Lengths | None

    @property
    def sides(self) -> list[Side]:
        """The ends of joints and springs."""
        pairs = [*self.joints, *([] if self.springs is None else [self.springs])]
        return [side for pair in pairs for side in (pair.a, pair.b)]


def assembled(system: System, q: np.ndarray) -> Drawing | None:
    """Bodies as hulls of their corners or rods to their joints, with springs and planes; None of other systems."""
    parts = _parts(system)
    if parts.bodies is None:
        return None
    at, ground = _poses(parts.bodies, q), len(parts.bodies)
    own = _own_points(parts, ground)
    low, high = _extent(at, own)
    size = float(np.max(high - low)) or 1.0
    shapes = [shape for part in parts.touching for shape in _planes(part, ground, low, high)]
    for i, points in enumerate(own[:-1]):
        shapes += _body(at, i, points, parts.touching, size)
    shapes += [] if parts.rolling is None else _wheels(at, parts.rolling)
    if parts.springs is not None:
        ends = np.stack([_places(at, parts.springs.a), _places(at, parts.springs.b)], 2)
        shapes += [Spring(ends[:, k]) for k in range(ends.shape[1])]
    if parts.joints:
        shapes.append(
            Circles(np.concatenate([_places(at, group.a) for group in parts.joints], 1), _JOINT * size, "ink")
        )
    shapes.append(Circles(at.place[:, :-1], _CENTRE * size, "orange"))
    told = "; drag to turn" if at.place.shape[2] == 3 else ""
    return Drawing(shapes, f"orange: centres of mass{told}")


def corner_touches(system: System, q: np.ndarray, contacts: int) -> Touches | None:
    """Where the corners of a mechanism touch planes, if these are all its contacts."""
    groups = _parts(system).touching
    if not groups or sum(len(group.body) for group in groups) != contacts:
        return None
    points, normals = [], []
    for group in groups:
        at = _poses(group.bodies, q)
        n = np.einsum("fkij,kj->fki", at.turn[:, list(group.carrier)], np.asarray(group.normal))
        points.append(_fixed(at, group.body, group.point) - np.asarray(group.radius)[:, None] * n)
        normals.append(n)
    n = np.concatenate(normals, 1)
    if n.shape[2] == 2:
        return Touches(np.concatenate(points, 1), n)
    across = np.asarray(jax.vmap(jax.vmap(tangents))(jnp.asarray(n)))
    return Touches(np.concatenate(points, 1), n, (across[:, :, 0], across[:, :, 1]))


def _parts(system: System) -> Parts:
    """What of a mechanism its system holds."""
    held = _first(system.constraints, Holding)
    touching = [part for group in system.contact_groups if (part := _first(group, Corners)) is not None]
    springs = _first((system.potential, system.forces), Lengths)
    others = [held, *touching, springs, _first(system.kinematics, Kinematics), _first(system.potential, Weight)]
    bodies = next((part.bodies for part in others if part is not None), None)
    return Parts(bodies, held.groups if held else (), held and held.rolling, touching, springs)


def _first(tree: Any, kind: type) -> Any:
    return next((x for x in jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, kind)) if isinstance(x, kind)), None)


def _poses(bodies: Bodies, q: np.ndarray) -> Poses:
    """Of the bodies and the ground in all frames."""
    return Poses(*(np.asarray(x) for x in jax.vmap(lambda q: poses(q, bodies))(jnp.asarray(q))))


def _fixed(at: Poses, body: Any, point: Any) -> np.ndarray:
    """Where points fixed to bodies are, (frames, points, axis)."""
    which = list(body)
    return at.place[:, which] + np.einsum("fkij,kj->fki", at.turn[:, which], np.asarray(point, float))


def _places(at: Poses, side: Side) -> np.ndarray:
    return _fixed(at, side.body, side.point)


def _own_points(parts: Parts, count: int) -> list[np.ndarray]:
    """Points of joints, springs and corners in the axes of each body, of the ground last."""
    found: list[list[Any]] = [[] for _ in range(count + 1)]
    for one in [*parts.sides, *parts.touching]:
        for body, point in zip(one.body, np.asarray(one.point, float)):
            found[body].append(point)
    return [np.unique(np.array(points), axis=0) if points else np.zeros((0, 0)) for points in found]


def _extent(at: Poses, own: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    there = [at.place[:, :-1].reshape(-1, at.place.shape[2])]
    there += [_fixed(at, [i] * len(p), p).reshape(-1, p.shape[1]) for i, p in enumerate(own) if len(p)]
    every = np.concatenate(there)
    every = every[np.isfinite(every).all(axis=1)]
    return (every.min(0), every.max(0)) if len(every) else (-np.ones(at.place.shape[2]), np.ones(at.place.shape[2]))


def _body(at: Poses, i: int, points: np.ndarray, touching: Sequence[Corners], size: float) -> list[Shape]:
    """Balls at rounded corners, the hull of what is there, and rods from the centre where there is none."""
    d = at.place.shape[2]
    rounded = [
        Circles(_fixed(at, [i], [p]), float(r), "blue")
        for part in touching[:1]
        for body, p, r in zip(part.body, np.asarray(part.point), np.asarray(part.radius))
        if body == i and r > 0
    ]
    hull = _hull(points) if len(points) > d else None
    if hull is not None and d == 2:
        return [Line(_fixed(at, [i] * (len(hull[0]) + 1), points[[*hull[0], hull[0][0]]]), "blue", fill=True), *rounded]
    if hull is not None:
        return [Solid(points, hull, at.place[:, i], _quaternions(at.turn[:, i])), *rounded]
    ends = points if len(points) else 0.15 * size * np.eye(d)
    rods = [Line(_fixed(at, [i, i], [np.zeros(d), end]), "blue", 4.0) for end in ends if np.any(end)]
    return [*rods, *rounded]


def _hull(points: np.ndarray) -> list[list[int]] | None:
    """Faces of the convex hull, each counter-clockwise seen from outside; in the plane the outline alone."""
    try:
        hull = ConvexHull(points)
    except QhullError:
        return None
    if points.shape[1] == 2:
        return [hull.vertices.tolist()]
    faces: dict[tuple[float, ...], set[int]] = {}
    for corners, equation in zip(hull.simplices, hull.equations):
        faces.setdefault(tuple(np.round(equation, 6) + 0.0), set()).update(corners.tolist())
    return [_ordered(points, sorted(face), np.array(equation[:3])) for equation, face in faces.items()]


def _ordered(points: np.ndarray, face: list[int], normal: np.ndarray) -> list[int]:
    arms = points[face] - points[face].mean(0)
    across = np.cross(normal, arms[0])
    return [face[k] for k in np.argsort(np.arctan2(arms @ across, arms @ arms[0] * np.linalg.norm(normal)))]


def _quaternions(turn: np.ndarray) -> np.ndarray:
    """Quaternions of rotation matrices, scalar part first."""
    return np.roll(Rotation.from_matrix(turn).as_quat(), 1, axis=-1)


def _planes(part: Corners, ground: int, low: np.ndarray, high: np.ndarray) -> list[Shape]:
    """Planes of the ground: a line, in space a net."""
    middle, reach = 0.5 * (low + high), 0.6 * float(np.max(high - low)) or 1.0
    fixed = [k for k, carrier in enumerate(part.carrier) if carrier == ground][:1]
    found: list[Shape] = []
    for n, offset in ((np.asarray(part.normal[k]), float(part.offset[k])) for k in fixed):
        at = middle - (n @ middle - offset) * n
        if len(n) == 2:
            along = reach * np.array([n[1], -n[0]])
            found.append(Line(np.stack([at - along, at + along]), "grey", 2.0))
            continue
        a, b = reach * np.asarray(tangents(jnp.asarray(n)))
        lines = [[at + s * u - w, at + s * u + w, np.full(3, np.nan)] for u, w in ((a, b), (b, a)) for s in _steps()]
        found.append(Line(np.concatenate(lines), "grey", 0.7))
    return found


def _steps() -> np.ndarray:
    return np.linspace(-1.0, 1.0, _NET + 1)


def _wheels(at: Poses, part: Rolling) -> list[Shape]:
    """Rims of disks that roll, balls where there is no axis."""
    found: list[Shape] = []
    turn = np.linspace(0.0, 2 * np.pi, 41)
    for i, axis, r in zip(part.which, np.asarray(part.axis), np.asarray(part.radius).tolist()):
        if len(axis) == 2:
            spoke = _fixed(at, [i, i], [[0.0, 0.0], [r, 0.0]])
            found += [Line(_fixed(at, [i] * 41, r * stack(np.cos(turn), np.sin(turn))), "blue"), Line(spoke, "blue")]
        elif not axis.any():
            found.append(Circles(at.place[:, [i]], r, "blue"))
        else:
            a, b = np.asarray(tangents(jnp.asarray(axis)))
            rim = r * (np.cos(turn)[:, None] * a + np.sin(turn)[:, None] * b)
            found += [Line(_fixed(at, [i] * 41, rim), "blue", 3.0), Line(_fixed(at, [i, i], [-r * a, r * a]), "grey")]
    return found
