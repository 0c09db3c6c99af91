"""Long chains and wide batches on the default JAX device: cost per bead and step, time per toy and step."""

from __future__ import annotations

import sys
import time

import jax
import numpy as np

import carom


def per_step(run, steps: int) -> tuple[float, float]:
    """Seconds per step of a second run, and of the steps alone: what a run of ten times as many takes longer."""

    def timed(count: int) -> float:
        run(count)
        started = time.perf_counter()
        run(count)
        return time.perf_counter() - started

    short, long = timed(steps), timed(10 * steps)
    return short / steps, (long - short) / (9 * steps)


def chains(sizes: list[int], steps: int) -> None:
    print(f"{'method':28}{'N':>12}{f'ns per bead, {steps} steps':>24}{'steps alone':>16}")
    methods = {
        "TailoredTheta": carom.TailoredTheta(),
        "TailoredIRK": carom.TailoredIRK(),
        "ExplicitRK(explicit(4))": carom.ExplicitRK(carom.explicit(4)),
    }
    for n in sizes:
        chain, state = carom.models.dimer_chain(n, 0.59, 0.06)
        for name, method in methods.items():
            options = {"h": 0.1, "save_every": 10**6, "progress": False}
            seconds, alone = per_step(lambda k: carom.simulate(chain, state, method, t1=0.1 * k, **options), steps)
            print(f"{name:28}{n:12,}{1e9 * seconds / n:24.3f}{1e9 * alone / n:16.3f}", flush=True)


def batch(lanes: int, steps: int) -> None:
    ratios = np.linspace(0.3, 1.0, lanes)
    chains, states = zip(*(carom.models.dimer_chain(25, r, 0.06) for r in ratios))
    for name, method in (("TailoredTheta", carom.TailoredTheta()), ("TailoredIRK", carom.TailoredIRK())):
        options = {"h": 0.1, "save_every": 10**6, "progress": False}
        seconds, _ = per_step(lambda k: carom.simulate_batch(chains, states, method, t1=0.1 * k, **options), steps)
        print(
            f"{name}: batch of {lanes} chains of 25 beads, {1e6 * seconds / lanes:.3f} us per chain and step",
            flush=True,
        )


if __name__ == "__main__":
    device = jax.devices()[0]
    print(f"device: {device.device_kind}")
    on_gpu = device.platform == "gpu"
    chains([10**5, 10**6, 10**7] if on_gpu or "--large" in sys.argv else [10**5, 10**6], 20)
    batch(256, 300)
