"""FCLIB's files [RT-0444, Acary, Bremond, Koziara, Perignon]: HDF5, matrices as CSparse keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
from scipy import sparse

from carom.contact_problems.problem import GlobalProblem, LocalProblem

_COMPRESSED_COLUMNS, _COMPRESSED_ROWS = -1, -2  # the places of nz
_LOCAL = ("fclib_local", LocalProblem, {"W": True, "V": False, "R": False}, {"q": True, "mu": True, "s": False})
_GLOBAL = (
    "fclib_global",
    GlobalProblem,
    {"M": True, "H": True, "G": False},
    {"f": True, "w": True, "mu": True, "b": False},
)


def read(path: Path) -> LocalProblem | GlobalProblem:
    """The problem in a file."""
    with h5py.File(path) as file:
        for name, kind, matrices, vectors in (_LOCAL, _GLOBAL):
            if name in file:
                group: Any = file[name]
                data = {k: _matrix(group, k) for k, needed in matrices.items() if needed or k in group}
                data |= {k: _array(group, p) for k, p in _paths(group, vectors)}
                return kind(dimension=_number(group, "spacedim"), **data, **_described(file, name))
        held = ", ".join(file) or "nothing"
    msg = f"expected a group fclib_local or fclib_global, found {held}"
    raise ValueError(msg)


def write(problem: LocalProblem | GlobalProblem, path: Path, solution: dict[str, Any]) -> None:
    """Write a file, whatever stood there before."""
    name, _, matrices, vectors = _LOCAL if isinstance(problem, LocalProblem) else _GLOBAL
    with h5py.File(path, "w") as file:
        group = file.create_group(name)
        group["spacedim"] = np.array([problem.dimension], np.int32)
        for key in matrices:
            if getattr(problem, key) is not None:
                _write_matrix(group.create_group(key), getattr(problem, key))
        for key in vectors:
            if getattr(problem, key) is not None:
                group[f"vectors/{key}"] = getattr(problem, key)
        for key, text in problem.info.items():
            group[f"info/{key}"] = np.bytes_(text.encode() + b"\0")
        for key, values in solution.items():
            file[f"solution/{key}"] = values
        for i, guess in enumerate(problem.guesses, 1):
            for key, values in guess.items():
                file[f"guesses/{i}/{key}"] = values
        if problem.guesses:
            file["guesses/number_of_guesses"] = np.array([len(problem.guesses)], np.int32)


def _paths(group: Any, vectors: dict[str, bool]) -> list[tuple[str, str]]:
    """Names of the vectors that must be there or are, with their places."""
    return [(k, f"vectors/{k}") for k, needed in vectors.items() if needed or f"vectors/{k}" in group]


def _described(file: Any, name: str) -> dict[str, Any]:
    """Texts, solution and guesses."""
    info = file[name].get("info", {})
    texts = {key: np.bytes_(info[key][()]).rstrip(b"\0").decode("utf-8", "replace") for key in info}
    guesses = sorted((g for g in file.get("guesses", {}) if g.isdigit()), key=int)
    vectors = lambda group: {key: _array(group, key) for key in group}  # noqa: E731
    return {
        "info": texts,
        "solution": vectors(file.get("solution", {})),
        "guesses": tuple(vectors(file["guesses"][g]) for g in guesses),
    }


def _array(group: Any, name: str) -> np.ndarray:
    if not isinstance(group.get(name), h5py.Dataset) or group[name].dtype.kind not in "fiu":
        msg = f"expected numbers in {group.name}/{name}"
        raise ValueError(msg)
    return np.asarray(group[name][()])


def _number(group: Any, name: str) -> int:
    values = _array(group, name)
    if values.size != 1:
        msg = f"expected one number in {group.name}/{name}, found {values.size}"
        raise ValueError(msg)
    return int(values.ravel()[0])


def _matrix(group: Any, name: str) -> Any:
    """A matrix in the format it is stored in: triplets, compressed columns or compressed rows."""
    if not isinstance(group.get(name), h5py.Group):
        msg = f"expected a matrix in {group.name}/{name}"
        raise ValueError(msg)
    group = group[name]
    m, n, nz = (_number(group, key) for key in ("m", "n", "nz"))
    x, i, p = (_array(group, key) for key in "xip")
    if nz >= 0:
        _refuse_wrong(group, m, n, i, p, min(x.size, i.size, p.size) >= nz)
        return sparse.coo_array((x[:nz], (i[:nz], p[:nz])), shape=(m, n))
    if nz not in (_COMPRESSED_COLUMNS, _COMPRESSED_ROWS):
        msg = f"{group.name}: nz must be -2, -1 or the number of triplets, got {nz}"
        raise ValueError(msg)
    lines, other, kind = (n, m, sparse.csc_array) if nz == _COMPRESSED_COLUMNS else (m, n, sparse.csr_array)
    rising = p.size == lines + 1 and p[0] == 0 and bool(np.all(np.diff(p) >= 0)) and p[-1] <= min(x.size, i.size)
    _refuse_wrong(group, other, other, i[: p[-1]] if rising else i, i[:0], rising)
    return kind((x[: p[-1]], i[: p[-1]], p), shape=(m, n))


def _refuse_wrong(group: Any, m: int, n: int, i: np.ndarray, p: np.ndarray, enough: bool) -> None:
    """Raise where indices lie outside of a matrix or its arrays do not fit each other."""
    inside = all(np.all((x >= 0) & (x < size)) for x, size in ((i, m), (p, n)))
    if not (enough and inside and i.dtype.kind in "iu"):
        msg = f"{group.name}: the arrays i, p and x do not make a matrix of the size it says"
        raise ValueError(msg)


def _write_matrix(group: Any, A: Any) -> None:
    triplets = A.format not in ("csr", "csc")
    A = A.tocoo() if triplets else A
    i, p = A.coords if triplets else (A.indices, A.indptr)
    nz = A.nnz if triplets else {"csc": _COMPRESSED_COLUMNS, "csr": _COMPRESSED_ROWS}[A.format]
    for name, value in (("m", A.shape[0]), ("n", A.shape[1]), ("nz", nz), ("nzmax", A.nnz)):
        group[name] = np.array([value], np.int32)
    group["i"], group["p"], group["x"] = i.astype(np.int32), p.astype(np.int32), A.data.astype(float)
