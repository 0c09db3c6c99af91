"""Figs 1 and 3: one particle, and the Fermi-Pasta-Ulam chain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from carom.measures import observed_order
from carom.methods.pseudo_energy.pseudo_energy import PseudoEnergy
from carom.methods.runge_kutta.explicit_rk import ExplicitRK
from carom.models.media import fermi_pasta_ulam, oscillatory_energy, single_particle
from carom.papers.claims import Claim, number, within
from carom.plots import canvas, styled
from carom.plots.convergence import triangle
from carom.running.batch import simulate_batch
from carom.running.run import simulate
from carom.solution import Solution
from carom.state import Numbers
from carom.tableaux import explicit

POINTS = {"midpoint": 1, "lobatto-3": 2, "lobatto-5": 4}
OMEGA = 50.0


def relative_drift(solution: Solution) -> float:
    """Largest change of the pseudo-energy, relative to its start."""
    pseudo = solution.account.extra["pseudo_energy"]
    return float(np.max(np.abs(pseudo - pseudo[0])) / abs(pseudo[0]))


def over_steps(axes: Axes, h: Numbers, errors: Numbers, slope: float | None = 2.0) -> None:
    """Errors over step sizes on logarithmic axes, ticks at the steps, with a triangle for the slope."""
    h, errors = np.asarray(h, float), np.asarray(errors, float)
    axes.loglog(h, errors, "o-")
    axes.set_xticks(h, [f"{x:.3g}" for x in h])
    axes.xaxis.set_minor_locator(NullLocator())
    if slope is not None:
        triangle(axes, h, errors, slope)


def particle_errors(quadrature: str, counts: Sequence[int]) -> np.ndarray:
    """Mean error over the nodes of t in [0.5, 2.5], for numbers of steps."""
    system, state = single_particle(0.5)
    runs = simulate_batch(system, state, PseudoEnergy(quadrature), t1=2.5, h=[2.0 / n for n in counts])
    return np.array([np.sum(np.abs(s.q[1:, 0] - 1 - np.sin(s.t[1:]) ** 4)) / n for s, n in zip(runs, counts)])


@styled
def fig1() -> tuple[list[Claim], Figure]:
    """Convergence for a single particle over force evaluations (Fig. 1, on t in [0.5, 2.5])."""
    counts = [100, 200, 400, 800, 1600, 3200]
    errors = {name: particle_errors(name, counts) for name in POINTS}
    note = "V with its sign corrected; T = 1000 means nothing, since the force is not Lipschitz at q = 1"
    claims = [
        within(f"order with {name}; the paper says 2", 1.95, 2.05, observed_order(1 / np.array(counts), e), note)
        for name, e in errors.items()
    ]
    at = errors["midpoint"][1] < np.interp(200, POINTS["lobatto-3"] * np.array(counts), errors["lobatto-3"])
    claims.append(Claim("mid-point is the most efficient", "yes", "yes" if at else "no", bool(at)))
    figure, axes = canvas()
    for name, e in errors.items():
        axes[0, 0].loglog(POINTS[name] * np.array(counts), e, "o-", label=name)
    axes[0, 0].set(xlabel="force evaluations", ylabel=r"$\ell_1$ error")
    axes[0, 0].legend()
    return claims, figure


@styled
def fig3() -> tuple[list[Claim], Figure]:
    """Exchange of oscillatory energy in the Fermi-Pasta-Ulam chain, and its pseudo-energy (Fig. 3)."""
    chain, state = fermi_pasta_ulam(3, OMEGA)
    midpoint, gauss = (simulate(chain, state, PseudoEnergy(q), t1=200.0, h=1e-3) for q in ("midpoint", "gauss-2"))
    reference = simulate(chain, state, ExplicitRK(explicit(4)), t1=200.0, h=1e-4, save_every=10)
    energies = oscillatory_energy(OMEGA, gauss.q, gauss.v)
    exact = oscillatory_energy(OMEGA, reference.q, reference.v)
    claims = [
        Claim("drift with the mid-point rule", "machine precision", relative_drift(midpoint), False, "not exact: 6e-7"),
        within("drift with two Gauss points, exact here", 0.0, 1e-12, relative_drift(gauss)),
        number("mean oscillatory energy I", 1.0012, float(energies.sum(1).mean()), 1e-3, "I(0) = 1 up to O(1/omega)"),
        within("largest distance of I_j from RK4 at h = 1e-4, t < 100", 0.0, 0.1, _distance(energies, exact)),
    ]
    figure, axes = canvas(1, 2, width=11.0)
    for ax, run, I in ((axes[0, 0], gauss, energies), (axes[0, 1], reference, exact)):
        ax.plot(run.t[::100], I[::100], label=[f"$I_{j}$" for j in (1, 2, 3)])
        ax.plot(run.t[::100], I[::100].sum(1), label="$I$")
        ax.set(xlabel="$t$", ylim=(0, 2.2))
    axes[0, 0].plot(gauss.t[::100], gauss.account.extra["pseudo_energy"][::100], label=r"$\tilde H$")
    axes[0, 0].set_title("pseudo-energy scheme, h = 1e-3")
    axes[0, 1].set_title("RK4, h = 1e-4")
    axes[0, 0].legend(ncols=3, loc="center", bbox_to_anchor=(0.5, 0.68))
    return claims, figure


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    """Of means over 0.5 time units, while both are comparable."""
    rows = 100_000
    means = [x[:rows].reshape(-1, 500, x.shape[1]).mean(1) for x in (a, b)]
    return float(np.max(np.abs(means[0] - means[1])))
