"""Kinematics in SPARK: a heavy body with a fixed point, as quaternion, position and three constraints."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import carom

J, M, ARM = np.array([0.3, 0.5, 0.9]), 2.0, np.array([0.1, 0.2, -0.7])


def rotation(p, xp=jnp):
    w, x, y, z = p
    return xp.array(
        [
            [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
        ]
    )


def turning(p, w, xp=jnp):
    s, x, y, z = p
    a, b, c = w
    return 0.5 * xp.array([-x * a - y * b - z * c, s * a + y * c - z * b, s * b + z * a - x * c, s * c + x * b - y * a])


def top():
    system = carom.System(
        np.r_[M, M, M, J],
        lambda q: M * 9.81 * q[2],
        {"gyroscopic": lambda t, q, v: jnp.concatenate([jnp.zeros(3), -jnp.cross(v[3:], J * v[3:])])},
        kinematics=lambda t, q, v: jnp.concatenate([v[:3], turning(q[3:], v[3:])]),
        constraints=lambda q: q[:3] + rotation(q[3:]) @ ARM,
    )
    spin = np.array([1.0, 2.0, 3.0])
    return system, carom.State(np.r_[-ARM, 1.0, 0.0, 0.0, 0.0], np.r_[-np.cross(spin, ARM), spin])


def exact(t1):
    """Euler's equations about the fixed point."""
    inertia = np.diag(J) + M * (ARM @ ARM * np.eye(3) - np.outer(ARM, ARM))

    def rates(t, y):
        weight = rotation(y[:4], np).T @ [0.0, 0.0, -9.81 * M]
        torque = np.cross(-ARM, weight) - np.cross(y[4:], inertia @ y[4:])
        return np.r_[turning(y[:4], y[4:], np), np.linalg.solve(inertia, torque)]

    start = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0])
    return solve_ivp(rates, (0.0, t1), start, method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]


@pytest.mark.slow
def test_a_quaternion_is_followed_with_full_order_and_keeps_its_length():
    wanted, errors = exact(1.0), []
    for n in (25, 50, 100):
        sol = carom.simulate(*top(), carom.Spark(4), t1=1.0, h=1.0 / n)
        errors.append(np.abs(np.r_[sol.q[-1, 3:], sol.v[-1, 3:]] - wanted).max())
        assert np.abs(np.linalg.norm(sol.q[:, 3:], axis=1) - 1.0).max() < 1e-14
        assert sol.account.worst["drift"] < 1e-14
    assert carom.measures.observed_order(1.0 / np.array([25, 50, 100]), np.array(errors)) == pytest.approx(6.0, abs=0.3)
    assert errors[-1] < 1e-8


@pytest.mark.slow
def test_solve_takes_quaternions_with_constraints():
    sol = carom.solve(*top(), t1=1.0, rtol=1e-9)
    assert np.abs(np.r_[sol.q[-1, 3:], sol.v[-1, 3:]] - exact(1.0)).max() < 1e-8
    assert np.abs(np.linalg.norm(sol.q[:, 3:], axis=1) - 1.0).max() < 1e-13


@pytest.mark.slow
def test_consistent_moves_quaternions_along_their_kinematics():
    system, state = top()
    off = carom.State(np.r_[np.asarray(state.q[:3]) + 0.05, np.asarray(state.q[3:])], np.asarray(state.v) + 0.1)
    carom.check(system, carom.consistent(system, off))
