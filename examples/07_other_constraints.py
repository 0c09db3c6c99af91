"""A blade that cannot slip, a coordinate without mass, and a Hamiltonian on a sphere."""

import jax.numpy as jnp
import numpy as np

import carom


def gauge(q):
    return jnp.array([0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0), q[2] - q[0] - 0.2 * q[0] ** 3])


def charge(q, p):
    a = 0.5 * jnp.array([-q[1], q[0], 0.0])
    return 0.5 * jnp.sum((p - a) ** 2) + q[2]


def main(t1: float = 10.0) -> carom.Solution:
    drift = carom.measures.energy_drift
    sleigh, start = carom.models.chaplygin_sleigh()
    sol = carom.simulate(sleigh, start, carom.Spark(3), t1=t1, h=0.05)
    print(f"sleigh: spin {sol.v[0, 2]:.2f} -> {sol.v[-1, 2]:.1e}, energy error {drift(sol).bound:.1e}")

    pointer = carom.System(np.diag([1.0, 1.0, 0.0]), lambda q: q[1] + 2.0 * q[2] ** 2, constraints=gauge)
    wide, start = carom.augmented(pointer, carom.State([0.0, -1.0, 0.0], [1.0, 0.0, 1.0]))
    sol = carom.simulate(wide, start, carom.Spark(3), t1=t1, h=0.05)
    print(f"pendulum with a massless pointer: reading {sol.q[-1, 2]:.6f}, energy error {drift(sol).bound:.1e}")

    sphere = carom.System.from_hamiltonian(charge, constraints=lambda q: 0.5 * (q @ q - 1.0))
    start = carom.consistent(sphere, carom.State(q=[0.6, 0.0, -0.8], v=[0.0, 1.0, 0.0]))
    sol = carom.simulate(sphere, start, carom.Spark(3), t1=t1, h=0.05)
    print(f"charge on a sphere: error of H {drift(sol).bound:.1e}, multiplier {sol.multiplier[-1, 0]:.4f}")
    return sol


if __name__ == "__main__":
    carom.plots.overview(main()).savefig("charge_on_a_sphere.png")
