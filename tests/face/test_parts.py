"""Long runs on disk: parts, kill -9 at random moments, resume to the same data bit for bit."""

import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray

import carom
from carom.cli import runs
from carom.files import whole_files as files
from carom.files import writing
from carom.files.parts import Parts, resume_to, simulate_to
from carom.files.storage import part_files
from carom.running.run import prepare

PER_KILL = 40000.0  # time of the model for every kill, more than runs between two of them
RUN = ["run", "newtons_cradle", "--set", "n=5", "--method", "TailoredTheta()", "--h", "0.5", "--save-every", "40"]


def same_rows(a, b):
    assert set(a.columns) == set(b.columns)
    return all(np.array_equal(a.columns[name], b.columns[name]) for name in a.columns)


def killed(path, arguments, count, delay):
    """Start a command, wait until it has written `count` parts and a little more, kill -9; True if in time."""
    command = [sys.executable, "-m", "carom_cli", *arguments, "--parts", "0.02", "--no-progress"]
    before = {p.name for p in part_files(path)}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len({p.name for p in part_files(path)} - before) < count and process.poll() is None:
        time.sleep(0.005)
    time.sleep(delay)
    process.kill()
    return process.wait() == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("moments", [1, 10])
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
    runs.resume(path, None, progress=False)
    assert same_rows(carom.load(path), whole)
    assert {p.name for p in tmp_path.iterdir()} == {f"newtons_cradle.{ending}" for ending in ("nc", "png", "html")}
    assert capsys.readouterr().out.splitlines()[-1] == str(path.with_suffix(".html"))


def small(t1=100.0, **options):
    return simulate_to(
        options.pop("path"),
        *carom.models.newtons_cradle(3),
        carom.TailoredTheta(),
        t1=t1,
        stepping=carom.Constant(0.5),
        **options,
    )


def test_parts_are_merged_at_the_end_and_equal_a_plain_run(tmp_path):
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
        patch.setattr(Parts, "finish", die)
        with pytest.raises(Killed):
            resume_to(path, t1=120.0, every=1e-9)
    assert len(part_files(path)) >= 1
    with pytest.warns(UserWarning, match="a newer one, not finished"):
        assert carom.load(path).t[-1] == 50.0
    assert same_rows(resume_to(path), whole)
    assert same_rows(carom.load(path), whole)


def test_rows_that_a_stepping_took_back_are_not_read(tmp_path):
    """A later part replaces the rows from its first k on."""
    path = tmp_path / "run.nc"
    keep = Parts(path, every=1e-9)
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


def begun(path, n=4):
    """The first part of a run that goes no further."""
    keep = Parts(path)
    keep.write(prepare(*carom.models.newtons_cradle(n), carom.TailoredTheta(), 10.0, carom.Constant(0.5)))
    return keep


def test_a_new_run_replaces_neither_a_result_nor_parts_before_it_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "run.nc"
    small(path=path)
    before = path.read_bytes()

    def die(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Parts, "finish", die)
        with pytest.raises(Killed):
            small(t1=50.0, path=path)
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match=r"not finished: `carom resume .*run.nc`, or remove the folder"):
        small(path=path)
    assert path.read_bytes() == before
    assert resume_to(path).t[-1] == 50.0
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


def test_parts_left_behind_by_a_finished_run_are_not_taken_for_another(tmp_path):
    path = tmp_path / "run.nc"
    keep = begun(path, n=3)
    chain, state = carom.models.newtons_cradle(3)
    sol = carom.simulate(chain, state, carom.TailoredTheta(), t1=10.0, h=0.5)
    files.write(writing.with_carry(sol, keep.run_id), path)
    assert same_rows(carom.load(path), sol)
    small(path=path)
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


def test_a_failed_run_keeps_its_rows_and_lets_another_one_begin(tmp_path):
    path = tmp_path / "run.nc"
    system, state = carom.System(1.0, lambda q: -0.25 * q @ q * q @ q), carom.State([1.0], [1.0])
    options = {"stepping": carom.Constant(0.01), "every": 10.0}
    with pytest.raises(carom.SimulationError):
        simulate_to(path, system, state, carom.StormerVerlet(), t1=20.0, **options)
    assert len(carom.load(path).t) > 10
    assert simulate_to(path, system, state, carom.StormerVerlet(), t1=0.1, **options).t[-1] == 0.1
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


