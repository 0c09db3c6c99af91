"""Laws of pair interactions: the energy of two bodies as a function of how far they overlap.

Example:
    >>> beads = carom.Bodies(100, dof=2)
    >>> touching = carom.Interactions.between(beads, carom.laws.hertz_pair, data=(0.01, 2e11), search=search)
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.arguments import is_traced, plain_numbers
from carom.state import Numbers
from carom.systems.laws import positive_power
from carom.systems.pair_friction import CundallStrack as CundallStrack
from carom.systems.pair_interactions import PairLaw as PairLaw

Body = tuple[Array, Array]


def _lengths(a: Body, b: Body) -> Array:
    return a[0] + b[0]


def _hertz(overlap: Array, a: Body, b: Body) -> Array:
    radius, modulus = a[0] * b[0] / (a[0] + b[0]), a[1] * b[1] / (a[1] + b[1])
    return 8 / 15 * modulus * jnp.sqrt(radius) * positive_power(overlap, 2.5)


def _in_series(a: Body, b: Body) -> Array:
    return 2 * a[1] * b[1] / (a[1] + b[1])


def _spring(overlap: Array, a: Body, b: Body) -> Array:
    return 0.5 * _in_series(a, b) * overlap * overlap


#: Hertz contact of spheres, data = (radius, modulus): force (4/3) E* sqrt(R) overlap^(3/2), 1/R = 1/r_a + 1/r_b and
#: 1/E* = 1/E_a + 1/E_b; see `modulus`.
hertz_pair = PairLaw(_hertz, _lengths, radii=True)

#: Linear spring that pulls and pushes, data = (half its length, stiffness); of unequal ends the harmonic mean.
spring_pair = PairLaw(_spring, _lengths)


def power_pair(exponent: float) -> PairLaw:
    """Contact force k overlap^exponent, data = (radius, k); of unequal bodies k is the harmonic mean.

    Example:
        >>> carom.laws.power_pair(1.0)  # a linear spring that does not pull
    """
    if is_traced(exponent) or not np.isfinite(exponent) or exponent < 1:
        msg = f"power_pair: exponent must be a plain number of at least 1, got {exponent}"
        raise ValueError(msg)
    return PairLaw(_Power(float(exponent)), _lengths, radii=True)


class _Power(eqx.Module):
    exponent: float = eqx.field(static=True)

    def __call__(self, overlap: Array, a: Body, b: Body) -> Array:
        p = self.exponent + 1.0
        return _in_series(a, b) * positive_power(overlap, p) / p


def modulus(young: Numbers, poisson: Numbers) -> Any:
    """The modulus of a body for `hertz_pair`: young / (1 - poisson^2), in Pa.

    Example:
        >>> carom.laws.modulus(203e9, 0.3)
    """
    E, nu = plain_numbers(young, "young", positive=True), plain_numbers(poisson, "poisson")
    if not is_traced(nu) and np.any((nu <= -1) | (nu > 0.5)):
        msg = f"poisson must lie in (-1, 0.5], got {poisson}"
        raise ValueError(msg)
    return E / (1 - nu**2)
