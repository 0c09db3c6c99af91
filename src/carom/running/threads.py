"""One thread for LAPACK while small systems run."""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

_FEWEST, _SMALL = 8, 512  # coordinates: fewer are not shared, factors of more are large enough to be

_lock = threading.Lock()
_running = 0
_limits: Any = None


@contextmanager
def one_for_lapack(coordinates: int) -> Iterator[None]:
    """For the length of a run: OpenBLAS shares matrices of 30 rows, and its threads then spin for milliseconds.

    They take the processors from XLA's own: a step of Bricard's mechanism takes .51 instead of .61 ms on two of them.
    """
    if not _FEWEST <= coordinates <= _SMALL:
        yield
        return
    _enter()
    try:
        yield
    finally:
        _leave()


@functools.cache
def _pools() -> ThreadpoolController:
    importlib.import_module("scipy.linalg.cython_lapack")  # XLA's LAPACK, which it loads when it compiles
    return ThreadpoolController()


def _enter() -> None:
    global _running, _limits  # noqa: PLW0603
    with _lock:
        _running += 1
        if _running == 1:
            _limits = _pools().limit(limits=1, user_api="blas")


def _leave() -> None:
    global _running, _limits  # noqa: PLW0603
    with _lock:
        _running -= 1
        if _running == 0 and _limits is not None:
            _limits.restore_original_limits()
            _limits = None
