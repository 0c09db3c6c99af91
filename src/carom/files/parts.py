"""Long runs on disk while they run: parts `run.nc.d/0001.nc`, ..., merged into `run.nc` at the end.

Each part holds the rows since the one before and the whole carry, and appears by an atomic rename; a run killed at any
time is read by `carom.load` and goes on with `carom.resume`. All parts of a run bear its id, one process at a time
writes them, and a finished `run.nc` is replaced only by another finished one.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from carom.files import storage, writing
from carom.files import whole_files as files
from carom.files.datasets import gone_on, notes_of
from carom.files.resuming import going_on
from carom.methods.base import AbstractMethod
from carom.running import run as host
from carom.running.run import Run
from carom.running.signals import deferred
from carom.solution import Solution
from carom.state import Interrupted, SimulationError, State
from carom.stepping.base import AbstractStepping
from carom.systems.system import System


class Parts:
    """A callback for `carom.simulate` that writes a part every `every` seconds; as a context it locks their folder.

    Example:
        >>> with Parts("run.nc", every=10.0) as keep:
        ...     keep.finish(carom.simulate(system, state, method, t1=100.0, h=0.1, callback=keep))
    """

    def __init__(self, path: Any, every: float = 10.0, notes: dict[str, Any] | None = None):
        if not every > 0:
            msg = f"the time between parts must be positive, got {every} s"
            raise ValueError(msg)
        self.path, self.every = writing.run_path(path), float(every)
        self.folder = storage.parts_folder(self.path)
        self.lock = files.Lock(self.folder / "lock", self.path)
        self.run_id, self.number, self.known = uuid4().hex, 1, np.zeros(0)
        self.notes = notes or {}
        self.old: list[Path] = []
        self.due = time.monotonic() + self.every

    def __enter__(self) -> Parts:
        self.lock.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.lock.__exit__(*error)

    def go_on(self, stored: storage.Loaded) -> None:
        """Go on with the parts of a run that was not finished."""
        self.run_id, self.known = stored.data.attrs["run"], stored.t
        self.number = len(storage.part_files(self.path)) + 1

    def begin(self) -> None:
        """Begin anew; parts of a run that may still go on are refused, those of one that ended make room."""
        unfinished = storage.unfinished_parts(self.path)
        if unfinished and not files.read(unfinished[-1]).attrs.get("failed"):
            msg = f"{self.folder} holds a run that is not finished: `carom resume {self.path}`, or remove the folder"
            raise ValueError(msg)
        for file in storage.part_files(self.path):
            self.old.append(file.replace(file.with_suffix(".old")))

    def __call__(self, run: Run) -> None:
        """Write a part if one is due."""
        if time.monotonic() >= self.due:
            self.write(run)
            self.due = time.monotonic() + self.every

    def write(self, run: Run) -> None:
        """Write the rows that no part holds yet, and the carry."""
        solution = run.solution()
        solution.notes = self.notes
        data = writing.with_carry(solution, self.run_id)
        t = data["time"].to_numpy()
        n = min(len(t), len(self.known))
        differing = np.flatnonzero(t[:n] != self.known[:n])
        first = min(int(differing[0]) if len(differing) else n, len(t) - 1)
        data.attrs |= {"first_row": first, "failed": int(run.failed)}
        files.write(data.isel(time=slice(first, None)), self.folder / f"{self.number:04d}.nc")
        self.known, self.number = t, self.number + 1
        while self.old:
            self.old.pop().unlink(missing_ok=True)

    def carry_out(self, run: Run, progress: Any) -> Solution:
        """Run to the end; where it ends early, what was computed is in the parts."""
        try:
            return self.finish(host.finish(run, self, progress, None))
        except Interrupted as error:
            self.write(run)
            msg = f"interrupted at t = {run.reached:.6g}; `carom resume {self.path}` goes on"
            raise Interrupted(msg, error.solution) from None
        except SimulationError:
            self.write(run)
            raise
        except files.NotWrittenError as error:
            stuck = files.NotWrittenError(f"{error}; `carom resume {self.path}` goes on from the last part")
            stuck.solution = run.solution()
            raise stuck from None

    def finish(self, solution: Solution) -> Solution:
        """Write the whole run as one file and remove the parts."""
        solution.notes = self.notes
        data = writing.with_carry(solution, self.run_id)
        solution.notes = notes_of(data.attrs)
        files.write(data, self.path, through=self.folder)
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
    notes: dict[str, Any] | None = None,
) -> Solution:
    """`carom.simulate` that can be killed: the start is on disk before the first step, parts follow.

    Example:
        >>> sol = simulate_to("run.nc", system, state, method, t1=100.0, stepping=carom.Constant(0.1))
    """

    def started(keep: Parts) -> Run:
        run = host.prepare(system, state, method, t1, stepping, save_every)
        keep.begin()
        return run

    return _kept(Parts(path, every, notes), started, progress)


def resume_to(path: Any, *, t1: float | None = None, every: float = 10.0, progress: Any = None) -> Solution:
    """`carom.resume` in place: goes on from `run.nc` or its parts and can be killed again.

    Example:
        >>> sol = resume_to("run.nc", t1=200.0)
    """

    def resumed(keep: Parts) -> Run:
        stored = storage.newest(keep.path)
        run = going_on(stored, t1=t1)
        keep.notes = gone_on(stored)
        if storage.unfinished_parts(keep.path):
            keep.go_on(stored)
        else:
            keep.begin()
        return run

    return _kept(Parts(path, every), resumed, progress)


def _kept(keep: Parts, prepare: Callable[[Parts], Run], progress: Any) -> Solution:
    with deferred(), keep:
        run = prepare(keep)
        keep.notes["save_every"] = int(run.problem.save_every)
        if not len(keep.known):
            keep.write(run)
        return keep.carry_out(run, progress)
