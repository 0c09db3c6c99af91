"""Impacts to an error of 1e-8: event capturing against constant-step Moreau, and against SciPy with events.

Ratios are of times measured in one run; compile times are reported apart.
"""

from __future__ import annotations

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


def event_capturing(model, data: dict[str, float]) -> tuple[str, float, float, float]:
    """Name, time, error and compile time of the fastest event capturing that reaches the wanted error."""
    found = []
    for tableau in (carom.radau_iia(3), carom.lobatto_iiia(4), carom.explicit(5)):
        method = carom.EventCapturing(tableau)
        compiled = 0.0
        for n in (40, 60, 80, 120, 160):
            run = lambda: carom.simulate(*model, method, t1=T1, h=T1 / n)
            solution = run()
            compiled += solution.stats["compile_seconds"]
            error = np.abs(solution.q[:, 0] - exact.oscillator_with_stop(solution.t, **data)[0]).max()
            if error <= WANTED:
                found.append((f"{tableau.name}, {n} steps", best_of(run), error, compiled))
                break
    return min(found, key=lambda x: x[1])


def constant_moreau(model, data: dict[str, float]) -> tuple[float, float]:
    """Slope of the error, and the time at which it would reach the wanted one, from three step sizes."""
    steps, errors, times = np.array([4e-4, 1e-4, 2.5e-5]), [], []
    for h in steps:
        run = lambda: carom.simulate(*model, carom.MoreauTheta(0.5, 1.0), t1=T1, h=h)
        solution = run()
        errors.append(np.abs(solution.q[:, 0] - exact.oscillator_with_stop(solution.t, **data)[0]).max())
        times.append(best_of(run, 2))
    slope = carom.measures.observed_order(steps, errors)
    per_step = times[-1] / (T1 / steps[-1])
    needed = steps[-1] * (WANTED / errors[-1]) ** (1 / slope)
    print(f"  Moreau theta: errors {np.array2string(np.array(errors), precision=2)} at h = {steps}, slope {slope:.2f}")
    return slope, per_step * T1 / needed


def scipy_with_events(data: dict[str, float]) -> tuple[float, float, float]:
    """Time, error and tolerance of the event-driven code a user would write, at the first tolerance that suffices."""
    p = DEFAULTS | data

    def free(t, y):  # noqa: ARG001
        return [y[1], -p["damping"] * y[1] - p["stiffness"] * y[0] - p["preload"]]

    def hit(t, y):  # noqa: ARG001
        return y[0]

    hit.terminal, hit.direction = True, -1

    def run(rtol: float):
        t, y, times, positions = 0.0, [p["position"], 0.0], [], []
        while t < T1:
            part = solve_ivp(free, (t, T1), y, method="DOP853", events=hit, rtol=rtol, atol=1e-3 * rtol)
            times.append(part.t)
            positions.append(part.y[0])
            t, y = part.t[-1], [0.0, -p["restitution"] * part.y[1, -1]]
            if part.status == 0 or y[1] < 1e-9:
                break
        return np.concatenate(times), np.concatenate(positions)

    for rtol in 10.0 ** np.arange(-6, -13, -0.5):
        t, q = run(rtol)
        error = np.abs(q - exact.oscillator_with_stop(t, **data)[0]).max()
        if error <= WANTED:
            return best_of(lambda: run(rtol), 5), error, rtol
    return np.nan, np.nan, np.nan


def main() -> None:
    for name, data in PROBLEMS.items():
        print(f"{name}, error {WANTED:g}")
        model = carom.models.oscillator_with_stop(**data)
        capture, seconds, error, compiled = event_capturing(model, data)
        print(f"  event capturing, {capture}: {1e3 * seconds:.2f} ms, error {error:.1e}, compiled in {compiled:.1f} s")
        _, moreau = constant_moreau(model, data)
        print(f"  constant Moreau would need {moreau:.3g} s: {moreau / seconds:.3g} times as long")
        scipy, error, rtol = scipy_with_events(data)
        label = f"  SciPy DOP853 with events, rtol {rtol:.0e}"
        print(f"{label}: {1e3 * scipy:.2f} ms, error {error:.1e}, ratio {scipy / seconds:.2f}")


if __name__ == "__main__":
    main()
