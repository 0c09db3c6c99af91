"""Moreau's theta scheme: orders in norms that bear jumps, and local errors [Acary2012 Fig. 2, Props 1-3, (25)]."""

import numpy as np
import pytest

import carom
from carom.measures import filled_graph, graph_distance, grid_norm, local_error, observed_order
from carom.models import exact

STEPS = 0.9137 * 0.5 ** np.arange(5, 15)
PROBLEMS = {
    "ball": (carom.models.bouncing_ball(), exact.bouncing_ball),
    "oscillator": (carom.models.oscillator_with_stop(), exact.oscillator_with_stop),
}
GRAVITY, RHO = 2.0, 0.5


@pytest.fixture(scope="module", params=PROBLEMS)
def errors(request):
    """Errors of the velocities at (theta, forecast) = (1/2, 1) until T = 5, by norm."""
    model, solution = PROBLEMS[request.param]
    runs = carom.simulate_batch(*model, carom.MoreauTheta(0.5, 1.0), t1=5.0, h=list(STEPS))
    found = {}
    for p, name in ((1, "L1"), (2, "L2"), (np.inf, "Linf")):
        found[name] = [grid_norm(r.v[:, 0] - solution(r.t)[1], h, p) for r, h in zip(runs, STEPS)]
    wanted = exact_graph(solution, runs[0].system)
    found["graph"] = [graph_distance(filled_graph(r.t, r.v), wanted) for r, h in zip(runs, STEPS) if h > 3e-4]
    return found


def exact_graph(solution, system):
    """The filled-in graph of the exact velocity, both limits at every impact, fine in between."""
    t = np.linspace(0.0, 5.0, 20001)
    q, v = solution(t)
    hits = impact_times(solution)
    before, after = (np.ravel(solution(x)[1]) for x in (hits - 1e-13, hits + 1e-13))
    times = np.concatenate([t, hits, hits])
    order = np.lexsort((np.concatenate([np.zeros(t.size), np.zeros(hits.size), np.ones(hits.size)]), times))
    return filled_graph(times[order], np.concatenate([v, before, after])[order])


def impact_times(solution):
    if solution is exact.bouncing_ball:
        return 3.0 - 2.0 ** -np.arange(-1.0, 24.0)
    return np.array([0.8396908773063, 2.4184005857839, 3.9971102942615])


@pytest.mark.parametrize(("norm", "low", "high"), [("L1", 0.8, 1.1), ("graph", 0.6, 1.15), ("L2", 0.25, 0.65)])
def test_velocities_converge_in_norms_that_bear_jumps(errors, norm, low, high):
    assert low <= observed_order(STEPS[: len(errors[norm])], errors[norm]) <= high


def test_velocities_do_not_converge_uniformly(errors):
    assert observed_order(STEPS, errors["Linf"]) < 0.25


def corrected_25(q, v, h, sigma, theta, impulse):
    """(e_q, e_v) of (25) as corrected in the errata, f = -GRAVITY."""
    f, inner = -GRAVITY, RHO * sigma * (1 - sigma) - 0.5 * (1 - sigma) ** 2
    if impulse:
        e_q = -q - h * ((1 + RHO) * (1 - theta) - RHO * sigma) * v - f * h**2 * inner
        return e_q, h * f * (1 - sigma - RHO * sigma)
    e_q = -q - h * (RHO * (1 - sigma) + 1) * v - f * h**2 * (inner + theta)
    return e_q, -(1 + RHO) * (v + h * f * sigma)


@pytest.mark.parametrize("forecast", [1.0, 0.0])
@pytest.mark.parametrize("theta", [0.5, 0.8])
def test_local_errors_at_an_impact_are_those_of_the_corrected_25(theta, forecast):
    ball = carom.models.bouncing_ball()[0]
    method = carom.MoreauTheta(theta, forecast)
    for h, sigma in ((0.2, 0.3), (0.1, 0.7), (0.05, 0.4)):
        t = 1.0 - sigma * h
        q, v = exact.bouncing_ball(t)
        found = local_error(ball, method, exact.bouncing_ball, t, h)
        wanted = corrected_25(q, v, h, sigma, theta, forecast == 1.0)
        assert np.abs(np.ravel(found) - wanted).max() < 1e-13


def local_orders(model, solution, forecast, t, steps):
    method = carom.MoreauTheta(0.5, forecast)
    e = np.array([np.ravel(local_error(model[0], method, solution, t(h), h)) for h in steps])
    return [observed_order(steps, np.abs(e[:, i])) for i in (0, 1)]


H = 0.1 * 0.5 ** np.arange(6)


def test_positions_have_local_order_one_and_velocities_one_at_a_forecast_impact():
    orders = local_orders(*PROBLEMS["oscillator"], 1.0, lambda h: 0.8396908773063 - 0.37 * h, H)
    assert orders == pytest.approx([1.0, 1.0], abs=0.15)


def test_velocities_have_local_order_zero_at_a_missed_impact():
    orders = local_orders(*PROBLEMS["oscillator"], 0.0, lambda h: 0.8396908773063 - 0.37 * h, H)
    assert orders == pytest.approx([1.0, 0.0], abs=0.15)


def test_velocities_have_local_order_two_in_persistent_contact():
    model = carom.models.mass_on_sphere(angle=0.5)
    fine = carom.simulate(*model, carom.EventCapturing(carom.gauss(3)), t1=0.3, h=0.01)
    smooth = lambda t: tuple(x[0] for x in fine.at(t))
    t = 0.1
    method = carom.MoreauTheta(0.5, 1.0)
    steps = [0.16, 0.08, 0.04, 0.02]
    e = [np.abs(local_error(model[0], method, smooth, t, h)[1]).max() for h in steps]
    assert observed_order(steps, e) >= 1.8


def test_the_projected_variant_ends_every_step_without_penetration():
    ball = carom.models.bouncing_ball()
    plain, projected = (
        carom.simulate(*ball, carom.MoreauTheta(0.5, 1.0, projection=p), t1=5.0, h=0.013) for p in (False, True)
    )
    assert plain.account.worst["penetration"] > 1e-3
    assert projected.account.worst["penetration"] < 1e-14


@pytest.mark.parametrize(("name", "value"), [("theta", 1.5), ("forecast", -0.1)])
def test_a_parameter_outside_its_interval_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=rf"{name} must lie in \[0, 1\]"):
        carom.MoreauTheta(**{name: value})
