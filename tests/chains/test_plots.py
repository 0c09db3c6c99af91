"""Figures are built from arrays or solutions, without pyplot."""

import sys

import matplotlib as mpl
import numpy as np
import pytest

import carom
from carom import plots


@pytest.fixture(scope="module")
def solution():
    chain, state = carom.models.granular_chain(np.ones(6), damping=0.1)
    return carom.simulate(chain, state, carom.TailoredTheta(), t1=4.0, h=0.2)


def test_every_plot_of_a_solution_returns_a_figure_and_leaves_pyplot_alone(solution, tmp_path):
    before = dict(mpl.rcParams)
    figures = [
        plots.trajectories(solution, [0, 5], labels=["first", "last"]),
        plots.trajectories(solution, of="v"),
        plots.space_time(solution, of="v"),
        plots.energies(solution),
        plots.account(solution),
    ]
    for i, figure in enumerate(figures):
        figure.savefig(tmp_path / f"{i}.png")
    assert "matplotlib.pyplot" not in sys.modules or dict(mpl.rcParams) == before


def test_trajectories_of_arrays_draw_one_line_per_column():
    figure = plots.trajectories((np.arange(3.0), np.zeros((3, 2))))
    assert len(figure.axes[0].lines) == 2


def test_convergence_draws_curves_and_a_triangle_of_the_slope():
    h = np.array([0.1, 0.05, 0.025])
    figure = plots.convergence(h, {"GL": h**4, "CN": h**2}, slopes={"GL": 4})
    x, y = figure.axes[0].lines[-1].get_data()
    assert np.log(y[2] / y[1]) / np.log(x[1] / x[0]) == pytest.approx(4)


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match="as many rows"):
        plots.trajectories((np.arange(3.0), np.zeros((4, 2))))
    with pytest.raises(ValueError, match="of must be"):
        plots.trajectories((np.arange(3.0), np.zeros((3, 2))), of="x")
