import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.bodies import Bodies

grains = Bodies(4, dof=3)
m = np.array([1.0, 2.0, 3.0, 4.0])
q = jnp.arange(12.0)


def test_vectors_are_cut_into_rows_and_selections_of_them():
    assert np.array_equal(grains.positions(q), np.arange(12.0).reshape(4, 3))
    assert np.array_equal(grains[1:3].positions(q), [[3, 4, 5], [6, 7, 8]])
    assert np.array_equal(grains[::-2].velocities(q), [[9, 10, 11], [3, 4, 5]])
    assert np.array_equal(grains[1:][1:][0].positions(q), [[6, 7, 8]])
    assert np.array_equal(grains[-1].positions(q), [[9, 10, 11]])
    assert [len(grains), len(grains[1:3]), grains[1:3].count] == [4, 2, 4]


def test_coordinates_may_be_more_than_velocities():
    rigid = Bodies(2, dof=6, coordinates=7)
    assert rigid.positions(jnp.zeros(14)).shape == (2, 7)
    assert rigid.velocities(jnp.zeros(12)).shape == (2, 6)


def test_masses_are_laid_out_as_velocities_are():
    assert np.array_equal(grains.mass(m, m, 0.1), np.stack([m, m, np.full(4, 0.1)], 1).ravel())


def test_energies_add_up_and_forces_stand_one_after_another():
    weight = grains.each(lambda q, m: 9.81 * m * q[1], data=m)
    assert np.allclose(weight(q), 9.81 * m @ np.arange(12.0).reshape(4, 3)[:, 1])
    assert np.allclose(jax.grad(grains[1:3].each(lambda q: q[0] ** 2 / 2))(q), [0, 0, 0, 3, 0, 0, 6, 0, 0, 0, 0, 0])
    drag = grains[2:].each(lambda t, q, v, k: -k["c"] * t * v, data={"c": 0.5})
    assert np.allclose(drag(2.0, q, q), np.where(np.arange(12) < 6, 0.0, -np.arange(12.0)))


def test_a_system_of_bodies_runs_as_one_written_out():
    p = 0.3
    by_body = carom.System(
        mass=grains.mass(m, m, 0.1),
        potential=grains.each(lambda q, m, p: p * m * q[1] + 0.5 * q[2] ** 2, data=m),
        forces={"drag": grains.each(lambda t, q, v: -0.1 * v)},
        params=p,
    )
    M = np.repeat(m, 3)
    written = carom.System(
        mass=np.where(np.arange(12) % 3 == 2, 0.1, M),
        potential=lambda q, p: p * M[1::3] @ q[1::3] + 0.5 * q[2::3] @ q[2::3],
        forces={"drag": lambda t, q, v: -0.1 * v},
        params=p,
    )
    state = carom.State(q=np.linspace(0, 1, 12), v=np.ones(12))
    ends = [
        carom.simulate(system, state, carom.ExplicitRK(carom.explicit(4)), t1=0.5, h=0.05, progress=False).q[-1]
        for system in (by_body, written)
    ]
    assert np.allclose(*ends, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Bodies(0, dof=3), "count must be a whole number of at least 1"),
        (lambda: Bodies(2, dof=1.5), "dof must be a whole number"),
        (lambda: grains.positions(jnp.zeros(11)), r"q must have 12 entries \(4 bodies with 3 coordinates each\)"),
        (lambda: grains.velocities(jnp.zeros(13)), "v must have 12 entries"),
        (lambda: grains.mass(1.0, 1.0), r"one argument per velocity of a body \(3\), got 2"),
        (lambda: grains.mass(1.0, 1.0, [1.0, 2.0]), "argument 2 must be a number or one number per body"),
        (lambda: grains.mass(1.0, -1.0, 1.0), "argument 1 must be positive"),
        (lambda: grains[:2].mass(1.0, 1.0, 1.0), "not of a selection"),
        (lambda: grains[4:], "selects none of the 4 bodies"),
        (lambda: grains.each(lambda q, m: q[0], data=np.ones(3)), r"one row per body \(4\), got shape \(3,\)"),
        (lambda: grains.each(lambda q, m: q[0]), "each: f must be a function of"),
        (lambda: grains.each(lambda q: q)(q), "must return one number per body"),
        (lambda: grains.each(lambda t, q, v: v[:2])(0.0, q, q), "must return 3 numbers per body"),
    ],
)
def test_what_does_not_fit_the_bodies_is_refused_in_a_sentence(call, message):
    with pytest.raises((TypeError, ValueError, IndexError), match=message):
        call()
