"""Limits, friction that falls with speed and rolling, in joints, against SciPy on one coordinate."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import carom

ACCURATE = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12}


def arm_with_a_stop():
    arm = carom.RigidBody.rod(2.0, 1.0, position=(0.5, 0.0), name="arm")
    hinge = carom.joints.revolute("ground", "arm.left", at=(0, 0), limits=(-0.8, 3.0), restitution=0.6)
    return carom.Mechanism([arm], [hinge], gravity=9.81)


def stopped_arm(t1):
    """Angle and rate of the arm at t1, bounce by bounce."""
    t, y = 0.0, np.zeros(2)
    hits = lambda t, y: y[0] + 0.8
    hits.terminal, hits.direction = True, -1
    while True:
        run = solve_ivp(lambda t, y: [y[1], -1.5 * 9.81 * np.cos(y[0])], (t, t1), y, events=hits, **ACCURATE)
        t, y = run.t[-1], run.y[:, -1]
        if run.status == 0:
            return y
        y = np.array([-0.8, -0.6 * y[1]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "within"),
    [
        (lambda system: carom.solve(*system, t1=1.0, rtol=1e-9, atol=1e-11), 1e-8),
        (lambda system: carom.simulate(*system, carom.MoreauMidpoint(), t1=1.0, h=1e-4), 2e-3),
    ],
    ids=["solve", "moreau"],
)
def test_an_arm_bounces_off_the_limit_of_its_hinge(run, within):
    assert run(arm_with_a_stop()).q[-1][2] == pytest.approx(stopped_arm(1.0)[0], abs=within)


def stribeck(rate):
    return 0.1 + 0.2 * jnp.exp(-((rate / 0.5) ** 2))


def slider():
    block = carom.RigidBody(2.0, 0.1, velocity=(1.0, 0.0), name="block")
    guide = carom.joints.prismatic("ground", "block", at=(0, 0), axis=(1, 0), stiffness=8.0, friction=stribeck)
    return carom.Mechanism([block], [guide], gravity=9.81)


def slider_error(sol):
    """How far place and speed at t = .4, before the slider turns, are from SciPy's."""
    rates = lambda t, y: [y[1], -4.0 * y[0] - 9.81 * (0.1 + 0.2 * np.exp(-((y[1] / 0.5) ** 2)))]
    known = solve_ivp(rates, (0, 0.4), [0.0, 1.0], **ACCURATE).y[:, -1]
    assert known[1] > 0
    return np.abs(np.array([sol.q[-1][0], sol.v[-1][0]]) - known).max()


@pytest.mark.slow
def test_friction_of_a_slider_may_fall_with_its_speed():
    assert slider_error(carom.solve(*slider(), t1=0.4, rtol=1e-9, atol=1e-11)) < 1e-8


@pytest.mark.slow
def test_friction_that_falls_with_speed_is_of_first_order_in_time_stepping():
    coarse, fine = (slider_error(carom.simulate(*slider(), carom.MoreauMidpoint(), t1=0.4, h=h)) for h in (2e-4, 1e-4))
    assert fine < 2e-4
    assert fine == pytest.approx(coarse / 2, rel=0.02)


MARK, ANCHOR, RADIUS, MASS, INERTIA, STOP = np.array([0.1, 0.05]), np.array([0.8, 0.9]), 0.2, 1.5, 0.04, 0.25


def rolling_wheel(planes=()):
    """A wheel that a spring and a slope drive."""
    given = {"markers": {"pin": MARK}, "corners": [(0.0, 0.0)], "radius": RADIUS}
    wheel = carom.RigidBody(MASS, INERTIA, position=(0.0, RADIUS), name="wheel", **given)
    spring = carom.Spring("wheel.pin", tuple(ANCHOR), stiffness=20.0, length=0.3)
    rolls = carom.joints.rolling("wheel", radius=RADIUS)
    return carom.Mechanism([wheel], [rolls], springs=[spring], gravity=(2.0, -9.81), planes=planes)


