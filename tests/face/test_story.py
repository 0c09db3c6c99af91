"""What a report tells of its run: enough to run it again, and what speaks for or against it."""

import json
import shlex
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.cli import runs
from carom.files.datasets import attributes
from carom.files.text import record
from carom.plain import describe, spelt
from carom.reports.curves import names_of, plots
from carom.reports.data import payload, picture_of

from .test_cli import called
from .test_report import data_of

SCENARIO = """\
model = "newtons_cradle"
method = "TailoredTheta()"
title = "five balls"
t1 = 10.0
h = 0.5
save_every = 2
[parameters]
n = 3
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A run from the command line: its file and what its report says."""
    folder = tmp_path_factory.mktemp("told")
    (folder / "cradle.toml").write_text(SCENARIO)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["carom", "run", "cradle.toml"])
        runs.run(str(folder / "cradle.toml"), {}, [], folder, progress=False)
    return folder / "cradle.nc", data_of(folder / "cradle.html")


def row(rows, name):
    return next(text for head, text in rows if head == name)


def test_a_report_tells_command_date_versions_and_every_setting(told):
    rows = told[1]["provenance"]
    assert row(rows, "command") == "carom run cradle.toml"
    assert row(rows, "created").startswith("20")
    assert row(rows, "python") == sys.version.split()[0]
    assert {"carom", "jax", "state at the start"} <= {name for name, _ in rows}
    assert (row(rows, "method"), row(rows, "stepping")) == ("TailoredTheta()", "Constant(0.5)")
    assert "newton.tol = 1e-13" in row(rows, "method in full")


def test_the_lines_to_copy_give_the_same_rows(told, monkeypatch, capsys, tmp_path):
    path, data = told
    rows, lines = carom.load(path).columns, dict(data["again"])
    space = {}
    exec(lines["Python"], space)
    monkeypatch.chdir(tmp_path)
    words = shlex.split(lines["command"])[1:]
    assert called(monkeypatch, capsys, *words, "--no-progress")[0] == 0
    (tmp_path / "copy.toml").write_text(lines["scenario file"])
    assert called(monkeypatch, capsys, "run", "copy.toml", "--no-progress")[0] == 0
    for columns in (space["sol"].columns, *(carom.load(f"out/{n}.nc").columns for n in ("newtons_cradle", "copy"))):
        assert all(np.array_equal(rows[name], columns[name]) for name in rows)


def test_a_run_that_goes_on_keeps_its_title_and_its_report_follows(told, monkeypatch, capsys):
    path, _ = told
    picture = path.with_suffix(".png").read_bytes()
    code, out, _ = called(monkeypatch, capsys, "resume", path, "--t1", "20", "--no-progress")
    assert (code, out.splitlines()[-1]) == (0, str(path.with_suffix(".html")))
    data = data_of(path.with_suffix(".html"))
    assert data["title"] == "five balls"
    assert "t = 0 to 20" in data["subtitle"]
    assert row(data["provenance"], "command") == f"carom run cradle.toml && carom resume {path} --t1 20 --no-progress"
    assert path.with_suffix(".png").read_bytes() != picture
    assert np.all(np.diff(carom.load(path).k) == 2), "every second step, as before"
    assert data_of(carom.report(carom.load(path), path.with_name("anew.html")))["provenance"] == data["provenance"]


@pytest.fixture(scope="module")
def block():
    """A user's system with two units, solved without naming a method."""
    contacts = carom.Contacts(lambda q: q[1:2], restitution=0.5)
    options = {"labels": ("x", "y", "phi"), "units": ("m", "m", "rad"), "params": {"g": 9.81}, "contacts": contacts}
    system = carom.System([1.0, 1.0, 0.1], lambda q, p: p["g"] * q[1] + 0.1 * q[2] ** 2, **options)
    return carom.solve(system, carom.State([0.0, 0.1, 1.0], [1.0, 0.0, 0.0]), 0.5)


def test_a_report_of_solve_says_what_was_chosen_and_why(block, tmp_path):
    data = data_of(carom.report(block, tmp_path / "run.html"))
    assert row(data["evidence"], "carom.solve chose").startswith("EventCapturing(")
    assert "events are located" in row(data["evidence"], "because")
    assert "penetration" in row(data["evidence"], "checked")
    assert "no alarm" in row(data["evidence"], "energy from nowhere")
    assert row(data["provenance"], "params['g']") == "9.81"
    assert row(data["provenance"], "mass") == "[1.0, 1.0, 0.1]"
    assert "tableau = explicit(5), projection = True" in row(data["provenance"], "method in full")
    assert "carom.State([0.0, 0.1, 1.0], [1.0, 0.0, 0.0], 0.0)" in dict(data["again"])["Python"]


def test_each_unit_has_its_plot_and_velocities_are_per_second(block, tmp_path):
    block.save(tmp_path / "run.nc")
    for run in (block, carom.load(tmp_path / "run.nc")):
        shown = [(p["title"], p["unit"], [s["name"] for s in p["series"]]) for p in payload(run, 5)["plots"][:4]]
        assert shown == [
            (title, unit + per, names)
            for title, per in (("coordinates", ""), ("velocities", "/s"))
            for unit, names in (("m", ["x", "y"]), ("rad", ["phi"]))
        ]
    legend = carom.plots.overview(block).axes[1].get_legend().get_texts()
    assert [text.get_text() for text in legend] == ["x [m/s]", "y [m/s]", "phi [rad/s]"]


@pytest.mark.slow
def test_momenta_are_not_called_metres_per_second():
    system = carom.System.from_hamiltonian(lambda q, p: 0.25 * p @ p + 0.5 * q @ q, labels=("x",), units="m")
    sol = carom.simulate(system, carom.State([1.0], [0.0]), carom.Spark(2), t1=0.2, h=0.1)
    assert [p["unit"] for p in payload(sol, 5)["plots"][:2]] == ["m", ""]
    assert "units" not in sol.to_xarray()["v"].attrs


