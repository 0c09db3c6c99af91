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


def branch(start, along, image_of=bounce, within=(0.2, 1.2)):
    course = Course(image_of, SCALE, 1e-12, within, 0.05)
    first = point(corrected(bounce, start, UP, SCALE, 1e-12), SCALE, along * UP)
    return course, [(first, 0.0), *course.points(first, 100)]


def specials(course, points, test):
    found = [course.located(a, b, s, test) for (a, _), (b, s) in zip(points[:-1], points[1:])]
    return [at.z[-1] for at in found if at is not None]


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


def test_only_what_passes_zero_is_located():
    course, points = branch(orbit(0.5), 1.0)
    assert specials(course, points, lambda at: at.z[-1] - 0.7) == pytest.approx([0.7], abs=1e-12)
    assert specials(course, points, lambda at: np.sign(at.z[-1] - 0.7)) == []
    assert specials(course, points, lambda at: np.inf if at.z[-1] > 0.7 else -1.0) == []


@pytest.mark.parametrize("low", [FOLD - 0.1, FOLD - 1e-5, FOLD + 1e-5, FOLD + 0.1])
def test_a_branch_is_asked_for_only_in_its_range_and_goes_forward(low):
    asked = []

    def noted(z):
        asked.append(z[-1])
        return bounce(z)

    course, points = branch(orbit(0.5), -1.0, noted, (low, 1.2))
    assert min(asked) > low - 1e-9
    assert max(asked) < 1.2 + 1e-9
    assert min(s for _, s in points[1:]) > 0
    assert points[-1][0].z[-1] == pytest.approx(low if low > FOLD else 1.2, abs=1e-14)
    assert len(specials(course, points, fold)) == (low < FOLD)


def torn(z):
    """Beyond p = 1/2 the only orbit is far from those before it."""
    x, p = z
    away = 0.3 * p if p < 0.5 else -0.7
    return Image(np.array([0.5 * (x + away)]), 1.0, np.zeros(0), np.array([[0.5, 0.15 * (p < 0.5)]]), 0)


def test_a_branch_ends_where_the_next_orbits_are_those_of_another():
    course = Course(torn, np.ones(2), 1e-12, (0.0, 1.0), 0.1)
    first = point(corrected(torn, np.zeros(2), np.array([0.0, 1.0]), np.ones(2)), np.ones(2), np.array([0.0, 1.0]))
    ahead, values = course.points(first, 100), []
    with pytest.raises(NotFoundError):
        values.extend(at.z for at, _ in ahead)
    assert np.abs(values @ np.array([1.0, -0.3])).max() < 1e-12
    assert 0.5 - 1e-4 < values[-1][-1] < 0.5


def linear(z):
    """Neither moves along x nor comes back along y."""
    x, y, p = z
    return Image(np.array([x, 0.5 * y + p]), 1.0, np.zeros(0), np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]), 0)


def test_of_a_family_of_orbits_the_nearest_is_found():
    found = corrected(linear, np.array([3.0, 1.0, 0.0]), UP, np.ones(3))
    np.testing.assert_allclose(found.z, [3.0, 0.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("off", [0.3, 1e-7])
@pytest.mark.parametrize("multiplier", [1e4, 1e7, 1e9])
def test_beside_a_large_multiplier_the_other_unknowns_are_corrected_too(multiplier, off):
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    J = turn @ np.diag([multiplier, 0.5]) @ turn.T
    x = np.array([0.4, -0.2])

    def saddle(z):
        return Image(x + J @ (z[:2] - x), 1.0, np.zeros(0), np.column_stack([J, np.zeros(2)]), 0)

    found = corrected(saddle, np.append(x + [0.01 * off, off], 0.0), UP, np.ones(3))
    np.testing.assert_allclose(found.z[:2], x, atol=1e-12 + 1e-17 * multiplier)


def drifting(z):
    """Comes back along y, and a little beside along x."""
    image = linear(z)
    return image._replace(end=image.end + [1e-3, 0.0])


def test_what_drifts_on_in_one_direction_has_no_orbit():
    with pytest.raises(NotFoundError) as caught:
        corrected(drifting, np.array([3.0, 1.0, 0.0]), UP, np.ones(3))
    assert caught.value.error == pytest.approx(1e-3)


def escaping(z):
    """x -> x^2 + 1 returns nowhere."""
    x, p = z
    return Image(np.array([x**2 + 1 + 0 * p]), 1.0, np.zeros(0), np.array([[2 * x, 0.0]]), 0)


def test_a_map_without_orbit_is_given_up_with_the_size_of_its_correction():
    with pytest.raises(NotFoundError) as caught:
        corrected(escaping, np.array([0.3, 0.0]), np.array([0.0, 1.0]), np.ones(2))
    assert caught.value.error > 0.1
    assert caught.value.iterations == 20
