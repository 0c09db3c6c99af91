"""Systems whose orbits, exponents and motions are known in closed form."""

import jax.numpy as jnp
import numpy as np

import carom

SMOOTH = carom.ExplicitRK(carom.explicit(5))
CAPTURING = carom.EventCapturing(carom.explicit(5))
TIGHT = carom.Adaptive(1e-10, 1e-12)
NUMBERS = {"stiffness": 2.0, "damping": 0.3, "amplitude": 1.0, "frequency": 1.7}


def spring(q, p):
    return 0.5 * p["stiffness"] * q[0] ** 2


def dashpot(t, q, v, p):
    return -p["damping"] * v


def drive(t, q, v, p):
    return (p["amplitude"] * jnp.cos(p["frequency"] * t))[None]


def oscillator(**numbers):
    """x'' + c x' + k x = a cos(w t), from rest at 0.4."""
    system = carom.System(1.0, spring, {"dissipative": dashpot, "exciting": drive}, params=numbers)
    return system, carom.State([0.4], [0.0])


def steady(t, stiffness, damping, amplitude, frequency):
    """Place and velocity of the oscillator in its periodic motion."""
    a = amplitude / (stiffness - frequency**2 + 1j * damping * frequency)
    x = a * np.exp(1j * frequency * t)
    return x.real, (1j * frequency * x).real


def free(t, stiffness, damping, amplitude, frequency):
    """Place of the oscillator after its start."""
    x0, v0 = steady(0.0, stiffness, damping, amplitude, frequency)
    w = np.sqrt(stiffness - damping**2 / 4)
    A, B = 0.4 - x0, (-v0 + damping / 2 * (0.4 - x0)) / w
    return steady(t, stiffness, damping, amplitude, frequency)[0] + np.exp(-damping * t / 2) * (
        A * np.cos(w * t) + B * np.sin(w * t)
    )
