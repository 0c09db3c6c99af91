"""Driven systems with impact or dry friction, as they are swept over parameters.

Every number is a parameter leaf: building a model with other numbers never recompiles.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from carom.arguments import real
from carom.models.registry import model
from carom.state import State
from carom.systems.contact import Contacts, FrictionElements
from carom.systems.laws import positive_power
from carom.systems.system import System


def _first(q):
    return q[:1]


def _weight(q, p):
    return p["gravity"] * q[0]


def _shaken(t, q, v, p):
    del q, v
    return (p["gravity"] * p["shaking"] * jnp.sin(p["frequency"] * t))[None]


@model(t1=30.0, h=0.005, method="MoreauMidpoint()")
def shaken_ball(
    shaking: float = 0.8,
    frequency: float = 2 * np.pi,
    restitution: float = 0.8,
    gravity: float = 1.0,
    height: float = 0.09,
    velocity: float = -0.45,
) -> tuple[System, State]:
    """A ball on a table that moves up and down as A sin(w t); the coordinate is its height above the table.

    `shaking` is A w^2 / g. One bounce per period is stable between the fold at pi (1 - e) / (1 + e) and the flip at
    sqrt(fold^2 + (2 (1 + e^2) / (1 + e)^2)^2), of the restitution e.

    Example:
        >>> ball, state = carom.models.shaken_ball(shaking=1.2)
    """
    params = {"gravity": real(gravity), "shaking": real(shaking), "frequency": real(frequency)}
    contacts = Contacts(_first, restitution=restitution)
    system = System(1.0, _weight, {"exciting": _shaken}, params=params, contacts=contacts, labels=("height",))
    return system, State([height], [velocity])


def _springs(q, p):
    return 0.5 * p["stiffness"] * q[0] ** 2 + 0.25 * p["cubic"] * q[0] ** 4


def _dashpot(t, q, v, p):
    del t, q
    return -p["damping"] * v


def _driven(t, q, v, p):
    del q, v
    return (p["amplitude"] * jnp.cos(p["frequency"] * t))[None]


def _before_stop(q, p):
    return p["stop"] - q[:1]


@model(t1=60.0, h=0.01, method="MoreauMidpoint()")
def driven_oscillator(
    frequency: float = 2.8,
    amplitude: float = 1.0,
    mass: float = 1.0,
    damping: float = 0.02,
    stiffness: float = 1.0,
    cubic: float = 0.0,
    stop: float = 0.0,
    restitution: float = 0.8,
    position: float = -0.5,
    velocity: float = 0.0,
) -> tuple[System, State]:
    """A mass on a spring, driven by `amplitude cos(frequency t)`, that hits a stop; with `cubic` a Duffing oscillator.

    It moves where x < stop. Without impacts it swings with amplitude / sqrt((k - m w^2)^2 + c^2 w^2), and grazes the
    stop where that is its distance.

    Example:
        >>> oscillator, state = carom.models.driven_oscillator(frequency=2.6, cubic=0.5)
    """
    numbers = {"amplitude": amplitude, "frequency": frequency, "damping": damping}
    numbers |= {"stiffness": stiffness, "cubic": cubic, "stop": stop}
    system = System(
        mass,
        _springs,
        {"dissipative": _dashpot, "exciting": _driven},
        params={name: real(x) for name, x in numbers.items()},
        contacts=Contacts(_before_stop, restitution=restitution),
        labels=("x",),
    )
    return system, State([position], [velocity])


def _velocity(q, v):
    del q
    return v


@model(t1=60.0, h=0.01, method="MoreauMidpoint()")
def friction_oscillator(
    frequency: float = 0.5,
    amplitude: float = 1.0,
    limit: float = 0.7,
    mass: float = 1.0,
    damping: float = 0.0,
    stiffness: float = 1.0,
    position: float = 0.0,
    velocity: float = 0.0,
) -> tuple[System, State]:
    """A mass on a spring and on a rough table, driven by `amplitude cos(frequency t)`: it slips and sticks.

    Nothing moves where the amplitude is less than the friction's limit.

    Example:
        >>> oscillator, state = carom.models.friction_oscillator(limit=0.8)
    """
    numbers = {"amplitude": amplitude, "frequency": frequency, "damping": damping, "stiffness": stiffness}
    system = System(
        mass,
        _springs,
        {"dissipative": _dashpot, "exciting": _driven},
        params={name: real(x) for name, x in (numbers | {"cubic": 0.0}).items()},
        friction=FrictionElements(_velocity, limit),
        labels=("x",),
    )
    return system, State([position], [velocity])


def _spring_force(t, q, v, p):
    del t, v
    return -q[:1] - p["preload"]


def _pressure(t, q, v, p):
    del t
    return q[1:] - p["damping"] * v


def _lift_and_pressure(t, q, v, p):
    del t
    return jnp.stack([v[0], p["compressibility"] * (p["flow"] - q[0] * positive_power(q[1], 0.5))])


@model(t1=20.0, h=0.002, method="EventCapturing(explicit(5))")
def relief_valve(
    flow: float = 5.0,
    damping: float = 1.25,
    preload: float = 10.0,
    compressibility: float = 20.0,
    restitution: float = 0.8,
    lift: float = 0.2,
    pressure: float = 0.0,
) -> tuple[System, State]:
    """A pressure relief valve: a disk on a spring that closes on its seat, above a reservoir with an inflow.

    Coordinates are lift y and pressure p of the reservoir; y'' = p - y - preload - damping y' with impacts at y = 0,
    p' = compressibility (flow - y sqrt(p)).

    Example:
        >>> valve, state = carom.models.relief_valve(flow=7.0)
    """
    numbers = {"flow": flow, "damping": damping, "preload": preload, "compressibility": compressibility}
    system = System(
        1.0,
        None,
        {"spring": _spring_force, "pressure": _pressure},
        kinematics=_lift_and_pressure,
        params={name: real(x) for name, x in numbers.items()},
        contacts=Contacts(_first, restitution=restitution),
        labels=("lift", "pressure"),
    )
    return system, State([lift, pressure], [0.0])
