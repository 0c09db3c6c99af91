"""Contact problems on their own: solved, and exchanged with others."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
from scipy import sparse

import carom
from carom.contact_problems import AcceleratedGaussSeidel, GlobalProblem, LocalProblem, read, solve, write
from carom.contact_problems.solving import natural_map
from tests.contact.heaps import heap, motions, sweeps, violation

SIZES = [(1, 2), (1, 3), (12, 2), (12, 3), (200, 2), (200, 3)]


@pytest.mark.parametrize(("contacts", "dimension"), SIZES)
@pytest.mark.parametrize("redundant", [False, True])
def test_heaps_obey_coulombs_law(contacts, dimension, redundant):
    for seed in range(4):
        problem = heap(seed, contacts, dimension, redundant=redundant).local()
        result = solve(problem)
        assert result.status == carom.Status.OK
        assert violation(problem, result.impulse) < 1e-8
        assert result.natural_map < 1e-8
        np.testing.assert_allclose(result.velocity, problem.W @ result.impulse + problem.q, atol=1e-12)


@pytest.mark.parametrize(("contacts", "dimension"), SIZES[2:4])
def test_all_solvers_find_the_motion_of_plain_sweeps(contacts, dimension):
    problem = heap(5, contacts, dimension, mu=0.3, redundant=True).local()
    expected = problem.W @ sweeps(problem) + problem.q
    for solver in (carom.SemismoothNewton(), carom.PSOR(), carom.PJOR(tol=1e-10), AcceleratedGaussSeidel(tol=1e-10)):
        np.testing.assert_allclose(solve(problem, solver).velocity, expected, atol=1e-7)


def test_few_contacts_move_as_one_of_their_consistent_modes_says():
    for seed in range(12):
        problem = heap(seed, 3, 2).local()
        possible = motions(problem)
        assert min(np.abs(solve(problem).velocity - u).max() for u in possible) < 1e-9


def test_a_global_problem_is_solved_as_its_local_form():
    problem = heap(1, 12, 3)
    result = solve(problem)
    v = np.linalg.solve(problem.M.toarray(), problem.H @ result.impulse + problem.f)
    np.testing.assert_allclose(problem.H.T @ v + problem.w, result.velocity, atol=1e-12)


def test_equality_constraints_hold():
    problem = heap(2, 12, 2)
    rng = np.random.default_rng(0)
    problem = replace(problem, G=rng.normal(size=(problem.f.size, 2)), b=rng.normal(size=2))
    result = solve(problem)
    v = problem.over_mass(problem.H @ result.impulse + problem.G @ result.multiplier + problem.f)
    assert result.status == carom.Status.OK
    np.testing.assert_allclose(problem.G.T @ v, -problem.b, atol=1e-9)
    np.testing.assert_allclose(problem.H.T @ v + problem.w, result.velocity, atol=1e-9)


def test_a_matrix_that_is_not_symmetric_is_taken_as_it_is():
    problem = heap(3, 12, 3, mu=0.3).local()
    W = problem.W.copy()
    W.data *= np.random.default_rng(0).uniform(0.99, 1.01, W.nnz)
    assert abs(W - W.T).max() > 1e-3
    problem = replace(problem, W=W)
    result = solve(problem)
    assert violation(problem, result.impulse) < 1e-9


def test_sweeps_end_where_extrapolation_alone_goes_in_circles():
    problem = LocalProblem(
        [[0.611, 0.052, -0.087, -0.607], [0.052, 0.869, 0.525, 0.267], [-0.087, 0.525, 0.531, -0.034]]
        + [[-0.607, 0.267, -0.034, 1.246]],
        [-0.40534911, 0.15507945, -0.08793617, 0.90869086],
        [0.93361337, 0.90642845],
        2,
    )
    result = solve(problem, AcceleratedGaussSeidel(tol=1e-10, max_iter=5000))
    assert result.status == carom.Status.OK
    assert result.iterations > 100


def test_no_impulse_passes_for_a_solution_where_the_matrix_is_large():
    problem = LocalProblem(1e5 * np.eye(3), [-1.0, 0.0, 0.0], 0.5, 3)
    assert natural_map(problem, np.zeros(3), problem.q) == 1.0
    assert solve(problem).natural_map < 1e-15


def test_a_solver_that_gives_up_says_so():
    result = solve(heap(0, 12, 3).local(), AcceleratedGaussSeidel(tol=1e-14, max_iter=10))
    assert result.status == carom.Status.CONTACT_NOT_SOLVED
    assert result.iterations == 10


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
    problem = heap(2, 12, 2)
    problem = replace(
        problem,
        G=np.ones((problem.f.size, 1)),
        b=[0.5],
        info={"title": "a heap", "math_info": ""},
        guesses=({"u": np.ones(24), "r": np.zeros(24)},),
    )
    result = solve(problem)
    write(problem, tmp_path / "x.hdf5", result)
    again = read(tmp_path / "x.hdf5")
    assert same(problem, again, "MHGfwb")
    assert again.info == problem.info
    np.testing.assert_array_equal(again.solution["r"], result.impulse)
    np.testing.assert_allclose(problem.G.T @ again.solution["v"], [-0.5], atol=1e-9)
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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"W": np.ones((2, 3))}, "W must be 2 by 2, got 2 by 3"),
        ({"W": np.ones((3, 3))}, "3 rows of W are no whole number of contacts, at least one, with 2 each"),
        ({"W": np.zeros((0, 0))}, "0 rows of W are no whole number"),
        ({"W": "much"}, "W must be a matrix"),
        ({"q": [1.0]}, "q must have 2 numbers"),
        ({"mu": -0.1}, "mu must be finite and not negative"),
        ({"dimension": 1}, "dimension must be 2 or 3"),
    ],
)
def test_what_makes_no_problem_is_refused_by_name(change, words):
    with pytest.raises((ValueError, TypeError), match=words):
        LocalProblem(**({"W": np.eye(2), "q": [0.0, 0.0], "mu": 0.3, "dimension": 2} | change))


def test_a_mass_that_cannot_be_inverted_is_refused():
    problem = GlobalProblem(np.diag([1.0, 0.0]), np.eye(2), [0, 0], [0, 0], 0.3, 2)
    with pytest.raises(ValueError, match="M is singular"):
        solve(problem)


def test_what_cannot_be_solved_or_written_is_refused(tmp_path):
    problem = LocalProblem(sparse.eye_array(30000), np.zeros(30000), 0.3, 2)
    with pytest.raises(ValueError, match="needs a matrix of 7 GB"):
        solve(problem, carom.SemismoothNewton())
    with pytest.raises(TypeError, match="problem must be what carom.contact_problems.read returns"):
        solve("x.hdf5")
    with pytest.raises(ValueError, match="guess must have 30000 numbers"):
        solve(problem, guess=[1.0])
    with pytest.raises(ValueError, match="must end with one of"):
        write(problem, tmp_path / "x.json")
    held = LocalProblem(np.eye(2), [0, 0], 0.3, 2, V=np.ones((2, 1)), R=np.eye(1), s=[0])
    with pytest.raises(ValueError, match="no room for equality constraints"):
        write(held, tmp_path / "x.dat")
    with pytest.raises(TypeError, match="contacts alone"):
        solve(held, AcceleratedGaussSeidel())
