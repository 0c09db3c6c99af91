"""The host's side of keeps: places taken from rings that would overflow, results, warnings and failures."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np

from carom.arguments import users_frame
from carom.keep.base import Ring, ring_of
from carom.keep.keeps import RECENT, Keeps, current
from carom.rows import RowStore
from carom.solution import Solution
from carom.state import Carry, Clock, Numbers, Status


class Grown:
    """Places on the host, in blocks; later ones replace those from their first on."""

    def __init__(self, rows: np.ndarray | None = None):
        self.blocks = [] if rows is None else [rows]
        self.count = 0 if rows is None else len(rows)

    def take(self, ring: Ring, name: str) -> None:
        """Take all that a ring holds; it may have lost places that were never taken."""
        room, count = len(ring.rows), int(ring.count)
        first = max(0, count - room)
        if first > self.count:
            msg = f"{name}: more than {room // 2} places in one step; keep fewer, or take smaller steps"
            raise ValueError(msg)
        while self.count > first:
            block = self.blocks.pop()
            kept = block[: max(0, len(block) - (self.count - first))]
            self.count -= len(block) - len(kept)
            self.blocks += [kept] if len(kept) else []
        self.blocks.append(in_order(ring))
        self.count = count

    @property
    def rows(self) -> np.ndarray:
        """All places."""
        return np.concatenate(self.blocks)


def in_order(ring: Ring) -> np.ndarray:
    """The places of a ring from the oldest to the newest."""
    room, count = len(ring.rows), int(ring.count)
    return np.asarray(ring.rows)[np.arange(max(0, count - room), count) % room]


class Keeping:
    """What the keeps of the lanes of a run found so far."""

    def __init__(self, keeps: Keeps, lanes: int):
        self.keeps = keeps
        self.grown: list[dict[str, Grown]] = [{name: Grown() for name in keeps.growing} for _ in range(lanes)]

    def restore(self, stored: dict[str, Any], clock: Clock) -> None:
        """Begin with the places of a stored run."""
        for name, grown in self.grown[0].items():
            grown.__init__(self.keeps.entries[name].rows(stored[name], clock))

    def take(self, carry: Carry, goes_back: bool) -> None:
        """After a chunk: take the places that would be overwritten, of every lane."""
        lanes = len(self.grown)
        for name in self.keeps.growing:
            ring = ring_of(carry.kept[name])
            assert ring is not None
            rows, count = np.asarray(ring.rows), np.asarray(ring.count)
            rows, count = rows.reshape(lanes, -1, *rows.shape[-2:]), count.reshape(lanes, -1)
            which = np.asarray(carry.k).reshape(lanes) % RECENT if goes_back else np.zeros(lanes, int)
            for lane, i in enumerate(which):
                self.grown[lane][name].take(Ring(rows[lane, i], count[lane, i]), name)

    def results(self, lane: int, solution: Solution) -> dict[str, Any]:
        """What a lane found, by name."""
        carry, found = solution.carry, {}
        for name, memory in memories_of(solution).items():
            ring = ring_of(memory)
            grown = self.grown[lane].get(name)
            rows = np.zeros((0, 1)) if ring is None else grown.rows if grown and grown.blocks else in_order(ring)
            keep = self.keeps.entries[name]
            found[name] = keep.result(memory, keep.found(rows, carry), solution)
        return {name: found[name] for name in self.keeps.entries}


def memories_of(solution: Solution) -> dict[str, Any]:
    """The memories at the end of a run, as NumPy arrays."""
    carry: Carry = solution.carry
    return jax.tree.map(np.asarray, current(carry.kept, int(carry.k), solution.stepping))


def cautions(solution: Solution) -> list[str]:
    """What to warn about after a run."""
    if solution.keeps is None:
        return []
    told = [(name, solution.keeps.entries[name].caution(memory)) for name, memory in memories_of(solution).items()]
    return [f"{name} {text}" for name, text in told if text is not None]


def not_finite(solution: Solution) -> str:
    """Which function of a keep was NaN, and when; empty if none was."""
    if solution.keeps is None:
        return ""
    for name, memory in memories_of(solution).items():
        t = solution.keeps.entries[name].not_finite_at(memory)
        if t is not None and np.isfinite(t):
            return f"{name} is NaN at t = {float(Clock.of(solution.carry).time(t)):.9g}"
    return ""


def chosen_keeps(keep: Any, save_every: int, save_at: Numbers | None = None) -> Keeps | None:
    """The keeps of `keep=`, which decide on the rows alone."""
    if keep is None:
        return None
    if save_every != 1 or save_at is not None:
        name, other = ("save_every", "columns(every=...)") if save_at is None else ("save_at", "times(...)")
        msg = f"give keep= or {name}=, not both: with keep= write carom.keep.{other}"
        raise ValueError(msg)
    return Keeps.of(keep)


def thin(stores: list[RowStore], keeps: Keeps | None) -> None:
    """Let the stores drop rows that no time of `carom.keep.times` needs."""
    if keeps is not None and keeps.times is not None:
        for store in stores:
            store.wanted = np.sort(np.abs(keeps.times[1].times - float(store.start.t)))


def at_kept_times(solution: Solution) -> Solution:
    """The solution with rows at the times of `carom.keep.times`, if there are any and the run came by."""
    if solution.keeps.times is None or len(solution) == 1 or solution.status is not Status.OK:
        return solution
    name, times = solution.keeps.times
    found = solution.kept[name]
    sampled = solution.interpolated(reached(solution, times.in_order(solution.clock.backward)))
    for column in ("q", "v"):
        sampled.columns[column][: len(found.t)] = getattr(found, column)
    return sampled


def has_all_columns(solution: Solution) -> bool:
    """Whether its rows hold what methods look at after a run."""
    return solution.keeps is None or solution.keeps.has_all_columns


def warn_of_keeps(solution: Solution) -> None:
    """Warn about what was to be kept and never happened."""
    for text in cautions(solution):
        warnings.warn(text, stacklevel=users_frame())


def reached(solution: Solution, save_at: Numbers) -> np.ndarray:
    """The times that a run got to; if it was stopped before the last of them, its end in their place."""
    times, end = np.atleast_1d(np.asarray(save_at, float)), solution.t[-1]
    came_by = times >= end if solution.clock.backward else times <= end
    return times if came_by.all() else np.append(times[came_by], end)
