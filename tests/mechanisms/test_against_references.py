"""Mechanisms against systems written by hand, SciPy, and what must be kept."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import carom


@pytest.fixture(scope="module")
def double_pendulum():
    upper = carom.RigidBody.rod(1.3, 1.0, position=(0.5, 0.0), name="upper")
    lower = carom.RigidBody.rod(0.4, 0.7, position=(1.35, 0.0), name="lower")
    joints = [
        carom.joints.revolute("ground", "upper.left", at=(0, 0), name="anchor"),
        carom.joints.revolute("upper.right", "lower.left", name="elbow"),
    ]
    return carom.Mechanism([upper, lower], joints, gravity=9.81)


def _by_hand(q):
    along = lambda angle: jnp.array([jnp.cos(angle), jnp.sin(angle)])
    first = q[:2] - 0.5 * along(q[2])
    return jnp.concatenate([first, q[3:5] - 0.35 * along(q[5]) - q[:2] - 0.5 * along(q[2])])


def _system_by_hand():
    mass = np.array([1.3, 1.3, 1.3 / 12, 0.4, 0.4, 0.4 * 0.49 / 12])
    return carom.System(mass, lambda q: 9.81 * (1.3 * q[1] + 0.4 * q[4]), constraints=_by_hand)


def test_the_terms_of_a_mechanism_are_those_written_by_hand(double_pendulum):
    @eqx.filter_jit
    def terms(system, q):
        return system.constraint(0.0, q), jax.jacfwd(lambda x: system.constraint(0.0, x))(q), system.force(0.0, q, q)

    q = np.random.default_rng(1).normal(size=6)
    np.testing.assert_allclose(double_pendulum.system.mass, _system_by_hand().mass, rtol=1e-15)
    pairs = zip(*(terms(system, q) for system in (double_pendulum.system, _system_by_hand())))
    for one, other in pairs:
        np.testing.assert_allclose(one, other, atol=1e-15)


@pytest.mark.slow
def test_a_mechanism_moves_as_the_system_written_by_hand_to_rounding(double_pendulum):
    system = _system_by_hand()
    method = carom.Spark(2)
    one = carom.simulate(*double_pendulum, method, t1=0.5, h=0.01)
    other = carom.simulate(system, double_pendulum.state, method, t1=0.5, h=0.01)
    np.testing.assert_allclose(one.q, other.q, atol=1e-13)
    np.testing.assert_allclose(one.v, other.v, atol=1e-12)
    assert one.account.worst["drift"] < 1e-14


def _euler(t, y, J):
    p, w = y[:4], y[4:]
    rate = 0.5 * np.concatenate([[-p[1:] @ w], p[0] * w + np.cross(p[1:], w)])
    return np.concatenate([rate, np.cross(J * w, w) / J])


def test_a_free_top_follows_eulers_equations_and_keeps_energy_and_its_quaternion():
    system, state = carom.models.free_top(spin=(0.1, 2.0, 0.3))
    sol = carom.simulate(system, state, carom.IRK(carom.gauss(3)), t1=10.0, h=0.02)
    start = np.concatenate([state.q[3:], state.v[3:]])
    J = np.array([1.0, 2.0, 3.0])
    exact = solve_ivp(_euler, (0, 10), start, args=(J,), method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    np.testing.assert_allclose(sol.q[-1, 3:], exact[:4], atol=1e-8)
    np.testing.assert_allclose(sol.v[-1, 3:], exact[4:], atol=1e-8)
    assert np.abs(np.linalg.norm(sol.q[:, 3:], axis=1) - 1).max() < 1e-15
    energy = sol.v[:, 3:] ** 2 @ J
    assert np.abs(energy / energy[0] - 1).max() < 1e-13


@pytest.mark.slow
def test_explicit_steps_keep_the_quaternion_too():
    system, state = carom.models.free_top()
    sol = carom.simulate(system, state, carom.ExplicitRK(carom.explicit(4)), t1=5.0, h=0.1)
    assert np.abs(np.linalg.norm(sol.q[:, 3:], axis=1) - 1).max() < 1e-15


def test_corners_of_a_box_slide_and_approach_as_differences_say():
    box = carom.RigidBody.box(1.0, (1.0, 0.6, 0.4), position=(0.1, 0.2, 0.9), rotation=(0.4, -0.3, 0.2), name="box")
    plate = carom.RigidBody(1.0, (1, 1, 1), rotation=(0.1, 0.2, 0.0), name="plate")
    plane = carom.Plane((0, 0, 2.0), -0.2, of="plate", friction=0.4, restitution=0.1)
    system, state = carom.Mechanism([box, plate], planes=[plane])
    v = np.random.default_rng(0).normal(size=12)
    contacts, t, h = system.contact_groups[0], jnp.zeros(()), 1e-6
    rate = system.rate(t, state.q, v)
    measured = jax.jit(lambda q: contacts.gaps(system.given, t, q))
    gaps = [np.asarray(measured(state.q + s * h * rate)) for s in (-1, 0, 1)]
    slope = jax.jit(lambda q: contacts.gap_rates(system.given, t, q, rate))(state.q)
    np.testing.assert_allclose(slope, (gaps[2] - gaps[0]) / (2 * h), atol=1e-8)
    place, turn, _ = (np.asarray(x) for x in carom.Mechanism([box, plate]).frames(state))
    n = turn[1, :, 2]
    arm = box.corners @ turn[0].T
    foot = place[0] + arm - place[1]
    np.testing.assert_allclose(gaps[1], foot @ n + 0.1, atol=1e-14)
    speed = v[:3] + np.cross(turn[0] @ v[3:6], arm) - v[6:9] - np.cross(turn[1] @ v[9:], foot)
    slip = jax.jit(lambda q, u: contacts.slip_rates(system.given, t, q, rate, u))(state.q, jnp.asarray(v))
    across = np.linalg.norm(speed - (speed @ n)[:, None] * n, axis=1)
    np.testing.assert_allclose(np.linalg.norm(slip, axis=1), across, atol=1e-14)


def test_springs_dampers_motors_and_limits_act_on_the_coordinate_of_a_joint():
    arm = carom.RigidBody(2.0, (0.1, 0.2, 0.3), position=(0.5, 0, 0), rotation=(0.2, 0.1, 0.4), name="arm")
    drive = {"stiffness": 3.0, "rest": 0.1, "damping": 0.7, "motor": lambda t, x, rate: 5.0 + t + 0 * x * rate}
    hinge = carom.joints.revolute("ground", "arm", at=(0, 0, 0), axis=(0, 0, 1), limits=(-0.5, 1.0), **drive)
    strut = carom.Spring("arm", (0, 0, 2.0), stiffness=10.0, length=0.5, damping=2.0)
    mechanism = carom.Mechanism([arm], [hinge], springs=[strut])
    system, state = mechanism
    t, q, turn = jnp.asarray(2.0), state.q, mechanism.frames(state).turn[0]
    spin = turn.T @ np.array([0, 0, 1.5])
    v = jnp.asarray(np.concatenate([np.cross([0, 0, 1.5], [0.5, 0, 0]), spin]))
    np.testing.assert_allclose(jax.jit(lambda q: system.gaps(t, q))(q), [0.5, 1.0], atol=1e-15)
    length = np.hypot(0.5, 2.0)
    wanted = {"joint springs": 0.5 * 3.0 * 0.1**2, "springs": 5.0 * (length - 0.5) ** 2}
    energies = jax.jit(lambda q: {name: system.part_energy(name, t, q) for name in wanted})(q)
    assert energies == pytest.approx(wanted)
    names = ("joint damping", "motors", "dampers")
    turning = jax.jit(lambda v: {name: v @ system.named_force(name, t, q, v) / 1.5 for name in names})(v)
    assert turning == pytest.approx({"joint damping": -0.7 * 1.5, "motors": 7.0, "dampers": 0.0}, abs=1e-12)


def test_friction_in_joints_is_limited_by_the_force_they_carry():
    arm = carom.RigidBody.rod(1.0, 1.0, position=(0.5, 0.0), name="arm")
    block = carom.RigidBody(2.0, 0.1, position=(2.0, 0.0), name="block")
    hinge = carom.joints.revolute("ground", "arm.left", at=(0, 0), friction=0.02)
    guide = carom.joints.prismatic("ground", "block", at=(2, 0), axis=(1, 0), friction=0.3)
    system, state = carom.Mechanism([arm, block], [hinge, guide]).assemble()
    (elements,) = system.friction_groups
    lam, v = jnp.asarray([3.0, 4.0, -7.0, 100.0]), jnp.asarray([0.0, 0.6, 1.2, 5.0, 0.0, 0.0])
    found = jax.jit(
        lambda q: (elements.limits(system.given, 0.0, q, v, lam, 2), elements.slip_rates(system.given, 0.0, q, v, v))
    )
    limits, slip = found(state.q)
    np.testing.assert_allclose(limits[:, 1], [0.02 * 5.0, 0.3 * 7.0])
    np.testing.assert_allclose(slip[:, 0], [1.2, 5.0])


@pytest.mark.slow
def test_every_model_of_bodies_starts_where_its_joints_hold():
    for build in (carom.models.bricard, carom.models.rolling_disk, carom.models.dominoes, carom.models.n_four_bar):
        system, state = build()
        assert np.abs(system.constraint(0.0, state.q)).max() < 1e-14


ALONG = np.concatenate([np.eye(3), -np.eye(3)])
CORNERS = np.cumsum(np.vstack([np.zeros(3), ALONG]), axis=0)
AXES = np.array([np.cross(ALONG[i], ALONG[(i + 1) % 6]) for i in range(6)])


def _corners_and_axes(q):
    """Corners 0 to 5 and the axes of the hinges at corners 1 to 6 of Bricard's mechanism, from its free ones."""
    x = q.reshape(8, 3)
    return jnp.concatenate([CORNERS[:2], x[:4]]), jnp.concatenate([AXES[:1], x[4:], AXES[5:]])


