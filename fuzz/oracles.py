"""References: closed forms between events, SciPy's DOP853 where there are none. Nothing here imports carom.

A reference is a function `(numbers, q0, v0, times) -> (q, v)` with one row per time; times count from the start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, minimize_scalar

Numbers = dict[str, Any]
_SAMPLES = 48  # per window
_MOST_EVENTS = 600


class NoReferenceError(Exception):
    """The oracle itself cannot follow this motion."""


# ---------------------------------------------------------------------------------------------- smooth


def integrated(rates: Callable, y0: np.ndarray, times: np.ndarray, max_step: float = np.inf) -> np.ndarray:
    """Rows of an ODE at increasing times from 0, to 1e-12."""
    if times[-1] == 0.0:
        return np.tile(y0, (len(times), 1))
    found = solve_ivp(rates, (0.0, times[-1]), y0, "DOP853", t_eval=times, rtol=1e-12, atol=1e-14, max_step=max_step)
    if not found.success:
        raise NoReferenceError(found.message)
    return found.y.T


def driven(n: Numbers, q0: Any, v0: Any, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Duffing's oscillator with drive, a pulse in time and a barrier in space."""

    def rates(t, y):
        x, v = y
        bump = np.exp(-(((x - n["place"]) / n["breadth"]) ** 2))
        slope = -2 * (x - n["place"]) / n["breadth"] ** 2 * bump
        pulse = n["pulse"] * np.exp(-(((t - n["when"]) / n["width"]) ** 2))
        force = n["a"] * np.cos(n["w"] * t) + pulse - n["barrier"] * slope
        return [v, force - n["k"] * x - n["k3"] * x**3 - n["c"] * v]

    steps = [n["width"] / 2 if n["pulse"] else np.inf, n["breadth"] / 2 if n["barrier"] else np.inf]
    y = integrated(rates, np.array([*q0, *v0]), times, min(steps))
    return y[:, :1], y[:, 1:]


