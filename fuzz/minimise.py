"""Simpler numbers that still fail: shorter runs, rounder numbers, fewer options."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from fuzz.verdicts import Verdict

Numbers = dict[str, Any]
_SECONDS = 6.0
_SHORTEST = 0.2  # of the runs that are halved
_KEPT = ("method", "stepping", "order", "rate", "rtol", "atol", "h", "t0", "x", "save_every", "save_at", "stop", "span")


def minimised(family: Any, numbers: Numbers, verdict: Verdict) -> Numbers:
    """The simplest numbers found in a short time that give a verdict of the same class."""
    if "q0" not in numbers or "family" in numbers:
        return numbers
    until, changed = time.perf_counter() + _SECONDS, True
    while changed and time.perf_counter() < until:
        changed = False
        for trial in simpler(numbers):
            if time.perf_counter() > until:
                break
            if fails(family, trial, verdict):
                numbers, changed = trial, True
                break
    return numbers


def fails(family: Any, numbers: Numbers, verdict: Verdict) -> bool:
    """Whether these numbers give the same class of verdict; numbers no oracle can judge do not."""
    try:
        return family.run(numbers).kind == verdict.kind
    except Exception:
        return False


def simpler(n: Numbers) -> Iterator[Numbers]:
    """Numbers that are a little simpler, the greatest simplification first."""
    for name, plain in (("save_at", None), ("save_every", 1), ("stop", False)):
        if n.get(name) not in (plain, None):
            yield n | {name: plain}
    if n["save_at"] is None and not n.get("when") and not n.get("on") and n["span"] > _SHORTEST:
        yield n | {"span": 0.5 * n["span"]}
    for name, value in n.items():
        if name in _KEPT or isinstance(value, (str, bool)) or value is None:
            continue
        for digits in (0, 1, 2):
            trial = rounded(value, digits)
            if trial != value and not (name not in ("q0", "v0", "a", "b", "c", "e") and trial == 0.0):
                yield n | {name: trial}
                break


def rounded(value: Any, digits: int) -> Any:
    """Numbers and lists of numbers with few digits."""
    if isinstance(value, list):
        return [rounded(x, digits) for x in value]
    return round(value, digits) if isinstance(value, float) and abs(value) < 1e6 else value
