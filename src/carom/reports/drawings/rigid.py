"""Drawings of rigid bodies: outlines in the plane, and bodies in space."""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.reports.drawings.register import drawing
from carom.reports.shapes import (
    Circles,
    Drawing,
    Line,
    Solid,
    Spring,
    box,
    chain,
    floor,
    ground,
    stack,
    turned,
    turned_in_space,
)

_TURN = "drag to turn"


def _placed(q: np.ndarray, points: Any) -> np.ndarray:
    """Points of one body in space, in all frames."""
    return q[:, None, :3] + turned_in_space(q[:, 3:7], points)


def _floor_under(q: np.ndarray, reach: float) -> Line:
    (left, near), (right, far) = q[:, :2].min(0) - reach, q[:, :2].max(0) + reach
    return floor((left, right), (near, far))


def _upright(points: Any) -> np.ndarray:
    """Points with their y axis drawn upward."""
    return np.asarray(points, float)[..., [0, 2, 1]] * [1.0, -1.0, 1.0]


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
    """The loop of six rods; weight acts along -y, which is drawn downward."""
    l, along = float(a.get("length", 1.0)), np.concatenate([np.eye(3), -np.eye(3)])
    ends = [
        _upright(_placed(q[:, 7 * i : 7 * i + 7], 0.5 * l * np.stack([-along[i + 1], along[i + 1]]))) for i in range(5)
    ]
    fixed = _upright([[0.0, 0.0, 0.0], [l, 0.0, 0.0]])
    rods = [Line(pair, colour, 5.0) for pair, colour in zip(ends, ("blue", "green", "purple", "blue", "green"))]
    return Drawing([Line(fixed, "ink", 5.0), *rods, *(Circles(pair, 0.04 * l, "ink") for pair in ends)], _TURN)


@drawing("flyball_governor")
def flyball_governor(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """The shaft with rods, balls and slider, seen along the hinge of the rods; the shaft's turning is not shown."""
    l = float(a.get("length", 1.0))
    right = l * stack(np.sin(q[:, 1]), -np.cos(q[:, 1]))
    left = right * [-1.0, 1.0]
    collar = stack(np.zeros(len(q)), -q[:, 2])
    slider = Line(box(collar, np.zeros(len(q)), 0.1 * l, 0.05 * l), "orange", fill=True)
    rods = [Line(chain([0.0, 0.0], end), "ink", 3.0) for end in (right, left)]
    shaft = Line(np.array([[0.0, 0.2 * l], [0.0, -1.3 * l]]), "grey")
    springs = [Spring(chain(0.5 * end, collar)) for end in (right, left)]
    return Drawing(
        [shaft, *springs, *rods, slider, Circles(np.stack([right, left], 1), 0.08 * l)],
        "turning of the shaft not shown",
    )


@drawing("stewart_platform")
def stewart_platform(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Plate and legs."""
    del a
    spread, closer = np.deg2rad([-10, 10, 110, 130, 230, 250]), np.deg2rad([-50, 50, 70, 170, 190, 290])
    feet = np.stack([np.cos(spread), np.sin(spread), np.zeros(6)], 1)
    heads = _placed(q, 0.5 * np.stack([np.cos(closer), np.sin(closer), np.zeros(6)], 1))
    legs = [Line(np.stack([np.broadcast_to(feet[i], (len(q), 3)), heads[:, i]], 1), "orange", 4.0) for i in range(6)]
    plate = Solid.cylinder(q[:, :3], q[:, 3:7], 0.5, 0.03)
    dots = [Circles(feet, 0.025, "ink"), Circles(heads, 0.02, "ink")]
    return Drawing([floor((-1.1, 1.1), (-1.1, 1.1)), *legs, plate, *dots], _TURN)


@drawing("free_top")
def free_top(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A box with the moments of inertia of the body, and its three axes."""
    J = np.asarray(a.get("inertia", (1.0, 2.0, 3.0)), float)
    sides = np.sqrt(np.maximum(J.sum() / 2 - (J if J.ndim == 1 else np.diag(J)), 0.02 * J.max()))
    half = 0.6 * sides / sides.max()
    brick = Solid.brick(q[:, :3], q[:, 3:7], half, "grey")
    axes = [
        Line(_placed(q, [0.5 * n * axis, 1.8 * n * axis]), colour, 4.0)
        for axis, n, colour in zip(np.eye(3), 0.3 + half, ("blue", "orange", "green"))
    ]
    return Drawing([brick, *axes], f"a box of like inertia and the axes of the body; {_TURN}")


@drawing("tippe_top")
def tippe_top(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Ball, stem and axis."""
    del a
    ball, knob = Circles(_placed(q, [[0, 0, 0.003]]), 0.015), Circles(_placed(q, [[0, 0, 0.016]]), 0.005, "orange")
    stem = Line(_placed(q, [[0, 0, -0.0125], [0, 0, 0.021]]), "ink", 3.0)
    return Drawing([_floor_under(q, 0.02), ball, stem, knob], _TURN)


@drawing("rolling_disk")
def rolling_disk(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """The rim of the disk, two of its diameters, and the path of its centre."""
    r = float(a.get("radius", 0.5))
    rim = Line(_placed(q, _circle(r, (1, 0, 0), (0, 0, 1))), "blue", 4.0)
    across = [
        Line(_placed(q, [np.multiply(-r, e), np.multiply(r, e)]), colour)
        for e, colour in (((1, 0, 0), "grey"), ((0, 0, 1), "orange"))
    ]
    return Drawing([_floor_under(q, r), Line(q[:, :3], "grey", 1.0), rim, *across], _TURN)


@drawing("bouncing_rod")
def bouncing_rod(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """The rod above the plane."""
    half = 0.5 * float(a.get("length", 1.0))
    arm = turned(q[:, 2], half, 0.0)
    low, high = q[:, 0].min() - 2 * half, q[:, 0].max() + 2 * half
    return Drawing([ground(low, high), Line(np.stack([q[:, :2] - arm, q[:, :2] + arm], 1), "blue", 4.0)])


@drawing("bouncing_box")
def bouncing_box(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """The box above the floor."""
    sides = np.asarray(a.get("sides", (1.0, 0.7, 0.5)), float)
    return Drawing([_floor_under(q, sides.max()), Solid.brick(q[:, :3], q[:, 3:7], 0.5 * sides)], _TURN)


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
    slope = ground(q[:, 0].min() - 1.5 * l, q[:, 0].max() + 1.5 * l)
    return Drawing([slope, *spokes], "the slope drawn level")


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
