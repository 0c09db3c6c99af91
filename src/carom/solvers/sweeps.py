"""What an iteration over contacts offers to those who repeat it."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
from jaxtyping import Array


class AbstractSweeps(eqx.Module):
    """One round over all contacts; what rounds work on is theirs."""

    @abc.abstractmethod
    def start(self, P: Array) -> Any:
        """What rounds work on, from the impulses of a problem."""

    def trusted(self, x: Any) -> Any:
        """The same as the guess of a search."""
        return x

    @abc.abstractmethod
    def sweep(self, x: Any, old: Any, beta: Array) -> tuple[Any, Any, Array, Array]:
        """What a round makes of y = x + beta (x - old), then x, |y - new|^2, and (y - new) . (new - x)."""

    @abc.abstractmethod
    def fresh(self, x: Any) -> Any:
        """The same without the rounding errors of many rounds."""

    @abc.abstractmethod
    def residual(self, x: Any) -> Array:
        """The residual of the problem."""

    @abc.abstractmethod
    def impulses(self, x: Any) -> Array:
        """The impulses of the problem."""

    def pushed(self, x: Any) -> tuple[Array, Array] | None:
        """The velocities of bodies that they bring about, and G P + c of closed contacts, where these are known."""
        del x
