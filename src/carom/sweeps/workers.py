"""Who runs the batches: a thread per core or device, other processes, or a cluster."""

from __future__ import annotations

import hashlib
import os
import pickle
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import jax
import numpy as np

from carom.state import shortened
from carom.sweeps.engine import Part, run_batch
from carom.sweeps.plan import Batch, Plan
from carom.sweeps.template import Template

_POLL_SECONDS = 0.05
_LOOK_SECONDS = 1.0  # between looks at how many workers there are
_AHEAD = 2  # batches per worker that wait for it
_RETRIES = 2  # of a batch whose worker died, on a cluster
# XLA's pool as large as the worker's own, read when a worker first uses JAX: more threads gain nothing and take
# each other's cores (500 oscillators, one batch: 1.04 s with one thread, 1.23 s with two on two cores)
_SHARE = "import os; os.environ.setdefault('NPROC', '{}')"
_LOST = (BrokenExecutor, CancelledError, OSError)  # what a task raises whose worker is gone


def workers() -> list[Any]:
    """A device per thread; a processor that is one device gets a thread per core.

    Two threads with batches of their own take half the time of one, while XLA's own threads gain nothing on many small
    lanes.
    """
    devices = jax.local_devices()
    if len(devices) > 1 or devices[0].platform != "cpu":
        return devices
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return devices * cores


def in_threads(plan: Plan, batches: list[Batch]) -> Iterator[tuple[Batch, Part]]:
    """Run batches, as many at once as there are workers; each is handed out when it is done."""
    devices: SimpleQueue[Any] = SimpleQueue()
    for device in workers():
        devices.put(device)
    stop = threading.Event()

    def one(batch: Batch) -> Part:
        device = devices.get()
        try:
            with jax.default_device(device):
                return run_batch(plan.template(batch), plan.numbers(batch.cells), stop=stop)
        finally:
            devices.put(device)

    with ThreadPoolExecutor(len(workers())) as pool:
        futures = {pool.submit(one, batch): batch for batch in batches}
        try:
            for future in as_completed(futures):
                yield futures.pop(future), future.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


# ---- other processes ------------------------------------------------------------------------------------------------


def cluster(address: str) -> Any:
    """The Dask client of a scheduler."""
    try:
        from distributed import Client  # pyright: ignore
    except ImportError:
        msg = f"a cluster at {address} needs Dask: pip install carom[cluster]"
        raise ValueError(msg) from None
    return Client(address, timeout=10)


def size(client: Any) -> int:
    """How many batches a client runs at once."""
    if hasattr(client, "nthreads"):
        return max(1, sum(client.nthreads().values()))
    context = getattr(client, "_mp_context", None)
    if not hasattr(client, "submit"):
        msg = f"client must be a concurrent.futures executor or a dask.distributed.Client, got {shortened(client)}"
        raise TypeError(msg)
    if context is not None and context.get_start_method() == "fork":
        msg = "client: forked processes hang with JAX; write mp_context=multiprocessing.get_context('spawn')"
        raise ValueError(msg)
    return getattr(client, "_max_workers", 1)


def by_client(plan: Plan, batches: list[Batch], client: Any) -> Iterator[tuple[Batch, Part]]:
    """Run batches elsewhere: workers get the question once, then numbers; each is handed out when it is done."""
    questions = [_packed(plan, group) for group in range(len(plan.templates))]
    waiting, running, most, looked = list(reversed(batches)), {}, 0, -_LOOK_SECONDS
    if hasattr(client, "nthreads"):
        with _client_lives(Exception):
            for address, threads in client.nthreads().items():
                client.run(exec, _SHARE.format(threads), workers=[address])
    while waiting or running:
        with _client_lives(Exception):
            if waiting and time.monotonic() - looked > _LOOK_SECONDS:
                most, looked = _AHEAD * size(client), time.monotonic()
            while waiting and len(running) < most:
                batch = waiting.pop()
                running[_submitted(client, questions[batch.group], plan.numbers(batch.cells))] = batch
        finished = [task for task in running if task.done()]
        for task in sorted(finished, key=_failed):  # what is done is handed out before anything is raised
            with _client_lives(*_LOST):
                part = task.result()
            yield running.pop(task), part
        if not finished:
            time.sleep(_POLL_SECONDS)


def _submitted(client: Any, question: bytes, numbers: dict[str, np.ndarray]) -> Any:
    options = {"retries": _RETRIES, "pure": False} if hasattr(client, "nthreads") else {}
    return client.submit(work, question, numbers, **options)


def _failed(task: Any) -> bool:
    return task.cancelled() or task.exception() is not None


@contextmanager
def _client_lives(*lost: type[Exception]) -> Iterator[None]:
    """Tell in one sentence that workers, or who hands out their work, are gone."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, lost) and type(error).__name__ != "KilledWorker":
            raise
        told = f"{type(error).__name__}: {error}".splitlines()[0]
        msg = f"workers of the sweep died ({told}); with to= a second call goes on with the missing cells"
        raise RuntimeError(msg) from error


def _packed(plan: Plan, group: int) -> bytes:
    """All that a worker needs to know of a group of cells; functions that are written in place need cloudpickle."""
    template = plan.templates[group]
    if not isinstance(template, Template):
        return b""
    content = (plan.asked, plan.fixed[group], template.numbers, template.example, plan.cells.count)
    try:
        import cloudpickle as pickler  # pyright: ignore
    except ImportError:
        pickler = pickle
    try:
        return pickler.dumps(content)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        msg = f"client: {error}; functions that are not in a module need cloudpickle: pip install carom[cluster]"
        raise ValueError(msg) from None


_templates: dict[str, Template] = {}


def work(question: bytes, numbers: dict[str, np.ndarray]) -> Part:
    """A batch in a worker, which traces and compiles a question once."""
    key = hashlib.sha256(question).hexdigest()
    if key not in _templates:
        asked, fixed, dtypes, example, cells = pickle.loads(question)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the client has told them
            _templates[key] = Template(asked, fixed, dtypes).refuse(example, ())
            _templates[key].choose(cells)
    return run_batch(_templates[key], numbers)
