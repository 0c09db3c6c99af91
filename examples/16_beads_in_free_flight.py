"""Beads that fly between two walls and seldom hit: tailored damping with steps from tolerances."""

import jax.numpy as jnp
import numpy as np
from jax import Array

import carom
from carom.systems.laws import OverlapPower

HUNT_CROSSLEY = OverlapPower(2.5)


def hertz(overlap: Array) -> Array:
    """Energy of a Hertz contact of unit stiffness."""
    return 0.4 * jnp.maximum(overlap, 0.0) ** 2.5


def contact(left: Array, right: Array) -> Array:
    """Two beads ten apart."""
    return hertz(left - right - 10.0)


def walls(x: Array) -> Array:
    """A bead between walls at -10 and 40."""
    return hertz(-10.0 - x) + hertz(x - 40.0)


def damped(left: Array, right: Array) -> Array:
    """Its force is the overlap to the 5/2, whose rate damps: Hunt and Crossley."""
    return HUNT_CROSSLEY(left - right, jnp.asarray(10.0), jnp.asarray(0.1))


def main() -> carom.Solution:
    """Run at tolerances and compare the work with that of constant steps."""
    beads = carom.System(
        [1.0, 0.6, 1.4],
        {"contact": carom.Interactions(contact, stencil=(0, 1)), "wall": carom.Interactions(walls, stencil=(0,))},
        rate_damping={"contact": carom.Interactions(damped, stencil=(0, 1)), "wall": 0.02},
        labels=["a", "b", "c"],
    )
    state = carom.State([0.0, 0.0, 0.0], [0.9, -0.3, 0.5])
    sol = carom.simulate(beads, state, carom.TailoredTheta(), t1=60.0, stepping=carom.Adaptive(1e-3, 1e-3, h_max=5.0))
    steps = np.diff(sol.t)
    print(f"{steps.size} steps between {steps.min():.3g} and {steps.max():.3g}")
    print(f"energy {sol.account.energy[0]:.4f} -> {sol.account.energy[-1]:.4f}")
    return sol


if __name__ == "__main__":
    carom.plots.overview(main()).savefig("free_flight.png")
