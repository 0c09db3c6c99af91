"""Parameters from measured motion: exact data, known noise, intervals that cover, and warnings where they do not."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from tests.orbits.systems import CAPTURING, NUMBERS, SMOOTH, free, oscillator

TIMES = np.linspace(0.1, 12.0, 60)
TRUE = {"stiffness": 2.0, "damping": 0.3}
GUESS = {"stiffness": 2.3, "damping": 0.2}


def build(stiffness, damping):
    return oscillator(**NUMBERS | {"stiffness": stiffness, "damping": damping})


def fitted(data, *, build=build, guess=GUESS, **more):
    return carom.identify(build, guess, data, SMOOTH, times=TIMES, h=0.05, **more)


def ball(spread, draws, sigma, known=True):
    """A fit of heights and velocities of a bouncing ball, and its errors in standard errors."""
    true, times = {"height": 1.0, "gravity": 9.81, "restitution": 0.7}, np.linspace(0.02, 2.0, 60)
    clean = np.stack(carom.models.exact.bouncing_ball(times, **true), axis=1)
    data = clean + sigma * draws.normal(size=clean.shape)
    guess = {name: float(x * (1 + spread * draws.normal())) for name, x in true.items()}
    more = {"times": times, "observe": place_and_velocity, "stepping": carom.Adaptive(1e-8, 1e-10)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = carom.identify(
            carom.models.bouncing_ball, guess, data, CAPTURING, sigma=sigma if known else None, **more
        )
    return found, [(found.parameters[name] - x) / found.errors[name] for name, x in true.items()]


def place_and_velocity(q, v):
    return jnp.concatenate([q, v])


def test_exact_data_give_the_exact_parameters():
    found = fitted(free(TIMES, **NUMBERS))
    assert found.parameters == pytest.approx(TRUE, abs=2e-6)
    assert np.abs(found.residuals).max() < 1e-6
    assert found.counted.all()
    assert found.warnings == ()


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
        (
            np.zeros(60),
            {"bounds": {"damping": 0.5}},
            r"damping must be a pair of numbers, \(lowest, highest\), got 0.5",
        ),
        (np.where(np.arange(60) == 3, np.inf, 0.0), {}, "data must be finite, .* in row 3"),
        (np.zeros(60), {"guess": GUESS | {"damping": np.nan}}, "damping must be finite"),
        (np.zeros((60, 1)), {"observe": lambda q: jnp.outer(q, q)}, r"observe must return a number or a vector"),
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


def test_numbers_that_float_hides_from_derivatives_are_refused_by_the_role_of_the_function():
    with pytest.raises(TypeError, match="build: use jax.numpy .* no derivative sees"):
        fitted(np.zeros(60), build=lambda stiffness, damping: build(float(stiffness), damping))
    with pytest.raises(TypeError, match="observe: use jax.numpy"):
        fitted(np.zeros(60), observe=lambda q: float(q[0]))


def test_data_that_no_parameters_explain_are_told_by_chi2_where_the_noise_is_known():
    data = free(TIMES, **NUMBERS) + 0.01 * np.random.default_rng(0).normal(size=TIMES.shape)
    assert fitted(data, sigma=0.01).warnings == ()
    with pytest.warns(UserWarning, match=r"does not pass through the data: chi2 per degree of freedom is \d+"):
        fitted(data, sigma=0.004)


def test_a_row_that_stands_far_out_is_named():
    data = free(TIMES, **NUMBERS) + 0.01 * np.random.default_rng(0).normal(size=TIMES.shape)
    data[17] += 0.2
    with pytest.warns(UserWarning, match=r"row 17 is .* standard deviations of the others away"):
        found = fitted(data)
    assert found.counted.all()


def test_an_answer_at_a_bound_is_named():
    data = free(TIMES, **NUMBERS) + 0.01 * np.random.default_rng(0).normal(size=TIMES.shape)
    with pytest.warns(UserWarning, match="damping lies at its bound, 0.25"):
        assert len(fitted(data, bounds={"damping": (0.1, 0.25)}).warnings) == 1
    assert fitted(data, bounds={"damping": (0.1, 0.5)}).warnings == ()


def test_parameters_that_do_not_matter_are_named_even_alone():
    data = free(TIMES, **NUMBERS) + 0.01 * np.random.default_rng(0).normal(size=TIMES.shape)
    for guess in ({"unused": 1.0}, {"unused": 1.0, "damping": 0.2}):
        with pytest.warns(UserWarning, match="do not determine 'unused': their"):
            found = fitted(data, build=lambda damping=0.3, unused=0.0: build(2.0, damping), guess=guess)
        assert np.isinf(found.errors["unused"])
    assert np.isfinite(found.errors["damping"])


@pytest.mark.slow
@pytest.mark.parametrize("more", [{"h": 0.2}, {"stepping": carom.Adaptive(1e-6, 1e-8)}], ids=["constant", "adaptive"])
def test_parameters_that_only_truncation_tells_apart_are_named(more):
    """The energy of a pendulum does not say where on its orbit it began."""

    def pendulum(angle, rate):
        return carom.System(1.0, lambda q: -jnp.cos(q[0])), carom.State(angle[None], rate[None])

    def energy(q, v):
        return 0.5 * v @ v - jnp.cos(q[0])

    times = np.linspace(0.0, 20.0, 40)
    data = 0.32 - np.cos(0.5) + 0.01 * np.random.default_rng(0).normal(size=40)
    with pytest.warns(UserWarning, match="do not determine 'angle', 'rate'"):
        carom.identify(pendulum, {"angle": 0.6, "rate": 0.7}, data, SMOOTH, times=times, observe=energy, **more)


def test_readings_that_jump_give_the_parameters_from_a_guess_that_puts_jumps_between_other_rows():
    def switched(q):
        return q + 5.0 * (q > 0.1) + 5.0 * (q > -0.15)

    noise = 0.02 * np.random.default_rng(1).normal(size=TIMES.shape)
    data = switched(free(TIMES, **NUMBERS)) + noise
    found = fitted(data, guess={"stiffness": 1.7, "damping": 0.4}, observe=switched, sigma=0.02)
    assert all(abs(found.parameters[name] - x) < 3 * found.errors[name] for name, x in TRUE.items())
    assert found.warnings == ()


@pytest.mark.slow
@pytest.mark.parametrize(("spread", "sigma"), [(0.03, 0.02), (0.1, 0.02), (0.05, 0.3)])
def test_fits_of_velocities_that_jump_are_right_or_warn(spread, sigma):
    fits = [ball(spread, np.random.default_rng(i), sigma) for i in range(20)]
    right = np.array([np.abs(errors).max() < 6 for _, errors in fits])
    assert all(good or found.warnings for good, (found, _) in zip(right, fits))
    assert right.sum() >= 18
    assert not any(found.warnings for good, (found, _) in zip(right, fits) if good)
    assert np.sqrt(np.mean(np.array([e for good, (_, e) in zip(right, fits) if good]) ** 2)) < 1.5


@pytest.mark.slow
def test_fits_of_velocities_that_jump_are_right_where_the_noise_is_not_known():
    assert all(np.abs(ball(0.1, np.random.default_rng(i), 0.02, known=False)[1]).max() < 6 for i in range(20))


@pytest.mark.slow
def test_a_row_within_the_error_of_an_impact_does_not_count():
    """The row at 0.4516 s follows the first impact by less than its time is known."""
    true, times = {"height": 1.0, "gravity": 9.81, "restitution": 0.7}, np.append(np.linspace(0.02, 0.43, 20), 0.4516)
    times, draws = np.append(times, np.linspace(0.48, 2.0, 40)), np.random.default_rng(0)
    clean = np.stack(carom.models.exact.bouncing_ball(times, **true), axis=1)
    more = {"times": times, "observe": place_and_velocity, "stepping": carom.Adaptive(1e-8, 1e-10), "sigma": 0.1}
    errors, counts = [], []
    for _ in range(20):
        data = clean + 0.1 * draws.normal(size=clean.shape)
        found = carom.identify(carom.models.bouncing_ball, true, data, CAPTURING, **more)
        counts.append(found.counted[20, 1])
        assert found.counted.sum() >= 115
        assert found.warnings == ()
        errors.append([(found.parameters[name] - x) / found.errors[name] for name, x in true.items()])
    assert np.sum(counts) <= 2
    assert 0.7 < np.sqrt(np.mean(np.square(errors))) < 1.4


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
