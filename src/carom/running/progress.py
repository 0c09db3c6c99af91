"""Progress of a run on the terminal."""

from __future__ import annotations

import sys
import time
from typing import Any


class Progress:
    """A silent progress display; `progress_bar` gives the visible one."""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def update(self, t: float, steps: int, note: str = "") -> None:
        """Told between chunks: the time reached, the steps accepted, and step size and contacts in words."""


class Bar(Progress):
    """A rich progress bar with time, steps and rate, shown once the run has lasted `delay` seconds."""

    def __init__(self, t0: float, t1: float, delay: float, what: str = "t ="):
        self.t0, self.t1, self.delay, self.what = t0, t1, delay, what
        self.started = time.perf_counter()
        self.since: tuple[float, int] | None = None  # time and steps of the first telling, when all is compiled
        self.bar: Any = None
        self.task: Any = None

    def show(self) -> None:
        """Open the bar."""
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn(self.what + " {task.fields[t]:.4g} / {task.fields[t1]:.4g}"),
            BarColumn(),
            TextColumn("{task.fields[note]}"),
        )
        self.bar = Progress(*columns, TimeRemainingColumn())
        self.bar.start()
        self.task = self.bar.add_task("", total=abs(self.t1 - self.t0), t=self.t0, t1=self.t1, note="")

    def update(self, t: float, steps: int, note: str = "") -> None:
        """Move the bar."""
        now = time.perf_counter()
        if self.bar is None and now - self.started >= self.delay:
            self.show()
        before, done = self.since or (self.started, 0)
        self.since = self.since or (now, steps)
        if self.bar is not None:
            note = f"{note}, {steps} steps, {(steps - done) / (now - before):,.0f}/s".removeprefix(", ")
            self.bar.update(self.task, completed=abs(t - self.t0), t=t, note=note)

    def __exit__(self, *_: Any) -> None:
        if self.bar is not None:
            self.bar.stop()


def progress_bar(progress: bool | Progress | None, t0: float, t1: float, what: str = "t =") -> Progress:
    """The display asked for: True always, None on a terminal after a second, False never, or the caller's own."""
    if isinstance(progress, Progress):
        return progress
    if progress is None:
        return Bar(t0, t1, 1.0, what) if sys.stderr.isatty() else Progress()
    return Bar(t0, t1, 0.0, what) if progress else Progress()
