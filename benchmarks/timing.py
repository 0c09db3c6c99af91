"""Timing shared by the benchmarks."""

import time
from collections.abc import Callable


def best_of(run: Callable[[], object], repeats: int = 7) -> float:
    """Shortest of several timings, in seconds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)


def in_turns(runs: dict[str, Callable[[], object]], repeats: int = 8) -> dict[str, float]:
    """Shortest time of each, measured in turns so that all see the same machine."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            best[name] = min(best[name], best_of(run, 5))
    return best
