"""Which file holds a contact problem in which format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py

from carom.contact_problems import fclib, siconos_text
from carom.contact_problems.problem import GlobalProblem, LocalProblem
from carom.contact_problems.solving import Result

_TEXT, _HDF5 = (".dat", ".txt"), (".hdf5", ".h5")


def read(path: Any) -> LocalProblem | GlobalProblem:
    """Read a contact problem: FCLIB (HDF5), local or global, or Siconos' text format.

    Example:
        >>> problem = carom.contact_problems.read("Capsules-i125-1213.hdf5")
    """
    path = Path(path)
    try:
        with path.open("rb"):
            pass
        return fclib.read(path) if h5py.is_hdf5(path) else siconos_text.read(path.read_text(encoding="utf-8"))
    except (ValueError, TypeError, LookupError, OverflowError, MemoryError, RuntimeError) as error:
        binary = isinstance(error, UnicodeDecodeError)
        reason = "it is neither HDF5 nor text" if binary else (str(error) or type(error).__name__).splitlines()[0]
        msg = f"{path}: no contact problem that carom can read: {reason}"
        raise ValueError(msg) from None
    except OSError as error:
        msg = f"{path}: cannot read it ({error.strerror or str(error).splitlines()[0]})"
        raise OSError(msg) from None


def write(problem: LocalProblem | GlobalProblem, path: Any, result: Result | None = None) -> None:
    """Write a contact problem: to `.hdf5` or `.h5` as FCLIB, to `.dat` or `.txt` as Siconos' text.

    FCLIB keeps texts, guesses and the solution, `result` where one is given; Siconos' text has room for none of them.

    Example:
        >>> carom.contact_problems.write(problem, "x.hdf5", result=carom.contact_problems.solve(problem))
    """
    path = Path(path)
    if path.suffix not in (*_HDF5, *_TEXT):
        msg = f"write: {path} must end with one of {', '.join((*_HDF5, *_TEXT))}, which names the format"
        raise ValueError(msg)
    if path.suffix in _TEXT and result is not None:
        msg = "write: Siconos' text format has no room for a result: write to .hdf5"
        raise ValueError(msg)
    try:
        if path.suffix in _TEXT:
            path.write_text(siconos_text.written(problem), encoding="utf-8")
        else:
            fclib.write(problem, path, problem.solution if result is None else _solution(problem, result))
    except OSError as error:
        msg = f"{path}: cannot write it ({error.strerror or str(error).splitlines()[0]})"
        raise OSError(msg) from None


def _solution(problem: LocalProblem | GlobalProblem, result: Result) -> dict[str, Any]:
    """A result by FCLIB's letters."""
    named = {"u": result.velocity, "r": result.impulse}
    if result.multiplier.size:
        named["l"] = result.multiplier
    if isinstance(problem, GlobalProblem):
        push = problem.H @ result.impulse + problem.f
        named["v"] = problem.over_mass(push if problem.G is None else push + problem.G @ result.multiplier)
    return named
