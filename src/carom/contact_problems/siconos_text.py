"""Siconos' text format: dimension, contacts, W (dense, blocks or sparse), q, mu; or M, H, q, b, mu for the global form.

A matrix begins with its storage (0 dense by columns, 1 blocks, 2 as CSparse prints it) and its size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from carom.contact_problems.problem import GlobalProblem, LocalProblem

_DENSE, _BLOCKS, _SPARSE = range(3)
_COLUMNS = 2  # the origin of a sparse matrix


class _Text:
    """A text that is read from front to back."""

    def __init__(self, text: str):
        self.left = text

    def numbers(self, count: int, what: str) -> np.ndarray:
        words = self.left.split(None, count)
        try:
            values = np.array(words[:count], float)
        except ValueError:
            values = np.zeros(0)
        if values.size < count:
            msg = f"expected {count} numbers for {what}"
            raise ValueError(msg)
        self.left = words[count] if len(words) > count else ""
        return values

    def integers(self, count: int, what: str) -> list[int]:
        values = self.numbers(count, what)
        if not np.all((values == np.round(values)) & (values >= 0) & (values < 2**31)):
            msg = f"expected {count} whole numbers for {what}"
            raise ValueError(msg)
        return values.astype(int).tolist()

    def lines(self, count: int) -> list[str]:
        *lines, self.left = [*self.left.split("\n", count), ""][: count + 1]
        return lines


def read(text: str) -> LocalProblem | GlobalProblem:
    """The problem in a text."""
    source = _Text(text)
    dimension, contacts = source.integers(2, "dimension and contacts")
    A, vectors = _matrix(source, "the first matrix"), dimension * contacts + contacts
    if A.shape[0] == dimension * contacts and len(source.left.split(None, vectors)) <= vectors:
        q = source.numbers(A.shape[0], "q")
        return LocalProblem(A, q, source.numbers(contacts, "mu"), dimension)
    H = _matrix(source, "the second matrix")
    f, w = source.numbers(A.shape[0], "q"), source.numbers(H.shape[1], "b")
    return GlobalProblem(A, H, f, w, source.numbers(contacts, "mu"), dimension)


def written(problem: LocalProblem | GlobalProblem) -> str:
    """The text of a problem."""
    if isinstance(problem, LocalProblem):
        matrices, constraints = _print_blocks(problem.W, problem.dimension), problem.R
        vectors = (problem.q, problem.mu)
    else:
        matrices, constraints = (line for A in (problem.M, problem.H) for line in _print_sparse(A)), problem.G
        vectors = (problem.f, problem.w, problem.mu)
    if constraints is not None:
        msg = "write: Siconos' text format has no room for equality constraints: write to .hdf5"
        raise ValueError(msg)
    lines = [str(problem.dimension), str(problem.mu.size), *matrices]
    return "\n".join([*lines, *(" ".join(map(repr, x.tolist())) for x in vectors)]) + "\n"


def _matrix(source: _Text, what: str) -> Any:
    storage, m, n = source.integers(3, f"storage and size of {what}")
    if storage == _DENSE:
        m, n = source.integers(2, f"size of {what}")
        return sparse.csr_array(source.numbers(m * n, what).reshape(n, m).T)
    if storage == _BLOCKS:
        return _blocks(source, what, m, n)
    if storage == _SPARSE:
        return _sparse(source, what, m, n)
    msg = f"the storage of {what} must be 0 (dense), 1 (blocks) or 2 (sparse), got {storage}"
    raise ValueError(msg)


def _blocks(source: _Text, what: str, m: int, n: int) -> Any:
    """Blocks of one size, row after row of blocks, each after its number and by columns."""
    count, rows, columns = source.integers(3, f"blocks of {what}")
    ends = [source.integers(k, f"block sizes of {what}") for k in (rows, columns)]
    sizes = [e[0] if e else 1 for e in ends]
    uniform = ([s * (i + 1) for i in range(len(e))] for e, s in zip(ends, sizes))
    if list(uniform) != ends or [e[-1:] for e in ends] != [[m], [n]]:
        msg = f"the blocks of {what} must be of one size"
        raise ValueError(msg)
    filled = source.integers(2, f"block places of {what}")
    first, places = (source.integers(k, f"block places of {what}") for k in filled)
    first = np.array(first + first[-1:] * (rows + 1 - len(first)))
    places, area = np.array(places[:count], int), sizes[0] * sizes[1]
    data = source.numbers(count * (1 + area), what).reshape(count, 1 + area)[:, 1:]
    whole = first.size == rows + 1 and places.size == count == first[-1] and first[0] == 0
    if not (whole and np.all(np.diff(first) >= 0) and np.all((places >= 0) & (places < columns))):
        msg = f"the block places of {what} do not make a matrix of {m} by {n}"
        raise ValueError(msg)
    blocks = data.reshape(count, sizes[1], sizes[0]).transpose(0, 2, 1)
    A = sparse.csr_array(sparse.bsr_array((blocks, places, first), shape=(m, n)))
    A.eliminate_zeros()
    return A


def _sparse(source: _Text, what: str, m: int, n: int) -> Any:
    """What CSparse prints: triplets, or column after column under a line of its own."""
    source.integers(1, f"origin of {what}")
    head = re.search(r"(triplet: )?(\d+)-by-(\d+), nzmax: \d+ nnz: (\d+).*\n", source.left)
    if head is None or (int(head[2]), int(head[3])) != (m, n):
        msg = f"expected what CSparse prints of a matrix of {m} by {n} for {what}"
        raise ValueError(msg)
    source.left, count = source.left[head.end() :], int(head[4])
    lines = source.lines(count + (0 if head[1] else n))
    parts = (line.rpartition(":") for line in lines if "col" not in line)
    entries = [[*place.split(), x] for place, _, x in parts]
    starts = re.findall(r"col \d+ : locations (\d+) to", "\n".join(lines))
    whole = head[1] or len(starts) == n
    if not whole or len(entries) != count or {len(words) for words in entries} - {3 if head[1] else 2}:
        msg = f"expected {count} entries of {what}"
        raise ValueError(msg)
    *index, x = np.array(entries, float).reshape(count, -1).T
    if not head[1]:
        index.append(np.repeat(np.arange(n), np.diff([*map(int, starts), count])))
    if any(np.any((k < 0) | (k >= size)) for k, size in zip(index, (m, n))):
        msg = f"{what} has entries outside of {m} by {n}"
        raise ValueError(msg)
    return sparse.csc_array(sparse.coo_array((x, tuple(k.astype(int) for k in index)), shape=(m, n)))


def _print_blocks(W: Any, d: int) -> Iterator[str]:
    """W in blocks, one for each pair of contacts that meet in it: the storage that all of Siconos' solvers take."""
    blocks = sparse.bsr_array(W, blocksize=(d, d))
    rows, count = W.shape[0] // d, blocks.indices.size
    ends = " ".join(str(d * (i + 1)) for i in range(rows))
    yield from map(str, (_BLOCKS, *W.shape, count, rows, rows, ends, ends, rows + 1, count))
    yield " ".join(map(str, blocks.indptr.tolist()))
    yield " ".join(map(str, blocks.indices.tolist()))
    for i, block in enumerate(blocks.data.transpose(0, 2, 1).reshape(count, -1).tolist()):
        yield f"{i}\n" + " ".join(map(repr, block))


def _print_sparse(A: Any) -> Iterator[str]:
    """A as CSparse prints it, but with all digits."""
    A = sparse.csc_array(A)
    yield from map(str, (_SPARSE, *A.shape, _COLUMNS))
    yield "CSparse, printed by carom"
    norm = np.max(np.abs(A).sum(axis=0), initial=0.0)
    yield f"{A.shape[0]}-by-{A.shape[1]}, nzmax: {A.nnz} nnz: {A.nnz}, 1-norm: {norm:g}"
    for j, (start, end) in enumerate(zip(A.indptr[:-1].tolist(), A.indptr[1:].tolist())):
        yield f"    col {j} : locations {start} to {end - 1}"
        yield from (f"      {i} : {x!r}" for i, x in zip(A.indices[start:end].tolist(), A.data[start:end].tolist()))
