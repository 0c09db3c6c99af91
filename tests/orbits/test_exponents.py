"""Lyapunov exponents whose values, or whose sum, is known in closed form."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from tests.orbits.systems import CAPTURING, NUMBERS, SMOOTH, oscillator


def test_the_exponents_of_a_damped_oscillator_are_half_its_damping():
    system, state = oscillator(**NUMBERS)
    w = np.sqrt(2.0 - 0.15**2)
    found = carom.lyapunov(system, state, SMOOTH, t1=40 * np.pi / w, every=np.pi / w, transient=2.0, h=0.05)
    np.testing.assert_allclose(found.exponents, [-0.15, -0.15], atol=2e-7)
    assert found.dimension == 0.0
    assert found.times[0] == pytest.approx(np.pi / w)
    np.testing.assert_allclose(found.history[-1], found.exponents)


def test_a_tangent_that_shrinks_to_rounding_has_no_finite_exponent():
    system, state = oscillator(**NUMBERS | {"damping": 60.0})
    with pytest.warns(UserWarning, match="shrank to rounding within 1, .* lower every="):
        found = carom.lyapunov(system, state, SMOOTH, t1=5.0, every=1.0, transient=1.0, h=0.01)
    assert found.exponents[0] == pytest.approx(-30 + np.sqrt(898), abs=1e-4)
    assert np.isneginf(found.exponents[1])


@pytest.mark.slow
def test_a_tangent_vanishes_where_friction_sticks_in_every_period():
    def slip(q, v):
        return v - 0.5

    def push(t, q, v):
        return 0.3 * jnp.cos(1.3 * t) - 0.05 * v

    friction, period = carom.FrictionElements(slip, limit=1.0), 2 * np.pi / 1.3
    system = carom.System(1.0, lambda q: 0.5 * q[0] ** 2, {"exciting": push}, friction=friction)
    start = carom.State([0.1], [0.2])
    found = carom.lyapunov(system, start, CAPTURING, t1=15 * period, every=period, transient=2 * period, h=period / 50)
    assert -0.3 < found.exponents[0] < -0.15
    assert np.isneginf(found.growth[:, 1]).all()


@pytest.mark.slow
def test_the_exponents_of_a_shaken_oscillator_sum_to_damping_and_impacts():
    frequency, e, c = 2.65, 0.8, 0.02
    system, state = carom.models.driven_oscillator(frequency=frequency, restitution=e, damping=c)
    period = 2 * np.pi / frequency
    found = carom.lyapunov(
        system, state, CAPTURING, t1=200 * period, every=period, h=period / 80, transient=20 * period
    )
    impacts = (found.growth.sum(axis=1) + c * np.diff(found.times)) / (2 * np.log(e))
    np.testing.assert_allclose(impacts, np.round(impacts), atol=1e-6)
    counted = carom.simulate(system, found.state, CAPTURING, t1=float(found.state.t) + 50 * period, h=period / 80)
    rate = np.sum(counted.event == 6) / (50 * period)
    assert found.exponents.sum() == pytest.approx(-c + 2 * np.log(e) * rate, abs=1e-6)
    assert found.exponents[0] < 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"count": 3}, "count must be at most 2"),
        ({"count": 0}, "count must be a whole number of at least 1"),
        ({"every": -1.0}, "every must be positive"),
        ({"transient": 2.0}, "t1 must lie after the transient"),
        ({"t1": np.nan}, "t1 must be finite"),
    ],
)
def test_questions_that_have_no_answer_are_refused_by_name(more, said):
    system, state = oscillator(**NUMBERS)
    with pytest.raises(ValueError, match=said):
        carom.lyapunov(system, state, SMOOTH, **{"t1": 1.0, "h": 0.1} | more)


def test_exponents_through_impacts_need_a_method_that_locates_them():
    system, state = carom.models.driven_oscillator()
    with pytest.raises(TypeError, match="MoreauMidpoint steps over impacts"):
        carom.lyapunov(system, state, carom.MoreauMidpoint(), t1=1.0, h=0.1)
