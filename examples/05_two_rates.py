"""A wave from a fast into a slow medium, each at its own rate [Marazzato2019 sec. 4.3.2]."""

import warnings

import numpy as np

import carom
from carom.models.media import inhomogeneous_wave_exact


def main(n: int = 1000) -> dict[str, np.ndarray]:
    wave, state = carom.models.inhomogeneous_wave(n)
    exact = inhomogeneous_wave_exact(np.arange(1, n) / n, 0.5)
    runs = {
        "one rate": (carom.PseudoEnergy(), 0.05 / n),
        "two rates": (carom.AsynchronousPseudoEnergy("layer 0", ratio=10), 0.5 / n),
        "two rates at the limit": (carom.AsynchronousPseudoEnergy("layer 0", ratio=10, shift=1), 1.0 / n),
    }
    profiles = {"exact": exact}
    for name, (method, h) in runs.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            solution = carom.simulate(wave, state, method, t1=0.5, h=h, save_every=10**6)
        profiles[name] = solution.q[-1]
        error = np.abs(solution.q[-1] - exact).max()
        print(f"{name}: error {error:.1e}, {solution.stats['evaluations']:.2e} spring evaluations")
        for warning in caught:
            print(f"    warned: {warning.message}")
    return profiles


if __name__ == "__main__":
    figure, axes = carom.plots.canvas(width=7.0)
    for name, profile in main().items():
        axes[0, 0].plot(np.linspace(0.0, 1.0, len(profile)), profile, "--" if name == "exact" else "-", label=name)
    axes[0, 0].set(xlabel="place", ylabel="displacement at t = 0.5")
    axes[0, 0].legend()
    figure.savefig("wave.png")
