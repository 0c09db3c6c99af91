"""The explicit pseudo-energy scheme: against a Numba leapfrog, asynchronous against synchronous, and long small runs.

Every ratio is of times measured in turns in one run, the shortest of several; compile times are reported apart. On a
GPU (or with `--device`) only carom is timed, and its share of the bandwidth of a copy is reported.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from timing import in_turns

import carom
from carom.running.run import Run, prepare

STREAMS = 8  # arrays that no step can do without: q v w read and written, stiffness and mass read


def compressed_chain(n: int) -> tuple[carom.System, carom.State]:
    """Hertz chain under compression, every contact closed, with a little noise."""
    rng = np.random.default_rng(0)
    contact = carom.models.granular_chain(np.ones(n))[0].potential["contact"]
    system = carom.System(np.ones(n), {"contact": contact})
    return system, carom.State(-0.01 * np.arange(n) + 1e-3 * rng.normal(size=n), np.zeros(n))


def leapfrog(n: int, h: float, steps: int) -> Callable[[], None]:
    """The same chain by hand: leapfrog with one force evaluation per contact and step, arrays updated in place."""
    from numba import njit

    @njit(fastmath=True)
    def run(q, v, k, m, h, steps):
        for _ in range(steps):
            left = 0.0
            for i in range(q.size - 1):
                d = q[i] - q[i + 1]
                f = k[i] * d * np.sqrt(d) if d > 0 else 0.0
                v[i] += h * (left - f) / m[i]
                q[i] += h * v[i]
                left = f
            v[-1] += h * left / m[-1]
            q[-1] += h * v[-1]

    state = compressed_chain(n)[1]
    arrays = (np.array(state.q), np.zeros(n), np.ones(n - 1), np.ones(n))
    run(*arrays, h, 1)
    return lambda: run(*arrays, h, steps)


def stepper(system: carom.System, state: carom.State, method: object, h: float) -> tuple[Run, float]:
    """A run that stores nothing, compiled; and the seconds that took."""
    run = prepare(system, state, method, 1e9 * h, carom.Constant(h), save_every=10**9)  # pyright: ignore
    started = time.perf_counter()
    advance(run, 1)
    return run, time.perf_counter() - started


def advance(run: Run, steps: int) -> None:
    """Take so many steps."""
    run.attempts = steps
    run.chunk()
    jax.block_until_ready(run.carry.state.q)


def against_numba(n: int = 10**6, steps: int = 100, h: float = 1e-2) -> None:
    """Nanoseconds per particle and step."""
    run, compile_seconds = stepper(*compressed_chain(n), carom.PseudoEnergy(), h)
    best = in_turns({"carom": lambda: advance(run, steps), "numba": leapfrog(n, h, steps)})
    ours, theirs = (1e9 * best[name] / (n * steps) for name in ("carom", "numba"))
    print(f"Hertz chain, {n:.0e} beads: carom {ours:.2f} ns, Numba leapfrog {theirs:.2f} ns per particle and step,")
    print(f"    ratio {ours / theirs:.2f} (at most 1.5); compile {compile_seconds:.1f} s")


def asynchronous_wave(n: int = 10**5, ratio: int = 10, steps: int = 5) -> None:
    """Wall time of equal spans of time."""
    system, state = carom.models.inhomogeneous_wave(n)
    h = 0.5 / n
    several = carom.AsynchronousPseudoEnergy("layer 0", ratio)
    slow, slow_compile = stepper(system, state, several, h)
    fine, fine_compile = stepper(system, state, carom.PseudoEnergy(), h / ratio)
    best = in_turns({"async": lambda: advance(slow, steps), "sync": lambda: advance(fine, ratio * steps)})
    print(f"wave, {n:.0e} nodes, ratio {ratio}: asynchronous {best['sync'] / best['async']:.2f} times faster than")
    print(f"    synchronous (at least 1.6, ideal {2 * ratio / (ratio + 1):.2f});", end=" ")
    print(f"compile {slow_compile:.1f} and {fine_compile:.1f} s")


def small_chain(steps: int = 10**6, h: float = 1e-3) -> None:
    """Many steps of the Fermi-Pasta-Ulam chain."""
    run, compile_seconds = stepper(*carom.models.fermi_pasta_ulam(3, 50.0), carom.PseudoEnergy("gauss-2"), h)
    best = in_turns({"carom": lambda: advance(run, steps // 10)}, 3)["carom"]
    seconds = best * 1e6 / (steps // 10)
    print(f"Fermi-Pasta-Ulam, Gauss-2: 1e6 steps in {seconds:.2f} s; compile {compile_seconds:.1f} s")


def on_device(n: int = 10**7, steps: int = 200) -> None:
    """Share of the bandwidth of a copy."""
    run, compile_seconds = stepper(*compressed_chain(n), carom.PseudoEnergy(), 1e-2)
    x = jnp.ones(n)
    copy = jax.jit(lambda x: jax.lax.fori_loop(0, steps, lambda _, y: jax.lax.optimization_barrier(y + 1.0), x))
    jax.block_until_ready(copy(x))
    best = in_turns({"step": lambda: advance(run, steps), "copy": lambda: jax.block_until_ready(copy(x))}, 5)
    step, plain = (best[name] / steps for name in ("step", "copy"))
    moved, copied = STREAMS * 8 * n / step / 1e12, 16 * n / plain / 1e12
    print(f"{jax.devices()[0].device_kind}, {n:.0e} beads: {1e9 * step / n:.4f} ns per particle and step,")
    print(f"    at least {moved:.3g} TB/s of {copied:.3g} TB/s of a copy: {moved / copied:.0%};", end=" ")
    print(f"compile {compile_seconds:.1f} s")


if __name__ == "__main__":
    if jax.default_backend() != "cpu" or "--device" in sys.argv:
        on_device()
    else:
        against_numba()
        asynchronous_wave()
    small_chain()
