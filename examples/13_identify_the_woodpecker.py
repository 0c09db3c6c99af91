"""Friction and restitution of the woodpecker toy from a noisy film of one cycle, through impacts, stick and slip."""

import numpy as np

import carom

NOISE = np.array([1e-4, 2e-3])  # m, rad


def film(q):
    """What a camera sees: the height of the sleeve and the angle of the bird."""
    return q[np.array([0, 2])]


def main(picture=None):
    true = {"friction": 0.3, "beak_restitution": 0.5}
    method, stepping = carom.EventCapturing(carom.explicit(5)), carom.Adaptive(1e-7, 1e-9)
    times = np.linspace(0.002, 0.15, 75)
    exact = carom.simulate(*carom.models.woodpecker(), method, t1=0.15, stepping=stepping, save_at=times).q[:, [0, 2]]
    data = exact + NOISE * np.random.default_rng(0).normal(size=exact.shape)
    guess = {"friction": 0.29, "beak_restitution": 0.45}
    more = {"bounds": {"friction": (0.2, 0.4), "beak_restitution": (0.0, 1.0)}, "max_steps": 1024}
    found = carom.identify(
        carom.models.woodpecker, guess, data, method, times=times, observe=film, sigma=NOISE, stepping=stepping, **more
    )
    for name, (low, high) in found.intervals.items():
        print(f"{name:18} {found.parameters[name]:.5f}, between {low:.5f} and {high:.5f}, in truth {true[name]}")
    if picture is not None:
        carom.plots.fit(found).savefig(picture)
    return found.parameters["beak_restitution"]


if __name__ == "__main__":
    main(picture="woodpecker.png")
