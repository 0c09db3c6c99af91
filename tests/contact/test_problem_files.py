"""Contact problems are exchanged with others, and what is none is refused."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
from scipy import sparse

from carom.contact_problems import LocalProblem, read, solve, write
from tests.contact.heaps import heap, held_heap


def equal(a, b):
    return (a != b).nnz == 0 if sparse.issparse(a) else np.array_equal(a, b)


def same(a, b, names):
    return type(a) is type(b) and all(equal(getattr(a, k), getattr(b, k)) for k in (*names, "mu", "dimension"))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("name", ["x.hdf5", "x.dat"])
def test_a_local_problem_is_read_as_it_was_written(tmp_path, kind, name):
    problem = heap(0, 12, 3).local()
    problem = replace(problem, W=problem.W.asformat(kind))
    write(problem, tmp_path / name)
    again = read(tmp_path / name)
    assert same(problem, again, "Wq")
    assert name == "x.dat" or again.W.format == kind


@pytest.mark.parametrize("name", ["x.hdf5", "x.dat"])
def test_a_global_problem_is_read_as_it_was_written(tmp_path, name):
    problem = heap(0, 12, 2)
    write(problem, tmp_path / name)
    assert same(problem, read(tmp_path / name), "MHfw")


def test_fclib_keeps_constraints_texts_guesses_and_results(tmp_path):
    guess = {"u": np.ones(24), "r": np.zeros(24)}
    problem = replace(held_heap(), info={"title": "a heap", "math_info": ""}, guesses=(guess,))
    result = solve(problem)
    write(problem, tmp_path / "x.hdf5", result)
    again = read(tmp_path / "x.hdf5")
    assert same(problem, again, "MHGfwb")
    assert again.info == problem.info
    np.testing.assert_array_equal(again.solution["r"], result.impulse)
    np.testing.assert_allclose(problem.G.T @ again.solution["v"], -problem.b, atol=1e-9)
    np.testing.assert_array_equal(again.guesses[0]["u"], np.ones(24))
    local = problem.local()
    write(local, tmp_path / "y.hdf5")
    assert same(local, read(tmp_path / "y.hdf5"), "WVRqs")


SPARSE = """2
1
2
2
2
{origin}
CSparse Version 3.1.9, May 4, 2016.
{printed}
 -1.0e+00  0.5
0.3
"""
COLUMNS = """2-by-2, nzmax: 3 nnz: 3, 1-norm: 4
    col 0 : locations 0 to 0
      0 : 2
    col 1 : locations 1 to 2
      0 : 0.25
      1 : 3.5"""
TRIPLETS = """triplet: 2-by-2, nzmax: 9 nnz: 3
    0 0 : 2
    0 1 : 0.25
    1 1 : 3.5"""
TEXTS = {
    "columns": SPARSE.format(origin=2, printed=COLUMNS),
    "triplets": SPARSE.format(origin=1, printed=TRIPLETS),
    "dense": "2\n1\n0\n2\n2\n2\t2\n2.0 0.0 \n0.25 3.5\n-1 0.5\n0.3\n",
    "blocks": "2\n1\n1\n2\n2\n1\n1\n1\n2\t\n2\t\n2\n1\n0\t1\t\n0\t\n0\n2\n0\n.25\n3.5\n-1 0.5\n0.3\n",
}


@pytest.mark.parametrize("storage", TEXTS)
def test_every_storage_of_the_text_format_is_read(tmp_path, storage):
    (tmp_path / "x.dat").write_text(TEXTS[storage])
    assert same(read(tmp_path / "x.dat"), LocalProblem([[2.0, 0.25], [0.0, 3.5]], [-1.0, 0.5], [0.3], 2), "Wq")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "expected 2 numbers for dimension and contacts"),
        (b"hello world", "expected 2 numbers for dimension and contacts"),
        (b"\xff\xfe\x00\x81", "neither HDF5 nor text"),
        (b"2\n1\n7\n2\n2\n", "storage of the first matrix must be"),
        (b"4\n1\n0\n4\n4\n4 4\n" + b"1 " * 16 + b"1 1 1 1\n.3", "dimension must be 2 or 3"),
        (TEXTS["dense"][:-4].encode(), "expected 1 numbers for mu"),
        (TEXTS["dense"].replace("-1 0.5", "nan 0.5").encode(), "q must be finite"),
        (TEXTS["dense"].replace("0.3", "-0.3").encode(), "mu must be finite and not negative"),
        (TEXTS["columns"].replace("1 : 3.5", "7 : 3.5").encode(), "the first matrix"),
        (TEXTS["columns"].replace("      1 : 3.5\n", "").encode(), "expected 3 entries"),
        (TEXTS["blocks"].replace("\n0\t\n", "\n5\t\n").encode(), "block places"),
    ],
)
def test_texts_that_are_no_contact_problem_are_refused_in_one_sentence(tmp_path, text, words):
    (tmp_path / "x.dat").write_bytes(text)
    with pytest.raises(ValueError, match="x.dat: no contact problem") as error:
        read(tmp_path / "x.dat")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def spoiled(group, name, value):
    del group[name]
    if value is not None:
        group[name] = value


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("/fclib_local", None, "expected a group fclib_local or fclib_global, found solution"),
        ("/fclib_local/W", None, "expected a matrix in /fclib_local/W"),
        ("/fclib_local/vectors/q", None, "expected numbers in /fclib_local/vectors/q"),
        ("/fclib_local/vectors/mu", b"rough", "expected numbers in /fclib_local/vectors/mu"),
        ("/fclib_local/vectors/mu", np.ones(3), "mu must have 1 numbers"),
        ("/fclib_local/spacedim", [5], "dimension must be 2 or 3"),
        ("/fclib_local/W/nz", [-7], "nz must be -2, -1 or the number of triplets"),
        ("/fclib_local/W/i", np.array([0, 1, 9], np.int32), "do not make a matrix"),
        ("/fclib_local/W/p", np.array([0, 5, 3], np.int32), "do not make a matrix"),
        ("/fclib_local/W/x", np.full(3, np.inf), "W has entries that are NaN or infinite"),
        ("/fclib_local/W/m", [3], "do not make a matrix"),
    ],
)
def test_hdf5_that_is_no_contact_problem_is_refused_in_one_sentence(tmp_path, name, value, words):
    write(LocalProblem([[2.0, 0.25], [0.0, 3.5]], [-1.0, 0.5], 0.3, 2, solution={"u": np.ones(2)}), tmp_path / "x.hdf5")
    with h5py.File(tmp_path / "x.hdf5", "a") as file:
        spoiled(file, name, value)
    with pytest.raises(ValueError, match="x.hdf5: no contact problem") as error:
        read(tmp_path / "x.hdf5")
    assert words in str(error.value)


def test_a_damaged_or_missing_file_is_refused_in_one_sentence(tmp_path):
    write(heap(0, 12, 2), tmp_path / "x.hdf5")
    (tmp_path / "y.hdf5").write_bytes((tmp_path / "x.hdf5").read_bytes()[:700])
    with pytest.raises((OSError, ValueError), match="y.hdf5: "):
        read(tmp_path / "y.hdf5")
    with pytest.raises(OSError, match="cannot read it"):
        read(tmp_path / "z.hdf5")
