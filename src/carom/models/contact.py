"""Models with contact, impact and friction [Studer2008 sec. 10 and the literature named at each model].

Every number is a parameter leaf: building a model with other numbers never recompiles.
"""

from __future__ import annotations

import jax.numpy as jnp

from carom.arguments import numpy_for, real
from carom.models.registry import model
from carom.state import State
from carom.systems.contact import Contacts, FrictionElements
from carom.systems.system import System


def _weight(q, p):
    return p["weight"] * q[0]


def _height(q):
    return q[:1]


@model(t1=1.0, h=0.001, method="MoreauMidpoint()")
def falling_mass(
    height: float = 0.07, velocity: float = 0.0, restitution: float = 0.7, mass: float = 1.0, gravity: float = 9.81
) -> tuple[System, State]:
    """A point mass that falls on a table and comes to rest after infinitely many impacts [Studer2008 sec. 10.1].

    Example:
        >>> ball, state = carom.models.falling_mass(restitution=0.7)
    """
    system = System(
        mass,
        _weight,
        params={"weight": mass * gravity},
        contacts=Contacts(_height, restitution=restitution),
        labels=("z",),
        units="m",
    )
    return system, State([height], [velocity])


def _pull(t, q, v, p):
    del q, v
    return jnp.where(t < p["duration"], p["force"], 0.0)


def _both_velocities(q, v):
    del q
    return v[None, :]


@model(t1=4.0, h=0.01, method="MoreauMidpoint()")
def sliding_mass(
    limit: float = 2.0,
    velocity: tuple[float, float] = (2.0, -0.2),
    force: tuple[float, float] = (-2.5, -0.25),
    duration: float = 3.0,
    mass: float = 1.0,
) -> tuple[System, State]:
    """A point mass on a rough table, pulled by a force for a while [Studer2008 sec. 10.2].

    The instant at which the force stops is declared as a jump.

    Example:
        >>> mass, state = carom.models.sliding_mass()
    """
    system = System(
        mass,
        forces={"exciting": _pull},
        params={"force": numpy_for(force).asarray(force, float), "duration": real(duration)},
        friction=FrictionElements(_both_velocities, limit),
        jumps=[duration],
        labels=("x", "y"),
    )
    return system, State([0.0, 0.0], velocity)


def _spring(q, p):
    return 0.5 * p["stiffness"] * jnp.sum((q - p["free"]) ** 2)


def _dashpot(t, q, v, p):
    del t, q
    return -p["damping"] * v


def _stop(q, p):
    return p["side"] * q


@model(t1=2.0, h=0.001, method="MoreauMidpoint()")
def impact_oscillator(
    mass: float = 0.1,
    stiffness: float = 20.0,
    damping: float = 0.0,
    free: float = -0.15,
    restitution: float = 0.6,
    position: float = -0.5,
    velocity: float = 0.2,
    side: float = -1.0,
) -> tuple[System, State]:
    """A mass on a spring that hits a stop at x = 0; the mass moves where `side * x > 0` [Studer2008 sec. 10.3].

    The paper does not print on which side the stop is: contact at x >= 0 is carom's choice. The damped oscillator of
    Acary2012 is `impact_oscillator(1, 4, 0.4, 0, 0.5, 1, 0, side=1)`.

    Example:
        >>> oscillator, state = carom.models.impact_oscillator()
    """
    system = System(
        mass,
        _spring,
        {"dissipative": _dashpot},
        params={"stiffness": real(stiffness), "free": real(free), "damping": real(damping), "side": real(side)},
        contacts=Contacts(_stop, restitution=restitution),
        labels=("x",),
    )
    return system, State([position], [velocity])
