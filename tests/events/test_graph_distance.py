"""The Hausdorff distance of filled-in graphs [Acary2012 (20)]."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

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


@st.composite
def graphs(draw):
    """Two graphs with jumps, on a coarse grid (ties and flat pieces) or anywhere."""
    dimension = draw(st.integers(1, 3))
    entry = draw(st.sampled_from([st.integers(-2, 2).map(float), st.floats(-2, 2)]))

    def one():
        rows = draw(st.integers(1, 7))
        t = np.sort(draw(arrays(float, rows, elements=st.floats(0, 2))))
        right, left = (draw(arrays(float, (rows, dimension), elements=entry)) for _ in range(2))
        return filled_graph(t, right, left)

    return one(), one()


def sampled(graph, spacing):
    """Points of the graph, at most `spacing` apart."""
    parts = [int(np.ceil(np.abs(r - p).max() / spacing)) + 1 for p, r in zip(graph, graph[1:])]
    return np.concatenate([np.linspace(p, r, n + 1) for p, r, n in zip(graph, graph[1:], parts)])


@given(graphs())
@settings(max_examples=40, deadline=None)
def test_it_agrees_with_brute_force_in_any_dimension(pair):
    found = graph_distance(*pair)
    x, y = (sampled(graph, 0.05) for graph in pair)
    between = np.abs(x[:, None] - y).max(axis=2)
    brute = max(between.min(axis=0).max(), between.min(axis=1).max())
    assert found == pytest.approx(brute, abs=0.025 + 1e-14)  # moving to a sample costs half the spacing
    assert found == graph_distance(*pair[::-1])


@given(graphs(), st.integers(1, 5))
@settings(max_examples=10, deadline=None)
def test_it_does_not_depend_on_how_a_graph_is_cut(pair, parts):
    a, b = pair
    cut = np.concatenate([np.linspace(p, r, parts + 1)[:-1] for p, r in zip(a, a[1:])] + [a[-1:]])
    assert graph_distance(a, cut) < 1e-14
    assert graph_distance(cut, b) == pytest.approx(graph_distance(a, b), abs=1e-14)


T = np.linspace(0.0, 5.0, 100_000)


def square(shift, jumps):
    return np.where(np.floor((T + shift) * jumps / 5) % 2, 1.0, -1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("x", "y", "wanted"),
    [
        pytest.param(square(0.0, 80), square(0.007, 80), 0.007, id="80 jumps"),
        pytest.param(  # three points of the grid
            square(0.0, 20_000), square(0.00013, 20_000), 0.00015, id="20000 jumps"
        ),
    ],
)
def test_a_hundred_thousand_points_take_seconds(x, y, wanted):
    started = time.process_time()
    found = graph_distance(filled_graph(T, x), filled_graph(T, y))
    assert time.process_time() - started < 5.0
    assert found == pytest.approx(wanted, rel=1e-4)


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