def rolled(t1, stop=np.inf):
    """Place and speed of the wheel at t1; a wall throws it back with restitution .6 where its centre is at `stop`."""

    def rates(t, y):
        turn = -y[0] / RADIUS
        R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        arm = R @ MARK
        d = ANCHOR - np.array([y[0], RADIUS]) - arm
        moved = np.array([1.0, 0.0]) - np.array([-arm[1], arm[0]]) / RADIUS
        pull = 20.0 * (1 - 0.3 / np.linalg.norm(d)) * d @ moved
        return [y[1], (2.0 * MASS + pull) / (MASS + INERTIA / RADIUS**2)]

    hits = lambda t, y: min(stop, 1e3) - y[0]
    hits.terminal, hits.direction = True, -1
    t, y = 0.0, np.zeros(2)
    while True:
        run = solve_ivp(rates, (t, t1), y, events=hits, **ACCURATE)
        t, y = run.t[-1], run.y[:, -1]
        if run.status == 0:
            return y
        y = np.array([stop, -0.6 * y[1]])


@pytest.mark.slow
def test_a_wheel_on_a_spring_rolls_in_time_stepping():
    sol = carom.simulate(*rolling_wheel(), carom.MoreauMidpoint(), t1=0.8, h=2e-4)
    np.testing.assert_allclose([sol.q[-1][0], sol.v[-1][0]], rolled(0.8), atol=1e-6)
    np.testing.assert_allclose(sol.q[:, 2], -sol.q[:, 0] / RADIUS, atol=1e-6)
    assert np.abs(sol.v[:, 0] + RADIUS * sol.v[:, 2]).max() < 1e-12


@pytest.mark.slow
def test_a_wheel_that_rolls_bounces_off_a_wall_event_by_event_and_in_time_stepping():
    wheel = rolling_wheel([carom.Plane((-1.0, 0.0), offset=-STOP - RADIUS, restitution=0.6)])
    known = rolled(1.0, STOP)
    runs = {
        1e-9: carom.solve(*wheel, t1=1.0, rtol=1e-9, atol=1e-11),
        2e-3: carom.simulate(*wheel, carom.MoreauTheta(), t1=1.0, h=5e-4),  # the impact may lie anywhere in its step
    }
    assert rolled(1.0)[0] > STOP
    for within, sol in runs.items():
        np.testing.assert_allclose([sol.q[-1][0], sol.v[-1][0]], known, atol=within)
        assert np.abs(sol.v[:, 0] + RADIUS * sol.v[:, 2]).max() < 1e-12


@pytest.mark.slow
def test_a_ball_rolls_down_a_slope_in_space_in_time_stepping():
    ball = carom.RigidBody(1.0, 3 * (0.4 * 0.01,), position=(0.0, 0.0, 0.1), name="ball")
    system = carom.Mechanism([ball], [carom.joints.rolling("ball", radius=0.1)], gravity=(1.0, 0.5, -9.0))
    sol = carom.simulate(*system, carom.MoreauMidpoint(), t1=0.5, h=1e-3)
    np.testing.assert_allclose(sol.q[-1][:3], [5 / 14 * 0.25, 5 / 28 * 0.25, 0.1], atol=1e-9)


def test_loops_that_contradict_each_other_are_named():
    rods = [carom.RigidBody.rod(1.0, 1.0, position=(0.5 + i, 0.0), name=name) for i, name in enumerate("ab")]
    joints = [
        carom.joints.revolute("ground", "a.left", at=(0, 0)),
        carom.joints.revolute("a.right", "b.left"),
        carom.joints.distance("a.left", "b.right", length=1.5, name="short"),
        carom.joints.distance("a.left", "b.right", length=1.7, name="long"),
    ]
    with pytest.raises(ValueError, match=r"cannot be assembled.*'(short|long)'.*by 0\.\d+.*'(short|long)'.*by 0\.\d+"):
        carom.Mechanism(rods, joints)


def test_inertias_that_no_body_has_are_refused_and_all_others_taken():
    rng = np.random.default_rng(5)
    for _ in range(200):
        points = rng.normal(size=(6, 3)) * 10.0 ** rng.uniform(-3, 3)
        J = np.sum(points**2) * np.eye(3) - points.T @ points
        carom.RigidBody(1.0, J)
        carom.RigidBody(1.0, np.linalg.eigvalsh(J))
        values, axes = np.linalg.eigh(J)
        wrong = axes @ np.diag([values[0], values[1], (values[0] + values[1]) * rng.uniform(1.01, 3)]) @ axes.T
        with pytest.raises(ValueError, match="none may exceed the sum of the other two"):
            carom.RigidBody(1.0, 0.5 * (wrong + wrong.T))
