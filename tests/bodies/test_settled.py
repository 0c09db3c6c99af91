"""Piles that have come to rest: how dense, how many contacts, how steep, and that they stay."""

import numpy as np
import pytest

import carom
from carom.pairs import Capacity
from carom.systems import first_lists

pytestmark = pytest.mark.filterwarnings("ignore:.*(not solved to tol|penetration|overlap)")  # of piles that fell
METHOD = carom.MoreauMidpoint(solver=carom.AcceleratedGaussSeidel(tol=1e-5, max_iter=2000))


@pytest.fixture(autouse=True, scope="module")
def _one_program_for_all():
    """Lists have room for whatever these tests bring."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first_lists, "tight", lambda pairs: Capacity(2400, 1000, (72,) * 8 + (24,) * 6))
        yield


@pytest.fixture(scope="module")
def box():
    """Disks that fell into a box."""
    system, state = carom.models.disks_in_box(120, friction=0.3)
    return system, carom.simulate(system, state, METHOD, t1=60.0, h=0.02, save_every=100)


@pytest.mark.slow
def test_a_settled_box_is_as_dense_as_random_packings_of_disks_with_friction(box):
    """Above random loose packings, 0.66, and below the hexagonal one, 0.907 [Brouwers2023].

    Counting forces against equations, rigid disks need three contacts each with friction and four without
    [vanHecke2010].
    """
    sol = box[1]
    x, z = sol.q[-1].reshape(-1, 3), carom.measures.coordination(sol)
    top = np.quantile(x[:, 1], 0.9)
    inner = (x[:, 0] > 2.5) & (x[:, 0] < x[:, 0].max() - 1.5) & (x[:, 1] > 2.5) & (x[:, 1] < top) & (z >= 2)
    region = ((2.0, 2.0), (float(x[:, 0].max()) - 1.0, float(top)))
    assert 0.77 < carom.measures.packing_fraction(sol, region=region) < 0.88
    assert 3.0 < z[inner].mean() < 4.2
    np.testing.assert_allclose(carom.measures.fabric(sol), 0.5 * np.eye(2), atol=0.1)


@pytest.mark.slow
def test_what_rests_in_a_box_stays_where_it_is(box):
    system, sol = box
    start = carom.State(sol.q[-1], np.zeros_like(sol.v[-1]))
    tight = carom.MoreauMidpoint(solver=carom.AcceleratedGaussSeidel(tol=1e-6, max_iter=2000))
    later = carom.simulate(system, start, tight, t1=200.0, h=0.02, save_every=1000)
    assert later.stats["unsolved"] == 0
    assert np.abs((later.q - start.q).reshape(-1, 3)[:, :2]).max() < 2e-3 * 2.0  # 10 000 steps, diameters of 2


@pytest.mark.slow
def test_a_heap_is_steeper_with_more_friction():
    """Angles of triangles with the same mean height and the same median distance from their middle."""
    angles = []
    for friction in (0.1, 0.8):
        heap = carom.models.heap(120, columns=6, friction=friction)
        sol = carom.simulate(*heap, METHOD, t1=30.0, h=0.02, save_every=500)
        x, y = sol.q[-1].reshape(-1, 3)[:, :2].T
        half = np.median(np.abs(x - np.median(x))) / (1 - np.sqrt(0.5))
        angles.append(np.arctan(3 * np.mean(y - y.min()) / half))
    assert angles[1] > 3 * angles[0]
