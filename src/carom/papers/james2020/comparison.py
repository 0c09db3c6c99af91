"""Figs 10 and 11: numerical dissipation against direct discretisation, over the damping constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from carom.models.granular import dimer_chain
from carom.papers.claims import Claim
from carom.papers.james2020 import common
from carom.plots import COLOURS, canvas, styled
from carom.solution import Solution

T1 = 30.0
_CN_V, _CN_W, _GL_V, _GL_W = common.DIRECT.values()
GAUSS = {"IRK": common.TAILORED, "GL (x, w)": _GL_W, "GL (x, v)": _GL_V}
TRAPEZOIDAL = {"theta": common.THETA, "CN (x, w)": _CN_W, "CN (x, v)": _CN_V}
LINES = ("ink", "red", "blue")


def reference_over_damping(damping: common.Numbers) -> list[Solution]:
    """Reference solutions of the dimer chain (ratio 0.59, N = 25), kept at multiples of 0.01; error about 1e-9."""
    systems = [dimer_chain(damping=float(g))[0] for g in damping]
    return common.references(systems, dimer_chain()[1], T1, 2e-3, 0.01)


def errors_over_damping(
    schemes: Mapping[str, common.Scheme],
    damping: common.Numbers,
    h: float | common.Numbers,
    reference: Sequence[Solution],
) -> dict[str, np.ndarray]:
    """Global error of every scheme, one batch per scheme; h is a number or one per damping."""
    systems, state = [dimer_chain(damping=float(g))[0] for g in damping], dimer_chain()[1]
    steps = [float(x) for x in np.broadcast_to(h, len(systems))]
    runs = {name: common.run(scheme, systems, state, T1, steps) for name, scheme in schemes.items()}
    return {name: common.largest_errors(sols, reference) for name, sols in runs.items()}


def share(errors: Mapping[str, np.ndarray], name: str, where: np.ndarray, *, best: bool, slack: float = 0.0) -> float:
    """The fraction of the dampings `where` at which a scheme has the smallest (else largest) error, up to a slack."""
    others = np.stack([e for other, e in errors.items() if other != name])
    if best:
        wins = errors[name] <= (1 + slack) * others.min(axis=0)
    else:
        wins = errors[name] >= (1 - slack) * others.max(axis=0)
    return float(np.mean(wins[where]))


def statement(what: str, paper: str, fraction: float, note: str = "") -> Claim:
    """A claim of the form "scheme X is best on this interval"."""
    return Claim(what, paper, f"true at {100 * fraction:.0f} % of the grid", fraction == 1.0, note)


def inside(damping: np.ndarray, low: float, high: float) -> np.ndarray:
    """Grid points in a closed interval."""
    return (damping >= low - 1e-9) & (damping <= high + 1e-9)


@styled
def draw(damping: np.ndarray, panels: Mapping[float, Mapping[str, np.ndarray]]) -> Figure:
    """Global error over damping: linear at the large step, logarithmic at the small one."""
    figure, grid = canvas(1, 2, width=10.5, height=4.2)
    for axes, (h, errors) in zip(grid[0], panels.items()):
        for colour, (name, error) in zip(LINES, errors.items()):
            axes.plot(damping, error, color=COLOURS[colour], label=name)
        axes.set(xlabel="damping $\\gamma$", ylabel="global error", title=f"h = {h:g}")
        axes.legend()
    grid[0, 1].set_yscale("log")
    return figure


def fig10() -> tuple[list[Claim], Figure]:
    """IRK against the two GL schemes over the damping (Fig. 10)."""
    damping = np.arange(101) / 1000
    reference = reference_over_damping(damping)
    panels = {h: errors_over_damping(GAUSS, damping, h, reference) for h in (0.5, 0.05)}
    large, small = panels[0.5], panels[0.05]
    tie = "near-tie: a GL scheme is ahead by at most 3 % at .007, .021-.025 and .027 (ERRATA)"
    top = [float(np.abs(r.q).max()) for r in reference]
    gap = max(float(e[0]) for e in large.values()) / min(float(e[0]) for e in large.values()) - 1
    claims = [
        statement(
            "h = 0.5: IRK has the smallest error",
            "on [.007, .057]",
            share(large, "IRK", inside(damping, 0.007, 0.057), best=True),
            tie,
        ),
        statement(
            "h = 0.5: IRK within 3 % of the smallest error",
            "on [.007, .057]",
            share(large, "IRK", inside(damping, 0.007, 0.057), best=True, slack=0.03),
        ),
        statement(
            "h = 0.5: GL (x, v) has the smallest error",
            "on [.062, .1]",
            share(large, "GL (x, v)", inside(damping, 0.062, 0.1), best=True),
            "already from .058",
        ),
        Claim("h = 0.5: the errors at damping 0", "equal", f"within {gap:.1e}", gap < 1e-6),
        statement(
            "h = 0.05: IRK has the largest error", "above .013", share(small, "IRK", damping > 0.0135, best=False)
        ),
        statement(
            "h = 0.05: GL (x, w) beats GL (x, v)",
            "in a bounded interval away from 0",
            float(np.mean((small["GL (x, w)"] < small["GL (x, v)"])[damping > 0.0135])),
            "above .013",
        ),
        Claim(
            "sup norm of the reference over the damping",
            "2.94 to 2.06",
            f"{top[0]:.2f} to {top[-1]:.2f}",
            abs(top[0] - 2.94) < 0.006 and abs(top[-1] - 2.06) < 0.006,
        ),
    ]
    return claims, draw(damping, panels)


def fig11() -> tuple[list[Claim], Figure]:
    """The theta method against the two CN schemes over the damping (Fig. 11)."""
    damping = np.arange(101) / 500
    reference = reference_over_damping(damping)
    panels = {h: errors_over_damping(TRAPEZOIDAL, damping, h, reference) for h in (0.25, 0.01)}
    large, small = panels[0.25], panels[0.01]
    outside = ~inside(damping, 0.11, 0.178) & (damping > 0)
    low = "CN (x, v) is the largest also at .002-.004 and .016-.024, by little (ERRATA)"
    claims = [
        statement(
            "h = 0.25: CN (x, v) has the largest error",
            "on [.11, .178]",
            share(large, "CN (x, v)", inside(damping, 0.11, 0.178), best=False),
        ),
        statement(
            "h = 0.25: theta has the largest error", "elsewhere", share(large, "theta", outside, best=False), low
        ),
        statement(
            "h = 0.25: theta within 3 % of the largest error",
            "elsewhere",
            share(large, "theta", outside, best=False, slack=0.03),
        ),
        statement(
            "h = 0.25: theta has the smallest error", "nowhere", 1 - share(large, "theta", damping > 0, best=True)
        ),
        statement(
            "h = 0.25: CN (x, w) has the smallest error",
            "above .08",
            share(large, "CN (x, w)", damping > 0.081, best=True),
        ),
        statement(
            "h = 0.01: CN (x, w) has the smallest error",
            "above .05",
            share(small, "CN (x, w)", damping > 0.051, best=True),
        ),
    ]
    return claims, draw(damping, panels)
