"""The animation of a report as a GIF or MP4, drawn by matplotlib from the same shapes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.animation import FFMpegWriter, FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import Circle

from carom.plots.style import COLOURS, canvas, styled
from carom.reports.data import picture_of, view_box
from carom.reports.drawings import Draw, draw
from carom.reports.shapes import Arrows, Circles, Drawing, Shape, Solid, Spring, framed, turned_in_space
from carom.state import State
from carom.systems.system import System

_WRITERS = {".gif": PillowWriter, ".mp4": FFMpegWriter}
_STILLS = (".png", ".svg", ".pdf")
_MOST_PARTS = 100  # of a line in space whose parts are hidden one by one
_TURN, _LIFT = -0.6, 0.35  # of the eye; those of the page


@styled
def film(run: Any, path: Any, *, frames: int = 150, rate: int = 25, drawing: Draw | None = None) -> Path:
    """Write the moving system as a `.gif`, or as an `.mp4` where ffmpeg is installed.

    Args:
        run: a `Solution`, or what `carom.load` returned.
        path: the file to write, replaced atomically.
        frames: number of frames.
        rate: frames per second.
        drawing: as for `carom.report`, which draws the same.

    Example:
        >>> carom.film(sol, "run.gif")
    """
    path = Path(path)
    writer = writer_for(path)
    t = run.columns["t"]
    times = np.linspace(t[0], t[-1], frames)
    figure, show = scene(picture_of(run, times, drawing), times)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name("part." + path.name)
    FuncAnimation(figure, show, frames=frames, blit=False).save(partial, writer=writer(fps=rate), dpi=100)
    os.replace(partial, path)
    return path


def writer_for(path: Path) -> Any:
    """What writes a film of this ending, or an error before anything is drawn."""
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        msg = f"a film ends in .gif or .mp4, got {path.name}"
        raise ValueError(msg)
    if not writer.isAvailable():
        msg = f"{path.name} needs the program ffmpeg, which is not installed; a .gif does without"
        raise ValueError(msg)
    return writer


@styled
def still(system: System, state: State, path: Any) -> Path:
    """Draw a system at a state into a picture, .png, .svg or .pdf.

    Example:
        >>> system, state = carom.models.woodpecker()
        >>> from carom.reports.film import still
        >>> still(system, state, "woodpecker.png")
    """
    path = Path(path)
    if path.suffix not in _STILLS:
        msg = f"a picture ends in {', '.join(_STILLS)}, got {path.name}"
        raise ValueError(msg)
    model, arguments = ("", {}) if system.origin is None else (system.origin.name, json.loads(system.origin.arguments))
    picture = draw(model, np.asarray(state.q)[None], arguments, system.labels)
    figure, show = scene(picture, None)
    show(0)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path


def scene(picture: Drawing, times: np.ndarray | None) -> tuple[Any, Callable[[int], list[Any]]]:
    """A figure as large as the drawing needs, and a function that draws one of its frames."""
    left, bottom, right, top = seen_box(view_box(picture))
    height = float(np.clip(6.4 * (top - bottom) / (right - left), 1.6, 6.4))
    figure, grid = canvas(width=6.4, height=height)
    axes: Axes = grid[0, 0]

    def show(frame: int) -> list[Any]:
        axes.clear()
        axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
        axes.set_axis_off()
        if times is not None:
            axes.set_title(f"t = {times[frame]:.3g}", loc="left")
        for order, shape in enumerate(picture.shapes):
            paint_in_space(axes, shape, frame) if picture.in_space else paint(axes, shape, frame, order)
        return []

    return figure, show


def paint(axes: Axes, shape: Shape, frame: int, order: int = 1) -> None:
    """Draw one shape of one frame, over those of lower order."""
    assert not isinstance(shape, Solid)
    points, colour = of_frame(shape.points, frame), COLOURS[shape.colour]
    if isinstance(shape, Circles):
        circles(axes, shape, points, frame, order)
    elif isinstance(shape, Arrows):
        arrows(axes, points, of_frame(shape.vectors, frame), colour, order)
    else:
        if isinstance(shape, Spring):
            points = zigzag(points, shape.coils)
        elif shape.fill:
            axes.fill(*points.T, color=colour, alpha=0.2, zorder=order)
        style = "--" if getattr(shape, "dashed", False) else "-"
        axes.plot(*points.T, style, color=colour, linewidth=shape.width, zorder=order)


def of_frame(points: Any, frame: int) -> np.ndarray:
    """The points of one frame; those of what never moves."""
    points = framed(points)
    return points[min(frame, len(points) - 1)]


def circles(axes: Axes, shape: Circles, points: np.ndarray, frame: int, order: float) -> None:
    """Draw circles of one frame."""
    colour = COLOURS[shape.colour]
    radii = np.broadcast_to(np.asarray(shape.radius, float), (len(points),))
    patches = PatchCollection(
        [Circle((x, y), r) for (x, y), r in zip(points, radii)],
        facecolor=colour if shape.fill else "none",
        edgecolor=colour,
        zorder=order,
    )
    strength = 0.7 if shape.shade is None else np.clip(0.3 + 0.7 * np.asarray(shape.shade)[frame], 0, 1)
    patches.set_alpha(strength if shape.alpha is None else np.asarray(shape.alpha)[frame])
    axes.add_collection(patches)


def arrows(axes: Axes, points: np.ndarray, vectors: np.ndarray, colour: str, order: float) -> None:
    """Draw arrows that are long enough to be seen."""
    size = np.ptp(axes.get_xlim())
    for start, vector in zip(points, vectors):
        if np.linalg.norm(vector) > 0.005 * size:
            style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
            axes.annotate("", start + vector, start, arrowprops=style, zorder=order)


def zigzag(ends: np.ndarray, coils: int) -> np.ndarray:
    """A spring between two points."""
    a, b = ends
    along = b - a
    across = np.array([-along[1], along[0]]) * 0.5 / max(coils, 1)
    part = np.linspace(0.12, 0.88, 2 * coils)[:, None]
    side = np.where(np.arange(2 * coils) % 2, 1.0, -1.0)[:, None]
    return np.concatenate([a[None], a + part * along + 0.8 * side * across, b[None]])


# ---- bodies in space, as the page shows them first -------------------------------------------------------------------


def eye() -> np.ndarray:
    """Directions to the right, upward and to the eye, as columns."""
    (c, s), (b, a) = ((np.cos(x), np.sin(x)) for x in (_TURN, _LIFT))
    return np.array([[c, s, 0.0], [-s * a, c * a, b], [s * b, -c * b, a]]).T


def seen_box(box: list[float]) -> tuple[float, float, float, float]:
    """Left, bottom, right and top of what is seen of a box."""
    if len(box) == 4:
        return box[0], box[1], box[2], box[3]
    corners = np.array([[x, y, z] for x in box[0::3] for y in box[1::3] for z in box[2::3]]) @ eye()
    (left, bottom, _), (right, top, _) = corners.min(0), corners.max(0)
    return float(left), float(bottom), float(right), float(top)


def paint_in_space(axes: Axes, shape: Shape, frame: int) -> None:
    """Draw one shape of one frame; the order of painting is the distance from the eye."""
    view, colour = eye(), COLOURS[shape.colour]
    if isinstance(shape, Solid):
        solid(axes, shape, frame, view)
        return
    points = of_frame(shape.points, frame) @ view
    if isinstance(shape, Circles):
        spheres(axes, shape, points, frame)
    elif isinstance(shape, Arrows):
        arrows(axes, points[:, :2], of_frame(shape.vectors, frame) @ view[:, :2], colour, 1e300)
    else:
        parts = [points] if isinstance(shape, Spring) or len(points) > _MOST_PARTS else zip(points, points[1:])
        for part in parts:
            part = np.asarray(part)
            ends = zigzag(part[:, :2], shape.coils) if isinstance(shape, Spring) else part[:, :2]
            if np.isfinite(part).any():
                axes.plot(*ends.T, color=colour, linewidth=shape.width, zorder=float(np.nanmean(part[:, 2])))


def spheres(axes: Axes, shape: Circles, points: np.ndarray, frame: int) -> None:
    """Draw spheres of one frame with a darker rim and a light spot."""
    colour = np.array(to_rgb(COLOURS[shape.colour]))
    radii = np.broadcast_to(np.asarray(shape.radius, float), (len(points),))
    alpha = np.ones(len(points)) if shape.alpha is None else np.asarray(shape.alpha)[frame]
    for (x, y, depth), r, strength in zip(points, radii, alpha):
        look = {"alpha": float(strength), "zorder": depth + r}
        face = colour if shape.fill else "none"
        axes.add_patch(Circle((x, y), r, facecolor=face, edgecolor=0.6 * colour, linewidth=0.7, **look))
        if shape.fill:
            spot = look | {"alpha": 0.3 * float(strength)}
            axes.add_patch(Circle((x - 0.3 * r, y + 0.35 * r), 0.35 * r, facecolor="white", linewidth=0, **spot))


def solid(axes: Axes, shape: Solid, frame: int, view: np.ndarray) -> None:
    """Draw the faces of a solid that look to the eye, lit from there and from above."""
    quaternion, position = (np.atleast_2d(a) for a in (shape.quaternion, shape.position))
    turned = turned_in_space(quaternion[min(frame, len(quaternion) - 1)][None], shape.corners)[0]
    corners = position[min(frame, len(position) - 1)] + turned
    seen = corners @ view
    for face in shape.faces:
        a, b, c = corners[face[0]], corners[face[1]], corners[face[2]]
        normal = np.cross(b - a, c - b)
        normal /= np.linalg.norm(normal) or 1.0
        facing = normal @ view[:, 2]
        if facing > 0:
            light = 0.62 + 0.28 * facing + 0.14 * max(normal[2], 0.0)
            fill, edge = (np.clip(light * k * np.array(to_rgb(COLOURS[shape.colour])), 0, 1) for k in (1.0, 0.75))
            axes.fill(*seen[face, :2].T, facecolor=fill, edgecolor=edge, zorder=float(seen[face, 2].mean()))
