"""Granular chains [James2020]: beads in a row that touch by Hertz contact with viscoelastic damping (1).

`x_n` is the displacement of bead n from the uncompressed chain of touching beads; contact n joins beads n and n + 1 and
acts while `x_n > x_{n+1}`. Ends are free.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.arguments import is_traced, numbers, numpy_for, per_entry, plain_entries, plain_numbers, real
from carom.models.registry import model
from carom.state import Numbers, State
from carom.systems.interactions import Interactions
from carom.systems.laws import OverlapPower, hertz, spring
from carom.systems.system import System

HERTZ_EXPONENT = 1.5


@model(t1=20.0, method="TailoredTheta()", h=0.02)
def granular_chain(
    masses: Numbers = (1.0,) * 10,
    stiffness: Numbers = 1.0,
    damping: Numbers = 0.0,
    exponent: float = 1.5,
    attachment: Numbers = 0.0,
    impact_velocity: float = 1.0,
) -> tuple[System, State]:
    """Chain of beads with contact force `k (d^{3/2} + damping d/dt d^exponent)` for overlap d > 0 [James2020 (1)-(3)].

    Args:
        masses: one per bead (at least two).
        stiffness: k of the contacts, a number or one per contact.
        damping: gamma of the contacts, a number or one per contact.
        exponent: beta of (1): 1 linear dashpot, 3/2 Kuwabara-Kono, 5/2 Simon-Hunt-Crossley. The elastic exponent
            stays 3/2.
        attachment: stiffness of a linear spring from each bead to its place, a number or one per bead.
        impact_velocity: velocity of the first bead; all others are at rest.

    Example:
        >>> chain, state = carom.models.granular_chain([1.0, 0.5, 1.0], damping=0.06)
    """
    return _chain(masses, stiffness, damping, exponent, attachment, impact_velocity)


def _chain(
    masses: Numbers,
    stiffness: Numbers = 1.0,
    damping: Numbers = 0.0,
    exponent: float = HERTZ_EXPONENT,
    attachment: Numbers = 0.0,
    impact_velocity: float = 1.0,
    units: str = "",
) -> tuple[System, State]:
    m = plain_numbers(masses, "masses", positive=True)
    if m.ndim != 1 or m.size < 2:
        msg = f"masses must be a list of at least two numbers, one per bead, got shape {m.shape}"
        raise ValueError(msg)
    n = m.size
    k = per_entry(stiffness, "stiffness", n - 1, "contact", positive=True)
    gamma = numbers(damping, "damping", size=n - 1, of="contact", nonnegative=True)
    springs = plain_numbers(attachment, "attachment", size=n, of="bead", nonnegative=True)
    if is_traced(exponent):
        msg = "exponent chooses the law of the contacts: it must be a plain number, not one that JAX traces"
        raise TypeError(msg)
    if not np.isfinite(exponent) or exponent < 1:
        msg = f"exponent must be at least 1, got exponent = {exponent}"
        raise ValueError(msg)
    contact = Interactions(hertz, stencil=(0, 1), data=k, relative=True)
    potential = {"contact": contact}
    if is_traced(springs) or np.any(springs > 0):
        potential["local"] = Interactions(spring, stencil=(0,), data=per_entry(attachment, "attachment", n, "bead"))
    rate: Any = gamma
    if exponent != HERTZ_EXPONENT:
        rate = Interactions(OverlapPower(float(exponent)), stencil=(0, 1), data=k, weight=gamma, relative=True)
    system = System(m, potential, rate_damping={"contact": rate}, units=units or ())
    return system, impact(n, impact_velocity)


def impact(n: int, velocity: float) -> State:
    """The first bead hits the others, which are at rest [James2020 (3)]."""
    first = plain_numbers(velocity, "impact_velocity", size=1).reshape(1)
    return State(np.zeros(n), numpy_for(velocity).concatenate([first, np.zeros(n - 1)]))


@model(t1=30.0, h=0.05, method="TailoredIRK()")
def dimer_chain(
    n: int = 25, mass_ratio: float = 0.59, damping: float = 0.06, impact_velocity: float = 1.0
) -> tuple[System, State]:
    """Alternating heavy (1) and light (mass_ratio) beads, unit stiffness [James2020 sec. 4.1].

    Example:
        >>> chain, state = carom.models.dimer_chain(25, mass_ratio=0.59, damping=0.06)
    """
    numbers(mass_ratio, "mass_ratio", positive=True)
    masses = numpy_for(mass_ratio).where(np.arange(_count(n, 2)) % 2 == 0, 1.0, real(mass_ratio))
    return _chain(masses, damping=damping, impact_velocity=impact_velocity)


@model(t1=300.0, h=0.2, method="TailoredTheta()")
def newtons_cradle(
    n: int = 10,
    stiffness: Numbers = 1.0,
    attachment: Numbers = 0.01,
    damping: Numbers = 0.3,
    impact_velocity: float = 1.0,
) -> tuple[System, State]:
    """Unit beads on linear pendulums, the first one kicked [James2020 (31), Figs 4-5].

    Example:
        >>> cradle, state = carom.models.newtons_cradle(10, stiffness=13.115)
    """
    masses = np.ones(_count(n, 2))
    return _chain(masses, stiffness, damping, 1.5, attachment, impact_velocity)


@model(t1=10.0, h=0.005, method="TailoredTheta()")
def trimer(damping: float = 0.1, impact_velocity: float = 1.0) -> tuple[System, State]:
    """Three beads of radii 1, 4/5, 9/10 [James2020 sec. 2.2]: the test of the orders of convergence.

    Example:
        >>> chain, state = carom.models.trimer()
    """
    radii = np.array([1.0, 0.8, 0.9])
    return _chain(radii**3, [1.0, np.sqrt(81 / 85)], damping, impact_velocity=impact_velocity)


def unbroken_trimer_state() -> State:
    """The start (19) from which no contact of the trimer breaks until t = 1.5."""
    return State([0.9, 0.2, 0.0], [0.7, 0.6, 0.02])


@model(t1=0.0004, h=2e-07, method="TailoredTheta()")
def bead_chain(
    radii: Numbers = (0.01,) * 10,
    young: Numbers = 203e9,
    poisson: Numbers = 0.3,
    density: Numbers = 7780.0,
    damping: Numbers = 0.0,
    impact_velocity: float = 1.0,
) -> tuple[System, State]:
    """Chain of elastic spheres in SI units; the defaults are ten steel balls of 1 cm radius.

    Hertz: `k = (4/3) E* sqrt(R)`, `1/E* = sum (1 - poisson^2) / young`, `1/R = sum 1/radius` over the two beads.

    Args:
        radii: one per bead, in m.
        young: Young's modulus in Pa, a number or one per bead.
        poisson: Poisson's ratio in (-1, 0.5], a number or one per bead.
        density: in kg/m^3, a number or one per bead.
        damping: Kuwabara-Kono damping in s, a number or one per contact.
        impact_velocity: velocity of the first bead in m/s.

    Example:
        >>> chain, state = carom.models.bead_chain(radii=[0.01] * 20, damping=1e-6)
    """
    r = plain_numbers(radii, "radii", positive=True)
    if r.ndim != 1 or r.size < 2:
        msg = f"radii must be a list of at least two numbers, got shape {r.shape}"
        raise ValueError(msg)
    E = plain_entries(young, "young", r.size, "bead", positive=True)
    nu = plain_entries(poisson, "poisson", r.size, "bead")
    rho = plain_entries(density, "density", r.size, "bead", positive=True)
    if not is_traced(nu) and ((nu <= -1) | (nu > 0.5)).any():
        msg = f"poisson must lie in (-1, 0.5], got poisson[{int(np.argmax((nu <= -1) | (nu > 0.5)))}] = {nu.max()}"
        raise ValueError(msg)
    compliance = (1 - nu**2) / E
    modulus = 1 / (compliance[:-1] + compliance[1:])
    radius = r[:-1] * r[1:] / (r[:-1] + r[1:])
    stiffness = 4 / 3 * modulus * numpy_for(radius).sqrt(radius)
    return _chain(4 / 3 * np.pi * r**3 * rho, stiffness, damping, impact_velocity=impact_velocity, units="m")


def _count(n: Any, least: int, name: str = "n") -> int:
    if not isinstance(n, (int, np.integer)) or n < least:
        msg = f"{name} must be a whole number of at least {least}, got {name} = {n}"
        raise ValueError(msg)
    return int(n)
