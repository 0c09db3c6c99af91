"""Granular models: contact laws, SI chains, and refusals of bad input."""

import numpy as np
import pytest

import carom
from carom.models import bead_chain, dimer_chain, granular_chain, newtons_cradle, trimer

MASSES, STIFFNESS = [1.0, 0.6, 1.3, 0.8], [1.0, 1.4, 0.7]


@pytest.mark.parametrize(
    ("exponent", "tol"),
    [pytest.param(1.0, 2e-3, marks=pytest.mark.slow), (1.5, 5e-5), pytest.param(2.5, 1e-6, marks=pytest.mark.slow)],
)
def test_direct_and_regularised_forms_agree_for_every_exponent(exponent, tol):
    chain, state = granular_chain(MASSES, STIFFNESS, damping=0.2, exponent=exponent)
    method = carom.ExplicitRK(carom.explicit(4))
    direct = carom.simulate(chain, state, method, t1=8.0, h=0.01)
    regular = carom.simulate(carom.regularise(chain), state, method, t1=8.0, h=0.01)
    assert np.abs(direct.q - regular.q).max() < tol
    assert np.abs(direct.v - regular.v).max() < tol
    assert np.diff(regular.account.energy).max() < 1e-7


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.5])
def test_contact_force_is_law_1(exponent):
    chain, _ = granular_chain([1.0, 2.0], 3.0, damping=0.2, exponent=exponent)
    d, speed = 0.3, 0.7
    force = chain.force(0.0, np.array([d, 0.0]), np.array([speed, 0.0]))
    expected = 3.0 * (d**1.5 + 0.2 * exponent * d ** (exponent - 1) * speed)
    np.testing.assert_allclose(force, [-expected, expected], rtol=1e-14)
    np.testing.assert_array_equal(chain.force(0.0, np.array([-d, 0.0]), np.array([speed, 0.0])), 0.0)


def test_trimer_has_the_masses_and_stiffnesses_of_section_2_2():
    chain, state = trimer()
    np.testing.assert_allclose(chain.mass, np.array([1.0, 0.8, 0.9]) ** 3)
    np.testing.assert_allclose(chain.potential["contact"].data, [1.0, np.sqrt(81 / 85)])
    np.testing.assert_array_equal(state.v, [1.0, 0.0, 0.0])


def test_bead_chain_in_si_units_has_hertz_stiffness_and_sphere_masses():
    chain, _ = bead_chain(radii=[0.01, 0.02], young=2e11, poisson=0.3, density=7800.0)
    modulus, radius = 2e11 / (2 * (1 - 0.09)), 0.01 * 0.02 / 0.03
    np.testing.assert_allclose(chain.potential["contact"].data, [4 / 3 * modulus * np.sqrt(radius)])
    np.testing.assert_allclose(chain.mass, 4 / 3 * np.pi * np.array([0.01, 0.02]) ** 3 * 7800)


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: granular_chain([1.0, -1.0]), "masses"),
        (lambda: granular_chain([1.0, np.nan]), "masses"),
        (lambda: granular_chain([1.0]), "masses"),
        (lambda: granular_chain([1.0, 1.0], stiffness=-1.0), "stiffness"),
        (lambda: granular_chain([1.0, 1.0], stiffness=[1.0, 1.0]), "stiffness"),
        (lambda: granular_chain([1.0, 1.0], damping=-0.1), "damping"),
        (lambda: granular_chain([1.0, 1.0], damping=np.nan), "damping"),
        (lambda: granular_chain([1.0, 1.0, 1.0], damping=[0.1, 0.1, 0.1]), "damping"),
        (lambda: granular_chain([1.0, 1.0], attachment=-1.0), "attachment"),
        (lambda: granular_chain([1.0, 1.0], exponent=0.5), "exponent"),
        (lambda: granular_chain([1.0, 1.0], impact_velocity=np.nan), "impact_velocity"),
        (lambda: dimer_chain(1), "n must"),
        (lambda: dimer_chain(10, mass_ratio=0.0), "mass_ratio"),
        (lambda: bead_chain(radii=[0.01, -0.01]), "radii"),
        (lambda: bead_chain(radii=[0.01, 0.01], young=np.nan), "young"),
        (lambda: bead_chain(radii=[0.01, 0.01], poisson=0.7), "poisson"),
        (lambda: bead_chain(radii=[0.01, 0.01], density=[1.0, 1.0, 1.0]), "density"),
    ],
)
def test_bad_input_is_refused_by_the_name_of_the_argument(build, name):
    with pytest.raises(ValueError, match=name):
        build()


def test_tailored_irk_refuses_undamped_attachments_and_names_the_way_out():
    chain, state = newtons_cradle(3)
    with pytest.raises(ValueError, match="AdditiveTailoredIRK"):
        carom.simulate(chain, state, carom.TailoredIRK(), t1=1.0, h=0.1)


def test_tailored_irk_refuses_damping_that_is_not_one_number_and_names_the_way_out():
    method = carom.TailoredIRK()
    chain, state = granular_chain(MASSES, STIFFNESS, damping=0.1, exponent=1.0)
    with pytest.raises(ValueError, match="not of this form"):
        carom.simulate(chain, state, method, t1=1.0, h=0.1)
    chain, state = granular_chain(MASSES, STIFFNESS, damping=[0.1, 0.2, 0.1])
    with pytest.raises(ValueError, match="varies between interactions"):
        carom.simulate(chain, state, method, t1=1.0, h=0.1)


def test_a_damping_other_than_the_systems_is_an_error():
    chain, state = dimer_chain(4, damping=0.06)
    with pytest.raises(ValueError, match="differs from the system's rate damping"):
        carom.simulate(chain, state, carom.TailoredIRK(damping=0.1), t1=1.0, h=0.1)
