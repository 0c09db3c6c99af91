"""Rigid bodies in the plane that hit, rock, bounce, slide and jam; data and sources at each model."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from carom.arguments import numpy_for, real
from carom.models.registry import model
from carom.state import State
from carom.systems.contact import Contacts, FrictionElements
from carom.systems.system import System


def _weight_of_body(q, p):
    return p["weight"] * q[1]


def _corners(q, p):
    """Lower left and lower right corner of a block with centre (x, y), turned by phi: rows (x, y)."""
    x, y, phi = q
    a, b, s, c = p["half_width"], p["half_height"], jnp.sin(phi), jnp.cos(phi)
    return jnp.array([[x - a * c + b * s, y - a * s - b * c], [x + a * c + b * s, y + a * s - b * c]])


def _corner_heights(q, p):
    return _corners(q, p)[:, 1]


def _corner_places(q, p):
    return _corners(q, p)[:, 0]


@model(t1=2.0, h=0.0005, method="MoreauMidpoint()")
def rocking_block(
    half_width: float = 0.0125,
    half_height: float = 0.05,
    angle: float = np.deg2rad(8.0),
    friction: float = 0.3,
    restitution: float = 0.0,
    mass: float = 1.0,
    gravity: float = 9.81,
) -> tuple[System, State]:
    """A block that rocks on its two lower corners, released from rest on its right corner (Leine's data).

    Example:
        >>> block, state = carom.models.rocking_block(angle=0.1)
    """
    a, b = half_width, half_height
    inertia = mass * (4 * a**2 + 4 * b**2) / 12
    system = System(
        numpy_for(mass, inertia).array([mass, mass, inertia]),
        _weight_of_body,
        params={"weight": mass * gravity, "half_width": real(a), "half_height": real(b)},
        contacts=Contacts(
            _corner_heights,
            slip=_corner_places,
            friction=friction,
            restitution=restitution,
            names=("left corner", "right corner"),
        ),
        labels=("x", "y", "phi"),
        units=("m", "m", "rad"),
    )
    # phi < 0 lifts the left corner; the right one stands at the origin
    xp = numpy_for(angle)
    s, c = xp.sin(-angle), xp.cos(-angle)
    return system, State([-a * c - b * s, -a * s + b * c, -angle], np.zeros(3))


def _floor_and_ceiling(q, p):
    return jnp.stack([q[1] - p["radius"], p["ceiling"] - p["radius"] - q[1]])


def _rim_slips(q, v, p):
    """Velocity of the rim at its lowest and highest point along x (phi counts anticlockwise)."""
    del q
    return jnp.stack([v[0] + p["radius"] * v[2], v[0] - p["radius"] * v[2]])


@model(t1=2.0, h=0.001, method="MoreauMidpoint()")
def super_ball(
    tangential_restitution: float = 1.0,
    restitution: float = 1.0,
    friction: float = 1.0,
    mass: float = 1.0,
    inertia: float = 0.004,
    radius: float = 0.1,
    ceiling: float = 1.0,
    gravity: float = 10.0,
) -> tuple[System, State]:
    """A rough elastic ball between floor and ceiling; with tangential restitution 1 it comes back (Leine's data).

    Example:
        >>> ball, state = carom.models.super_ball()
    """
    contacts = Contacts(
        _floor_and_ceiling,
        slip_velocity=_rim_slips,
        friction=friction,
        restitution=restitution,
        tangential_restitution=tangential_restitution,
        names=("floor", "ceiling"),
    )
    system = System(
        numpy_for(mass, inertia).array([mass, mass, inertia]),
        _weight_of_body,
        params={"weight": mass * gravity, "radius": real(radius), "ceiling": real(ceiling)},
        contacts=contacts,
        labels=("x", "y", "phi"),
        units=("m", "m", "rad"),
    )
    return system, State([0.0, ceiling - radius, 0.0], [1.0, -1.0, 0.0])


def _anchor_spring(q, p):
    return 0.5 * p["stiffness"] * q[0] ** 2


def _belt_slip(q, v, p):
    del q
    return v - p["belt"]


def _stribeck(t, q, v, p):
    """Limit of the friction force, falling with the sliding speed."""
    del t, q
    return p["limit"] / (1.0 + p["delta"] * jnp.abs(v - p["belt"]))


@model(t1=20.0, h=0.01, method="MoreauMidpoint()")
def block_on_belt(
    belt: float = 0.2,
    limit: float = 1.0,
    delta: float = 3.0,
    stiffness: float = 1.0,
    mass: float = 1.0,
    position: float = 0.62,
) -> tuple[System, State]:
    """A block on a moving belt, held by a spring; friction falls with speed (Stribeck), so it sticks and slips (Leine).

    Example:
        >>> block, state = carom.models.block_on_belt(delta=3.0)
    """
    system = System(
        mass,
        _anchor_spring,
        params={"stiffness": real(stiffness), "belt": real(belt), "limit": real(limit), "delta": real(delta)},
        friction=FrictionElements(_belt_slip, _stribeck),
        labels=("x",),
    )
    return system, State([position], [0.0])


def _tip_height(q, p):
    """Height of the lower tip of a rod with centre (x, y), which points forward and down by the angle phi."""
    return (q[1] - p["half_length"] * jnp.sin(q[2]))[None]


def _tip_place(q, p):
    return (q[0] + p["half_length"] * jnp.cos(q[2]))[None]


@model(t1=0.8, h=0.0005, method="MoreauMidpoint()")
def painleve_rod(
    friction: float = 5.0 / 3.0,
    angle: float = np.deg2rad(31.0),
    height: float = 0.515,
    speed: float = 30.0,
    mass: float = 1.0,
    half_length: float = 1.0,
    gravity: float = 10.0,
) -> tuple[System, State]:
    """A thin rod that slides on one tip so fast and rough that rigid contact may have no or several solutions (Leine).

    Doubtful where `A = 1/m + (s^2/J) cos(phi) (cos(phi) - mu sin(phi)) < 0`, s the half-length. With the defaults
    time-stepping finds two modes at t = 0.815; the usual run ends before.

    Example:
        >>> rod, state = carom.models.painleve_rod()
    """
    inertia = mass * half_length**2 / 3
    system = System(
        numpy_for(mass, inertia).array([mass, mass, inertia]),
        _weight_of_body,
        params={"weight": mass * gravity, "half_length": real(half_length)},
        contacts=Contacts(_tip_height, slip=_tip_place, friction=friction),
        labels=("x", "y", "phi"),
        units=("m", "m", "rad"),
    )
    return system, State([0.0, height, angle], [speed, 0.0, 0.0])
