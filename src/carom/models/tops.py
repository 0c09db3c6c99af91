"""Bodies that spin and roll in space: free tops, the tippe top, a rolling disk."""

from __future__ import annotations

import numpy as np

from carom.arguments import numpy_for
from carom.mechanisms import Mechanism, Plane, RigidBody, joints
from carom.models.registry import model
from carom.state import Numbers, State
from carom.systems.system import System

IN_SPACE = ("m", "m", "m", "1", "1", "1", "1")  # units of place and quaternion


@model(t1=40.0, h=0.02, method="IRK(gauss(3))")
def free_top(inertia: Numbers = (1.0, 2.0, 3.0), spin: Numbers = (0.01, 2.0, 0.0)) -> tuple[System, State]:
    """A free rigid body; spun about its middle axis it turns over again and again (Dzhanibekov).

    Example:
        >>> top, state = carom.models.free_top(inertia=(1.0, 1.0, 0.5), spin=(0.1, 0.0, 1.0))
    """
    mechanism = Mechanism([RigidBody(1.0, inertia, spin=spin, name="top")])
    return mechanism.system, mechanism.state


@model(t1=3.0, h=0.0002, method="MoreauMidpoint()", save_every=10)
def tippe_top(
    friction: float = 0.3,
    spin: float = 180.0,
    angle: float = 0.1,
    mass: float = 6e-3,
    inertia: Numbers = (8e-7, 8e-7, 7e-7),
    gravity: float = 9.81,
) -> tuple[System, State]:
    """The tippe top: a ball with its centre of mass under its middle, and a stem, turns upside down (Leine's data).

    Ball and stem are rounded corners on the axis of the body, with point contact and dry friction. It begins with its
    spin about the upright: spun about its own axis it would come to roll without slipping, and stay.

    Example:
        >>> top, state = carom.models.tippe_top(friction=0.2)
    """
    xp = numpy_for(angle, spin)
    top = RigidBody(
        mass,
        inertia,
        position=xp.array([0.0, 0.0, 0.015 - 0.003 * xp.cos(angle)]),
        rotation=xp.array([angle, 0.0, 0.0]),
        spin=spin * xp.array([0.0, xp.sin(angle), xp.cos(angle)]),
        corners=np.array([[0.0, 0.0, 0.003], [0.0, 0.0, 0.016]]),
        radius=(0.015, 0.005),
        name="top",
    )
    mechanism = Mechanism([top], planes=[Plane((0, 0, 1), friction=friction)], gravity=gravity, units=IN_SPACE)
    return mechanism.system, mechanism.state


@model(t1=5.0, h=0.005, method="Spark(3)")
def rolling_disk(
    radius: float = 0.5,
    mass: float = 1.0,
    lean: float = 0.2,
    spin: float = 4.0,
    turning: float = 0.5,
    gravity: float = 9.81,
) -> tuple[System, State]:
    """A thin disk that rolls on a plane without slipping, and leans: two nonholonomic constraints.

    Example:
        >>> disk, state = carom.models.rolling_disk(lean=0.1)
    """
    xp = numpy_for(radius, lean, spin, turning)
    c, s = xp.cos(lean), xp.sin(lean)
    inertia = mass * radius**2 * xp.array([0.25, 0.5, 0.25])
    disk = RigidBody(
        mass,
        inertia,
        position=xp.array([0.0, radius * s, radius * c]),
        rotation=xp.array([-lean, 0.0, 0.0]),
        velocity=xp.array([radius * spin, 0.0, 0.0]),
        spin=xp.array([0.0, spin, turning]),
        name="disk",
    )
    rolls = joints.rolling("disk", radius=radius, axis=xp.array([0.0, c, -s]))
    mechanism = Mechanism([disk], [rolls], gravity=gravity, units=IN_SPACE)
    return mechanism.system, mechanism.state