def test_rows_that_could_not_be_written_are_in_the_error(tmp_path, monkeypatch):
    path, write = tmp_path / "run.nc", files.write

    def full(data, path, *through, **folder):
        if path.name != "0001.nc":
            msg = f"{path} could not be written: No space left on device"
            raise files.NotWrittenError(msg)
        write(data, path, *through, **folder)

    with monkeypatch.context() as patch:
        patch.setattr(files, "write", full)
        with pytest.raises(OSError, match=r"No space left on device; `carom resume .*` goes on") as caught:
            small(path=path)
    assert caught.value.solution.t[-1] == 100.0
    assert resume_to(path).t[-1] == 100.0


def test_a_second_writer_is_refused_while_the_first_lives(tmp_path):
    path = tmp_path / "run.nc"
    with Parts(path), pytest.raises(ValueError, match=rf"being written by process {os.getpid()} on "):
        small(path=path)
    assert not list(tmp_path.iterdir())
    keep = begun(path, n=3)
    (keep.folder / "lock").write_text(json.dumps({"pid": 1, "host": platform.node()}))
    assert resume_to(path).t[-1] == 10.0, "the lock of a dead process is taken over"
    begun(path)
    (keep.folder / "lock").write_text('{"pid": 1, "host": "another"}')
    with pytest.raises(ValueError, match="process 1 on another"):
        resume_to(path)


def test_parts_that_do_not_belong_together_are_refused(tmp_path):
    path = tmp_path / "run.nc"
    first = begun(path)
    second = begun(tmp_path / "other.nc")
    shutil.copy(second.folder / "0001.nc", first.folder / "0002.nc")
    with pytest.raises(ValueError, match="0002.nc belongs to another run than 0001.nc"):
        carom.load(path)
    (first.folder / "0002.nc").rename(first.folder / "0003.nc")
    with pytest.raises(ValueError, match="part 0002.nc is missing"):
        carom.load(path)
    (first.folder / "0003.nc").unlink()
    data = files.read(first.folder / "0001.nc")
    data.attrs["first_row"] = 7
    files.write(data, first.folder / "0002.nc")
    with pytest.raises(ValueError, match="begin with row 7, but the parts before hold 1"):
        carom.load(path)


def test_files_carry_units_names_and_where_they_come_from(tmp_path):
    system = carom.System([1.0, 2.0], lambda q: 0.5 * q @ q, labels=("x", "phi"), units=("m", "rad"))
    sol = carom.simulate(system, carom.State([1.0, 0.0], [0.0, 0.0]), carom.Theta(), t1=1.0, h=0.1)
    sol.save(tmp_path / "run.nc")
    data = carom.load(tmp_path / "run.nc").data
    assert data["coordinate"].values.tolist() == ["x", "phi"]
    assert data["unit"].values.tolist() == ["m", "rad"]
    assert data["q"].attrs["long_name"] == "coordinates"
    assert {"carom", "jax", "python", "command", "created", "method", "stepping"} <= set(data.attrs)


@pytest.mark.slow
def test_a_model_in_si_units_says_so_in_files_and_figures(tmp_path):
    chain, state = carom.models.bead_chain([0.01] * 3)
    sol = carom.simulate(chain, state, carom.TailoredTheta(), t1=1e-5, h=1e-6)
    sol.save(tmp_path / "run.nc")
    data = carom.load(tmp_path / "run.nc").data
    assert (data["q"].attrs["units"], data["v"].attrs["units"]) == ("m", "m s-1")
    assert [axes.get_ylabel() for axes in carom.plots.overview(sol).axes][:2] == ["q [m]", "v [m/s]"]


def test_a_large_file_is_packed_without_loss(tmp_path, monkeypatch):
    rows = np.random.default_rng(1).normal(size=200_000)
    data = xarray.Dataset({"q": ("time", rows), "mode": ("time", np.zeros(200_000))})
    files.write(data, tmp_path / "plain.nc")
    monkeypatch.setattr(files, "_LARGE", 1)
    files.write(data, tmp_path / "packed.nc")
    assert (tmp_path / "packed.nc").stat().st_size < 0.6 * (tmp_path / "plain.nc").stat().st_size
    assert files.read(tmp_path / "packed.nc").identical(files.read(tmp_path / "plain.nc"))
