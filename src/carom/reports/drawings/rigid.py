"""Drawings of rigid bodies: outlines in the plane, bodies in space seen from the side and a little from above."""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.reports.drawings.register import drawing
from carom.reports.shapes import Circles, Drawing, Line, Shape, box, chain, ground, stack, turned

_EYE = np.array([[1.0, 0.0], [0.0, np.sin(0.35)], [0.0, np.cos(0.35)]])
_SEEN = "seen from the side, a little from above"


def _matrices(p: np.ndarray) -> np.ndarray:
    """Rotation matrices of quaternions, one per frame."""
    w, u = p[:, :1, None], p[:, 1:]
    cross = np.zeros((len(p), 3, 3))
    cross[:, [2, 0, 1], [1, 2, 0]], cross[:, [1, 2, 0], [2, 0, 1]] = u, -u
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


def _placed(q: np.ndarray, points: Any) -> np.ndarray:
    """Points of one body in space, as seen."""
    return (q[:, None, :3] + np.asarray(points, float) @ _matrices(q[:, 3:7]).transpose(0, 2, 1)) @ _EYE


def _circle(radius: float, one: Any, other: Any) -> np.ndarray:
    turn = np.linspace(0, 2 * np.pi, 41)[:, None]
    return radius * (np.cos(turn) * np.asarray(one, float) + np.sin(turn) * np.asarray(other, float))


