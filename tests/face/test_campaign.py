"""Runs of the command line that are killed, interrupted, cut off from the disk, or two at a time: nothing is lost."""

import platform
import random
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import carom
from carom.files.storage import part_files

RUN = ["run", "newtons_cradle", "--set", "n=5", "--method", "TailoredTheta()", "--h", "0.5", "--save-every", "40"]


def started(arguments, **options):
    command = [sys.executable, "-m", "carom_cli", *arguments, "--parts", "0.02", "--no-progress"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def command(path, end=0.0):
    """The command that begins the run, or goes on with it."""
    return ["resume", str(path)] if part_files(path) else [*RUN, "--t1", str(end), "--out", str(path.parent)]


def after_parts(process, path, count, delay):
    """Wait until the process has written some parts, and a little longer; True if it still runs."""
    before = len(part_files(path))
    while len(part_files(path)) < before + count and process.poll() is None:
        time.sleep(0.002)
    time.sleep(delay)
    return process.poll() is None


def same(path, end):
    chain, state = carom.models.newtons_cradle(5)
    whole = carom.simulate(chain, state, carom.TailoredTheta(), t1=end, h=0.5, save_every=40)
    stored = carom.load(path)
    return all(np.array_equal(stored.columns[name], whole.columns[name]) for name in whole.columns)


def stopped(path, signals, end, chance):
    """Run and resume with these signals at random moments, then to the end; the exit codes and what was said."""
    ends = []
    for number in signals:
        process = started(command(path, end))
        running = after_parts(process, path, chance.randint(1, 3), chance.uniform(0.0, 0.1))
        if running:
            process.send_signal(number)
        said = process.communicate(timeout=120)[1].strip()
        ends.append((process.returncode, said))
        if part_files(path):
            carom.load(path)
    process = started(command(path, end))
    process.communicate(timeout=300)
    return ends, process.returncode


@pytest.mark.slow
def test_a_terminated_run_keeps_its_parts_and_says_how_to_go_on(tmp_path):
    path = tmp_path / "newtons_cradle.nc"
    [(code, said)], last = stopped(path, [signal.SIGTERM], 20_000.0, random.Random(3))
    assert (code, last) == (143, 0)
    assert said.startswith("carom: interrupted at t = ")
    assert said.endswith(f"`carom resume {path}` goes on")
    assert same(path, 20_000.0)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "count"), [(signal.SIGKILL, 50), (signal.SIGINT, 20)])
def test_signals_at_random_moments_lose_nothing(number, count, tmp_path):
    path, end = tmp_path / "newtons_cradle.nc", count * 40_000.0
    ends, last = stopped(path, [number] * count, end, random.Random(5))
    expected = -signal.SIGKILL if number == signal.SIGKILL else 130
    print(f"{[code for code, _ in ends].count(expected)} of {count} runs ended by {signal.Signals(number).name}")
    assert {code for code, _ in ends} == {expected}
    assert number == signal.SIGKILL or all("goes on" in said for _, said in ends)
    assert last == 0
    assert same(path, end)
    assert {p.name for p in tmp_path.iterdir()} == {path.stem + ending for ending in (".nc", ".png", ".html")}


def refused(process):
    said = process.communicate(timeout=120)[1].strip()
    assert process.returncode == 2, said
    assert "could not be written" in said
    assert "\n" not in said


def limited(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.slow
def test_a_limit_of_file_sizes_ends_a_run_in_one_sentence(tmp_path):
    path = tmp_path / "newtons_cradle.nc"
    for size in (1_000, 40_000, 60_000, 100_000, 300_000):
        refused(started(command(path, 400_000.0), preexec_fn=limited(size)))
    assert started(command(path, 400_000.0)).wait(120) == 0
    assert same(path, 400_000.0)


@pytest.mark.slow
def test_a_full_disk_ends_a_run_in_one_sentence_and_keeps_the_old_result(tmp_path):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(tmp_path)], check=False).returncode:
        pytest.skip("needs the right to mount")
    try:
        path = tmp_path / "newtons_cradle.nc"
        chain, state = carom.models.newtons_cradle(5)
        carom.simulate(chain, state, carom.TailoredTheta(), t1=100.0, h=0.5).save(path)
        before = path.read_bytes()
        refused(started(command(path, 400_000.0)))
        assert path.read_bytes() == before
        assert part_files(path)
        subprocess.run(["mount", "-o", "remount,size=100m", str(tmp_path)], check=True)
        assert started(command(path)).wait(120) == 0
        assert same(path, 400_000.0)
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)


@pytest.mark.slow
def test_of_two_writers_one_is_refused_and_the_other_not_disturbed(tmp_path):
    path = tmp_path / "newtons_cradle.nc"
    first = started(command(path, 2_000_000.0))
    assert after_parts(first, path, 1, 0.1)
    for arguments in ([*RUN, "--t1", "100", "--out", str(tmp_path)], ["resume", str(path)]):
        second = started(arguments)
        said = second.communicate(timeout=60)[1]
        assert second.returncode == 2
        assert f"being written by process {first.pid} on {platform.node()}" in said
    assert first.wait(200) == 0
    assert same(path, 2_000_000.0)
    assert not part_files(path)
