"""Mechanisms of the literature against references of their own: closed forms, reductions, SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from carom import models
from carom.mechanisms.rotations import space_rotation
from carom.methods.moreau.moreau_midpoint import MoreauMidpoint
from carom.methods.runge_kutta.irk import IRK
from carom.papers.claims import Claim, Item, number
from carom.running.run import simulate
from carom.solution import Solution
from carom.solving import solve
from carom.tableaux import gauss

_RTOL = 1e-9


def close(what: str, reference: Any, carom: Any, within: float, note: str = "") -> Claim:
    """The largest difference to a reference, and how large it may be."""
    apart = float(np.max(np.abs(np.asarray(carom) - np.asarray(reference))))
    return Claim(what, f"<= {within:g}", apart, apart <= within, note)


def end(solution: Solution) -> np.ndarray:
    """The coordinates at the end."""
    return solution.q[-1]


def reference(rates: Callable[..., Any], t1: float, start: Any) -> np.ndarray:
    """The end of a run of SciPy's DOP853 on y' = rates(y)."""
    return solve_ivp(lambda _, y: rates(y), (0, t1), start, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]


def a01() -> tuple[list[Claim], Any]:
    """A01: the pendulum, from the level at rest."""
    system, state = models.pendulum(gravity=9.81, angle=-np.pi / 2, rate=0.0)
    angle = reference(lambda y: [y[1], -9.81 * np.sin(y[0])], 10.0, [-np.pi / 2, 0])[0]
    sol = solve(system, state, 10.0, rtol=_RTOL)
    return [close("place at t = 10", [np.sin(angle), -np.cos(angle)], end(sol), 1e-7, "angle by DOP853")], None


def a02() -> tuple[list[Claim], Any]:
    """A02: n four-bar linkages, again and again through their singular position."""
    claims = []
    for n, t1 in ((2, 10.0), (10, 10.0), (40, 2.0)):
        k = 9.81 * ((n + 1) / 2 + n) / ((n + 1) / 3 + n)
        angle = reference(lambda y, k=k: [y[1], -k * np.cos(y[0])], t1, [np.pi / 2, -1.0])[0]
        sol = solve(*models.n_four_bar(n), t1, rtol=_RTOL)
        what, note = f"first joint at t = {t1:g}, n = {n}", "its angle by DOP853"
        claims.append(close(what, [np.cos(angle), np.sin(angle)], end(sol)[:2], 1e-7, note))
    return claims, None


def a03() -> tuple[list[Claim], Any]:
    """A03: Andrews' squeezing mechanism."""
    known = (
        15.81077119629904,
        -15.75637105984298,
        0.04082224013073101,
        -0.5347301163226948,
        0.5244099658805304,
        0.5347301163226948,
        1.048080741042263,
    )
    sol = solve(*models.andrews_squeezer(), 0.03, rtol=_RTOL)
    return [close("angles at t = 0.03", known, end(sol), 1e-7, "printed values of the Bari test set")], None


def a04() -> tuple[list[Claim], Any]:
    """A04: Bricard's mechanism, 30 constraints of rank 29."""
    system, state = models.bricard()
    sol = solve(system, state, 1.0, rtol=_RTOL)
    y = reference(BricardByPinv(system), 1.0, np.append(state.q, state.v))
    note = "index-1 form with a pseudo-inverse, DOP853"
    return [close("places and quaternions at t = 1", y[: state.q.size], end(sol), 1e-8, note)], None


