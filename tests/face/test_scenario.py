"""Scenario files: examples run, mistakes name their line, nothing is left behind, nothing is executed."""

import random
from pathlib import Path

import pytest

import carom
from carom.choice import default_method
from carom.files.scenario import ScenarioError, read

from .test_cli import called

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "scenarios").glob("*.toml"))
GOOD = """\
model = "newtons_cradle"
method = "TailoredTheta()"
t1 = 10.0
h = 0.5

[parameters]
n = 3
stiffness = 13.115

[output]
name = "cradle"
frames = 20
"""


def test_there_are_at_least_five_examples():
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_is_a_complete_plan(path, tmp_path):
    plan = read(path, tmp_path)
    assert plan.path.parent == tmp_path
    assert plan.t1 > 0
    assert plan.system.origin.name in carom.models.registry
    assert not list(tmp_path.iterdir())


def test_a_scenario_runs_and_ends_with_the_path_of_its_report(monkeypatch, capsys, tmp_path):
    file = tmp_path / "run.toml"
    file.write_text(GOOD)
    code, out, _ = called(monkeypatch, capsys, "run", file, "--out", tmp_path / "out", "--no-progress")
    assert code == 0
    assert out.splitlines()[-1] == str(tmp_path / "out" / "cradle.html")
    direct = carom.simulate(*carom.models.newtons_cradle(3, stiffness=13.115), carom.TailoredTheta(), t1=10.0, h=0.5)
    assert (carom.load(tmp_path / "out" / "cradle.nc").q == direct.q).all()


ASSEMBLED = ("bricard", "dominoes", "rolling_disk")  # take seconds to build


@pytest.mark.parametrize(
    "model",
    [pytest.param(m, marks=pytest.mark.slow if m in ASSEMBLED else []) for m in sorted(carom.models.registry)],
)
def test_every_model_has_a_method_without_naming_one(model):
    required = {"granular_chain": {"masses": [1.0, 0.5]}, "binary_collision": {}}
    system, _ = carom.models.build(model, required.get(model, {}))
    assert system.features <= default_method(system).handles


