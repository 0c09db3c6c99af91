"""Friction and restitution of the woodpecker toy from the noisy angle of the bird, through impacts, stick and slip."""

import numpy as np

import carom


def bird(q):
    """What a camera sees: the angle of the bird."""
    return q[2]


def main(noise=0.002, picture=None):
    true = {"friction": 0.3, "beak_restitution": 0.5}
    method, stepping = carom.EventCapturing(carom.explicit(5)), carom.Adaptive(1e-7, 1e-9)
    times = np.linspace(0.002, 0.3, 120)
    exact = carom.simulate(*carom.models.woodpecker(), method, t1=0.3, stepping=stepping, save_at=times).q[:, 2]
    data = exact + noise * np.random.default_rng(0).normal(size=exact.shape)
    guess = {"friction": 0.28, "beak_restitution": 0.45}
    more = {"times": times, "stepping": stepping, "observe": bird, "bounds": {"beak_restitution": (0.0, 1.0)}}
    found = carom.identify(carom.models.woodpecker, guess, data, method, **more)
    for name, (low, high) in found.intervals.items():
        print(f"{name:18} {found.parameters[name]:.5f}, between {low:.5f} and {high:.5f}, in truth {true[name]}")
    if picture is not None:
        carom.plots.fit(found).savefig(picture)
    return found.parameters["beak_restitution"]


if __name__ == "__main__":
    main(picture="woodpecker.png")
