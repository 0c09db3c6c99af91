"""Sweeps on disk and on other processes: the same bits, whatever was killed in between."""

import multiprocessing
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.running import loop
from carom.sweeps import engine, storage, workers

METHOD = carom.ExplicitRK(carom.explicit(4))
OPTIONS = {"t1": 5.0, "h": 0.01, "keep": [carom.keep.final(), carom.keep.strobe(1.0, last=3)], "batch": 4}
CELLS = carom.Grid(mass=[1.0, -1.0, 2.0], height=[1.0, 2.0, 3.0, 4.0, 5.0])


def spring(q):
    return 0.5 * q @ q


def build(mass, height):
    return carom.System(mass, spring), carom.State([height], [0.0])


@pytest.fixture(scope="module")
def whole():
    return carom.sweep(build, CELLS, METHOD, **OPTIONS)


def test_a_stored_sweep_is_the_same_and_can_be_loaded(whole, tmp_path):
    path = tmp_path / "sweep.zarr"
    data = carom.sweep(build, CELLS, METHOD, **OPTIONS, to=path)
    assert data.identical(whole)
    assert carom.load_sweep(path).identical(whole)
    assert set(whole.sel(mass=-1.0).message.values) == {"mass must be positive, got mass = -1.0"}


def test_what_was_cut_off_is_made_again_and_nothing_else(whole, tmp_path, monkeypatch):
    path = tmp_path / "sweep.zarr"
    carom.sweep(build, CELLS, METHOD, **OPTIONS, to=path)
    ledger = path / "ledger.jsonl"
    lines = ledger.read_text().splitlines()
    ledger.write_text("\n".join([*lines[:2], lines[2][:10]]))
    (path / "final_q" / "3.0").unlink()
    half = carom.load_sweep(path)
    assert (half.message == "not run yet").sum() == CELLS.count - 2 * 4
    asked = []
    monkeypatch.setattr(workers, "run_batch", lambda *a, **k: asked.append(1) or engine.run_batch(*a, **k))
    assert carom.sweep(build, CELLS, METHOD, **OPTIONS, to=path).identical(whole)
    assert len(asked) == len(lines) - 2


class Killed(BaseException):
    """The end of a process, as far as files can tell."""


def test_killed_at_any_of_its_files_a_sweep_goes_on(whole, tmp_path, monkeypatch):
    write, path, left = storage._write, tmp_path / "sweep.zarr", [0]

    def dying(place, content):
        if not left[0]:
            place.with_name(f"part.{place.name}").write_bytes(b"cut off")
            raise Killed
        left[0] -= 1
        write(place, content)

    monkeypatch.setattr(storage, "_write", dying)
    data = None
    for files in range(40):
        left[0] = files
        try:
            data = carom.sweep(build, CELLS, METHOD, **OPTIONS, to=path)
            break
        except Killed:
            ledger = path / "ledger.jsonl"
            if ledger.exists():
                ledger.write_text(ledger.read_text() + '{"batch": 0, "mess')
    assert data is not None
    assert files > 10
    assert data.identical(whole)
    assert carom.load_sweep(path).identical(whole)


def test_a_folder_with_another_sweep_or_with_something_else_is_left_alone(tmp_path):
    path = tmp_path / "sweep.zarr"
    carom.sweep(build, CELLS, METHOD, **OPTIONS, to=path)
    for change, told in (
        ({"t1": 6.0}, "t1 is 6.0, stored was 5.0"),
        ({"batch": 5}, "sweep reads batch = 5, stored was batch = 4"),
        ({"keep": [carom.keep.final()]}, "keep is list of 1, stored was list of 2"),
    ):
        with pytest.raises(ValueError, match=f"holds another sweep: {told}"):
            carom.sweep(build, CELLS, METHOD, **OPTIONS | change, to=path)
    other = carom.Grid(mass=[1.0, -1.0, 2.0], height=[1.0, 2.0, 3.0, 4.0, 6.0])
    with pytest.raises(ValueError, match="holds another sweep: cells reads height"):
        carom.sweep(build, other, METHOD, **OPTIONS, to=path)
    turned = carom.Grid(height=CELLS.values["height"], mass=CELLS.values["mass"])
    with pytest.raises(ValueError, match="cells is Grid of height, mass, stored was Grid of mass, height"):
        carom.sweep(build, turned, METHOD, **OPTIONS, to=path)
    pairs = carom.Cases(mass=CELLS.values["mass"], height=CELLS.values["height"][:3])
    with pytest.raises(ValueError, match="cells is Cases of mass, height, stored was Grid of mass, height"):
        carom.sweep(build, pairs, METHOD, **OPTIONS, to=path)
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(ValueError, match="is not empty and holds no sweep"):
        carom.sweep(build, CELLS, METHOD, **OPTIONS, to=tmp_path)
    with pytest.raises(FileNotFoundError, match="holds no sweep"):
        carom.load_sweep(tmp_path)


