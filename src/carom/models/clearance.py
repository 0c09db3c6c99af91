"""Slider-crank mechanism whose slider has play in its slot (Flores, Leine, Glocker 2010)."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from carom.arguments import is_traced, real
from carom.models.registry import model
from carom.state import State
from carom.systems.contact import Contacts
from carom.systems.system import System

_CORNERS = np.array([[-1.0, 1.0], [1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])  # along and across the slider
_NAMES = ("upper left", "upper right", "lower left", "lower right")


def _mass(q, p):
    coupling = (p["m_2"] / 2 + p["m_3"]) * p["l_1"] * p["l_2"] * jnp.cos(q[1] - q[0])
    M_11 = p["J_1"] + (p["m_1"] / 4 + p["m_2"] + p["m_3"]) * p["l_1"] ** 2
    M_22 = p["J_2"] + (p["m_2"] / 4 + p["m_3"]) * p["l_2"] ** 2
    zero = jnp.zeros_like(coupling)
    return jnp.stack(
        [jnp.stack([M_11, coupling, zero]), jnp.stack([coupling, M_22, zero]), jnp.stack([zero, zero, p["J_3"] + zero])]
    )


def _weight(q, p):
    crank = (p["m_1"] / 2 + p["m_2"] + p["m_3"]) * p["l_1"] * jnp.sin(q[0])
    rod = (p["m_2"] / 2 + p["m_3"]) * p["l_2"] * jnp.sin(q[1])
    return p["gravity"] * (crank + rod)


def _corners(q, p):
    """Places (x, y) of the slider's corners; the slot's walls are at y = +-(half_height + clearance)."""
    x = p["l_1"] * jnp.cos(q[0]) + p["l_2"] * jnp.cos(q[1])
    y = p["l_1"] * jnp.sin(q[0]) + p["l_2"] * jnp.sin(q[1])
    along, across = _CORNERS[:, 0] * p["half_length"], _CORNERS[:, 1] * p["half_height"]
    s, c = jnp.sin(q[2]), jnp.cos(q[2])
    return x + along * c - across * s, y + along * s + across * c


def _gaps(q, p):
    return p["half_height"] + p["clearance"] - _CORNERS[:, 1] * _corners(q, p)[1]


def _slips(q, p):
    return _corners(q, p)[0]


@model(t1=0.1, method="MoreauMidpoint()", h=1e-05, save_every=5)
def slider_crank_clearance(
    clearance: float = 0.001,
    friction: float = 0.01,
    restitution: float = 0.4,
    angles: tuple[float, float, float] = (0.0, 0.0, 0.0),
    rates: tuple[float, float, float] = (150.0, -75.0, 0.0),
) -> tuple[System, State]:
    """Crank, rod and a slider with play; contacts are the corners of the slider, upper pair first.

    Coordinates: angles of crank, rod and slider. With friction = 0 the contacts have no slip directions.

    Example:
        >>> mechanism, state = carom.models.slider_crank_clearance()
    """
    p = {"l_1": 0.153, "l_2": 0.306, "half_length": 0.05, "half_height": 0.025, "gravity": 9.81}
    p |= {"m_1": 0.038, "m_2": 0.038, "m_3": 0.076, "J_1": 7.4e-5, "J_2": 5.9e-4, "J_3": 2.7e-6}
    slip = _slips if is_traced(friction) or friction else None
    contacts = Contacts(_gaps, slip=slip, friction=friction, restitution=restitution, names=_NAMES)
    p |= {"clearance": real(clearance)}
    system = System(_mass, _weight, params=p, contacts=contacts, labels=("th1", "th2", "th3"), units="rad")
    return system, State(angles, rates)
