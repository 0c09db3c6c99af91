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
from matplotlib.patches import Circle

from carom.plots.style import COLOURS, canvas, styled
from carom.reports.data import picture_of, view_box
from carom.reports.drawings import Draw, draw
from carom.reports.shapes import Circles, Drawing, Shape, Spring, framed
from carom.state import State
from carom.systems.system import System

_WRITERS = {".gif": PillowWriter, ".mp4": FFMpegWriter}
_STILLS = (".png", ".svg", ".pdf")


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
    writer = _WRITERS.get(path.suffix)
    if writer is None or not writer.isAvailable():
        msg = f"a film ends in .gif, or in .mp4 where ffmpeg is installed; got {path.name}"
        raise ValueError(msg)
    t = run.columns["t"]
    times = np.linspace(t[0], t[-1], frames)
    figure, show = scene(picture_of(run, times, drawing), times)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name("part." + path.name)
    FuncAnimation(figure, show, frames=frames, blit=False).save(partial, writer=writer(fps=rate), dpi=100)
    os.replace(partial, path)
    return path


@styled
def still(system: System, state: State, path: Any) -> Path:
    """Draw a system at a state into a picture, .png, .svg or .pdf.

    Example:
        >>> system, state = carom.models.woodpecker()
        >>> carom.reports.film.still(system, state, "woodpecker.png")
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
    left, bottom, right, top = view_box(picture)
    height = float(np.clip(6.4 * (top - bottom) / (right - left), 1.6, 6.4))
    figure, grid = canvas(width=6.4, height=height)
    axes: Axes = grid[0, 0]

    def show(frame: int) -> list[Any]:
        axes.clear()
        axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
        axes.set_axis_off()
        if times is not None:
            axes.set_title(f"t = {times[frame]:.3g}", loc="left")
        for shape in picture.shapes:
            paint(axes, shape, frame)
        return []

    return figure, show


def paint(axes: Axes, shape: Shape, frame: int) -> None:
    """Draw one shape of one frame."""
    points = framed(shape.points)
    points = points[min(frame, len(points) - 1)]
    colour = COLOURS[shape.colour]
    if isinstance(shape, Circles):
        radii = np.broadcast_to(np.asarray(shape.radius, float), (len(points),))
        face = colour if shape.fill else "none"
        patches = PatchCollection(
            [Circle((x, y), r) for (x, y), r in zip(points, radii)], facecolor=face, edgecolor=colour
        )
        patches.set_alpha(0.7 if shape.shade is None else np.clip(0.3 + 0.7 * np.asarray(shape.shade)[frame], 0, 1))
        axes.add_collection(patches)
        return
    if isinstance(shape, Spring):
        points = zigzag(points, shape.coils)
    elif shape.fill:
        axes.fill(*points.T, color=colour, alpha=0.2)
    style = "--" if getattr(shape, "dashed", False) else "-"
    axes.plot(*points.T, style, color=colour, linewidth=shape.width)


def zigzag(ends: np.ndarray, coils: int) -> np.ndarray:
    """A spring between two points."""
    a, b = ends
    along = b - a
    across = np.array([-along[1], along[0]]) * 0.5 / max(coils, 1)
    part = np.linspace(0.12, 0.88, 2 * coils)[:, None]
    side = np.where(np.arange(2 * coils) % 2, 1.0, -1.0)[:, None]
    return np.concatenate([a[None], a + part * along + 0.8 * side * across, b[None]])
