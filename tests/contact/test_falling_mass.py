"""A mass that falls on a table and comes to rest [Studer2008 sec. 10.1]."""

import numpy as np
import pytest

import carom

ACCUMULATION = 0.676950917


def test_accumulation_point_is_the_sum_of_all_flights():
    first = np.sqrt(2 * 0.07 / 9.81)
    assert first * (1 + 2 * 0.7 / 0.3) == pytest.approx(ACCUMULATION, abs=1e-9)


def test_last_switching_point_lies_at_the_accumulation_of_impacts(falling):
    assert 0.6766 <= falling.events.time[-1] <= 0.6770


def test_step_reaches_its_maximum_soon_after_the_accumulation(falling):
    resting = (falling.t > 0.6770) & (falling.t < 0.9)
    assert falling.h[resting].max() == 0.05


def test_mass_lies_still_at_the_end(falling):
    assert abs(falling.v[-1, 0]) < 1e-12


def test_parabolic_flight_needs_order_two(falling):
    assert falling.order[falling.t < 0.1].max() == 2


def test_impacts_close_and_open_in_turn(falling):
    assert list(falling.events.kind[:4]) == ["closes", "opens"] * 2


@pytest.mark.slow
def test_all_substeps_make_the_resting_mass_rattle():
    system, state = carom.models.falling_mass()
    method = carom.Extrapolated(carom.MoreauMidpoint(), 4, 1e-8, 0.0, substeps="all")
    sol = carom.simulate(system, state, method, t1=0.76, stepping=carom.Switching(1e-5, 0.05))
    assert sol.h[sol.t > 0.72][:-1].max() <= 3e-5 * (1 + 1e-9)


@pytest.mark.slow
def test_fading_restitution_lets_even_all_substeps_rest():
    system, state = carom.models.falling_mass()
    method = carom.Extrapolated(carom.MoreauMidpoint(), 4, 1e-8, 0.0, substeps="all", restitution="fading")
    sol = carom.simulate(system, state, method, t1=0.9, stepping=carom.Switching(1e-5, 0.05))
    assert sol.h[sol.t > 0.72].max() == 0.05


def test_energy_lost_is_the_work_of_the_contact(falling):
    lost = falling.account.energy[0] - falling.account.energy[-1]
    assert -falling.work.sum() == pytest.approx(lost, rel=1e-4)
    assert falling.account.worst["energy rise"] < 1e-6
    assert falling.account.worst["penetration"] < 2e-5
