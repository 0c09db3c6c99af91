"""Sweeps from the command line: a scenario with a table of values."""

import pytest

import carom
from carom.cli import runs, sweeps
from carom.files.scenario import ScenarioError, read

SCENARIO = """
model = "bouncing_ball"
method = "MoreauMidpoint()"
t1 = 1.0
h = 0.02
[sweep]
keep = ["final()", "count('closes')"]
batch = 4
[sweep.grid]
restitution = {from = 0.4, to = 1.2, count = 3}
gravity = [1.0, 2.0]
"""


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "balls.toml"
    path.write_text(SCENARIO)
    return path


def test_a_scenario_is_swept_stored_and_reported(scenario, tmp_path, capsys):
    page = sweeps.sweep(str(scenario), tmp_path / "out", None, progress=False)
    data = carom.load_sweep(tmp_path / "out" / "balls.zarr")
    assert dict(data.sizes)["restitution"] == 3
    assert (data.status.sel(restitution=1.2) == -1).all()
    assert "4 cells in" in capsys.readouterr().out
    text = page.read_text()
    assert "4 cells ran to their end, 2 did not; restitution from 0.4 to 1.2, gravity from 1 to 2." in text
    assert '"4":"restitution must lie in [0, 1], got 1.2"' in text
    runs.report([tmp_path / "out" / "balls.zarr"], tmp_path / "again.html", 10)
    assert (tmp_path / "again.html").read_text().startswith("<!doctype html>")
    with pytest.raises(ValueError, match="has a table \\[sweep\\]: use carom sweep"):
        runs.run(str(scenario), {}, [], tmp_path / "out")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("restitution = {from", "restituton = {from", "is no parameter of bouncing_ball; did you mean 'restitution'"),
        ("[1.0, 2.0]", "[]", r"balls.toml:11: 'sweep.grid.gravity' must be a list of numbers or \{from"),
        ("[1.0, 2.0]", "{from = 1.0}", "must be a list of numbers"),
        ("[1.0, 2.0]", "[[1.0], [2.0, 3.0]]", "balls.toml:11: 'sweep.grid.gravity' must be a list of numbers"),
        ("from = 0.4", "from = 'a'", "balls.toml:10: 'sweep.grid.restitution' must be a list of numbers"),
        ("count = 3", "count = 9000000000000", "balls.toml:10: Unable to allocate"),
        ('["final()"', "[3", "balls.toml:7: keep must be a keep, got '3'"),
        ("batch = 4", "batch = 0", "balls.toml:8: batch must be a whole number of at least 1, got 0"),
        ("count = 3", "count = 0", "restitution: count must be a whole number of at least 1"),
        (
            "final()",
            "finale()",
            "cannot read 'finale\\(\\)'; did you mean 'final'\\? Allowed are count, final, peak, strobe, times",
        ),
        ("batch = 4", "bach = 4", "unknown key 'sweep.bach'; allowed are grid, keep, batch; did you mean 'batch'"),
        (SCENARIO[SCENARIO.index("[sweep.grid]") :], "", "'sweep.grid' is missing"),
    ],
)
def test_a_mistake_in_the_table_is_told_with_its_line(scenario, old, new, told):
    scenario.write_text(SCENARIO.replace(old, new))
    with pytest.raises(ScenarioError, match=told):
        read(scenario)
