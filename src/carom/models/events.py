"""Models of Acary2012: impacts, accumulations, persistent contacts that open, and an elastic body.

Every number is a parameter leaf: building a model with other numbers never recompiles.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from carom.arguments import numpy_for, real
from carom.models.registry import model
from carom.state import State
from carom.systems.contact import Contacts
from carom.systems.system import System


def _weight(q, p):
    return p["weight"] * q[0]


def _first(q):
    return q[:1]


@model(t1=4.0, h=0.002, method="MoreauMidpoint()")
def bouncing_ball(
    height: float = 1.0, velocity: float = 0.0, restitution: float = 0.5, gravity: float = 2.0, mass: float = 1.0
) -> tuple[System, State]:
    """A ball that comes to rest after infinitely many impacts in finite time [Acary2012 Example 1].

    `carom.models.exact.bouncing_ball` is its solution, through the accumulation and beyond.

    Example:
        >>> ball, state = carom.models.bouncing_ball()
    """
    contacts = Contacts(_first, restitution=restitution)
    system = System(mass, _weight, params={"weight": real(mass * gravity)}, contacts=contacts, labels=("q",))
    return system, State([height], [velocity])


def _spring_and_preload(q, p):
    return 0.5 * p["stiffness"] * q[0] ** 2 + p["preload"] * q[0]


def _dashpot(t, q, v, p):
    del t, q
    return -p["damping"] * v


@model(t1=10.0, h=0.005, method="MoreauMidpoint()")
def oscillator_with_stop(
    mass: float = 1.0,
    damping: float = 0.4,
    stiffness: float = 4.0,
    preload: float = 0.0,
    restitution: float = 0.5,
    position: float = 1.0,
    velocity: float = 0.0,
) -> tuple[System, State]:
    """A damped oscillator above a stop, pressed against it by a preload [Acary2012 Example 2].

    The paper does not print its data; the defaults are carom's choice. With a preload the impacts accumulate.
    `carom.models.exact.oscillator_with_stop` is its event-exact solution.

    Example:
        >>> oscillator, state = carom.models.oscillator_with_stop(preload=0.3)
    """
    numbers = {"damping": real(damping), "stiffness": real(stiffness), "preload": real(preload)}
    system = System(
        mass,
        _spring_and_preload,
        {"dissipative": _dashpot},
        params=numbers,
        contacts=Contacts(_first, restitution=restitution),
        labels=("q",),
    )
    return system, State([position], [velocity])


def _height(q, p):
    return p["weight"] * q[1]


def _above_sphere(q, p):
    return jnp.sqrt(q @ q)[None] - p["radius"]


@model(t1=1.0, h=0.005, method="EventCapturing(radau_iia(2))")
def mass_on_sphere(
    radius: float = 1.0, angle: float = 0.3, gravity: float = 9.81, mass: float = 1.0
) -> tuple[System, State]:
    """A point mass that slides down a sphere, from rest at `angle` from the top, and leaves it.

    It leaves where `cos(angle) = 2/3 cos(start)`, whatever the radius. Coordinates (x, y) from the centre, y up.

    Example:
        >>> mass, state = carom.models.mass_on_sphere(radius=2.0, angle=0.2)
    """
    params = {"weight": real(mass * gravity), "radius": real(radius)}
    system = System(mass, _height, params=params, contacts=Contacts(_above_sphere), labels=("x", "y"), units="m")
    outside = radius * (1 + 4 * np.finfo(float).eps)  # rounding must not start under the surface
    xp = numpy_for(angle)
    return system, State([outside * xp.sin(angle), outside * xp.cos(angle)], [0.0, 0.0])


def _stretch(q, p):
    return 0.5 * p["stiffness"] * jnp.sum((q[1:] - q[:-1]) ** 2)


@model(t1=2.0, h=0.001, method="MoreauMidpoint()")
def elastic_bar(
    elements: int = 2,
    length: float = 1.0,
    mass: float = 1.0,
    stiffness: float = 25.0,
    gap: float = 0.5,
    velocity: float = -1.0,
    restitution: float = 0.0,
) -> tuple[System, State]:
    """An elastic bar of finite elements that hits a wall with its first node [Acary2012 Remark 1].

    Coordinates are the displacements of the nodes plus the first gap; masses are lumped.

    Args:
        elements: number of elements.
        length: of the bar.
        mass: of the bar.
        stiffness: E A of the bar.
        gap: between the first node and the wall at the start.
        velocity: of all nodes at the start; negative towards the wall.
        restitution: of the node that hits.

    Example:
        >>> bar, state = carom.models.elastic_bar()
    """
    if elements < 1:
        msg = f"elastic_bar: elements must be at least 1, got {elements}"
        raise ValueError(msg)
    lumped = jnp.full(elements + 1, mass / elements).at[jnp.array([0, -1])].mul(0.5)
    params = {"stiffness": real(stiffness * elements / length)}
    labels = tuple(f"u{i}" for i in range(elements + 1))
    system = System(lumped, _stretch, params=params, contacts=Contacts(_first, restitution=restitution), labels=labels)
    return system, State(jnp.full(elements + 1, gap), jnp.full(elements + 1, velocity))
