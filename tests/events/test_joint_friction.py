"""Friction whose limit is the force of a joint: a bead on a rough hoop."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import carom

MU, G, START = 0.2, 9.81, 0.2


def slip(q, v):
    return jnp.array([q[0] * v[1] - q[1] * v[0]])


def coulomb(t, q, v, lam, p):
    return p["mu"] * jnp.abs(lam)


def bead(mu=MU):
    friction = carom.FrictionElements(slip, limit=coulomb)
    circle = lambda q: 0.5 * (q @ q - 1.0)  # noqa: E731
    system = carom.System(1.0, lambda q: G * q[1], constraints=circle, friction=friction, params={"mu": mu})
    return system, carom.State([np.cos(START), np.sin(START)], [0.0, 0.0])


def force(a, w):
    return w * w - G * np.sin(a)


def angle(q):
    return np.arctan2(q[..., 1], q[..., 0])


@pytest.fixture(scope="module")
def solved():
    return carom.solve(*bead(), t1=4.0, rtol=1e-10, atol=1e-10)


def wanted(times):
    """Angles of the bead on its first way down."""

    def rates(t, y):
        return [y[1], -G * np.cos(y[0]) + MU * np.abs(force(*y))]

    tight = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-13, "max_step": 1e-3}
    return solve_ivp(rates, (0.0, 1.1), [START, 0.0], t_eval=times, **tight).y[0]


@pytest.mark.slow
def test_a_bead_on_a_rough_hoop_follows_the_joint_force(solved):
    times = np.linspace(0.05, 1.1, 12)
    assert np.abs(np.unwrap(angle(solved.at(times)[0])) - wanted(times)).max() < 1e-8


@pytest.mark.slow
def test_the_bead_reverses_and_sticks_where_the_joint_force_holds_it(solved):
    kinds = [str(kind) for kind in solved.events.kind]
    assert kinds == ["reverses", "reverses", "sticks"]
    assert np.allclose(solved.v[-1], 0.0, atol=1e-12)
    a = angle(solved.q[-1])
    assert G * abs(np.cos(a)) < MU * abs(force(a, 0.0))
    assert solved.multiplier[-1, 0] == pytest.approx(-G * np.sin(a), rel=1e-9)


def test_time_stepping_converges_to_the_same_motion():
    a, errors = wanted([1.0])[0], []
    for h in (2e-3, 5e-4):
        sol = carom.simulate(*bead(), carom.MoreauMidpoint(), t1=1.0, h=h)
        errors.append(np.abs(sol.q[-1] - [np.cos(a), np.sin(a)]).max())
    assert errors[1] < 0.3 * errors[0]
    assert errors[1] < 1e-4


def test_a_limit_that_reads_multipliers_needs_constraints():
    with pytest.raises(ValueError, match="limit reads lam, but the system has no constraints"):
        carom.System(1.0, friction=carom.FrictionElements(lambda q, v: v, limit=lambda t, q, v, lam: lam))


def test_moreau_theta_refuses_friction_in_joints():
    with pytest.raises(ValueError, match="reads lam needs MoreauMidpoint or EventCapturing"):
        carom.simulate(*bead(), carom.MoreauTheta(), t1=1.0, h=1e-2)
