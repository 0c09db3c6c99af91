"""One test for all: every method on every ready-made model it claims to handle, in a batch, saved and resumed."""

import warnings

import numpy as np
import pytest

import carom
from carom.capabilities import public_methods
from carom.models import registry
from tests.built import built

STEPS = 6
SPECIAL = {
    "IRK": lambda: carom.IRK(carom.gauss(2)),
    "ExplicitRK": lambda: carom.ExplicitRK(carom.explicit(4)),
    "Spark": lambda: carom.Spark(3),
    "Composed": lambda: carom.Composed(carom.PseudoEnergy()),
    "Extrapolated": lambda: carom.Extrapolated(carom.MoreauMidpoint()),
}
NEEDS_MORE = ("AsynchronousPseudoEnergy", "EventCapturing")  # a split of the particles, a tableau: tested on their own
SMALL_STEP = {"bead_chain": 1e-8, "inhomogeneous_wave": 1e-5, "layered_string": 1e-5}
SMALL_STEP |= dict.fromkeys(("woodpecker", "slider_crank_clearance", "andrews_squeezer"), 1e-6)
KNOWN = {
    ("stiff_spring_pendulum", "Spark"): "Lobatto IIIA-B blows up on the stiff spring, as Jay1998 Fig. 5 says",
    (
        "stiff_spring_pendulum",
        "Extrapolated",
    ): "Moreau's rule is explicit in forces, the spring too stiff for it",
}


def pairs(make=built):
    for model in sorted(registry):
        system, state = make(model)
        for name in public_methods():
            if name in NEEDS_MORE:
                continue
            method = SPECIAL.get(name, public_methods()[name])()
            if system.features <= method.handles and not method.objection(system):
                marks = [pytest.mark.xfail(strict=True, reason=KNOWN[model, name])] if (model, name) in KNOWN else []
                yield pytest.param(model, system, state, method, id=f"{model}-{name}", marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "system", "state", "method"), list(pairs()))
def test_the_method_runs_the_model_in_a_batch_and_through_a_file(model, system, state, method, tmp_path):
    h = SMALL_STEP.get(model, 1e-3)
    ends = float(state.t) + STEPS * h
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lanes = carom.simulate_batch(system, state, method, t1=ends, h=[h, h / 2, h / 3])
        carom.simulate(system, state, method, t1=float(state.t) + 2 * h, h=h).save(tmp_path / "run.nc")
        resumed = carom.resume(tmp_path / "run.nc", system=system, method=method, t1=ends)
    assert all(lane.status is carom.Status.OK and lane.t[-1] == ends for lane in lanes)
    assert np.allclose(resumed.q, lanes[0].q, rtol=1e-10, atol=1e-12)
    assert np.isfinite(resumed.account.energy).all()
    assert resumed.account.worst["residual"] < 1e-6
