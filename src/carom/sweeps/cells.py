"""Which cells a sweep has: the product of axes, a table of cases, or random draws."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from carom.arguments import whole
from carom.state import shortened


class AbstractCells(abc.ABC):
    """Cells of a sweep: named parameters, the dimensions along which cells lie, and their values cell by cell."""

    names: tuple[str, ...]
    dims: dict[str, int]
    values: dict[str, np.ndarray]

    @property
    def count(self) -> int:
        """How many cells there are."""
        return math.prod(self.dims.values())

    @abc.abstractmethod
    def column(self, name: str, cells: np.ndarray) -> np.ndarray:
        """The values of a parameter in some cells, by their number."""

    def at(self, cell: int) -> dict[str, Any]:
        """The parameters of one cell, as plain numbers."""
        return {name: self.column(name, np.array([cell]))[0].item() for name in self.names}

    def coordinates(self) -> dict[str, tuple[str, np.ndarray]]:
        """Parameters with the dimension along which they change."""
        return {name: (self.dim_of(name), values) for name, values in self.values.items()}

    def dim_of(self, name: str) -> str:
        """The dimension along which a parameter changes."""
        return name if name in self.dims else next(iter(self.dims))


class Grid(AbstractCells):
    """All combinations of the values of every parameter; the last one varies fastest.

    Example:
        >>> carom.Grid(frequency=np.linspace(2.4, 3.2, 400), position=np.linspace(-1.0, 1.0, 100))
    """

    def __init__(self, **axes: Any):
        self.values = {name: _numbers(values, "Grid", name) for name, values in _some(axes, "Grid").items()}
        self.names, self.dims = tuple(self.values), {name: len(values) for name, values in self.values.items()}

    def column(self, name: str, cells: np.ndarray) -> np.ndarray:
        """From the place of a cell in the grid."""
        where = np.unravel_index(cells, tuple(self.dims.values()))
        return self.values[name][where[self.names.index(name)]]


class Cases(AbstractCells):
    """One cell per row of a table: all parameters have as many values; a single number is the same in all cells.

    Example:
        >>> carom.Cases(mass=[1.0, 2.0, 4.0], stiffness=[1.0, 1.5, 2.5], damping=0.1)
    """

    dim = "case"

    def __init__(self, **columns: Any):
        kind = type(self).__name__
        found = {name: _numbers(np.atleast_1d(x), kind, name) for name, x in _some(columns, kind).items()}
        sizes = {name: len(x) for name, x in found.items() if np.ndim(columns[name])}
        if len(set(sizes.values())) > 1:
            lengths = ", ".join(f"{name} {size}" for name, size in sizes.items())
            msg = f"{kind}: all parameters need as many values, got {lengths}; for all combinations use carom.Grid"
            raise ValueError(msg)
        count = max(sizes.values(), default=1)
        self.values = {name: np.broadcast_to(x, (count,)) for name, x in found.items()}
        self.names, self.dims = tuple(found), {self.dim: count}

    def column(self, name: str, cells: np.ndarray) -> np.ndarray:
        """A row of the table."""
        return self.values[name][cells]


class Random(Cases):
    """Independent draws: a pair (low, high) is drawn evenly, anything with `rvs` (scipy.stats) from its distribution.

    A function of a `numpy.random.Generator` and of the number of draws returns its own; a number stays what it is.

    Args:
        count: number of cells.
        seed: of the generator; the same seed gives the same draws.
        draws: parameters and their distributions.

    Example:
        >>> carom.Random(2000, restitution=(0.6, 0.9), height=scipy.stats.norm(1.0, 0.05))
    """

    dim = "draw"

    def __init__(self, count: int, *, seed: int = 0, **draws: Any):
        generator = np.random.default_rng(whole(seed, "Random: seed", 0))
        count = whole(count, "Random: count", 1)
        super().__init__(**{name: _drawn(x, name, generator, count) for name, x in _some(draws, "Random").items()})
        self.dims = {self.dim: count}
        self.values = {name: np.broadcast_to(x, (count,)) for name, x in self.values.items()}


def _drawn(given: Any, name: str, generator: np.random.Generator, count: int) -> Any:
    if hasattr(given, "rvs"):
        return given.rvs(size=count, random_state=generator)
    if isinstance(given, Callable):
        found = given(generator, count)
        if np.ndim(found) and len(found) != count:
            msg = f"Random: {name} must return as many numbers as there are draws, {count}, got {len(found)}"
            raise ValueError(msg)
        return found
    if np.ndim(given) == 0:
        return given
    low, high = pair = np.asarray(given, float) if np.shape(given) == (2,) else (np.nan, np.nan)
    if not (np.isfinite(pair).all() and low <= high):
        msg = f"Random: {name} must be a pair (low, high), a distribution with rvs, or a number, got {shortened(given)}"
        raise ValueError(msg)
    return generator.uniform(low, high, count)


def _some(given: dict[str, Any], kind: str) -> dict[str, Any]:
    if not given:
        msg = f"{kind} needs at least one parameter, such as {kind}(frequency=...)"
        raise ValueError(msg)
    return given


def _numbers(values: Any, kind: str, name: str) -> np.ndarray:
    """A vector of numbers as wide as Python's (or of truth values or texts, for static parameters)."""
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.zeros(())
    if array.ndim != 1 or not array.size or array.dtype.kind not in "fiubU":
        msg = f"{kind}: {name} must be a list of at least one number, got {shortened(values)}"
        raise ValueError(msg)
    return array.astype({"f": float, "i": int, "u": int}.get(array.dtype.kind, array.dtype), copy=False)