MISTAKES = {
    "wrong type": ("t1 = 10.0", 't1 = "ten"', 3, "'t1' must be a number, the end of the run, got 'ten'"),
    "yes is no number": ("t1 = 10.0", "t1 = true", 3, "'t1' must be a number"),
    "unknown key": ("h = 0.5", "h = 0.5\nstep = 1", 5, "unknown key 'step'; allowed are model, t1, h, method"),
    "unknown output": ("frames = 20", "movie = true", 12, "unknown key 'output.movie'; allowed are name"),
    "missing model": ('model = "newtons_cradle"', "", 1, "'model' is missing; there are"),
    "missing end": ("t1 = 10.0", "", 1, "'t1' is missing"),
    "unknown model": ("newtons_cradle", "trebuchet", 1, "unknown model 'trebuchet'; there are"),
    "unknown parameter": ("n = 3", "m = 3", 7, "newtons_cradle has no parameter 'm'; it has n, stiffness"),
    "bad parameter": ("n = 3", "n = 1", 7, "n must be a whole number of at least 2"),
    "nan": ("stiffness = 13.115", "stiffness = nan", 8, "'parameters.stiffness' must be finite, got nan"),
    "nan in a list": ("stiffness = 13.115", "stiffness = [1.0, inf]", 8, "must be finite"),
    "date": ("stiffness = 13.115", "stiffness = 2020-01-01", 8, "must be a number, a text or a list"),
    "path outside": ('"cradle"', '"../cradle"', 11, "must be a file name inside the output folder"),
    "absolute path": ('"cradle"', '"/tmp/cradle"', 11, "must be a file name inside the output folder"),
    "hidden file": ('"cradle"', '".cradle"', 11, "must be a file name inside the output folder"),
    "code": ("TailoredTheta()", "__import__('os').system('true')", 2, "cannot read"),
    "unfit method": ("TailoredTheta()", "Constant(0.1)", 2, "method must be a method"),
    "no method's argument": ("TailoredTheta()", "TailoredTheta(colour=1)", 2, "colour"),
    "two steppings": ("h = 0.5", "h = 0.5\nstepping = 'Constant(0.5)'", 4, "either h (a constant step) or stepping"),
    "negative step": ("h = 0.5", "h = -0.5", 4, "h must be positive"),
    "end before start": (
        "t1 = 10.0",
        "t1 = -1.0",
        3,
        "TailoredTheta runs forward in time only",
    ),
    "too many frames": ("frames = 20", "frames = 1000000", 12, "from 2 to 5000"),
    "a method that lacks its tableau": ("TailoredTheta()", "IRK()", 2, "IRK: missing a required argument: 'tableau'"),
    "too deep a method": ("TailoredTheta()", "-" * 3000 + "1", 2, "nested too deeply"),
    "a path of a thousand names": ("TailoredTheta()", "a" + ".a" * 1000, 2, "cannot read"),
    "a huge number": ("n = 3", "n = " + "9" * 400, 7, "'parameters.n' must be finite"),
    "a number of 5000 digits": ("n = 3", "n = " + "9" * 5000, 7, "a number has too many digits"),
    "not TOML": ("h = 0.5", "h = = 0.5", 4, "not TOML"),
    "twice": ("h = 0.5", "h = 0.5\nh = 0.6", 5, "not TOML"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_line_and_leaves_nothing(monkeypatch, capsys, tmp_path, name):
    old, new, line, words = MISTAKES[name]
    file = tmp_path / "bad.toml"
    file.write_text(GOOD.replace(old, new, 1))
    code, _, err = called(monkeypatch, capsys, "run", file, "--out", tmp_path / "out")
    assert code == 2
    assert len(err.splitlines()) == 1
    assert f"bad.toml:{line}: " in err
    assert words in err
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "away").symlink_to(tmp_path)
    file = tmp_path / "run.toml"
    file.write_text(GOOD.replace('"cradle"', '"away/cradle"'))
    with pytest.raises(ScenarioError, match=r"run.toml:11: 'output.name' must be a file name inside"):
        read(file, tmp_path / "out")


SCRAPS = [
    "nan",
    "-inf",
    '"',
    "'''",
    "[",
    "]]",
    "= =",
    "\x00",
    "é\udcff",
    "1e999",
    "true",
    "{a = 1}",
    "../..",
    "0x",
    "\\",
    "[[x]]",
]


def spoiled(seed):
    """A good scenario with one to four random injuries, as bytes."""
    chance = random.Random(seed)
    text = GOOD
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(text))
        kind = chance.randrange(4)
        if kind == 0:
            text = text[:at] + chance.choice(SCRAPS) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + chance.randint(1, 12) :]
        elif kind == 2:
            lines = text.splitlines(keepends=True)
            chance.shuffle(lines)
            text = "".join(lines)
        else:
            text = text[:at] + chr(chance.randrange(32, 1000)) + text[at + 1 :]
        text = text or "\n"
    return text.encode("utf-8", "surrogateescape" if "\udcff" in text else "strict")


def complaint(path, out):
    """What is wrong with a file, or nothing."""
    try:
        read(path, out)
    except ScenarioError as error:
        return str(error)
    return ""


def test_two_hundred_spoiled_files_end_in_one_line_with_a_line_number(monkeypatch, capsys, tmp_path):
    file, out = tmp_path / "bad.toml", tmp_path / "out"
    refused = seed = 0
    while refused < 200:
        seed += 1
        file.write_bytes(spoiled(seed))
        message = complaint(file, out)
        if not message:
            continue
        refused += 1
        assert message.startswith(f"{file}:")
        assert message[len(str(file)) + 1 :].split(":")[0].isdigit()
        assert len(message.splitlines()) == 1
        if refused % 20 == 0:
            code, _, err = called(monkeypatch, capsys, "run", file, "--out", out)
            assert (code, len(err.splitlines())) == (2, 1)
    assert list(tmp_path.iterdir()) == [file]
    assert seed < 400
