"""Order p through impacts and accumulations, for every tableau [Acary2012 Figs 4 and 5, Theorem 1]."""

import numpy as np
import pytest

import carom
from carom.measures import observed_order
from carom.models import exact
from carom.papers.acary2012.capturing import alike
from tests.lanes import one_by_one

T = 4.9137
N = np.round(T / (0.194 * 0.5 ** np.arange(6)))
STEPS = T / N
FLOOR = 3e-13
COLLOCATION = [carom.radau_iia(s) for s in (1, 2, 3)] + [carom.lobatto_iiia(s) for s in (2, 3, 4)]
IMPLICIT = [*COLLOCATION, *(carom.gauss(s) for s in (1, 2, 3))]
EXPLICIT = [carom.explicit(p) for p in range(1, 6)]
TABLEAUX = {tableau.name: tableau for tableau in IMPLICIT + EXPLICIT}
DATA = {"oscillator": {}, "preloaded": dict(damping=0.2, stiffness=9.0, preload=0.3, restitution=0.6, position=0.5)}


@pytest.fixture(scope="module")
def study():
    """Errors of all step sizes by problem and tableau: one program of implicit methods, one of explicit ones."""
    found = {}
    for family in (IMPLICIT, EXPLICIT):
        lanes = [(data, tableau, h) for data in DATA for tableau in alike(family) for h in STEPS]
        systems, states = zip(*(carom.models.oscillator_with_stop(**DATA[data]) for data, _, _ in lanes))
        methods = [carom.EventCapturing(tableau) for _, tableau, _ in lanes]
        runs = one_by_one(systems, states, methods, t1=T, h=[h for _, _, h in lanes])
        for (data, tableau, _), run in zip(lanes, runs):
            assert run.t[-1] == T
            q = exact.oscillator_with_stop(run.t, **DATA[data])[0]
            found.setdefault((data, tableau.name), []).append(np.abs(run.q[:, 0] - q).max())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLEAUX)
@pytest.mark.parametrize("problem", DATA)
def test_the_order_through_impacts_is_that_of_the_tableau(study, problem, name):
    assert observed_order(STEPS, study[problem, name], floor=FLOOR) >= TABLEAUX[name].order - 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "bound"), [("radau_iia(2)", 4e-5), ("radau_iia(3)", 3e-8), ("lobatto_iiia(4)", 3e-10)]
)
def test_the_error_at_a_step_of_0_0485_is_that_of_the_prototype(study, name, bound):
    assert study["oscillator", name][2] < bound
