"""Fig. 2 and Propositions 1 to 3: global and local orders of Moreau's scheme."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from carom.batch import simulate_batch
from carom.measures import filled_graph, graph_distance, grid_norm, local_error, observed_order
from carom.methods import EventCapturing, MoreauTheta
from carom.models import mass_on_sphere
from carom.papers.acary2012.common import BALL, OSCILLATOR, Example
from carom.papers.claims import Claim, within
from carom.plots import canvas, convergence, styled
from carom.run import simulate
from carom.tableaux import gauss

STEPS = 0.9137 * 0.5 ** np.arange(5, 15)
WINDOWS = {"L1": (0.8, 1.1), "Hausdorff": (0.6, 1.15), "L2": (0.25, 0.65), "uniform": (-np.inf, 0.25)}
GRAPH_STEPS = 3e-4  # smaller ones cost much and show nothing new


def norm_errors(example: Example, steps: np.ndarray = STEPS, t1: float = 5.0) -> dict[str, list[float]]:
    """Errors of the velocities by norm, for (theta, forecast) = (1/2, 1)."""
    runs = simulate_batch(*example.model, MoreauTheta(0.5, 1.0), t1=t1, h=list(steps))
    errors = [run.v[:, 0] - example.exact(run.t)[1] for run in runs]
    found = {
        name: [grid_norm(e, h, p) for e, h in zip(errors, steps)]
        for name, p in (("L1", 1.0), ("L2", 2.0), ("uniform", np.inf))
    }
    wanted = example.velocity_graph(t1)
    coarse = [run for run, h in zip(runs, steps) if h > GRAPH_STEPS]
    return found | {"Hausdorff": [graph_distance(filled_graph(run.t, run.v), wanted) for run in coarse]}


@styled
def fig2() -> tuple[list[Claim], Figure]:
    """Empirical order of Moreau's scheme in four norms (Fig. 2)."""
    figure, axes = canvas(1, 2, width=9.5, height=4.2)
    claims = []
    for example, place in zip((BALL, OSCILLATOR), axes[0]):
        errors = norm_errors(example)
        for name, (low, high) in WINDOWS.items():
            slope = observed_order(STEPS[: len(errors[name])], errors[name])
            claims.append(within(f"slope of the {name} error, {example.name}", low, high, slope, _said(name)))
        padded = {name: np.array([*e, *[np.nan] * (len(STEPS) - len(e))]) for name, e in errors.items()}
        convergence(STEPS, padded, slopes={"L1": 1.0}, axes=place)
        place.set(title=example.name, ylabel="error of $v$")
    return claims, figure


def _said(name: str) -> str:
    return "the paper: near 1" if name in ("L1", "Hausdorff") else "the paper: no uniform convergence"


def corrected_25(
    q: float, v: float, h: float, sigma: float, theta: float, impulse: bool, f: float = -2.0, rho: float = 0.5
) -> tuple[float, float]:
    """(e_q, e_v) of (25), with the signs of the errata."""
    inner = rho * sigma * (1 - sigma) - 0.5 * (1 - sigma) ** 2
    if impulse:
        e_q = -q - h * ((1 + rho) * (1 - theta) - rho * sigma) * v - f * h**2 * inner
        return e_q, h * f * (1 - sigma - rho * sigma)
    e_q = -q - h * (rho * (1 - sigma) + 1) * v - f * h**2 * (inner + theta)
    return e_q, -(1 + rho) * (v + h * f * sigma)


def defect_of_25(theta: float, forecast: float) -> float:
    """Largest difference between local errors of the ball at its first impact and (25) corrected."""
    worst = 0.0
    for h, sigma in ((0.2, 0.3), (0.1, 0.7), (0.05, 0.4)):
        t = 1.0 - sigma * h
        found = local_error(BALL.model[0], MoreauTheta(theta, forecast), BALL.exact, t, h)
        q, v = (float(x) for x in BALL.exact(t))
        wanted = corrected_25(q, v, h, sigma, theta, forecast == 1.0)
        worst = max(worst, float(np.abs(np.ravel(found) - wanted).max()))
    return worst


def impact_orders(forecast: float) -> tuple[float, float]:
    """Local orders of (q, v) over the first impact of the oscillator."""
    steps = 0.1 * 0.5 ** np.arange(6)
    method, hit = MoreauTheta(0.5, forecast), OSCILLATOR.impacts[0]
    e = [np.ravel(local_error(OSCILLATOR.model[0], method, OSCILLATOR.exact, hit - 0.37 * h, h)) for h in steps]
    orders = [observed_order(steps, np.abs(column)) for column in np.transpose(e)]
    return orders[0], orders[1]


def persistent_order() -> float:
    """Local order of v on a sphere, in persistent contact, for theta = 1.

    With theta < 1 the directions belong to q_{k+theta}, v_{k+1} is tangent there, and a curved surface has order 1.
    """
    model = mass_on_sphere(angle=0.5)
    steps = [0.16, 0.08, 0.04, 0.02]
    fine = simulate(*model, EventCapturing(gauss(3), projection=True), t1=0.3, h=0.01)
    rows = {round(t, 9): i for i, t in enumerate(fine.t)}

    def exact(t: float) -> tuple[np.ndarray, np.ndarray]:
        row = rows[round(t, 9)]
        return fine.q[row] * (1 - 1e-13), fine.v[row]  # closed, whatever the rounding

    errors = [np.abs(local_error(model[0], MoreauTheta(1.0, 1.0), exact, 0.1, h)[1]).max() for h in steps]
    return observed_order(steps, errors)


@styled
def propositions() -> tuple[list[Claim], Figure | None]:
    """Local orders of Moreau's scheme: (25), Propositions 1 to 3."""
    (q_seen, v_seen), (q_missed, v_missed) = impact_orders(1.0), impact_orders(0.0)
    defect = max(defect_of_25(theta, forecast) for theta in (0.5, 0.8) for forecast in (0.0, 1.0))
    claims = [
        Claim("local errors (25), signs corrected", "0", defect, defect < 1e-13, "largest difference"),
        within("order of e_q at an impact (Prop. 1)", 0.85, 1.15, q_seen, "the paper: 1"),
        within("order of e_q at a missed impact (Prop. 1)", 0.85, 1.15, q_missed, "the paper: 1"),
        within("order of e_v at a forecast impact (Prop. 3)", 0.85, 1.15, v_seen, "the paper: 1"),
        within("order of e_v at a missed impact (Prop. 3)", -0.15, 0.15, v_missed, "the paper: 0"),
        within("order of e_v in persistent contact (Prop. 2)", 1.8, 4.0, persistent_order(), "the paper: 2; theta = 1"),
    ]
    return claims, None
