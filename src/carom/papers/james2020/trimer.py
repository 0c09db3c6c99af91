"""Figs 2, 3 and 6: orders of convergence on the chain of three beads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from carom.models.granular import impact, trimer, unbroken_trimer_state
from carom.papers.claims import Claim, within
from carom.papers.james2020 import common
from carom.plots import COLOURS, canvas, convergence, styled, trajectories
from carom.state import State

BEADS = ("ink", "blue", "green")


class Start(NamedTuple):
    """Initial condition and end of a study."""

    state: State
    t1: float
    damping: float = 0.1


def with_impact() -> Start:
    """(3) with unit impact velocity until t = 5: contacts close and break."""
    return Start(impact(3, 1.0), 5.0)


def without_breaking() -> Start:
    """(19): all beads stay in contact until t = 1.5."""
    return Start(unbroken_trimer_state(), 1.5)


def direct_errors(
    start: Start, h: common.Numbers, node: float, fine: float, only: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Global errors of CN and GL on both forms of the equations, over step sizes (one batch per scheme)."""
    system = trimer(damping=start.damping)[0]
    reference = common.references([system], start.state, start.t1, fine, node)
    schemes = {name: s for name, s in common.DIRECT.items() if not only or name in only}
    runs = {name: common.run(s, [system] * len(h), start.state, start.t1, h) for name, s in schemes.items()}
    return {name: common.largest_errors(sols, reference * len(h)) for name, sols in runs.items()}


def tailored_errors(start: Start, h: common.Numbers, node: float, fine: float) -> dict[str, np.ndarray]:
    """Global errors of the tailored methods with damping = h, sec. 3.5."""
    systems = [trimer(damping=x)[0] for x in h]
    reference = common.references(systems, start.state, start.t1, fine, node)
    schemes = {"theta": common.THETA, "IRK": common.TAILORED}
    runs = {name: common.run(s, systems, start.state, start.t1, h) for name, s in schemes.items()}
    return {name: common.largest_errors(sols, reference) for name, sols in runs.items()}


#: Step sizes with nodes in common, largest first.
IMPACT_STEPS = np.array([0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 5e-4, 2.5e-4, 1e-4])
UNBROKEN_STEPS = np.array([0.3, 0.15, 0.1, 0.075, 0.05, 0.025, 0.0125, 0.005, 0.0025, 1.25e-3, 5e-4, 2.5e-4])


@styled
def fig2() -> tuple[list[Claim], Figure]:
    """Orders of CN and GL on the trimer with impacts, and the motion at h = 0.5 (Fig. 2)."""
    errors = direct_errors(with_impact(), IMPACT_STEPS, 5e-5, 1e-5)
    order = common.slopes(IMPACT_STEPS, errors, 0.01, 2.5e-4)
    cn_v, cn_w, gl_v, gl_w = common.DIRECT
    note = "slope over h = 0.01 ... 2.5e-4"
    claims = [
        within("order of CN on (x, w); the paper says 2", 1.95, 2.05, order[cn_w], note),
        within(
            "order of CN on (x, v); the paper says 3/2", 1.45, 1.75, order[cn_v], note + "; still falling towards 3/2"
        ),
        within("order of GL on (x, v); the paper says 3/2", 1.4, 1.8, order[gl_v], note + "; errors oscillate"),
        within("order of GL on (x, w); the paper says 5/2", 2.3, 2.7, order[gl_w], note + "; errors oscillate"),
        _saturation(errors[gl_w][-1]),
    ]
    figure = Figure(figsize=(10.0, 7.6))
    panels = figure.subplot_mosaic([["errors", "errors"], ["x", "v"]])
    convergence(IMPACT_STEPS, errors, styles=["-", "x", "-", "D"], axes=panels["errors"])
    for p, through in ((1.5, errors[cn_v][-1]), (2.5, errors[gl_w][-4])):
        start = IMPACT_STEPS[-1] if p == 1.5 else IMPACT_STEPS[-4]
        guide(panels["errors"], p, start, 2 * through)
    motion(panels["x"], panels["v"], with_impact(), 0.5)
    return claims, figure


