"""SPARK in the loop: stored and resumed, batched, interpolated."""

import numpy as np
import pytest

import carom


@pytest.mark.slow
@pytest.mark.parametrize("stepping", [carom.Constant(0.05), carom.Reversible(1e-6)], ids=["constant", "reversible"])
def test_a_stored_run_goes_on_bit_for_bit(tmp_path, stepping):
    system, state = carom.models.pendulum(rate=0.0)
    whole = carom.simulate(system, state, carom.Spark(3), t1=2.0, stepping=stepping)
    if isinstance(stepping, carom.Constant):
        carom.simulate(system, state, carom.Spark(3), t1=1.0, stepping=stepping).save(tmp_path / "run.nc")
        resumed = carom.resume(tmp_path / "run.nc", t1=2.0)
        assert np.array_equal(resumed.q, whole.q)
        assert np.array_equal(resumed.multiplier[1:], whole.multiplier[1:])
    else:
        whole.save(tmp_path / "run.nc")
        assert np.array_equal(carom.resume(tmp_path / "run.nc").q, whole.q)


@pytest.mark.slow
def test_reversible_steps_run_in_a_batch():
    system, state = carom.models.pendulum(rate=0.0)
    single = carom.simulate(system, state, carom.Spark(3), t1=2.0, stepping=carom.Reversible(1e-6))
    tolerances = [carom.Reversible(tol) for tol in (1e-6, 1e-8)]
    lanes = carom.simulate_batch(system, state, carom.Spark(3), t1=2.0, stepping=tolerances)
    assert len(lanes[1]) > 1.8 * len(lanes[0])
    assert np.allclose(lanes[0].q[-1], single.q[-1], atol=1e-10)


@pytest.mark.slow
def test_interpolation_between_rows_stays_near_the_manifold():
    system, state = carom.models.pendulum(rate=0.0)
    sol = carom.simulate(system, state, carom.Spark(3), t1=2.0, h=0.05)
    q, v = sol.at(np.linspace(0.0, 2.0, 173))
    assert np.abs(np.sum(q * q, 1) - 1.0).max() < 1e-6
    assert np.abs(np.sum(q * v, 1)).max() < 1e-5
