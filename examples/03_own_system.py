"""A system of one's own: a pendulum that drags a spring-mounted block, with air drag, and a stop condition."""

import jax.numpy as jnp

import carom


def energy(q, p):
    return p["g"] * (1 - jnp.cos(q[0])) + 0.5 * p["k"] * (q[1] - jnp.sin(q[0])) ** 2


def drag(t, q, v):
    return -0.05 * v


def main(t1: float = 20.0) -> carom.Solution:
    system = carom.System([1.0, 0.3], energy, {"drag": drag}, params={"g": 9.81, "k": 40.0}, labels=("angle", "block"))
    start = carom.State(q=[1.0, 0.0], v=[0.0, 0.0])
    sol = carom.simulate(
        system, start, carom.IRK(carom.gauss(3)), t1=t1, h=0.02, stop=lambda t, q, v: jnp.abs(q).max() - 1e-3
    )
    print(f"ended at t = {sol.t[-1]:.3f}; energy {sol.account.energy[0]:.4f} -> {sol.account.energy[-1]:.4f}")
    return sol


if __name__ == "__main__":
    sol = main()
    carom.plots.overview(sol).savefig("own_system.png")
    carom.report(sol, "own_system.html")
