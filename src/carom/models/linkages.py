"""Linkages and machines: data of the IFToMM library of benchmark problems, and a driven platform."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from carom.arguments import numpy_for, real, whole
from carom.mechanisms import Mechanism, RigidBody, Spring, joints
from carom.mechanisms.rotations import space_rotation
from carom.models.registry import model
from carom.models.tops import IN_SPACE
from carom.state import State
from carom.systems.system import System


class Rods(eqx.Module):
    """|B_i - A_i|^2 = l^2 and |B_{i+1} - B_i|^2 = l^2, halved and over l."""

    anchors: Float[Array, "n 2"]
    length: Array

    @property
    def touches(self) -> np.ndarray:
        """Which velocities act on each rod."""
        n = len(self.anchors)
        ends = np.concatenate([np.eye(n, dtype=bool), np.eye(n - 1, n, dtype=bool) | np.eye(n - 1, n, 1, dtype=bool)])
        return np.repeat(ends, 2, 1)

    def __call__(self, q: Array) -> Array:
        """One number per rod."""
        B = q.reshape(-1, 2)
        rods = jnp.concatenate([B - self.anchors, B[1:] - B[:-1]])
        return 0.5 * (jnp.sum(rods**2, axis=1) / self.length - self.length)


class Heights(eqx.Module):
    """sum w_i y_i."""

    w: Float[Array, " n"]

    def __call__(self, q: Array) -> Array:
        """The energy."""
        return self.w @ q[1::2]


@model(t1=2.0, h=0.002, method="MoreauMidpoint()")
def n_four_bar(
    n: int = 2, mass: float = 1.0, length: float = 1.0, speed: float = 1.0, gravity: float = 9.81
) -> tuple[System, State]:
    """n four-bar linkages in a row, n + 1 upright rods joined by n level ones, by the places of their joints.

    All rods lie in one line again and again, where the constraints lose rank; exact reduction: theta'' = -k cos theta,
    k = g ((n + 1)/2 + n) / ((n + 1)/3 + n) / length.

    Example:
        >>> system, state = carom.models.n_four_bar(n=10)
    """
    count, xp = whole(n, "n", 1) + 1, numpy_for(mass, length, speed)
    M = np.diag(np.full(count, 1 / 3))
    for i in range(count - 1):
        M[i : i + 2, i : i + 2] += np.array([[2, 1], [1, 2]]) / 6
    carried = 0.5 + np.where((np.arange(count) > 0) & (np.arange(count) < count - 1), 1.0, 0.5)
    anchors = np.stack([np.arange(count), np.zeros(count)], 1)
    B = length * (anchors + np.array([0.0, 1.0]))
    system = System(
        mass * xp.asarray(np.kron(M, np.eye(2))),
        Heights(jnp.asarray(mass * gravity * carried)),
        constraints=Rods(jnp.asarray(length * anchors), jnp.asarray(real(length))),
        labels=[f"{axis}{i}" for i in range(count) for axis in "xy"],
        units="m",
    )
    return system, State(B.reshape(-1), xp.tile(xp.array([speed, 0.0]), count))


@model(t1=1.0, h=0.002, method="MoreauMidpoint()")
def bricard(length: float = 1.0, mass: float = 1.0, axial: float = 1e-3, gravity: float = 9.81) -> tuple[System, State]:
    """Bricard's mechanism: six equal rods and six hinges in a loop that moves although it should not, from rest.

    Rods along x, y, z, -x, -y, -z, the first one fixed; hinges along the cross products of neighbours; weight along -y.
    Of the 30 rows of its hinges 29 are independent.

    Example:
        >>> system, state = carom.models.bricard()
    """
    l = real(length)
    along = np.concatenate([np.eye(3), -np.eye(3)])
    corners = np.cumsum(np.vstack([np.zeros(3), along]), axis=0)
    bodies, hinges, xp = [], [], numpy_for(mass, length, axial)
    for i in range(1, 6):
        inertia = mass * l**2 / 12 * (1 - np.abs(along[i])) + axial * np.abs(along[i])
        middle = l * 0.5 * (corners[i] + corners[i + 1])
        bodies.append(RigidBody(mass, xp.asarray(inertia), middle, name=f"rod {i}"))
    names = ["ground", *(body.name for body in bodies), "ground"]
    for i in range(6):
        axis = np.cross(along[i], along[(i + 1) % 6])
        hinges.append(joints.revolute(names[i], names[i + 1], at=l * corners[i + 1], axis=axis, name=f"hinge {i}"))
    mechanism = Mechanism(bodies, hinges, gravity=gravity * np.array([0.0, -1.0, 0.0]), units=5 * IN_SPACE)
    return mechanism.system, mechanism.state


def _governor(q, v, p):
    """Shaft, two rods with balls, slider; springs from mid-rod to slider."""
    _, alpha, s = q
    w, rate, slide = v
    I = 2 * (p["rod"] / 3 + p["ball"]) * p["length"] ** 2
    T = 0.5 * p["shaft"] * w**2 + 0.5 * I * (rate**2 + (w * jnp.sin(alpha)) ** 2) + 0.5 * p["slider"] * slide**2
    falls = 2 * (p["rod"] / 2 + p["ball"]) * p["length"] * jnp.cos(alpha) + p["slider"] * s
    return T + p["gravity"] * falls - p["stiffness"] * (_spring(q, p) - p["free"]) ** 2


def _spring(q, p):
    """The length of a spring from the middle of a rod to the slider."""
    half = 0.5 * p["length"]
    return jnp.sqrt((half * jnp.sin(q[1])) ** 2 + (q[2] - half * jnp.cos(q[1])) ** 2)


def _governor_dampers(t, q, v, p):
    """-2 c l' grad l."""
    del t
    half, l = 0.5 * p["length"], _spring(q, p)
    s, c = jnp.sin(q[1]), jnp.cos(q[1])
    slope = jnp.stack([jnp.zeros(()), half * q[2] * s, q[2] - half * c]) / l
    return -2 * p["damping"] * (slope @ v) * slope