@pytest.mark.slow
def test_energy_against_its_start_and_penetration_are_drawn_over_time(block):
    titles = [p["title"] for p in payload(block, 5)["plots"]]
    assert any(title.startswith("(E - E0) / ") for title in titles)
    assert any(title.startswith("energy not explained by contacts, / ") for title in titles)
    pendulum = carom.simulate(*carom.models.pendulum(), carom.Spark(3), t1=1.0, h=0.1)
    assert "drift of the constraints" in [p["title"] for p in payload(pendulum, 5)["plots"]]


def test_a_film_draws_what_the_report_draws(block, tmp_path):
    picture = picture_of(block, block.t)
    assert picture.caption.startswith("the point (x, y) and its path; red: contact forces")
    seen = []

    def mine(q, arguments):
        seen.append(q.shape)
        return picture

    carom.film(block, tmp_path / "run.gif", frames=3, drawing=mine)
    assert seen == [(3, 3)]
    assert names_of(block) == (("x", "y", "phi"), ("m", "m", "rad"))


def test_a_table_has_a_row_per_row_and_a_column_per_number(block, tmp_path):
    table = block.to_pandas()
    assert len(table) == len(block)
    assert (table["q.phi"].to_numpy() == block.q[:, 2]).all()
    assert (table["v.x"].to_numpy() == block.v[:, 0]).all()
    block.save(tmp_path / "run.nc")
    assert carom.load(tmp_path / "run.nc").to_pandas().equals(table)


def test_the_ending_of_out_decides_the_form_or_is_refused(told, monkeypatch, capsys, tmp_path):
    path, _ = told
    begins = {"csv": b"t,k,", "png": b"\x89PNG", "svg": b"<?xml", "html": b"<!doctype html>", "gif": b"GIF8"}
    for ending, begin in begins.items():
        options = ("--out", tmp_path / "new" / f"run.{ending}", "--frames", "3")
        assert called(monkeypatch, capsys, "report", path, *options)[0] == 0
        assert (tmp_path / "new" / f"run.{ending}").read_bytes().startswith(begin)
    code, _, err = called(monkeypatch, capsys, "report", path, "--out", tmp_path / "run.doc")
    assert (code, "must end in .html, .png" in err) == (2, True)
    with pytest.raises(ValueError, match=r"a report is an .html file, got 'run.png'; carom.film"):
        carom.report(carom.load(path), tmp_path / "run.png")
    assert sorted(p.suffix[1:] for p in (tmp_path / "new").iterdir()) == sorted(begins)


@pytest.mark.slow
def test_a_run_that_fails_leaves_what_there_is_and_says_so(monkeypatch, capsys, tmp_path):
    options = ("--t1", "0.9", "--out", tmp_path, "--no-progress")
    code, _, err = called(monkeypatch, capsys, "run", "painleve_rod", *options)
    assert code == 1
    assert "1631 rows up to t = 0.815 are kept: `carom report" in err
    assert len(carom.load(tmp_path / "painleve_rod.nc").t) == 1631
    data = data_of(tmp_path / "painleve_rod.html")
    assert row(data["evidence"], "ended early") == "at t = 0.815 of 0.9"
    assert (tmp_path / "painleve_rod.png").exists()


def test_a_run_that_blows_up_is_reported_too(tmp_path):
    system = carom.System(1.0, lambda q: jnp.where(q[0] < 2.0, -q[0], jnp.nan))
    with pytest.raises(carom.SimulationError) as failed:
        carom.simulate(system, carom.State([0.0], [1.0]), carom.StormerVerlet(), t1=5.0, h=0.1)
    data = data_of(carom.report(failed.value.solution, tmp_path / "run.html"))
    assert "ended early" in dict(data["evidence"])


@pytest.mark.parametrize(
    "text",
    [
        "IRK(gauss(2))",
        "Spark(3)",
        "Spark(2, families={'conservative': 'C'})",
        "MoreauMidpoint(solver=SemismoothNewton(enumerate_modes=False))",
        "EventCapturing(radau_iia(3), projection=True)",
        "IRK(damped(lobatto_iiid(3), 0.2), newton=Newton(max_iter=7))",
        "Switching(0.001, 0.01)",
        "Adaptive(rtol=0.0001)",
    ],
)
def test_a_record_is_spelt_as_it_is_read(text):
    plain = describe(record(text))
    shown = spelt(plain)
    assert len(shown) == len(text) or "families" in text
    assert json.dumps(describe(record(shown))) == json.dumps(plain)
    assert json.dumps(describe(eval(spelt(plain, "carom."), {"carom": carom}))) == json.dumps(plain)


def test_help_names_defaults(monkeypatch, capsys):
    assert "(default: that of the model)" in " ".join(called(monkeypatch, capsys, "run", "--help")[1].split())
    assert "(default: HTML beside the run)" in " ".join(called(monkeypatch, capsys, "report", "--help")[1].split())


def test_a_figure_is_a_picture_in_a_notebook(block):
    assert carom.plots.overview(block)._repr_png_().startswith(b"\x89PNG")
    assert attributes(block)["choice"]


def test_of_a_crystal_those_beads_are_drawn_that_move():
    crystal, state = carom.models.square_crystal(20, 21)
    sol = carom.simulate(crystal, state, carom.StormerVerlet(), t1=2e-5, h=1e-6)
    shown = {plot["title"]: plot for plot in plots(sol)}
    moving = [np.ptp(line["y"]) > 0 for line in shown["coordinates"]["series"]]
    assert sum(moving) >= len(moving) - 1
    assert not any("over place" in title for title in shown)
