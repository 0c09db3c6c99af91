"""Step control by halving [Acary2012 sec. 4]."""

import pytest

import carom
from carom.measures import grid_norm
from carom.models import exact

TOLERANCES = [1e-4, 1e-6, 1e-7]


@pytest.fixture(scope="module")
def runs():
    steppings = [carom.StepHalving(atol, 0.0, first=0.05) for atol in TOLERANCES]
    model = carom.models.bouncing_ball()
    return carom.simulate_batch(*model, carom.MoreauTheta(0.5, 1.0), t1=5.0, stepping=steppings)


def error(run):
    return grid_norm(run.q[:, 0] - exact.bouncing_ball(run.t)[0], run.h, 1)


def test_the_ball_is_computed_to_1e_5_with_under_2000_evaluations(runs):
    good = [run for run in runs if error(run) <= 1e-5]
    assert min(run.stats["evaluations"] for run in good) < 2000


def test_rejected_evaluations_are_counted(runs):
    for run in runs:
        assert run.stats["evaluations"] == 3 * (run.stats["accepted"] + run.stats["rejected"])
        assert run.stats["rejected"] > 0


def test_a_smaller_tolerance_gives_a_smaller_error(runs):
    assert error(runs[2]) < 0.1 * error(runs[0])


def test_no_accepted_step_ends_far_under_the_surface_on_its_way_down(runs):
    for atol, run in zip(TOLERANCES, runs):
        falling = run.v[1:, 0] < 0
        fresh = run.q[:-1, 0] > 0
        assert (run.q[1:, 0][falling & fresh] > -atol).all()


@pytest.mark.slow
def test_inspecting_events_needs_no_more_evaluations(runs):
    model = carom.models.bouncing_ball()
    stepping = carom.StepHalving(1e-4, 0.0, inspect=True, first=0.05)
    run = carom.simulate(*model, carom.MoreauTheta(0.5, 1.0), t1=5.0, stepping=stepping)
    assert run.stats["evaluations"] <= 1.05 * runs[0].stats["evaluations"]


@pytest.mark.parametrize(
    ("options", "words"),
    [({"atol": 0.0}, "atol must be positive"), ({"atol": 1e-3, "rtol": -1.0}, "rtol must be zero or positive")],
)
def test_a_tolerance_of_the_wrong_sign_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        carom.StepHalving(**options)


def test_factors_that_cannot_change_the_step_are_refused():
    with pytest.raises(ValueError, match="factors must be"):
        carom.StepHalving(1e-3, factors=(1.5, 5.0, 1.0))
