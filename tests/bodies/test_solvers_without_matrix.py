"""Solvers of many contacts without a matrix: what they find, how soon, and that it stays found."""

import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.solvers import kernels
from carom.solvers.body_directions import Blocks, BodyDirections, Colours, Side
from carom.solvers.body_sweeps import BodySweeps
from carom.solvers.closed_contacts import Closed
from carom.solvers.contact_laws import Laws
from carom.solvers.contact_problem import contact_problem

BODIES = 20
EXPECTED = pytest.mark.filterwarnings("ignore:.*(not solved to tol|penetration|overlap)")  # of a pile that fell


def chain(closed):
    """A chain of bodies on a line, its even and its odd contacts each a colour, of which some are closed."""
    a = np.concatenate([np.arange(0, BODIES - 1, 2), np.arange(1, BODIES - 1, 2)])
    ones = jnp.ones(a.size)
    sides = (Side(jnp.asarray(a), [[-ones]]), Side(jnp.asarray(a + 1), [[ones]]))
    even = BODIES // 2
    return Blocks(sides, Colours(jnp.array([0, even]), (even, even))), jnp.asarray(np.isin(np.arange(a.size), closed))


@pytest.mark.parametrize("closed", [[], [0], [3, 9, 10, 18], range(19)])
def test_closed_contacts_are_brought_together_and_taken_back(closed):
    blocks, active = chain(closed)
    count, W = blocks.count, BodyDirections((blocks,), BODIES)
    data = {"c": jnp.ones(count), "active": active, "friction": jnp.zeros(count), "limits": jnp.zeros((0, 2))}
    problem = contact_problem(W, W.over(jnp.asarray(0.5)), Laws([(count, 0)]), **data)
    P = jnp.arange(1.0, 1.0 + count)
    group = Closed.of(W, 0, problem, slice(0, count), jnp.ones((BODIES, 1)))
    number = np.asarray(group.row)[: int(group.used), 0]
    assert sorted(number[number < count].tolist()) == sorted(closed)
    assert all(len({int(i) >= BODIES // 2 for i in block[block < count]}) == 1 for block in number)
    there = group.scattered(group.gathered(P), jnp.zeros(count))
    np.testing.assert_array_equal(there, np.where(active, P, 0.0))


def rubbing(closed):
    """Rounds over a chain of bodies with random directions and friction, where most contacts are closed."""
    rng, (blocks, active) = np.random.default_rng(3), chain([*range(6), *range(8, 19)])
    sides = [Side(side.body, [list(jnp.asarray(rng.normal(size=(3, 19)))) for _ in range(2)]) for side in blocks.sides]
    W = BodyDirections((Blocks(tuple(sides), blocks.colours),), BODIES)
    data = {"c": jnp.asarray(rng.normal(size=38)), "active": active, "friction": 0.5 * jnp.ones(19)}
    problem = contact_problem(W, W.over(jnp.asarray(0.5)), Laws([(19, 1)]), limits=jnp.zeros((0, 2)), **data)
    return jax.jit(lambda P: _rounds(BodySweeps.of(problem, W, W.over(jnp.asarray(0.5)).masses, closed), P))


def _rounds(sweeps, P):
    x = old = sweeps.start(P)
    x, old = jax.lax.fori_loop(0, 3, lambda _, at: sweeps.sweep(*at, jnp.asarray(0.3))[:2], (x, old))
    x, _, *products = sweeps.round(x, old, jnp.asarray(0.2), old[1], 0.4)
    x = sweeps.fresh(x)
    return sweeps.impulses(x), x[1], sweeps.residual(x), *sweeps.pushed(x), *products


def test_kernels_of_a_gpu_find_what_other_devices_find(monkeypatch):
    P = jnp.linspace(0.0, 1.0, 38)
    expected = rubbing(Closed)(P)
    monkeypatch.setattr(kernels, "_PLATFORM", "cpu")  # interpreted there
    monkeypatch.setattr(kernels, "_PLACES", 4)
    for found, wanted in zip(rubbing(kernels.Fused)(P), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    assert np.count_nonzero(np.asarray(expected[0])) > 12


def test_kernels_are_taken_by_the_platform_a_program_is_compiled_for(monkeypatch):
    monkeypatch.setattr(kernels, "_at_hand", lambda: True)
    taken = lambda closed: jnp.asarray(closed is kernels.Fused)  # noqa: E731
    assert not kernels.fitting(taken)
    monkeypatch.setattr(kernels, "_PLATFORM", "cpu")
    assert kernels.fitting(taken)


@pytest.mark.slow
def test_kernels_serve_the_lanes_of_a_batch(monkeypatch):
    monkeypatch.setattr(kernels, "_PLATFORM", "cpu")
    monkeypatch.setattr(kernels, "_PLACES", 4)
    P = jnp.stack([jnp.zeros(38), jnp.linspace(0.0, 1.0, 38)])
    lanes, single = jax.vmap(rubbing(kernels.Fused))(P), rubbing(Closed)
    for k in range(2):
        for found, wanted in zip(lanes, single(P[k]), strict=True):
            np.testing.assert_allclose(found[k], wanted, rtol=1e-12, atol=1e-13)


def test_no_lists_of_a_run_stay_in_memory_when_its_solution_is_gone():
    method = carom.MoreauMidpoint(solver=carom.AcceleratedGaussSeidel())
    sol = carom.simulate(*carom.models.disks_in_box(53), method, t1=0.02, h=0.02)
    of_walls = sol.carry.pairs.force[1].shape
    assert of_walls == (2, 3 * 53)
    del sol
    gc.collect()
    assert not any(x.shape == of_walls for x in jax.live_arrays())


@pytest.fixture(scope="module")
def settled():
    """Disks that fell into a box."""
    system, state = carom.models.disks_in_box(60, width=24.0)
    method = carom.MoreauMidpoint(solver=carom.AcceleratedGaussSeidel(tol=1e-6, max_iter=3000))
    end = carom.simulate(system, state, method, t1=16.0, h=0.02, save_every=800).state
    return system, carom.State(end.q, end.v)


def one_step(settled, solver):
    """A step that starts without impulses."""
    return carom.simulate(*settled, carom.MoreauMidpoint(solver=solver), t1=0.02, h=0.02)


@pytest.mark.slow
@EXPECTED
def test_a_pile_is_solved_within_200_sweeps_from_a_cold_start(settled):
    sol = one_step(settled, carom.AcceleratedGaussSeidel(tol=1e-4, max_iter=3000))
    assert sol.account.extra["contacts"][-1] > 80
    assert sol.stats["unsolved"] == 0
    assert sol.stats["iterations"] <= 200


@pytest.mark.slow
@EXPECTED
def test_gradient_steps_and_sweeps_find_the_same_motion(settled):
    sweeps = one_step(settled, carom.AcceleratedGaussSeidel(tol=1e-10, max_iter=3000))
    steps = one_step(settled, carom.APGD(tol=1e-10, max_iter=20_000))
    assert sweeps.stats["unsolved"] == steps.stats["unsolved"] == 0
    np.testing.assert_allclose(steps.v[-1], sweeps.v[-1], atol=1e-8)
