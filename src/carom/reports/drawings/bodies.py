"""Drawings of bodies that fall, hit, slide and rock."""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.reports.drawings.register import drawing
from carom.reports.shapes import Circles, Drawing, Line, Spring, Touches, box, chain, ground, stack, turned, wall


@drawing("falling_mass", "bouncing_ball", "shaken_ball")
def ball(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A ball above a table, drawn with its lowest point at the height q."""
    del a
    r = 0.06 * (np.abs(q).max() or 1.0)
    centre = stack(np.zeros((len(q), 1)), q[:, :1] + r)
    return Drawing([ground(-8 * r, 8 * r), Circles(centre, r)], touches=Touches([[0.0, 0.0]], [[0.0, 1.0]]))


@drawing("impact_oscillator")
def impact_oscillator(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A block on a spring beside a stop at x = 0."""
    side = float(np.sign(a.get("side", -1.0)))
    size = 0.08 * (np.ptp(np.append(q, 0.0)) or 1.0)
    x = side * (side * q[:, 0] + size)
    anchor = side * (np.abs(q).max() + 6 * size)
    centre = stack(x, np.zeros_like(x))
    spring = Spring(chain([anchor, 0.0], centre + np.array([side * size, 0.0])))
    walls = [wall(-3 * size, 3 * size, 0.0, right=side < 0), wall(-3 * size, 3 * size, anchor, right=side > 0)]
    low, high = sorted((0.0, anchor))
    body = Line(box(centre, np.zeros(len(q)), size, size), "blue", fill=True)
    touches = Touches([[0.0, 0.0]], [[side, 0.0]])
    return Drawing([*walls, ground(low, high, -size), spring, body], touches=touches)


@drawing("oscillator_with_stop")
def oscillator_with_stop(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """The same with the block on the other side of the stop."""
    return impact_oscillator(q, a | {"side": 1.0})


@drawing("driven_oscillator")
def driven_oscillator(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A block on a spring beside a stop, which is drawn at x = 0."""
    return impact_oscillator(q - float(a.get("stop", 0.0)), {"side": -1.0})


@drawing("relief_valve")
def relief_valve(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """The disk of a valve on a spring above its seat."""
    del a
    size = 0.1 * (np.abs(q[:, 0]).max() or 1.0)
    centre = stack(np.zeros(len(q)), q[:, 0] + size)
    top = q[:, 0].max() + 8 * size
    spring = Spring(chain(centre + np.array([0.0, size]), [0.0, top]))
    disk = Line(box(centre, np.zeros(len(q)), 4 * size, size), "blue", fill=True)
    walls = [ground(-8 * size, 8 * size), ground(-4 * size, 4 * size, top, below=False)]
    return Drawing([*walls, spring, disk], touches=Touches([[0.0, 0.0]], [[0.0, 1.0]]))


@drawing("friction_oscillator")
def friction_oscillator(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A block on a table, held by a spring to the left."""
    del a
    size = 0.12 * (np.ptp(q) or 1.0)
    anchor, right = q.min() - 8 * size, q.max() + 4 * size
    centre = stack(q[:, 0], np.full(len(q), size))
    spring = Spring(chain([anchor, size], centre - np.array([size, 0.0])))
    body = Line(box(centre, np.zeros(len(q)), size, size), "blue", fill=True)
    touches = Touches(stack(q, 0.0), [[1.0, 0.0]])
    return Drawing([wall(-size, 3 * size, anchor, right=False), ground(anchor, right), spring, body], touches=touches)


@drawing("mass_on_sphere")
def mass_on_sphere(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A point on a sphere, seen from the side; the grey line is the path."""
    radius = float(a.get("radius", 1.0))
    turn = np.linspace(0, 2 * np.pi, 61)
    sphere = Line(radius * stack(np.cos(turn), np.sin(turn)), "ink")
    normal = q / np.maximum(np.linalg.norm(q, axis=1, keepdims=True), 1e-300)
    ball = Circles((q + 0.05 * radius * normal)[:, None], 0.05 * radius)
    return Drawing([sphere, Line(q, "grey", 1.0), ball], touches=Touches(q[:, None], normal[:, None]))


@drawing("elastic_bar")
def elastic_bar(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """The nodes of a bar beside the wall it hits."""
    length = float(a.get("length", 1.0))
    x = q + np.linspace(0.0, length, q.shape[1])
    size = 0.05 * length
    nodes = stack(x + size, np.zeros_like(x))
    shapes = [wall(-5 * size, 5 * size, 0.0, right=False), Line(nodes, "blue", 4.0), Circles(nodes, size)]
    return Drawing(shapes, "nodes drawn as disks that touch where the bar does", Touches([[0.0, 0.0]], [[1.0, 0.0]]))


@drawing("sliding_mass")
def sliding_mass(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A mass on a table seen from above, with its whole path."""
    del a
    size = 0.03 * (np.ptp(q, axis=0).max() or 1.0)
    return Drawing(
        [Line(q, "grey", 1.0), Circles(q[:, None], size)], "seen from above", Touches(q[:, None], [[1.0, 0.0]])
    )


@drawing("super_ball")
def super_ball(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A ball between floor and ceiling, with a spoke that shows its rotation."""
    r, ceiling = float(a.get("radius", 0.1)), float(a.get("ceiling", 1.0))
    left, right = q[:, 0].min() - 3 * r, q[:, 0].max() + 3 * r
    spoke = Line(chain(q[:, :2], q[:, :2] + turned(q[:, 2], r, 0.0)), "ink")
    walls = [ground(left, right), ground(left, right, ceiling, below=False)]
    shapes = [*walls, Line(q[:, :2], "grey", 1.0, dashed=True), Circles(q[:, None, :2], r), spoke]
    touches = Touches(stack(q[:, :1], [0.0, ceiling]), [[0.0, 1.0], [0.0, -1.0]], [[1.0, 0.0], [1.0, 0.0]])
    return Drawing(shapes, touches=touches)


@drawing("rocking_block")
def rocking_block(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A block on a table."""
    w, h = float(a.get("half_width", 0.0125)), float(a.get("half_height", 0.05))
    reach = 2.5 * max(w, h)
    middle = 0.5 * (q[:, 0].min() + q[:, 0].max())
    outline = box(q[:, :2], q[:, 2], w, h)
    touches = Touches(outline[:, :2], [[0.0, 1.0], [0.0, 1.0]])
    return Drawing([ground(middle - reach, middle + reach), Line(outline, "blue", fill=True)], touches=touches)


@drawing("block_on_belt")
def block_on_belt(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A block on a belt (orange) with marks that move with it, held by a spring to the left."""
    size = 0.12 * (np.ptp(q) or 1.0)
    anchor = q.min() - 8 * size
    left, right = anchor + 2 * size, q.max() + 4 * size
    centre = stack(q[:, 0], np.full(len(q), size))
    spring = Spring(chain([anchor, size], centre - np.array([size, 0.0])))
    belt = Line([[left, 0.0], [right, 0.0]], "orange", 3.0)
    wheels = Circles([[left, -0.5 * size], [right, -0.5 * size]], 0.5 * size, "grey", fill=False)
    way = float(a.get("belt", 0.0)) * np.asarray(a.get("t", np.zeros(len(q))))
    marks = left + (way[:, None] + (right - left) * np.arange(12) / 12 - left) % (right - left)
    ticks = np.full((len(q), 36, 2), np.nan)
    ticks[:, 0::3], ticks[:, 1::3] = stack(marks, 0.0), stack(marks, -0.3 * size)
    body = Line(box(centre, np.zeros(len(q)), size, size), "blue", fill=True)
    shapes = [
        wall(-size, 3 * size, anchor, right=False),
        belt,
        Line(ticks, "orange", 2.0, held=True),
        wheels,
        spring,
        body,
    ]
    return Drawing(shapes, touches=Touches(stack(q, 0.0), [[1.0, 0.0]]))


@drawing("painleve_rod", "impacting_stick")
def painleve_rod(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A rod on its lower front tip; the eye moves with it and posts on the ground show how fast."""
    s = float(a.get("half_length", 1.0))
    along = turned(-q[:, 2], s, 0.0)
    x = s * (np.ceil(q[:, :1] / s - 2.4) + np.arange(5))
    marks = Circles(stack(x, np.full(x.shape, -0.05 * s)), 0.04 * s, "grey", held=True)
    floor = Line(stack(q[:, :1] + np.array([-2.5, 2.5]) * s, np.zeros((len(q), 2))), "grey")
    rod = Line(chain(q[:, :2] - along, q[:, :2] + along), "blue", 5.0)
    tip = (q[:, :2] + along)[:, None]
    shapes = [floor, marks, rod, Circles(tip, 0.04 * s, "orange")]
    return Drawing(shapes, touches=Touches(tip, [[0.0, 1.0]])).seen_from(q[:, 0])


_WOODPECKER = {"r_0": 0.0025, "r_M": 0.0031, "h_M": 0.0058, "l_M": 0.010, "l_G": 0.015, "h_S": 0.02, "l_S": 0.0201}


@drawing("woodpecker")
def woodpecker(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Pole, sleeve, spring and bird (Glocker's data)."""
    p = _WOODPECKER | {key: float(a[key]) for key in _WOODPECKER if key in a}
    sleeve = stack(np.zeros(len(q)), q[:, 0])
    hinge = sleeve + turned(q[:, 1], p["l_M"], 0.0)
    bird = hinge + turned(q[:, 2], p["l_G"], 0.0)
    beak = bird + turned(q[:, 2], -p["l_S"], p["h_S"])
    head = bird + turned(q[:, 2], -0.4 * p["l_S"], p["h_S"])
    outline = [
        (0.6, -1.2),
        (0.0, -0.55),
        (-0.28, 0.1),
        (-0.3, 0.75),
        (-0.12, 1.0),
        (0.15, 0.5),
        (0.32, -0.2),
        (0.6, -1.2),
    ]
    body = chain(*(bird + turned(q[:, 2], x * p["l_S"], y * p["h_S"]) for x, y in outline))
    low, high = q[:, 0].min() - 2 * p["h_S"], q[:, 0].max() + 2.5 * p["h_S"]
    pole = Line(box(np.array([0.0, 0.5 * (low + high)]), 0.0, p["r_0"], 0.5 * (high - low)), "grey", 1.0, fill=True)
    ring = Line(box(sleeve, q[:, 1], p["r_M"], p["h_M"]), "ink", 2.0)
    shapes = [
        pole,
        ring,
        Spring(chain(sleeve + turned(q[:, 1], p["r_M"], 0.0), hinge), "orange", coils=5),
        Line(chain(hinge, bird), "orange", 2.0),
        Line(body, "blue", 2.0, fill=True),
        Circles(head[:, None], 0.004, "blue"),
        Line(chain(head, beak), "red", 4.0),
    ]
    lower, upper = (sleeve + turned(q[:, 1], p["r_M"], side * p["h_M"]) for side in (-1, 1))
    touches = Touches(chain(beak, lower, upper), [[1.0, 0.0]] * 3, [[0.0, 1.0]] * 3)
    return Drawing(shapes, touches=touches)
