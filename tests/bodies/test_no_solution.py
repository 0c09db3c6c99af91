"""Bodies of which no step has a solution: squeezed between walls, or with a shape that has no slope."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.pairs import Capacity
from carom.systems import first_lists

COUNT = 4
GRAINS = carom.Bodies(COUNT, dof=3)


@pytest.fixture(autouse=True)
def _one_program_for_all(monkeypatch):
    """Lists have room for whatever these tests bring."""
    monkeypatch.setattr(first_lists, "tight", lambda pairs: Capacity(60, 20, (4,) * 4))


def press(t):
    """It comes down on a disk at t = 1.2 and stops at t = 2."""
    return jnp.array([0.0, 3.2 - jnp.minimum(t, 2.0)])


@pytest.mark.parametrize(
    "solver",
    [carom.AcceleratedGaussSeidel(), pytest.param(carom.APGD(max_iter=1000), marks=pytest.mark.slow)],
)
def test_a_squeezed_disk_is_told_and_spoils_no_other(solver):
    """Three disks elsewhere fall, slide and come to roll with two thirds of their speed, before, while and after."""
    contacts = [
        carom.Contacts.between(GRAINS, carom.shapes.disk, data=1.0, search=carom.CellList(2.0, 0.3), friction=0.3),
        carom.Contacts.each(GRAINS, carom.shapes.half_plane((0, 1)), data=1.0, friction=0.3),
        carom.Contacts.each(GRAINS[:1], carom.shapes.plate((0, -1), press), data=1.0, friction=0.3),
    ]
    system = carom.System(GRAINS.mass(1.0, 1.0, 0.5), GRAINS.each(lambda q: q[1]), contacts=contacts)
    q = np.array([(0, 1, 0), (20, 1.2, 0), (23, 1.5, 0), (26, 2.5, 0)], float)
    v = np.array([(0, 0, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0)], float)
    method = carom.MoreauMidpoint(solver=solver)
    with pytest.warns(UserWarning, match="40 of 200 steps were not solved .*squeeze have no solution"):
        sol = carom.simulate(system, carom.State(q.ravel(), v.ravel()), method, t1=4.0, h=0.02)
    np.testing.assert_allclose(sol.v[-1].reshape(COUNT, 3)[1:], [[2 / 3, 0, -2 / 3]] * 3, atol=1e-3)
    np.testing.assert_allclose(sol.v[-1, :3], 0.0, atol=1e-3)
    assert sol.account.extra["velocity_defect"][-1] < 1e-4


def test_a_shape_without_a_slope_where_bodies_touch_ends_the_run():
    """Its gap is a number, its gradient is not: the contact is not open for that."""
    rough = carom.Shape(lambda a, b: jnp.hypot(*(b - a)[:2]) - 2.0 + 0.0 * jnp.sqrt(jnp.abs(b[1] - a[1])), dimension=2)
    contacts = carom.Contacts.between(GRAINS, rough, search=carom.CellList(2.0, 0.3))
    q = jnp.array([0.0, 0, 0, 2.5, 0, 0, 0, 20, 0, 9, 21, 0])
    method = carom.MoreauMidpoint(solver=carom.AcceleratedGaussSeidel())
    with pytest.raises(carom.SimulationError, match="rate of gap of bodies 0 and 1 is NaN at t = 0.5") as error:
        carom.simulate(
            carom.System(1.0, contacts=contacts), carom.State(q, jnp.zeros(12).at[0].set(1.0)), method, t1=1.0, h=0.1
        )
    assert error.value.solution.t[-1] == pytest.approx(0.5, abs=0.01)
