"""Mechanisms with bilateral and nonholonomic constraints, and a structural frame [Jay1998 sec. 1].

All functions are modules whose parameters are leaves: other numbers never recompile.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from carom.arguments import is_traced, numbers, numpy_for, plain_numbers, real
from carom.models.pendulums import Weight
from carom.models.registry import model
from carom.state import Numbers, State
from carom.systems.system import System


class Quadratic(eqx.Module):
    """q K q / 2."""

    K: Float[Array, "n n"]

    def __call__(self, q: Array) -> Array:
        """The energy."""
        return 0.5 * q @ self.K @ q


class Dampers(eqx.Module):
    """-C v."""

    C: Float[Array, "n n"]

    def __call__(self, t: Array, q: Array, v: Array) -> Array:
        """The force."""
        del t, q
        return -self.C @ v


class Shaking(eqx.Module):
    """amplitude sin(frequency t) along a direction."""

    amplitude: Float[Array, " n"]
    frequency: Array

    def __call__(self, t: Array, q: Array, v: Array) -> Array:
        """The force."""
        del q, v
        return self.amplitude * jnp.sin(self.frequency * t)


class Linear(eqx.Module):
    """G q - c."""

    G: Float[Array, "m n"]
    c: Float[Array, " m"]

    def __call__(self, q: Array) -> Array:
        """One entry per tie."""
        return self.G @ q - self.c


@model(t1=10.0, h=0.002, method="Spark(3)")
def structural_frame(
    storeys: int = 4,
    mass: float = 1.0,
    stiffness: float = 1e4,
    damping: float = 1e-3,
    amplitude: float = 1.0,
    frequency: float = 2.0,
) -> tuple[System, State]:
    """Two equal shear frames whose top floors are tied: the linear structural dynamics of [Jay1998 (1)].

    M v' = F(t) - C v - K q - G^T lambda, C = damping K, F = amplitude sin(frequency t) on every floor of the first
    frame; parts "conservative", "dissipative", "exciting".

    Example:
        >>> system, state = carom.models.structural_frame(storeys=4)
    """
    n = 2 * storeys
    one = 2 * np.eye(storeys) - np.eye(storeys, k=1) - np.eye(storeys, k=-1)
    one[-1, -1] = 1.0
    K = jnp.asarray(stiffness * np.kron(np.eye(2), one))
    G = np.zeros((1, n))
    G[0, storeys - 1], G[0, n - 1] = 1.0, -1.0
    pushed = jnp.asarray(amplitude * np.repeat([1.0, 0.0], storeys))
    forces = {"dissipative": Dampers(damping * K), "exciting": Shaking(pushed, jnp.asarray(real(frequency)))}
    ties = Linear(jnp.asarray(G), jnp.zeros(1))
    system = System(numpy_for(mass).full(n, mass), Quadratic(K), forces, constraints=ties)
    return system, State(np.zeros(n), np.zeros(n))


class Blade(eqx.Module):
    """k = -x' sin(theta) + y' cos(theta): no motion across the blade."""

    def __call__(self, q: Array, v: Array) -> Array:
        """The velocity across the blade."""
        return jnp.array([-jnp.sin(q[2]) * v[0] + jnp.cos(q[2]) * v[1]])


@model(t1=10.0, h=0.05, method="Spark(3)")
def knife_edge(mass: float = 1.0, inertia: float = 1.0, slope: float = 1.0, spin: float = 1.0) -> tuple[System, State]:
    """A knife edge (x, y, theta) on an inclined plane, `slope` = g sin(incline) along x, spinning from rest.

    Exact: x = slope sin(w t)^2 / (2 w^2), y = slope (w t - sin(2 w t)/2) / (2 w^2), theta = w t.

    Example:
        >>> system, state = carom.models.knife_edge(spin=2.0)
    """
    m, J = plain_numbers(mass, "mass", positive=True), plain_numbers(inertia, "inertia", positive=True)
    weight = Weight(jnp.stack([jnp.asarray(-m * slope), jnp.zeros(()), jnp.zeros(())]))
    system = System(numpy_for(m, J).array([m, m, J]), weight, nonholonomic=Blade(), labels=("x", "y", "theta"))
    return system, State(np.zeros(3), [0.0, 0.0, spin])


class SleighMass(eqx.Module):
    """The mass matrix of a body whose centre lies `a` ahead of the blade's contact point (x, y)."""

    m: Array
    J: Array
    a: Array

    def __call__(self, q: Array) -> Array:
        """M(q)."""
        s, c = self.m * self.a * jnp.sin(q[2]), self.m * self.a * jnp.cos(q[2])
        zero = jnp.zeros(())
        return jnp.array([[self.m, zero, -s], [zero, self.m, c], [-s, c, self.J + self.m * self.a**2]])


@model(t1=10.0, h=0.05, method="Spark(3)")
def chaplygin_sleigh(
    mass: float = 1.0, inertia: float = 1.0, offset: float = 0.5, speed: float = 1.0, spin: float = 1.0
) -> tuple[System, State]:
    """Chaplygin's sleigh (x, y, theta): energy is kept, yet all rotation turns into forward motion.

    Example:
        >>> system, state = carom.models.chaplygin_sleigh(offset=0.3)
    """
    values = [numbers(x, name, positive=True) for x, name in ((mass, "mass"), (inertia, "inertia"), (offset, "offset"))]
    system = System(SleighMass(*values), nonholonomic=Blade(), labels=("x", "y", "theta"))
    return system, State(np.zeros(3), [speed, 0.0, spin])


