"""Fourth order by symmetric composition: what is gained, what survives, what is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.measures import observed_order
from carom.methods.pseudo_energy.composed import composition
from carom.state import lift


@pytest.fixture(scope="module")
def chain():
    return carom.models.fermi_pasta_ulam(3, omega=5.0)


@pytest.fixture(scope="module")
def runs(chain):
    steps = [0.1, 0.05, 0.025]
    return steps, carom.simulate_batch(*chain, carom.Composed(carom.PseudoEnergy("gauss-2")), t1=[4.0] * 3, h=steps)


def test_coefficients_fulfil_the_three_conditions():
    g = composition()
    np.testing.assert_allclose([g.sum(), np.sum(g * np.abs(g)), np.sum(g**3)], [1, 0, 0], atol=1e-14)
    np.testing.assert_array_equal(g, g[::-1])


def test_composition_has_order_four(chain, runs):
    steps, solutions = runs
    exact = carom.simulate(*chain, carom.ExplicitRK(carom.explicit(4)), t1=4.0, h=5e-4, save_every=8000)
    errors = [np.max(np.abs(s.q[-1] - exact.q[-1])) for s in solutions]
    assert observed_order(steps, errors) == pytest.approx(4.0, abs=0.1)


def test_composition_keeps_the_pseudo_energy_exactly_and_the_energy_to_higher_order(runs):
    steps, solutions = runs
    for solution in solutions:
        pseudo = solution.account.extra["pseudo_energy"]
        assert np.max(np.abs(pseudo - pseudo[0])) < 1e-12 * pseudo[0]
    gaps = [np.max(s.account.extra["gap"]) for s in solutions]
    assert observed_order(steps, gaps) > 5.5


@pytest.mark.slow
def test_composition_is_reversible(chain):
    system, state = chain
    method = lift(carom.Composed(carom.PseudoEnergy()))
    h = jnp.asarray(0.1)
    there = method.step(system, state, method.init(system, state), h)
    back = method.step(system, there.state, there.memory, -h)
    np.testing.assert_allclose(back.state.q, state.q, atol=1e-14)
    np.testing.assert_allclose(back.state.v, state.v, atol=1e-13)


def test_only_pseudo_energy_schemes_are_composed():
    with pytest.raises(TypeError, match="base must be PseudoEnergy"):
        carom.Composed(carom.StormerVerlet())
    with pytest.raises(ValueError, match="jump-free"):
        carom.Composed(carom.PseudoEnergy(start="one-step"))
