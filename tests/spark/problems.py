"""Problems shared by the tests of SPARK, and order studies."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import carom
from tests.lanes import one_by_one


def orders(system, state, method, t1, steps, floor=2e-13):
    """Observed orders in q, v and the multiplier, from differences of runs with doubled numbers of steps."""
    sols = one_by_one(system, state, method, t1=t1, h=[t1 / n for n in steps])
    assert all(sol.status == 0 for sol in sols)
    columns = [[sol.q[-1] for sol in sols], [sol.v[-1] for sol in sols], [sol.multiplier[-1] for sol in sols]]
    h = t1 / np.array(steps[:-1])
    found = []
    for values in columns:
        error = np.array([np.linalg.norm(a - b) for a, b in zip(values, values[1:])])
        found.append(carom.measures.observed_order(h, error, floor=floor * max(1.0, np.linalg.norm(values[-1]))))
    return found, sols


class BentMass(eqx.Module):
    """A mass matrix that depends on all coordinates."""

    a: jnp.ndarray

    def __call__(self, q):
        x, y, z = q
        off = 0.3 * jnp.sin(self.a * y)
        return jnp.array([[2.0 + jnp.cos(x), off, 0.2 * z], [off, 1.5 + 0.5 * y * y, 0.1 * x], [0.2 * z, 0.1 * x, 1.0]])


def potential(q):
    return q[2] + 0.5 * q[0] ** 2 * q[1] + 0.1 * q[1] ** 4


def egg(q):
    return jnp.array([q[0] ** 2 + q[1] ** 2 + 1.5 * q[2] ** 2 + 0.3 * q[0] * q[1] - 1.0])


def drag(t, q, v):
    return -(0.3 + 0.2 * v @ v) * v


def motor(t, q, v):
    return 0.2 * v + jnp.array([jnp.cos(2 * t), 0.0, 0.3 * q[0]])


def magnet(t, q, v):
    return (1.0 + 0.5 * q[0]) * jnp.array([v[1], -v[0], 0.3 * v[0] * v[1]])


def rubbing(t, q, v, lam):
    return -0.15 * jnp.sqrt(1.0 + lam[0] ** 2) * v


def bent_system(multiplier_force=True):
    """M(q), and a velocity-dependent force for every family, on an egg."""
    forces = {"dissipative": drag, "exciting": motor, "magnet": magnet}
    if multiplier_force:
        forces["rubbing"] = rubbing
    system = carom.System(BentMass(jnp.asarray(1.3)), potential, forces, constraints=egg)
    return system, carom.consistent(system, carom.State([0.6, 0.5, 0.4], [0.4, -0.5, 0.7]))
