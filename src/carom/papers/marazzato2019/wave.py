"""Figs 14 to 16: a wave from a fast into a slow medium."""

from __future__ import annotations

import warnings

import numpy as np
from matplotlib.figure import Figure

from carom.measures import observed_order
from carom.methods.pseudo_energy.asynchronous import AsynchronousPseudoEnergy
from carom.methods.pseudo_energy.pseudo_energy import PseudoEnergy
from carom.methods.stability import StabilityWarning
from carom.models.media import inhomogeneous_wave, inhomogeneous_wave_exact
from carom.papers.claims import Claim, number, within
from carom.plots import canvas, styled
from carom.plots.style import COLOURS
from carom.running.run import simulate
from carom.solution import Solution

RATIO = 10
FACTOR = "v0 with the factor 80; the printed 8 does not make a wave that moves to the right"


def run(n: int, courant: float, shift: int = 0, save_every: int = 10**9) -> Solution:
    """Asynchronous, with h_S = courant dx and h_F a tenth of it; warnings are left to the caller."""
    method = AsynchronousPseudoEnergy("layer 0", RATIO, shift=shift)
    return simulate(*inhomogeneous_wave(n), method, t1=0.5, h=courant / n, save_every=save_every)


def error(solution: Solution) -> float:
    """Largest distance from the exact solution at the end."""
    n = solution.q.shape[1] + 1
    return float(np.max(np.abs(solution.q[-1] - inhomogeneous_wave_exact(np.arange(1, n) / n, 0.5))))


@styled
def fig14() -> tuple[list[Claim], Figure]:
    """Displacements at six times, numerical and exact (Fig. 14), and the paper's own steps."""
    n = 2000
    good = run(n, 0.5, save_every=200)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bad, moved = run(n, 1.0), run(n, 1.0, shift=1)
    told = any("resonance" in str(w.message) for w in caught if issubclass(w.category, StabilityWarning))
    claims = [
        within("error at h_S = 0.5 dx", 0.0, 2.2e-3, error(good), FACTOR),
        Claim(
            "the paper's steps, h_S = dx, h_F = 0.1 dx", "matches very well", error(bad), error(bad) < 1e-2, "unstable"
        ),
        Claim("carom warns of them before the run", "-", "yes" if told else "no", told),
        within("the same steps, mixed node moved one cell", 0.0, 4.2e-5, error(moved), "shift=1"),
    ]
    figure, axes = canvas(2, 3, width=13.0)
    x = np.arange(1, n) / n
    exact = [inhomogeneous_wave_exact(x, t) for t in good.t[::2]]
    _beside(axes, x, good.t[::2], exact, good.q[::2], "$u$")
    return claims, figure


@styled
def fig15() -> tuple[list[Claim], Figure]:
    """Velocities at six times, numerical and exact (Fig. 15)."""
    n, dt = 2000, 1e-6
    moved = _quiet(n, 1.0, shift=1)
    x = np.arange(1, n) / n

    def exact(t: float) -> np.ndarray:
        return (inhomogeneous_wave_exact(x, t + dt) - inhomogeneous_wave_exact(x, t - dt)) / (2 * dt)

    rates = [exact(t) for t in moved.t]
    distance = float(np.max(np.abs(moved.v[-1] - rates[-1])))
    claims = [
        within("largest error of the velocity over its largest value", 0.0, 0.05, distance / np.max(np.abs(rates[-1])))
    ]
    figure, axes = canvas(2, 3, width=13.0)
    _beside(axes, x, moved.t, rates, moved.v, "$u_t$")
    return claims, figure


def _beside(
    axes: np.ndarray, x: np.ndarray, t: np.ndarray, exact: list[np.ndarray], found: np.ndarray, what: str
) -> None:
    """One panel per time: the exact curve under the numerical one."""
    for ax, time, wide, thin in zip(axes.ravel(), t, exact, found):
        ax.plot(x, wide, color=COLOURS["grey"], linewidth=2.6, alpha=0.7, label="exact")
        ax.plot(x, thin, linewidth=0.9, label="carom")
        ax.set_title(f"t = {time:g}")
    for ax in axes[-1]:
        ax.set_xlabel("$x$")
    for ax in axes[:, 0]:
        ax.set_ylabel(what)
    axes[0, 0].legend()


@styled
def fig16() -> tuple[list[Claim], Figure]:
    """Error over force evaluations, asynchronous and synchronous (Fig. 16)."""
    sizes = [1000, 2000, 4000]
    slow = [run(n, 0.5) for n in sizes]
    fine = [simulate(*inhomogeneous_wave(n), PseudoEnergy(), t1=0.5, h=0.05 / n, save_every=10**9) for n in sizes]
    errors = [[error(s) for s in runs] for runs in (slow, fine)]
    counts = [[s.stats["evaluations"] for s in runs] for runs in (slow, fine)]
    slope = observed_order(1 / np.array(counts[0], float), errors[0])
    claims = [
        number("evaluations, asynchronous over synchronous, N = 2000", 0.55, counts[0][1] / counts[1][1], 0.01),
        within("asynchronous over synchronous error", 0.5, 1.0, errors[0][1] / errors[1][1], "similar, says the paper"),
        within("order in evaluations; the paper says 1", 0.7, 1.1, slope, "between N = 1000 and 4000"),
    ]
    figure, axes = canvas()
    for name, e, c in zip(("asynchronous", "synchronous"), errors, counts):
        axes[0, 0].loglog(c, e, "o-", label=name)
    axes[0, 0].set(xlabel="force evaluations", ylabel="error at t = 0.5")
    axes[0, 0].legend()
    return claims, figure


def _quiet(n: int, courant: float, shift: int) -> Solution:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)
        return run(n, courant, shift, save_every=200)
