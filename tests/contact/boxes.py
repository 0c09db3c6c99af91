"""A rigid box with a unit quaternion, and stacks of such boxes, for tests of contacts that depend on each other."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import carom

GRAVITY = 9.81


def rotation(e):
    """Matrix of a quaternion, normalised first."""
    w, x, y, z = e / jnp.sqrt(e @ e)
    return jnp.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


class Boxes(eqx.Module):
    """Boxes of mass 1, one above the other; only the lowest touches the floor, with all its corners if it is alone."""

    half: jax.Array
    count: int = 1

    @property
    def inertia(self):
        a, b, c = self.half**2
        return jnp.stack([b + c, a + c, a + b]) / 3

    @property
    def corners(self):
        signs = np.array([[x, y, z] for z in (-1, 1) for x in (-1, 1) for y in (-1, 1)])
        return self.half * (signs if self.count == 1 else signs[:4])

    def places(self, q):
        """Centres, rotations and corners."""
        Q = q.reshape(self.count, 7)
        R = jax.vmap(rotation)(Q[:, 3:])
        return Q[:, :3], R, Q[:, None, :3] + jnp.einsum("nij,kj->nki", R, self.corners)

    def kinematics(self, t, q, v):
        def one(q, v):
            w, x, y, z = q[3:]
            E = 0.5 * jnp.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]])
            return jnp.concatenate([v[:3], E @ v[3:]])

        return jax.vmap(one)(q.reshape(self.count, 7), v.reshape(self.count, 6)).ravel()

    def gyroscopic(self, t, q, v):
        spin = v.reshape(self.count, 6)[:, 3:]
        turn = -jnp.cross(spin, self.inertia * spin)
        return jnp.concatenate([jnp.zeros_like(turn), turn], axis=1).ravel()

    def potential(self, q):
        return GRAVITY * jnp.sum(q.reshape(self.count, 7)[:, 2])

    def gap(self, q):
        x, R, corners = self.places(q)
        above = jnp.einsum("nki,ni->nk", corners[1:] - x[:-1, None], R[:-1, :, 2]) - self.half[2]
        return jnp.concatenate([corners[0, :, 2], above.ravel()])

    def slip(self, q, v):
        x, R, corners = self.places(q)
        V = v.reshape(self.count, 6)
        spin = jnp.einsum("nij,nj->ni", R, V[:, 3:])
        velocity = V[:, None, :3] + jnp.cross(spin[:, None], corners - x[:, None])
        below = V[:-1, None, :3] + jnp.cross(spin[:-1, None], corners[1:] - x[:-1, None])
        above = jnp.einsum("nki,nij->nkj", velocity[1:] - below, R[:-1, :, :2])
        return jnp.concatenate([velocity[0, :, :2], above.reshape(-1, 2)])

    def system(self, restitution, friction=0.4):
        return carom.System(
            jnp.tile(jnp.concatenate([jnp.ones(3), self.inertia]), self.count),
            self.potential,
            {"gyroscopic": self.gyroscopic},
            kinematics=self.kinematics,
            contacts=carom.Contacts(self.gap, slip_velocity=self.slip, friction=friction, restitution=restitution),
        )


def thrown(seed):
    """A start with random attitude, velocity and spin."""
    rng = np.random.default_rng(seed)
    e = rng.normal(size=4)
    return carom.State(np.r_[0, 0, 1.0, e / np.linalg.norm(e)], np.r_[0.5 * rng.normal(size=3), 2 * rng.normal(size=3)])


def stacked(half, count, seed=0):
    """Boxes a little above each other, not quite aligned."""
    rng = np.random.default_rng(seed)
    q = np.zeros((count, 7))
    q[:, 2] = half[2] * (1 + 2 * np.arange(count)) + 0.002 * (1 + np.arange(count))
    q[:, :2] = 0.01 * rng.normal(size=(count, 2))
    turn = 0.01 * rng.normal(size=count)
    q[:, 3], q[:, 6] = np.cos(turn), np.sin(turn)
    return carom.State(q.ravel(), np.zeros(6 * count))
