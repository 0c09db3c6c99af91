"""Random contact problems of disks and spheres, and a reference that shares no code with carom."""

from dataclasses import replace

import numpy as np
from scipy import sparse

from carom.contact_problems import GlobalProblem


def heap(seed, contacts, dimension, mu=1.0, redundant=False):
    """Bodies in random contact with each other and with walls; `redundant` has the first half of the contacts twice.

    Which bodies touch depends on the number of contacts alone, so that all heaps of a size share compiled programs.
    """
    rng, graph = np.random.default_rng(seed), np.random.default_rng(contacts)
    d, bodies = dimension, max(1, contacts // 2)
    dof = 3 if d == 2 else 6
    mass = rng.uniform(0.5, 2.0, bodies * dof)
    H = np.zeros((bodies * dof, contacts * d))
    for k in range(contacts):
        a, b = graph.integers(bodies), graph.integers(-1, bodies)
        frame = np.linalg.qr(rng.normal(size=(d, d)))[0]
        for body, sign in ((a, 1.0), (b, -1.0)):
            if body >= 0 and (sign > 0 or b != a):
                H[body * dof : (body + 1) * dof, k * d : (k + 1) * d] += sign * directions(frame, -sign)
    friction = rng.uniform(0.0, mu, contacts)
    if redundant:
        half = contacts // 2
        H[:, half * d : 2 * half * d] = H[:, : half * d]
        friction[half : 2 * half] = friction[:half]
    f = mass * rng.normal(size=mass.size)
    return GlobalProblem(sparse.diags_array(mass), H, f, np.zeros(contacts * d), friction, d)


def held_heap():
    """A heap of disks with two equality constraints."""
    problem, rng = heap(2, 12, 2), np.random.default_rng(0)
    return replace(problem, G=rng.normal(size=(problem.f.size, 2)), b=rng.normal(size=2))


def directions(frame, side):
    """Rates of a unit disk or sphere along the columns of a frame, at the point on that side along the first."""
    arm = side * frame[:, 0]
    if frame.shape[0] == 2:
        return np.vstack([frame, arm[0] * frame[1] - arm[1] * frame[0]])
    return np.vstack([frame, np.cross(arm, frame.T).T])


def sweeps(problem, most=20000):
    """Impulses by plain nonsmooth Gauss-Seidel, contact after contact."""
    W, q, mu, d = problem.W.toarray(), problem.q, problem.mu, problem.dimension
    r = np.zeros(q.size)
    for _ in range(most):
        old = r.copy()
        for i, n in enumerate(range(0, q.size, d)):
            t = slice(n + 1, n + d)
            r[n] = max(0.0, r[n] - (W[n] @ r + q[n]) / W[n, n])
            x = r[t] - (W[t] @ r + q[t]) / np.trace(W[t, t])
            r[t] = x * min(1.0, mu[i] * r[n] / max(np.linalg.norm(x), 1e-300))
        if np.abs(r - old).max() <= 1e-12 * np.abs(r).max():
            break
    return r


def violation(problem, r):
    """The worst violation of Coulomb's law by impulses and the velocities that they bring about, as laws are stated."""
    u = (problem.W @ r + problem.q).reshape(-1, problem.dimension)
    r = r.reshape(u.shape)
    r_N, r_T, u_N, u_T = r[:, 0], r[:, 1:], u[:, 0], u[:, 1:]
    slip, limit = np.linalg.norm(u_T, axis=1), problem.mu * r_N
    opposed = r_T * slip[:, None] + limit[:, None] * u_T  # friction has its limit, against the slip, where there is any
    parts = (-r_N, -u_N, r_N * u_N, np.linalg.norm(r_T, axis=1) - limit, np.abs(opposed).ravel())
    return max(x.max(initial=0.0) for x in parts)


def motions(problem):
    """Velocities of all consistent modes of a few contacts with one tangential row, by trying every one."""
    W, q, mu = problem.W.toarray(), problem.q, problem.mu
    found = []
    for code in range(4**mu.size):
        A, b = np.zeros(W.shape), np.zeros(q.size)
        for i in range(mu.size):
            mode, n, t = code // 4**i % 4, 2 * i, 2 * i + 1
            A[n], b[n] = (np.eye(q.size)[n], 0.0) if mode == 0 else (W[n], -q[n])
            A[t], b[t] = (W[t], -q[t]) if mode == 1 else (np.eye(q.size)[t], 0.0)
            A[t, n] -= {2: mu[i], 3: -mu[i]}.get(mode, 0.0)
        r = np.linalg.lstsq(A, b, rcond=None)[0]
        if np.abs(A @ r - b).max() < 1e-9 and violation(problem, r) < 1e-9:
            found.append(W @ r + q)
    return found
