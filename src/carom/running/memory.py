"""The memory of the process, as far as compiled programs crowd it."""

from __future__ import annotations

import ctypes
from pathlib import Path

_CROWDED = 0.5  # of the pieces of memory that Linux allows: a program takes hundreds, beyond them the compiler aborts


def is_crowded() -> bool:
    """Whether the process holds half of the pieces of memory that Linux allows; elsewhere never."""
    try:
        pieces = Path("/proc/self/maps").read_bytes().count(b"\n")
        return pieces > _CROWDED * int(Path("/proc/sys/vm/max_map_count").read_text())
    except OSError:
        return False


def give_back() -> None:
    """Give freed memory back to the system, where C's library can."""
    getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)(0)
