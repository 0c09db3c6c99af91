"""The command line: quick help, exit codes, one-line errors, and files where they are asked for."""

import inspect
import json
import subprocess
import sys

import pytest

import carom
from carom.cli import papers
from carom_cli.app import main

from .test_report import data_of


def called(monkeypatch, capsys, *arguments):
    """Exit code, standard output and standard error of a command, in this process."""
    monkeypatch.setattr(sys, "argv", ["carom", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    return ended.value.code or 0, shown.out, shown.err


def test_importing_carom_leaves_the_choice_of_devices_open():
    code = "import carom, jax; jax.config.update('jax_num_cpu_devices', 3); print(jax.device_count('cpu'))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "3"


def test_help_answers_without_importing_jax():
    code = "import sys, carom_cli; sys.argv = ['carom', '--help']\n"
    code += "try: carom_cli.main()\nfinally: assert 'jax' not in sys.modules"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(word in shown.stdout for word in ("run", "resume", "report", "paper", "list", "doctor"))


def test_run_leaves_the_run_a_figure_and_a_report_and_ends_with_its_path(monkeypatch, capsys, tmp_path):
    options = ("--set", "n=3", "--t1", "5", "--h", "0.5", "--out", tmp_path, "--no-progress")
    code, out, _ = called(monkeypatch, capsys, "run", "newtons_cradle", *options)
    assert code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"newtons_cradle.{e}" for e in ("html", "nc", "png")]
    assert out.splitlines()[-1] == str(tmp_path / "newtons_cradle.html")
    assert "worst residual" in out
    assert carom.load(tmp_path / "newtons_cradle.nc").q.shape == (11, 3)


def test_report_and_resume_work_on_a_stored_run(monkeypatch, capsys, tmp_path):
    path = tmp_path / "run.nc"
    carom.simulate(*carom.models.trimer(), carom.TailoredTheta(), t1=1.0, h=0.1).save(path)
    assert called(monkeypatch, capsys, "resume", path, "--t1", "2", "--no-progress")[0] == 0
    assert carom.load(path).t[-1] == 2.0
    code, out, _ = called(monkeypatch, capsys, "report", path)
    assert (code, out.strip()) == (0, str(tmp_path / "run.html"))


def test_several_stored_runs_are_compared(monkeypatch, capsys, tmp_path):
    paths = [tmp_path / name for name in ("coarse.nc", "fine.nc")]
    for path, h in zip(paths, (0.1, 0.05)):
        carom.simulate(*carom.models.trimer(), carom.TailoredTheta(), t1=1.0, h=h).save(path)
    code, out, _ = called(monkeypatch, capsys, "report", *paths)
    assert (code, out.strip()) == (0, str(tmp_path / "comparison.html"))
    assert data_of(tmp_path / "comparison.html")["provenance"][0][1].startswith("to 'fine'")
    code, _, err = called(monkeypatch, capsys, "report", paths[0], paths[0])
    assert (code, "named twice" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "trebuchet"), "unknown model 'trebuchet'; there are"),
        (("run", "trimer", "--set", "colour=3"), "trimer has no parameter 'colour'"),
        (("run", "trimer", "--set", "damping"), "--set needs key=value"),
        (("run", "trimer", "--method", "IRK(open('x'))"), "cannot read"),
        (("run", "trimer", "--method", "Constant(0.1)"), "method must be a method"),
        (("run", "trimer", "--h", "-1"), "h must be positive"),
        (("run", "trimer", "--t1", "nan"), "'t1' must be finite"),
        (("run", "trimer", "--h", "0.1", "--stepping", "Constant(0.1)"), "either h"),
        (("run", "trimer", "--segments", "0"), "between parts must be positive"),
        (("run", "missing.toml"), "cannot read it"),
        (("report", "missing.nc"), "no such run"),
        (("resume", "missing.nc"), "no such run"),
        (("paper", "nobody1900"), "unknown paper 'nobody1900'"),
        (("paper", "james2020", "fig99"), "has no item 'fig99'"),
        (("paper", "all", "fig2"), "takes no item"),
    ],
    ids=lambda x: "-".join(x)[:40] if isinstance(x, tuple) else "",
)
def test_a_mistake_ends_in_one_line_and_code_two(monkeypatch, capsys, tmp_path, arguments, words):
    monkeypatch.chdir(tmp_path)
    code, _, err = called(monkeypatch, capsys, *arguments)
    assert code == 2
    assert words in err
    assert len(err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_run_is_named(monkeypatch, capsys, tmp_path):
    path = tmp_path / "noise.nc"
    path.write_bytes(b"not netCDF at all")
    code, _, err = called(monkeypatch, capsys, "report", path)
    assert code == 2
    assert "not a run stored by carom" in err


def test_a_run_that_fails_ends_with_code_one(monkeypatch, capsys, tmp_path):
    options = ("--method", "IRK(gauss(2), newton=Newton(max_iter=1))", "--t1", "5", "--h", "0.5")
    code, _, err = called(monkeypatch, capsys, "run", "trimer", *options, "--out", tmp_path, "--no-progress")
    assert code == 1
    assert "Newton's method did not converge" in err


def test_a_model_is_shown_with_its_parameters_and_its_usual_run(monkeypatch, capsys, tmp_path):
    code, out, _ = called(monkeypatch, capsys, "show", "woodpecker", "--out", tmp_path / "woodpecker.png")
    assert code == 0
    assert all(word in out for word in ("beak_restitution", "0.5", "y, phi_M, phi_S", "m, rad, rad", "2e-05"))
    assert (tmp_path / "woodpecker.png").stat().st_size > 10_000
    told = json.loads(called(monkeypatch, capsys, "show", "trimer", "--json")[1])
    assert told["parameters"].keys() == inspect.signature(carom.models.trimer).parameters.keys()
    assert called(monkeypatch, capsys, "show", "trebuchet")[0] == 2
    assert "a picture ends in" in called(monkeypatch, capsys, "show", "trimer", "--out", tmp_path / "x.txt")[2]


def test_the_version_and_lists_for_machines(monkeypatch, capsys):
    assert called(monkeypatch, capsys, "--version")[1].strip() == f"carom {carom.__version__}"
    told = json.loads(called(monkeypatch, capsys, "list", "--json")[1])
    assert {name for kind in told if kind.startswith("models") for name in told[kind]} == set(carom.models.registry)
    assert "there is no section 'animals'" in called(monkeypatch, capsys, "list", "animals")[2]


def test_options_replace_what_a_scenario_file_says(monkeypatch, capsys, tmp_path):
    scenario = tmp_path / "short.toml"
    scenario.write_text(
        'model = "trimer"\nmethod = "TailoredTheta()"\nt1 = 9.0\nh = 0.5\n[parameters]\ndamping = 0.1\n'
    )
    options = ("--t1", "1", "--stepping", "Constant(0.25)", "--set", "damping=0.2", "--out", tmp_path, "--no-progress")
    assert called(monkeypatch, capsys, "run", scenario, *options)[0] == 0
    run = carom.load(tmp_path / "short.nc")
    assert run.t.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert json.loads(json.loads(run.facts["model"])[1])["damping"] == 0.2
    wrong = called(monkeypatch, capsys, "run", scenario, "--t1", "nan")[2]
    assert wrong == "carom: 't1' must be finite, got nan\n"


def test_a_model_is_solved_to_an_accuracy(monkeypatch, capsys, tmp_path):
    options = ("--rtol", "1e-7", "--t1", "1", "--out", tmp_path, "--no-progress")
    code, out, _ = called(monkeypatch, capsys, "solve", "pendulum", *options)
    assert (code, out.splitlines()[-1]) == (0, str(tmp_path / "pendulum.html"))
    assert carom.load(tmp_path / "pendulum.nc").t[-1] == 1.0


def test_list_and_doctor_name_everything(monkeypatch, capsys):
    out = called(monkeypatch, capsys, "list")[1]
    assert all(name in out for name in (*carom.models.registry, "TailoredIRK", "Prescribed", "james2020"))
    assert "float64    on" in called(monkeypatch, capsys, "doctor")[1]


def test_the_table_of_all_papers_counts_verdicts(capsys):
    from carom.papers.claims import Claim

    agree, differ = Claim("a", 1.0, 1.0, True), Claim("b", 1.0, 2.0, False)
    put_right = Claim("c", 1.0, 2.0, True, "the paper misprints a sign", corrected=True)
    papers.table_of_papers({"one": {"fig1": [agree, agree], "fig2": [differ]}, "two": {"table1": [put_right]}})
    rows = [[c.strip() for c in line.split("│")[1:-1]] for line in capsys.readouterr().out.splitlines() if "│" in line]
    assert rows == [["one", "2", "3", "2", "0", "1"], ["two", "1", "1", "0", "1", "0"]]


def test_the_progress_bar_shows_time_step_size_and_rate(monkeypatch, capsys, tmp_path):
    options = ("--t1", "3", "--h", "0.25", "--out", tmp_path, "--progress")
    out = called(monkeypatch, capsys, "run", "trimer", *options)[1]
    assert "t = 3 / 3" in out
    assert "h = 0.25, 12 steps" in out


def test_a_film_is_a_gif_with_as_many_frames_as_asked(monkeypatch, capsys, tmp_path):
    from PIL import Image

    path = tmp_path / "run.nc"
    carom.simulate(*carom.models.newtons_cradle(3), carom.TailoredTheta(), t1=5.0, h=0.5).save(path)
    code, out, _ = called(monkeypatch, capsys, "report", path, "--out", tmp_path / "run.gif", "--frames", "5")
    assert (code, out.strip()) == (0, str(tmp_path / "run.gif"))
    assert Image.open(tmp_path / "run.gif").n_frames == 5
    with pytest.raises(ValueError, match=r"ends in \.gif"):
        carom.film(carom.load(path), tmp_path / "run.avi")
