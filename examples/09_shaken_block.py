"""A block on a spring that is shaken and hits a stop; every name here is known to type checkers."""

import jax.numpy as jnp
import numpy as np
from jax import Array

import carom


def potential(q: Array, p: dict[str, Array]) -> Array:
    """The energy of the spring."""
    return 0.5 * p["stiffness"] * q @ q


def shaking(t: Array, q: Array, v: Array) -> Array:
    """A periodic force."""
    return jnp.cos(2.0 * t)[None]


def gap(q: Array) -> Array:
    """The distance to the stop."""
    return 1.0 - q


def main() -> carom.Solution:
    """Run it in two ways, look and compare; returns the more precise run."""
    system = carom.System(
        mass=2.0,
        potential=potential,
        forces={"shaking": shaking},
        contacts=carom.Contacts(gap, restitution=0.6, names=["stop"]),
        params={"stiffness": 3.0},
        labels=["x"],
        units="m",
    )
    state = carom.State(q=[0.0], v=[0.5])
    carom.check(system, state)
    sol = carom.simulate(system, state, carom.MoreauMidpoint(), t1=10.0, h=1e-3)
    fine = carom.solve(system, state, t1=10.0, rtol=1e-8)
    print(sol, fine.choice)
    print("highest", float(np.max(sol.q[:, 0])), "impacts", len(sol.events))
    print("worst", sol.account.worst, sol.stats["accepted"])
    for event in fine.events[:3]:
        print(event.time, event.kind)
    q, v = fine.at(np.linspace(0.0, 10.0, 11))
    print(q.shape, v.shape, sol.t[-1], sol.h.max(), sol.impulse.sum())
    difference = np.abs(sol.at(fine.t)[0] - fine.q).max()
    print("difference", difference)
    kept = carom.simulate(system, state, carom.MoreauMidpoint(), t1=10.0, h=1e-3, keep=[carom.keep.strobe(np.pi)])
    print(kept.kept)
    try:
        carom.simulate(system, state, carom.MoreauMidpoint(), t1=1.0, h=-1.0)
    except ValueError as error:
        print(error)
    print(sol.to_pandas().shape)
    return fine


if __name__ == "__main__":
    run = main()
    carom.plots.overview(run).savefig("shaken_block.png")
    carom.report(run, "shaken_block.html")
