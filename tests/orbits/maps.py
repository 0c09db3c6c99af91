"""The impact map of a ball on a shaken table in closed form, as a return map."""

import numpy as np
from scipy.optimize import brentq

from carom.orbits.newton import Image

W = 2 * np.pi  # of the table; gravity is 1, so is its period
E = 0.8
FOLD = np.pi * (1 - E) / (1 + E)
FLIP = float(np.hypot(FOLD, 2 * (1 + E**2) / (1 + E) ** 2))


def bounce(z):
    """From one impact, (time, velocity after it, A w^2 / g), to the next one a period later."""
    t, v, shaking = z
    A = shaking / W**2

    def height(s):
        return A * np.sin(W * t) + v * s - 0.5 * s**2 - A * np.sin(W * (t + s))

    s = brentq(height, 0.3, 1.8, xtol=1e-15)
    end, speed = t + s, v - s
    table, bend = A * W * np.cos(W * end), -A * W**2 * np.sin(W * end)
    ds = -np.array([A * W * np.cos(W * t) - table, s, (np.sin(W * t) - np.sin(W * end)) / W**2]) / (speed - table)
    dt = ds + [1.0, 0.0, 0.0]
    dspeed = np.array([0.0, 1.0, 0.0]) - ds
    slopes = np.stack([dt, -E * dspeed + (1 + E) * (bend * dt + np.cos(W * end) / W * np.array([0.0, 0.0, 1.0]))])
    image = np.array([end - 1.0, -E * speed + (1 + E) * table])
    return Image(image, s, np.zeros(0), slopes, 0)


def orbit(shaking, sign=1.0):
    """One bounce per period: (time, velocity, shaking)."""
    return np.array([sign * np.arccos(FOLD / shaking) / W, 0.5, shaking])
