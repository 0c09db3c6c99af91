"""Fig. 3, and a diagram of work and precision that sets all methods for contact side by side."""

from __future__ import annotations

from functools import partial
from timeit import repeat
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from carom.measures import grid_norm
from carom.methods.base import AbstractMethod
from carom.methods.capturing.event_capturing import EventCapturing
from carom.methods.moreau.extrapolated import Extrapolated
from carom.methods.moreau.moreau_midpoint import MoreauMidpoint
from carom.methods.moreau.moreau_theta import MoreauTheta
from carom.papers.acary2012.common import BALL, OSCILLATOR, PRELOADED, T1, Example, grid
from carom.papers.claims import Claim
from carom.plots import canvas, styled
from carom.plots.convergence import MARKERS
from carom.running.batch import simulate_batch
from carom.running.run import simulate
from carom.solution import Solution
from carom.stepping.step_halving import StepHalving
from carom.stepping.switching import Switching
from carom.tableaux import lobatto_iiia, radau_iia

TOLERANCES = [10.0**-k for k in range(2, 10)]
SHORTEST = [10.0**-k for k in range(4, 11)]  # h_min, and the tolerance that goes with it
CAPTURING = [radau_iia(2), radau_iia(3), lobatto_iiia(4)]
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
        adaptive = halved(example, TOLERANCES[:6])
        for name, runs, line in (("constant steps", constant, "-X"), ("step halving", adaptive, "-P")):
            errors = [grid_norm(run.q[:, 0] - example.exact(run.t)[0], run.h) for run in runs]
            place.loglog([run.stats["evaluations"] for run in runs], errors, line, label=name)
        place.set(xlabel="evaluations of (16)", ylabel="L1 error of $q$", title=example.name)
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


def curves(example: Example) -> dict[str, Points]:
    """Evaluations, time (compiled, the best of three runs) and error of every method."""
    model = example.model

    def point(method: AbstractMethod, **how: Any) -> tuple[float, float, float]:
        run = partial(simulate, *model, method, t1=T1, **how)
        solution = run()
        error = max(example.position_error(solution), 1e-16)
        return solution.stats["evaluations"], min(repeat(run, number=1, repeat=3)), error

    moreau, midpoint = MoreauTheta(0.5, 1.0), MoreauMidpoint()
    searches = [(Extrapolated(midpoint, max_order=6, atol=h, rtol=0.0), Switching(h, 0.05)) for h in SHORTEST]
    found = {
        "Moreau": [point(moreau, h=h) for h in 0.05 * 0.25 ** np.arange(6)],
        "Moreau, step halving": [point(moreau, stepping=StepHalving(tol, 0.0, first=0.05)) for tol in TOLERANCES],
        "Moreau, switching + extrapolated": [point(method, stepping=stepping) for method, stepping in searches],
    }
    for tableau in CAPTURING:
        name = f"event capturing, {tableau.name}, order {tableau.order}"
        found[name] = [point(EventCapturing(tableau), h=h) for h in grid(6)]
    return found


@styled
def work_precision() -> tuple[list[Claim], Figure]:
    """Error against evaluations and against time, six methods on three problems."""
    figure, axes = canvas(2, 3, width=12.0, height=7.4)
    claims = []
    for example, column in zip((BALL, OSCILLATOR, PRELOADED), np.transpose(axes)):
        found = curves(example)
        for name, marker in zip(found, MARKERS):
            for place, cost in zip(column, (0, 1)):
                points = np.array(found[name])
                place.loglog(points[:, cost], points[:, 2], f"-{marker}", label=name)
        column[0].set(title=example.name, xlabel="evaluations", ylim=(1e-15, 1.0))
        column[1].set(xlabel="seconds, compiled", ylim=(1e-15, 1.0))
        claims += _comparison(example, found)
    for place in axes[:, 0]:
        place.set_ylabel("largest error of $q$")
    for place in axes[:, 1:].flat:
        place.tick_params(labelleft=False)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return claims, figure


def _comparison(example: Example, found: dict[str, Points]) -> list[Claim]:
    """The best form of Moreau's scheme against the best tableau of event capturing."""
    forms, tableaux = list(found.values())[:3], list(found.values())[3:]
    ratio = min(evaluations_for(points, 1e-8) for points in forms)
    ratio /= min(evaluations_for(points, 1e-8) for points in tableaux)
    gain = min(e for points in forms for *_, e in points) / min(e for points in tableaux for *_, e in points)
    note = "carom's own comparison: the best form of Moreau's scheme over the best event capturing"
    claims = [Claim(f"smallest errors, {example.name}", "> 1", gain, gain > 1, note)]
    if example is not BALL:  # Moreau's scheme is exact on parabolas, too
        claims.append(Claim(f"evaluations for an error of 1e-8, {example.name}", "> 1", ratio, ratio > 1, note))
    return claims


def evaluations_for(points: Points, error: float) -> float:
    """Evaluations at which a curve reaches the error, straight between its points in logarithms; infinite if never."""
    work, _, errors = np.log(np.array(points)).T
    best = np.minimum.accumulate(errors)
    if best[-1] > np.log(error):
        return np.inf
    return float(np.exp(np.interp(-np.log(error), -best, work)))
