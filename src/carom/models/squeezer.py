"""Andrews' squeezing mechanism: seven bodies, six constraints [Jay1998 sec. 10; Hairer and Wanner II, sec. VI.9].

q = (beta, Theta, gamma, Phi, delta, Omega, epsilon), SI units. The mass matrix is a constant plus multiples of three
cosines, and the constraints are linear in the cosines and sines of seven angles: constant arrays hold all data.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from carom.arguments import numbers
from carom.models.pendulums import Weight
from carom.models.registry import model
from carom.state import State
from carom.systems.system import System

m1, m2, m3, m4, m5, m6, m7 = 0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498
I1, I2, I3, I4, I5, I6, I7 = 2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5
xa, ya, xb, yb, xc, yc = -0.06934, -0.00227, -0.03635, 0.03273, 0.014, 0.072
c0, l0 = 4530.0, 0.07785
d, da, e, ea, rr, ra = 0.028, 0.0115, 0.02, 0.01421, 0.007, 0.00092
ss, sa, sb, sc, sd, ta, tb = 0.035, 0.01874, 0.01043, 0.018, 0.02, 0.02308, 0.00916
u, ua, ub, zf, zt, fa = 0.04, 0.01228, 0.00449, 0.02, 0.04, 0.01421

Q0 = (
    -0.0617138900142764496358948458001,
    0.0,
    0.455279819163070380255912382449,
    0.222668390165885884674473185609,
    0.487364979543842550225598953530,
    -0.222668390165885884674473185609,
    1.23054744454982119249735015568,
)
LABELS = ("beta", "Theta", "gamma", "Phi", "delta", "Omega", "epsilon")


class Bodies(eqx.Module):
    """M(q) = constant + cos(Theta) on_theta + sin(Phi) on_phi + sin(Omega) on_omega."""

    parts: Float[Array, "4 7 7"]

    def __call__(self, q: Array) -> Array:
        """M(q)."""
        weights = jnp.stack([jnp.ones(()), jnp.cos(q[1]), jnp.sin(q[3]), jnp.sin(q[5])])
        return jnp.tensordot(weights, self.parts, 1)


class Joints(eqx.Module):
    """g = on_cos cos(angles q) + on_sin sin(angles q) - offset."""

    angles: Float[Array, "7 7"]
    on_cos: Float[Array, "6 7"]
    on_sin: Float[Array, "6 7"]
    offset: Float[Array, " 6"]

    def __call__(self, q: Array) -> Array:
        """Six entries."""
        a = self.angles @ q
        return self.on_cos @ jnp.cos(a) + self.on_sin @ jnp.sin(a) - self.offset


class Spring(eqx.Module):
    """c0 (L - l0)^2 / 2 between body 3 and (xc, yc)."""

    stiffness: Array
    rest: Array

    def __call__(self, q: Array) -> Array:
        """The energy."""
        x = sd * jnp.cos(q[2]) + sc * jnp.sin(q[2]) + xb - xc
        y = sd * jnp.sin(q[2]) - sc * jnp.cos(q[2]) + yb - yc
        return 0.5 * self.stiffness * (jnp.sqrt(x * x + y * y) - self.rest) ** 2


class Torque(eqx.Module):
    """A torque that depends on time, on beta."""

    moment: Callable[..., Array]

    def __call__(self, t: Array, q: Array, v: Array) -> Array:
        """The force."""
        del q
        return jnp.zeros_like(v).at[0].set(self.moment(t))


@model(t1=0.03, h=5e-05, method="Spark(3)")
def andrews_squeezer(torque: float | Callable[..., Array] = 0.033) -> tuple[System, State]:
    """Andrews' squeezing mechanism with a torque on beta: a number (part "drive" of the potential) or a function of t.

    Example:
        >>> system, state = carom.models.andrews_squeezer(torque=0.033)
    """
    potential: dict[str, Callable[..., Array]] = {"spring": Spring(jnp.asarray(c0), jnp.asarray(l0))}
    forces = {}
    if callable(torque):
        forces["drive"] = Torque(torque)
    else:
        potential["drive"] = Weight(jnp.zeros(7).at[0].set(-numbers(torque, "torque")))
    system = System(_bodies(), potential, forces, constraints=_joints(), labels=LABELS, units="rad")
    return system, State(Q0, np.zeros(7))


def _bodies() -> Bodies:
    A, B = e - ea, zf - fa
    M, th, ph, om = np.zeros((4, 7, 7))
    M[0, 0], M[0, 1], M[1, 1] = m1 * ra**2 + m2 * (rr**2 + da**2) + I1 + I2, m2 * da**2 + I2, m2 * da**2 + I2
    th[0, 0], th[0, 1] = -2 * m2 * da * rr, -m2 * da * rr
    M[2, 2] = m3 * (sa**2 + sb**2) + I3
    M[3, 3], M[3, 4] = m4 * A**2 + I4, m4 * A**2 + I4
    M[4, 4] = m4 * (zt**2 + A**2) + m5 * (ta**2 + tb**2) + I4 + I5
    ph[3, 4], ph[4, 4] = m4 * zt * A, 2 * m4 * zt * A
    M[5, 5], M[5, 6] = m6 * B**2 + I6, m6 * B**2 + I6
    M[6, 6] = m6 * (B**2 + u**2) + m7 * (ua**2 + ub**2) + I6 + I7
    om[5, 6], om[6, 6] = -m6 * u * B, -2 * m6 * u * B
    upper = np.stack([M, th, ph, om])
    return Bodies(jnp.asarray(upper + np.swapaxes(np.triu(upper, 1), 1, 2)))


def _joints() -> Joints:
    angles = np.zeros((7, 7))
    for row, used in enumerate(((0,), (0, 1), (2,), (3, 4), (4,), (5, 6), (6,))):
        angles[row, list(used)] = 1.0
    on_cos, on_sin = np.zeros((6, 7)), np.zeros((6, 7))
    on_cos[::2, 0], on_cos[::2, 1] = rr, -d
    on_sin[1::2, 0], on_sin[1::2, 1] = rr, -d
    on_sin[0, 2], on_cos[1, 2] = -ss, ss
    on_sin[2, 3], on_cos[2, 4], on_cos[3, 3], on_sin[3, 4] = -e, -zt, e, -zt
    on_cos[4, 5], on_sin[4, 6], on_sin[5, 5], on_cos[5, 6] = -zf, -u, -zf, u
    return Joints(*(jnp.asarray(x) for x in (angles, on_cos, on_sin, np.array([xb, yb, xa, ya, xa, ya]))))