def test_states_of_other_lengths_are_stored_beside_each_other(tmp_path):
    def masses(number, height):
        return carom.System(np.ones(number)), carom.State(jnp.full(number, height), np.zeros(number))

    cells, path = carom.Grid(number=[1, 3, 2], height=[1.0, 2.0]), tmp_path / "sweep.zarr"
    options = OPTIONS | {"static": "number"}
    data = carom.sweep(masses, cells, METHOD, **options, to=path)
    assert np.isfinite(data.strobe_q.values).sum() == 3 * 2 * (1 + 3 + 2)
    assert data.identical(carom.sweep(masses, cells, METHOD, **options))
    assert carom.sweep(masses, cells, METHOD, **options, to=path).identical(data)
    assert carom.load_sweep(path).identical(data)


def test_groups_that_keep_other_numbers_are_stored_and_a_damaged_file_is_named(tmp_path):
    def keep(number):
        return [carom.keep.peak("v")] if number > 1 else [carom.keep.final()]

    def masses(number):
        return carom.System(np.ones(number)), carom.State(np.ones(number), np.ones(number))

    path = tmp_path / "sweep.zarr"
    options = {"t1": 1.0, "h": 0.5, "keep": keep, "static": "number", "to": path}
    data = carom.sweep(masses, carom.Grid(number=[1, 2]), METHOD, **options)
    assert np.isfinite(data.peak).values.tolist() == [False, True]
    assert carom.sweep(masses, carom.Grid(number=[1, 2]), METHOD, **options).identical(data)
    assert carom.load_sweep(path).identical(data)
    (path / "final_q" / "0.0").write_bytes(b"half")
    with pytest.raises(ValueError, match="final_q/0.0 is missing or damaged"):
        carom.load_sweep(path)


def test_more_cells_than_disk_is_told_before_anything_is_lost(tmp_path, monkeypatch):
    full = type("Usage", (), {"free": 100})
    monkeypatch.setattr("shutil.disk_usage", lambda path: full)
    with pytest.raises(OSError, match="the sweep needs .* GB in"):
        carom.sweep(build, CELLS, METHOD, **OPTIONS, to=tmp_path / "sweep.zarr")


def test_a_disk_that_fills_up_on_the_way_loses_nothing(whole, tmp_path, monkeypatch):
    write, path, left = storage._write, tmp_path / "sweep.zarr", [60]

    def filling(place, content):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device", str(place))
        write(place, content)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "_write", filling)
        with pytest.raises(OSError, match="No space left on device.*; the same call goes on with the missing cells"):
            carom.sweep(build, CELLS, METHOD, **OPTIONS, to=path)
    assert 0 < (carom.load_sweep(path).message != "not run yet").sum() < CELLS.count
    assert carom.sweep(build, CELLS, METHOD, **OPTIONS, to=path).identical(whole)


class Dying:
    """An executor whose second worker dies before the first one is done."""

    def __init__(self, last):
        self.last, self.number = last, 0

    def submit(self, fn, *args):
        self.number += 1
        if self.number > 4:
            raise self.last
        task = Future()
        if self.number % 2:
            task.set_result(fn(*args))
        else:
            task.set_exception(BrokenExecutor("a process ended"))
        return task


@pytest.mark.parametrize("last", [RuntimeError("cannot schedule new futures after shutdown"), OSError("closed")])
def test_of_a_client_that_dies_all_that_was_done_is_stored(whole, tmp_path, last):
    pytest.importorskip("cloudpickle")
    path = tmp_path / "sweep.zarr"
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"workers of the sweep died \(.*\); with to= a second call goes on"):
            carom.sweep(build, CELLS, METHOD, **OPTIONS, to=path, client=Dying(last))
    assert (carom.load_sweep(path).message != "not run yet").sum() == 2 * OPTIONS["batch"]
    assert carom.sweep(build, CELLS, METHOD, **OPTIONS, to=path).identical(whole)


def test_zarr_reads_what_was_written(whole, tmp_path):
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "sweep.zarr"
    carom.sweep(build, CELLS, METHOD, **OPTIONS, to=path)
    group = zarr.open_group(path, mode="r")
    cells, q = group["cell"][:], group["final_q"][:]
    flat = whole.final_q.values.reshape(CELLS.count, 1)
    assert np.array_equal(q[cells >= 0], flat[cells[cells >= 0]], equal_nan=True)


def test_a_client_that_cannot_work_is_refused():
    with pytest.raises(TypeError, match="client must be a concurrent.futures executor"):
        carom.sweep(build, CELLS, METHOD, **OPTIONS, client="tcp://host")
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("fork"))
    with pytest.raises(ValueError, match="forked processes hang with JAX"):
        carom.sweep(build, CELLS, METHOD, **OPTIONS, client=pool)


@pytest.mark.slow
def test_spawned_processes_give_the_same_bits(whole):
    pytest.importorskip("cloudpickle")
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        assert carom.sweep(build, CELLS, METHOD, **OPTIONS, client=pool).identical(whole)


def traces():
    return loop.traces


def test_a_cluster_gives_the_same_bits_and_each_of_its_workers_traces_once(whole):
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        data = carom.sweep(build, CELLS, METHOD, **OPTIONS, client=client)
        assert set(client.run(traces).values()) <= {0, 1}
    assert data.identical(whole)
