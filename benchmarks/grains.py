"""Granular matter: grain-steps per second with moving lists and friction, stencils, implicit steps.

Times are those of one core (processor time), so that others on the machine disturb little:
`python benchmarks/grains.py` prints one line per number.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import carom
from carom.systems.laws import hertz


def timed(system, state, method, h: float, steps: int) -> float:
    """Seconds of one core per step, from runs of two lengths: what happens once per run does not count."""

    def run(n: int) -> float:
        begin = time.process_time()
        carom.simulate(system, state, method, t1=n * h, h=h, save_every=10**9)
        return time.process_time() - begin

    run(steps)
    return (run(4 * steps) - run(steps)) / (3 * steps)


def moving_grains(d: int, n: int) -> tuple[carom.System, carom.State]:
    """Grains with friction that remembers, on a lattice, touching, in a periodic box, with random velocities."""
    rng, dof = np.random.default_rng(0), {2: 3, 3: 6}[d]
    grains, count = carom.Bodies(n**d, dof=dof), n**d
    x = 0.98 * np.moveaxis(np.indices((n,) * d), 0, -1).reshape(-1, d)
    rough = carom.laws.CundallStrack(friction=0.5, stiffness=300.0, damping=1.0, normal_damping=1.0)
    search = carom.CellList(1.0, 0.15, carom.Periodic([0.98 * n] * d))
    law = carom.laws.power_pair(1.0)
    part = carom.Interactions.between(grains, law, data=(0.5, 1e3), search=search, friction=rough)
    inertia = [1.0] * d + [0.1] * (dof - d)
    q, v = np.zeros((count, dof)), np.zeros((count, dof))
    q[:, :d], v[:, :d] = x, 0.3 * rng.normal(size=(count, d))
    return carom.System(grains.mass(*inertia), {"contact": part}), carom.State(q.ravel(), v.ravel())


LAMMPS = """units lj
atom_style sphere
dimension {d}
newton off
comm_modify vel yes
lattice {lattice} {density}
region box block 0 {n} 0 {n} {third}
create_box 1 box
create_atoms 1 box
set group all diameter 1.0
set group all density {solid}
velocity all create 0.09 1 loop geom
pair_style gran/hooke/history 1000.0 300.0 2.0 2.0 0.5 0
pair_coeff * *
neighbor 0.15 bin
timestep 0.002
fix move all nve/sphere
{flat}
run {steps}
run {more}
"""


def lammps(d: int, n: int, steps: int) -> float | None:
    """Seconds of one core per step of LAMMPS on the same grains; None where it is not installed."""
    if shutil.which("lmp") is None:
        return None
    text = LAMMPS.format(
        d=d,
        n=n,
        lattice={2: "sq", 3: "sc"}[d],
        density=0.98**-d,
        third={2: "-0.5 0.5", 3: f"0 {n}"}[d],
        solid=6 / np.pi,
        flat="fix flat all enforce2d" if d == 2 else "",
        steps=steps,
        more=4 * steps,
    )
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "in.grains"
        script.write_text(text)
        said = subprocess.run(
            ["lmp", "-in", str(script), "-log", "none"], capture_output=True, text=True, check=True, cwd=folder
        ).stdout
    wall, used = (float(re.findall(words, said)[-1]) for words in (r"Loop time of (\S+)", r"(\S+)% CPU use"))
    return 0.01 * used * wall / (4 * steps)


def explicit() -> None:
    for d, n, steps in ((2, 100, 200), (3, 22, 100)):
        system, state = moving_grains(d, n)
        seconds = timed(system, state, carom.StormerVerlet(), 2e-3, steps)
        print(f"explicit, {d}D, {n**d} grains, moving list, friction: {n**d / seconds:.3g} grain-steps/s", flush=True)
        other = lammps(d, n, steps)
        ratio = f"{n**d / other:.3g} grain-steps/s, {seconds / other:.2g} times as many" if other else "not installed"
        print(f"  LAMMPS, gran/hooke/history: {ratio}", flush=True)


def stencils() -> None:
    n = 300
    crystal, start = carom.models.hexagonal_crystal(n, n)
    touching = carom.Interactions(hertz, stencil=(0, 1), data=np.full(n * n - 1, 1e10), relative=True)
    chain, first = carom.System(0.03, touching), carom.State(np.zeros(n * n), np.eye(1, n * n)[0])
    one = timed(crystal, start, carom.StormerVerlet(), 1e-6, 200) / (3 * n * n)
    other = timed(chain, first, carom.StormerVerlet(), 1e-6, 200) / (n * n)
    print(f"stencil: {1e9 * one:.3g} ns per bond, chain {1e9 * other:.3g}, ratio {one / other:.3g}", flush=True)


def implicit() -> None:
    n = 316
    crystal, state = carom.models.hexagonal_crystal(n, n, precompression=1e-5, periodic=True, impact_velocity=0.01)
    m = 4 / 3 * np.pi * 0.01**3 * 7780.0
    k = 4 / 3 * carom.laws.modulus(203e9, 0.3) / 2 * np.sqrt(0.005) * 1.5 * np.sqrt(1e-5)
    h = 4.0 / np.sqrt(6 * k / m)
    methods = [carom.Theta(newton=carom.Newton(tol=tol)) for tol in (1e-13, 1e-8)]
    fast, slow = [], [[] for _ in methods]
    for _ in range(3):
        fast.append(timed(crystal, state, carom.StormerVerlet(), 0.25 * h, 50))
        for times, method in zip(slow, methods):
            times.append(timed(crystal, state, method, h, 5))
    for times, method in zip(slow, methods):
        ratio = f"{np.median(times) / np.median(fast):.3g} explicit steps of {1e3 * np.median(fast):.2g} ms"
        print(f"theta at omega h = 4, {n * n} beads, tol {method.newton.tol:g}: {ratio} (medians of three)", flush=True)


if __name__ == "__main__":
    explicit()
    stencils()
    implicit()
