"""Moreau steps of the woodpecker toy: carom against Siconos (Debian's python3-siconos), one core, one run.

Same step size, same residual tolerance, state and impulses of every step recorded on both sides; compile time apart.
The best of five blocks counts on both sides; processor time is given beside wall time, for machines with neighbours.
Siconos runs in the system's interpreter (or in the one that SICONOS_PYTHON names); without it a note is printed.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
H, BLOCK, TOL, LANES = 2e-5, 15_000, 1e-10, 1000


def one_toy() -> dict:
    """One trajectory on one core, block after block of steps; the best block counts, as on the other side.

    Once with what the other side records, state and impulses, and once with all columns of a solution.
    """
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import warnings

    import carom

    warnings.simplefilter("ignore")
    toy, state = carom.models.woodpecker()
    method = carom.MoreauMidpoint(carom.SemismoothNewton(tol=TOL))
    best: dict = {}
    for name, keep in (("all", None), ("same", [carom.keep.columns("q", "v", "impulse")])):
        first = block = carom.simulate(toy, state, method, t1=BLOCK * H, h=H, keep=keep)
        walls, cpus = [], []
        for _ in range(5):
            wall, cpu = time.perf_counter(), time.process_time()
            block = carom.simulate(toy, block.state, method, t1=float(block.state.t) + BLOCK * H, h=H, keep=keep)
            walls.append(1e6 * (time.perf_counter() - wall) / BLOCK)
            cpus.append(1e6 * (time.process_time() - cpu) / BLOCK)
        best[name] = {"wall": min(walls), "cpu": min(cpus), "compile": first.stats["compile_seconds"]}
        best["phi_S"] = first.q[-1, 2]
    return best


def many_toys() -> dict:
    """A batch with other friction in every lane, on all cores."""
    import warnings

    import numpy as np

    import carom

    warnings.simplefilter("ignore")
    toys, states = zip(*(carom.models.woodpecker(friction=mu) for mu in np.linspace(0.28, 0.32, LANES)))
    method = carom.MoreauMidpoint(carom.SemismoothNewton(tol=TOL))
    steps = 2000
    sols = carom.simulate_batch(toys, states, method, t1=steps * H, h=H)
    return {"us": 1e6 * sols[0].stats["seconds"] / (steps * LANES), "compile": sols[0].stats["compile_seconds"]}


def siconos() -> dict | None:
    """The same toy in Siconos, if it can be imported."""
    python = os.environ.get("SICONOS_PYTHON", "/usr/bin/python3")
    arguments = [python, str(HERE / "siconos" / "woodpecker.py"), str(BLOCK), str(H), str(TOL)]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    core = min(os.sched_getaffinity(0))
    run = subprocess.run(
        ["taskset", "-c", str(core), *arguments], capture_output=True, text=True, env=environment, check=False
    )
    return json.loads(run.stdout.splitlines()[-1]) if run.returncode == 0 else None


def child(part: str) -> dict:
    run = subprocess.run([sys.executable, __file__, part], capture_output=True, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def main() -> None:
    single, other = child("one_toy"), siconos()
    batch = child("many_toys")
    for name, what in (("same", "state and impulses"), ("all", "all columns")):
        one = single[name]
        print(f"carom, one toy, one core, {what}: {one['wall']:.2f} us per step, {one['cpu']:.2f} us of processor time")
        print(f"  compiled in {one['compile']:.1f} s")
    print(f"carom, {LANES} toys, all cores: {batch['us']:7.3f} us per toy-step (compiled in {batch['compile']:.1f} s)")
    if other is None:
        print("Siconos: not importable here, no ratio (apt install python3-siconos)")
        return
    print(f"Siconos, one toy, one core: {other['wall']:7.2f} us per step, {other['cpu']:.2f} us of processor time")
    for name, what in (("same", "state and impulses"), ("all", "all columns")):
        ratios = other["wall"] / single[name]["wall"], other["cpu"] / single[name]["cpu"]
        print(f"ratio, {what}: {ratios[0]:.1f} in wall time, {ratios[1]:.1f} in processor time")
    print(f"ratio of the batch per toy-step: {other['wall'] / batch['us']:.0f}")
    print(f"phi_S after one block: carom {single['phi_S']:.9f}, Siconos {other['phi_S']:.9f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(globals()[sys.argv[1]]()))
    else:
        main()
