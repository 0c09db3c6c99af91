"""What a sweep over contacts by colours offers to those who repeat it."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
from jaxtyping import Array


class AbstractSweeps(eqx.Module):
    """Sweeps over all contacts; what they work on is theirs, of numbers that may be extrapolated."""

    @abc.abstractmethod
    def start(self, P: Array) -> Any:
        """What sweeps work on, from the impulses of a problem."""

    @abc.abstractmethod
    def sweep(self, x: Any) -> Any:
        """After all colours, one after the other."""

    @abc.abstractmethod
    def impulses(self, x: Any) -> Array:
        """The impulses of the problem."""

    @abc.abstractmethod
    def products(self, old: Any, y: Any, new: Any) -> tuple[Array, Array]:
        """The squared change |y - new|^2 of a sweep, and (y - new) . (new - old)."""
