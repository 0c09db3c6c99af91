"""Step size adjustment and extrapolation for time-stepping schemes [Studer2008]: figures, Table VII, local orders.

The paper prints few numbers; most claims are statements of its text about a figure. Data it leaves out (gravity, side
of the stop, tolerances, the toy's masses) are carom's choice, named at the models and below.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from carom.measures import observed_order, search_history
from carom.methods.moreau.extrapolated import Extrapolated, extrapolate
from carom.methods.moreau.moreau_midpoint import MoreauMidpoint
from carom.models import falling_mass, impact_oscillator, sliding_mass, woodpecker
from carom.papers.claims import Claim, Item, number, within
from carom.papers.mixed_disks import fig2
from carom.papers.woodpecker_cycle import run as run_toy
from carom.running.run import simulate
from carom.solution import Solution
from carom.state import State
from carom.stepping.switching import Switching
from carom.systems.system import System

TABLE_VII = (
    "1 sticks, 1 slips, 1 opens, 2 closes, 2 opens, 0 closes, 0 opens, 2 closes, 2 opens, 1 closes, 1 opens, 1 closes"
)
OSCILLATOR_AT_1_5 = -0.164803330176  # by event location on the exact solution


def _axes(rows: int, columns: int = 1, **options: Any) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5 * columns, 2.4 * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options).ravel()


def fig5() -> tuple[list[Claim], Any]:
    """Resting contact under extrapolation: all substeps explode, odd substeps contract (44)-(47)."""
    eps = np.linspace(0, 1, 101)
    figure, axes = _axes(1, 2)
    largest = {}
    for axis, counts in zip(axes, ((1, 2, 3, 4), (1, 3, 5, 7))):
        diagonals = np.array([extrapolate([(-e) ** n for n in counts], counts) for e in eps])
        axis.plot(eps, diagonals, label=[f"$T_{{{i}{i}}}$" for i in range(1, 5)])
        axis.set(xlabel="restitution", ylabel="$T_{ii} / \\gamma_B$", title=f"substeps {counts}")
        axis.legend()
        largest[counts] = np.abs(diagonals[:-1]).max()
    claims = [
        number("T_33 of (44)", 1.0, extrapolate([0, 3 / 8, 21 / 32], [1, 2, 4])[-1], 1e-14),
        number("T_44 of (47)", 9.2682, extrapolate([(-0.7) ** n for n in (1, 2, 3, 4)], [1, 2, 3, 4])[-1], 1e-5),
        within("largest |T_ii|, odd substeps, eps < 1", 0, 1, largest[1, 3, 5, 7]),
    ]
    return claims, figure


def fig8() -> tuple[list[Claim], Any]:
    """The search for a switching point: drop back two steps, halve, resolve with the smallest step."""
    ball, state = falling_mass()
    history = search_history(ball, state, _method(4), Switching(1e-3, 0.05), t1=0.13)
    colours = {"smooth": "tab:blue", "detected": "tab:red", "resolved": "black", "inaccurate": "tab:orange"}
    figure, (axis,) = _axes(1)
    for i, step in enumerate(history):
        axis.plot([step.begin, step.begin + step.h], [-i, -i], color=colours[step.outcome], lw=3)
    axis.set(xlabel="t", ylabel="attempt", title="accepted blue, rejected red, resolved black")
    detected = [i for i, step in enumerate(history[:-1]) if step.outcome == "detected"]
    halved = all(history[i + 1].h <= history[i].h / 2 for i in detected)
    back = all(history[i + 1].begin < history[i].begin for i in detected[:1])
    resolved = {step.h for step in history if step.outcome == "resolved"}
    return [
        Claim("a detected switching point halves the step", "yes", str(halved), halved),
        Claim("and drops back to the accepted step", "yes", str(back), back),
        Claim("it is resolved with the smallest step", 1e-3, max(resolved), resolved == {1e-3}),
    ], figure


def _method(order: int, substeps: str = "odd") -> Extrapolated:
    return Extrapolated(MoreauMidpoint(), max_order=order, atol=1e-8, rtol=0.0, substeps=substeps)


@cache
def _fall(substeps: str, t1: float) -> Solution:
    return simulate(*falling_mass(), _method(4, substeps), t1=t1, stepping=Switching(1e-5, 0.05))


def fig9() -> tuple[list[Claim], Any]:
    """Falling mass with 1, 2, 3, 4 substeps: the step size does not recover."""
    sol = _fall("all", 0.78)
    figure, axes = _axes(2)
    axes[0].semilogy(sol.t[1:], sol.h[1:])
    axes[0].set(ylabel="h")
    resting = sol.t > 0.7
    axes[1].plot(sol.t[resting], sol.v[resting, 0])
    axes[1].set(xlabel="t", ylabel="velocity")
    return [
        within("largest h after .72", 0, 3.0001e-5, sol.h[sol.t > 0.72][:-1].max(), "the smallest step is 1e-5")
    ], figure


def fig10() -> tuple[list[Claim], Any]:
    """Falling mass with odd substeps: accumulation of impacts, then rest with the largest step."""
    sol = _fall("odd", 1.2)
    figure, axes = _axes(4, sharex=True)
    for axis, values, name in zip(axes, (sol.h, sol.order, sol.q[:, 0], sol.v[:, 0]), ("h", "order", "z", "dz/dt")):
        axis.plot(sol.t[1:], values[1:])
        axis.set(ylabel=name)
    axes[0].set_yscale("log")
    return [
        within("last switching point", 0.6766, 0.6770, sol.events.time[-1], "accumulation at 0.676950917 for g = 9.81"),
        within("largest order in flight", 2, 2, sol.order[sol.t < 0.1].max()),
        within("largest h between .677 and .9", 0.05, 0.05, sol.h[(sol.t > 0.677) & (sol.t < 0.9)].max()),
        within("|dz/dt| at 1.2", 0, 1e-12, abs(sol.v[-1, 0])),
    ], figure


def fig11() -> tuple[list[Claim], Any]:
    """Sliding mass: turns round, is released, sticks."""
    sol = simulate(*sliding_mass(), _method(6), t1=4.5, stepping=Switching(1e-6, 0.05))
    figure, axes = _axes(3, 2)
    speed = np.linalg.norm(sol.v, axis=1)
    for axis, values, name in zip(axes[1:], (sol.order, sol.h, sol.force, speed), ("order", "h", "friction", "speed")):
        axis.plot(sol.t[1:], values[1:])
        axis.set(ylabel=name, xlabel="t")
    axes[0].plot(*sol.q.T)
    axes[0].set(xlabel="x", ylabel="y")
    axes[5].set_visible(False)
    slips = (sol.mode[:, 0] == 1) & (sol.h > 0)
    # impulse / h averages a force whose direction turns during the step: at most, not exactly, the limit
    sizes = np.linalg.norm(sol.force[slips], axis=1)
    return [
        within("friction force while sliding", 1.99, 2.0 + 1e-6, sizes.max(), "printed: its absolute value stays 2 N"),
        within("instant of sticking", 3.66564, 3.66566, sol.events.time[-1], "read from Fig. 11(f): about 3.67"),
        within("speed at the end", 0, 1e-12, speed[-1]),
    ], figure


def fig12() -> tuple[list[Claim], Any]:
    """Impact oscillator: global error against h_max for fixed orders 1-6, h_min = h_max^p."""
    steps = {
        1: tuple(4e-3 * 0.6**i for i in range(8)),
        2: (0.02, 0.01, 0.005),
        3: (0.04, 0.02, 0.01),
        4: (0.04, 0.02, 0.01),
    }
    steps |= {5: (0.04, 0.03, 0.02), 6: (0.04, 0.03, 0.02)}
    figure, (left, right) = _axes(1, 2)
    claims = []
    for p, sizes in steps.items():
        sols = [_fixed(impact_oscillator(), p, h**p, h, 1.5) for h in sizes]
        error = [abs(sol.q[-1, 0] - OSCILLATOR_AT_1_5) for sol in sols]
        left.loglog(sizes, error, "o-", label=f"p = {p}")
        right.loglog([sol.stats["evaluations"] for sol in sols], error, "o-")
        if p in (3, 5):
            ratio = np.max(np.array(error) / np.array(sizes) ** p)
            note = "two errors of opposite sign: a bound rather than a line"
            claims.append(within(f"error / h_max^{p}", 0, 10, ratio, note))
        else:
            claims.append(within(f"slope for p = {p}", p - 0.3, p + 0.3, observed_order(sizes, error)))
    left.set(xlabel="h_max", ylabel="error")
    right.set(xlabel="base steps")
    left.legend()
    return claims, figure


def _fixed(model: tuple[System, State], p: int, h_min: float, h_max: float, t1: float) -> Solution:
    return simulate(*model, Extrapolated(MoreauMidpoint(), 6, fixed_order=p), t1=t1, stepping=Switching(h_min, h_max))


@cache
def _toy() -> Solution:
    return run_toy(woodpecker()[1], 0.15)


def fig13() -> tuple[list[Claim], Any]:
    """Woodpecker toy: motion, step size, order and modes."""
    sol = _toy()
    figure, axes = _axes(3, 2)
    axes[0].plot(sol.q[:, 2], sol.v[:, 2])
    axes[0].set(xlabel="phi_S", ylabel="dphi_S/dt")
    for axis, values, name in zip(
        axes[1:], (sol.v[:, 1], sol.v[:, 2], sol.h, sol.order), ("dphi_M/dt", "dphi_S/dt", "h", "order")
    ):
        axis.plot(sol.t[1:], values[1:])
        axis.set(xlabel="t", ylabel=name)
    axes[3].set_yscale("log")
    axes[5].pcolormesh(sol.t, np.arange(6), (sol.mode == 0).T, cmap="Greys", shading="nearest")
    axes[5].set(xlabel="t", ylabel="law", title="black: constraint mode")
    return [
        within("smallest step (printed: 1e-7; here 1e-9)", 1e-9, 1.01e-9, sol.h[1:-1].min()),
        within("largest order", 2, 6, sol.order.max()),
        number("phi_S at .15", -0.31022235586, sol.q[-1, 2], 1e-6, "reference: carom's own, converged"),
    ], figure


def table7() -> tuple[list[Claim], Any]:
    """Table VII: the twelve switching incidents of the woodpecker toy."""
    found = ", ".join(f"{e.contact} {e.kind}" for e in _toy().events if e.kind != "reverses")
    return [Claim("incidents (contacts count from 0)", TABLE_VII, found, found == TABLE_VII)], None


def fig14() -> tuple[list[Claim], Any]:
    """Woodpecker toy: error of phi_S against h_max for fixed orders 1-4, h_min = 1e-10."""
    sizes = (8e-4, 4e-4, 2e-4)
    reference = run_toy(woodpecker()[1], 0.06, h_min=1e-10, atol=1e-11).q[-1, 2]
    figure, (axis,) = _axes(1)
    claims = []
    for p in range(1, 5):
        sols = [_fixed(woodpecker(), p, 1e-10, h, 0.06) for h in sizes]
        error = [abs(sol.q[-1, 2] - reference) for sol in sols]
        axis.loglog(sizes, error, "o-", label=f"p = {p}")
        claims.append(
            within(f"slope for p = {p}", p - 0.4, p + 1.0, observed_order(sizes, error), "at t = .06, inside stick")
        )
    axis.set(xlabel="h_max", ylabel="error of phi_S")
    axis.legend()
    return claims, figure


def local_orders() -> tuple[list[Claim], Any]:
    """Local errors of a smooth step: order 3 in q and 2 in u (37)-(38)."""
    oscillator = System(1.0, _stiff_spring, {"dissipative": _drag})
    start, sizes = State([0.3], [0.7]), np.array([0.02, 0.01, 0.005])
    fine = Extrapolated(MoreauMidpoint(), 6, atol=1e-14, rtol=0.0)
    error = []
    for h in sizes:
        coarse = simulate(oscillator, start, MoreauMidpoint(), t1=h, h=h)
        exact = simulate(oscillator, start, fine, t1=h, h=h / 4)
        error.append([abs(coarse.q[-1, 0] - exact.q[-1, 0]), abs(coarse.v[-1, 0] - exact.v[-1, 0])])
    q, u = (observed_order(sizes, e) for e in np.array(error).T)
    return [
        number("order of the local error in q", 3, q, 0.05),
        number("order of the local error in u", 2, u, 0.05),
    ], None


def _stiff_spring(q):
    return 2.0 * q[0] ** 2 + 0.5 * q[0] ** 4


def _drag(t, q, v):
    del t, q
    return -0.8 * v * abs(v)


items: dict[str, Item] = {
    "fig2": fig2,
    "fig5": fig5,
    "fig8": fig8,
    "fig9": fig9,
    "fig10": fig10,
    "fig11": fig11,
    "fig12": fig12,
    "fig13": fig13,
    "table7": table7,
    "fig14": fig14,
    "local_orders": local_orders,
}
