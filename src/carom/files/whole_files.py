"""Files that are whole or not there: netCDF with a checksum behind it, written at once; and a lock for a folder.

A file is an ordinary netCDF-4 file followed by one line with the SHA-256 of everything before, which other readers of
netCDF do not look at. It is verified before HDF5 sees the file, so a damaged one is refused, not interpreted.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import h5py
import xarray

try:
    import fcntl
except ImportError:  # where there is no fcntl, only the text of a lock is looked at
    fcntl = None

_MARK = b"\ncarom-run-2 sha256 "
_TRAILER = len(_MARK) + 65
_HDF5 = b"\x89HDF\r\n\x1a\n"
_BLOCK = 1 << 20
_DECLARED = 8  # times the size of a file
_PACKED = 1032  # zlib cannot pack more tightly
_LARGE = 1 << 26  # bytes of a run from which on it is packed


class NotWrittenError(OSError):
    """A file that could not be written. `.solution` holds what was computed, where a run ended with it."""

    solution: Any = None


@contextmanager
def readable(path: Any) -> Iterator[None]:
    """Whatever goes wrong while a file is read is told in one sentence with its path."""
    try:
        yield
    except Exception as error:  # noqa: BLE001
        text = str(error) or type(error).__name__
        if isinstance(error, ValueError) and text.startswith(str(path)):
            raise
        said = isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError)
        reason = text.splitlines()[0] if said else f"{type(error).__name__}: {text.splitlines()[0][:200]}"
        msg = f"{path}: {reason}" if said else f"{path}: not a whole run stored by carom ({reason})"
        raise ValueError(msg) from None


def write(data: xarray.Dataset, path: Path, through: Path | None = None) -> None:
    """Write a file that appears complete or not at all; `through` is a folder for what is not yet complete."""
    image = data.to_netcdf(engine="h5netcdf", encoding=_compressed(data))
    digest = hashlib.sha256(image).hexdigest().encode()
    partial = (through or path.parent) / f"{path.name}.{os.getpid()}.part"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open("wb") as file:
                file.write(image)
                file.write(_MARK + digest + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        msg = f"{path} could not be written: {error.strerror or error}"
        raise NotWrittenError(msg) from None


def _compressed(data: xarray.Dataset) -> dict[Any, dict[str, Any]]:
    """How the columns of a large run are packed, without loss; a small one is stored as it is."""
    if data.nbytes < _LARGE:
        return {}
    packed = {"zlib": True, "complevel": 1, "shuffle": True}
    return {name: packed for name, values in data.variables.items() if values.nbytes > _BLOCK}


def read(path: Path) -> xarray.Dataset:
    """The dataset of a file, after its checksum and sizes were looked at."""
    with readable(path):
        size = _verified(path)
        with h5py.File(path) as file:
            _refuse_oversized(file, size)
        with xarray.open_dataset(path, engine="h5netcdf", decode_cf=False) as data:
            return xarray.decode_cf(data.load(), decode_times=False)


def _verified(path: Path) -> int:
    """The size of a file whose checksum holds."""
    size = path.stat().st_size
    digest = hashlib.sha256()
    with path.open("rb") as file:
        first, left = file.read(len(_HDF5)), size - _TRAILER
        file.seek(max(left, 0))
        trailer = file.read()
        if not trailer.startswith(_MARK):
            what = (
                "is netCDF, but not a whole run of this version of carom"
                if first == _HDF5
                else "is not a run stored by carom"
            )
            msg = f"{path}: this file {what} (it does not end with its checksum)"
            raise ValueError(msg)
        file.seek(0)
        while left > 0:
            block = file.read(min(left, _BLOCK))
            digest.update(block)
            left -= len(block)
    if trailer != _MARK + digest.hexdigest().encode() + b"\n":
        msg = f"{path}: this file was damaged or changed after carom wrote it (its checksum does not fit)"
        raise ValueError(msg)
    return size


def _refuse_oversized(file: Any, size: int) -> None:
    """Numbers are stored as they are (names of dimensions, some bytes each, are not), or packed up to `_PACKED`."""
    arrays = [entry for entry in file.values() if isinstance(entry, h5py.Dataset)]
    least = sum(int(entry.size or 0) * entry.dtype.itemsize / (_PACKED if entry.compression else 1) for entry in arrays)
    if least > _DECLARED * size:
        msg = f"the file declares {least:.3g} bytes of numbers, but has only {size}"
        raise ValueError(msg)


class Lock:
    """A lock file that one living process holds; that of a dead process on this machine is taken over.

    Example:
        >>> with Lock(Path("run.nc.d/lock"), "run.nc"):
        ...     write_parts()
    """

    def __init__(self, path: Path, what: Any):
        self.path, self.what = path, what
        self.file: int | None = None

    def __enter__(self) -> Lock:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            msg = f"{self.path.parent} could not be written: {error.strerror or error}"
            raise OSError(msg) from None
        if not self._mine():
            holder = self._holder()
            os.close(self.file)
            who = f"process {holder.get('pid', '?')} on {holder.get('host', '?')} since {holder.get('since', '?')}"
            msg = f"{self.what} is being written by {who}: wait for it or end it (if it is gone, remove {self.path})"
            raise ValueError(msg)
        text = {"pid": os.getpid(), "host": platform.node(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
        os.ftruncate(self.file, 0)
        os.pwrite(self.file, json.dumps(text).encode(), 0)
        return self

    def _mine(self) -> bool:
        """Whether nobody else holds the lock; the system releases that of a process which ended, however it ended."""
        assert self.file is not None
        if fcntl is not None:
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
        there = self.path.exists() and self.path.stat().st_ino == os.fstat(self.file).st_ino
        return there and self._holder().get("host", platform.node()) == platform.node()

    def _holder(self) -> dict[str, Any]:
        assert self.file is not None
        try:
            found = json.loads(os.pread(self.file, 4096, 0))
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def __exit__(self, *_: Any) -> None:
        assert self.file is not None
        self.path.unlink(missing_ok=True)
        os.close(self.file)
        with suppress(OSError):  # parts of an unfinished run are in it, or it is gone
            self.path.parent.rmdir()
