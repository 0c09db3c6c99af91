"""Newton's method and pseudo-arclength on maps that are known in closed form."""

import numpy as np
import pytest

from carom.orbits.arclength import Course, flip, fold, point
from carom.orbits.newton import Image, NotFoundError, corrected
from tests.orbits.maps import FLIP, FOLD, E, bounce, orbit

SCALE = np.array([0.2, 0.5, 1.0])
UP = np.array([0.0, 0.0, 1.0])


@pytest.mark.parametrize("shaking", [0.4, 0.8, 1.2])
def test_newton_finds_a_bouncing_ball_with_its_trace_and_determinant(shaking):
    z = orbit(shaking)
    found = corrected(bounce, z + [0.01, -0.02, 0.0], UP, SCALE, 1e-12)
    np.testing.assert_allclose(found.z, z, atol=1e-10)
    J = found.image.jacobian
    assert np.trace(J) == pytest.approx(1 + E**2 - (1 + E) ** 2 * np.sqrt(shaking**2 - FOLD**2), abs=1e-10)
    assert np.linalg.det(J) == pytest.approx(E**2, abs=1e-12)
    assert found.iterations <= 6


def branch(start, along):
    course = Course(bounce, SCALE, 1e-12, (0.2, 1.2), 0.05)
    first = point(corrected(bounce, start, UP, SCALE, 1e-12), SCALE, along * UP)
    return course, [(first, 0.0), *course.points(first, 100)]


def specials(course, points, test):
    pairs = zip(points[:-1], points[1:])
    return [course.located(a, b, s, test).z[-1] for (a, _), (b, s) in pairs if test(a) * test(b) < 0]


def test_a_branch_passes_its_fold_and_comes_back_on_the_other_side():
    course, points = branch(orbit(0.5), -1.0)
    assert specials(course, points, fold) == pytest.approx([FOLD], abs=1e-10)
    last = points[-1][0].z
    np.testing.assert_allclose(last, orbit(last[-1], -1.0), atol=1e-9)
    assert last[-1] == 1.2


def test_a_branch_flips_where_the_period_doubles():
    course, points = branch(orbit(0.5), 1.0)
    assert specials(course, points, flip) == pytest.approx([FLIP], abs=1e-10)
    assert specials(course, points, fold) == []


def linear(z):
    """Neither moves along x nor comes back along y."""
    x, y, p = z
    return Image(np.array([x, 0.5 * y + p]), 1.0, np.zeros(0), np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]), 0)


def test_of_a_family_of_orbits_the_nearest_is_found():
    found = corrected(linear, np.array([3.0, 1.0, 0.0]), UP, np.ones(3))
    np.testing.assert_allclose(found.z, [3.0, 0.0, 0.0], atol=1e-12)


def escaping(z):
    """x -> x^2 + 1 returns nowhere."""
    x, p = z
    return Image(np.array([x**2 + 1 + 0 * p]), 1.0, np.zeros(0), np.array([[2 * x, 0.0]]), 0)


def test_a_map_without_orbit_is_given_up_with_the_size_of_its_correction():
    with pytest.raises(NotFoundError) as caught:
        corrected(escaping, np.array([0.3, 0.0]), np.array([0.0, 1.0]), np.ones(2))
    assert caught.value.error > 0.1
    assert caught.value.iterations == 20
