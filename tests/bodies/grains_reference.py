"""Grains with friction that remembers in plain NumPy: all pairs and images, memories in a dictionary.

Nothing of carom is used: velocity Verlet with half the impulse of friction before and half after, springs along the
surfaces with a Coulomb limit, written down once more.
"""

import itertools

import numpy as np


def turn(w, n):
    """The cross product of an angular velocity and a vector."""
    return np.cross(w, n) if n.size == 3 else w[0] * np.array([-n[1], n[0]])


def moment(n, F):
    """The cross product of two vectors."""
    return np.cross(n, F) if n.size == 3 else np.array([n[0] * F[1] - n[1] * F[0]])


def cut(x, most):
    """A vector, no longer than this."""
    size = np.linalg.norm(x)
    return x if size <= most else x * (most / size)


def as_long(before, after):
    """A vector with the length of another."""
    size = np.linalg.norm(after)
    return after * (np.linalg.norm(before) / size) if size > 0 else after


class Grains:
    """Radii, masses, inertias, a law (k, mu, k_t, c_t, c_n, mu_r, k_r), a periodic box or None, walls, weight along -d.

    A wall is a pair of functions of a place: its distance, and its normal.
    """

    def __init__(self, r, m, J, law, box, walls, weight):
        self.r, self.m, self.J, self.law, self.box, self.walls, self.weight = r, m, J, law, box, walls, weight
        self.memory = {}

    def touching(self, x):
        """Key, bodies, normal from the first to the other, arms, overlap and reduced radius of all contacts."""
        n, d = x.shape
        images = itertools.product((-1, 0, 1), repeat=d)
        shifts = [0.0] if self.box is None else [np.array(image) * self.box for image in images]
        for i, j in itertools.combinations(range(n), 2):
            r, s = self.r[i], self.r[j]
            for shift in shifts:
                apart = x[j] + shift - x[i]
                D = np.linalg.norm(apart)
                if r + s > D:
                    arms = D * r / (r + s), D * s / (r + s)
                    yield (i, j), apart / D, arms, r + s - D, r * s / (r + s)
        for i, (k, (distance, normal)) in itertools.product(range(n), enumerate(self.walls)):
            overlap = self.r[i] - distance(x[i])
            if overlap > 0:
                yield (i, n + k), -normal(x[i]), (self.r[i], 0.0), overlap, self.r[i]

    def pushed(self, x):
        """Accelerations by normal forces and weight."""
        F = np.zeros_like(x)
        F[:, -1] = -self.weight * self.m
        for (i, j), n, _, overlap, _ in self.touching(x):
            F[i] -= self.law["k"] * overlap * n
            if j < len(x):
                F[j] += self.law["k"] * overlap * n
        return F / self.m[:, None]

    def rubbed(self, x, v, w, h):
        """Accelerations by friction over a step, which is remembered."""
        law, F, Q, after = self.law, np.zeros_like(v), np.zeros_like(w), {}
        for (i, j), n, (l, s), overlap, R in self.touching(x):
            v_j, w_j = (v[j], w[j]) if j < len(x) else (0 * v[i], 0 * w[i])
            N, apart, mean = law["k"] * overlap, v_j - v[i], 0.5 * (w[i] + w_j)
            slip = apart - n * (apart @ n) - turn(l * w[i] + s * w_j, n)
            xi, psi = self.memory.get((i, j), (np.zeros(n.size), np.zeros(w.shape[1])))
            along = xi - n * (xi @ n)
            if n.size == 3:
                along, psi = along + h * (mean @ n) * np.cross(n, along), as_long(psi, psi + h * np.cross(mean, psi))
            xi = cut(as_long(xi, along) + h * slip, law["mu"] * N / law["k_t"])
            psi = cut(psi + h * (w_j - w[i]), law["mu_r"] * N * R / law["k_r"])
            T, M = cut(law["k_t"] * xi + law["c_t"] * slip, law["mu"] * N), law["k_r"] * psi
            after[i, j] = xi, psi
            force = T + law["c_n"] * (apart @ n) * n
            F[i] += force
            Q[i] += l * moment(n, T) + M
            if j < len(x):
                F[j] -= force
                Q[j] += s * moment(n, T) - M
        self.memory = after
        return F / self.m[:, None], Q / self.J[:, None]

    def moved(self, x, v, w, h, steps):
        """Places, angles and velocities after some steps."""
        angle, a = np.zeros_like(w), self.pushed(x)
        for _ in range(steps):
            rub, spin = self.rubbed(x, v, w, h)
            v, w = v + 0.5 * h * (rub + a), w + 0.5 * h * spin
            x, angle = x + h * v, angle + h * w
            a = self.pushed(x)
            v, w = v + 0.5 * h * (a + rub), w + 0.5 * h * spin
        return np.concatenate([x, angle, v, w], axis=1)
