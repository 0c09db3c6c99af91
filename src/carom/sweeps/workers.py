"""Who runs the batches: a thread per core or device."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import SimpleQueue
from typing import Any

import jax

from carom.sweeps.engine import Part, run_batch
from carom.sweeps.plan import Batch, Plan


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


def in_threads(plan: Plan, batches: list[Batch] | None = None) -> Iterator[tuple[Batch, Part]]:
    """Run batches, as many at once as there are workers; each is handed out when it is done."""
    devices: SimpleQueue[Any] = SimpleQueue()
    for device in workers():
        devices.put(device)
    stop = threading.Event()

    def one(batch: Batch) -> Part:
        device = devices.get()
        try:
            with jax.default_device(device):
                return run_batch(plan.templates[batch.group], plan.numbers(batch.cells), stop=stop)
        finally:
            devices.put(device)

    with ThreadPoolExecutor(len(workers())) as pool:
        futures = {pool.submit(one, batch): batch for batch in (plan.batches if batches is None else batches)}
        try:
            for future in as_completed(futures):
                yield futures.pop(future), future.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
