"""The Hausdorff distance of filled-in graphs [Acary2012 (20)]."""

import time

import numpy as np
import pytest

from carom.measures import filled_graph, graph_distance, grid_norm


def test_two_steps_shifted_in_time_are_as_far_apart_as_the_shift():
    step = lambda t: filled_graph([0.0, t, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0])
    assert graph_distance(step(0.4), step(0.47)) == pytest.approx(0.07, abs=1e-15)


def test_the_largest_distance_may_lie_inside_a_segment():
    roof = filled_graph([0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0])
    pillars = np.array([[0.0, 0.0], [0.0, 9.0], [1.0, 9.0], [1.0, 0.0]])
    ground = np.array([[0.0, 0.0], [0.0, 5.0], [0.5, 5.0], [1.0, 5.0], [1.0, 0.0]])
    assert graph_distance(roof, ground) == pytest.approx(5.0, abs=1e-14)
    assert graph_distance(pillars, ground) == pytest.approx(4.0, abs=1e-14)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_it_agrees_with_brute_force_in_any_dimension(dimension):
    rng = np.random.default_rng(dimension)
    graphs = []
    for rows in (6, 9):
        t = np.sort(rng.random(rows))
        graphs.append(filled_graph(t, rng.normal(size=(rows, dimension)), rng.normal(size=(rows, dimension))))
    found = graph_distance(*graphs)
    assert found == pytest.approx(brute(*graphs), abs=2e-2)
    assert found >= brute(*graphs) - 2e-2


def brute(a, b, n=60):
    dense = [np.concatenate([p + np.linspace(0, 1, n)[:, None] * (r - p) for p, r in zip(g, g[1:])]) for g in (a, b)]
    gaps = [np.abs(dense[0] - y).max(axis=1) for y in dense[1]]
    from_a = np.min(gaps, axis=0).max()
    return max(from_a, max(g.min() for g in gaps))


def test_a_hundred_thousand_points_take_seconds():
    t = np.linspace(0.0, 5.0, 100_000)
    x = np.sign(np.sin(5 * t)) * np.exp(-0.3 * t) + 0.1 * t
    started = time.perf_counter()
    found = graph_distance(filled_graph(t, x), filled_graph(t, x + 1e-3 * np.cos(90 * t)))
    assert time.perf_counter() - started < 20.0
    assert found == pytest.approx(1e-3, rel=0.05)


def test_grid_norms_are_those_of_21():
    error = np.array([0.0, 3.0, -4.0])
    assert grid_norm(error, 0.1, 1) == pytest.approx(0.7)
    assert grid_norm(error, 0.1, 2) == pytest.approx(2.5**0.5)
    assert grid_norm(error, 0.1, np.inf) == 4.0


def test_graphs_of_different_dimension_are_refused():
    with pytest.raises(ValueError, match="two graphs of one dimension"):
        graph_distance(np.zeros((3, 2)), np.zeros((3, 3)))


def test_times_that_decrease_are_refused():
    with pytest.raises(ValueError, match="times must not decrease"):
        filled_graph([0.0, 1.0, 0.5], [0.0, 0.0, 0.0])
