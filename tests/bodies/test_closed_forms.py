"""Single bodies and small piles on motions that are known exactly."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom

SOLVER = carom.AcceleratedGaussSeidel(tol=1e-12, max_iter=100_000)
METHOD = carom.MoreauMidpoint(solver=SOLVER)


@pytest.mark.slow
@pytest.mark.parametrize("friction", [0.1, 0.3])
def test_a_disk_that_slides_comes_to_roll_with_two_thirds_of_its_speed(friction):
    body = carom.Bodies(1, dof=3)
    contacts = [
        carom.Contacts.each(body, carom.shapes.half_plane((0, 1)), data=1.0, friction=friction),
        carom.Contacts.between(body, carom.shapes.disk, data=1.0, search=carom.Fixed(np.zeros((0, 2), int))),
    ]
    system = carom.System(body.mass(1.0, 1.0, 0.5), lambda q, p: p * q[1], contacts=contacts, params=9.81)
    sol = carom.simulate(system, carom.State([0.0, 1.0, 0.0], [3.0, 0.0, 0.0]), METHOD, t1=2.0, h=1e-3)
    slides = 3.0 / (3 * friction * 9.81)  # mu g t = v0 - r omega
    x, _, spin = sol.v[-1]
    np.testing.assert_allclose([x, spin], [2.0, -2.0], atol=1e-10)
    rolls = np.abs(sol.v[:, 0] + sol.v[:, 2]) < 1e-10
    assert sol.t[rolls][0] == pytest.approx(slides, abs=1.1e-3)


@pytest.mark.slow
def test_a_sphere_that_slides_comes_to_roll_with_five_sevenths_of_its_speed():
    """In space, with the places of spheres as coordinates and six velocities each."""
    ball = carom.Bodies(1, dof=6, coordinates=3)
    contacts = [
        carom.Contacts.each(ball, carom.shapes.half_plane((0, 0, 1)), data=0.5, friction=0.2),
        carom.Contacts.between(ball, carom.shapes.sphere, data=0.5, search=carom.Fixed(np.zeros((0, 2), int))),
    ]
    mass = ball.mass(2.0, 2.0, 2.0, *(0.4 * 2.0 * 0.5**2,) * 3)
    system = carom.System(mass, lambda q: 2.0 * 9.81 * q[2], kinematics=lambda t, q, v: v[:3], contacts=contacts)
    start = carom.State([0.0, 0.0, 0.5], [3.0, 4.0, 0.0, 0.0, 0.0, 0.0])
    sol = carom.simulate(system, start, METHOD, t1=1.5, h=1e-3)
    v, spin = sol.v[-1, :3], sol.v[-1, 3:]
    np.testing.assert_allclose(v, jnp.array([3.0, 4.0, 0.0]) * 5 / 7, atol=1e-9)
    np.testing.assert_allclose(spin, jnp.array([-4.0, 3.0, 0.0]) * 5 / 7 / 0.5, atol=1e-9)
