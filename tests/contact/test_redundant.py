"""Contacts that depend on each other: at rest, landing, stacked, and pressed against each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import carom
from carom.solvers.contact_laws import Laws
from carom.solvers.contact_problem import contact_problem
from carom.solvers.directions import DenseDirections
from carom.solvers.self_stress import self_stress

from .boxes import GRAVITY, Boxes, stacked, thrown

BOX = Boxes(jnp.array([0.5, 0.3, 0.2]))
LEGS = np.array([[0.5, 0.5], [-0.5, 0.5], [0.5, -0.5], [-0.5, -0.5]])


def plank(supports):
    x = jnp.linspace(-1.0, 1.0, supports)
    contacts = carom.Contacts(
        lambda q: q[1] + x * q[2],
        slip_velocity=lambda q, v: v[0] + 0.2 * v[2] * jnp.ones(supports),
        friction=0.4,
    )
    return carom.System([1.0, 1.0, 0.3], lambda q: GRAVITY * q[1], contacts=contacts), carom.State([0.0] * 3, [0.0] * 3)


def table():
    contacts = carom.Contacts(
        lambda q: q[2] + LEGS[:, 1] * q[3] - LEGS[:, 0] * q[4],
        slip_velocity=lambda q, v: jnp.stack([v[0] - LEGS[:, 1] * v[5], v[1] + LEGS[:, 0] * v[5]], axis=1),
        friction=0.4,
    )
    system = carom.System([1.0, 1.0, 1.0, 0.2, 0.2, 0.3], lambda q: GRAVITY * q[2], contacts=contacts)
    return system, carom.State([0.0] * 6, [0.0] * 6)


def carried(sol, contacts):
    """The part of the weight that the supports carry, in every row but the first."""
    return sol.force[1:, :contacts].sum(axis=1) / GRAVITY


def assert_stays(sol, contacts):
    assert np.abs(sol.q - sol.q[0]).max() < 1e-12
    np.testing.assert_allclose(carried(sol, contacts), 1.0, rtol=1e-9)


@pytest.mark.slow
def test_a_plank_rests_on_forty_supports():
    assert_stays(carom.simulate(*plank(40), carom.MoreauMidpoint(), t1=2.0, h=1e-3, save_every=1000), 40)


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(carom.MoreauMidpoint(), id="midpoint"),
        pytest.param(carom.MoreauTheta(), id="theta", marks=pytest.mark.slow),
    ],
)
def test_a_table_on_four_rough_legs_stays_where_it_is(method):
    assert_stays(carom.simulate(*table(), method, t1=10.0, h=1e-3, save_every=1000), 4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:active constraints were redundant")
@pytest.mark.parametrize("supports", [6, 11, 40])
def test_all_methods_keep_planks_and_tables(supports):
    for method in (carom.MoreauMidpoint(), carom.MoreauTheta()):
        assert_stays(carom.simulate(*plank(supports), method, t1=10.0, h=1e-3, save_every=1000), supports)
    assert_stays(carom.solve(*plank(supports), t1=10.0), supports)
    assert_stays(carom.solve(*table(), t1=10.0), 4)


def assert_comes_to_rest(system, start, contacts, weight, since, rest=10.0):
    sol = carom.simulate(system, start, carom.MoreauMidpoint(), t1=since + rest, h=1e-3, save_every=100)
    late = sol.q[sol.t >= since]
    assert np.abs(sol.v[-1]).max() < 1e-8
    assert np.abs(late - late[0]).max() < 1e-6, "a thousand steps at rest for every second"
    assert sol.force[-1, :contacts].sum() / (GRAVITY * weight) == pytest.approx(1.0, abs=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "restitution"), [(0, 0.0), (1, 0.3)])
def test_a_box_thrown_at_random_comes_to_rest_on_an_edge_or_face(seed, restitution):
    assert_comes_to_rest(BOX.system(restitution), thrown(seed), 8, 1, since=6.0, rest=2.0)


@pytest.mark.slow
@pytest.mark.parametrize("restitution", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(20))
def test_more_boxes_thrown_at_random_come_to_rest(seed, restitution):
    assert_comes_to_rest(BOX.system(restitution), thrown(seed), 8, 1, since=6.0)


HALF = jnp.array([0.5, 0.4, 0.1])


@pytest.mark.slow
def test_a_stack_of_two_boxes_comes_to_rest():
    assert_comes_to_rest(Boxes(HALF, 2).system(0.3, 0.5), stacked(HALF, 2), 4, 2, since=1.0, rest=1.0)


@pytest.mark.slow
def test_a_stack_of_three_boxes_rests_for_1e4_steps():
    assert_comes_to_rest(Boxes(HALF, 3).system(0.3, 0.5), stacked(HALF, 3), 4, 3, since=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("restitution", [0.0, 0.3])
def test_a_stack_of_ten_boxes_comes_to_rest(restitution):
    assert_comes_to_rest(Boxes(HALF, 10).system(restitution, 0.5), stacked(HALF, 10), 4, 10, since=2.0)


@pytest.mark.slow
def test_a_bead_between_two_walls_is_not_squeezed():
    radius = lambda q: jnp.hypot(q[0], q[1])
    contacts = carom.Contacts(
        lambda q: jnp.stack([1 - radius(q), radius(q) - 1]),
        slip_velocity=lambda q, v: jnp.stack([(q[0] * v[1] - q[1] * v[0]) / radius(q)] * 2),
        friction=0.2,
    )
    hoop = carom.System(1.0, lambda q: GRAVITY * q[1], contacts=contacts)

    def angle(_, y):
        normal = abs(y[1] ** 2 - GRAVITY * np.sin(y[0]))
        return [y[1], -GRAVITY * np.cos(y[0]) - 0.2 * normal * (1 if y[1] > 0 else -1)]

    exact = solve_ivp(angle, (0, 0.9), [1.0, 0.0], rtol=1e-10, atol=1e-12, max_step=1e-3).y[0, -1]
    sol = carom.simulate(hoop, carom.State([np.cos(1), np.sin(1)], [0.0, 0.0]), carom.MoreauMidpoint(), t1=0.9, h=1e-3)
    assert np.unwrap(np.arctan2(sol.q[:, 1], sol.q[:, 0]))[-1] == pytest.approx(exact, abs=5e-5)
    assert np.min(sol.force[1:, :2], axis=1).max() < 1e-9, "only one wall presses at a time"


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_self_stress_is_found_exactly_where_normals_can_balance(seed):
    rng = np.random.default_rng(seed)
    normals = rng.normal(size=(5, 2))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    angles = np.sort(np.arctan2(normals[:, 1], normals[:, 0]))
    widest = np.max(np.diff(np.append(angles, angles[0] + 2 * np.pi)))
    y = np.asarray(jax.jit(self_stress)(jnp.asarray(normals @ normals.T), jnp.ones(5, bool)))
    assert (y >= 0).all()
    assert np.abs(y @ normals).max() < 1e-7
    if widest > np.pi + 0.02:
        assert not y.any(), "all normals on one side cannot balance"
    if widest < np.pi - 0.02:
        assert y.any(), "normals all around can"


def touching(rng, laws):
    """A rigid body that touches the world in random points, all of which it can leave upwards; redundant throughout."""
    frames = []
    for _ in range(laws.contacts):
        normal = np.array([0, 0, 1]) + 0.4 * rng.normal(size=3)
        normal /= np.linalg.norm(normal)
        across = np.linalg.svd(normal[None])[2][1 : 1 + max(laws.directions)]
        frames.append(np.concatenate([normal[None], across]))
    at = rng.uniform(-1, 1, (laws.contacts, 3)) * [1, 1, 0.2]
    rows = np.array([[[*n, *np.cross(r, n)] for n in frame] for r, frame in zip(at, frames)])
    W = np.concatenate([rows[:, 0], rows[:, 1:].reshape(-1, 6)])
    mass = np.r_[np.ones(3), rng.uniform(0.1, 0.5, 3)]
    return contact_problem(
        DenseDirections(jnp.asarray(W)),
        DenseDirections(jnp.asarray(W / mass)),
        laws,
        c=jnp.asarray(W @ (rng.normal(size=6) - [0, 0, 3, 0, 0, 0])),
        active=jnp.asarray(rng.random(laws.contacts) < 0.8),
        friction=jnp.asarray(rng.choice([0.0, 0.3, 0.6], laws.contacts)),
        limits=jnp.zeros((0, 2)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("directions", [0, 1, 2])
def test_random_redundant_contacts_fulfil_their_laws(directions):
    laws = Laws([(8, directions)])
    solve = jax.jit(lambda problem: carom.SemismoothNewton()(problem, jnp.zeros(laws.rows)))
    residuals = [float(solve(touching(np.random.default_rng(seed), laws)).residual) for seed in range(40)]
    assert max(residuals) < 1e-12


def test_a_solver_without_rescue_ends_the_run_where_newton_does_not_solve_the_problem_alone():
    method = carom.MoreauMidpoint(carom.SemismoothNewton(rescue=False))
    with pytest.raises(carom.SimulationError, match="does not solve the contact problem alone") as error:
        carom.simulate(*carom.models.bouncing_rod(), method, t1=1.0, h=2e-3)
    assert error.value.status.name == "NEEDS_RESCUE"
    assert 0.4 < error.value.solution.t[-1] < 0.43  # both ends lie on the floor


@pytest.mark.slow
def test_a_run_that_goes_on_with_the_rescue_is_the_run_that_had_it_from_the_start():
    rod, state = carom.models.bouncing_rod()
    alone = carom.simulate(rod, state, carom.MoreauMidpoint(), t1=1.0, h=2e-3)
    assert alone.stats["traces"] == 2
    among = carom.simulate_batch(rod, [state], carom.MoreauMidpoint(), t1=1.0, h=2e-3)[0]  # lanes have it at once
    np.testing.assert_allclose(alone.q, among.q, atol=1e-12)
    again = carom.simulate(rod, state, carom.MoreauMidpoint(), t1=1.0, h=2e-3)
    assert again.stats["traces"] == 0
    np.testing.assert_array_equal(again.q, alone.q)