@model(t1=1.0, h=0.0005, method="IRK(radau_iia(3))")
def flyball_governor(
    stiffness: float = 8e5,
    damping: float = 4e4,
    rod: float = 0.3,
    ball: float = 5.0,
    slider: float = 3.0,
    shaft: float = 0.01,
    length: float = 1.0,
    free: float = 0.5,
    gravity: float = 9.81,
) -> tuple[System, State]:
    """The flyball governor: shaft angle, angle of the two rods, place of the slider; a stiff spring and damper.

    Example:
        >>> system, state = carom.models.flyball_governor(stiffness=8e4)
    """
    numbers = {"stiffness": stiffness, "damping": damping, "rod": rod, "ball": ball, "slider": slider, "shaft": shaft}
    numbers |= {"length": length, "free": free, "gravity": gravity}
    system = System.from_lagrangian(
        _governor,
        forces={"dampers": _governor_dampers},
        params={name: real(value) for name, value in numbers.items()},
        labels=("shaft", "rods", "slider"),
        units=("rad", "rad", "m"),
    )
    return system, State([0.0, np.pi / 6, real(length) * np.cos(np.pi / 6)], [2 * np.pi, 0.0, 0.0])


class Legs(eqx.Module):
    """Six elastic legs, whose relaxed lengths are driven; the platform is one body in space."""

    feet: Float[Array, "6 3"]
    heads: Float[Array, "6 3"]
    stiffness: Array
    amplitude: Array
    frequency: Array

    def lengths(self, q: Array) -> Array:
        """Of the legs."""
        arms = q[:3] + self.heads @ space_rotation(q[3:]).T - self.feet
        return jnp.sqrt(jnp.sum(arms**2, axis=1))

    def __call__(self, t: Array, q: Array) -> Array:
        """The energy."""
        start = jnp.sqrt(jnp.sum((self.heads + jnp.array([0.0, 0.0, 1.0]) - self.feet) ** 2, axis=1))
        phase = jnp.asarray(2 * np.pi * np.arange(6) / 6)
        driven = start + self.amplitude * (jnp.sin(self.frequency * t + phase) - jnp.sin(phase))
        return 0.5 * self.stiffness * jnp.sum((self.lengths(q) - driven) ** 2)


@model(t1=4.0, h=0.004, method="IRK(gauss(3))")
def stewart_platform(
    mass: float = 1.0,
    stiffness: float = 2e3,
    damping: float = 20.0,
    amplitude: float = 0.05,
    frequency: float = 3.0,
    gravity: float = 9.81,
) -> tuple[System, State]:
    """A Stewart platform: a disk of radius 1/2 one above the ground on six driven, elastic legs.

    Example:
        >>> system, state = carom.models.stewart_platform(frequency=5.0)
    """
    spread = np.deg2rad([-10, 10, 110, 130, 230, 250])
    closer = np.deg2rad([-50, 50, 70, 170, 190, 290])
    feet = np.stack([np.cos(spread), np.sin(spread), np.zeros(6)], 1)
    heads = 0.5 * np.stack([np.cos(closer), np.sin(closer), np.zeros(6)], 1)
    numbers = (jnp.asarray(real(x)) for x in (stiffness, amplitude, frequency))
    legs = Legs(jnp.asarray(feet), jnp.asarray(heads), *numbers)
    inertia = mass * numpy_for(mass).asarray([1.0, 1.0, 2.0]) * 0.25 * 0.5**2
    plate = RigidBody(mass, inertia, (0.0, 0.0, 1.0), name="plate", markers={f"leg {i}": heads[i] for i in range(6)})
    dampers = [Spring(f"plate.leg {i}", feet[i], damping=damping) for i in range(6)]
    mechanism = Mechanism([plate], springs=dampers, potential={"legs": legs}, gravity=gravity, units=IN_SPACE)
    return mechanism.system, mechanism.state
