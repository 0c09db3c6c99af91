"""The woodpecker toy (Glocker) [Studer2008 sec. 10.4]."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from carom.arguments import numpy_for
from carom.models.registry import model
from carom.state import State
from carom.systems.contact import Contacts
from carom.systems.system import System

_STARTS = {
    "A": ((0.0, -0.1036, -0.2788), (-0.3411, 0.0, -7.4583)),
    "B": ((0.0, -0.000107, 0.00312), (-0.3505, 31.81, 14.44)),
}


def _energy(q, p):
    y, phi_M, phi_S = q
    weight = p["m_M"] * y + p["m_S"] * (y + p["l_M"] * phi_M + p["l_G"] * phi_S)
    return p["gravity"] * weight + 0.5 * p["c_phi"] * (phi_M - phi_S) ** 2


def _gaps(q, p):
    _, phi_M, phi_S = q
    beak = p["l_M"] + p["l_G"] - p["l_S"] - p["r_0"] - p["h_S"] * phi_S
    play = p["r_M"] - p["r_0"]
    return jnp.stack([beak, play + p["h_M"] * phi_M, play - p["h_M"] * phi_M])


def _slips(q, v, p):
    del q
    sleeve = v[0] + p["r_M"] * v[1]
    return jnp.stack([v[0] + p["l_M"] * v[1] + (p["l_G"] - p["l_S"]) * v[2], sleeve, sleeve])


@model(t1=0.5, method="MoreauMidpoint()", h=2e-05, save_every=10)
def woodpecker(start: str = "A", friction: float = 0.3, beak_restitution: float = 0.5) -> tuple[System, State]:
    """A woodpecker sliding down a pole; contacts are the beak, the lower and the upper end of the sleeve.

    Coordinates: height y of the sleeve, angles of sleeve and bird. Start A is that of Siconos and cardillo (contact 1
    closed and slipping, gap -8.8e-7), start B that of Leine.

    Example:
        >>> toy, state = carom.models.woodpecker()
    """
    if start not in _STARTS:
        msg = f"woodpecker: start must be 'A' or 'B', got '{start}'"
        raise ValueError(msg)
    p = {"m_M": 0.0003, "J_M": 5.0e-9, "m_S": 0.0045, "J_S": 7.0e-7, "c_phi": 0.0056, "gravity": 9.81}
    p |= {"r_0": 0.0025, "r_M": 0.0031, "h_M": 0.0058, "l_M": 0.010, "l_G": 0.015, "h_S": 0.02, "l_S": 0.0201}
    m, l, L = p["m_S"], p["l_M"], p["l_G"]
    M = [[m + p["m_M"], m * l, m * L], [m * l, p["J_M"] + m * l**2, m * l * L], [m * L, m * l * L, p["J_S"] + m * L**2]]
    restitution = numpy_for(beak_restitution).array([beak_restitution, 0.0, 0.0])
    names = ("beak", "lower sleeve", "upper sleeve")
    contacts = Contacts(_gaps, slip_velocity=_slips, friction=friction, restitution=restitution, names=names)
    system = System(
        np.array(M), _energy, params=p, contacts=contacts, labels=("y", "phi_M", "phi_S"), units=("m", "rad", "rad")
    )
    return system, State(*_STARTS[start])
