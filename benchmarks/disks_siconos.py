"""A step of 1000 disks at rest, about 1800 contacts: carom's sweeps against Siconos' NSGS (Debian's python3-siconos).

Both start from zero impulses. Siconos stops by an error of its own: it is asked for several, carom's residual of its
impulses is computed, and carom is timed to that residual. Ratios are of times of one run, wall and
processor time, the best of five on both sides.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from disks import H, moved

import carom
from carom.contact_problems import LocalProblem, write
from carom.contact_problems.steps import _Listener, _matrix
from carom.running.listing import first_pairs

ASKED = (2e-3, 1e-3, 5e-4, 2e-4, 1e-4)


@eqx.filter_jit
def posed(system, state, pairs):
    """The contact problem of a step."""
    listener, listed = _Listener([]), system.since(0.0, pairs)
    method = carom.MoreauMidpoint(listener)
    method.step(listed, state, method.init(listed, state), jnp.asarray(H))
    return listener.asked[0]


@eqx.filter_jit
def solved(problem, tol):
    found = carom.AcceleratedGaussSeidel(tol=tol, max_iter=20_000)(problem, jnp.zeros(problem.c.size))
    return found.iterations, found.residual


def local(problem):
    """The closed contacts as Siconos reads them, and the rows they have in carom's problem."""
    shut = np.flatnonzero(np.asarray(problem.active))
    rows = problem.laws.cones(1)[shut].ravel()
    G = _matrix(problem.G).tocsr()[rows][:, rows]
    return LocalProblem(G, np.asarray(problem.c)[rows], np.asarray(problem.friction)[shut], 2), rows


def siconos(problem, folder):
    """What Siconos finds, if it can be imported."""
    write(problem, folder / "problem.dat")
    python = os.environ.get("SICONOS_PYTHON", "/usr/bin/python3")
    script = Path(__file__).resolve().parent / "siconos" / "disks.py"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    arguments = [python, str(script), str(folder / "problem.dat"), str(folder / "found.json"), *map(str, ASKED)]
    run = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    return json.loads((folder / "found.json").read_text()) if run.returncode == 0 else print(run.stderr[-400:])


def timed(run) -> dict[str, float]:
    """Shortest of five, in milliseconds."""
    best = {"wall": float("inf"), "cpu": float("inf")}
    for _ in range(5):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        best["wall"] = min(best["wall"], 1e3 * (time.perf_counter() - wall))
        best["cpu"] = min(best["cpu"], 1e3 * (time.process_time() - cpu))
    return best


def main() -> None:
    system, state = carom.models.disks_in_box(1000, width=80.0)
    state = moved(system, state, 2000)
    problem = posed(system, state, first_pairs(system, state, 0.0))
    reduced, rows = local(problem)
    with tempfile.TemporaryDirectory() as folder:
        found = siconos(reduced, Path(folder))
    print(f"{rows.size // 2} contacts")
    for one in found or []:
        P = jnp.zeros(problem.c.size).at[rows].set(jnp.asarray(one["impulse"]))
        residual = float(problem.residual(P, problem.equation(P)))
        tol = jnp.asarray(residual)
        sweeps, _ = solved(problem, tol)
        ours = timed(lambda tol=tol: jax.block_until_ready(solved(problem, tol)))
        print(f"residual {residual:.1e}: {one['iterations']} iterations against {int(sweeps)} sweeps", end="")
        for kind, ms in ours.items():
            print(f"; {kind}: Siconos {one[kind]:.0f} ms, carom {ms:.1f} ms, {one[kind] / ms:.0f} times", end="")
        print(flush=True)


if __name__ == "__main__":
    main()
