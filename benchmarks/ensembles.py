"""Sweeps of many cells: impact oscillators by Moreau's scheme and by event capturing, and the relief valve.

`python benchmarks/ensembles.py` takes the sizes meant for a GPU there, and a thousand oscillators over 500 periods on
a processor; a number behind it takes that part of the cells. The first call compiles; the next one is all of
`carom.sweep`, tracing the builder included; batches alone are told beside it, and the most memory of the host so far.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import jax
import numpy as np

import carom
from carom.sweeps.plan import plan
from carom.sweeps.sweep import question, run
from carom.sweeps.workers import workers

MPGOS = 4.4e6  # returns per second of this valve, by its authors
TOL = 1e-10
T = TypeVar("T")


def period(frequency):
    """Of the drive."""
    return 2 * np.pi / frequency


def seconds(call: Callable[[], T]) -> tuple[float, T]:
    """Time of a call, and what it returned."""
    began = time.perf_counter()
    found = call()
    return time.perf_counter() - began, found


def told(name: str, build: Any, cells: Any, method: Any, **asked: Any) -> tuple[float, Any]:
    """Seconds of the batches of a sweep, and its dataset; all times are printed."""
    options = {"h": None, "stepping": None, **asked}
    sweep = partial(carom.sweep, build, cells, method, progress=False, **options)
    first, _ = seconds(sweep)
    whole, data = seconds(sweep)
    made = plan(cells, question(build, method, **options, rtol=None, static=()), None, None, len(workers()))
    alone, _ = seconds(partial(run, made, progress=False))
    how = "number by number" if made.templates[0].is_lanewise else "as arrays"
    print(f"{name}: {cells.count} cells {how}, {int((data.status != 0).sum())} failed", end="; ")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"first call {first:.1f} s, next {whole:.3g} s, batches alone {alone:.3g} s, {memory:.2f} GB", flush=True)
    return alone, data


def oscillators(name: str, method: Any, cells: int, periods: int, steps: int, last: int) -> None:
    """Driven oscillators that hit a stop, seen once per period."""
    taken, _ = told(
        name,
        carom.models.driven_oscillator,
        carom.Grid(frequency=np.linspace(2.4, 3.2, cells)),
        method,
        t1=lambda frequency: periods * period(frequency),
        h=lambda frequency: period(frequency) / steps,
        keep=lambda frequency: [carom.keep.strobe(period(frequency), last=last)],
    )
    print(f"  {1e9 * taken / (cells * periods * steps):.3g} ns per lane and step")


def valve(flow):
    """The valve at a flow."""
    return carom.models.relief_valve(flow=flow)


def counting(value, t, q, v, h):  # noqa: ARG001
    """The speed of the disk, and how often it changed from rising to falling."""
    return v[0], value[1] + ((value[0] > 0) & (v[0] <= 0))


def valves(cells: int, t1: float) -> None:
    """Relief valves at tolerances of 1e-10; a return is a maximum of the lift."""
    counted = carom.keep.reduce((0.0, 0.0), counting, lambda value: value[1])
    taken, data = told(
        "relief valve",
        valve,
        carom.Grid(flow=np.linspace(1.2, 6.8, cells)),
        carom.EventCapturing(carom.explicit(5)),
        t1=t1,
        stepping=carom.Adaptive(TOL, TOL),
        keep={"top": counted},
    )
    returns = float(data.top.sum())
    print(f"  {returns / cells:.1f} returns each, {returns / taken:.3g} returns per second (MPGOS {MPGOS:.1e})")


def main(part: float) -> None:
    """The points of this machine."""
    capturing = carom.EventCapturing(carom.explicit(4))
    print(f"{jax.devices()[0].device_kind}, JAX {jax.__version__}")
    if jax.default_backend() == "cpu":
        oscillators("Moreau", carom.MoreauMidpoint(), max(2, int(1000 * part)), 500, 100, 100)
        oscillators("event capturing", capturing, max(2, int(1000 * part)), 20, 40, 20)
        valves(max(2, int(512 * part)), 10.0)
    else:
        oscillators("event capturing", capturing, max(2, int(1e5 * part)), 20, 40, 1)
        oscillators("Moreau", carom.MoreauMidpoint(), max(2, int(1e6 * part)), 100, 100, 1)
        valves(max(2, int(1e5 * part)), 40.0)
        valves(max(2, int(30720 * part)), 40.0)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
