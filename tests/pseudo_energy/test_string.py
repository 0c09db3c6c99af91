"""The nonlinear string: Table 1, Fig. 6, and step sizes from the energy gap (Fig. 5b)."""

import numpy as np
import pytest

import carom
from carom.measures import observed_order

CASES = [(0.8, 0.01), (0.8, 0.1), (0.8, 0.3), (0.99, 0.01), (0.99, 0.1), (0.99, 0.3)]
STEPS, H = 303, 0.0033


def worst_drifts(quadrature):
    systems, states = zip(*(carom.models.nonlinear_string(100, *case) for case in CASES))
    runs = carom.simulate_batch(systems, states, carom.PseudoEnergy(quadrature), t1=STEPS * H, h=H)
    assert all(len(run) == STEPS + 1 for run in runs)
    pseudo = [run.account.extra["pseudo_energy"] for run in runs]
    return [np.max(np.abs(p - p[0])) / p[0] for p in pseudo]


@pytest.mark.slow
def test_midpoint_drift_of_the_string_is_that_of_table_1():
    expected = [5.21e-8, 5.71e-6, 2.30e-5, 1.45e-8, 1.19e-5, 1.12e-4]
    np.testing.assert_allclose(worst_drifts("midpoint"), expected, rtol=0.02)


@pytest.mark.slow
def test_five_gauss_points_conserve_the_pseudo_energy_of_the_string():
    assert max(worst_drifts("gauss-5")) < 1e-11


@pytest.mark.slow
def test_midpoint_drift_of_the_string_falls_with_the_square_of_the_step():
    string, state = carom.models.nonlinear_string(100, 0.99, 0.3)
    steps = [0.0044, 0.0033, 0.0022, 0.0011]
    runs = carom.simulate_batch(string, state, carom.PseudoEnergy(), t1=[1.0] * 4, h=steps)
    pseudo = [run.account.extra["pseudo_energy"] for run in runs]
    worst = [np.max(np.abs(p - p[0])) / p[0] for p in pseudo]
    assert observed_order(steps, worst) == pytest.approx(2.0, abs=0.1)


def test_energy_gap_keeps_its_bound_with_steps_between_a_half_and_a_whole():
    string, state = carom.models.nonlinear_string(100, 0.99, 0.3)
    solution = carom.simulate(
        string, state, carom.PseudoEnergy("gauss-5"), t1=1.0, stepping=carom.EnergyGap(3e-4, 0.0048)
    )
    extra = solution.account.extra
    steps = solution.h[1:-1]
    assert steps.min() == pytest.approx(0.0024)
    assert steps.max() == pytest.approx(0.0048)
    assert np.max(extra["gap"] / extra["pseudo_energy"]) <= 3e-4
    assert np.ptp(extra["pseudo_energy"]) < 1e-12 * extra["pseudo_energy"][0]
    assert solution.t[-1] == 1.0
    assert solution.stats["rejected"] > 0


def test_energy_gap_accepts_at_its_cap_and_goes_on():
    string, state = carom.models.nonlinear_string(100, 0.99, 0.3)
    stepping = carom.EnergyGap(1e-9, 0.0048, halvings=2)
    solution = carom.simulate(string, state, carom.PseudoEnergy("gauss-5"), t1=0.05, stepping=stepping)
    assert solution.t[-1] == 0.05
    assert solution.h[1:-1].min() == pytest.approx(0.0012)


def test_energy_gap_needs_a_method_with_jumps():
    string, state = carom.models.nonlinear_string(10, 0.5, 0.1)
    with pytest.raises(ValueError, match="needs 'momentum jump', which StormerVerlet does not give"):
        carom.simulate(string, state, carom.StormerVerlet(), t1=1.0, stepping=carom.EnergyGap(1e-3, 1e-3))


@pytest.mark.parametrize("argument", [{"eps": 0.0}, {"h": -1.0}, {"halvings": -1}])
def test_energy_gap_refuses_impossible_arguments(argument):
    name = next(iter(argument))
    with pytest.raises(ValueError, match=name):
        carom.EnergyGap(**({"eps": 1e-3, "h": 1e-3} | argument))
