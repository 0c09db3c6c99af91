"""Files that are damaged, foreign, hostile or cannot be written end in one sentence; signals are never lost."""

import contextlib
import functools
import json
import random
import signal
import subprocess
import sys
import textwrap

import h5py
import numpy as np
import pytest
import xarray

import carom
from carom.files import whole_files as files
from carom.files import writing
from carom.files.whole_files import _MARK
from carom.running import asking

from .toys import oscillator


@functools.cache
def cradle():
    return carom.simulate(*carom.models.newtons_cradle(3), carom.TailoredTheta(), t1=10.0, h=0.5)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("stored") / "run.nc"
    cradle().save(path)
    return path.read_bytes()


@pytest.fixture
def path(stored, tmp_path):
    (tmp_path / "run.nc").write_bytes(stored)
    return tmp_path / "run.nc"


def refusals(path):
    """What loading and resuming say; both refuse in one sentence that names the file."""
    said = []
    for use in (carom.load, carom.resume):
        with pytest.raises(ValueError, match=r"run\.nc: .") as caught:
            use(path)
        said.append(str(caught.value))
    assert not any("\n" in text for text in said)
    return said[0]


def test_every_flipped_bit_is_found(path):
    content, chance = path.read_bytes(), random.Random(1)
    for place in [*range(8), *(chance.randrange(len(content)) for _ in range(60)), len(content) - 3]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"run\.nc: this file"):
            carom.load(path)


@pytest.mark.parametrize("length", [0, 1, 50, 1000, -1])
def test_a_file_that_was_cut_is_refused(path, length):
    path.write_bytes(path.read_bytes()[:length])
    assert "does not end with its checksum" in refusals(path)


def test_other_netcdf_files_and_folders_are_refused(path):
    xarray.Dataset({"q": ("time", np.ones(3))}).to_netcdf(path, engine="h5netcdf")
    assert "not a whole run of this version of carom" in refusals(path)
    path.unlink()
    path.mkdir()
    refusals(path)


def test_readers_of_netcdf_read_the_files(path):
    data = xarray.open_dataset(path, engine="h5netcdf")
    assert np.array_equal(data["q"], cradle().q)
    with h5py.File(path) as file:
        assert np.array_equal(np.asarray(file["q"]), cradle().q)


def changed(path, change):
    """The file with other content and a checksum that fits."""
    data = files.read(path)
    path.unlink()
    files.write(change(data) or data, path)


def drop(name):
    return lambda data: data.drop_vars(name)


def attribute(name, value):
    return lambda data: data.attrs.__setitem__(name, value)


HOSTILE = {
    "no time": drop("time"),
    "no coordinates": drop("q"),
    "no counters": lambda data: data.attrs.pop("stats") and None,
    "counters that are no JSON": attribute("stats", "{"),
}
ONLY_RESUMED = {
    "carry.counts.values is missing": drop("carry.counts.values"),
    r"carry.k is float64\[\], not int64": lambda data: data.assign({"carry.k": data["carry.k"].astype(float)}),
    "carry.surprise is unknown": lambda data: data.assign({"carry.surprise": 1.0}),
    r"newtons_cradle\(n=1000000000\)": attribute("model", json.dumps(["newtons_cradle", '{"n": 1000000000}'])),
    "unknown model 'x'": attribute("model", '["x", "{}"]'),
    "JSONDecodeError": attribute("method", "nothing"),
    "the stored method jax is not one of carom's": attribute("method", '{"class": "jax", "fields": {}}'),
    "too many stages": attribute("method", '{"class": "IRK", "fields": {"tableau": {"tableau": "gauss(99999)"}}}'),
    "KeyError": lambda data: data.attrs.pop("reads") and None,
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_file_that_lacks_something_is_refused(path, what):
    changed(path, HOSTILE[what])
    assert "not a whole run stored by carom" in refusals(path)


@pytest.mark.parametrize("said", ONLY_RESUMED)
def test_a_run_that_cannot_go_on_says_why(path, said):
    changed(path, ONLY_RESUMED[said])
    with pytest.raises(ValueError, match=rf"run\.nc: .*{said}") as told:
        carom.resume(path)
    assert ("Start from its last row instead" in str(told.value)) == said.startswith("carry.")


def test_a_file_that_declares_more_than_it_holds_is_refused(path):
    with h5py.File(path, "a") as file:
        file.create_dataset("huge", shape=(201, 10**9), dtype=float)
    image = path.read_bytes()
    path.write_bytes(image + _MARK + writing.hashlib.sha256(image).hexdigest().encode() + b"\n")
    assert "declares 1.61e+12 bytes" in refusals(path)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"run\.nc could not be written: "):
        cradle().save(tmp_path / "file" / "run.nc")


LIMITED = """
    import resource, sys
    import carom

    sol = carom.simulate(*carom.models.newtons_cradle(3), carom.TailoredTheta(), t1=100.0, h=0.5)
    sol.save(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    try:
        sol.save(sys.argv[1])
    except OSError as error:
        print(error, len(sol.t))
"""


@pytest.mark.slow
def test_a_limit_of_file_sizes_leaves_the_old_file_and_the_rows(tmp_path):
    path = tmp_path / "run.nc"
    command = [sys.executable, "-c", textwrap.dedent(LIMITED), str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == f"{path} could not be written: File too large 201"
    assert len(carom.load(path).t) == 201
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


def test_ctrl_c_before_the_first_chunk_has_a_solution(monkeypatch):
    check = asking.check_once

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        check(*arguments)

    monkeypatch.setattr(asking, "check_once", interrupted)
    with pytest.raises(carom.Interrupted, match="interrupted at t = 0") as caught:
        carom.simulate(*oscillator(), carom.Theta(), t1=1.0, h=0.1)
    assert caught.value.solution.t.tolist() == [0.0]


def test_ctrl_c_where_exceptions_are_forgotten_is_not_lost():
    def potential(q):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return q @ q

    with pytest.raises(carom.Interrupted):
        carom.simulate(carom.System(1.0, potential), carom.State([1.0], [0.0]), carom.Theta(), t1=1.0, h=0.1)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_is_raised_at_once():
    def potential(q):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError

    with pytest.raises(KeyboardInterrupt):
        carom.simulate(carom.System(1.0, potential), carom.State([1.0], [0.0]), carom.Theta(), t1=1.0, h=0.1)


def test_ctrl_c_at_the_very_end_hands_out_the_whole_run():
    def callback(now):
        if now.finished:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(carom.Interrupted) as caught:
        carom.simulate(*oscillator(), carom.Theta(), t1=1.0, h=0.1, callback=callback)
    assert caught.value.solution.t[-1] == 1.0
