"""Disks and spheres in plain NumPy: Moreau's midpoint rule, all pairs and images, Gauss-Seidel contact by contact.

Nothing of carom is used: directions, lever arms, images and laws are written down once more, from the textbook.
"""

import itertools

import numpy as np

MOST = 20_000


def frame(n):
    """The normal, and directions across it."""
    if n.size == 2:
        return np.array([n, [-n[1], n[0]]])
    across = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
    across /= np.linalg.norm(across)
    return np.array([n, across, np.cross(n, across)])


def at_point(directions, arm):
    """How the velocities of a body, spin last, move its point at `arm` along directions."""
    if arm.size == 2:
        return np.column_stack([directions, directions @ [-arm[1], arm[0]]])
    return np.column_stack([directions, np.cross(arm, directions)])


def pair(i, j, across, r, s, drift, laws):
    """Bodies i and j, from one to the other by `across`, where the other's image drifts."""
    n = across / np.linalg.norm(across)
    D = frame(n)
    rows = [(i, -at_point(D, across * r / (r + s))), (j, at_point(D, -across * s / (r + s)))]
    return rows, D @ drift, laws


def wall(i, n, r, velocity, laws):
    """Body i and a wall with the normal n."""
    D = frame(n)
    return [(i, at_point(D, -r * n))], -D @ velocity, laws


def velocities(contacts, M, u, free):
    """Velocities after the impulses of Coulomb's and Newton's laws."""
    found, w = [], np.zeros_like(u)
    for rows, drift, (mu, eps) in contacts:
        gamma = sum(D @ u[i] for i, D in rows) + drift
        gained = sum(D @ free[i] for i, D in rows)
        gamma[0] *= 1.0 + eps
        G = sum(np.sum(D**2 / M[i], axis=1) for i, D in rows)
        found.append((rows, gamma + gained, G, mu, np.zeros(len(G))))
    scale = max((np.abs(c).max() for _, c, *_ in found), default=0.0)
    for _ in range(MOST):
        change = 0.0
        for rows, c, G, mu, P in found:
            x = P - (sum(D @ w[i] for i, D in rows) + c) / G
            x[0] = max(x[0], 0.0)
            size, most = np.linalg.norm(x[1:]), mu * x[0]
            x[1:] *= most / size if size > most else 1.0
            change = max(change, np.abs(G * (x - P)).max())
            for i, D in rows:
                w[i] += (x - P) @ D / M[i]
            P[:] = x
        if change <= 1e-13 * scale:
            return u + free + w
    msg = "no convergence"
    raise RuntimeError(msg)


def images(lengths, shear, across, t):
    """The images of a body around another in a box that is sheared, and how fast they drift."""
    if lengths is None:
        return [(across, np.zeros(across.size))]
    found = []
    for up in np.arange(-1, 2) - np.round(across[1] / lengths[1]):
        drift = np.array([up * shear * lengths[1], 0.0])
        above = across + [0.0, up * lengths[1]] + drift * t
        beside = np.arange(-1, 2) - np.round(above[0] / lengths[0])
        found += [(above + [k * lengths[0], 0.0], drift) for k in beside]
    return found


def run(scene, q, u, h, steps, t0=0.0):
    """Velocities of all steps. Of a scene: radii, masses M, gravity, laws(i, j), lengths, shear, walls(t, x, r, i)."""
    R, M, d = scene["radii"], scene["M"], 2 if u.shape[1] == 3 else 3
    free = np.zeros_like(u)
    free[:, d - 1] = -h * scene["gravity"]
    rows = [u]
    for k in range(steps):
        t, q_M = t0 + (k + 0.5) * h, q + 0.5 * h * u[:, : q.shape[1]]
        contacts, x = [], q_M[:, :d]
        for i, j in itertools.combinations(range(len(R)), 2):
            for across, drift in images(scene["lengths"], scene["shear"], x[j] - x[i], t):
                if np.linalg.norm(across) <= R[i] + R[j]:
                    contacts.append(pair(i, j, across, R[i], R[j], drift, scene["laws"](i, j)))
        for i in range(len(R)):
            for gap, n, velocity, laws in scene["walls"](t, x[i], R[i], i):
                if gap <= 0:
                    contacts.append(wall(i, n, R[i], velocity, laws))
        new = velocities(contacts, M, u, free)
        q, u = q + 0.5 * h * (u + new)[:, : q.shape[1]], new
        rows.append(u)
    return np.array(rows)
