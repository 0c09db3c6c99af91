"""Order p through impacts and accumulations, for every tableau [Acary2012 Figs 4 and 5, Theorem 1]."""

import numpy as np
import pytest

import carom
from carom.measures import observed_order
from carom.models import exact

pytestmark = pytest.mark.xdist_group("order_of_event_capturing")

T = 4.9137
N = np.round(T / (0.194 * 0.5 ** np.arange(6)))
STEPS = T / N
FLOOR = 3e-13
FAMILIES = {
    "implicit, 1 stage": {"radau_iia(1)": carom.radau_iia(1), "gauss(1)": carom.gauss(1)},
    "implicit, 2 stages": {f"{f.__name__}(2)": f(2) for f in (carom.radau_iia, carom.lobatto_iiia, carom.gauss)},
    "implicit, 3 stages": {f"{f.__name__}(3)": f(3) for f in (carom.radau_iia, carom.lobatto_iiia, carom.gauss)},
    "implicit, 4 stages": {"lobatto_iiia(4)": carom.lobatto_iiia(4)},
} | {f"explicit, order {p}": {f"explicit({p})": carom.explicit(p)} for p in range(1, 6)}
WHERE = {name: family for family, members in FAMILIES.items() for name in members}
DATA = {"oscillator": {}, "preloaded": dict(damping=0.2, stiffness=9.0, preload=0.3, restitution=0.6, position=0.5)}


@pytest.fixture(scope="module")
def study():
    """Errors of all step sizes by problem and tableau; tableaux with equally many stages are lanes of one batch."""
    found = {}

    def errors(problem, name):
        family = FAMILIES[WHERE[name]]
        if (problem, name) not in found:
            lanes = [(data, tableau, h) for data in DATA for tableau in family for h in STEPS]
            models = [carom.models.oscillator_with_stop(**DATA[data]) for data, _, _ in lanes]
            methods = [carom.EventCapturing(family[tableau]) for _, tableau, _ in lanes]
            systems, states = zip(*models)
            runs = carom.simulate_batch(systems, states, methods, t1=T, h=[h for _, _, h in lanes])
            for (data, tableau, _), run in zip(lanes, runs):
                q = exact.oscillator_with_stop(run.t, **DATA[data])[0]
                found.setdefault((data, tableau), []).append(np.abs(run.q[:, 0] - q).max())
        return np.array(found[problem, name])

    return errors


@pytest.mark.parametrize("name", WHERE)
@pytest.mark.parametrize("problem", DATA)
def test_the_order_through_impacts_is_that_of_the_tableau(study, problem, name):
    p = FAMILIES[WHERE[name]][name].order
    assert observed_order(STEPS, study(problem, name), floor=FLOOR) >= p - 0.2


@pytest.mark.parametrize(
    ("name", "bound"), [("radau_iia(2)", 4e-5), ("radau_iia(3)", 3e-8), ("lobatto_iiia(4)", 3e-10)]
)
def test_the_error_at_a_step_of_0_0485_is_that_of_the_prototype(study, name, bound):
    assert study("oscillator", name)[2] < bound
