"""Orders of convergence through impacts [Studer2008 sec. 10.3, Acary2012 example 2]."""

import numpy as np
import pytest

import carom
from carom.measures import observed_order

EXACT = -0.164803330176
STEPS = {
    1: [4e-3 * 0.6**i for i in range(8)],
    2: [0.02, 0.01, 0.005],
    3: [0.04, 0.02, 0.01],
    4: [0.04, 0.02, 0.01],
    5: [0.04, 0.03, 0.02],
    6: [0.04, 0.03, 0.02],
}
BOUND = (10, 20, 10, 40, 10, 80)


def study(model, t1, runs):
    """Runs (order, h_min, h_max) of one program."""
    methods = [carom.Extrapolated(carom.MoreauMidpoint(), 6, fixed_order=p) for p, _, _ in runs]
    steppings = [carom.Switching(a, b) for _, a, b in runs]
    return [carom.simulate(*model, m, t1=t1, stepping=s) for m, s in zip(methods, steppings)]


@pytest.fixture(scope="module")
def undamped():
    runs = [(p, h**p, h) for p in STEPS for h in STEPS[p]] + [(6, 0.018**6, 0.018)]
    sols = study(carom.models.impact_oscillator(), 1.5, runs)
    return {run: sol for run, sol in zip(runs, sols)}


@pytest.mark.parametrize("p", range(1, 7))
def test_error_is_bounded_by_the_power_p_of_the_largest_step(undamped, p):
    h = np.asarray(STEPS[p])
    sols = [undamped[p, x**p, x] for x in STEPS[p]]
    error = np.array([abs(sol.q[-1, 0] - EXACT) for sol in sols])
    assert (error <= BOUND[p - 1] * h**p).all()
    if p in (1, 2, 4, 6):
        assert observed_order(h, error) == pytest.approx(p, abs=0.3)
    assert all(len(sol.events) == 8 for sol in sols)


def damped_oscillator(t, damping=0.4, stiffness=4.0, restitution=0.5):
    """Exact position of the damped oscillator that hits a stop at its free length (mass 1, from q = 1 at rest)."""
    z = damping / 2
    w = np.sqrt(stiffness - z * z)
    hit = (np.pi - np.arctan2(w, z)) / w
    speed = -np.exp(-z * hit) * (w + z * z / w) * np.sin(w * hit)
    while hit + np.pi / w < t:
        speed *= restitution * np.exp(-z * np.pi / w)
        hit += np.pi / w
    return -restitution * speed * np.exp(-z * (t - hit)) * np.sin(w * (t - hit)) / w


@pytest.fixture(scope="module")
def damped():
    runs = [(p, 1e-12, h) for p in range(1, 5) for h in (0.04, 0.02, 0.01)]
    return study(carom.models.impact_oscillator(1, 4, 0.4, 0, 0.5, 1, 0, side=1), 3.3, runs)


@pytest.mark.parametrize("p", range(1, 5))
def test_order_p_with_a_force_that_depends_on_velocity(damped, p):
    error = [abs(sol.q[-1, 0] - damped_oscillator(3.3)) for sol in damped[3 * p - 3 : 3 * p]]
    assert observed_order([0.04, 0.02, 0.01], error, floor=1e-12) == pytest.approx(p, abs=0.25)


@pytest.mark.slow
def test_order_six_needs_fewer_base_steps_for_1e_9_than_moreau_for_1e_4(undamped):
    high = undamped[6, 0.018**6, 0.018]
    assert abs(high.q[-1, 0] - EXACT) < 1e-9
    n = high.stats["evaluations"]
    model = carom.models.impact_oscillator()
    plain = [carom.simulate(*model, carom.MoreauMidpoint(), t1=1.5, h=1.5 / (k * n)) for k in (1, 2)]
    assert all(abs(sol.q[-1, 0] - EXACT) > 1e-4 for sol in plain)
