"""Long runs on disk: segments, kill -9 at random moments, resume to the same data bit for bit."""

import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import carom
from carom import cli
from carom.run import prepare
from carom.segments import Segments, resume_to, simulate_to
from carom.storage import segment_files

PER_KILL = 40000.0  # time of the model for every kill, more than runs between two of them
RUN = ["run", "newtons_cradle", "--set", "n=5", "--method", "TailoredTheta()", "--h", "0.5", "--save-every", "40"]


def same_rows(a, b):
    assert set(a.columns) == set(b.columns)
    return all(np.array_equal(a.columns[name], b.columns[name]) for name in a.columns)


def killed(path, arguments, count, delay):
    """Start a command, wait until it has written `count` segments and a little more, kill -9; True if in time."""
    command = [sys.executable, "-m", "carom_cli", *arguments, "--segments", "0.02", "--no-progress"]
    before = {p.name for p in segment_files(path)}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len({p.name for p in segment_files(path)} - before) < count and process.poll() is None:
        time.sleep(0.005)
    time.sleep(delay)
    process.kill()
    return process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("moments", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_a_run_killed_at_random_moments_resumes_bit_for_bit(moments, tmp_path, capsys):
    path, end = tmp_path / "newtons_cradle.nc", moments * PER_KILL
    chain, state = carom.models.newtons_cradle(5)
    whole = carom.simulate(chain, state, carom.TailoredTheta(), t1=end, h=0.5, save_every=40)
    chance = random.Random(8)
    arguments, reached = [*RUN, "--t1", str(end), "--out", str(tmp_path)], []
    for _ in range(moments):
        assert killed(path, arguments, chance.randint(1, 3), chance.uniform(0.0, 0.06))
        partial = carom.load(path)
        reached.append(partial.t[-1])
        assert np.array_equal(partial.q[:-1], whole.q[: len(partial.t) - 1])
        arguments = ["resume", str(path)]
    assert reached == sorted(reached)
    assert reached[-1] < end
    cli.resume(path, None, progress=False)
    assert same_rows(carom.load(path), whole)
    assert [p.name for p in tmp_path.iterdir()] == ["newtons_cradle.nc"]
    assert capsys.readouterr().out.splitlines()[-1] == str(path)


def small(t1=100.0, **options):
    return simulate_to(
        options.pop("path"),
        *carom.models.newtons_cradle(3),
        carom.TailoredTheta(),
        t1=t1,
        stepping=carom.Constant(0.5),
        **options,
    )


def test_segments_are_merged_at_the_end_and_equal_a_plain_run(tmp_path):
    sol = small(path=tmp_path / "run.nc")
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]
    plain = carom.simulate(*carom.models.newtons_cradle(3), carom.TailoredTheta(), t1=100.0, h=0.5)
    assert same_rows(carom.load(tmp_path / "run.nc"), plain)
    assert same_rows(sol, plain)


class Killed(Exception):
    pass


def test_a_finished_run_is_extended_in_place_even_if_killed_while_at_it(tmp_path, monkeypatch):
    path = tmp_path / "run.nc"
    small(t1=50.0, path=path)
    whole = small(t1=120.0, path=tmp_path / "whole.nc")

    def die(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Segments, "finish", die)
        with pytest.raises(Killed):
            resume_to(path, t1=120.0, every=1e-9)
    assert not path.exists()
    assert len(segment_files(path)) >= 1
    assert same_rows(resume_to(path), whole)
    assert same_rows(carom.load(path), whole)


def test_rows_that_a_stepping_took_back_are_not_read(tmp_path):
    """A later segment replaces the rows from its first k on."""
    path = tmp_path / "run.nc"
    keep = Segments(path, every=1e-9)
    chain, state = carom.models.newtons_cradle(3)
    run = prepare(chain, state, carom.TailoredTheta(), 10.0, carom.Constant(0.5))
    keep.write(run)
    run.chunk()
    keep.write(run)
    spoiled = keep.known.copy()
    spoiled[15:] += 0.1
    keep.known = spoiled
    keep.write(run)
    assert carom.load(path).t.tolist() == run.solution().t.tolist()
    assert len(carom.load(path).data.attrs["fingerprint"]) == 64


def test_a_new_run_does_not_read_segments_of_an_old_one(tmp_path):
    path = tmp_path / "run.nc"
    keep = Segments(path)
    chain, state = carom.models.newtons_cradle(4)
    keep.write(prepare(chain, state, carom.TailoredTheta(), 10.0, carom.Constant(0.5)))
    small(path=path)
    assert carom.load(path).q.shape[1] == 3
    assert not keep.folder.exists()


def test_files_carry_units_names_and_where_they_come_from(tmp_path):
    system = carom.System([1.0, 2.0], lambda q: 0.5 * q @ q, labels=("x", "phi"), units=("m", "rad"))
    sol = carom.simulate(system, carom.State([1.0, 0.0], [0.0, 0.0]), carom.Theta(), t1=1.0, h=0.1)
    sol.save(tmp_path / "run.nc")
    data = carom.load(tmp_path / "run.nc").data
    assert data["coordinate"].values.tolist() == ["x", "phi"]
    assert data["unit"].values.tolist() == ["m", "rad"]
    assert data["q"].attrs["long_name"] == "coordinates"
    assert {"carom", "jax", "python", "command", "created", "method", "stepping"} <= set(data.attrs)


def test_a_model_in_si_units_says_so_in_files_and_figures(tmp_path):
    chain, state = carom.models.bead_chain([0.01] * 3)
    sol = carom.simulate(chain, state, carom.TailoredTheta(), t1=1e-5, h=1e-6)
    sol.save(tmp_path / "run.nc")
    data = carom.load(tmp_path / "run.nc").data
    assert (data["q"].attrs["units"], data["v"].attrs["units"]) == ("m", "m s-1")
    assert [axes.get_ylabel() for axes in carom.plots.overview(sol).axes][:2] == ["q [m]", "v [m/s]"]
