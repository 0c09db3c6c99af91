"""`carom.solve` against event-driven SciPy code and against Moreau's scheme, at the same error.

Ratios are of times measured in one run, best of several, after compiling. Errors are the largest ones of the position
at 200 times, against closed forms (oscillators) or a run with rtol = 1e-12 (block on belt).
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp
from timing import best_of

import carom
from carom.models import exact

WANTED = 1e-8
REPEATS = 30
STEPS = (1.6e-3, 4e-4, 1e-4)
OSCILLATORS = {
    "oscillator with stop": {},
    "preloaded oscillator": {"damping": 0.2, "stiffness": 9.0, "preload": 0.3, "restitution": 0.6, "position": 0.5},
}
DEFAULTS = {"damping": 0.4, "stiffness": 4.0, "preload": 0.0, "restitution": 0.5, "position": 1.0}


def oscillator_by_scipy(p: dict[str, float], t1: float, times: np.ndarray, rtol: float) -> np.ndarray:
    """Positions at `times`: free flight, an event where q = 0, Newton's impact law, and rest after small bounces."""

    def free(t, y):  # noqa: ARG001
        return [y[1], -p["damping"] * y[1] - p["stiffness"] * y[0] - p["preload"]]

    def hit(t, y):  # noqa: ARG001
        return y[0]

    hit.terminal, hit.direction = True, -1
    t, y, q = 0.0, [p["position"], 0.0], np.zeros(len(times))
    while t < t1:
        part = solve_ivp(free, (t, t1), y, "DOP853", events=hit, rtol=rtol, atol=1e-3 * rtol, dense_output=True)
        inside = (times >= t) & (times <= part.t[-1])
        q[inside] = part.sol(times[inside])[0]
        t, y = part.t[-1], [0.0, -p["restitution"] * part.y[1, -1]]
        if part.status == 0 or y[1] < rtol:
            break
    return q


def belt_by_scipy(p: dict[str, float], t1: float, times: np.ndarray, rtol: float) -> np.ndarray:
    """Positions at `times`: slip until the block has the belt's speed, stick until the spring exceeds the limit."""

    def slip(side):
        def field(t, y):  # noqa: ARG001
            return [y[1], -p["stiffness"] * y[0] - side * p["limit"] / (1 + p["delta"] * abs(y[1] - p["belt"]))]

        return field

    def caught(t, y):  # noqa: ARG001
        return y[1] - p["belt"]

    caught.terminal = True
    t, x, v, q = 0.0, p["position"], 0.0, np.zeros(len(times))
    while t < t1:
        side = np.sign(v - p["belt"])
        if side == 0:  # sticks: closed form
            until = min(t1, t + max(0.0, p["limit"] / p["stiffness"] - x) / p["belt"])
            inside = (times >= t) & (times <= until)
            q[inside] = x + p["belt"] * (times[inside] - t)
            x, t, side, v = x + p["belt"] * (until - t), until, -1.0, p["belt"] * (1 - 1e-12)
            if t >= t1:
                break
        options = {"events": caught, "rtol": rtol, "atol": 1e-3 * rtol, "dense_output": True}
        part = solve_ivp(slip(side), (t, t1), [x, v], "DOP853", **options)
        inside = (times >= t) & (times <= part.t[-1])
        q[inside] = part.sol(times[inside])[0]
        t, x, v = part.t[-1], part.y[0, -1], p["belt"]
    return q


def compare(name: str, model, by_scipy, times: np.ndarray, reference: np.ndarray) -> None:
    """Print times and errors of the three."""
    t1 = float(times[-1])

    def error(q: np.ndarray) -> float:
        return float(np.abs(q - reference).max())

    print(f"{name}, error {WANTED:g}, t1 = {t1:g}")
    for rtol in 10.0 ** np.arange(-4, -12, -0.5):
        run = lambda: carom.solve(*model, t1, rtol=rtol, atol=1e-3 * rtol)
        solution = run()
        found = error(solution.at(times)[0][:, 0])
        if found <= WANTED:
            break
    ours = best_of(run, REPEATS)
    label = f"  carom.solve, rtol {rtol:.0e}, {solution.stats['accepted']} steps"
    print(f"{label}: {1e3 * ours:.2f} ms, error {found:.1e}")
    for rtol in 10.0 ** np.arange(-4, -13, -0.5):
        found = error(by_scipy(t1, times, rtol))
        if found <= WANTED:
            break
    scipy = best_of(lambda: by_scipy(t1, times, rtol), REPEATS)
    label = f"  SciPy DOP853 with events, rtol {rtol:.0e}"
    print(f"{label}: {1e3 * scipy:.2f} ms, error {found:.1e}, {scipy / ours:.2f} times as long")
    errors = []
    for h in STEPS:
        run = lambda h=h: carom.simulate(*model, carom.MoreauMidpoint(), t1=t1, h=h)
        errors.append(error(run().at(times)[0][:, 0]))
    slope = carom.measures.observed_order(np.array(STEPS), errors)
    needed = STEPS[-1] * (WANTED / errors[-1]) ** (1 / max(slope, 1.0))
    moreau = best_of(run, 2) * STEPS[-1] / needed
    label = f"  Moreau midpoint, error {errors[-1]:.1e} at h = {STEPS[-1]:g}, slope {slope:.2f}"
    print(f"{label}: would need {moreau:.3g} s, {moreau / ours:.3g} times as long")


def main() -> None:
    times = np.linspace(0.0, 4.9137, 200)
    for name, data in OSCILLATORS.items():
        p = DEFAULTS | data
        model = carom.models.oscillator_with_stop(**data)
        reference = exact.oscillator_with_stop(times, **data)[0]
        compare(name, model, lambda *given, p=p: oscillator_by_scipy(p, *given), times, reference)
    times = np.linspace(0.0, 30.0, 200)
    model = carom.models.block_on_belt()
    p = {"stiffness": 1.0, "limit": 1.0, "delta": 3.0, "belt": 0.2, "position": 0.62}
    reference = carom.solve(*model, 30.0, rtol=1e-12, atol=1e-14).at(times)[0][:, 0]
    compare("block on belt", model, lambda *given: belt_by_scipy(p, *given), times, reference)


if __name__ == "__main__":
    main()
