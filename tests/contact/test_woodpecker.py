"""The woodpecker toy [Studer2008 sec. 10.4]."""

import warnings

import numpy as np
import pytest

import carom
from carom.papers.woodpecker_cycle import limit_cycle

TABLE_VII = [
    (1, "sticks"),
    (1, "slips"),
    (1, "opens"),
    (2, "closes"),
    (2, "opens"),
    (0, "closes"),
    (0, "opens"),
    (2, "closes"),
    (2, "opens"),
    (1, "closes"),
    (1, "opens"),
    (1, "closes"),
]


def test_incidents_come_in_the_order_of_table_vii(toy):
    found = [(e.contact, e.kind) for e in toy.events if e.kind != "reverses"]
    assert found == TABLE_VII


def test_angle_of_the_bird_after_150_ms(toy):
    assert toy.q[-1, 2] == pytest.approx(-0.31022235586, abs=1e-6)


def test_contact_laws_hold_to_rounding(toy):
    assert toy.account.worst["residual"] < 1e-12
    assert toy.account.worst["penetration"] < 1e-6
    normal, tangential = toy.impulse[:, :3], toy.impulse[:, 3:]
    assert normal.min() >= 0
    assert (np.abs(tangential) <= 0.3 * normal + 1e-15).all()


def test_friction_and_impacts_only_take_energy(toy):
    assert toy.work.sum(axis=1).max() < 1e-12
    lost = toy.account.energy[0] - toy.account.energy[-1]
    assert -toy.work.sum() == pytest.approx(lost, rel=1e-5)


def test_start_with_a_closed_contact_warns_of_its_penetration():
    with pytest.warns(UserWarning, match="contact lower sleeve starts with penetration"):
        carom.check(*carom.models.woodpecker())


@pytest.mark.slow
def test_limit_cycle_period_drop_and_multiplier():
    cycle = limit_cycle()
    assert cycle.period == pytest.approx(0.1459760651, abs=1e-7)
    assert cycle.drop == pytest.approx(0.0194453793, abs=1e-7)
    assert cycle.multiplier == pytest.approx(-0.839156, abs=1e-3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:contact lower sleeve starts")
@pytest.mark.parametrize(
    "solver",
    [pytest.param(carom.PSOR(), id="PSOR"), pytest.param(carom.PJOR(), id="PJOR")],
)
def test_relaxation_solvers_give_the_same_motion_as_newton(solver):
    toy, state = carom.models.woodpecker()
    newton = carom.simulate(toy, state, carom.MoreauMidpoint(), t1=0.15, h=1e-4)
    relaxed = carom.simulate(toy, state, carom.MoreauMidpoint(solver), t1=0.15, h=1e-4)
    np.testing.assert_allclose(relaxed.q, newton.q, atol=1e-9)
    assert (relaxed.mode == newton.mode).all()


@pytest.mark.slow
def test_toys_in_a_batch_move_like_single_ones():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        systems, states = zip(*(carom.models.woodpecker(friction=mu) for mu in (0.25, 0.3)))
        batch = carom.simulate_batch(systems, states, carom.MoreauMidpoint(), t1=0.05, h=1e-4)
        single = carom.simulate(systems[1], states[1], carom.MoreauMidpoint(), t1=0.05, h=1e-4)
    np.testing.assert_allclose(batch[1].q, single.q, atol=1e-12)
