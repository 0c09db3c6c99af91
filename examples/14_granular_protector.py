"""A granular protector: masses of a chain of beads between a blow and a wall, chosen by gradients of the peak force."""

import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

import carom

WALL = 1e6  # a mass that does not move


def overlaps(q):
    """How far neighbours are pressed into each other."""
    return jnp.maximum(q[:-1] - q[1:], 0.0)


def energy(q):
    """Hertz contact: the force is the overlap to the power 3/2."""
    return 0.4 * jnp.sum(overlaps(q) ** 2.5)


def force_at_wall(q):
    """Between the last bead and the wall."""
    return overlaps(q)[-1] ** 1.5


def build(logarithms):
    """A striker of mass and velocity 1, the beads at rest, the wall."""
    masses = jnp.concatenate([jnp.ones(1), jnp.exp(logarithms), jnp.full(1, WALL)])
    n = masses.size
    return carom.System(masses, energy), carom.State(np.zeros(n), np.eye(n)[0])


def peak(logarithms, t1, h, check=False):
    """The largest force at the wall and its gradient with respect to the logarithms of all masses."""
    return carom.gradient(
        lambda state, along: along["force"],
        build,
        {"logarithms": logarithms},
        carom.StormerVerlet(),
        t1=t1,
        h=h,
        along={"force": carom.Peak(force_at_wall)},
        check=check,
        progress=False,
    )


def designed(n, t1, h, iterations):
    """Logarithms of masses between 1/2 and 2 with a small peak force."""

    def value_and_gradient(x):
        found = peak(x, t1, h)
        return found.value, found.gradient["logarithms"]

    settings = {"jac": True, "method": "L-BFGS-B", "bounds": [(-np.log(2.0), np.log(2.0))] * n}
    first = 0.05 * np.sin(np.arange(n))  # where all are equal, so is the way for the wave
    return minimize(value_and_gradient, first, options={"maxiter": iterations}, **settings).x


def force_over_time(logarithms, t1, h):
    """Times, and the force at the wall."""
    sol = carom.simulate(*build(logarithms), carom.StormerVerlet(), t1=t1, h=h, save_every=5, progress=False)
    return sol.t, np.maximum(sol.q[:, -2] - sol.q[:, -1], 0.0) ** 1.5


def main(beads=50, time=200.0, h=0.1, iterations=8, picture=None):
    x = designed(beads, time, h, iterations)
    before, after = (force_over_time(y, time, h) for y in (np.zeros(beads), x))
    print(f"peak force at the wall: {before[1].max():.4f} with equal masses, {after[1].max():.4f} as designed")
    if picture is not None:
        figure, axes = carom.plots.canvas(1, 2)
        axes[0, 0].semilogy(np.exp(x), lw=0.8)
        axes[0, 0].set(xlabel="bead", ylabel="mass")
        axes[0, 1].plot(*before, label="equal masses")
        axes[0, 1].plot(*after, label="designed")
        axes[0, 1].set(xlabel="t", ylabel="force at the wall")
        axes[0, 1].legend()
        figure.savefig(picture)
    return float(after[1].max() / before[1].max())


if __name__ == "__main__":
    main(beads=1000, time=3000.0, iterations=20, picture="granular_protector.png")
