"""Granular chains: carom against SciPy at equal error, and against a hand-written Numba loop at N = 1e5.

Ratios are of times measured in one run; compile times are reported apart.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial

import numpy as np
from numba import njit
from scipy.integrate import solve_ivp
from timing import best_of, in_turns

import carom

WANTED = 3.3e-3
T1 = 30.0


def regularised_chain(masses: np.ndarray, gamma: float) -> Callable[[float, np.ndarray], np.ndarray]:
    """Right-hand side of James2020 (10)-(11) with unit stiffness, as a SciPy user would write it."""
    n = masses.size

    def rhs(t: float, y: np.ndarray) -> np.ndarray:  # noqa: ARG001
        x, w = y[:n], y[n:]
        overlap = np.maximum(x[:-1] - x[1:], 0.0)
        f = overlap * np.sqrt(overlap)
        net = np.zeros(n)
        net[1:] += f
        net[:-1] -= f
        net /= masses
        return np.concatenate([w + gamma * net, net])

    return rhs


def scipy_at_equal_error(
    chain: carom.System, state: carom.State, reference: carom.Solution
) -> dict[str, tuple[Callable, float, float]]:
    """For every SciPy method: the run with the largest tolerance that reaches the wanted error, error and tolerance."""
    rhs = regularised_chain(np.asarray(chain.mass), 0.06)
    y0 = np.concatenate([np.asarray(state.q), np.asarray(state.v)])
    times = reference.t
    found = {}
    for method in ("RK45", "DOP853", "LSODA", "Radau"):
        for rtol in 10.0 ** np.arange(-2, -6.5, -0.1):
            options = {"method": method, "rtol": rtol, "atol": rtol, "t_eval": times}
            sol = solve_ivp(rhs, (0, T1), y0, **options)
            error = np.abs(sol.y[: state.q.size].T - reference.q).max()
            if error <= WANTED:
                found[method] = (partial(solve_ivp, rhs, (0, T1), y0, **options), error, rtol)
                break
    return found


def carom_at_equal_error(
    chain: carom.System, state: carom.State, reference: carom.Solution
) -> dict[str, tuple[Callable, float, float]]:
    """For every carom method: the run with the largest step that reaches the wanted error, error and step."""
    plain, smooth = chain, carom.regularise(chain)
    candidates = {
        "TailoredIRK": (plain, carom.TailoredIRK()),
        "TailoredIRK, Newton to 1e-7": (plain, carom.TailoredIRK(newton=carom.Newton(tol=1e-7))),
        "TailoredIRK, Newton to 1e-3": (plain, carom.TailoredIRK(newton=carom.Newton(tol=1e-3))),
        "ExplicitRK(explicit(3)), regularised": (smooth, carom.ExplicitRK(carom.explicit(3))),
        "ExplicitRK(explicit(4)), regularised": (smooth, carom.ExplicitRK(carom.explicit(4))),
        "ExplicitRK(explicit(5)), regularised": (smooth, carom.ExplicitRK(carom.explicit(5))),
    }
    found = {}
    for name, (system, method) in candidates.items():
        for h in 0.95 ** np.arange(60):
            try:
                sol = carom.simulate(system, state, method, t1=T1, h=h, progress=False)
            except carom.SimulationError:
                continue
            error = np.abs(sol.q - reference.at(sol.t)[0]).max()
            if error <= WANTED:
                run = partial(carom.simulate, system, state, method, t1=T1, h=h, progress=False)
                found[name] = (run, error, h)
                break
    return found


def against_scipy() -> None:
    """N = 25, t = 30, sup error of the positions 3.3e-3."""
    chain, state = carom.models.dimer_chain(25, mass_ratio=0.59, damping=0.06)
    fine = carom.simulate(
        carom.regularise(chain),
        state,
        carom.ExplicitRK(carom.explicit(5)),
        t1=T1,
        h=2e-4,
        save_every=50,
        progress=False,
    )
    reference = fine.interpolated(np.linspace(0, T1, 301))
    peers = scipy_at_equal_error(chain, state, reference)
    ours = carom_at_equal_error(chain, state, fine)
    found = peers | ours
    seconds = in_turns({name: run for name, (run, _, _) in found.items()}, 15)
    fastest = min(seconds[name] for name in peers)
    print(f"\nN = 25, t = 30, sup error of x at most {WANTED:g}; ratio = time / time of the fastest SciPy method")
    print(f"{'method':40}{'ms':>9}{'error':>11}{'h or rtol':>11}{'ratio':>8}")
    for name, (_, error, setting) in found.items():
        print(f"{name:40}{1e3 * seconds[name]:9.2f}{error:11.2e}{setting:11.2g}{seconds[name] / fastest:8.3f}")


@njit(cache=False)
def numba_theta(x, v, mass, stiffness, theta, h, steps, tol):  # noqa: PLR0913
    """The theta step (34) with carom's Newton stopping rule and Thomas' algorithm; returns the iterations used.

    In one piece: it stands for what one would write by hand for this chain, loops merged and nothing stored twice.
    """
    n = x.size
    f, f_new = np.zeros(n), np.zeros(n)
    diagonal, upper, right = np.empty(n), np.empty(n), np.empty(n)
    guess, slope = np.empty(n), np.empty(n - 1)
    iterations = 0
    for _ in range(steps):
        for i in range(n):
            f[i] = 0.0
        for i in range(n - 1):
            d = x[i] - x[i + 1]
            if d > 0:
                s = stiffness[i] * d * np.sqrt(d)
                f[i] -= s
                f[i + 1] += s
        scale = 0.0
        for i in range(n):
            guess[i] = x[i] + h * v[i] + h * h * theta * f[i] / mass[i]
            scale = max(scale, abs(x[i]) + h * abs(v[i]))
        last = 0.0
        for _ in range(50):
            iterations += 1
            for i in range(n):
                f_new[i] = 0.0
            for i in range(n - 1):
                d = guess[i] - guess[i + 1]
                slope[i] = 0.0
                if d > 0:
                    root = np.sqrt(d)
                    s = stiffness[i] * d * root
                    slope[i] = 1.5 * stiffness[i] * root
                    f_new[i] -= s
                    f_new[i + 1] += s
            for i in range(n):
                w = h * h * theta / mass[i]
                right[i] = guess[i] - x[i] - h * v[i] - w * ((1 - theta) * f[i] + theta * f_new[i])
                left_slope = slope[i - 1] if i > 0 else 0.0
                right_slope = slope[i] if i < n - 1 else 0.0
                diagonal[i] = 1.0 + w * theta * (left_slope + right_slope)
                upper[i] = -w * theta * right_slope
                if i > 0:
                    factor = -w * theta * left_slope / diagonal[i - 1]
                    diagonal[i] -= factor * upper[i - 1]
                    right[i] -= factor * right[i - 1]
            largest = 0.0
            right[n - 1] /= diagonal[n - 1]
            for j in range(n - 2, -1, -1):
                right[j] = (right[j] - upper[j] * right[j + 1]) / diagonal[j]
            for i in range(n):
                guess[i] -= right[i]
                largest = max(largest, abs(right[i]))
            ratio = largest / last if last > 0 else 1.0
            if largest <= tol * scale or (ratio < 1 and ratio / (1 - ratio) * largest <= tol * scale):
                break
            last = largest
        for i in range(n - 1):
            d = guess[i] - guess[i + 1]
            slope[i] = stiffness[i] * d * np.sqrt(d) if d > 0 else 0.0
        for i in range(n):
            left = slope[i - 1] if i > 0 else 0.0
            right_force = slope[i] if i < n - 1 else 0.0
            old = v[i]
            v[i] = old + h * ((1 - theta) * f[i] + theta * (left - right_force)) / mass[i]
            x[i] = x[i] + h * (theta * v[i] + (1 - theta) * old)
    return iterations


def against_numba(n: int = 100_000, steps: int = 40) -> None:
    """The additive theta step on a chain in motion."""
    h = 0.1
    chain, _ = carom.models.dimer_chain(n, mass_ratio=0.59, damping=0.06)
    wave = np.random.default_rng(1).normal(size=n)
    state = carom.State(0.3 * np.cumsum(-np.abs(wave)) / 10, 0.1 * wave)
    method = carom.TailoredTheta()

    def ours() -> carom.Solution:
        return carom.simulate(chain, state, method, t1=steps * h, h=h, save_every=steps, progress=False)

    sol = ours()
    carom_seconds = best_of(ours, 5)
    theta = 0.5 + 0.06 / (2 * h)
    mass, stiffness = np.array(chain.mass), np.array(chain.potential["contact"].data)
    x0, g0 = np.array(state.q), np.asarray(chain.conservative_force(0.0, state.q)) / mass
    v0 = np.array(state.v) - h * (theta - 0.5) * g0
    numba_theta(x0.copy(), v0.copy(), mass, stiffness, theta, h, 1, 1e-13)
    x, v = x0.copy(), v0.copy()
    iterations = numba_theta(x, v, mass, stiffness, theta, h, steps, 1e-13)
    numba_seconds = best_of(lambda: numba_theta(x0.copy(), v0.copy(), mass, stiffness, theta, h, steps, 1e-13), 5)
    per_bead = 1e9 / (n * steps)
    print(f"\nN = {n}, {steps} theta steps; largest difference of positions {np.abs(x - sol.q[-1]).max():.1e}")
    for name, seconds, count in (
        ("Numba, hand-written", numba_seconds, iterations),
        ("carom TailoredTheta", carom_seconds, sol.stats["iterations"]),
    ):
        print(f"{name}: {seconds * per_bead:6.1f} ns per bead and step, {count / steps:.2f} iterations")
    print(f"ratio {carom_seconds / numba_seconds:.2f}; compile {sol.stats['compile_seconds']:.1f} s")


def scaling() -> None:
    """Cost per bead and step from 1e4 to 1e6 beads."""
    print("\nTailoredTheta, cost per bead and step")
    for n, steps in ((10_000, 400), (100_000, 40), (1_000_000, 8)):
        chain, state = carom.models.dimer_chain(n, 0.59, 0.06)
        run = lambda: carom.simulate(
            chain, state, carom.TailoredTheta(), t1=0.1 * steps, h=0.1, save_every=steps, progress=False
        )  # noqa: B023, E731
        run()
        print(f"N = {n:>9,}: {best_of(run, 3) / (n * steps) * 1e9:6.1f} ns")


FIRST = """
import time
import carom
chain, state = carom.models.dimer_chain(25, mass_ratio=0.59, damping=0.06)
started = time.perf_counter()
carom.simulate(chain, state, carom.{method}, t1=30.0, h=0.1, progress=False)
print(time.perf_counter() - started)
"""


def first_run() -> None:
    """Seconds of the first `simulate` after import, on an empty and on a filled compilation cache."""
    import os

    print("\nfirst simulate after import (N = 25)")
    for method in ("TailoredTheta()", "TailoredIRK()", "IRK(carom.gauss(2))"):
        with tempfile.TemporaryDirectory() as folder:
            script = [sys.executable, "-c", FIRST.format(method=method)]
            environment = os.environ | {"CAROM_CACHE": folder}
            times = [
                float(subprocess.run(script, env=environment, check=True, capture_output=True, text=True).stdout)
                for _ in range(2)
            ]
        print(f"{method:24} cold {times[0]:.2f} s, warm {times[1]:.2f} s")


if __name__ == "__main__":
    against_scipy()
    against_numba()
    scaling()
    first_run()
