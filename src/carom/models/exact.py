"""Exact solutions of models with impacts: closed forms between events, events by bisection to rounding."""

from __future__ import annotations

import numpy as np

from carom.state import Numbers

_SMALLEST = 1e-15  # speeds under this part of the first impact's are rest
_MOST_IMPACTS = 100_000


def bouncing_ball(
    t: Numbers, height: float = 1.0, velocity: float = 0.0, restitution: float = 0.5, gravity: float = 2.0
) -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity (right limits) of `carom.models.bouncing_ball` [Acary2012 (10)], for any numbers.

    Example:
        >>> q, v = carom.models.exact.bouncing_ball(np.linspace(0.0, 5.0, 101))
    """
    t = np.asarray(t, float)
    first = (velocity + np.sqrt(velocity**2 + 2 * gravity * height)) / gravity
    speed = gravity * first - velocity  # of the first impact
    flight = 2 * restitution * speed / gravity  # duration of the first bounce
    after = np.maximum(t - first, 0.0)
    if restitution < 1:
        left = 1 - after * (1 - restitution) / flight if flight > 0 else np.full_like(t, -1.0)
        rest = left <= _SMALLEST
        n = np.floor(np.log(np.where(rest, 1.0, left)) / np.log(max(restitution, 1e-300)) + 1e-12)
        began = flight * (1 - restitution**n) / (1 - restitution)
    else:
        rest, n = np.zeros(t.shape, bool), np.floor(after / flight)
        began = n * flight
    up = speed * restitution ** (n + 1)
    x = after - began
    falling = t < first
    q = np.where(
        falling, height + velocity * t - 0.5 * gravity * t**2, np.where(rest, 0.0, x * (up - 0.5 * gravity * x))
    )
    v = np.where(falling, velocity - gravity * t, np.where(rest, 0.0, up - gravity * x))
    return q, v


def oscillator_with_stop(
    t: Numbers,
    mass: float = 1.0,
    damping: float = 0.4,
    stiffness: float = 4.0,
    preload: float = 0.0,
    restitution: float = 0.5,
    position: float = 1.0,
    velocity: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity (right limits) of `carom.models.oscillator_with_stop`, event by event.

    Example:
        >>> q, v = carom.models.exact.oscillator_with_stop([1.0, 2.0], preload=0.3)
    """
    t = np.atleast_1d(np.asarray(t, float))
    flow = _Flow(mass, damping, stiffness, preload)
    q, v = np.zeros(t.shape), np.zeros(t.shape)
    begin, y = 0.0, (float(position), float(velocity))
    for _ in range(_MOST_IMPACTS):
        lasts = flow.until_impact(y)
        now = (t >= begin) & (t < begin + lasts)
        q[now], v[now] = flow(t[now] - begin, y)
        if begin + lasts > t.max():
            return q, v
        begin, y = begin + lasts, (0.0, -restitution * float(flow(lasts, y)[1]))
        if y[1] <= _SMALLEST * flow.w * (abs(position) + abs(velocity)):
            break  # the impacts have accumulated: at rest on the stop
    return q, v


class _Flow:
    """The free motion `m q'' + c q' + k q + F = 0`, underdamped."""

    def __init__(self, mass: float, damping: float, stiffness: float, preload: float):
        self.z = damping / (2 * mass)
        squared = stiffness / mass - self.z**2
        if squared <= 0 or preload < 0:
            msg = "the exact oscillator needs damping under the critical one and preload >= 0, towards the stop"
            raise ValueError(msg)
        self.w, self.shift = np.sqrt(squared), preload / stiffness

    def __call__(self, t, y):
        """(q, v) after a time t."""
        a, b = y[0] + self.shift, (y[1] + self.z * (y[0] + self.shift)) / self.w
        sin, cos, decay = np.sin(self.w * t), np.cos(self.w * t), np.exp(-self.z * t)
        x = decay * (a * cos + b * sin)
        rate = decay * ((b * self.w - self.z * a) * cos - (a * self.w + self.z * b) * sin)
        started_on_the_stop = y[0] == 0.0
        if started_on_the_stop:  # q = x - shift without cancellation, for short flights
            x = self.shift * (np.expm1(-self.z * t) * cos - 2 * np.sin(0.5 * self.w * t) ** 2) + decay * b * sin
            return x, rate
        return x - self.shift, rate

    def until_impact(self, y) -> float:
        """Time until q comes down to zero: bisection between the apex and the next turning point."""
        a, b = y[0] + self.shift, (y[1] + self.z * (y[0] + self.shift)) / self.w
        apex = np.arctan2(b * self.w - self.z * a, a * self.w + self.z * b) / self.w
        low = apex if apex > 0 else 0.0
        high = apex + np.pi / self.w
        for _ in range(200):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            low, high = (middle, high) if self(middle, y)[0] > 0 else (low, middle)
        return high
