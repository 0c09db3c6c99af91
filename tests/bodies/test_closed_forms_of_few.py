"""Four disks between two planes, and one in a drum, on motions that are known exactly."""

import numpy as np
import pytest

import carom
from carom.pairs import Capacity
from carom.systems import first_lists

METHOD = carom.MoreauMidpoint(solver=carom.AcceleratedGaussSeidel(tol=1e-12, max_iter=10_000))
FOUR = carom.Bodies(4, dof=3)


@pytest.fixture(autouse=True)
def _one_program_for_all(monkeypatch):
    """Lists have room for whatever these tests bring."""
    monkeypatch.setattr(first_lists, "tight", lambda pairs: Capacity(60, 20, (4,) * 4))


def weight(q, p):
    return p * q[1]


def four(q, v, steps, h, gravity=0.0, angle=0.0, **laws):
    """Disks of radius and mass 1 between planes that rise to both sides by an angle."""
    n = np.array([np.sin(angle), np.cos(angle)])
    planes = [carom.shapes.half_plane(n * side) for side in ([1, 1], [-1, 1])]
    contacts = [
        carom.Contacts.between(FOUR, carom.shapes.disk, data=1.0, search=carom.CellList(2.0, 0.3), **laws),
        *(carom.Contacts.each(FOUR, plane, data=1.0, **laws) for plane in planes),
    ]
    system = carom.System(FOUR.mass(1.0, 1.0, 0.5), FOUR.each(weight), contacts=contacts, params=gravity)
    state = carom.State(np.asarray(q, float).ravel(), np.asarray(v, float).ravel())
    return carom.simulate(system, state, METHOD, t1=steps * h, h=h)


@pytest.mark.slow
def test_of_a_cradle_of_disks_the_last_one_leaves_with_the_speed_of_the_first():
    q = [(2.1 * i, 5.0, 0.0) for i in range(4)]
    sol = four(q, [(1.0, 0, 0), *[(0.0, 0, 0)] * 3], steps=100, h=0.01, restitution=1.0)
    np.testing.assert_allclose(sol.v[-1].reshape(4, 3)[:, 0], [0.0, 0.0, 0.0, 1.0], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("bounce", [1.0, 0.4])
def test_a_break_shot_into_two_disks_that_touch(bounce):
    """P = (1 + e) cos 30 / (1 + 2 cos^2 30) on each; an elastic cue ball comes back with a fifth of its speed."""
    c = np.sqrt(0.75)
    q = [(-1e-9 - 2 * c, 5.0, 0), (0.0, 6.0, 0), (0.0, 4.0, 0), (50.0, 5.0, 0)]
    sol = four(q, [(1.0, 0, 0), *[(0.0, 0, 0)] * 3], steps=1, h=1e-8, restitution=bounce)
    P = (1 + bounce) * c / 2.5
    v = [(1 - 2 * P * c, 0, 0), (P * c, P / 2, 0), (P * c, -P / 2, 0), (0, 0, 0)]
    np.testing.assert_allclose(sol.v[-1].reshape(4, 3), v, atol=1e-8)
    assert bounce < 1 or v[0][0] == pytest.approx(-0.2)


@pytest.mark.slow
def test_a_disk_that_spins_in_a_wedge_slows_down_by_friction_with_both_sides():
    """Both normal forces together are m g / ((1 + mu^2) cos a), and friction is mu of them."""
    mu, angle, g, h = 0.3, 0.6, 9.81, 1e-3
    above = [(50.0 * i, 50.0 * i / np.tan(0.3), 0) for i in (1, 2, 3)]  # the others fall far away
    q = [(0.0, 1 / np.cos(angle) + 1e-12, 0.0), *above]
    sol = four(q, [(0, 0, 9.0), *[(0, 0, 0)] * 3], steps=200, h=h, gravity=g, angle=angle, friction=mu)
    slower = mu * g / ((1 + mu**2) * np.cos(angle)) / 0.5
    np.testing.assert_allclose(np.diff(sol.v[2:, 2]) / h, -slower, rtol=1e-6)
    np.testing.assert_allclose(sol.q[-1, :2], q[0][:2], atol=2 * g * h**2)


@pytest.mark.slow
def test_a_disk_in_a_drum_slides_until_it_rolls_and_then_turns_with_it():
    """Without gravity N = m v^2 / (R - r): v = v0 / (1 + mu v0 t / (R - r)) while it slides, 2/3 v0 when it rolls."""
    one, R, mu, h = carom.Bodies(1, dof=3), 5.0, 0.5, 2e-3

    def run(speed, v, t1):
        contacts = [
            carom.Contacts.each(one, carom.shapes.drum(R, speed), data=1.0, friction=mu),
            carom.Contacts.between(one, carom.shapes.disk, data=1.0, search=carom.Fixed(np.zeros((0, 2), int))),
        ]
        system = carom.System(one.mass(1.0, 1.0, 0.5), contacts=contacts)
        return carom.simulate(system, carom.State([0.0, 1.0 - R, 0.0], v), METHOD, t1=t1, h=h)

    sol = run(0.0, [1.5, 0.0, 0.0], 8.0)
    v, slides = np.hypot(*sol.v[:, :2].T), (R - 1) / (2 * mu * 1.5)
    early = sol.t < 0.95 * slides
    np.testing.assert_allclose(v[early], 1.5 / (1 + mu * 1.5 * sol.t[early] / (R - 1)), rtol=5e-3)
    late = sol.t > 1.05 * slides
    np.testing.assert_allclose(v[late][0], 1.0, rtol=5e-3)
    np.testing.assert_allclose(v[late] + sol.v[late, 2], 0.0, atol=5e-3)
    turning = run(0.5, [0.5 * (R - 1), 0.0, 0.5], 8.0)
    np.testing.assert_allclose(np.hypot(*turning.v[:, :2].T), 0.5 * (R - 1), rtol=2e-3)
    np.testing.assert_allclose(turning.v[:, 2], 0.5, atol=5e-3)
