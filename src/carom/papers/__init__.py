"""Reproductions: every figure and table of the five papers that prints numbers or a slope, and known mechanisms.

Each module has `items`, a dictionary from a name such as "table1" to a function that returns claims and a figure; the
first line of its docstring is the title.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from carom.arguments import did_you_mean

papers = {
    "marazzato2019": "Explicit pseudo-energy conservation: one particle, chains, strings and waves, several rates",
    "acary2012": "Event capturing of any order, and how to measure errors when velocities jump",
    "james2020": "Kuwabara-Kono numerical dissipation: granular chains with tailored damping",
    "studer2008": "Step size adjustment and extrapolation: contact, impact and friction",
    "jay1998": "SPARK methods: constrained mechanics that keeps its structure",
    "mechanisms": "Mechanisms of the literature against closed forms, reductions and SciPy",
}


def paper(key: str) -> ModuleType:
    """The module of one paper."""
    if key not in papers:
        msg = f"unknown paper '{key}'; there are {', '.join(papers)}{did_you_mean(key, papers)}"
        raise ValueError(msg)
    return import_module(f"carom.papers.{key}")
