"""The Aitken-Neville tableau [Studer2008 (42)-(48)]."""

import numpy as np
import pytest

from carom.methods.moreau.extrapolated import extrapolate


def test_euler_on_a_cubic_is_exact_in_the_third_row():
    assert extrapolate([0.0, 3 / 8, 21 / 32], [1, 2, 4])[-1] == pytest.approx(1.0, abs=1e-15)


def test_resting_contact_explodes_with_all_substeps():
    ratios = extrapolate([(-0.7) ** n for n in (1, 2, 3, 4)], [1, 2, 3, 4])
    np.testing.assert_allclose(ratios, [-0.7, 1.68, -3.8535, 9.268233], atol=5e-7)


def test_resting_contact_contracts_with_odd_substeps():
    ratios = extrapolate([(-0.7) ** n for n in (1, 3, 5, 7)], [1, 3, 5, 7])
    np.testing.assert_allclose(ratios[1:], [-0.1645, 0.15903125, 0.1603276], atol=5e-8)


@pytest.mark.parametrize("eps", [0.1, 0.5, 0.9, 0.99])
def test_odd_substeps_contract_for_every_restitution_below_one(eps):
    counts = 2 * np.arange(8) + 1
    assert np.abs(extrapolate((-eps) ** counts, counts)).max() < 1
