"""carom beside MuJoCo (a passive tree of bodies) and Siconos (two masses that hop), at equal error, in one run.

Each runs with several step sizes or tolerances; printed are error and seconds (compile time apart), and for every row
of carom the seconds that the other takes for the same error, between its own rows. Errors are those of the end: of the
tree to MuJoCo with a step of 1e-5, of the masses to SciPy from impact to impact.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import mechanisms_mujoco as trees
import numpy as np
from scipy.integrate import solve_ivp
from timing import best_of

import carom

T1, SIZES = 0.6, (2e-3, 1e-3, 2.5e-4, 1e-4)
TOLERANCES = (1e-4, 1e-6, 1e-8, 1e-10)
Row = tuple[str, float, float]


def passive() -> tuple[list[Row], list[Row]]:
    """A random tree, in carom and in MuJoCo."""
    bodies = trees.random_tree(np.random.default_rng([1, 0]))
    peer = trees.MuJoCo(bodies)
    mechanism = trees.mechanism_of(bodies, peer)

    def other(dt: float) -> tuple[np.ndarray, float]:
        trees.DT = peer.model.opt.timestep = dt
        return peer.run()[0].copy(), best_of(peer.run, 3)

    exact = other(1e-5)[0]
    theirs = [
        (f"RK4, dt {dt:g}", np.abs(end - exact).max(), s) for dt in (2e-2, 1e-2, 5e-3, 1e-3) for end, s in [other(dt)]
    ]
    own = []
    for rtol in (1e-8, 1e-9, 1e-10):
        run = lambda rtol=rtol: carom.solve(*mechanism, t1=trees.T1, rtol=rtol, atol=rtol)
        own.append((f"solve, rtol {rtol:g}", np.abs(mechanism.frames(run()).place[-1] - exact).max(), best_of(run, 3)))
    return own, theirs


def hopper() -> tuple[carom.System, carom.State]:
    """Two masses on a spring above a floor."""
    system = carom.System(
        [1.0, 2.0],
        lambda q: 9.81 * (q[0] + 2.0 * q[1]) + 10.0 * (q[1] - q[0] - 0.5) ** 2,
        contacts=carom.Contacts(lambda q: q[:1], restitution=0.6),
    )
    return system, carom.State([0.5, 1.0], [0.0, 0.0])


def exact_hops() -> np.ndarray:
    """The end by SciPy, from impact to impact."""
    hits = lambda _, y: y[0]
    hits.terminal, hits.direction = True, -1  # pyright: ignore
    pull = lambda y: 20.0 * (y[1] - y[0] - 0.5)
    rates = lambda _, y: [y[2], y[3], -9.81 + pull(y), -9.81 - pull(y) / 2]
    t, y = 0.0, np.array([0.5, 1.0, 0.0, 0.0])
    while t < T1:
        run = solve_ivp(rates, (t, T1), y, method="DOP853", rtol=1e-12, atol=1e-13, events=hits)
        t, y = run.t[-1], run.y[:, -1]
        if run.status == 1:
            y = np.array([0.0, y[1], -0.6 * y[2], y[3]])
    return y[:2]


def hops() -> tuple[list[Row], list[Row]]:
    """The hopper, in carom and in Siconos."""
    exact, model = exact_hops(), hopper()
    runs = {f"Moreau, h {h:g}": lambda h=h: carom.simulate(*model, carom.MoreauMidpoint(), t1=T1, h=h) for h in SIZES}
    runs |= {f"solve, rtol {rtol:g}": lambda rtol=rtol: carom.solve(*model, t1=T1, rtol=rtol) for rtol in TOLERANCES}
    own = [(name, np.abs(run().q[-1] - exact).max(), best_of(run, 3)) for name, run in runs.items()]
    python = os.environ.get("SICONOS_PYTHON", "/usr/bin/python3")
    script = Path(__file__).parent / "siconos" / "hopper.py"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    arguments = [python, str(script), str(T1), *map(str, SIZES)]
    found = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    if found.returncode:
        print("Siconos: not importable here (apt install python3-siconos)", file=sys.stderr)
        return own, []
    ends = json.loads(found.stdout.splitlines()[-1])
    return own, [(f"MoreauJean, h {h:g}", np.abs(np.array(q[:2]) - exact).max(), q[2]) for h, q in zip(SIZES, ends)]


def told(what: str, own: list[Row], theirs: list[Row]) -> None:
    """Print the rows of both, and the times of the other for errors within its own."""
    print(what)
    theirs = sorted(theirs, key=lambda row: row[1])
    errors, seconds = (np.log([max(row[i], 1e-300) for row in theirs]) for i in (1, 2))
    for name, error, s in own:
        same = ""
        if theirs and errors[0] <= np.log(error) <= errors[-1]:
            same = f"   the other takes {np.exp(np.interp(np.log(error), errors, seconds)):9.5f} s for this"
        print(f"  carom  {name:20s} error {error:8.1e} {s:9.5f} s{same}")
    for name, error, s in theirs:
        print(f"  other  {name:20s} error {error:8.1e} {s:9.5f} s")


if __name__ == "__main__":
    told("two masses that hop, Siconos", *hops())
    told("passive tree of bodies, MuJoCo", *passive())