def pendulum(n: Numbers, q0: Any, v0: Any, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A pendulum in the plane by its angle from below; q0 and v0 are Cartesian and lie on the circle."""
    length = np.hypot(*q0)
    angle, spin = np.arctan2(q0[0], -q0[1]), (v0[0] * -q0[1] + v0[1] * q0[0]) / length**2
    y = integrated(lambda t, y: [y[1], -n["g"] / length * np.sin(y[0]) - n["c"] * y[1]], [angle, spin], times)
    sin, cos, w = np.sin(y[:, 0]), np.cos(y[:, 0]), y[:, 1]
    return length * np.stack([sin, -cos], 1), length * np.stack([cos * w, sin * w], 1)


def double_pendulum(n: Numbers, q0: Any, v0: Any, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two rods, two masses, absolute angles: the equations of motion by hand."""
    m1, m2, a, b, g = (n[x] for x in ("m1", "m2", "l1", "l2", "g"))

    def rates(t, y):
        del t
        p, q, u, w = y
        s, c = np.sin(p - q), np.cos(p - q)
        mass = np.array([[(m1 + m2) * a**2, m2 * a * b * c], [m2 * a * b * c, m2 * b**2]])
        force = [-m2 * a * b * s * w**2 - (m1 + m2) * g * a * np.sin(p), m2 * a * b * s * u**2 - m2 * g * b * np.sin(q)]
        return [u, w, *np.linalg.solve(mass, force)]

    y = integrated(rates, np.array([*q0, *v0]), times)
    return y[:, :2], y[:, 2:]


def hertz_chain(n: Numbers, q0: Any, v0: Any, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Beads with Hertz contacts and Kuwabara-Kono damping."""
    m, k, gamma = np.asarray(n["masses"]), np.asarray(n["stiffness"]), n["gamma"]

    def rates(t, y):
        del t
        x, v = np.split(y, 2)
        d = np.maximum(x[:-1] - x[1:], 0.0)
        f = k * (d**1.5 + gamma * 1.5 * np.sqrt(d) * (v[:-1] - v[1:]))
        return np.concatenate([v, (np.append(0.0, f) - np.append(f, 0.0)) / m])

    y = integrated(rates, np.array([*q0, *v0]), times, max_step=times[-1] / 200)
    return np.split(y, 2, axis=1)


# ---------------------------------------------------------------------------------------------- exact pieces


def linear_flow(n: Numbers, push: float, t0: float, x0: float, v0: float) -> Callable:
    """(x, v)(t) of x'' + c x' + k x = push + a cos(w t), exactly; c only with k, below critical."""
    k, c, a, w = n["k"], n["c"], n["a"], n["w"]
    if k == 0.0:

        def free(t):
            s = t - t0
            v = v0 + push * s + a / w * (np.sin(w * t) - np.sin(w * t0))
            x = x0 + v0 * s + 0.5 * push * s**2 - a / w**2 * (np.cos(w * t) - np.cos(w * t0))
            return x - a / w * np.sin(w * t0) * s, v

        return free
    amplitude, half = a / (k - w**2 + 1j * c * w), 0.5 * c
    omega = np.sqrt(k - half**2)

    def forced(t):
        turn = amplitude * np.exp(1j * w * t)
        return push / k + turn.real, (1j * w * turn).real

    y0, u0 = x0 - forced(t0)[0], v0 - forced(t0)[1]

    def flow(t):
        s, (x, v) = t - t0, forced(t)
        e, sin, cos = np.exp(-half * s), np.sin(omega * s), np.cos(omega * s)
        b = (u0 + half * y0) / omega
        y = e * (y0 * cos + b * sin)
        return x + y, v + e * (u0 * cos - (omega * y0 + half * b) * sin)

    return flow


def first_fall(f: Callable, t0: float, t1: float, window: float, ahead: float) -> float | None:
    """The first time after t0 at which f falls through zero; `ahead` is a time within the first rise, or t0."""
    left = ahead
    while left < t1:
        right = min(left + window, t1)
        t = np.linspace(left, right, _SAMPLES)
        y = f(t)
        low = np.flatnonzero(y < 0)
        dips = np.flatnonzero((y[1:-1] < y[:-2]) & (y[1:-1] <= y[2:]) & (y[1:-1] > 0)) + 1
        for i in dips[: None if not low.size else np.searchsorted(dips, low[0])]:
            dip = minimize_scalar(f, bounds=(t[i - 1], t[i + 1]), method="bounded", options={"xatol": 1e-12})
            if dip.fun < 0:
                return brentq(f, t[i - 1], dip.x, xtol=1e-15, rtol=1e-15)
        if low.size:
            i = low[0]
            if i == 0:
                return t[0]
            if not f(t[i - 1]) > 0 > f(t[i]):  # to rounding
                return t[i - 1] if y[i - 1] <= 0 else t[i]
            return brentq(f, t[i - 1], t[i], xtol=1e-15, rtol=1e-15)
        left = right
    return None


class Track:
    """Pieces of a motion, evaluated where they are asked for."""

    def __init__(self, times: np.ndarray):
        self.times, self.rows, self.events = times, [], []

    def until(self, end: float, piece: Callable) -> None:
        """Fill in the times up to `end`, from the first one that is open."""
        first = len(self.rows)
        for t in self.times[first:]:
            if t > end:
                return
            self.rows.append(np.stack([np.atleast_1d(x) for x in piece(t)]))

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """(q, v), one row per time."""
        rows = np.array(self.rows)
        return rows[:, 0], rows[:, 1]


def kicked(n: Numbers, q0: Any, v0: Any, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A spring that is pushed with a constant force from `on` to `off`."""
    track, x, v, t = Track(times), float(q0[0]), float(v0[0]), 0.0
    quiet = n | {"c": 0.0, "a": 0.0, "w": 1.0}
    for end, force in ((n["on"], 0.0), (n["off"], n["force"]), (np.inf, 0.0)):
        flow = linear_flow(quiet, force, t, x, v)
        track.until(end, flow)
        if end < np.inf:
            (x, v), t = flow(end), end
    return track.result()


def dry_friction(n: Numbers, q0: Any, v0: Any, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x'' + c x' + k x = push + a cos(w t) - limit Sign(x' - u(t)) with a belt u = u0 + b sin(w t)."""
    u0, b, w, limit = n["u0"], n["b"], n["w"], n["limit"]
    t, x, v, end = 0.0, float(q0[0]), float(v0[0]), times[-1]
    track, window = Track(times), 0.4 / max(w, np.sqrt(n["k"]), 0.5)
    belt = lambda t: u0 + b * np.sin(w * t)

    def needed(t, x):
        u = belt(t)
        return b * w * np.cos(w * t) + n["c"] * u + n["k"] * x - n["push"] - n["a"] * np.cos(w * t)

    sign, ahead = float(np.sign(v - belt(t))), 0.0
    for _ in range(_MOST_EVENTS):
        if sign == 0.0:
            ahead = 1e-5
            if abs(needed(t, x)) <= limit:
                carried = lambda s, t=t, x=x: x + u0 * (s - t) - b / w * (np.cos(w * s) - np.cos(w * t))
                reserve = lambda s, c=carried: limit - np.abs(needed(s, c(s)))
                event = first_fall(reserve, t, end, window, t + 1e-12)
                track.until(end if event is None else event, lambda s, c=carried: (c(s), belt(s)))
                if event is None:
                    return track.result()
                t, x = event, float(carried(event))
                v = float(belt(t))
            sign = -float(np.sign(needed(t, x)))
        flow = linear_flow(n, n["push"] - sign * limit, t, x, v)
        slip = lambda s, f=flow, g=sign: g * (f(s)[1] - belt(s))
        event = first_fall(slip, t, end, window, min(t + ahead, end))
        track.until(end if event is None else event, flow)
        if event is None:
            return track.result()
        (x, v), t, sign = flow(event), event, 0.0
        x, v = float(x), float(v)
    raise NoReferenceError("too many events")


def hitting(n: Numbers, q0: Any, v0: Any, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x'' + c x' + k x = push + a cos(w t) over a table at floor + b sin(w t), with restitution e."""
    b, w, e, k, c = n["b"], n["w"], n["e"], n["k"], n["c"]
    t, x, v, end = 0.0, float(q0[0]), float(v0[0]), times[-1]
    track, window = Track(times), 0.4 / max(w, np.sqrt(k), 0.5)
    table = lambda t: n["floor"] + b * np.sin(w * t)
    rise = lambda t: b * w * np.cos(w * t)
    fastest = abs(v) + np.sqrt(2 * abs(n["push"] * (x - n["floor"]))) + abs(n["a"]) / w + abs(b * w) + 1e-3

    def pressed(t, x, v):
        return -b * w**2 * np.sin(w * t) + c * v + k * x - n["push"] - n["a"] * np.cos(w * t)

    for _ in range(_MOST_EVENTS):
        flow = linear_flow(n, n["push"], t, x, v)
        gap = lambda s, f=flow: f(s)[0] - table(s)
        ahead = 0.0
        if abs(gap(t)) < 1e-9 * (1 + abs(x)):
            weight, speed = pressed(t, x, v), v - rise(t)
            ahead = 2.5e-3 * window
            if weight > 0 and speed > 1e-12 * fastest:
                ahead = min(ahead, speed / weight)
        event = first_fall(gap, t, end, window, min(t + ahead, end))
        track.until(end if event is None else event, flow)
        if event is None:
            return track.result()
        t, (x, v) = event, (float(y) for y in flow(event))
        after = -e * (v - rise(t))
        v = rise(t) + after
        if after < 1e-11 * fastest and pressed(t, table(t), rise(t)) > 0:
            event = first_fall(lambda s: pressed(s, table(s), rise(s)), t, end, window, t)
            track.until(end if event is None else event, lambda s: (table(s), rise(s)))
            if event is None:
                return track.result()
            t, x, v = event, table(event), rise(event)
    raise NoReferenceError("too many events")


def spinning_ball(n: Numbers, q0: Any, v0: Any, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A ball (x, height, angle) with radius r and inertia j m r^2 that bounces on a rough floor and comes to roll."""
    g, r, j, e, mu = n["g"], n["r"], n["j"], n["e"], n["mu"]
    t, q, v, end = 0.0, np.array(q0, float), np.array(v0, float), times[-1]
    track, fastest = Track(times), np.sqrt(v0[1] ** 2 + 2 * g * q0[1])
    pull = np.array([0.0, -g, 0.0])
    for _ in range(_MOST_EVENTS):
        fly = lambda s, t=t, q=q, v=v: (q + v * (s - t) + 0.5 * pull * (s - t) ** 2, v + pull * (s - t))
        event = t + (v[1] + np.sqrt(max(v[1] ** 2 + 2 * g * q[1], 0.0))) / g
        track.until(min(event, end), fly)
        if event >= end:
            return track.result()
        t, (q, v) = event, fly(event)
        normal = -(1 + e) * v[1]
        side = np.clip(-(v[0] + r * v[2]) / (1 + 1 / j), -mu * normal, mu * normal)
        q, v = np.array([q[0], 0.0, q[2]]), v + np.array([side, normal, side / (j * r)])
        if v[1] < 1e-11 * fastest:
            break
    else:
        raise NoReferenceError("too many bounces")
    v[1] = 0.0
    slip = v[0] + r * v[2]
    drag = -np.sign(slip) * mu * g * np.array([1.0, 0.0, 1 / (j * r)])
    rolls = t + abs(slip) / (mu * g * (1 + 1 / j)) if mu > 0 else np.inf
    slide = lambda s: (q + v * (s - t) + 0.5 * drag * (s - t) ** 2, v + drag * (s - t))
    track.until(min(rolls, end), slide)
    if rolls < end:
        q1, v1 = slide(rolls)
        track.until(end, lambda s: (q1 + v1 * (s - rolls), v1))
    return track.result()


def rod(n: Numbers, q0: Any, v0: Any, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A rod (x, y, angle) of half length l and inertia j per mass whose ends hit a rough floor, up to seven times."""
    g, l, j, e, mu = n["g"], n["l"], n["j"], n["e"], n["mu"]
    t, q, v, end = 0.0, np.array(q0, float), np.array(v0, float), times[-1]
    track, pull, inverse = Track(times), np.array([0.0, -g, 0.0]), np.array([1.0, 1.0, 1 / j])
    for _ in range(8):
        fly = lambda s, t=t, q=q, v=v: (q + v * (s - t) + 0.5 * pull * (s - t) ** 2, v + pull * (s - t))

        def gap(s, side, t=t, q=q, v=v):
            y = q[1] + v[1] * (s - t) - 0.5 * g * (s - t) ** 2
            return y + side * l * np.sin(q[2] + v[2] * (s - t))

        window = 0.2 / max(abs(v[2]), 1.0)
        falls = [(first_fall(lambda s, k=k: gap(s, k), t, end, window, t + 1e-7), k) for k in (-1.0, 1.0)]
        falls = sorted((s, k) for s, k in falls if s is not None)
        if len(falls) == 2 and falls[1][0] - falls[0][0] < 1e-4:
            raise NoReferenceError("both ends at once")
        track.until(falls[0][0] if falls else end, fly)
        if not falls:
            return track.result()
        t, side = falls[0]
        q, v = fly(t)
        sin, cos = np.sin(q[2]), np.cos(q[2])
        v = struck(v, inverse, np.array([[0.0, 1.0, side * l * cos], [1.0, 0.0, -side * l * sin]]), e, mu)
    raise NoReferenceError("more than seven hits")


def struck(v: np.ndarray, inverse: np.ndarray, W: np.ndarray, e: float, mu: float) -> np.ndarray:
    """Velocities after Newton's impact with Coulomb's friction at one contact with directions (normal, tangent)."""
    G, before = (W * inverse) @ W.T, W @ v
    wanted = np.array([-(1 + e) * before[0], -before[1]])
    stick = np.linalg.solve(G, wanted)
    if abs(stick[1]) <= mu * stick[0]:
        return v + inverse * (W.T @ stick)
    for sign in (1.0, -1.0):
        normal = wanted[0] / (G[0, 0] - sign * mu * G[0, 1])
        after = v + inverse * (W.T @ np.array([normal, -sign * mu * normal]))
        if normal > 0 and sign * (W @ after)[1] >= 0:
            return after
    raise NoReferenceError("no impact with friction is consistent")
