"""Solvers of the contact problem without any dynamics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.solvers.contact_laws import Laws
from carom.solvers.contact_problem import contact_problem
from carom.solvers.directions import DenseDirections

SOLVERS = {"newton": carom.SemismoothNewton(), "PSOR": carom.PSOR(), "PJOR": carom.PJOR()}
NEWTON_SLOW = [pytest.param("newton", marks=pytest.mark.slow), "PSOR", "PJOR"]


def problem_of(rng, laws, dof=6, active=None, friction=0.4, redundant=False):
    """Random directions and masses; `redundant` repeats the first half of the contacts."""
    n = laws.contacts
    W = rng.normal(size=(laws.rows, dof))
    if redundant:
        half = n // 2
        W[half : 2 * half] = W[:half]
        W[n + half : n + 2 * half] = W[n : n + half]
    c = rng.normal(size=laws.rows)
    if redundant:
        c[half : 2 * half], c[n + half : n + 2 * half] = c[:half], c[n : n + half]
    return contact_problem(
        DenseDirections(jnp.asarray(W)),
        DenseDirections(jnp.asarray(W / rng.uniform(0.5, 2.0, dof))),
        laws,
        c=jnp.asarray(c),
        active=jnp.ones(n, bool) if active is None else jnp.asarray(active),
        friction=jnp.full(n, friction),
        limits=jnp.tile(jnp.array([[-0.3, 0.1]]), (laws.elements, 1)),
    )


@pytest.fixture(scope="module")
def solve():
    return {name: jax.jit(lambda problem, s=s: s(problem, jnp.zeros(problem.c.size))) for name, s in SOLVERS.items()}


@pytest.mark.parametrize("seed", range(5))
def test_all_solvers_find_the_same_impulses(solve, seed):
    problem = problem_of(np.random.default_rng(seed), Laws([(2, 1)], [(1, 1)], 1), friction=0.3)
    results = {name: solve[name](problem) for name in SOLVERS}
    for result in results.values():
        assert int(result.status) == 0
        np.testing.assert_allclose(result.P, results["newton"].P, atol=1e-9)


@pytest.mark.parametrize("name", NEWTON_SLOW)
def test_normal_impulses_and_velocities_are_complementary(solve, name):
    for seed in range(5):
        problem = problem_of(np.random.default_rng(seed), Laws([(4, 0)]))
        P = np.asarray(solve[name](problem).P)
        velocity = np.asarray(problem.velocity(P))
        assert P.min() >= 0
        assert velocity.min() > -1e-9
        assert abs(P @ velocity) < 1e-9


@pytest.mark.parametrize("name", NEWTON_SLOW)
def test_friction_in_a_plane_opposes_the_slip(solve, name):
    problem = problem_of(np.random.default_rng(3), Laws([(2, 2)]), friction=0.1)
    P = np.asarray(solve[name](problem).P)
    velocity = np.asarray(problem.velocity(P))
    slip, force = velocity[2:].reshape(2, 2), P[2:].reshape(2, 2)
    assert (np.linalg.norm(force, axis=1) <= 0.1 * P[:2] + 1e-12).all()
    for gamma, pull in zip(slip, force):
        if np.linalg.norm(gamma) > 1e-9:
            assert pull @ gamma == pytest.approx(-np.linalg.norm(pull) * np.linalg.norm(gamma), rel=1e-8)


@pytest.mark.parametrize("name", SOLVERS)
def test_redundant_contacts_are_solved(solve, name):
    """Doubled contacts make G singular; velocities are unique though the impulses are not."""
    problem = problem_of(np.random.default_rng(5), Laws([(4, 1)]), redundant=True, friction=0.2)
    assert np.linalg.matrix_rank(np.asarray(problem.G.dense())) < problem.laws.rows
    result = solve[name](problem)
    assert float(result.residual) <= 1e-12
    reference = solve["PSOR"](problem)
    np.testing.assert_allclose(problem.velocity(result.P), problem.velocity(reference.P), atol=1e-9)


def test_open_contacts_get_no_impulse(solve):
    problem = problem_of(np.random.default_rng(0), Laws([(4, 1)]), active=[False, True, False, True])
    P = np.asarray(solve["newton"](problem).P)
    assert (P[[0, 2, 4, 6]] == 0).all()


@pytest.mark.parametrize("name", ["newton", "PSOR"])
def test_a_body_that_walls_squeeze_has_no_solution(name):
    """However large impulses grow, and however small defects are beside them."""
    floor, ceiling = (lambda q: q[0]), (lambda t, q: 3.2 - t - q[0])
    system = carom.System(1.0, contacts=carom.Contacts(lambda t, q: jnp.stack([floor(q), ceiling(t, q)])))
    with pytest.raises(carom.SimulationError, match="squeeze has no solution") as error:
        carom.simulate(system, carom.State([0.0], [0.0]), carom.MoreauMidpoint(solver=SOLVERS[name]), t1=4.0, h=0.25)
    assert error.value.solution.t[-1] == pytest.approx(3.25)


def test_a_spring_that_is_never_slack_presses_a_body_at_rest_against_a_stop():
    """Nothing moves, and impulses are all there is."""
    spring = carom.FrictionElements(lambda _q, v: v, limit=[[1.0, 3.0]])
    system = carom.System(1.0, contacts=carom.Contacts(lambda q: -q[:1]), friction=spring)
    sol = carom.simulate(system, carom.State([0.0], [0.0]), carom.MoreauMidpoint(), t1=0.4, h=0.1)
    assert np.abs(sol.v).max() == 0
    np.testing.assert_allclose(sol.force[1:], [[1.0, 1.0]] * 4)


@pytest.mark.slow
def test_residual_does_not_change_with_the_unit_of_impulse():
    problem = problem_of(np.random.default_rng(1), Laws([(2, 1)], bilateral=1))
    P = jnp.asarray(np.random.default_rng(2).normal(size=5))
    small = eqx_scaled(problem, 1e-9)
    first = problem.residual(P, problem.equation(P))
    assert float(small.residual(1e-9 * P, small.equation(1e-9 * P))) == pytest.approx(float(first), rel=1e-12)


def eqx_scaled(problem, factor):
    import equinox as eqx

    return eqx.tree_at(lambda p: (p.c, p.limits), problem, (factor * problem.c, factor * problem.limits))


def test_one_sided_friction_element_is_a_one_way_clutch():
    """A wheel that may only turn forward: the clutch holds it against a torque, and lets it run with one."""
    for torque, speed in ((-2.0, 0.0), (2.0, 2.0)):
        system = carom.System(
            1.0,
            forces={"exciting": lambda _t, _q, _v, p: p * jnp.ones(1)},
            friction=carom.FrictionElements(lambda _q, v: v, limit=[[0.0, np.inf]]),
            params=torque,
        )
        sol = carom.simulate(system, carom.State([0.0], [0.0]), carom.MoreauMidpoint(), t1=1.0, h=0.1)
        assert sol.v[-1, 0] == pytest.approx(speed, abs=1e-14)
        assert sol.force[-1, 0] == pytest.approx(max(-torque, 0.0), abs=1e-13)


def test_prestressed_spring_holds_until_its_limits():
    """Force between -1 and 3: a pull of 2 is held, a pull of 4 leaves a net force of 1, a push of 2 one of -1."""
    speeds = []
    for force in (-2.0, 4.0, 2.0):
        system = carom.System(
            1.0,
            forces={"exciting": lambda _t, _q, _v, p: p * jnp.ones(1)},
            friction=carom.FrictionElements(lambda _q, v: v, limit=[[-3.0, 1.0]]),
            params=force,
        )
        sol = carom.simulate(system, carom.State([0.0], [0.0]), carom.MoreauMidpoint(), t1=1.0, h=0.1)
        speeds.append(sol.v[-1, 0])
    np.testing.assert_allclose(speeds, [-1.0, 1.0, 0.0], atol=1e-14)
