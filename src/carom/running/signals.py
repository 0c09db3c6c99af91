"""Ctrl-C during a run: noted at once, acted upon between chunks, never lost.

Python raises KeyboardInterrupt wherever it happens to be, also inside callbacks of the garbage collector in which
exceptions are printed and forgotten. While a run lasts, a signal is only noted; `look` then calls the handler that was
there before. A second signal calls it at once.
"""

from __future__ import annotations

import _signal  # pyright: ignore
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_SIGNALS = (int(signal.SIGINT), int(signal.SIGTERM))
_get, _set = _signal.getsignal, _signal.signal  # those of `signal` look up enumerations: 30 us per run
_earlier: dict[int, Callable[..., Any]] = {}  # the handlers that wait while signals are only noted
_noted: list[int] = []


@contextmanager
def deferred() -> Iterator[None]:
    """Note signals that Python code handles, instead of acting on them; those not looked at are acted upon at the end.

    Example:
        >>> with deferred():
        ...     compile_for_long()
        ...     look()
    """
    if _earlier or threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: _get(number) for number in _SIGNALS}
    for number, handler in handlers.items():
        if callable(handler):
            _earlier[number] = handler
            _set(number, _note)
    try:
        yield
    except KeyboardInterrupt:
        _noted.clear()
        raise
    finally:
        for number, handler in _earlier.items():
            _set(number, handler)
        _earlier.clear()
        late = _noted.copy()
        _noted.clear()
        for number in late:
            signal.raise_signal(number)


def look() -> None:
    """Act on a signal that was noted; only the main thread may."""
    if _noted and threading.current_thread() is threading.main_thread():
        number = _noted.pop(0)
        _earlier[number](number, None)


def _note(number: int, frame: Any) -> None:
    if number in _noted:
        _earlier[number](number, frame)
    else:
        _noted.append(number)
