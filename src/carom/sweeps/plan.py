"""How a sweep is cut: cells with the same static parameters share a program, and run in batches of one size."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from carom._config import __version__
from carom.arguments import did_you_mean, whole
from carom.choice import planned
from carom.plain import describe, spelt
from carom.state import shortened
from carom.stepping.adaptive import Adaptive
from carom.stepping.base import AbstractStepping
from carom.sweeps.cells import AbstractCells
from carom.sweeps.template import Asked, Template, cell_of

_MOST_LANES = 1024  # on a processor, where more of them gain nothing
_OF_MEMORY = 0.25
_CELL_BYTES = 64  # number, status, steps, end, message and a result of every cell, at least
_TRIED = 20  # cells, in search of one that can run


@dataclass(frozen=True, eq=False)
class Batch:
    """Cells that run together, by number; the last one fills up the batch. Only the first `count` are new."""

    group: int
    cells: np.ndarray
    count: int


@dataclass
class Plan:
    """The cells of a sweep, what is asked of them, a template per group, and batches."""

    cells: AbstractCells
    asked: Asked
    columns: dict[str, np.ndarray]
    fixed: list[dict[str, Any]]
    members: list[np.ndarray]
    templates: list[Template | str]
    lanes: int = 0

    def numbers(self, cells: np.ndarray) -> dict[str, np.ndarray]:
        """What is traced of some cells; entries with a dot are not parameters."""
        own = {name: self.cells.column(name, cells) for name in self.cells.names if name not in self.asked.static}
        return own | {name: x[cells] for name, x in self.columns.items()}

    def template(self, batch: Batch) -> Template:
        """That of a batch."""
        found = self.templates[batch.group]
        assert isinstance(found, Template)
        return found

    def choose(self, cells: int) -> None:
        """Choose the engine of all groups; so many cells can run side by side."""
        for one in self.templates:
            if isinstance(one, Template):
                one.choose(cells)

    def first(self, cell: int) -> dict[str, Any]:
        """The numbers of one cell."""
        return {name: x[0] for name, x in self.numbers(np.array([cell])).items()}

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return next(one.labels for one in self.templates if isinstance(one, Template))

    @property
    def sizes(self) -> dict[str, int]:
        """How long states are at most."""
        every = [one.sizes for one in self.templates if isinstance(one, Template)]
        return {dim: max(one[dim] for one in every) for dim in every[0]}

    @property
    def refused(self) -> dict[int, str]:
        """Cells of groups that cannot run at all, and why."""
        told = zip(self.templates, self.members)
        return {cell: text for text, own in told if isinstance(text, str) for cell in own.tolist()}

    @property
    def facts(self) -> dict[str, str]:
        """What the sweep is, in words."""
        build, given = getattr(self.asked.build, "func", self.asked.build), getattr(self.asked.build, "keywords", {})
        name = getattr(build, "__qualname__", type(build).__name__)
        known = f"carom.models.{name}" if str(build.__module__).startswith("carom.models.") else name
        fixed = {"given": ", ".join(f"{key}={value!r}" for key, value in given.items())} if given else {}
        method, stepping = spelt(describe(self.asked.method), "carom."), self.asked.stepping
        steps = {"stepping": spelt(describe(stepping), "carom.")} if isinstance(stepping, AbstractStepping) else {}
        return {"build": known, **fixed, "method": method, **steps, "carom": __version__, "jax": jax.__version__}

    @property
    def batches(self) -> list[Batch]:
        """All batches of groups that can run."""
        found = []
        for group, members in enumerate(self.members):
            if isinstance(self.templates[group], Template):
                for start in range(0, len(members), self.lanes):
                    chosen = members[start : start + self.lanes]
                    padded = np.pad(chosen, (0, self.lanes - len(chosen)), "edge")
                    found.append(Batch(group, padded, len(chosen)))
        return found


def plan(cells: Any, asked: Asked, tolerances: tuple[Any, Any] | None, lanes: int | None, workers: int) -> Plan:
    """Look at everything that can be known before a run, and trace the builder once per group."""
    if not isinstance(cells, AbstractCells):
        msg = f"the cells of a sweep are a carom.Grid, carom.Cases or carom.Random, got {shortened(cells)}"
        raise TypeError(msg)
    _refuse_size(cells.count)
    for name in asked.static:
        if name not in cells.names:
            msg = f"static: there is no parameter '{name}'{did_you_mean(name, cells.names)}"
            raise ValueError(msg)
    _refuse_misspelt(asked.build, cells.names)
    fixed, members = _groups(cells, asked.static)
    made = Plan(cells, asked, _columns(asked, cells), fixed, members, [])
    if tolerances is not None:
        made.asked = _chosen(made, tolerances)
    trouble: list[Exception] = []
    for group, own in zip(fixed, members):
        made.templates.append(_template(made, group, own, trouble))
    good = [one for one in made.templates if isinstance(one, Template)]
    if not good:
        raise trouble[0]
    made.choose(cells.count)
    made.lanes = whole(lanes, "batch", 1) if lanes is not None else _fitting(good, cells.count, workers)
    return made


def _refuse_size(count: int) -> None:
    """Raise where not even the numbers that every cell has fit into memory."""
    if count * _CELL_BYTES > _host_memory():
        least, there = count * _CELL_BYTES / 1e9, _host_memory() / 1e9
        msg = (
            f"{count} cells take at least {least:.3g} GB of memory, where there are {there:.3g} GB: sweep parts of them"
        )
        raise ValueError(msg)


def _refuse_misspelt(build: Any, names: tuple[str, ...]) -> None:
    """Raise where the builder does not take the parameters of the cells by name, or needs others."""
    known = inspect.signature(build).parameters
    if any(p.kind is p.VAR_KEYWORD for p in known.values()):
        return
    for name in names:
        if name not in known:
            msg = f"build has no parameter '{name}'; it has {', '.join(known)}{did_you_mean(name, known)}"
            raise ValueError(msg)
    needed = [p.name for p in known.values() if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    missing = [name for name in needed if name not in names]
    if missing:
        msg = f"build needs '{missing[0]}', which is no parameter of the cells: {', '.join(names)}"
        raise ValueError(msg)


def _columns(asked: Asked, cells: AbstractCells) -> dict[str, np.ndarray]:
    """Arrays of `t1` and `h`, one number per cell, become columns."""
    columns = {}
    shape = tuple(cells.dims.values())
    for name in ("t1", "h"):
        value = getattr(asked, name)
        if value is not None and not callable(value) and np.ndim(value):
            if np.shape(value) != shape:
                wanted = f"a number, a function of the parameters, or an array of shape {shape}"
                msg = f"{name} must be {wanted}, got shape {np.shape(value)}"
                raise ValueError(msg)
            columns[f".{name}"] = np.asarray(value, float).ravel()
    if set(asked.static) >= set(cells.names):
        columns[".none"] = np.zeros(cells.count)
    return columns


def _groups(cells: AbstractCells, static: tuple[str, ...]) -> tuple[list[dict[str, Any]], list[np.ndarray]]:
    """Cells with equal static parameters, and these parameters."""
    for name, values in cells.values.items():
        if name not in static and values.dtype.kind in "bU":
            msg = f"{name} is no number: name it in static=('{name}',)"
            raise ValueError(msg)
    every = np.arange(cells.count)
    if not static:
        return [{}], [every]
    codes = np.zeros(cells.count, int)
    for name in static:
        known, code = np.unique(cells.column(name, every), return_inverse=True)
        codes = codes * len(known) + code
    members = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    return [{name: cells.column(name, own[:1])[0].item() for name in static} for own in members], members


def _template(made: Plan, fixed: dict[str, Any], members: np.ndarray, trouble: list[Exception]) -> Template | str:
    """The template of a group, or why none of its cells can run."""
    try:
        dtypes = {name: x.dtype for name, x in made.numbers(members[:1]).items()}
        template = Template(made.asked, fixed, dtypes)
    except ValueError as error:
        trouble.append(error)
        return str(error)
    first: Exception | None = None
    for cell in _able(made, template, members):
        try:
            return template.refuse(made.first(cell), made.cells.names)
        except ValueError as error:
            first = first or error
    assert first is not None
    trouble.append(first)
    return str(first)


def _able(made: Plan, template: Template, members: np.ndarray) -> Iterator[int]:
    """The first cell, then some of those whose numbers no constructor refuses, wherever they lie."""
    yield int(members[0])
    stride, left = -(-len(members) // _MOST_LANES), _TRIED
    for start in range(stride):
        chosen = members[start::stride]
        good = np.delete(chosen, template.refused(made.numbers(chosen)))[:left]
        yield from good.tolist()
        left -= len(good)
        if not left:
            return


def _chosen(made: Plan, tolerances: tuple[Any, Any]) -> Asked:
    """The method that `carom.solve` takes for the first cell that can run; the longest step is that of each cell."""
    asked, fixed, members = replace(made.asked, stepping=Adaptive(*tolerances)), made.fixed[0], made.members[0]
    dtypes = {name: x.dtype for name, x in made.numbers(members[:1]).items()}
    first: Exception | None = None
    for number in _able(made, Template(asked, fixed, dtypes), members):
        try:
            cell = cell_of(asked, fixed, made.first(number))
            return replace(asked, method=planned(cell.system, cell.state, float(cell.t1), *tolerances).method)
        except ValueError as error:
            first = first or error
    assert first is not None
    raise first


def _fitting(templates: list[Template], count: int, workers: int) -> int:
    """Lanes of a batch: as many as gain something and fit into memory, and no more than keep all workers busy."""
    lane = max(one.lane_bytes for one in templates)
    fit = int(_OF_MEMORY * _memory() / (workers * lane))
    most = min(_MOST_LANES, fit) if jax.default_backend() == "cpu" else fit
    return max(1, min(most, -(-count // workers)))


def _memory() -> float:
    """Bytes of the device that runs the batches."""
    stats = jax.local_devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        return float(stats["bytes_limit"])
    return _host_memory()


def _host_memory() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
