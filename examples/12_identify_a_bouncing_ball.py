"""Height, gravity and restitution of a bouncing ball from sixty noisy pictures, with confidence intervals."""

import numpy as np

import carom


def main(noise=0.01, picture=None):
    true = {"height": 1.0, "gravity": 9.81, "restitution": 0.7}
    method, stepping = carom.EventCapturing(carom.explicit(5)), carom.Adaptive(1e-8, 1e-10)
    times = np.linspace(0.02, 2.0, 60)
    exact = carom.simulate(*carom.models.bouncing_ball(**true), method, t1=2.0, stepping=stepping, save_at=times).q
    data = exact + noise * np.random.default_rng(0).normal(size=exact.shape)
    guess = {"height": 1.1, "gravity": 9.5, "restitution": 0.75}
    found = carom.identify(carom.models.bouncing_ball, guess, data, method, times=times, stepping=stepping)
    for name, (low, high) in found.intervals.items():
        print(f"{name:12} {found.parameters[name]:.5f}, between {low:.5f} and {high:.5f}, in truth {true[name]}")
    if picture is not None:
        carom.plots.fit(found).savefig(picture)
    return found.parameters["restitution"]


if __name__ == "__main__":
    main(picture="ball.png")
