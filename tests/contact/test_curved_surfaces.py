"""Contacts along curved surfaces: no chattering, no drift, and detachment where the closed form says."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import carom
from carom.measures import observed_order
from carom.systems.contact_rows import is_straight

START = 0.3
MOVED = carom.models.mass_on_sphere(angle=START)
METHOD = carom.Extrapolated(carom.MoreauMidpoint(), max_order=6, atol=1e-11, rtol=0.0)


@pytest.fixture(scope="module")
def slid():
    return carom.simulate(*MOVED, METHOD, t1=1.0, stepping=carom.Switching(1e-9, 0.02))


def test_a_mass_leaves_the_sphere_once_and_where_the_closed_form_says(slid):
    opens = slid.events[(slid.events.kind == "opens") & (slid.events.time > 1e-6)]  # it starts just above the surface
    assert len(opens) == 1
    row = np.searchsorted(slid.t, opens.time[0])
    height = slid.q[row, 1] / np.hypot(*slid.q[row])
    assert height == pytest.approx(2 / 3 * np.cos(START), abs=1e-7)


def test_switching_takes_large_steps_along_the_sphere(slid):
    assert slid.stats["accepted"] < 300


@pytest.mark.slow
def test_constant_steps_along_a_sphere_have_order_two_in_position_and_velocity():
    sizes = 0.01 / 2 ** np.arange(4)
    pendulum = lambda _, y: [y[1], 9.81 * np.sin(y[0])]  # noqa: E731
    angle, turn = solve_ivp(pendulum, (0, 0.5), [START, 0], rtol=1e-12, atol=1e-12).y[:, -1]
    exact = np.array([np.sin(angle), np.cos(angle), turn * np.cos(angle), -turn * np.sin(angle)])
    runs = carom.simulate_batch(*MOVED, carom.MoreauMidpoint(), t1=0.5, h=list(sizes))
    errors = [np.abs(np.concatenate([sol.q[-1], sol.v[-1]]) - exact).max() for sol in runs]
    assert observed_order(sizes, errors) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("restitution", [0.4, *(pytest.param(e, marks=pytest.mark.slow) for e in (0.0, 1.0))])
def test_a_ball_pressed_into_a_bowl_neither_bounces_nor_opens(restitution):
    bowl = carom.System(
        1.0,
        lambda q: 9.81 * q[1],
        contacts=carom.Contacts(lambda q: 1.0 - jnp.hypot(q[0], q[1])[None], restitution=restitution),
    )
    start = carom.State([np.sin(1.0), -np.cos(1.0)], [0.0, 0.0])
    sol = carom.simulate(bowl, start, carom.MoreauMidpoint(), t1=3.0, h=1e-3)
    assert np.all(sol.mode[2:, 0] == 0)
    assert np.abs(np.hypot(*sol.q.T) - 1.0).max() < 1e-5
    assert np.ptp(sol.account.energy) < 1e-4


@pytest.mark.slow
def test_a_mass_that_rides_on_another_one_in_a_bowl_stays_closed_though_it_falls_no_faster_alone():
    stacked = carom.System(
        1.0,
        lambda q: 9.81 * (q[1] + q[3]) + 500.0 * (q[2] - q[0]) ** 2,
        contacts=carom.Contacts(
            lambda q: jnp.stack([1.0 - jnp.hypot(q[0], q[1]), jnp.hypot(q[2] - q[0], q[3] - q[1]) - 0.1]),
            restitution=0.5,
        ),
    )
    start = carom.State([np.sin(0.2), -np.cos(0.2), np.sin(0.2), 0.1 - np.cos(0.2)], np.zeros(4))
    sol = carom.simulate(stacked, start, carom.MoreauMidpoint(), t1=2.0, h=1e-3)
    assert np.sum(sol.mode[3:] != 0) <= 2, "at an instant without relative velocity no surface turns"
    assert sol.account.worst["penetration"] < 1e-5
    assert np.ptp(sol.account.energy) < 1e-3


def test_surfaces_count_as_straight_only_where_no_direction_can_turn():
    def straight(system, state):
        return is_straight(system, state.t, state.q, state.v)

    assert straight(*carom.models.woodpecker())
    assert straight(*carom.models.bouncing_ball())
    assert not straight(*MOVED)
    assert not straight(*carom.models.slider_crank())
    belt = carom.FrictionElements(lambda t, q, v: v - jnp.sin(t), limit=1.0)
    assert not straight(carom.System([1.0], lambda q: 0.5 * q[0] ** 2, friction=belt), carom.State([0.0], [0.0]))
