"""Drawings of linkages and pendulums."""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.reports.drawings.register import drawing
from carom.reports.shapes import Circles, Drawing, Line, Spring, Touches, box, chain, ground, stack, turned


def _pivots(size: float, *places: Any) -> Circles:
    return Circles(np.array(places, float), size, "ink")


def _linkage(joints: np.ndarray, size: float) -> list[Any]:
    return [Line(joints, "blue", 4.0), Circles(joints, size, "ink")]


@drawing("pendulum", "double_pendulum")
def pendulum(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Rods and masses hanging from the origin, with the path of the last mass."""
    del a
    masses = q.reshape(len(q), -1, 2)
    rods = np.concatenate([np.zeros((len(q), 1, 2)), masses], axis=1)
    size = 0.05 * np.abs(masses).max()
    path = Line(masses[:, -1], "grey", 1.0)
    return Drawing([path, Line(rods, "ink"), _pivots(0.4 * size, (0, 0)), Circles(masses, size)])


@drawing("double_pendulum_at_wall")
def double_pendulum_at_wall(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Rods and masses hanging from the origin, and the wall beside the last mass."""
    lengths, x = np.asarray(a.get("lengths", (1.0, 1.0)), float), float(a.get("wall", 1.2))
    rods = lengths[:, None] * np.stack([np.sin(q), -np.cos(q)], axis=-1)
    drawn = pendulum(np.cumsum(rods, axis=1).reshape(len(q), -1), a)
    reach = lengths.sum()
    size = 0.05 * reach
    wall = Line(np.array([[x + size, -reach], [x + size, reach]]), "grey", 3.0)
    return Drawing([*drawn.shapes, wall])


@drawing("stiff_spring_pendulum")
def spring_pendulum(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A rod on a spring that hangs from the origin."""
    del a
    masses = q.reshape(len(q), 2, 2)
    size = 0.05 * np.abs(masses).max()
    spring = Spring(chain([0.0, 0.0], masses[:, 0]))
    return Drawing([spring, Line(masses, "ink"), _pivots(0.4 * size, (0, 0)), Circles(masses, size)])


@drawing("spherical_pendulum")
def spherical_pendulum(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """In space; the grey line is the path."""
    length = float(a.get("length", 1.0))
    turn = np.linspace(0, 2 * np.pi, 61)
    rim = np.column_stack([length * np.cos(turn), length * np.sin(turn), np.zeros(61)])
    rod = np.stack([np.zeros_like(q), q], axis=1)
    shapes = [Line(rim, "grey", 1.0), Line(q, "grey", 1.5), Line(rod, "ink", 3.0), Circles(q[:, None], 0.06 * length)]
    return Drawing([*shapes, Circles([[0.0, 0.0, 0.0]], 0.025 * length, "ink")], "drag to turn")


@drawing("slider_crank")
def slider_crank(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Crank, rod and slider on an ideal guide."""
    l1, l2 = (float(l) for l in a.get("lengths", (0.153, 0.306)))
    crank = turned(q[:, 0], l1, 0.0)
    pin = crank + turned(q[:, 1], l2, 0.0)
    size = 0.16 * l1
    slider = Line(box(pin, np.zeros(len(q)), 2 * size, size), "orange", fill=True)
    guide = ground(-1.2 * l1, l1 + l2 + 3 * size, -size)
    return Drawing([guide, slider, *_linkage(chain([0.0, 0.0], crank, pin), 0.04 * l1)])


@drawing("slider_crank_clearance")
def slider_crank_clearance(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Crank, rod and a slider with play in its slot; play and slider's motion across it enlarged tenfold."""
    l1, l2, half_length, half_height = 0.153, 0.306, 0.05, 0.025
    zoom, clearance = 10.0, float(a.get("clearance", 0.001))
    crank = turned(q[:, 0], l1, 0.0)
    pin = crank + turned(q[:, 1], l2, 0.0)
    shown = stack(pin[:, 0], zoom * pin[:, 1])
    wall = half_height + zoom * clearance
    left, right = l2 - l1 - 2 * half_length, l1 + l2 + 2 * half_length
    slot = [ground(left, right, -wall), ground(left, right, wall, below=False)]
    slider = Line(box(shown, zoom * q[:, 2], half_length, half_height), "orange", fill=True)
    linkage = _linkage(chain([0.0, 0.0], crank, shown), 0.006)
    corners = np.asarray(slider.points)[:, [3, 2, 0, 1]]
    touches = Touches(corners, [[0.0, -1.0]] * 2 + [[0.0, 1.0]] * 2, [[1.0, 0.0]] * 4)
    return Drawing([*slot, slider, *linkage], "play in the slot enlarged tenfold", touches, to_scale=False)


@drawing("four_bar")
def four_bar(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Three bars by absolute angles, closed by the ground."""
    lengths = [float(l) for l in a.get("lengths", (1.0, 4.0, 2.5))]
    joints = [np.zeros((len(q), 2))]
    for i, length in enumerate(lengths):
        joints.append(joints[-1] + turned(q[:, i], length, 0.0))
    base = Line([[0.0, 0.0], [float(a.get("ground", 3.0)), 0.0]], "grey", 1.5, dashed=True)
    return Drawing([base, *_linkage(chain(*joints), 0.02 * max(lengths))])


@drawing("knife_edge", "chaplygin_sleigh")
def blade(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A blade on a plane seen from above, with its path."""
    offset = float(a.get("offset", 0.0))
    size = 0.06 * (np.ptp(q[:, :2], axis=0).max() or 1.0)
    edge = turned(q[:, 2], size, 0.0)
    shapes: list[Any] = [Line(q[:, :2], "grey", 1.0), Line(chain(q[:, :2] - edge, q[:, :2] + edge), "blue", 5.0)]
    if offset:
        shapes.append(Line(chain(q[:, :2], q[:, :2] + turned(q[:, 2], offset, 0.0)), "ink"))
    return Drawing(shapes, "seen from above")


@drawing("andrews_squeezer")
def andrews_squeezer(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Seven bodies between the fixed points O, A, B and C [Hairer and Wanner II, Fig. VI.9.1]."""
    del a
    d, rr, sc, sd, u, zt = 0.028, 0.007, 0.018, 0.02, 0.04, 0.04
    A, B, C = np.array([-0.06934, -0.00227]), np.array([-0.03635, 0.03273]), np.array([0.014, 0.072])
    be, th, ga, _, de, _, ep = q.T
    crank = turned(be, rr, 0.0)
    P = crank - turned(be + th, d, 0.0)
    E = A + turned(de, zt, 0.0)
    F = A + turned(ep, 0.0, -u)
    D = B + turned(ga, sd, -sc)
    shapes = [
        Line(chain(np.zeros(2), crank, P), "blue", 4.0),
        Line(chain(B, P, D, B), "green", 2.0, fill=True),
        Line(chain(A, E, P), "orange", 3.0),
        Line(chain(A, F, P), "purple", 3.0),
        Spring(chain(D, C), "grey", 2.0, 14),
        Circles(chain(crank, P, E, F, D), 0.0012, "ink"),
        _pivots(0.002, (0, 0), A, B, C),
    ]
    return Drawing(shapes)


@drawing("structural_frame")
def structural_frame(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Two shear frames whose top floors are tied; displacements enlarged to a third of the width."""
    del a
    storeys = q.shape[1] // 2
    zoom = 0.33 / (np.abs(q).max(initial=0.0) or 1.0)
    floors = np.pad(zoom * q.reshape(len(q), 2, storeys), ((0, 0), (0, 0), (1, 0)))
    level = np.arange(storeys + 1.0)
    shapes: list[Any] = [ground(-0.5, 3.5)]
    for i, place in enumerate((0.0, 2.0)):
        left = stack(place + floors[:, i], level)
        shapes += [Line(left, "ink"), Line(left + np.array([1.0, 0.0]), "ink")]
        shapes += [Line(np.stack([left[:, k], left[:, k] + [1.0, 0.0]], 1), "blue", 5.0) for k in range(1, storeys + 1)]
    tie = np.stack([stack(1.0 + floors[:, 0, -1], storeys), stack(2.0 + floors[:, 1, -1], storeys)], 1)
    return Drawing([*shapes, Line(tie, "orange", 3.0)], "displacements enlarged", to_scale=False)