class BricardByPinv:
    """Five rods on six hinges in NumPy, by hand: accelerations of least constraint forces."""

    def __init__(self, system: Any):
        groups = system.constraints.fn.groups[0]
        sides = [(np.array(s.body), np.asarray(s.point), np.asarray(s.axes)) for s in (groups.a, groups.b)]
        self.sides, self.M = sides, np.asarray(system.mass)
        self.J = self.M.reshape(5, 6)[:, 3:]

    def frames(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rotations and places of the rods and the ground."""
        each = q.reshape(5, 7)
        turn = np.stack([_matrix(p / np.linalg.norm(p)) for p in each[:, 3:]] + [np.eye(3)])
        return turn, np.vstack([each[:, :3], np.zeros(3)])

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """q' and v'."""
        q, v = y[:35], y[35:].reshape(5, 6)
        turn, _ = self.frames(q)
        omega = np.vstack([v[:, 3:], np.zeros(3)])
        C, c = np.zeros((30, 30)), np.zeros(30)
        for k in range(6):
            (a, b), (pa, pb), (Ea, Eb) = ([side[i][k] for side in self.sides] for i in range(3))
            point, bend = [], []
            for sign, i, p in ((-1, a, pa), (1, b, pb)):
                D = np.zeros((3, 36))
                D[:, 6 * i : 6 * i + 3], D[:, 6 * i + 3 : 6 * i + 6] = np.eye(3), -turn[i] @ _cross(p)
                point.append(sign * D)
                bend.append(sign * turn[i] @ np.cross(omega[i], np.cross(omega[i], p)))
            rows, rest = [point[0] + point[1]], [bend[0] + bend[1]]
            z, dz = turn[b] @ Eb[:, 2], -turn[b] @ _cross(Eb[:, 2])
            vz = turn[b] @ np.cross(omega[b], Eb[:, 2])
            az = turn[b] @ np.cross(omega[b], np.cross(omega[b], Eb[:, 2]))
            for e in (Ea[:, 0], Ea[:, 1]):
                u, du = turn[a] @ e, -turn[a] @ _cross(e)
                vu = turn[a] @ np.cross(omega[a], e)
                au = turn[a] @ np.cross(omega[a], np.cross(omega[a], e))
                D = np.zeros((1, 36))
                D[0, 6 * a + 3 : 6 * a + 6] += z @ du
                D[0, 6 * b + 3 : 6 * b + 6] += u @ dz
                rows.append(D)
                rest.append(np.array([au @ z + 2 * vu @ vz + u @ az]))
            C[5 * k : 5 * k + 5], c[5 * k : 5 * k + 5] = np.vstack(rows)[:, :30], np.concatenate(rest)
        f = np.zeros((5, 6))
        f[:, 1] = -9.81 * self.M.reshape(5, 6)[:, 1]
        f[:, 3:] = np.cross(self.J * v[:, 3:], v[:, 3:])
        free = f.reshape(-1) / self.M
        lam = np.linalg.pinv(C / self.M @ C.T, rcond=1e-10) @ (C @ free + c)
        rates = [np.concatenate([u[:3], _rate(p, u[3:])]) for p, u in zip(q.reshape(5, 7)[:, 3:], v)]
        return np.concatenate([*rates, free - C.T @ lam / self.M])


def _cross(u: np.ndarray) -> np.ndarray:
    return np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])


def _matrix(p: np.ndarray) -> np.ndarray:
    K = _cross(p[1:])
    return np.eye(3) + 2 * p[0] * K + 2 * K @ K


def _rate(p: np.ndarray, omega: np.ndarray) -> np.ndarray:
    return 0.5 * np.concatenate([[-p[1:] @ omega], p[0] * omega + np.cross(p[1:], omega)])


def a05() -> tuple[list[Claim], Any]:
    """A05: the flyball governor, stiff."""
    sol = solve(*models.flyball_governor(), 10.0, rtol=_RTOL)
    place, speed = (40.3206895922, 0.5930327437, 0.8292863035), (5.0329641647, 0.9714706607, -0.5429426892)
    note = f"{len(sol)} steps"
    return [close("q at t = 10", place, end(sol), 1e-7), close("v at t = 10", speed, sol.v[-1], 1e-7, note)], None


def tops() -> tuple[list[Claim], Any]:
    """A free top over 2000 turns with 40 steps each."""
    spin = 2 * np.pi * np.array([0.1, 0.2, 1.0])
    system, state = models.free_top((1.0, 2.0, 3.0), spin)
    sol = simulate(system, state, IRK(gauss(3)), t1=2000.0, h=1 / 40, save_every=40)
    J = np.array([1.0, 2.0, 3.0])
    energy = sol.v[:, 3:] ** 2 @ J
    turn = np.asarray(space_rotation(jnp.asarray(sol.q[:, 3:])))
    momentum = np.einsum("tij,tj->ti", turn, J * sol.v[:, 3:])
    size = np.linalg.norm(momentum[0])
    return [
        close("energy, relative", 1.0, energy / energy[0], 1e-12),
        close("angular momentum, relative", momentum[0] / size, momentum / size, 1e-8),
        close("length of the quaternion", 1.0, np.linalg.norm(sol.q[:, 3:], axis=1), 1e-13),
    ], None


def squares_after_impacts(sol: Solution, n: int, J: float, g: np.ndarray) -> np.ndarray:
    """omega^2 at the beginning of every stance of a wheel with unit mass and spokes, by the energy of the stance."""
    turn, alpha = 2 * np.pi * np.arange(n) / n - np.pi / 2 + sol.q[:, 2:], np.pi / n
    arms = np.stack([np.cos(turn), np.sin(turn)], -1)
    stands = np.argmin(arms[..., 1], axis=1)
    arm = arms[np.arange(len(sol)), stands]
    begins = np.array([-np.sin(alpha), np.cos(alpha)])
    squares = sol.v[:, 2] ** 2 + 2 / (J + 1) * (arm + begins) @ g
    return np.array([np.median(part) for part in np.split(squares, np.flatnonzero(np.diff(stands)) + 1)])


def rimless_wheel() -> tuple[list[Claim], Any]:
    """The rimless wheel: what a step takes from the distance to its limit cycle, and the speed there."""
    n, slope, J, g = 8, 0.1, 0.5, 9.81
    alpha = np.pi / n
    multiplier = ((J + np.cos(2 * alpha)) / (J + 1)) ** 2
    speed = multiplier / (1 - multiplier) * 4 * g * np.sin(alpha) * np.sin(slope) / (J + 1)
    sol = solve(*models.rimless_wheel(n, slope, inertia=J, rate=1.5), 12.0, rtol=1e-10, atol=1e-12)
    after = squares_after_impacts(sol, n, J, g * np.array([np.sin(slope), -np.cos(slope)]))
    steps = np.diff(after[1:5])
    found = steps[1] / steps[0]
    note = "closed form (McGeer)"
    return [
        number("multiplier of a step", multiplier, found, 1e-8, note),
        number(
            "speed at the beginning of a stance of the limit cycle",
            np.sqrt(speed),
            np.sqrt(after[2] + steps[1] / (1 - found)),
            1e-8,
            note,
        ),
    ], None


def bead_on_hoop() -> tuple[list[Claim], Any]:
    """A bead on a turning hoop with dry friction, up to its first reversal."""
    system, state = models.bead_on_hoop()
    mu, turning, t1 = 0.2, 4.0, 0.5

    def rates(y: np.ndarray) -> list[float]:
        angle, rate = y
        s, c = np.sin(angle), np.cos(angle)
        force = np.hypot(rate**2 + (turning * s) ** 2 + 9.81 * c, 2 * turning * c * rate)
        return [rate, turning**2 * s * c - 9.81 * s + mu * force]

    angle = reference(rates, t1, [2.5, 0.0])[0]
    sol = solve(system, state, t1, rtol=_RTOL)
    slides = bool(np.max(sol.q[1:, 0] * sol.v[1:, 1] - sol.q[1:, 1] * sol.v[1:, 0]) < 0)
    downhill = Claim("slides down all the time", "yes", "yes" if slides else "no", slides)
    place = [np.sin(angle), -np.cos(angle)]
    return [downhill, close(f"place at t = {t1:g}", place, end(sol), 1e-8, "angle by DOP853")], None


def dominoes() -> tuple[list[Claim], Any]:
    """A row of dominoes: the speed of the wave on halving the step."""
    system, state = models.dominoes(8)
    speeds = []
    for h in (1e-4, 5e-5):
        sol = simulate(system, state, MoreauMidpoint(), t1=0.8, h=h)
        falls = [float(sol.t[np.argmax(sol.q[:, 3 * i + 2] < -1e-3)]) for i in (2, 7)]
        speeds.append(5 * 0.03 / (falls[1] - falls[0]))
    change = abs(speeds[1] / speeds[0] - 1)
    return [Claim("change of the wave's speed", "< 0.01", change, change < 0.01, f"{speeds[1]:.4g} m/s")], None


items: dict[str, Item] = {
    "a01": a01,
    "a02": a02,
    "a03": a03,
    "a04": a04,
    "a05": a05,
    "tops": tops,
    "rimless_wheel": rimless_wheel,
    "bead_on_hoop": bead_on_hoop,
    "dominoes": dominoes,
}
