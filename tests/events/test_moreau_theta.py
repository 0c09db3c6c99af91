"""Moreau's theta scheme: orders in norms that bear jumps, and local errors [Acary2012 Fig. 2, Props 1-3, (25)]."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.measures import observed_order
from carom.papers.acary2012 import moreau
from carom.papers.acary2012.common import BALL, OSCILLATOR

PROBLEMS = {"ball": BALL, "oscillator": OSCILLATOR}


@pytest.fixture(scope="module", params=PROBLEMS)
def errors(request):
    """Errors of the velocities at (theta, forecast) = (1/2, 1) until T = 5, by norm."""
    return moreau.norm_errors(PROBLEMS[request.param])


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["L1", "Hausdorff", "L2"])
def test_velocities_converge_in_norms_that_bear_jumps(errors, norm):
    low, high = {"L1": (0.8, 1.1), "Hausdorff": (0.6, 1.15), "L2": (0.25, 0.65)}[norm]
    assert low <= observed_order(moreau.STEPS[: len(errors[norm])], errors[norm]) <= high


@pytest.mark.slow
def test_velocities_do_not_converge_uniformly(errors):
    assert observed_order(moreau.STEPS, errors["uniform"]) < 0.25


@pytest.mark.parametrize("forecast", [1.0, 0.0])
@pytest.mark.parametrize("theta", [0.5, 0.8])
def test_local_errors_at_an_impact_are_those_of_the_corrected_25(theta, forecast):
    assert moreau.defect_of_25(theta, forecast) < 1e-13


def test_positions_and_velocities_have_local_order_one_at_a_forecast_impact():
    assert moreau.impact_orders(1.0) == pytest.approx((1.0, 1.0), abs=0.15)


def test_velocities_have_local_order_zero_at_a_missed_impact():
    assert moreau.impact_orders(0.0) == pytest.approx((1.0, 0.0), abs=0.15)


@pytest.mark.parametrize(
    ("surface", "theta"),
    [
        pytest.param(moreau.table, 0.8, id="flat", marks=pytest.mark.slow),
        pytest.param(moreau.ring, 1.0, id="curved"),
    ],
)
def test_positions_and_velocities_have_local_order_two_in_persistent_contact(surface, theta):
    assert moreau.persistent_orders(surface, theta) == pytest.approx((2.0, 2.0), abs=0.1)


@pytest.mark.parametrize("theta", [0.0, 0.5, 0.8])
def test_a_curved_surface_costs_the_velocities_an_order_unless_theta_is_one(theta):
    assert moreau.persistent_orders(moreau.ring, theta) == pytest.approx((2.0, 1.0), abs=0.1)
    assert moreau.normal_share(theta) == pytest.approx(1.0, abs=0.01)


def test_the_projected_variant_ends_every_step_without_penetration():
    ball = carom.models.bouncing_ball()
    plain, projected = (
        carom.simulate(*ball, carom.MoreauTheta(0.5, 1.0, projection=p), t1=5.0, h=0.013) for p in (False, True)
    )
    assert plain.account.worst["penetration"] > 1e-4
    assert projected.account.worst["penetration"] < 1e-14


@pytest.mark.parametrize(("name", "value"), [("theta", 1.5), ("forecast", -0.1)])
def test_a_parameter_outside_its_interval_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=rf"{name} must lie in \[0, 1\]"):
        carom.MoreauTheta(**{name: value})


@pytest.mark.slow
def test_without_laws_one_half_is_the_implicit_midpoint_rule():
    pendulum = carom.System(1.0, lambda q: -jnp.cos(q[0]), forces={"drag": lambda t, q, v: -0.1 * v})
    start = carom.State([1.0], [0.5])
    stepped, gauss = (
        carom.simulate(pendulum, start, method, t1=5.0, h=0.1)
        for method in (carom.MoreauTheta(theta=0.5), carom.IRK(carom.gauss(1)))
    )
    assert np.abs(stepped.q - gauss.q).max() < 1e-12
    assert np.abs(stepped.v - gauss.v).max() < 1e-12
