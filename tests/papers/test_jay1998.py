"""Jay1998: every claim of the tables and figures holds, with numbers of a second code."""

import numpy as np
import pytest

import carom
from carom.papers import jay1998

LONG = ("fig1", "fig2", "fig3", "fig4", "fig5")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else []) for name in jay1998.items]
)
def test_the_claims_of_jay1998_hold(name):
    claims, _ = jay1998.items[name]()
    assert claims
    assert [claim for claim in claims if not claim.agrees] == []


@pytest.mark.slow
def test_squeezer_reaches_the_known_beta_with_three_stages():
    sol = jay1998.squeezer_run(0.033, t1=0.03, h=5e-5)
    assert abs(sol.q[-1, 0] - 15.810771252) < 1e-9


def test_lobatto_c_everywhere_drains_the_rigid_pendulum():
    assert jay1998.stiff_energy_error(jay1998.ALL_C, jay1998.ALL_C)[-1] == pytest.approx(-1.077402e-4, rel=1e-3)


def test_mixed_families_keep_the_energy_of_the_rigid_pendulum():
    error = jay1998.stiff_energy_error(jay1998.MIXED_KINEMATIC, jay1998.MIXED_FORCES)
    assert np.abs(error).max() == pytest.approx(1.2539e-6, rel=1e-3)


def test_lobatto_a_b_everywhere_ends_in_a_clear_error():
    with pytest.raises(carom.SimulationError, match="did not converge in the step from t = 0"):
        jay1998.stiff_energy_error("AAAA", "BBBB")
