"""Moreau steps of the woodpecker toy: carom against Siconos (Debian's python3-siconos), one core, one run.

Same step size, same residual tolerance, state and impulses of every step recorded on both sides; compile time apart.
Siconos runs in the system's interpreter (or in the one that SICONOS_PYTHON names); without it a note is printed.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
H, STEPS, TOL, LANES = 2e-5, 50_000, 1e-10, 1000


def one_toy() -> dict:
    """One trajectory on one core; the best of several repetitions."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import warnings

    import carom

    warnings.simplefilter("ignore")
    toy, state = carom.models.woodpecker()
    method = carom.MoreauMidpoint(carom.SemismoothNewton(tol=TOL))
    first = carom.simulate(toy, state, method, t1=STEPS * H, h=H)
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        sol = carom.simulate(toy, state, method, t1=STEPS * H, h=H)
        seconds.append(time.perf_counter() - started)
    return {"us": 1e6 * min(seconds) / STEPS, "phi_S": sol.q[-1, 2], "compile": first.stats["compile_seconds"]}


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
    arguments = [python, str(HERE / "siconos" / "woodpecker.py"), str(STEPS), str(H), str(TOL)]
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
    print(f"carom, one toy, one core:   {single['us']:7.2f} us per step (compiled in {single['compile']:.1f} s)")
    print(f"carom, {LANES} toys, all cores: {batch['us']:7.3f} us per toy-step (compiled in {batch['compile']:.1f} s)")
    if other is None:
        print("Siconos: not importable here, no ratio (apt install python3-siconos)")
        return
    print(f"Siconos, one toy, one core: {other['us']:7.2f} us per step")
    print(f"ratio: one toy {other['us'] / single['us']:.1f}, batch {other['us'] / batch['us']:.0f} per toy-step")
    print(f"phi_S at the end: carom {single['phi_S']:.9f}, Siconos {other['phi_S']:.9f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(globals()[sys.argv[1]]()))
    else:
        main()
