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
