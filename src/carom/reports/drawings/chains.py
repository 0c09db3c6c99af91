"""Drawings of chains, media and strings."""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.reports.drawings.register import drawing
from carom.reports.shapes import Circles, Drawing, Line, Spring, stack, wall

_MOST_BEADS = 300


def _beads(q: np.ndarray, radii: np.ndarray) -> tuple[np.ndarray, Circles]:
    """Rest places and beads; their size is chosen so that overlaps and motion both show."""
    n = q.shape[1]
    kept = slice(0, n, -(-n // _MOST_BEADS))
    q, radii = q[:, kept], radii[kept] / radii.mean()
    overlap = np.maximum(q[:, :-1] - q[:, 1:], 0.0)
    scale = 0.5 * max(2 * np.abs(q).max(initial=0.0) / q.shape[1], 2.5 * overlap.max(initial=0.0)) or 0.5
    rest = np.concatenate([[0.0], np.cumsum(radii[:-1] + radii[1:])]) * scale
    pressed = np.pad(overlap, ((0, 0), (1, 1)))
    shade = np.maximum(pressed[:, 1:], pressed[:, :-1]) / (overlap.max(initial=0.0) or 1.0)
    return rest, Circles(stack(rest + q, np.zeros_like(q)), radii * scale, "blue", shade=shade)


def _radii(n: int, a: dict[str, Any]) -> np.ndarray:
    if "radii" in a:
        return np.asarray(a["radii"], float)
    if "masses" in a:
        return np.asarray(a["masses"], float) ** (1 / 3)
    return np.where(np.arange(n) % 2 == 0, 1.0, float(a.get("mass_ratio", 1.0)) ** (1 / 3))


@drawing("granular_chain", "dimer_chain", "bead_chain", "binary_collision")
def beads(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A row of beads, darker where they are pressed."""
    return Drawing([_beads(q, _radii(q.shape[1], a))[1]], "bead size chosen so that overlaps show", to_scale=False)


@drawing("trimer")
def trimer(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Three beads of radii 1, 4/5, 9/10."""
    return beads(q, a | {"radii": [1.0, 0.8, 0.9]})


@drawing("newtons_cradle")
def cradle(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Beads hanging on strings from a bar."""
    del a
    rest, balls = _beads(q, np.ones(q.shape[1]))
    top = max(0.45 * np.ptp(rest), 2.5 * np.abs(q).max())
    strings = np.full((len(q), 3 * len(rest), 2), np.nan)
    strings[:, 0::3] = stack(rest, np.full(len(rest), top))
    strings[:, 1::3] = balls.points
    bar = Line(stack(np.array([rest[0], rest[-1]]) + np.array([-1, 1]) * np.asarray(balls.radius)[0], [top, top]))
    return Drawing([Line(strings, "grey", 1.0), bar, balls], "bead size chosen so that overlaps show", to_scale=False)


@drawing("fermi_pasta_ulam")
def fermi_pasta_ulam(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Masses between stiff (orange) and soft (grey) springs, from positions x_i and stretches x_{m+i}."""
    del a
    m = q.shape[1] // 2
    left, right = (q[:, :m] - q[:, m:]) / np.sqrt(2), (q[:, :m] + q[:, m:]) / np.sqrt(2)
    x = np.stack([left, right], axis=2).reshape(len(q), 2 * m)
    return _springs(x, ["grey" if i % 2 == 0 else "orange" for i in range(2 * m + 1)])


@drawing("slow_fast_chain")
def slow_fast_chain(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Masses between walls: first the stiff springs (orange), then the soft ones."""
    del a
    m = q.shape[1] // 2
    return _springs(q, ["orange"] * m + ["grey"] * (m + 1))


def _springs(x: np.ndarray, colours: list[str]) -> Drawing:
    n = x.shape[1]
    gap = max(2.5 * np.abs(np.diff(x, axis=1, prepend=0.0, append=0.0)).max(), 1e-12)
    places = np.pad(x, ((0, 0), (1, 1))) + gap * np.arange(n + 2)
    points = stack(places, np.zeros_like(places))
    springs: list[Any] = [Spring(points[:, i : i + 2], colour) for i, colour in enumerate(colours)]
    side = 0.8 * gap
    walls = [wall(-side, side, 0.0, right=False), wall(-side, side, (n + 1) * gap)]
    return Drawing(
        [*walls, *springs, Circles(points[:, 1:-1], 0.14 * gap)], "rest distances chosen by the drawing", to_scale=False
    )


@drawing("nonlinear_string")
def string(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A string in the plane between fixed ends; q holds all first components, then all second ones."""
    del a
    n = q.shape[1] // 2 + 1
    x = np.pad(q[:, : n - 1], ((0, 0), (1, 1))) + np.linspace(0, 1, n + 1)
    y = np.pad(q[:, n - 1 :], ((0, 0), (1, 1)))
    points = stack(x, y)
    return Drawing([Line(points, "blue", 2.5), Circles(points[:, [0, -1]], 0.012, "ink")])


@drawing("inhomogeneous_wave", "layered_string")
def wave(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """Displacement over place, enlarged; dashed lines where the wave speed changes."""
    layers = len(a.get("speeds", (10.0, 1.0)))
    size = q.shape[1] + 2
    kept = np.unique(np.linspace(0, size - 1, min(size, 400)).round().astype(int))
    height = np.abs(q).max(initial=0.0) or 1.0
    u = np.pad(q, ((0, 0), (1, 1)))[:, kept] * 0.25 / height
    marks = [Line([[i / layers, -0.3], [i / layers, 0.3]], "grey", 1.0, dashed=True) for i in range(1, layers)]
    return Drawing([*marks, Line(stack(kept / (size - 1), u), "blue", 2.0)], "displacements enlarged", to_scale=False)


@drawing("single_particle")
def single_particle(q: np.ndarray, a: dict[str, Any]) -> Drawing:
    """A particle on a line."""
    del a
    size = 0.04 * (np.ptp(q) or 1.0)
    rail = Line([[q.min() - 2 * size, 0.0], [q.max() + 2 * size, 0.0]], "grey", 1.0)
    return Drawing([rail, Circles(stack(q[:, :1], np.zeros((len(q), 1))), size)])
