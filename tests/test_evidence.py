"""What a run says about itself: energy from nowhere, contact work of all steps, energies that need not stay."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import carom

SPRING = carom.System(1.0, lambda q: 0.5 * q @ q), carom.State([1.0], [0.0])
FOURTH = carom.ExplicitRK(carom.explicit(4))


def test_an_unstable_run_is_told_from_python_too():
    with pytest.warns(UserWarning, match="do not trust this run: the energy rose from 0.5 to .*take smaller steps"):
        carom.simulate(*SPRING, FOURTH, t1=100.0, h=4.0)


def test_an_unstable_run_is_told_however_few_rows_are_kept():
    moving = carom.State([1.0], [1.0])
    with pytest.warns(UserWarning, match="do not trust this run"):
        carom.simulate(SPRING[0], moving, FOURTH, t1=100.0, h=4.0, save_every=1000)


@pytest.mark.slow
def test_a_pendulum_without_contacts_has_no_contact_work():
    pendulum = carom.System(1.0, lambda q: 9.81 * q[1], constraints=lambda q: q @ q - 1.0)
    sol = carom.simulate(pendulum, carom.State([1.0, 0.0], [0.0, 0.0]), carom.MoreauMidpoint(), t1=0.1, h=0.01)
    assert sol.contact_work == 0.0
    assert "contact work" not in sol.account.worst


def test_a_stable_run_and_a_push_are_no_alarm():
    push = lambda t, q, v: jnp.where(jnp.abs(t - 5.1) < 0.3, 7.0, 0.0) + 0.0 * q + 0.0 * v  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        carom.simulate(*SPRING, FOURTH, t1=100.0, h=0.1)
        carom.solve(carom.System(1.0, forces={"push": push}), carom.State([0.0], [0.0]), 10.0)


@pytest.mark.parametrize(
    "stepping",
    [
        pytest.param(carom.Constant(1e-3), id="constant"),
        pytest.param(carom.Switching(1e-4, 1e-2), id="switching", marks=pytest.mark.slow),
    ],
)
def test_contact_work_counts_the_steps_that_are_not_saved(stepping, tmp_path):
    floor = carom.Contacts(lambda q: q[1:], slip=lambda q: q[:1], friction=0.1)
    block = carom.System(1.0, lambda q: 9.81 * q[1], contacts=floor)
    start = carom.State([0.0, 0.0], [1.0, 0.0])
    every, few = (
        carom.simulate(block, start, carom.MoreauMidpoint(), t1=2.0, stepping=stepping, save_every=n) for n in (1, 100)
    )
    assert np.sum(every.work) == pytest.approx(-0.5, abs=1e-3)
    assert len(few) < 0.1 * len(every) or stepping.longest > 1e-3
    assert few.account.worst["contact work"] == pytest.approx(np.sum(every.work), abs=1e-12)
    few.save(tmp_path / "run.nc")
    assert carom.load(tmp_path / "run.nc", system=block).account.worst == few.account.worst


@pytest.mark.slow
def test_a_constraint_that_moves_brings_energy_in_without_alarm():
    pivot = carom.System(
        1.0, lambda q: 9.81 * q[1], constraints=lambda t, q: (q[0] - 0.3 * jnp.sin(5 * t)) ** 2 + q[1] ** 2 - 1.0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sol = carom.solve(pivot, carom.consistent(pivot, carom.State([0.0, -1.0], [1.5, 0.0])), 2.0)
    assert "energy" not in sol.choice.checks
    assert np.ptp(sol.account.energy) > 1.0


@pytest.mark.slow
def test_solve_takes_the_augmented_form_of_a_singular_mass():
    system = carom.System(
        lambda q: jnp.diag(jnp.array([1.0, 0.0])) + 0.0 * q[0],
        lambda q: 9.81 * q[0],
        constraints=lambda q: q[1] - q[0] ** 2,
    )
    sol = carom.solve(*carom.augmented(system, carom.State([1.0, 1.0], [0.0, 0.0])), 1.0)
    assert sol.q[-1, :2] == pytest.approx([1.0 - 0.5 * 9.81, (1.0 - 0.5 * 9.81) ** 2], rel=1e-6)


@pytest.mark.parametrize("n", [1, 60])
def test_a_second_opinion_looks_at_other_times(n):
    plan = carom.choice.planned(SPRING[0], carom.State(np.ones(n), np.zeros(n)), 10.0, 1e-6, 1e-9)
    assert plan.second().method.tableau != plan.method.tableau
    assert float(plan.second().stepping.h_max) == pytest.approx(10.0 / 173)
    assert float(plan.stepping.h_max) == pytest.approx(0.1)
