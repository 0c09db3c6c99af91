"""A bouncing ball through its accumulation of impacts: order p, and at rest after t = 3 [Acary2012 Example 1]."""

import numpy as np

import carom


def main() -> dict[float, float]:
    ball, state = carom.models.bouncing_ball()
    method = carom.EventCapturing(carom.radau_iia(2))
    errors = {}
    for run in carom.simulate_batch(ball, state, method, t1=4.9, h=[0.1, 0.05, 0.025]):
        error = np.abs(run.q[:, 0] - carom.models.exact.bouncing_ball(run.t)[0]).max()
        h = float(run.h.max())
        errors[h] = error
        print(f"h = {h:.3f}: error {error:.1e}, {len(run.events)} events, at rest from t = {run.events.time[-1]:.6f}")
    return errors


if __name__ == "__main__":
    errors = main()
    carom.plots.convergence(list(errors), {"Radau": list(errors.values())}, slopes={"Radau": 3}).savefig("errors.png")
