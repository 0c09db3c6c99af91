"""Impacts to an error of 1e-8: event capturing against constant-step Moreau, and against SciPy with events.

Ratios are of times measured in one run; compile times are reported apart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.integrate import solve_ivp
from timing import best_of

import carom
from carom.models import exact

T1, WANTED = 4.9137, 1e-8
PROBLEMS = {
    "oscillator": {},
    "preloaded oscillator": {"damping": 0.2, "stiffness": 9.0, "preload": 0.3, "restitution": 0.6, "position": 0.5},
}
DEFAULTS = {"damping": 0.4, "stiffness": 4.0, "preload": 0.0, "restitution": 0.5, "position": 1.0}


TABLEAUX = (carom.gauss(3), carom.gauss(4), carom.radau_iia(3), carom.lobatto_iiia(4))


def event_capturing(model, data: dict[str, float]) -> tuple[str, Callable[[], object], float, float]:
    """Name, run, error and compile time of the fastest event capturing that reaches the wanted error."""
    found = []
    for tableau in TABLEAUX:
        method = carom.EventCapturing(tableau)
        compiled = 0.0
        for n in (24, 32, 40, 48, 56, 64, 80, 96, 112, 128):
            run = partial(carom.simulate, *model, method, t1=T1, h=T1 / n)
            solution = run()
            compiled += solution.stats["compile_seconds"]
            error = np.abs(solution.q[:, 0] - exact.oscillator_with_stop(solution.t, **data)[0]).max()
            if error <= WANTED:
                found.append((best_of(run), f"{tableau.name}, {n} steps", run, error, compiled))
                break
    return min(found, key=lambda x: x[0])[1:]


def constant_moreau(model, data: dict[str, float]) -> float:
    """The time at which the error would reach the wanted one, by its slope over three step sizes."""
    steps, errors, times = np.array([4e-4, 1e-4, 2.5e-5]), [], []
    for h in steps:
        run = partial(carom.simulate, *model, carom.MoreauTheta(0.5, 1.0), t1=T1, h=h)
        solution = run()
        errors.append(np.abs(solution.q[:, 0] - exact.oscillator_with_stop(solution.t, **data)[0]).max())
        times.append(best_of(run, 2))
    slope = carom.measures.observed_order(steps, errors)
    per_step = times[-1] / (T1 / steps[-1])
    needed = steps[-1] * (WANTED / errors[-1]) ** (1 / slope)
    print(f"  Moreau theta: errors {np.array2string(np.array(errors), precision=2)} at h = {steps}, slope {slope:.2f}")
    return per_step * T1 / needed


def scipy_with_events(data: dict[str, float]) -> tuple[str, Callable[[], object], float]:
    """Name, run and error of the event-driven code a user would write, with the fastest method that suffices."""
    p = DEFAULTS | data
    damping, stiffness, preload, restitution = (p[x] for x in ("damping", "stiffness", "preload", "restitution"))

    def free(t, y):  # noqa: ARG001
        q, v = y
        return v, -damping * v - stiffness * q - preload

    def hit(t, y):  # noqa: ARG001
        return y[0]

    hit.terminal, hit.direction = True, -1

    def integrate(method: str, tol: float) -> tuple[np.ndarray, np.ndarray]:
        t, y, times, positions = 0.0, (p["position"], 0.0), [], []
        while t < T1:
            part = solve_ivp(free, (t, T1), y, method=method, events=hit, rtol=tol, atol=tol)
            times.append(part.t)
            positions.append(part.y[0])
            t, y = part.t[-1], (0.0, -restitution * part.y[1, -1])
            if y[1] < 10 * tol:  # the impacts have accumulated
                break
        return np.concatenate(times), np.concatenate(positions)

    found = []
    for method in ("RK45", "DOP853", "LSODA"):
        for tol in 10.0 ** np.arange(-7, -13, -0.25):
            t, q = integrate(method, tol)
            error = np.abs(q - exact.oscillator_with_stop(t, **data)[0]).max()
            if error <= WANTED:
                run = partial(integrate, method, tol)
                found.append((best_of(run), f"{method}, tolerance {tol:.0e}", run, error))
                break
    return min(found, key=lambda x: x[0])[1:]


def main() -> None:
    for name, data in PROBLEMS.items():
        print(f"{name}, error {WANTED:g}")
        model = carom.models.oscillator_with_stop(**data)
        capture, capturing, error, compiled = event_capturing(model, data)
        rival, with_events, rival_error = scipy_with_events(data)
        pairs = [
            (best_of(capturing, 5), best_of(with_events, 5)) for _ in range(10)
        ]  # in turns: both feel the same load
        seconds, scipy = np.min(pairs, axis=0)
        print(f"  event capturing, {capture}: {1e3 * seconds:.2f} ms, error {error:.1e}, compiled in {compiled:.1f} s")
        print(
            f"  SciPy with events, {rival}: {1e3 * scipy:.2f} ms, error {rival_error:.1e}, ratio {scipy / seconds:.2f}"
        )
        moreau = constant_moreau(model, data)
        print(f"  constant Moreau would need {moreau:.3g} s: {moreau / seconds:.3g} times as long")


if __name__ == "__main__":
    main()
