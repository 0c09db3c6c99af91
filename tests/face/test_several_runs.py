"""Reports of several runs, and of runs that are short, broken or very long."""

import numpy as np
import pytest

import carom
from carom.reports.data import payload
from carom.reports.film import film
from carom.reports.shapes import Circles, Drawing, Solid

from .browser import opened
from .test_report import data_of

SPRING = carom.System(1.0, lambda q: 0.5 * q @ q, labels=("x",), units="m")


@pytest.fixture(scope="module")
def runs():
    start = carom.State([1.0], [0.0])
    return {f"h = {h}": carom.simulate(SPRING, start, carom.Theta(), t1=4.0, h=h) for h in (0.2, 0.1, 0.01)}


def with_columns(run, **columns):
    return carom.Solution(run.system, run.method, run.stepping, run.columns | columns, run.carry, run.timing)


def test_runs_side_by_side_show_differences_and_what_they_cost(runs, tmp_path):
    file = carom.report(runs, tmp_path / "runs.html")
    data = data_of(file)
    assert [p["title"] for p in data["plots"]][:2] == ["x", "difference to the last run"]
    assert [s["name"] for s in data["plots"][0]["series"]] == list(runs)
    errors = {row[0]: row[-1] for row in data["runs"]["rows"]}
    assert errors["h = 0.01"] == "reference"
    exact = {name: np.max(np.abs(run.q[:, 0] - np.cos(run.t))) for name, run in runs.items()}
    assert float(errors["h = 0.2"]) == pytest.approx(exact["h = 0.2"], rel=0.05)
    assert float(errors["h = 0.2"]) / float(errors["h = 0.1"]) == pytest.approx(4.0, rel=0.1)
    assert [row[3] for row in data["runs"]["rows"]] == ["20", "40", "400"]
    with opened(file) as (view, troubles):
        assert view.locator("#runs tr").count() == 4
        assert view.locator("#again pre").count() == 3 + 1
        work = view.evaluate(
            "plots.find((p) => p.title === 'work and precision').curves().map((c) => [c.x[0], c.y[0]])"
        )
        assert np.array(work)[:, 1] == pytest.approx([float(errors["h = 0.2"]), float(errors["h = 0.1"])], rel=0.01)
        assert troubles == []


def test_runs_in_a_list_are_named_by_method_and_stepping(runs, tmp_path):
    data = data_of(carom.report(list(runs.values())[:2], tmp_path / "runs.html", title="two"))
    assert [row[0] for row in data["runs"]["rows"]] == ["Theta(), Constant(0.2)", "Theta(), Constant(0.1)"]
    assert data["title"] == "two"


def test_what_cannot_be_compared_is_refused(runs, tmp_path):
    one = runs["h = 0.2"]
    with pytest.raises(ValueError, match="at least two runs, got 1"):
        carom.report([one], tmp_path / "runs.html")
    with pytest.raises(TypeError, match="report needs a Solution"):
        carom.report([one, "run.nc"], tmp_path / "runs.html")
    later = with_columns(one, t=one.t + 100.0)
    with pytest.raises(ValueError, match="overlap in time; these share no stretch of time"):
        carom.report([one, later], tmp_path / "runs.html")
    with pytest.raises(ValueError, match="numbers must be a whole number of at least 1000, got 10"):
        carom.report(one, tmp_path / "run.html", numbers=10)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "what",
    [
        *(pytest.param(what, marks=pytest.mark.slow) for what in ("one row", "numbers that are none")),
        *("nothing but such numbers", "backward"),
    ],
)
def test_short_and_broken_runs_have_reports_that_open(runs, tmp_path, what):
    run = runs["h = 0.2"]
    q = run.q.copy()
    q[5 if what == "numbers that are none" else 0 :] = np.nan
    broken = {
        "one row": {name: values[:1] for name, values in run.columns.items()},
        "numbers that are none": {"q": q},
        "nothing but such numbers": {"q": q, "v": q},
        "backward": {"t": -run.t},
    }[what]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *args, **kwargs: None)
        file = carom.report(with_columns(run, **broken), tmp_path / "run.html")
    with opened(file) as (view, troubles):
        view.keyboard.press("End")
        assert view.locator(".plot canvas").count() >= 3
        if what == "backward":
            assert view.evaluate("valueAt(plots[0].series[0], -2.0)") == pytest.approx(np.cos(2.0), abs=0.03)
        assert troubles == []