def guide(axes: Axes, slope: float, h: float, error: float) -> None:
    """A red line of the given slope through (h, error), to guide the eye."""
    line = np.array([h, 0.3])
    axes.plot(line, error * (line / h) ** slope, color=COLOURS["red"], linewidth=0.9)
    axes.annotate(f"$h^{{{slope:g}}}$", (line[1], error * (line[1] / h) ** slope), color=COLOURS["red"], fontsize=9)


def _saturation(error: float) -> Claim:
    what, paper = "error of GL on (x, w) at h = 1e-4", "saturates around 1e-12"
    return Claim(what, paper, error, error < 1e-11, "rounding in the implicit solves and in the reference")


@styled
def fig3() -> tuple[list[Claim], Figure]:
    """Orders of CN and GL on the trimer without contact breaking (Fig. 3)."""
    errors = direct_errors(without_breaking(), UNBROKEN_STEPS, 2.5e-4, 2.5e-5)
    order = common.slopes(UNBROKEN_STEPS, errors, 0.1, 0.0125)
    cn_v, cn_w, gl_v, gl_w = common.DIRECT
    claims = [
        within(f"order of {name}; the paper says {p}", p - 0.05, p + 0.05, order[name], "slope over h = 0.1 ... 0.0125")
        for name, p in ((cn_v, 2), (cn_w, 2), (gl_v, 4), (gl_w, 4))
    ]
    ratio = np.max(np.abs(errors[gl_v] / errors[gl_w] - 1)[UNBROKEN_STEPS > 0.01])
    text = "extremely close in (x, v) and (x, w)"
    claims.append(Claim("errors of GL in the two forms", text, f"within {100 * ratio:.1f} %", bool(ratio < 0.1)))
    figure, grid = canvas(1, 2, width=10.5, height=4.2)
    convergence(UNBROKEN_STEPS, errors, slopes={cn_v: 2, gl_w: 4}, styles=["-", "x", "-", "D"], axes=grid[0, 0])
    motion(grid[0, 1], None, without_breaking(), 0.3)
    return claims, figure


@styled
def fig6() -> tuple[list[Claim], Figure]:
    """Orders of the tailored methods with damping = h (Fig. 6)."""
    h = IMPACT_STEPS[2:]
    figure, grid = canvas(1, 2, width=10.5, height=4.2)
    claims = []
    studies = (
        ("without breaking", without_breaking(), {"theta": 2, "IRK": 3}),
        ("impact", with_impact(), {"theta": 2, "IRK": 2.5}),
    )
    for axes, (name, start, known) in zip(grid[0], studies):
        errors = tailored_errors(start, h, 5e-5, 1e-5)
        order = common.slopes(h, errors, 0.01, 2.5e-4)
        for method, p in known.items():
            tol = 0.2 if p == 2.5 else 0.05
            what = f"order of {method}, {name}; the paper says {p:g}"
            claims.append(within(what, p - tol, p + tol, order[method], "slope over h = 0.01 ... 2.5e-4"))
        convergence(h, errors, slopes=known, styles=["-o", "--s"], axes=axes)
        axes.set_title(name)
    return claims, figure


def motion(x_axes: Axes, v_axes: Axes | None, start: Start, h: float) -> None:
    """Reference (lines) against CN (crosses) and GL (diamonds) on (x, w) at a large step."""
    system = trimer(damping=start.damping)[0]
    node = start.t1 / round(start.t1 / 0.005)
    reference = common.references([system], start.state, start.t1, node / 10, node)[0]
    for name, mark in ((list(common.DIRECT)[1], "x"), (list(common.DIRECT)[3], "D")):
        sol = common.run(common.DIRECT[name], [system], start.state, start.t1, [h])[0]
        for axes, of in ((x_axes, "q"), (v_axes, "v")):
            if axes is not None:
                trajectories(
                    sol, of=of, axes=axes, linestyle="none", marker=mark, color=COLOURS["ink"], markerfacecolor="none"
                )
    for axes, of in ((x_axes, "q"), (v_axes, "v")):
        if axes is not None:
            for n, colour in enumerate(BEADS):
                trajectories(reference, [n], of=of, axes=axes, color=COLOURS[colour], labels=[f"bead {n + 1}"])
            axes.set_title(f"h = {h:g}: CN (x, w) crosses, GL (x, w) diamonds")
