"""The space bodies move in: open, periodic, or periodic and sheared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from carom.state import reals

Columns = tuple[Array, ...]


class AbstractBox(eqx.Module):
    """What periods a box has (None along an axis: it is open), and how its images are sheared against each other."""

    lengths: eqx.AbstractVar[tuple[Array | None, ...]]

    def offset_at(self, t: ArrayLike) -> Array | None:  # noqa: ARG002
        """How far the image of the box above it (along axis 1) is displaced along axis 0; None: it never is."""
        return None

    def period(self, axis: int) -> Array | None:
        """The length along an axis, None where it is open."""
        return self.lengths[axis] if self.lengths else None

    def refuse_dimension(self, dimension: int) -> None:
        """Say so if positions have another number of columns than the box has axes."""
        if self.lengths and len(self.lengths) != dimension:
            msg = f"the box has {len(self.lengths)} lengths, but bodies have {dimension} coordinates of position"
            raise ValueError(msg)

    def nearest(self, difference: Float[Array, "... d"], t: ArrayLike = 0.0) -> Float[Array, "... d"]:
        """The difference of two positions, taken to the image that is nearest.

        Example:
            >>> carom.Periodic([10.0, None]).nearest(jnp.array([9.0, 9.0]))  # [-1, 9]
        """
        return jnp.stack(self.nearest_of(tuple(jnp.moveaxis(difference, -1, 0)), t), -1)

    def nearest_of(self, difference: Columns, t: ArrayLike) -> Columns:
        """`nearest` of one array per axis."""
        return self._shifted(difference, jnp.round, t)

    def home(self, x: Columns, t: ArrayLike) -> Columns:
        """The images of positions between 0 and the box's lengths."""
        return self._shifted(x, jnp.floor, t)

    def _shifted(self, x: Columns, whole: Callable[[Array], Array], t: ArrayLike) -> Columns:
        """`x` less its whole periods; axis 0 comes last, since a period along axis 1 displaces it."""
        shifted, offset = list(x), self.offset_at(t)
        for axis in reversed(range(len(x))):
            length = self.period(axis)
            if length is not None:
                periods = whole(shifted[axis] / length)
                shifted[axis] = shifted[axis] - periods * length
                if axis == 1 and offset is not None:
                    shifted[0] = shifted[0] - periods * offset
        return tuple(shifted)


class Open(AbstractBox):
    """Space without walls or periods; what `box=None` means."""

    lengths: tuple[Array | None, ...] = ()


class Periodic(AbstractBox):
    """A box that repeats itself along the axes that have a length; None leaves an axis open.

    Example:
        >>> carom.Periodic([20.0, None])  # a channel
    """

    lengths: tuple[Array | None, ...]

    def __init__(self, lengths: Sequence[Any]):
        self.lengths = _lengths(lengths, "Periodic")


class LeesEdwards(AbstractBox):
    """A periodic box in simple shear: the images above and below it (axis 1) slide along axis 0.

    Give either the shear `rate`, or `offset`, a function of t: the displacement of the image above.

    Example:
        >>> carom.LeesEdwards([20.0, 20.0], rate=0.1)
    """

    lengths: tuple[Array | None, ...]
    rate: Array | None
    offset: Callable[[Any], Any] | None

    def __init__(self, lengths: Sequence[Any], rate: Any = None, offset: Callable[[Any], Any] | None = None):
        self.lengths = _lengths(lengths, "LeesEdwards")
        if len(self.lengths) < 2 or self.lengths[0] is None or self.lengths[1] is None:
            msg = f"LeesEdwards: axes 0 and 1, which shear against each other, both need a length, got {lengths}"
            raise ValueError(msg)
        if (rate is None) == (offset is None):
            msg = "LeesEdwards: give either rate= or offset=, a function of t"
            raise ValueError(msg)
        self.rate = None if rate is None else jnp.asarray(reals(rate, "LeesEdwards: rate", "a number"))
        self.offset = offset

    def offset_at(self, t: ArrayLike) -> Array | None:
        """Displacement of the image above."""
        return jnp.asarray(self.offset(t) if self.offset is not None else self.rate * self.lengths[1] * t, float)  # pyright: ignore


def _lengths(lengths: Sequence[Any], kind: str) -> tuple[Array | None, ...]:
    if isinstance(lengths, str) or not isinstance(lengths, (Sequence, np.ndarray)):
        msg = f"{kind}: lengths must be a list with one length per axis (None where it is open), got {lengths!r}"
        raise TypeError(msg)
    found = tuple(None if x is None else reals(x, f"{kind}: lengths[{k}]", "a number") for k, x in enumerate(lengths))
    for k, x in enumerate(found):
        if x is not None and not (np.ndim(x) == 0 and 0 < float(x) < np.inf):
            msg = f"{kind}: lengths[{k}] must be a positive number (None where the axis is open), got {x}"
            raise ValueError(msg)
    return tuple(None if x is None else jnp.asarray(x) for x in found)
