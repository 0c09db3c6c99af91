"""Contact problems on their own: solved, and exchanged with others."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import carom
from carom.contact_problems import AcceleratedGaussSeidel, GlobalProblem, LocalProblem, solve, write
from carom.contact_problems.solving import natural_map
from tests.contact.heaps import heap, held_heap, motions, sweeps, violation

SIZES = [(12, 2), (12, 3), (200, 2), (200, 3)]
ALL = [(1, 2, False), (1, 3, False), *((*size, redundant) for size in SIZES for redundant in (False, True))]


QUICK = [(12, 3, False), (200, 3, True)]


@pytest.mark.parametrize(
    ("contacts", "dimension", "redundant"),
    [pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow) for case in ALL],
)
def test_heaps_obey_coulombs_law(contacts, dimension, redundant):
    for seed in range(4):
        problem = heap(seed, contacts, dimension, redundant=redundant).local()
        result = solve(problem)
        assert result.status == carom.Status.OK
        assert violation(problem, result.impulse) < 1e-8
        assert result.natural_map < 1e-8
        np.testing.assert_allclose(result.velocity, problem.W @ result.impulse + problem.q, atol=1e-12)


@pytest.mark.parametrize(("contacts", "dimension"), [pytest.param(12, 2, marks=pytest.mark.slow), (12, 3)])
def test_all_solvers_find_the_motion_of_plain_sweeps(contacts, dimension):
    problem = heap(5, contacts, dimension, mu=0.3, redundant=True).local()
    expected = problem.W @ sweeps(problem) + problem.q
    without_matrix = carom.PJOR(tol=1e-10), AcceleratedGaussSeidel(tol=1e-10), carom.APGD(tol=1e-10, max_iter=20_000)
    for solver in (carom.SemismoothNewton(), carom.PSOR(), *without_matrix):
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
    problem = held_heap()
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


@pytest.mark.slow
def test_no_impulse_passes_for_a_solution_where_the_matrix_is_large():
    problem = LocalProblem(1e5 * np.eye(3), [-1.0, 0.0, 0.0], 0.5, 3)
    assert natural_map(problem, np.zeros(3), problem.q) == 1.0
    assert solve(problem).natural_map < 1e-15


def test_a_solver_that_gives_up_says_so():
    result = solve(heap(0, 12, 3).local(), AcceleratedGaussSeidel(tol=1e-14, max_iter=10))
    assert result.status == carom.Status.CONTACT_NOT_SOLVED
    assert result.iterations == 10


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
    with pytest.raises(OSError, match="x.hdf5: cannot write it"):
        write(problem, tmp_path / "nowhere" / "x.hdf5")
    held = LocalProblem(np.eye(2), [0, 0], 0.3, 2, V=np.ones((2, 1)), R=np.eye(1), s=[0])
    with pytest.raises(ValueError, match="no room for equality constraints"):
        write(held, tmp_path / "x.dat")
    with pytest.raises(TypeError, match="contacts alone"):
        solve(held, AcceleratedGaussSeidel())
