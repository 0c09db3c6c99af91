"""Pendulums in Cartesian coordinates, one in angles beside a wall, and the stiff spring pendulum [Jay1998 sec. 10].

All functions are modules whose parameters are leaves: other numbers never recompile.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from carom.arguments import numbers, numpy_for, plain_numbers, real
from carom.models.registry import model
from carom.state import Numbers, State
from carom.systems.contact import Contacts
from carom.systems.system import System


class Weight(eqx.Module):
    """The potential w . q of constant forces -w."""

    w: Float[Array, " n"]

    def __call__(self, q: Array) -> Array:
        """The energy."""
        return self.w @ q


class Rods(eqx.Module):
    """Point masses hanging one below the other: rod i from mass i - 1 (mass -1 is the origin), (|d|^2 - l^2)/2 = 0."""

    lengths: Float[Array, " rods"]
    dim: int = eqx.field(static=True)

    def __call__(self, q: Array) -> Array:
        """One entry per rod."""
        points = q.reshape(-1, self.dim)
        d = jnp.diff(points, axis=0, prepend=jnp.zeros((1, self.dim)))
        return 0.5 * (jnp.sum(d * d, 1) - self.lengths**2)


def _hanging(masses: Array, gravity: float, lengths: Array, dim: int, **options: object) -> System:
    each = jnp.repeat(masses, dim)
    w = each * gravity * jnp.tile(jnp.eye(dim)[-1], masses.size)
    return System(each, Weight(w), constraints=Rods(jnp.asarray(lengths), dim), **options)  # pyright: ignore


@model(t1=20.0, h=0.05, method="Spark(3)")
def pendulum(
    mass: float = 1.0, length: float = 1.0, gravity: float = 1.0, angle: float = np.pi / 2, rate: float = -1.0
) -> tuple[System, State]:
    """Planar pendulum in Cartesian coordinates (x, z), constraint (q . q - l^2)/2; angle from the downward vertical.

    Example:
        >>> system, state = carom.models.pendulum(angle=1.0, rate=0.0)
    """
    m, l = plain_numbers(mass, "mass", positive=True), plain_numbers(length, "length", positive=True)
    system = _hanging(m[None], gravity, l[None], 2, labels=("x", "z"))
    xp = numpy_for(length, angle, rate)
    q = l * xp.array([xp.sin(angle), -xp.cos(angle)])
    return system, State(q, rate * xp.array([-q[1], q[0]]))


@model(t1=20.0, h=0.02, method="Spark(3)")
def double_pendulum(
    masses: Numbers = (1.0, 1.0),
    lengths: Numbers = (1.0, 1.0),
    gravity: float = 1.0,
    angles: Numbers = (np.pi / 2, np.pi / 2),
    rates: Numbers = (0.0, 0.0),
) -> tuple[System, State]:
    """Planar double pendulum in Cartesian coordinates (x1, z1, x2, z2); angles of both rods from the vertical.

    Example:
        >>> system, state = carom.models.double_pendulum(angles=(1.0, 2.0))
    """
    m, l = (plain_numbers(x, name, size=2, positive=True) for x, name in ((masses, "masses"), (lengths, "lengths")))
    system = _hanging(m, gravity, l, 2, labels=("x1", "z1", "x2", "z2"))
    xp = numpy_for(lengths, angles, rates)
    a, w = xp.asarray(angles, float), xp.asarray(rates, float)
    rods = l[:, None] * xp.stack([xp.sin(a), -xp.cos(a)], 1)
    turning = (l * w)[:, None] * xp.stack([xp.cos(a), xp.sin(a)], 1)
    return system, State(xp.cumsum(rods, 0).ravel(), xp.cumsum(turning, 0).ravel())


def _inertia(q, p):
    coupled = p["lengths"][0] * p["lengths"][1] * jnp.cos(q[0] - q[1])
    l1, l2 = p["lengths"] ** 2
    m1, m2 = p["masses"]
    return jnp.array([[(m1 + m2) * l1, m2 * coupled], [m2 * coupled, m2 * l2]])


def _height(q, p):
    m1, m2 = p["masses"]
    l1, l2 = p["lengths"]
    return -p["gravity"] * ((m1 + m2) * l1 * jnp.cos(q[0]) + m2 * l2 * jnp.cos(q[1]))


def _joint_damping(t, q, v, p):
    del t, q
    elbow = p["damping"] * (v[1] - v[0])
    return jnp.array([elbow - p["damping"] * v[0], -elbow])


def _before_wall(q, p):
    return (p["wall"] - p["lengths"] @ jnp.sin(q))[None]


@model(t1=40.0, h=0.01, method="EventCapturing(explicit(4))")
def double_pendulum_at_wall(
    upper: float = 0.0,
    lower: float = 0.0,
    upper_rate: float = 2.0,
    lower_rate: float = -3.0,
    damping: float = 0.2,
    wall: float = 1.2,
    restitution: float = 0.8,
    masses: Numbers = (1.0, 1.0),
    lengths: Numbers = (1.0, 1.0),
    gravity: float = 1.0,
) -> tuple[System, State]:
    """Planar double pendulum with damped joints whose end hits a wall at x = `wall`; coordinates are its angles.

    It comes to rest hanging down, after turns of each rod that depend on the start in a tangled way: its basins of
    attraction are told apart by multiples of 2 pi.

    Example:
        >>> system, state = carom.models.double_pendulum_at_wall(upper_rate=3.0)
    """
    pairs = {"masses": masses, "lengths": lengths}
    params = {name: numbers(x, name, positive=True) for name, x in pairs.items()}
    params |= {name: real(x) for name, x in {"damping": damping, "wall": wall, "gravity": gravity}.items()}
    system = System(
        _inertia,
        _height,
        {"dissipative": _joint_damping},
        params=params,
        contacts=Contacts(_before_wall, restitution=restitution),
        labels=("upper", "lower"),
    )
    return system, State([upper, lower], [upper_rate, lower_rate])


@model(t1=20.0, h=0.05, method="Spark(3)")
def spherical_pendulum(
    mass: float = 1.0,
    length: float = 1.0,
    gravity: float = 1.0,
    angle: float = 1.0,
    rate: float = 0.0,
    spin: float = 1.0,
) -> tuple[System, State]:
    """Spherical pendulum (x, y, z) at `angle` from the downward vertical, turning about it with `spin`.

    Example:
        >>> system, state = carom.models.spherical_pendulum(angle=1.0, spin=0.5)
    """
    m, l = plain_numbers(mass, "mass", positive=True), plain_numbers(length, "length", positive=True)
    system = _hanging(m[None], gravity, l[None], 3, labels=("x", "y", "z"))
    xp = numpy_for(length, angle, rate, spin)
    q = l * xp.array([xp.sin(angle), 0.0, -xp.cos(angle)])
    v = l * xp.array([rate * xp.cos(angle), spin * xp.sin(angle), rate * xp.sin(angle)])
    return system, State(q, v)


class Spring(eqx.Module):
    """k (|q_1| - l)^2 / 2 of the first point mass."""

    k: Array
    length: Array

    def __call__(self, q: Array) -> Array:
        """The energy."""
        return 0.5 * self.k * (jnp.sqrt(q[0] ** 2 + q[1] ** 2) - self.length) ** 2


class Friction(eqx.Module):
    """-gamma v on the first point mass."""

    gamma: Array

    def __call__(self, t: Array, q: Array, v: Array) -> Array:
        """The force."""
        del t, q
        return -self.gamma * v * jnp.array([1.0, 1.0, 0.0, 0.0])


def rod_between(q: Array) -> Array:
    """The unit rod from the first to the second point mass."""
    return jnp.sqrt((q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2)[None] - 1.0


# IIIC for the stiff body, IIIA-B for the rigid one [Jay1998 Fig. 6]
_FORCES = ", ".join(f"'{part}': ['C', 'C', 'B', 'B']" for part in ("constraint", "spring", "gravity", "dissipative"))
_STIFF_BODY_DAMPED = f"Spark(3, families={{'kinematic': ['C', 'C', 'A', 'A'], {_FORCES}}})"


@model(t1=24.0, h=0.12, method=_STIFF_BODY_DAMPED)
def stiff_spring_pendulum(
    stiffness: float = 1e16, friction: float = 1e12, gravity: float = 1.0
) -> tuple[System, State]:
    """A rigid pendulum on a stiff spring pendulum with viscous friction [Jay1998 sec. 10]; stiffness is 1/eps^2.

    The start is carom's choice (the paper prints none): q1 = (0, -1), q2 = (1, -1), at rest. Parts: "spring" and
    "gravity" of the potential, "dissipative".

    Example:
        >>> system, state = carom.models.stiff_spring_pendulum()
    """
    k, gamma = numbers(stiffness, "stiffness", positive=True), numbers(friction, "friction", nonnegative=True)
    potential = {"spring": Spring(k, jnp.ones(())), "gravity": Weight(gravity * jnp.array([0.0, 1.0, 0.0, 1.0]))}
    system = System(
        1.0, potential, {"dissipative": Friction(gamma)}, constraints=rod_between, labels=("x1", "z1", "x2", "z2")
    )
    return system, State([0.0, -1.0, 1.0, -1.0], np.zeros(4))