@drawing("n_four_bar")
def n_four_bar(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Upright rods on their anchors, joined by level ones."""
    B, l = q.reshape(len(q), -1, 2), float(a.get("length", 1.0))
    anchors = l * stack(np.arange(B.shape[1]), np.zeros(B.shape[1]))
    rods = [Line(chain(foot, B[:, i]), "blue", 4.0) for i, foot in enumerate(anchors)]
    return Drawing([*rods, Line(B, "orange", 4.0), Circles(anchors, 0.04 * l, "ink"), Circles(B, 0.04 * l, "ink")])


@drawing("bricard")
def bricard(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """The loop of six rods."""
    l, along = float(a.get("length", 1.0)), np.concatenate([np.eye(3), -np.eye(3)])
    rods: list[Shape] = [Line(np.array([[0.0, 0.0], [l, 0.0]]), "ink", 4.0)]
    for i in range(5):
        rods.append(
            Line(_placed(q[:, 7 * i : 7 * i + 7], 0.5 * l * np.stack([-along[i + 1], along[i + 1]])), "blue", 4.0)
        )
    return Drawing(rods, _SEEN)


@drawing("flyball_governor")
def flyball_governor(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """The shaft with rods, balls and slider, seen along the hinge of the rods; the shaft's turning is not shown."""
    l = float(a.get("length", 1.0))
    right = l * stack(np.sin(q[:, 1]), -np.cos(q[:, 1]))
    left = right * [-1.0, 1.0]
    slider = Line(box(stack(np.zeros(len(q)), -q[:, 2]), np.zeros(len(q)), 0.1 * l, 0.05 * l), "orange", fill=True)
    rods = [Line(chain([0.0, 0.0], end), "ink", 3.0) for end in (right, left)]
    shaft = Line(np.array([[0.0, 0.2 * l], [0.0, -1.3 * l]]), "grey")
    return Drawing(
        [shaft, *rods, slider, Circles(np.stack([right, left], 1), 0.08 * l)], "turning of the shaft not shown"
    )


@drawing("stewart_platform")
def stewart_platform(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Plate and legs."""
    del a
    spread, closer = np.deg2rad([-10, 10, 110, 130, 230, 250]), np.deg2rad([-50, 50, 70, 170, 190, 290])
    feet = np.stack([np.cos(spread), np.sin(spread), np.zeros(6)], 1) @ _EYE
    heads = _placed(q, 0.5 * np.stack([np.cos(closer), np.sin(closer), np.zeros(6)], 1))
    legs = [Line(chain(feet[i], heads[:, i]), "grey", 3.0) for i in range(6)]
    plate = Line(_placed(q, _circle(0.5, (1, 0, 0), (0, 1, 0))), "blue", 3.0)
    return Drawing([*legs, plate, Circles(feet, 0.02, "ink")], _SEEN)


@drawing("free_top")
def free_top(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """The three axes of the body."""
    del a
    axes = [
        Line(_placed(q, [np.zeros(3), axis]), colour, 4.0)
        for axis, colour in zip(np.eye(3), ("blue", "orange", "green"))
    ]
    return Drawing([*axes, Line(_circle(1.0, (1, 0), (0, 1)), "grey", 1.0)], f"the axes of the body, {_SEEN}")


@drawing("tippe_top")
def tippe_top(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Ball, stem and axis."""
    del a
    ball, stem = _placed(q, [[0, 0, 0.003]]), _placed(q, [[0, 0, 0.016]])
    axis = Line(_placed(q, [[0, 0, -0.012], [0, 0, 0.021]]), "orange", 3.0)
    floor = ground(-0.06, 0.06)
    return Drawing([floor, Circles(ball, 0.015), Circles(stem, 0.005, "ink"), axis], _SEEN)


@drawing("rolling_disk")
def rolling_disk(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """The rim of the disk, two of its diameters, and the path of its centre."""
    r = float(a.get("radius", 0.5))
    rim = Line(_placed(q, _circle(r, (1, 0, 0), (0, 0, 1))), "blue", 3.0)
    across = [Line(_placed(q, [np.multiply(-r, e), np.multiply(r, e)]), "grey") for e in ((1, 0, 0), (0, 0, 1))]
    return Drawing([Line(q[:, :3] @ _EYE, "grey", 1.0), rim, *across], _SEEN)


@drawing("bouncing_rod")
def bouncing_rod(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """The rod above the plane."""
    half = 0.5 * float(a.get("length", 1.0))
    arm = turned(q[:, 2], half, 0.0)
    low, high = q[:, 0].min() - 2 * half, q[:, 0].max() + 2 * half
    return Drawing([ground(low, high), Line(np.stack([q[:, :2] - arm, q[:, :2] + arm], 1), "blue", 4.0)])


@drawing("bouncing_box")
def bouncing_box(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """The twelve edges of the box."""
    sides = np.asarray(a.get("sides", (1.0, 0.7, 0.5)), float)
    edges = []
    for k in range(3):
        for i in (-0.5, 0.5):
            for j in (-0.5, 0.5):
                ends = np.zeros((2, 3))
                ends[:, k], ends[:, (k + 1) % 3], ends[:, (k + 2) % 3] = (-0.5, 0.5), i, j
                edges.append(Line(_placed(q, ends * sides), "blue", 2.0))
    low, high = q[:, 0].min() - sides.max(), q[:, 0].max() + sides.max()
    return Drawing([ground(low, high), *edges], _SEEN)


@drawing("rimless_wheel")
def rimless_wheel(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Spokes on the slope, which is drawn level."""
    n, l = int(a.get("spokes", 8)), float(a.get("length", 1.0))
    spokes = []
    for k in range(n):
        foot = q[:, :2] + turned(
            q[:, 2], l * np.cos(2 * np.pi * k / n - np.pi / 2), l * np.sin(2 * np.pi * k / n - np.pi / 2)
        )
        spokes.append(Line(np.stack([q[:, :2], foot], 1), "orange" if k == 0 else "blue", 3.0))
    floor = ground(q[:, 0].min() - 1.5 * l, q[:, 0].max() + 1.5 * l)
    return Drawing([floor, *spokes], "the slope drawn level")


@drawing("dominoes")
def dominoes(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A row of dominoes."""
    w, h = 0.5 * float(a.get("width", 0.008)), 0.5 * float(a.get("height", 0.05))
    each = q.reshape(len(q), -1, 3)
    stones = [Line(box(each[:, i, :2], each[:, i, 2], w, h), "blue", fill=True) for i in range(each.shape[1])]
    edge = each[:, :, 0]
    return Drawing([ground(edge.min() - 3 * w, edge.max() + 2 * h), *stones])


@drawing("bead_on_hoop")
def bead_on_hoop(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """The bead in the plane of the hoop, which turns about the upright."""
    r = float(a.get("radius", 1.0))
    return Drawing(
        [Line(_circle(r, (1, 0), (0, 1)), "grey"), Circles(q[:, None], 0.06 * r)], "in the plane of the hoop"
    )
