"""Long runs on disk while they run: segments `run.nc.d/0001.nc`, ..., merged into `run.nc` at the end.

Each segment holds the rows since the one before and the whole carry, and appears by an atomic rename; a run killed at
any time is read by `carom.load` and goes on with `carom.resume`.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

from carom import run as host
from carom import storage
from carom.methods.base import AbstractMethod
from carom.solution import Solution
from carom.state import State
from carom.stepping.base import AbstractStepping
from carom.systems.system import System


class Segments:
    """A callback for `carom.simulate` that writes a segment every `every` seconds.

    Example:
        >>> keep = Segments("run.nc", every=10.0)
        >>> keep.finish(carom.simulate(system, state, method, t1=100.0, h=0.1, callback=keep))
    """

    def __init__(self, path: Any, every: float = 10.0, known: np.ndarray | None = None):
        if not every > 0:
            msg = f"the time between segments must be positive, got {every} s"
            raise ValueError(msg)
        self.path, self.every = Path(path), float(every)
        self.folder = self.path.with_name(self.path.name + ".d")
        self.known = np.zeros(0) if known is None else known
        files = storage.segment_files(self.path)
        self.number = int(files[-1].stem) + 1 if files else 1
        self.due = time.monotonic() + self.every

    def __call__(self, run: Any) -> None:
        """Write a segment if one is due."""
        if time.monotonic() >= self.due:
            self.write(run)
            self.due = time.monotonic() + self.every

    def write(self, run: Any) -> None:
        """Write the rows that no segment holds yet, and the carry."""
        data = storage.with_carry(run.solution())
        data.attrs["save_every"] = int(run.problem.save_every)
        t = data["time"].to_numpy()
        n = min(len(t), len(self.known))
        differing = np.flatnonzero(t[:n] != self.known[:n])
        first = min(int(differing[0]) if len(differing) else n, len(t) - 1)
        storage.write(data.isel(time=slice(first, None)), self.folder / f"{self.number:04d}.nc")
        self.path.unlink(missing_ok=True)
        self.known, self.number = t, self.number + 1

    def finish(self, solution: Solution) -> Solution:
        """Write the whole run as one file and remove the segments."""
        storage.save(solution, self.path)
        shutil.rmtree(self.folder, ignore_errors=True)
        return solution


def simulate_to(
    path: Any,
    system: System,
    state: State,
    method: AbstractMethod,
    *,
    t1: float,
    stepping: AbstractStepping,
    save_every: int = 1,
    every: float = 10.0,
    progress: Any = None,
) -> Solution:
    """`carom.simulate` that can be killed: the start is on disk before the first step, segments follow.

    Example:
        >>> sol = simulate_to("run.nc", system, state, method, t1=100.0, stepping=carom.Constant(0.1))
    """
    run = host.prepare(system, state, method, t1, stepping, save_every)
    path = Path(path)
    path.unlink(missing_ok=True)
    shutil.rmtree(path.with_name(path.name + ".d"), ignore_errors=True)
    keep = Segments(path, every)
    keep.write(run)
    try:
        solution = host.finish(run, keep, progress, None)
    except KeyboardInterrupt:
        keep.write(run)
        raise
    return keep.finish(solution)


def resume_to(path: Any, *, t1: float | None = None, every: float = 10.0, progress: Any = None) -> Solution:
    """`carom.resume` in place: goes on from `run.nc` or its segments and can be killed again.

    Example:
        >>> sol = resume_to("run.nc", t1=200.0)
    """
    path = Path(path)
    stored = storage.load(path)
    keep = Segments(path, every, known=None if path.exists() else stored.t)
    if path.exists():
        shutil.rmtree(keep.folder, ignore_errors=True)
        keep.number = 1
    return keep.finish(storage.resume(stored, t1=t1, callback=keep, progress=progress))
