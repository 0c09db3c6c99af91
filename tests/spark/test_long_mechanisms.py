"""Long mechanisms, whose equations are factorised level by level."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.methods.spark.linking import links
from carom.papers.mechanisms import reference
from carom.solvers.levels import Cut, Factorised, levels_of


def hidden_chain(rng, count=23, width=3):
    """A matrix of small blocks that meet their neighbours only, in random order, with a part of its own."""
    level = np.append(np.repeat(np.arange(count), rng.integers(1, width + 1, count)), [count + 5] * 2)
    A = rng.normal(size=(level.size, level.size)) * (np.abs(level[:, None] - level) < 2) + 4 * np.eye(level.size)
    order = rng.permutation(level.size)
    return A[np.ix_(order, order)]


def test_levels_of_a_hidden_chain_are_found_and_solve_its_equations():
    rng = np.random.default_rng(3)
    for _ in range(2):
        A = hidden_chain(rng)
        level, b = levels_of(A != 0, np.ones(len(A))), rng.normal(size=len(A))
        apart = np.abs(level[:, None] - level)
        assert apart[A != 0].max() == 1
        assert np.bincount(level).max() <= 6
        x = Factorised.of(lambda x, A=A: jnp.asarray(A) @ x, level).solve(jnp.asarray(b))
        np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(Cut.of(jnp.asarray(A), level) @ x, b, atol=1e-9)


def chain_in_space(count):
    rng, bodies, joints = np.random.default_rng(0), [], []
    for i in range(count):
        name, before = f"b{i}", f"b{i - 1}" if i else "ground"
        bodies.append(carom.RigidBody(1.0, (0.1, 0.2, 0.25), (i + 0.5, 0.0, 0.0), name=name))
        axis = rng.normal(size=3)
        joints.append(carom.joints.revolute(before, name, at=(i, 0.0, 0.0), axis=axis, damping=0.1))
    return carom.Mechanism(bodies, joints, gravity=9.81)


def test_short_mechanisms_are_solved_as_a_whole():
    assert links(*carom.models.n_four_bar(10), 6, "shared") is None
    assert links(*chain_in_space(10), 4, "shared") is None


def twice(rods):
    return lambda q: jnp.concatenate([rods(q), rods(q)])


@pytest.mark.slow
def test_long_mechanisms_with_redundant_constraints_are_solved_as_a_whole():
    system, state = carom.models.n_four_bar(40)
    doubled = carom.System(system.mass, system.potential, constraints=twice(system.constraints.fn))
    assert links(system, state, 6, "shared") is not None
    assert links(doubled, state, 6, "shared") is None


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["shared", "full"])
def test_a_long_chain_in_space_moves_as_without_levels(strategy):
    system, state = chain_in_space(8)
    method = carom.Spark(3, newton=carom.Newton(1e-15, 60, strategy))
    runs = [carom.simulate(system, state, method, t1=0.05, h=0.01)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("carom.methods.spark.linking._LONG", 1)
        patch.setattr("carom.methods.spark.linking._WHOLE", 1e9)
        assert links(system, state, 3, strategy) is not None
        runs.append(carom.simulate(system, state, method, t1=0.05, h=0.01))
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-12)
    np.testing.assert_allclose(runs[0].v, runs[1].v, atol=1e-11)


@pytest.mark.slow
def test_forty_four_bars_pass_their_singular_position():
    n, t1 = 40, 2.0
    k = 9.81 * ((n + 1) / 2 + n) / ((n + 1) / 3 + n)
    angle = reference(lambda y: [y[1], -k * np.cos(y[0])], t1, [np.pi / 2, -1.0])[0]
    sol = carom.solve(*carom.models.n_four_bar(n), t1, rtol=1e-9)
    assert sol.method.links is not None
    np.testing.assert_allclose(sol.q[-1][:2], [np.cos(angle), np.sin(angle)], atol=1e-9)
