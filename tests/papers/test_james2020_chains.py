"""James2020: Newton's cradle and the dimer chain, one number per statement of the paper."""

import numpy as np
import pytest

from carom.models import dimer_chain
from carom.papers.james2020 import common, comparison, cradle, dimer

# ---- the cradle (Figs 4, 5) ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_cradle_synchronises_with_the_sup_errors_of_the_text():
    reference, theta = cradle.pair(1.0, 3000.0)
    error = common.global_error(theta, reference)
    assert error.displacement == pytest.approx(0.154886, rel=1e-3)
    assert error.velocity == pytest.approx(0.047526, rel=1e-3)
    assert cradle.late_spread(theta) == pytest.approx(cradle.late_spread(reference), abs=0.02)


@pytest.mark.slow
def test_last_bead_of_the_stiff_cradle_swings_seven_percent_too_far():
    reference, theta = cradle.pair(13.115, 62.5)
    assert reference.q[:, 9].max() == pytest.approx(2.737753, rel=1e-5)
    assert theta.q[:, 9].max() == pytest.approx(2.946588, rel=1e-5)


# ---- the dimer chain (Table 1, Figs 9 to 11) -------------------------------------------------------------------------

#: (damping, h) of the lanes: Table 1 first, then points of Figs 10 and 11.
GAUSS_LANES = [(0.06, 1.0), (0.06, 0.1)]
GAUSS_LANES += [(g, 0.5) for g in (0.01, 0.024, 0.04, 0.055, 0.062, 0.08, 0.1)] + [
    (g, 0.05) for g in (0.014, 0.05, 0.1)
]
CN_LANES = [(0.06, 0.1)]
CN_LANES += [(g, 0.25) for g in (0.02, 0.05, 0.09, 0.11, 0.14, 0.178, 0.19, 0.2)] + [
    (g, 0.01) for g in (0.052, 0.1, 0.2)
]
DAMPINGS = sorted({g for g, _ in GAUSS_LANES + CN_LANES})
RATIOS = np.array([0.6, 0.607, 0.611, 0.615])


@pytest.fixture(scope="module")
def dimer_references():
    """Reference solutions by damping and, for Fig. 9, by mass ratio: one batch."""
    chains = [dimer_chain(damping=g)[0] for g in DAMPINGS] + [dimer_chain(mass_ratio=float(r))[0] for r in RATIOS]
    sols = common.references(chains, dimer_chain()[1], 30.0, 2e-3, 0.01)
    return dict(zip(DAMPINGS, sols)), sols[len(DAMPINGS) :]


def _errors(schemes, lanes, references):
    """{name: {(damping, h): Errors}}, one batch per scheme."""
    chains, state, h = [dimer_chain(damping=g)[0] for g, _ in lanes], dimer_chain()[1], [h for _, h in lanes]
    runs = {name: common.run(scheme, chains, state, 30.0, h) for name, scheme in schemes.items()}
    return {
        name: {lane: common.global_error(sol, references[lane[0]]) for lane, sol in zip(lanes, sols)}
        for name, sols in runs.items()
    }


@pytest.fixture(scope="module")
def gauss_errors(dimer_references):
    return _errors(comparison.GAUSS, GAUSS_LANES, dimer_references[0])


@pytest.fixture(scope="module")
def trapezoidal_errors(dimer_references):
    return _errors(comparison.TRAPEZOIDAL, CN_LANES, dimer_references[0])


@pytest.mark.slow
@pytest.mark.parametrize(("h", "displacement", "velocity"), [(1.0, 0.0832393, 0.0446795), (0.1, 0.0032904, 6.11266e-4)])
def test_table_1_errors_of_the_tailored_runge_kutta_method(gauss_errors, h, displacement, velocity):
    assert gauss_errors["IRK"][0.06, h] == pytest.approx((displacement, velocity), rel=1e-4)


@pytest.mark.slow
def test_table_1_errors_of_the_theta_method(trapezoidal_errors):
    assert trapezoidal_errors["theta"][0.06, 0.1] == pytest.approx((0.0216671, 0.0121210), rel=1e-4)


def _best(errors, lane):
    return min(errors, key=lambda name: max(errors[name][lane]))


def _worst(errors, lane):
    return max(errors, key=lambda name: max(errors[name][lane]))


@pytest.mark.slow
def test_figure_10_at_a_large_step_irk_is_best_for_moderate_damping_and_gauss_for_larger(gauss_errors):
    assert [_best(gauss_errors, (g, 0.5)) for g in (0.01, 0.04, 0.055)] == ["IRK"] * 3
    assert [_best(gauss_errors, (g, 0.5)) for g in (0.062, 0.08, 0.1)] == ["GL (x, v)"] * 3
    assert _worst(gauss_errors, (0.08, 0.5)) == "IRK"


@pytest.mark.slow
def test_figure_10_has_a_near_tie_at_damping_024_where_the_text_names_irk(gauss_errors):
    error = {name: max(of[0.024, 0.5]) for name, of in gauss_errors.items()}
    assert 1.0 < error["IRK"] / min(error["GL (x, v)"], error["GL (x, w)"]) < 1.03


@pytest.mark.slow
def test_figure_10_at_a_small_step_irk_is_worst_and_regular_variables_are_best(gauss_errors):
    assert [_worst(gauss_errors, (g, 0.05)) for g in (0.014, 0.05, 0.1)] == ["IRK"] * 3
    assert [_best(gauss_errors, (g, 0.05)) for g in (0.014, 0.05, 0.1)] == ["GL (x, w)"] * 3


@pytest.mark.slow
def test_figure_11_at_a_large_step_crank_nicolson_on_x_v_is_worst_between_11_and_178(trapezoidal_errors):
    assert [_worst(trapezoidal_errors, (g, 0.25)) for g in (0.11, 0.14, 0.178)] == ["CN (x, v)"] * 3
    assert [_worst(trapezoidal_errors, (g, 0.25)) for g in (0.05, 0.09, 0.19, 0.2)] == ["theta"] * 4
    assert [_best(trapezoidal_errors, (g, 0.25)) for g in (0.09, 0.11, 0.14, 0.178, 0.19, 0.2)] == ["CN (x, w)"] * 6


@pytest.mark.slow
def test_figure_11_has_a_near_tie_at_damping_02_where_the_text_names_theta(trapezoidal_errors):
    error = {name: max(of[0.02, 0.25]) for name, of in trapezoidal_errors.items()}
    assert 1.0 < error["CN (x, v)"] / error["theta"] < 1.03


@pytest.mark.slow
def test_figure_11_at_a_small_step_regular_variables_are_best_and_theta_is_worst(trapezoidal_errors):
    assert [_best(trapezoidal_errors, (g, 0.01)) for g in (0.052, 0.1, 0.2)] == ["CN (x, w)"] * 3
    assert [_worst(trapezoidal_errors, (g, 0.01)) for g in (0.052, 0.1, 0.2)] == ["theta"] * 3


@pytest.mark.slow
def test_figure_9_ejection_velocity_has_its_minimum_at_mass_ratio_611(dimer_references):
    ejected = np.array([sol.v[-1, -1] for sol in dimer_references[1]])
    assert ejected[0] == pytest.approx(0.481738, abs=1e-6)
    assert dimer.minimum(RATIOS[1:], ejected[1:]) == pytest.approx(0.611, abs=1e-3)