def _lengths_and_angles(q):
    """Of five rods the length and the angles of both hinges, to the rod and to each other; lengths of four axes."""
    P, U = _corners_and_axes(q)
    rods = [(P[(i + 1) % 6] - P[i], U[i - 1], U[i]) for i in range(1, 6)]
    return jnp.stack([x for d, a, b in rods for x in (d @ d - 1, d @ a, d @ b, a @ b)] + [u @ u - 1 for u in U[1:5]])


def _mass_of_rods(q):
    """Thin rods between corners, their axial inertia by a hinge axis; what constraints hold may have any mass."""
    P, U = _corners_and_axes(q)
    held = jax.jacfwd(_lengths_and_angles)(q)
    M = held.T @ held
    for i in range(1, 6):
        for a, b, part in ((i, i, 1 / 3), (i + 1, i + 1, 1 / 3), (i, i + 1, 1 / 6), (i + 1, i, 1 / 6)):
            if 2 <= a < 6 and 2 <= b < 6:
                M = M.at[3 * a - 6 : 3 * a - 3, 3 * b - 6 : 3 * b - 3].add(part * np.eye(3))
        k = min(i, 4)
        turning = jnp.zeros(24).at[9 + 3 * k : 12 + 3 * k].set(jnp.cross(P[(i + 1) % 6] - P[i], U[k]))
        M = M + 1e-3 * jnp.outer(turning, turning)
    return M


@pytest.mark.slow
def test_bricards_mechanism_moves_as_written_by_hand_in_corners_and_axes():
    def middles(q):
        P = _corners_and_axes(q)[0]
        return jnp.stack([(P[i] + P[(i + 1) % 6]) / 2 for i in range(1, 6)])

    system = carom.System(_mass_of_rods, lambda q: 9.81 * jnp.sum(middles(q)[:, 1]), constraints=_lengths_and_angles)
    state = carom.State(np.concatenate([CORNERS[2:6], AXES[1:5]]).ravel(), np.zeros(24))
    rows = np.asarray(jax.jacfwd(_lengths_and_angles)(state.q))
    assert (len(rows), np.linalg.matrix_rank(rows, tol=1e-9)) == (24, 23)
    by_hand = carom.solve(system, state, 1.0, rtol=1e-9)
    assembled = carom.solve(*carom.models.bricard(), 1.0, rtol=1e-9)
    places = assembled.q[-1].reshape(5, 7)[:, :3]
    np.testing.assert_allclose(middles(jnp.asarray(by_hand.q[-1])), places, atol=1e-8)
