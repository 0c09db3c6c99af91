"""Reports of sweeps: linked diagrams, stored runs that play, lines that repeat a cell."""

import numpy as np
import pytest

import carom
from carom.reports.sweeps import sweep_report
from tests.face.browser import opened

METHOD = carom.ExplicitRK(carom.explicit(4))
OPTIONS = {"t1": 5.0, "h": 0.01, "keep": [carom.keep.final(), carom.keep.strobe(1.0, last=3)]}
CELLS = carom.Grid(stiffness=[1.0, -1.0, 2.0], height=[1.0, 2.0, 3.0, 4.0])


def build(stiffness, height):
    spring = lambda q, p: 0.5 * p["k"] * q @ q  # noqa: E731
    return carom.System(1.0, spring, params={"k": stiffness}), carom.State([height], [0.0])


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("sweep") / "springs.zarr"
    wanted = [0, {"stiffness": 1.9, "height": 3.2}]
    return path, carom.sweep(build, CELLS, METHOD, **OPTIONS, to=path, trajectories=wanted)


def test_stored_runs_are_those_of_their_cells(stored):
    path, data = stored
    files = {cell: file for cell, file in enumerate(data.trajectory.values.ravel()) if file}
    assert list(files) == [0, 10]
    for cell, file in files.items():
        assert carom.load(file).q[-1] == data.final_q.values.reshape(-1)[cell]
    assert carom.load_sweep(path).identical(data)


def test_a_chosen_cell_is_marked_told_and_played(stored, tmp_path):
    page = sweep_report(stored[1], tmp_path / "springs.html", "springs")
    with opened(page) as (view, troubles):
        assert view.evaluate("diagrams.length") == 4
        assert view.frame_locator("#run iframe").locator("#play").count() == 1
        view.locator("canvas").first.focus()
        for key in ("ArrowUp", "ArrowUp", "ArrowRight"):
            view.keyboard.press(key)
        assert view.locator("#chosen").text_content() == "cell 9: stiffness = 2, height = 2"
        assert view.locator("#run iframe").count() == 0
        lines = view.locator("#snippet").text_content()
        box = view.locator("canvas").first.bounding_box()
        view.mouse.click(box["x"] + 0.98 * box["width"], box["y"] + 0.05 * box["height"])
        assert "stiffness = 2, height = 4" in view.locator("#chosen").text_content()
        assert troubles == []
    found = {"build": build}
    exec(lines, found)
    assert found["sol"].q[-1] == stored[1].final_q.sel(stiffness=2.0, height=2.0).item()


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ([12], "there are 12 cells, counted from 0, got 12"),
        ([{"hight": 1.0}], "there is no parameter 'hight'; did you mean 'height'"),
        ({"height": 1.0}, "must be a list of cells"),
    ],
)
def test_cells_that_are_not_there_are_named(wanted, told, tmp_path):
    with pytest.raises((ValueError, TypeError), match=told):
        carom.sweep(build, CELLS, METHOD, **OPTIONS, to=tmp_path / "x.zarr", trajectories=wanted)


def test_stored_runs_need_a_folder():
    with pytest.raises(ValueError, match="give its folder, to='sweep.zarr'"):
        carom.sweep(build, CELLS, METHOD, **OPTIONS, trajectories=[0])


def test_a_large_sweep_is_thinned_and_says_so(tmp_path):
    cells = carom.Grid(mass=np.linspace(1.0, 2.0, 500), height=np.linspace(1.0, 2.0, 500))
    data = carom.sweep(
        lambda mass, height: (carom.System(mass), carom.State([height], [0.0])), cells, METHOD, t1=0.1, h=0.1
    )
    text = sweep_report(data, tmp_path / "many.html").read_text()
    assert "Every 2. cell along each dimension is shown." in text
    assert len(text) < 4e6


def test_maps_of_uneven_axes_have_their_cells_between_their_neighbours_and_lines_are_python(tmp_path):
    def inner(stiffness, height, soft):
        return build(0.5 * stiffness if soft else stiffness, height)

    cells = carom.Grid(stiffness=[1.0, 100.0, 10.0], height=[1.0, np.nan, 2.0], soft=[True])
    data = carom.sweep(inner, cells, METHOD, static="soft", t1=1.0, h=0.1).isel(soft=0, drop=False)
    with opened(sweep_report(data, tmp_path / "log.html")) as (view, troubles):
        assert np.allclose(view.evaluate("[1, 10, 100].map(diagrams[0].y.cell)"), [[-0.5, 0.5], [0.5, 1.5], [1.5, 2.5]])
        assert view.evaluate("[1, 2].map(diagrams[0].x.cell)") == [[0.5, 1.5], [1.5, 2.5]]
        assert view.evaluate("ticks(diagrams[0].y)") == [1, 10, 100]
        assert "inner(stiffness=1, height=1" in view.locator("#snippet").text_content()
        view.evaluate("choose(1)")
        assert 'height=float("nan")' in view.locator("#snippet").text_content()
        assert troubles == []


def test_cells_of_three_parameters_are_chosen_by_keys_and_those_without_an_end_are_shown(stored, tmp_path):
    data = stored[1].drop_vars("trajectory").expand_dims(mass=[1.0, 2.0])
    data["end_time"] = data.end_time.where(data.height < 4.0, np.inf)
    with opened(sweep_report(data, tmp_path / "three.html")) as (view, troubles):
        view.locator("canvas").first.focus()
        for key in ("ArrowRight", "ArrowUp", "ArrowUp", "ArrowUp"):
            view.keyboard.press(key)
        assert view.locator("#chosen").text_content() == "cell 15: mass = 2, stiffness = 1, height = 4"
        assert "t1=..., h=0.01" in view.locator("#snippet").text_content()
        assert troubles == []
