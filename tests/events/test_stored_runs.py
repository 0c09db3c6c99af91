"""Event capturing through a file."""

import numpy as np
import pytest

import carom

METHODS = [
    pytest.param(carom.EventCapturing(carom.radau_iia(2)), id="EventCapturing", marks=pytest.mark.slow),
    pytest.param(carom.MoreauTheta(0.5, 1.0), id="MoreauTheta"),
]


@pytest.mark.parametrize("method", METHODS)
def test_a_resumed_bounce_equals_one_that_was_never_interrupted(method, tmp_path):
    ball, state = carom.models.bouncing_ball()
    whole = carom.simulate(ball, state, method, t1=2.0, h=0.0625)
    carom.simulate(ball, state, method, t1=0.75, h=0.0625).save(tmp_path / "run.nc")
    resumed = carom.resume(tmp_path / "run.nc", t1=2.0)
    assert np.array_equal(resumed.q, whole.q)
    assert np.array_equal(resumed.event, whole.event)
    assert whole.event.any()
