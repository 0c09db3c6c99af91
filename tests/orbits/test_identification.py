"""Parameters from measured motion: exact data, known noise, intervals that cover."""

import numpy as np
import pytest

import carom
from tests.orbits.systems import CAPTURING, NUMBERS, SMOOTH, free, oscillator

TIMES = np.linspace(0.1, 12.0, 60)
TRUE = {"stiffness": 2.0, "damping": 0.3}
GUESS = {"stiffness": 2.3, "damping": 0.2}


def build(stiffness, damping):
    return oscillator(**NUMBERS | {"stiffness": stiffness, "damping": damping})


def fitted(data, build=build, guess=GUESS, **more):
    return carom.identify(build, guess, data, SMOOTH, times=TIMES, h=0.05, **more)


def test_exact_data_give_the_exact_parameters():
    found = fitted(free(TIMES, **NUMBERS))
    assert found.parameters == pytest.approx(TRUE, abs=2e-6)
    assert np.abs(found.residuals).max() < 1e-6


def test_intervals_are_those_of_linear_regression_at_the_answer():
    noise = 0.01 * np.random.default_rng(0).normal(size=TIMES.shape)
    data = free(TIMES, **NUMBERS) + noise
    found = fitted(data, sigma=0.01)

    def shown(**p):
        return free(TIMES, **NUMBERS | found.parameters | p)

    best = found.parameters
    slopes = [(shown(**{k: best[k] + 1e-5}) - shown(**{k: best[k] - 1e-5})) / 2e-5 for k in sorted(best)]
    C = 0.01**2 * np.linalg.inv(np.array(slopes) @ np.array(slopes).T)
    np.testing.assert_allclose(found.covariance, C, rtol=1e-4)
    low, high = found.intervals["damping"]
    assert high - low == pytest.approx(2 * 1.959964 * np.sqrt(C[0, 0]), rel=1e-4)
    assert found.names == ("damping", "stiffness")


def test_rows_that_were_not_measured_do_not_count():
    data = free(TIMES, **NUMBERS)
    data[::3] = np.nan
    found = fitted(data)
    assert found.parameters == pytest.approx(TRUE, abs=2e-6)
    assert np.isnan(found.residuals[::3]).all()


@pytest.mark.parametrize(
    ("data", "more", "said"),
    [
        (np.zeros((60, 2)), {}, r"data must have a row per time .* \(60, 1\), got \(60, 2\)"),
        (np.full(60, np.nan), {}, "data must have more numbers than there are parameters, 2, got 0"),
        (np.zeros(60), {"sigma": -1.0}, "sigma must be positive"),
        (np.zeros(60), {"bounds": {"mass": (0, 1)}}, "bounds: mass is no parameter"),
        (np.zeros(60), {"bounds": {"damping": (0.5, 1.0)}}, "the first guess of damping must lie inside"),
        (np.zeros(60), {"level": 1.5}, "level must lie between 0 and 1"),
    ],
)
def test_bad_questions_are_refused_by_name(data, more, said):
    with pytest.raises(ValueError, match=said):
        fitted(data, **more)


def test_whole_numbers_and_missing_parameters_are_refused():
    with pytest.raises(TypeError, match="parameters: damping must be a real number such as 1.0, got 1"):
        fitted(np.zeros(60), guess={"stiffness": 2.0, "damping": 1})
    with pytest.raises(TypeError, match="parameters must be a dict of numbers by name"):
        fitted(np.zeros(60), guess={})
    with pytest.raises(TypeError, match=r"build must return \(system, state\)"):
        fitted(np.zeros(60), build=lambda stiffness, damping: build(stiffness, damping)[0])


@pytest.mark.slow
def test_intervals_of_a_bouncing_ball_cover_the_truth_as_often_as_they_say():
    true = {"height": 1.0, "gravity": 9.81, "restitution": 0.7}
    times = np.linspace(0.02, 2.0, 60)
    clean = carom.simulate(
        *carom.models.bouncing_ball(**true), CAPTURING, t1=2.0, stepping=carom.Adaptive(1e-9, 1e-11), save_at=times
    ).q
    draws, stepping, covered = np.random.default_rng(0), carom.Adaptive(1e-8, 1e-10), []
    guess = {"height": 1.05, "gravity": 9.6, "restitution": 0.72}
    for _ in range(200):
        data = clean + 0.01 * draws.normal(size=clean.shape)
        more = {"times": times, "stepping": stepping, "max_steps": 512}
        found = carom.identify(carom.models.bouncing_ball, guess, data, CAPTURING, **more)
        covered.append([found.intervals[name][0] <= x <= found.intervals[name][1] for name, x in true.items()])
    assert np.all(np.abs(np.mean(covered, axis=0) - 0.94) <= 0.04)
