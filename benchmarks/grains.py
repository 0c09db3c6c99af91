"""Granular matter: grain-steps per second with moving lists and friction, stencils, implicit steps.

Times are those of one core (processor time), so that others on the machine disturb little:
`python benchmarks/grains.py` prints one line per number.
"""

from __future__ import annotations

import shutil
import time

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


def explicit() -> None:
    for d, n, steps in ((2, 100, 200), (3, 22, 100)):
        system, state = moving_grains(d, n)
        seconds = timed(system, state, carom.StormerVerlet(), 2e-3, steps)
        print(f"explicit, {d}D, {n**d} grains, moving list, friction: {n**d / seconds:.3g} grain-steps/s", flush=True)
    print(f"LAMMPS: {'installed' if shutil.which('lmp') else 'not installed, no ratio'}", flush=True)


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
    fast = timed(crystal, state, carom.StormerVerlet(), 0.25 * h, 50)
    for tol in (1e-13, 1e-8):
        slow = timed(crystal, state, carom.Theta(newton=carom.Newton(tol=tol)), h, 5)
        print(f"theta at omega h = 4, {n * n} beads, tol {tol:g}: {slow / fast:.3g} explicit steps", flush=True)


if __name__ == "__main__":
    explicit()
    stencils()
    implicit()
