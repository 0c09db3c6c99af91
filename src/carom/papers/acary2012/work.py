"""Fig. 3, and a diagram of work and precision that sets all methods for contact side by side."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from carom.batch import simulate_batch
from carom.measures import grid_norm
from carom.methods import EventCapturing, Extrapolated, MoreauMidpoint, MoreauTheta
from carom.papers.acary2012.common import BALL, OSCILLATOR, PRELOADED, T1, Example, grid
from carom.papers.claims import Claim
from carom.plots import canvas, styled
from carom.run import simulate
from carom.solution import Solution
from carom.stepping import StepHalving, Switching
from carom.tableaux import lobatto_iiia, radau_iia

TOLERANCES = [10.0**-k for k in (2, 3, 4, 5, 6, 7)]
Points = list[tuple[float, float, float]]  # evaluations, seconds, error


def halved(example: Example, tolerances: list[float], t1: float = 5.0) -> list[Solution]:
    """Moreau's scheme under step halving with the paper's factors."""
    steppings = [StepHalving(atol, 0.0, first=0.05) for atol in tolerances]
    return simulate_batch(*example.model, MoreauTheta(0.5, 1.0), t1=t1, stepping=steppings)


@styled
def fig3() -> tuple[list[Claim], Figure]:
    """Precision and work of step halving (Fig. 3)."""
    figure, axes = canvas(1, 2, width=9.5, height=4.2)
    claims = []
    for example, place in zip((BALL, OSCILLATOR), axes[0]):
        steps = list(0.9137 * 0.5 ** np.arange(5, 13))
        constant = simulate_batch(*example.model, MoreauTheta(0.5, 1.0), t1=5.0, h=steps)
        adaptive = halved(example, TOLERANCES)
        for name, runs in (("constant steps", constant), ("step halving", adaptive)):
            errors = [grid_norm(run.q[:, 0] - example.exact(run.t)[0], run.h) for run in runs]
            place.loglog([run.stats["evaluations"] for run in runs], errors, "o-", label=name)
        place.set(xlabel="evaluations of (16)", ylabel="L1 error of q", title=example.name)
        place.legend()
        best = _evaluations_for(adaptive, example, 1e-5)
        note = "carom's own bound; rejected attempts counted"
        if example is BALL:
            claims.append(Claim("evaluations for an L1 error of 1e-5, ball", "< 2000", best, best < 2000, note))
    return claims, figure


def _evaluations_for(runs: list[Solution], example: Example, error: float) -> float:
    good = [
        run.stats["evaluations"] for run in runs if grid_norm(run.q[:, 0] - example.exact(run.t)[0], run.h) <= error
    ]
    return min(good, default=np.inf)


def _point(example: Example, run: Callable[[], Solution]) -> tuple[float, float, float]:
    """Evaluations, time of the second call (compiled), and error."""
    run()
    solution = run()
    return solution.stats["evaluations"], solution.stats["seconds"], max(example.position_error(solution), 1e-16)


def _curves(example: Example) -> dict[str, Points]:
    """Work and error of every method."""
    model = example.model

    def fixed(method, h):
        return _point(example, lambda: simulate(*model, method, t1=T1, h=h))

    def stepped(method, stepping):
        return _point(example, lambda: simulate(*model, method, t1=T1, stepping=stepping))

    capture = {f"event capturing, {tab.name}": tab for tab in (radau_iia(2), radau_iia(3), lobatto_iiia(4))}
    curves = {name: [fixed(EventCapturing(tab), h) for h in grid(5)] for name, tab in capture.items()}
    curves["Moreau theta"] = [fixed(MoreauTheta(0.5, 1.0), h) for h in 0.05 * 0.25 ** np.arange(5)]
    curves["step halving"] = [stepped(MoreauTheta(0.5, 1.0), StepHalving(tol, 0.0, first=0.05)) for tol in TOLERANCES]
    extrapolated = Extrapolated(MoreauMidpoint(), max_order=6, atol=1e-9, rtol=0.0)
    curves["switching + extrapolated"] = [stepped(extrapolated, Switching(least, 0.05)) for least in (1e-4, 1e-6, 1e-8)]
    return curves


@styled
def work_precision() -> tuple[list[Claim], Figure]:
    """Error against evaluations and against time, six methods on three problems."""
    figure, axes = canvas(2, 3, width=12.0, height=7.2)
    claims = []
    for example, column in zip((BALL, OSCILLATOR, PRELOADED), np.transpose(axes)):
        curves = _curves(example)
        for name, points in curves.items():
            _draw(column, name, np.array(points))
        column[0].set(title=example.name, xlabel="evaluations", ylabel="largest error of q")
        column[1].set(xlabel="seconds, compiled", ylabel="largest error of q")
        high = min(e for _, _, e in curves["event capturing, lobatto_iiia(4)"])
        low = min(e for _, _, e in curves["Moreau theta"])
        note = "carom's own comparison"
        claims.append(Claim(f"event capturing is the most precise, {example.name}", "yes", high, high < low, note))
    axes[0, 0].legend(fontsize=7)
    return claims, figure


def _draw(column: list[Axes], name: str, points: np.ndarray) -> None:
    for axes, cost in zip(column, (points[:, 0], points[:, 1])):
        axes.loglog(cost, points[:, 2], "o-", label=name)
