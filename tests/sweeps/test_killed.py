"""Sweeps whose workers or clients are killed at random times: called again they end with the same bits."""

import multiprocessing
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext, suppress

import numpy as np
import pytest

import carom

CELLS = carom.Grid(mass=[1.0, -1.0, 2.0], height=np.linspace(1.0, 5.0, 20))
OPTIONS = {"t1": 300.0, "h": 0.01, "keep": [carom.keep.final(), carom.keep.strobe(1.0, last=30)], "batch": 2}
KILLS = 20


def spring(q):
    return 0.5 * q @ q


def build(mass, height):
    return carom.System(mass, spring), carom.State([height], [0.0])


@contextmanager
def cluster():
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as workers, Client(workers) as client:
        yield client


def processes():
    return ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))


CLIENTS = {"threads": nullcontext, "processes": processes, "cluster": cluster}


def main(kind, path):
    with CLIENTS[kind]() as client:
        print("ready", flush=True)
        carom.sweep(build, CELLS, carom.ExplicitRK(carom.explicit(4)), **OPTIONS, to=path, client=client)


class Sweeping:
    """A sweep in a process of its own, and its workers."""

    def __init__(self, kind, path):
        self.psutil = psutil = pytest.importorskip("psutil")
        run = [sys.executable, "-m", "tests.sweeps.test_killed", kind, str(path)]
        self.process = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.tree = psutil.Process(self.process.pid)

    def workers(self):
        return [one for one in self.tree.children(recursive=True) if self.is_worker(one)]

    def is_worker(self, one):
        try:
            return "spawn_main" in " ".join(one.cmdline())
        except self.psutil.NoSuchProcess:  # it has just ended
            return False

    def kill(self, a_worker, rng):
        """Kill one of the workers, or the client alone, whose workers are ended afterwards."""
        workers = self.workers()
        if a_worker and workers:
            workers = [workers[rng.integers(len(workers))]]
        else:
            self.process.kill()
        for one in workers:
            with suppress(self.psutil.NoSuchProcess):
                one.kill()

    def told(self):
        return self.process.communicate()[1]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "sweep.zarr"
    main("threads", path)
    return carom.load_sweep(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLIENTS)
def test_killed_at_random_times_a_sweep_ends_with_the_same_bits(kind, whole, tmp_path):
    pytest.importorskip("distributed")
    rng = np.random.default_rng(len(kind))
    kills = finished = 0
    while kills < KILLS:
        sweeping = Sweeping(kind, tmp_path / f"{finished}.zarr")
        time.sleep(rng.uniform(0.0, 6.0))
        a_worker = kind != "threads" and rng.random() < 0.5
        if sweeping.process.poll() is None:
            sweeping.kill(a_worker, rng)
            kills += 1
        told = sweeping.told()
        if sweeping.process.returncode > 0:
            assert "workers of the sweep died" in told.splitlines()[-1]
        if sweeping.process.returncode == 0:
            assert carom.load_sweep(tmp_path / f"{finished}.zarr").identical(whole)
            finished += 1
    main("threads", tmp_path / f"{finished}.zarr")
    assert carom.load_sweep(tmp_path / f"{finished}.zarr").identical(whole)


if __name__ == "__main__":
    main(*sys.argv[1:])
