"""Rods, boxes, wheels and dominoes that hit a plane or each other, and a bead on a hoop."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from carom.arguments import numpy_for, real, whole
from carom.mechanisms import Mechanism, Plane, RigidBody, joints
from carom.models.registry import model
from carom.models.tops import IN_SPACE
from carom.state import Numbers, State
from carom.systems.contact import FrictionElements
from carom.systems.system import System


@model(t1=2.0, h=0.0005, method="MoreauMidpoint()")
def bouncing_rod(
    length: float = 1.0,
    height: float = 1.0,
    angle: float = 0.3,
    friction: float = 0.3,
    restitution: float = 0.5,
    mass: float = 1.0,
    gravity: float = 9.81,
) -> tuple[System, State]:
    """A rod that falls on a rough plane with one end first.

    Example:
        >>> rod, state = carom.models.bouncing_rod(angle=0.1)
    """
    position = numpy_for(height).array([0.0, height])
    rod = RigidBody.rod(mass, length, position=position, rotation=angle, velocity=(1.0, 0.0), name="rod")
    floor = Plane((0, 1), friction=friction, restitution=restitution)
    mechanism = Mechanism([rod], planes=[floor], gravity=gravity, units=("m", "m", "rad"))
    return mechanism.system, mechanism.state


@model(t1=2.0, h=0.0005, method="MoreauMidpoint()")
def bouncing_box(
    sides: Numbers = (1.0, 0.7, 0.5),
    height: float = 1.0,
    tilt: Numbers = (0.3, 0.2, 0.1),
    friction: float = 0.3,
    restitution: float = 0.3,
    mass: float = 1.0,
    gravity: float = 9.81,
) -> tuple[System, State]:
    """A box in space that falls on a rough plane, with its eight corners.

    Example:
        >>> box, state = carom.models.bouncing_box(tilt=(0.0, 0.0, 0.0))
    """
    position = numpy_for(height).array([0.0, 0.0, height])
    box = RigidBody.box(mass, sides, position=position, rotation=tilt, velocity=(0.5, 0.0, 0.0), name="box")
    floor = Plane((0, 0, 1), friction=friction, restitution=restitution)
    mechanism = Mechanism([box], planes=[floor], gravity=gravity, units=IN_SPACE)
    return mechanism.system, mechanism.state


@model(t1=10.0, h=0.001, method="MoreauMidpoint()")
def rimless_wheel(
    spokes: int = 8,
    slope: float = 0.1,
    length: float = 1.0,
    mass: float = 1.0,
    inertia: float = 0.5,
    rate: float = 0.8,
    friction: float = 5.0,
    gravity: float = 9.81,
) -> tuple[System, State]:
    """A wheel of spokes that walks down a rough slope (McGeer); impacts are plastic, gravity is tilted.

    Its multiplier per step and the speed it settles at are known: see `carom paper mechanisms`.

    Example:
        >>> wheel, state = carom.models.rimless_wheel(spokes=10, slope=0.05)
    """
    n, xp = whole(spokes, "spokes", 4), numpy_for(length, slope, rate)
    turn = 2 * np.pi * np.arange(n) / n - np.pi / 2
    feet = length * np.stack([np.cos(turn), np.sin(turn)], 1)
    wheel = RigidBody(
        mass,
        inertia,
        position=xp.array([0.0, length]),
        velocity=xp.array([rate * length, 0.0]),
        spin=-rate,
        corners=feet,
        name="wheel",
    )
    g = gravity * xp.array([xp.sin(slope), -xp.cos(slope)])
    mechanism = Mechanism([wheel], planes=[Plane((0, 1), friction=friction)], gravity=g, units=("m", "m", "rad"))
    return mechanism.system, mechanism.state


@model(t1=1.2, h=0.0005, method="MoreauMidpoint()")
def dominoes(
    n: int = 6,
    spacing: float = 0.03,
    height: float = 0.05,
    width: float = 0.008,
    push: float = 3.0,
    friction: float = 0.2,
    restitution: float = 0.0,
    mass: float = 0.01,
    gravity: float = 9.81,
) -> tuple[System, State]:
    """A row of dominoes on hinges at their feet, which stand against stops; the first one is pushed.

    The upper corner of each touches the face of the next one, with friction.

    Example:
        >>> row, state = carom.models.dominoes(n=10)
    """
    count, xp = whole(n, "n", 2), numpy_for(spacing, height, width, push)
    half = 0.5 * xp.array([width, height])
    inertia = mass * (height**2 + width**2) / 12
    bodies, hinges, faces = [], [], []
    for i in range(count):
        foot = xp.array([i * spacing, 0.0])
        spin = -push if i == 0 else 0.0
        bodies.append(
            RigidBody(
                mass,
                inertia,
                position=foot + half * np.array([-1.0, 1.0]),
                velocity=-spin * half[::-1],
                spin=spin,
                corners=[half] if i < count - 1 else None,
                name=f"domino {i}",
            )
        )
        stop = {"limits": (-0.5 * np.pi, 0.0), "name": f"foot {i}"}
        hinges.append(joints.revolute("ground", f"domino {i}", at=foot, **stop))
    for i in range(1, count):
        rough = {"friction": friction, "restitution": restitution}
        offset = 0.5 * real(width)
        faces.append(Plane((-1, 0), offset, of=f"domino {i}", touches=[f"domino {i - 1}"], **rough))
    mechanism = Mechanism(bodies, hinges, planes=faces, gravity=gravity, units=("m", "m", "rad") * count)
    return mechanism.system, mechanism.state


def _hoop_energy(q, p):
    """Of weight and of the turning frame."""
    return p["m"] * (p["g"] * q[1] - 0.5 * (p["rate"] * q[0]) ** 2)


def _hoop(q, p):
    return ((q @ q / p["radius"] - p["radius"]) / 2)[None]


def _hoop_slip(q, v, p):
    return ((q[0] * v[1] - q[1] * v[0]) / p["radius"])[None]


def _hoop_friction(t, q, v, lam, p):
    """mu times the force of the hoop: in its plane the multiplier, across it that of Coriolis."""
    del t, q
    return p["mu"] * jnp.sqrt(lam**2 + (2 * p["m"] * p["rate"] * v[0]) ** 2)


@model(t1=5.0, h=0.001, method="MoreauMidpoint()")
def bead_on_hoop(
    friction: float = 0.2,
    rate: float = 4.0,
    radius: float = 1.0,
    mass: float = 1.0,
    angle: float = 2.5,
    gravity: float = 9.81,
) -> tuple[System, State]:
    """A bead on a hoop that turns about the upright, with dry friction from the force of the hoop.

    (x, z) in the plane of the hoop, which is a constraint; its multiplier is the force in that plane.

    Example:
        >>> bead, state = carom.models.bead_on_hoop(rate=0.0)
    """
    numbers = {"mu": friction, "rate": rate, "radius": radius, "m": mass, "g": gravity}
    system = System(
        mass,
        _hoop_energy,
        params={name: real(value) for name, value in numbers.items()},
        constraints=_hoop,
        friction=FrictionElements(_hoop_slip, _hoop_friction),
        labels=("x", "z"),
        units="m",
    )
    xp = numpy_for(radius, angle)
    return system, State(radius * xp.array([xp.sin(angle), -xp.cos(angle)]), np.zeros(2))
