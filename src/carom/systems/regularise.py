"""Regularised variables of James2020 (10)-(11), for any rate damping."""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array

from carom.systems.features import Feature
from carom.systems.system import System


def regularise(system: System) -> System:
    """The same motion in the variables (q, w), w = q' - M^{-1} r(q), with r the rate-damped forces.

    The rate-damping force d/dt r(q) then disappears from the equation of w [James2020 (11)] and `q' = w + M^{-1} r(q)`
    [James2020 (10)]: the right-hand side is Lipschitz where the damping force itself is not. States are given and
    solutions returned with the physical velocity q'; the change of variables stays inside.

    Example:
        >>> chain, state = carom.models.dimer_chain(25, mass_ratio=0.59, damping=0.06)
        >>> sol = carom.simulate(carom.regularise(chain), state, carom.IRK(carom.gauss(2)), t1=30.0, h=0.1)
    """
    if not system.rate_damping:
        msg = "regularise: the system declares no rate_damping, there is nothing to regularise"
        raise ValueError(msg)
    if {Feature.MASS_OF_Q, Feature.KINEMATICS} & system.features:
        msg = "regularise: needs a constant mass and q' = v"
        raise ValueError(msg)
    return eqx.tree_at(lambda s: s.shift, system, velocity_shift, is_leaf=lambda x: x is None)


def velocity_shift(system: System, t: Array, q: Array) -> Array:
    """M^{-1} r(q) of James2020 (10)."""
    return system.mass_solve(t, q, system.damped_impulse(t, q))
