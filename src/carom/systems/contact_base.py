"""What every group of unilateral contacts offers.

Letters: g gap, gamma relative velocity, N normal, T tangential.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from carom.arguments import judged, plain_numbers


class AbstractContacts(eqx.Module):
    """A group of unilateral contacts.

    `turns` says whether steps count how directions turn within them, so that a contact stays along a curved surface.
    """

    if TYPE_CHECKING:
        friction: Array
        restitution: Array
        tangential_restitution: Array
        names: tuple[str, ...]

    turns: ClassVar[bool] = True
    is_listed: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def has_friction(self) -> bool:
        """Whether the contacts have tangential directions."""

    @property
    @abc.abstractmethod
    def functions(self) -> tuple[Any, ...]:
        """The user's functions of gap and slip, None where there is none."""

    @property
    def has_slip_velocity(self) -> bool:
        """Whether slip velocities are the user's, in contrast to rates of displacements."""
        return self.has_friction

    @abc.abstractmethod
    def gaps(self, given: Any, t: Array, q: Array) -> Array:
        """g(t, q), one entry per contact."""

    def gap_rates(self, given: Any, t: Array, q: Array, rate: Array) -> Array:
        """gamma_N = dg/dq q' + dg/dt."""
        return jax.jvp(lambda s, x: self.gaps(given, s, x), (t, q), (jnp.ones_like(t), rate))[1]

    @abc.abstractmethod
    def slip_rates(self, given: Any, t: Array, q: Array, rate: Array, v: Array) -> Array:
        """gamma_T, one row per contact and one column per tangential direction."""

    def with_list(self, found: Any, colours: Any) -> AbstractContacts:
        """The same contacts with the pairs of a list, where they have one."""
        del found, colours
        return self

    def coefficients(self, name: str, size: int) -> Array:
        """Friction or restitution of every contact."""
        return jnp.broadcast_to(getattr(self, name), (size,))


def between_0_and_1(value: ArrayLike, name: str) -> Array:
    """Coefficients of restitution."""

    def judge(array: np.ndarray) -> None:
        if not np.all((array >= 0) & (array <= 1)):
            msg = f"{name} must lie in [0, 1], got {array.tolist()}"
            raise ValueError(msg)

    return jnp.asarray(judged(plain_numbers(value, name), judge))
