"""Periodic orbits: smooth ones in closed form, relative ones, and a ball on a shaken table."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import carom
from tests.orbits.maps import FOLD, E
from tests.orbits.systems import CAPTURING, NUMBERS, SMOOTH, TIGHT, oscillator, steady


def period_of(frequency):
    return 2 * jnp.pi / frequency


@pytest.fixture(scope="module")
def driven():
    system, state = oscillator(**NUMBERS)
    return carom.periodic_orbit(system, state, period=period_of, method=SMOOTH, stepping=TIGHT)


def test_a_driven_oscillator_has_the_orbit_and_multipliers_of_its_closed_form(driven):
    x, v = steady(0.0, **NUMBERS)
    np.testing.assert_allclose([driven.state.q[0], driven.state.v[0]], [x, v], rtol=1e-8)
    assert driven.period == pytest.approx(2 * np.pi / 1.7, rel=1e-14)
    np.testing.assert_allclose(np.abs(driven.multipliers), np.exp(-0.15 * driven.period), rtol=1e-8)
    assert driven.stable
    assert driven.iterations <= 3


def test_a_branch_over_the_frequency_follows_the_response_of_the_oscillator(driven):
    branch = driven.follow("frequency", within=(1.0, 2.0), step=0.2)
    for value, q, v in zip(branch.values, branch.q[:, 0], branch.v[:, 0]):
        np.testing.assert_allclose([q, v], steady(0.0, **NUMBERS | {"frequency": value}), rtol=1e-7, atol=1e-7)
    assert branch.values[[0, -1]] == pytest.approx([1.0, 2.0], abs=1e-14)
    assert not branch.specials
    assert branch.ends == ("the end of the range",) * 2


def pull(t, q, v, p):
    return -p["damping"] * (v - p["wind"]) + jnp.cos(t)[None]


@pytest.mark.slow
def test_a_body_that_is_blown_along_has_a_relative_orbit():
    system = carom.System(1.0, None, {"pull": pull}, params={"damping": 0.5, "wind": 0.3}, labels=["x"])
    guess, period = carom.State([5.0], [0.0]), 2 * np.pi
    orbit = carom.periodic_orbit(system, guess, period=period, method=SMOOTH, stepping=TIGHT, ignore=["x"])
    assert orbit.shift == pytest.approx([0.3 * period], abs=1e-8)
    assert orbit.state.q[0] == 5.0
    np.testing.assert_allclose(orbit.multipliers, [np.exp(-0.5 * period)], rtol=1e-8)


def uphill(q, p):
    return p["weight"] * jnp.cos(q[0] + p["slope"])


@pytest.mark.slow
def test_a_rimless_wheel_on_its_next_spoke_rolls_as_its_closed_form():
    J, m, length, alpha, slope, g = 0.1, 1.0, 1.0, np.pi / 8, 0.08, 9.81
    whole = J + m * length**2
    wheel = carom.System(whole, uphill, params={"weight": m * g * length, "slope": slope})
    kept = (J + m * length**2 * np.cos(2 * alpha)) / whole
    orbit = carom.periodic_orbit(
        wheel,
        carom.State([-alpha], [1.5]),
        section=lambda q: q[0] - alpha,
        reset=lambda q, v: (q - 2 * alpha, kept * v),
        method=SMOOTH,
        stepping=TIGHT,
    )
    speed = np.sqrt(kept**2 / (1 - kept**2) * 4 * m * g * length * np.sin(alpha) * np.sin(slope) / whole)
    assert orbit.state.v[0] == pytest.approx(speed, rel=1e-8)
    assert orbit.multipliers[0] == pytest.approx(kept**2, abs=1e-8)
    assert abs(orbit.multipliers[1]) < 1e-8


def van_der_pol(t, q, v):
    return (1 - q**2) * v - q


def test_the_multiplier_of_a_limit_cycle_is_that_of_its_divergence():
    system = carom.System(1.0, None, {"pol": van_der_pol})
    orbit = carom.periodic_orbit(
        system, carom.State([0.0], [1.5]), section=lambda q: q[0], method=SMOOTH, stepping=TIGHT
    )

    def rates(t, y):
        return [y[1], (1 - y[0] ** 2) * y[1] - y[0], 1 - y[0] ** 2]

    start = [0.0, float(orbit.state.v[0]), 0.0]
    end = solve_ivp(rates, (0.0, orbit.period), start, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    np.testing.assert_allclose(end[:2], start[:2], atol=1e-8)
    assert orbit.period == pytest.approx(6.6632868593231, abs=1e-8)
    assert orbit.multipliers[0] == pytest.approx(np.exp(end[2]), abs=1e-8)
    assert abs(orbit.multipliers[1]) < 1e-8


def apex(shaking):
    """The state of one bounce per period at t = 1/2, between its impacts."""
    w, A = 2 * np.pi, shaking / (2 * np.pi) ** 2
    t = np.arccos(FOLD / shaking) / w
    s = 0.5 - t
    height = A * np.sin(w * t) + 0.5 * s - 0.5 * s**2 - A * np.sin(w * 0.5)
    return carom.State([height], [0.5 - s - A * w * np.cos(w * 0.5)], 0.5)


@pytest.fixture(scope="module")
def bouncing():
    guess = apex(0.8)
    guess = carom.State(1.01 * guess.q, guess.v, 0.5)
    ball = carom.models.shaken_ball(shaking=0.8)[0]
    return carom.periodic_orbit(ball, guess, period=1.0, method=CAPTURING, stepping=TIGHT)


def test_a_shaken_ball_has_the_trace_and_determinant_of_its_closed_form(bouncing):
    np.testing.assert_allclose(bouncing.state.q, apex(0.8).q, atol=1e-9)
    assert np.trace(bouncing.jacobian) == pytest.approx(1 + E**2 - (1 + E) ** 2 * np.sqrt(0.64 - FOLD**2), abs=1e-8)
    assert np.linalg.det(bouncing.jacobian) == pytest.approx(E**2, abs=1e-8)
    assert bouncing.stable
    assert bouncing.iterations <= 6


@pytest.mark.slow
def test_an_orbit_of_a_function_that_builds_the_system_is_that_of_the_system(driven):
    def build(frequency):
        return oscillator(**NUMBERS | {"frequency": frequency})

    more = {"period": period_of, "method": SMOOTH, "stepping": TIGHT, "parameters": {"frequency": 1.7}}
    orbit = carom.periodic_orbit(build, carom.State([0.0], [0.0]), **more)
    np.testing.assert_allclose(orbit.state.q, driven.state.q, rtol=1e-8)
    np.testing.assert_allclose(orbit.jacobian, driven.jacobian, atol=1e-8)