def test_a_run_without_rows_is_refused(runs, tmp_path):
    nothing = with_columns(runs["h = 0.2"], t=np.zeros(0))
    with pytest.raises(ValueError, match="the run has no rows"):
        carom.report(nothing, tmp_path / "run.html")


@pytest.mark.slow
def test_a_run_of_a_million_rows_keeps_its_extremes_and_what_is_near_events(runs, tmp_path):
    run, n = runs["h = 0.2"], 1_000_000
    t = np.linspace(0.0, 4.0, n)
    x = np.cos(t)[:, None]
    x[654_321] = 9.0
    columns = {name: np.zeros((n, *values.shape[1:])) for name, values in run.columns.items()}
    long = with_columns(run, **(columns | {"t": t, "elapsed": t, "q": x, "v": -x, "h": np.full(n, 4e-6)}))
    long.events = np.rec.array([(2.0, 0, "closes")], dtype=[("time", float), ("contact", int), ("kind", "U8")])
    data = payload(long, 100)
    drawn = data["plots"][0]["series"][0]
    assert drawn["y"].max() == 9.0
    assert np.sum(np.abs(drawn["t"] - 2.0) < 7e-5) >= 30
    assert sum(len(s["y"]) for p in data["plots"] for s in p["series"]) < 600_000
    assert "of 1000000 rows each" in data["thinned"]
    file = carom.report(long, tmp_path / "run.html")
    assert file.stat().st_size < 20e6
    with opened(file) as (view, troubles):
        assert view.evaluate("plots[0].axis.high") > 8.9
        assert troubles == []


def test_a_film_says_what_is_missing_before_it_draws(tmp_path, monkeypatch):
    monkeypatch.setattr("matplotlib.animation.FFMpegWriter.isAvailable", classmethod(lambda cls: False))
    with pytest.raises(ValueError, match=r"run.mp4 needs the program ffmpeg, which is not installed; a .gif does"):
        film(None, tmp_path / "run.mp4")
    with pytest.raises(ValueError, match=r"a film ends in .gif or .mp4, got run.avi"):
        film(None, tmp_path / "run.avi")


def test_a_film_shows_bodies_in_space(runs, tmp_path):
    def mine(q, arguments):
        still = np.array([[1.0, 0.0, 0.0, 0.0]])
        x = np.column_stack([q[:, 0], 0 * q[:, 0], 0 * q[:, 0]])
        shapes = [Solid.brick(x, still, (0.1, 0.1, 0.1)), Circles(x[:, None] + [0.0, 0.5, 0.0], 0.1, "red")]
        return Drawing(shapes, f"{len(arguments['t'])} frames")

    assert film(runs["h = 0.2"], tmp_path / "run.gif", frames=3, drawing=mine).read_bytes().startswith(b"GIF8")


def test_places_that_a_run_kept_are_points_in_a_plane(tmp_path):
    start = carom.State([1.0], [0.0])
    kept = carom.simulate(SPRING, start, carom.Theta(), t1=4.0, h=0.1, keep=[carom.keep.strobe(0.5)])
    (plot,) = [p for p in payload(kept, 5)["plots"] if p["kind"] == "points"]
    assert plot["title"].startswith("strobe 0, ")
    assert plot["axes"] == ["x", "dx/dt"]
    (points,) = plot["series"]
    assert points["x"] == pytest.approx(np.cos(points["t"]), abs=0.02)
    assert points["y"] == pytest.approx(-np.sin(points["t"]), abs=0.02)