class AngleMass(eqx.Module):
    """M_ij = a_ij cos(q_i - q_j): planar bars turning by absolute angles."""

    a: Float[Array, "n n"]

    def __call__(self, q: Array) -> Array:
        """M(q)."""
        return self.a * jnp.cos(q[:, None] - q[None])


class AnglePotential(eqx.Module):
    """sum w_i sin(q_i)."""

    w: Float[Array, " n"]

    def __call__(self, q: Array) -> Array:
        """The energy."""
        return self.w @ jnp.sin(q)


class SliderHeight(eqx.Module):
    """The slider stays on the axis: l1 sin(q1) + l2 sin(q2) = 0."""

    lengths: Float[Array, " 2"]

    def __call__(self, q: Array) -> Array:
        """The height of the slider."""
        return (self.lengths @ jnp.sin(q))[None]


@model(t1=0.2, h=0.0002, method="Spark(3)")
def slider_crank(
    lengths: Numbers = (0.153, 0.306),
    masses: Numbers = (0.038, 0.038, 0.076),
    inertias: Numbers = (7.4e-5, 5.9e-4),
    gravity: float = 9.81,
    rate: float = 150.0,
) -> tuple[System, State]:
    """Slider-crank (crank angle, rod angle) with an ideal guide; data of Flores, Leine and Glocker 2010.

    Example:
        >>> system, state = carom.models.slider_crank(rate=20.0)
    """
    l1, l2 = plain_numbers(lengths, "lengths", size=2, positive=True)
    m1, m2, m3 = plain_numbers(masses, "masses", size=3, positive=True)
    J1, J2 = plain_numbers(inertias, "inertias", size=2, positive=True)
    xp = numpy_for(lengths, masses, inertias)
    across = (m2 / 2 + m3) * l1 * l2
    a = xp.array([[J1 + (m1 / 4 + m2 + m3) * l1**2, across], [across, J2 + (m2 / 4 + m3) * l2**2]])
    w = gravity * xp.array([(m1 / 2 + m2 + m3) * l1, (m2 / 2 + m3) * l2])
    system = System(
        AngleMass(jnp.asarray(a)),
        AnglePotential(jnp.asarray(w)),
        constraints=SliderHeight(jnp.asarray([l1, l2])),
        labels=("crank", "rod"),
        units="rad",
    )
    return system, State(np.zeros(2), [rate, -rate * l1 / l2])


class Loop(eqx.Module):
    """Three bars and the ground close: sum l_i (cos q_i, sin q_i) = (ground, 0)."""

    lengths: Float[Array, " 3"]
    ground: Array

    def __call__(self, q: Array) -> Array:
        """The gap of the loop."""
        return jnp.stack([self.lengths @ jnp.cos(q) - self.ground, self.lengths @ jnp.sin(q)])


@model(t1=10.0, h=0.01, method="Spark(3)")
def four_bar(
    lengths: Numbers = (1.0, 4.0, 2.5),
    ground: float = 3.0,
    masses: Numbers = 1.0,
    gravity: float = 9.81,
    rate: float = 1.0,
) -> tuple[System, State]:
    """Four-bar linkage of uniform bars (absolute angles), its crank starting along the ground with `rate`.

    Example:
        >>> system, state = carom.models.four_bar(rate=5.0)
    """
    xp = numpy_for(lengths, ground, masses, rate)
    l = plain_numbers(lengths, "lengths", size=3, positive=True)
    m = xp.broadcast_to(plain_numbers(masses, "masses", size=3, positive=True), 3)
    carried = np.array([[1 / 3, 0.5, 0.5], [0.5, 1 / 3, 0.5], [0.5, 0.5, 1 / 3]])
    later = xp.array([[m[max(i, j) + 1 :].sum() for j in range(3)] for i in range(3)])
    own = xp.array([[m[max(i, j)] * carried[i, j] for j in range(3)] for i in range(3)])
    a = xp.outer(l, l) * (own + later)
    w = gravity * l * xp.array([m[i] / 2 + m[i + 1 :].sum() for i in range(3)])
    q = _closed_loop(xp, l, real(ground))
    J = xp.array([-l * xp.sin(q), l * xp.cos(q)])
    v = xp.array([rate, *xp.linalg.solve(J[:, 1:], -J[:, 0] * rate)])
    constraints = Loop(jnp.asarray(l), jnp.asarray(real(ground)))
    system = System(
        AngleMass(jnp.asarray(a)),
        AnglePotential(jnp.asarray(w)),
        constraints=constraints,
        labels=("crank", "coupler", "rocker"),
        units="rad",
    )
    return system, State(q, v)


def _closed_loop(xp: Any, l: Any, ground: Any) -> Any:
    """Angles of the linkage with its crank along the ground, the coupler above."""
    reach = ground - l[0]
    cosine = (reach**2 + l[1] ** 2 - l[2] ** 2) / (2 * reach * l[1])
    if not is_traced(cosine) and not abs(cosine) < 1:
        msg = f"lengths: bars of {l.tolist()} and ground {ground:g} do not close with the crank along the ground"
        raise ValueError(msg)
    q2 = xp.arccos(cosine)
    return xp.array([0.0, q2, xp.arctan2(-l[1] * xp.sin(q2), reach - l[1] * xp.cos(q2))])
