"""Figs 10 to 13: the chain with a stiff and a soft half, asynchronous."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from carom.measures import observed_order
from carom.methods.pseudo_energy.asynchronous import AsynchronousPseudoEnergy
from carom.methods.pseudo_energy.pseudo_energy import PseudoEnergy
from carom.methods.stability import stability_limit
from carom.models.media import slow_fast_chain
from carom.papers.claims import Claim, number, within
from carom.papers.marazzato2019.particles import over_steps, relative_drift
from carom.plots import canvas, styled
from carom.running.batch import simulate_batch
from carom.solution import Solution
from carom.systems.system import System

QUADRATURE = "lobatto-5"
START = "initial data are carom's, the paper prints none"


def asynchronous(ratio: int, h: Sequence[float], t1: float) -> list[Solution]:
    """Runs with slow steps h."""
    method = AsynchronousPseudoEnergy("stiff", ratio, QUADRATURE)
    return simulate_batch(*slow_fast_chain(3), method, t1=t1, h=list(h))


def synchronous(h: Sequence[float], t1: float) -> list[Solution]:
    """Runs with one step for all."""
    return simulate_batch(*slow_fast_chain(3), PseudoEnergy(QUADRATURE), t1=t1, h=list(h))


def distances(ratio: int, h: Sequence[float], t1: float = 1.0) -> np.ndarray:
    """Largest distance of positions between the asynchronous scheme and the synchronous one at the fast step."""
    pairs = zip(asynchronous(ratio, h, t1), synchronous([x / ratio for x in h], t1))
    return np.array([np.max(np.abs(a.q - b.q[::ratio])) for a, b in pairs])


@styled
def fig10() -> tuple[list[Claim], Figure]:
    """Positions: fast particles oscillate with omega, slow ones tamely (Fig. 10)."""
    run = asynchronous(50, [0.01], 100.0)[0]
    turns = np.count_nonzero(np.diff(np.sign(run.v), axis=0), axis=0)
    chain, state = slow_fast_chain(3)
    stiff = System(1.0, {name: chain.potential[name] for name in ("stiff", "stiff end")})
    limit = stability_limit(stiff, state)
    claims = [
        Claim(
            "fast particles turn more often than slow ones",
            "yes",
            f"{turns.tolist()}",
            turns[:3].min() > turns[4:].max(),
        ),
        number(
            "stability limit of the stiff springs, omega^2 = 10", 0.496, limit, 2e-3, "the printed 3e-3 does not fit"
        ),
    ]
    figure, axes = canvas(width=8.0)
    axes[0, 0].plot(run.t[:2000], run.q[:2000] + 1.5 * np.arange(6), linewidth=1.0)
    axes[0, 0].set_yticks(1.5 * np.arange(6), [f"$q_{i}$" for i in range(1, 7)])
    axes[0, 0].set(xlabel="$t$", title=START)
    return claims, figure


@styled
def fig11() -> tuple[list[Claim], Figure]:
    """Pseudo-energy of the asynchronous scheme, and its evaluations (Fig. 11)."""
    run = asynchronous(50, [0.01], 100.0)[0]
    count = run.stats["evaluations"]
    full = 4 * 7 * 500_000
    claims = [
        within("relative change of the pseudo-energy", 0.0, 1e-12, relative_drift(run), START),
        number(
            "ratio of evaluations", 0.58, count / full, 0.01, "the printed counts are 12.5 times their own formulas"
        ),
        number("evaluations by the paper's formula", 4 * 100 * (4 / 2e-4 + 3 / 0.01), count, 1e-12),
    ]
    figure, axes = canvas()
    pseudo = run.account.extra["pseudo_energy"]
    axes[0, 0].plot(run.t, pseudo / pseudo[0] - 1, linewidth=0.8)
    axes[0, 0].set(xlabel="$t$", ylabel=r"$\tilde H / \tilde H^0 - 1$")
    return claims, figure


@styled
def fig12() -> tuple[list[Claim], Figure]:
    """Error over the slow step at a fixed fast one, and over the fast step at a fixed slow one (Fig. 12)."""
    fine = 1e-4
    ratios = [100, 200, 500, 1000]
    reference = synchronous([fine], 1.0)[0]
    slow = [np.max(np.abs(asynchronous(k, [k * fine], 1.0)[0].q - reference.q[::k])) for k in ratios]
    fast = [np.max(np.abs(asynchronous(k, [0.01], 1.0)[0].q - reference.q[::100])) for k in (1, 2, 5, 20, 50)]
    order = observed_order(np.array(ratios) * fine, slow)
    claims = [
        within("order in the slow step; the paper says 2", 1.9, 2.1, order, "h_F = 1e-4"),
        within("error at h_F = h_S / 20 over that at h_S / 50: a plateau", 0.95, 1.05, fast[-2] / fast[-1]),
    ]
    figure, axes = canvas(1, 2, width=10.0)
    over_steps(axes[0, 0], np.array(ratios) * fine, slow)
    axes[0, 0].set(xlabel="$h_S$", ylabel="error", title="$h_F$ = 1e-4")
    over_steps(axes[0, 1], 0.01 / np.array([1, 2, 5, 20, 50]), fast, None)
    axes[0, 1].set(xlabel="$h_F$", title="$h_S$ = 0.01")
    return claims, figure


@styled
def fig13() -> tuple[list[Claim], Figure]:
    """Error at the fixed ratio 25 (Fig. 13)."""
    h = [0.1, 0.05, 0.025, 0.0125]
    errors = distances(25, h)
    claims = [within("order at ratio 25; the paper says 2", 1.9, 2.1, observed_order(h, errors), START)]
    figure, axes = canvas()
    over_steps(axes[0, 0], h, errors)
    axes[0, 0].set(xlabel="$h_S$", ylabel="error")
    return claims, figure
