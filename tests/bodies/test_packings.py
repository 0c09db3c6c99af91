"""Measures of packings, on lattices and piles that are known exactly."""

import numpy as np
import pytest

import carom
from carom.pairs import Capacity
from carom.reports import with_forces
from carom.running.run import finish, prepare
from carom.systems import first_lists

COUNT = 16
GRAINS = carom.Bodies(COUNT, dof=3)
METHOD = carom.MoreauMidpoint(solver=carom.AcceleratedGaussSeidel(tol=1e-12, max_iter=100_000))
ALL = ((0.0, 0.0), (8.0, 8.0))


def weight(q, p):
    return p * q[1]


@pytest.fixture(autouse=True, scope="module")
def _one_program_for_all():
    """Lists have room for whatever these tests bring."""
    usual, first_lists.tight = first_lists.tight, lambda pairs: Capacity(400, 120, (10,) * 7)
    yield
    first_lists.tight = usual


def packing(rise, shift, gravity=0.0, room=0.0):
    """Four rows of four disks of radius 1 in a periodic box, `rise` above each other, every other one shifted.

    A run that begins there: its first row is all that measures need.
    """
    row, column = np.divmod(np.arange(COUNT), 4)
    q = np.column_stack([2.0 * column + shift * (row % 2) + 1.0, rise * row + 1.0, np.zeros(COUNT)])
    search = carom.CellList(2.0, 0.2, box=carom.Periodic([8.0, 4.0 * rise + room]))
    contacts = [
        carom.Contacts.between(GRAINS, carom.shapes.disk, data=1.0, search=search, friction=0.5),
        carom.Contacts.each(GRAINS, carom.shapes.half_plane((0, 1)), data=1.0, friction=0.5),
    ]
    system = carom.System(1.0, GRAINS.each(weight), contacts=contacts, params=gravity)
    return prepare(system, carom.State(q.ravel(), np.zeros(q.size)), METHOD, 0.01, carom.Constant(0.01))


@pytest.fixture(scope="module")
def hexagonal():
    return packing(np.sqrt(3.0), 1.0).solution()


@pytest.fixture(scope="module")
def square():
    return packing(2.0, 0.0).solution()


def test_disks_of_a_hexagonal_packing_touch_six_others_and_of_a_square_one_four(hexagonal, square):
    floor = np.arange(COUNT) < 4
    np.testing.assert_array_equal(carom.measures.coordination(hexagonal, gap=1e-9), 6 + floor)
    np.testing.assert_array_equal(carom.measures.coordination(square, gap=1e-9), 4 + floor)
    assert len(carom.measures.touching(square, gap=1e-9).inner.a) == 2 * COUNT


def test_packing_fractions_of_lattices(hexagonal, square):
    assert carom.measures.packing_fraction(hexagonal) == pytest.approx(np.pi / np.sqrt(12))
    assert carom.measures.packing_fraction(square) == pytest.approx(np.pi / 4)
    assert carom.measures.packing_fraction(square, region=ALL) == pytest.approx(np.pi / 4)
    quarter = ((1.0, 1.0), (2.0, 2.0))  # from the centre of a disk to the corner of four
    assert carom.measures.packing_fraction(square, region=quarter) == pytest.approx(np.pi / 4)
    strip = ((0.5, 1.0), (1.5, 3.0))  # half a disk and half of the one above, cut at x = -1/2 and 1/2
    assert carom.measures.packing_fraction(square, region=strip) == pytest.approx(np.sqrt(3) / 4 + np.pi / 6)


def test_half_a_sphere_is_found_between_planes():
    from carom.measures.packings import _cut_spheres

    r, far = np.array([0.5, 2.0]), np.full((2, 3), 9.0)
    whole = 4 * np.pi / 3 * r**3
    np.testing.assert_allclose(_cut_spheres(-far, far, r), whole)
    half = _cut_spheres(-far * [1, 1, 0], far, r)
    np.testing.assert_allclose(half, whole / 2, rtol=1e-10)
    np.testing.assert_allclose(_cut_spheres(-far * [1, 0, 0], far, r), whole / 4, rtol=1e-6)
    cap = _cut_spheres(np.array([[-9, -9, 0.25], [-9, -9, 1.0]]), far, r)
    np.testing.assert_allclose(cap, np.pi * (r / 2) ** 2 * (r - r / 6), rtol=1e-10)


def test_fabric_of_a_lattice_is_isotropic_and_of_a_row_it_is_not(hexagonal, square):
    for sol in (hexagonal, square):
        np.testing.assert_allclose(carom.measures.fabric(sol, gap=1e-9), 0.5 * np.eye(2), atol=1e-12)
    wide = packing(2.15, 0.0).solution()
    np.testing.assert_allclose(carom.measures.fabric(wide, gap=1e-9), np.diag([1.0, 0.0]), atol=1e-12)


@pytest.mark.slow
def test_columns_of_disks_carry_their_weight_down_to_the_floor():
    """There is room above, so that no row carries another across the period; overlaps are above rounding."""
    sol = finish(packing(2.0 - 5e-12, 0.0, gravity=3.0, room=1.0), None, False, None)
    forces = carom.measures.contact_forces(sol)
    upright = (np.abs(forces.normal[:, 1]) > 0.5) & (forces.b >= 0)
    carried = dict(zip(forces.b[upright].tolist(), (-forces.force[upright, 1]).tolist()))
    assert carried == pytest.approx({i: 3.0 * (4 - i // 4) for i in range(4, COUNT)}, abs=1e-9)
    floor = forces.b == -1
    np.testing.assert_allclose(forces.force[floor], [[0.0, 12.0]] * 4, atol=1e-9)
    np.testing.assert_allclose(forces.point[floor][:, 1], 0.0, atol=1e-5)
    assert set(forces.strong.a[forces.strong.b == -1]) == {0, 1, 2, 3}
    drawn = with_forces(sol)(sol.q, {}).shapes
    ends = sum(np.isfinite(shape.points[-1]).all(axis=1).sum() for shape in drawn if shape.colour == "red")
    assert ends == 2 * len(forces.strong.a)


def test_lacey_s_index_tells_separate_kinds_from_mixed_ones(square):
    x = square.q[0].reshape(-1, 3)
    assert carom.measures.mixing_index(square, kind=x[:, 0] < 4.0, size=4.0) == pytest.approx(0.0)
    chequered = (np.arange(COUNT) % 4 + np.arange(COUNT) // 4) % 2 == 0
    assert carom.measures.mixing_index(square, kind=chequered, size=4.0) == pytest.approx(1 / (1 - 4 / 16))


def test_measures_refuse_what_they_cannot_measure(square):
    with pytest.raises(ValueError, match="kind must be True or False for each of the 16 bodies"):
        carom.measures.mixing_index(square, kind=np.ones(COUNT, bool), size=4.0)
    with pytest.raises(ValueError, match="region must be two corners of a box, 2 numbers each"):
        carom.measures.packing_fraction(square, region=((1.0, 1.0), (0.0, 2.0)))
    with pytest.raises(ValueError, match="t must lie between 0 and 0,"):
        carom.measures.coordination(square, t=3.0)
    ball = prepare(*carom.models.bouncing_ball(), carom.MoreauMidpoint(), 0.01, carom.Constant(0.01)).solution()
    with pytest.raises(ValueError, match="needs contacts of bodies, made by Contacts.between"):
        carom.measures.fabric(ball)
