"""Cases: a family and its numbers, drawn from (seed, index), so that each can be repeated alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from fuzz.extremes import edges
from fuzz.files import Batch, Damage, Resumed, Scenario
from fuzz.motions import MOTIONS
from fuzz.snippets import SNIPPETS

SHARE = {
    "driven": 18,
    "kicked": 5,
    "spring": 5,
    "pendulum": 4,
    "double pendulum": 3,
    "hertz chain": 4,
    "dry friction": 13,
    "hitting": 12,
    "spinning ball": 4,
    "rod": 4,
    "plank": 5,
    "poisoned": 3,
    "runaway": 1,
    "unstable": 1,
    "argument": 9,
    "mismatch": 1,
    "standstill": 1,
    "other system": 1,
    "changed object": 0.5,
    "scenario": 5,
    "damaged file": 5,
    "batch": 3,
    "resumed": 2,
}


@dataclass(frozen=True)
class Case:
    """One trial of a family."""

    index: int
    family: str
    numbers: dict[str, Any]
    program: str


@cache
def families(seed: int) -> dict[str, Any]:
    """All families of a campaign by name."""
    others = {family.name: family for family in (Scenario(), Damage(), Batch(), Resumed())}
    return MOTIONS | edges(seed) | SNIPPETS | others


def drawn(seed: int, index: int, only: tuple[str, ...] = ()) -> Case:
    """The case of an index; `only` restricts the families."""
    rng = np.random.default_rng([seed, index])
    names = [name for name in SHARE if not only or name in only]
    shares = np.array([SHARE[name] for name in names], float)
    name = names[rng.choice(len(names), p=shares / shares.sum())]
    family = families(seed)[name]
    numbers = family.numbers(rng)
    return Case(index, name, numbers, family.program(numbers))
