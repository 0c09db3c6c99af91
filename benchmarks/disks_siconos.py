"""1000 disks at rest, about 1800 contacts: carom's sweeps against Siconos' NSGS, and whole steps with Bullet's search.

Siconos is Debian's python3-siconos. All start from zero impulses. Its solver stops by an error of its own: it is asked
for several, carom's residual of its impulses is computed, and carom is timed to that residual. Ratios are of times of
one run, wall and processor time, the best of five of both solvers and of carom's steps; Siconos' steps are made once.
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
from carom.systems.first_lists import first_pairs

WIDTH, FRICTION = 80.0, 0.3
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


def siconos(script, *arguments):
    """What a script finds in Siconos' interpreter, if there is one."""
    python = os.environ.get("SICONOS_PYTHON", "/usr/bin/python3")
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        command = [python, str(Path(__file__).resolve().parent / "siconos" / script), arguments[0], str(found)]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        run = subprocess.run([*command, *map(str, arguments[1:])], env=environment, capture_output=True, text=True)
        return json.loads(found.read_text()) if run.returncode == 0 else print(run.stderr[-400:])


def timed(run) -> dict[str, float]:
    """Shortest of five, in milliseconds."""
    best = {"wall": float("inf"), "cpu": float("inf")}
    for _ in range(5):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        best["wall"] = min(best["wall"], 1e3 * (time.perf_counter() - wall))
        best["cpu"] = min(best["cpu"], 1e3 * (time.process_time() - cpu))
    return best


def solver(system, state, folder):
    """Time to a residual, that which Siconos reaches."""
    problem = posed(system, state, first_pairs(system, state, 0.0))
    reduced, rows = local(problem)
    write(reduced, folder / "problem.dat")
    print(f"{rows.size // 2} contacts")
    for one in siconos("disks.py", str(folder / "problem.dat"), *ASKED) or []:
        P = jnp.zeros(problem.c.size).at[rows].set(jnp.asarray(one["impulse"]))
        residual = float(problem.residual(P, problem.equation(P)))
        tol = jnp.asarray(residual)
        sweeps, _ = solved(problem, tol)
        ours = timed(lambda tol=tol: jax.block_until_ready(solved(problem, tol)))
        print(f"residual {residual:.1e}: {one['iterations']} iterations against {int(sweeps)} sweeps", end="")
        print(*(f"; {kind}: {told(one[kind], ms)}" for kind, ms in ours.items()), sep="", flush=True)


def whole_steps(system, state, folder, steps=10, tol=1e-4):
    """Time of steps from a cold start, the search for contacts and all else included."""
    start = folder / "start.npz"
    radii = np.asarray(system.contact_groups[0].data)
    np.savez(start, radii=radii, q=state.q, v=state.v, width=WIDTH, h=H, friction=FRICTION)
    theirs = siconos("disks_steps.py", str(start), tol, steps)
    method = carom.MoreauMidpoint(solver=carom.AcceleratedGaussSeidel(tol=tol, max_iter=3000))

    def run():
        return carom.simulate(system, state, method, t1=steps * H, h=H, save_every=steps, progress=False)

    sol, ours = run(), timed(run)
    print(f"{steps} steps to {tol:g}: {sol.stats['iterations']} sweeps", end="")
    for kind, ms in ours.items() if theirs else ():
        print(f"; {kind} per step: {told(sum(one[kind] for one in theirs) / steps, ms / steps)}", end="")
    print(f"; Siconos' contacts and iterations {[(o['contacts'], o['iterations']) for o in theirs or []]}", flush=True)


def told(theirs, ours):
    return f"Siconos {theirs:.0f} ms, carom {ours:.1f} ms, {theirs / ours:.0f} times"


def main() -> None:
    system, state = carom.models.disks_in_box(1000, width=WIDTH, friction=FRICTION)
    state = moved(system, state, 2000)
    with tempfile.TemporaryDirectory() as folder:
        solver(system, state, Path(folder))
        whole_steps(system, state, Path(folder))


if __name__ == "__main__":
    main()
