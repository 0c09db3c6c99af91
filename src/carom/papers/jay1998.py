"""Jay (1998): Tables 1 to 3 and Figs 1 to 6.

Every item is a function without arguments that returns its claims and a figure. Data the paper leaves out are carom's:
the start of the stiff pendulum, and the norms and weights of the error estimate of Fig. 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from carom.measures.structure import energy_drift
from carom.methods.spark.families import LETTERS
from carom.methods.spark.spark import Spark
from carom.models import andrews_squeezer, stiff_spring_pendulum
from carom.papers.claims import Claim, Item, number
from carom.plots.style import canvas, styled
from carom.running.run import simulate
from carom.solution import Solution
from carom.state import State
from carom.stepping.reversible import Reversible

RELEASE, END, STEP = 0.02, 0.1, 5e-5
MIXED_KINEMATIC, MIXED_FORCES, ALL_C = ("C", "C", "A", "A"), ("C", "C", "B", "B"), ("C",) * 4

#: Tables 1 and 2 (A, B, C, C*) and 3 (D, its last row corrected), as printed.
TABLES = {
    ("table1", "A"): "0 0; 1/2 1/2",
    ("table1", "B"): "1/2 0; 1/2 0",
    ("table1", "C"): "1/2 -1/2; 1/2 1/2",
    ("table1", "C*"): "0 0; 1 0",
    ("table2", "A"): "0 0 0; 5/24 1/3 -1/24; 1/6 2/3 1/6",
    ("table2", "B"): "1/6 -1/6 0; 1/6 1/3 0; 1/6 5/6 0",
    ("table2", "C"): "1/6 -1/3 1/6; 1/6 5/12 -1/12; 1/6 2/3 1/6",
    ("table2", "C*"): "0 0 0; 1/4 1/4 0; 0 1 0",
    ("table3", "D (2 stages)"): "1/4 -1/4; 3/4 1/4",
    ("table3", "D (3 stages)"): "1/12 -1/6 1/12; 5/24 1/3 -1/24; 1/12 5/6 1/12",
}


def torque(t: Array) -> Array:
    """0.033 (1 - t / 0.02) until 0.02, then none."""
    return 0.033 * jnp.maximum(1.0 - t / RELEASE, 0.0)


@cache
def squeezer_run(moment: Any, t1: float = END, h: float = STEP) -> Solution:
    """The squeezer with Lobatto IIIA-B of three stages and constant steps."""
    return simulate(*andrews_squeezer(moment), Spark(3), t1=t1, h=h)


@cache
def reversible_run() -> Solution:
    """The released squeezer from t = 0.02 with reversible steps, TOL = 1e-8."""
    driven = squeezer_run(torque)
    i = int(np.argmin(np.abs(driven.t - RELEASE)))
    free, _ = andrews_squeezer(0.0)
    return simulate(free, State(driven.q[i], driven.v[i], driven.t[i]), Spark(3), t1=END, stepping=Reversible(1e-8))


def stiff_energy_error(kinematic: Sequence[str], forces: Sequence[str]) -> np.ndarray:
    """E2(t) - E2(0) of the rigid pendulum on the stiff one, to t = 120 with h = 0.12; families per component."""
    names = ("constraint", "spring", "gravity", "dissipative")
    families = {"kinematic": list(kinematic), **dict.fromkeys(names, list(forces))}
    sol = simulate(*stiff_spring_pendulum(), Spark(3, families=families), t1=120.0, h=0.12)
    energy = 0.5 * np.sum(sol.v[:, 2:] ** 2, 1) + sol.q[:, 3]
    return energy - energy[0]


def _table(key: str) -> tuple[list[Claim], None]:
    claims = []
    for (table, name), printed in TABLES.items():
        if table == key:
            rows = [[Fraction(x) for x in row.split()] for row in printed.split(";")]
            found = LETTERS[name.split()[0]](len(rows)).A
            error = np.abs(found - np.array(rows, float)).max()
            note = "third row 1/12 5/6 1/12 (misprinted)" if name == "D (3 stages)" else ""
            claims.append(
                Claim(f"Lobatto III{name}", printed, f"largest difference {error:.1e}", bool(error < 1e-15), note)
            )
    return claims, None


def table1() -> tuple[list[Claim], None]:
    """Coefficients of Lobatto IIIA, B, C, C* with two stages."""
    return _table("table1")


def table2() -> tuple[list[Claim], None]:
    """Coefficients of Lobatto IIIA, B, C, C* with three stages."""
    return _table("table2")


def table3() -> tuple[list[Claim], None]:
    """Coefficients of Lobatto IIID with two and three stages."""
    return _table("table3")


def fig1() -> tuple[list[Claim], Any]:
    """Energy error with constant steps, no torque after 0.02: bounded."""
    sol = squeezer_run(torque)
    drift = energy_drift(sol, RELEASE - 1e-9)
    claims = [
        Claim(
            "the error stays bounded", "bounded", f"{drift.bound:.3g} J", abs(drift.slope) * 0.08 < 0.05 * drift.bound
        ),
        number(
            "largest error / J", 7.19e-9, drift.bound, 0.05, "the paper prints a figure only; value of a second code"
        ),
    ]
    later = sol.t >= RELEASE - 1e-9
    return claims, _curve(sol.t[later], sol.account.energy[later] - sol.account.energy[later][0], "energy error / J")


def fig2() -> tuple[list[Claim], Any]:
    """Energy error with reversible variable steps: linear growth."""
    sol = reversible_run()
    drift = energy_drift(sol)
    note = "e = (1, -2, 1)/6, Euclidean norms, target TOL^(3/5): carom's choice"
    claims = [
        number("steps", 432, len(sol) - 1, 0.01, note),
        number("largest error / J", 7.26e-7, drift.bound, 0.1, note),
        number("slope / (J/s)", 8.2e-6, drift.slope, 0.1, note),
    ]
    return claims, _curve(sol.t, sol.account.energy - sol.account.energy[0], "energy error / J")


def fig3() -> tuple[list[Claim], Any]:
    """Energy error with constant steps and constant torque: growth although symplectic."""
    sol = squeezer_run(0.033)
    drift = energy_drift(sol)
    error = sol.account.energy - sol.account.energy[0]
    halves = [np.abs(error[sol.t <= END / 2]).max(), drift.bound]
    claims = [
        number("largest error / J", 3.207e-7, drift.bound, 0.02),
        Claim(
            "the error grows",
            "quadratically",
            f"factor {halves[1] / halves[0]:.1f} in twice the time",
            halves[1] > 4 * halves[0],
        ),
    ]
    return claims, _curve(sol.t, error, "energy error / J")


def fig4() -> tuple[list[Claim], Any]:
    """Total, kinetic and potential energy with constant torque."""
    account, t = squeezer_run(0.033).account, squeezer_run(0.033).t
    claims = [
        number("total energy / J", 1.4378329575, account.energy[0], 1e-10),
        number("largest kinetic energy / J", 4.2048, account.kinetic.max(), 1e-4),
    ]
    figure = _curve(t, account.energy, "energy / J", label="E")
    for values, name in ((account.kinetic, "T"), (account.potential, "U")):
        figure.axes[0].plot(t, values, label=name)
    figure.axes[0].legend()
    return claims, figure


def fig5() -> tuple[list[Claim], Any]:
    """Stiff pendulum, Lobatto IIIC everywhere: energy is lost."""
    error = stiff_energy_error(ALL_C, ALL_C)
    note = "start q1 = (0, -1), q2 = (1, -1) at rest: carom's choice"
    claims = [number("energy error at t = 120", -1.077402e-4, error[-1], 1e-3, note)]
    return claims, _curve(0.12 * np.arange(len(error)), error, "energy error of the rigid pendulum")


def fig6() -> tuple[list[Claim], Any]:
    """Stiff pendulum, IIIC on the stiff body and IIIA-B on the rigid one: energy is kept."""
    error = stiff_energy_error(MIXED_KINEMATIC, MIXED_FORCES)
    note = "start q1 = (0, -1), q2 = (1, -1) at rest: carom's choice"
    claims = [number("largest energy error", 1.2539e-6, np.abs(error).max(), 1e-3, note)]
    return claims, _curve(0.12 * np.arange(len(error)), error, "energy error of the rigid pendulum")


@styled
def _curve(t: np.ndarray, values: np.ndarray, name: str, label: str | None = None) -> Any:
    figure, axes = canvas()
    axes[0, 0].plot(t, values, label=label)
    axes[0, 0].set(xlabel="t", ylabel=name)
    return figure


items: dict[str, Item] = {item.__name__: item for item in (table1, table2, table3, fig1, fig2, fig3, fig4, fig5, fig6)}
