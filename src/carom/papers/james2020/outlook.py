"""Section 5, what should come next: adaptive steps, other exponents, sums of dampings, driving, spring-dashpots."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

from carom.methods.capturing.event_capturing import EventCapturing
from carom.methods.tailored.tailored_irk import AdditiveTailoredIRK
from carom.methods.tailored.tailored_theta import TailoredTheta
from carom.models.granular import granular_chain, unbroken_trimer_state
from carom.papers.claims import Claim, number, within
from carom.papers.james2020 import common
from carom.papers.james2020.crystals import decay_claims
from carom.plots import COLOURS, canvas, convergence, styled
from carom.running.run import simulate
from carom.solution import Solution
from carom.state import State
from carom.stepping.adaptive import Adaptive
from carom.systems.interactions import Interactions
from carom.systems.laws import OverlapPower, hertz, positive_power, spring
from carom.systems.spring_dashpot import SpringDashpot
from carom.systems.system import System
from carom.tableaux import gauss

STEPS = np.array([0.05, 0.025, 0.0125, 0.00625])
_NODE, _FINE = 0.00625, 0.000625
SCHEMES = {"theta": common.Scheme(TailoredTheta()), "IRK": common.Scheme(AdditiveTailoredIRK())}


def errors_of(build: Callable[[float], System]) -> dict[str, np.ndarray]:
    """Global errors of the additive tailored methods with damping = h, from (19) until t = 1.5: no contact breaks."""
    systems, start = [build(float(h)) for h in STEPS], unbroken_trimer_state()
    reference = common.references(systems, start, 1.5, _FINE, _NODE)
    runs = {name: common.run(scheme, systems, start, 1.5, STEPS) for name, scheme in SCHEMES.items()}
    return {name: common.largest_errors(sols, reference) for name, sols in runs.items()}


def of_exponent(exponent: float) -> Callable[[float], System]:
    """The trimer with the damping k gamma d/dt d^exponent of (1), as a function of gamma."""
    masses, stiffness = np.array([1.0, 0.8, 0.9]) ** 3, [1.0, np.sqrt(81 / 85)]
    return lambda damping: granular_chain(masses, stiffness, damping, exponent)[0]


def shake(t: Array, q: Array, v: Array) -> Array:
    """A support that shakes all beads alike, as a force."""
    del v
    return 0.5 * jnp.sin(3.0 * t) * jnp.ones_like(q)


def drive(t: Array, q: Array) -> Array:
    """The energy of a spring to a driven end."""
    return 0.5 * 0.3 * (q[0] - 0.4 * jnp.cos(2.0 * t)) ** 2


def driven_sum(damping: float) -> System:
    """Three beads with three rate-damped parts, a driven end and a shaken support: masses of the trimer."""
    law = Interactions(OverlapPower(2.0), stencil=(0, 1), data=np.array([1.0, 0.9]), weight=damping)
    parts = {
        "contact": Interactions(hertz, stencil=(0, 1), data=np.array([1.0, 0.9])),
        "local": Interactions(spring, stencil=(0,), data=np.array([0.3, 0.5, 0.2])),
        "drive": drive,
    }
    rates = {"contact": law, "local": 0.6 * damping, "drive": 0.3 * damping}
    return System(np.array([1.0, 0.8, 0.9]) ** 3, parts, {"shake": shake}, rate_damping=rates)


def left_wall(x: Array, data: Array) -> Array:
    """Hertz contact with a wall at data[1]."""
    return 0.4 * data[0] * positive_power(data[1] - x, 2.5)


def right_wall(x: Array, data: Array) -> Array:
    """The same on the other side."""
    return 0.4 * data[0] * positive_power(x - data[1], 2.5)


def with_gap(left: Array, right: Array, data: Array) -> Array:
    """Hertz contact of beads that are data[1] apart at rest."""
    return 0.4 * data[0] * positive_power(left - right - data[1], 2.5)


class Flights(NamedTuple):
    """Beads that fly between two walls and hit each other seldom: the chain, its start and its motion."""

    system: System
    state: State
    t1: float
    motion: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    closed: float

    def error(self, solution: Solution) -> float:
        """Sup over beads and the nodes of the solution."""
        x, v = self.motion(solution.t)
        return float(max(np.abs(solution.q - x).max(), np.abs(solution.v - v).max()))


def flights(t1: float = 100.0) -> Flights:
    """Four beads, gaps of 12 to 16, damping 0.02; the motion by DOP853 on (10)-(11)."""
    m, k = np.array([1.0, 0.6, 1.4, 0.9]), np.array([1.0, 1.5, 0.8, 1.2, 2.0])
    gap, gamma, v0 = np.array([13.0, 15.0, 12.0, 16.0, 14.0]), 0.02, np.array([0.9, -0.3, 0.5, -0.8])
    parts = {
        "contact": Interactions(with_gap, stencil=(0, 1), data=np.stack([k[1:-1], gap[1:-1]], 1)),
        "left": Interactions(left_wall, stencil=(0,), where=slice(0, 1), data=np.array([[k[0], -gap[0]]])),
        "right": Interactions(right_wall, stencil=(0,), where=slice(3, 4), data=np.array([[k[-1], gap[-1]]])),
    }

    def overlaps(x: np.ndarray) -> np.ndarray:
        ends = np.concatenate([[-gap[0]], x, [gap[-1]]])
        return ends[:-1] - ends[1:] - np.concatenate([[0.0], gap[1:-1], [0.0]])

    def g(x: np.ndarray) -> np.ndarray:
        f = k * np.maximum(overlaps(x), 0.0) ** 1.5
        return (f[:-1] - f[1:]) / m

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        del t
        return np.concatenate([y[4:] + gamma * g(y[:4]), g(y[:4])])

    start = np.concatenate([np.zeros(4), v0])
    y = solve_ivp(rates, (0, t1), start, method="DOP853", rtol=1e-11, atol=1e-12, dense_output=True, max_step=0.2)

    def motion(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, w = np.split(y.sol(t).T, 2, axis=1)
        return x, w + gamma * np.array([g(row) for row in x])

    some = [bool(np.any(overlaps(x) > 0)) for x in motion(np.linspace(0, t1, 5001))[0]]
    return Flights(
        System(m, parts, rate_damping=dict.fromkeys(parts, gamma)),
        State(np.zeros(4), v0),
        t1,
        motion,
        float(np.mean(some)),
    )


class Work(NamedTuple):
    """Steps, rejected ones included, and errors."""

    steps: np.ndarray
    errors: np.ndarray

    def at(self, error: float) -> float:
        """Steps for an error, between those that were measured."""
        order = np.argsort(self.errors)
        return float(np.exp(np.interp(np.log(error), np.log(self.errors[order]), np.log(self.steps[order]))))


def constant_work(case: Flights, h: common.Numbers) -> Work:
    """Of the convergent theta method at constant steps."""
    method = TailoredTheta(convergent=True)
    sols = [simulate(case.system, case.state, method, t1=case.t1, h=float(x)) for x in h]
    return Work(np.array([len(s) - 1.0 for s in sols]), np.array([case.error(s) for s in sols]))


def adaptive_run(case: Flights, tol: float) -> Solution:
    """Of the theta method with steps from tolerances."""
    return simulate(case.system, case.state, TailoredTheta(), t1=case.t1, stepping=Adaptive(tol, tol, h_max=10.0))


def attempts(solution: Solution) -> int:
    """Steps, rejected ones included."""
    return int(solution.stats["accepted"] + solution.stats["rejected"])


def wall_gap(q: Array) -> Array:
    """The distance of a ball from a wall."""
    return q[:1]


def dashpot_collision(stiffness: float, damping: float) -> tuple[float, float]:
    """Duration and restitution of a unit mass at a spring-dashpot; the contact ends when the force vanishes."""
    b = damping / 2
    w = np.sqrt(stiffness - b * b)
    duration = (np.pi - np.arctan2(2 * b * w, w * w - b * b)) / w
    return float(duration), float(np.exp(-b * duration))


def dashpot_run(h: float, stiffness: float = 100.0, damping: float = 4.0) -> Solution:
    """A ball that hits the wall at unit velocity, its contact located."""
    law = SpringDashpot(wall_gap, stiffness, damping)
    ball = System(1.0, None, {"wall": law.force}, friction=law.switches)
    return simulate(ball, State([0.05], [-1.0]), EventCapturing(gauss(2)), t1=0.8, h=h)


def order_claims(errors: dict[str, dict[str, np.ndarray]]) -> list[Claim]:
    """Orders 2 and 3 for every study."""
    note = f"damping = h, h = {STEPS[1]:g} ... {STEPS[-1]:g}, contacts closed; reference on (10)-(11)"
    claims = []
    for name, study in errors.items():
        order = common.slopes(STEPS, study, STEPS[1])
        claims.append(within(f"order of theta, {name}; 2 by the modified equation", 1.85, 2.15, order["theta"], note))
        claims.append(within(f"order of IRK, {name}; 3 by the modified equation", 2.8, 3.2, order["IRK"], note))
    return claims


def adaptive_claims(case: Flights, steady: Work, run: Solution) -> list[Claim]:
    """Steps at equal error."""
    ratio = attempts(run) / steady.at(case.error(run))
    note = f"some contact is closed {100 * case.closed:.0f} % of the time; rejected steps counted; convergent theta"
    return [
        within("part of the time with a contact", 0.0, 0.2, case.closed),
        within("adaptive steps over constant ones of equal error", 0.0, 0.6, ratio, note),
    ]


def dashpot_claims(h: common.Numbers, errors: np.ndarray, last: Solution) -> list[Claim]:
    """The closed form of the collision."""
    order = common.slopes(np.asarray(h), {"it": errors}, max(h))["it"]
    note = "closed form: the contact ends when the force vanishes"
    return [
        number("restitution of a spring-dashpot", dashpot_collision(100.0, 4.0)[1], last.v[-1, 0], 1e-7, note),
        within("order of event capturing with gauss(2) through the jump of the force", 3.8, 4.2, order, note),
    ]


@styled
def programme() -> tuple[list[Claim], Figure]:
    """The programme of sec. 5: other exponents, sums, driving, adaptive steps, spring-dashpots, pulses in crystals."""
    studies = {f"exponent {b:g}": errors_of(of_exponent(b)) for b in (2.0, 2.5)}
    studies["three parts, driven and shaken"] = errors_of(driven_sum)
    case = flights()
    steady, run = constant_work(case, (0.2, 0.1, 0.05, 0.025)), adaptive_run(case, 3e-3)
    h, exact = (0.04, 0.02, 0.01, 0.005), dashpot_collision(100.0, 4.0)[1]
    balls = [dashpot_run(x) for x in h]
    missed = np.array([abs(ball.v[-1, 0] - exact) for ball in balls])
    claims = [*order_claims(studies), *adaptive_claims(case, steady, run), *dashpot_claims(h, missed, balls[-1])]
    claims += decay_claims()
    figure, grid = canvas(1, 3, width=12.5, height=4.0)
    named = {f"{method}, {name}": e for name, study in studies.items() for method, e in study.items()}
    draw_errors(grid[0, 0], named)
    draw_flights(grid[0, 1], run)
    draw_dashpot(grid[0, 2])
    return claims, figure


def draw_errors(axes: Axes, errors: dict[str, np.ndarray]) -> None:
    """Errors over step sizes, with room for the names below."""
    convergence(STEPS, errors, axes=axes)
    axes.set_xticks(STEPS, [f"{h:g}" for h in STEPS])
    axes.set_xticks([], minor=True)
    axes.set_ylim(bottom=1e-11)


def draw_flights(axes: Axes, run: Solution) -> None:
    """Step sizes over time."""
    axes.step(run.t[1:], np.diff(run.t), where="pre", color=COLOURS["blue"])
    axes.set(xlabel="t", ylabel="h", yscale="log", title="adaptive theta: free flights and collisions")


def draw_dashpot(axes: Axes) -> None:
    """Force over overlap, with and without tension."""
    t, b, w = np.linspace(0, np.pi / np.sqrt(96.0), 400), 2.0, np.sqrt(96.0)
    d, rate = np.exp(-b * t) * np.sin(w * t) / w, np.exp(-b * t) * (np.cos(w * t) - b / w * np.sin(w * t))
    f = 100.0 * d + 4.0 * rate
    axes.plot(d, f, "--", color=COLOURS["grey"], label="exponent 1 of (1)")
    axes.plot(d[f >= 0], f[f >= 0], color=COLOURS["blue"], label="no tension")
    axes.axhline(0.0, color=COLOURS["ink"], linewidth=0.6)
    axes.set(xlabel="overlap", ylabel="force")
    axes.legend()
