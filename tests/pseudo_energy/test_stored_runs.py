"""Runs of these methods go through save, load and resume."""

import numpy as np
import pytest

import carom

CASES = {
    "two-step": (carom.PseudoEnergy("lobatto-3"), carom.Constant(0.01)),
    "one-step start": (carom.PseudoEnergy(start="one-step"), carom.EnergyGap(1e-2, 0.01)),
    "two rates": (carom.AsynchronousPseudoEnergy("stiff", 4, "lobatto-3"), carom.Constant(0.02)),
    "composed": (carom.Composed(carom.PseudoEnergy()), carom.Constant(0.05)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "one-step start" else pytest.mark.slow) for name in CASES]
)
def test_a_resumed_run_equals_one_that_was_never_interrupted(name, tmp_path):
    method, stepping = CASES[name]
    chain, state = carom.models.slow_fast_chain(3)
    carom.simulate(chain, state, method, t1=1.0, stepping=stepping).save(tmp_path / "run.nc")
    resumed = carom.resume(tmp_path / "run.nc", t1=2.0)
    whole = carom.simulate(chain, state, method, t1=2.0, stepping=stepping)
    np.testing.assert_array_equal(resumed.q, whole.q)
    np.testing.assert_array_equal(resumed.account.extra["pseudo_energy"], whole.account.extra["pseudo_energy"])
