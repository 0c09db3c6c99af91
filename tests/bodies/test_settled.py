"""Piles that have come to rest: how dense, and how many contacts."""

import numpy as np
import pytest

import carom

METHOD = carom.MoreauMidpoint(solver=carom.AcceleratedGaussSeidel(tol=1e-5, max_iter=2000))


@pytest.mark.slow
def test_a_settled_box_is_as_dense_as_random_packings_of_disks_with_friction():
    """Above random loose packings, 0.66, and below the hexagonal one, 0.907 [Brouwers2023].

    Counting forces against equations, rigid disks need three contacts each with friction and four without.
    """
    box, state = carom.models.disks_in_box(120, friction=0.3)
    sol = carom.simulate(box, state, METHOD, t1=60.0, h=0.02, save_every=100)
    x, z = sol.q[-1].reshape(-1, 3), carom.measures.coordination(sol)
    top = np.quantile(x[:, 1], 0.9)
    inner = (x[:, 0] > 2.5) & (x[:, 0] < x[:, 0].max() - 1.5) & (x[:, 1] > 2.5) & (x[:, 1] < top) & (z >= 2)
    region = ((2.0, 2.0), (float(x[:, 0].max()) - 1.0, float(top)))
    assert 0.77 < carom.measures.packing_fraction(sol, region=region) < 0.88
    assert 3.0 < z[inner].mean() < 4.2
    np.testing.assert_allclose(carom.measures.fabric(sol), 0.5 * np.eye(2), atol=0.1)
