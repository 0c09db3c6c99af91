"""Runs of listed bodies against a reference that shares no code with them."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.pairs import Capacity
from carom.systems import first_lists
from tests.bodies import reference

METHOD = carom.MoreauMidpoint(solver=carom.AcceleratedGaussSeidel(tol=1e-13, max_iter=3000))
LENGTHS = [7.0, 7.0]


@pytest.fixture(autouse=True)
def _one_program_for_all(monkeypatch):
    """Lists have room for whatever these tests bring."""
    monkeypatch.setattr(first_lists, "tight", lambda pairs: Capacity(400, 40, (6,) * 6))


def weight(q, m):
    return m * q[2]


def place(t):
    return jnp.array([0.3 * jnp.sin(2 * t), -0.4 + 0.4 * jnp.sin(3 * t)])


def plate(t, x, r):
    """Gap, normal and velocity of the plate at `place`."""
    n = np.array([0.0, 1.0])
    at, velocity = [0.3 * np.sin(2 * t), -0.4 + 0.4 * np.sin(3 * t)], [0.6 * np.cos(2 * t), 1.2 * np.cos(3 * t)]
    return n @ (x - at) - r, n, np.array(velocity)


SCENES = [(0, 0.0, 1.0), (1, 0.5, 2.0), (2, -0.7, 2.0), pytest.param(3, 0.5, 40.0, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("seed", "shear", "speed"), SCENES)
def test_disks_of_three_materials_in_a_sheared_box_with_a_moving_plate(seed, shear, speed):
    rng, N, t0, h = np.random.default_rng(seed), 6, 3.0, 0.02
    radii, materials = rng.uniform(0.8, 1.0, N), rng.integers(0, 3, N)
    friction, bounce = rng.uniform(0.0, 0.6, (3, 3)), rng.uniform(0.0, 1.0, (3, 3))
    friction, bounce = 0.5 * (friction + friction.T), 0.5 * (bounce + bounce.T)
    q = np.array([(1.2 + 2.05 * (i % 3), 1.2 + 2.05 * (i // 3), 0.0) for i in range(N)])
    u, m = speed * rng.normal(size=(N, 3)), radii**2
    grains, odd = carom.Bodies(N, dof=3), np.arange(5, 0, -2)
    search = carom.CellList(2.0, 0.02, box=carom.LeesEdwards(LENGTHS, rate=shear))  # a step shears by more
    laws = {"friction": friction, "restitution": bounce, "materials": materials}
    contacts = [
        carom.Contacts.between(grains, carom.shapes.disk, data=radii, search=search, **laws),
        carom.Contacts.each(grains[5:0:-2], carom.shapes.plate((0, 1), place), data=radii[odd], friction=0.3),
    ]
    M = np.column_stack([m, m, 0.5 * m * radii**2])
    system = carom.System(grains.mass(*M.T), contacts=contacts)
    sol = carom.simulate(system, carom.State(q.ravel(), u.ravel(), t0), METHOD, t1=t0 + 60 * h, h=h)
    scene = {
        "radii": radii,
        "M": M,
        "gravity": 0.0,
        "laws": lambda i, j: (friction[materials[i], materials[j]], bounce[materials[i], materials[j]]),
        "lengths": LENGTHS,
        "shear": shear,
        "walls": lambda t, x, r, i: [(*plate(t, x, r), (0.3, 0.0))] if i in odd else [],
    }
    v = reference.run(scene, q, u, h, 60, t0)
    assert sol.account.extra["contacts"].sum() > 5
    np.testing.assert_allclose(sol.v.reshape(v.shape), v, atol=1e-9 * np.abs(v).max())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_spheres_with_friction_on_a_plate_and_between_walls(seed):
    rng, N, h = np.random.default_rng(seed), 4, 0.02
    radii = rng.uniform(0.8, 1.0, N)
    q = np.array([(1.1 + 2.05 * (i % 2), 1.1, 1.1 + 2.05 * (i // 2)) for i in range(N)])
    u, m = 2.0 * rng.normal(size=(N, 6)), radii**3
    grains = carom.Bodies(N, dof=6, coordinates=3)
    box, moving = carom.shapes.box((0, 0, -9), (4.4, 2.6, np.inf)), lambda t: jnp.array([t, 0.0, 0.1 * jnp.sin(5 * t)])
    laws = {"friction": 0.4, "restitution": 0.3, "data": radii}
    contacts = [
        carom.Contacts.between(grains, carom.shapes.sphere, search=carom.CellList(2.0, 0.2), **laws),
        carom.Contacts.each(grains, box, **laws),
        carom.Contacts.each(grains, carom.shapes.plate((0, 0, 1), moving), **laws),
    ]
    M = np.column_stack([m] * 3 + [0.4 * m * radii**2] * 3)
    system = carom.System(
        grains.mass(*M.T),
        grains.each(weight, data=m),
        kinematics=lambda t, q, v: v.reshape(-1, 6)[:, :3].ravel(),
        contacts=contacts,
    )
    sol = carom.simulate(system, carom.State(q.ravel(), u.ravel()), METHOD, t1=60 * h, h=h)

    def walls(t, x, r, i):
        del i
        e, still = np.eye(3), np.zeros(3)
        found = [(x[0] - r, e[0], still), (x[1] - r, e[1], still), (x[2] + 9 - r, e[2], still)]
        found += [(4.4 - x[0] - r, -e[0], still), (2.6 - x[1] - r, -e[1], still)]
        found += [(x[2] - 0.1 * np.sin(5 * t) - r, e[2], np.array([1.0, 0.0, 0.5 * np.cos(5 * t)]))]
        return [(*one, (0.4, 0.3)) for one in found]

    scene = {"radii": radii, "M": M, "gravity": 1.0, "laws": lambda i, j: (0.4, 0.3), "lengths": None, "shear": 0.0}
    v = reference.run(scene | {"walls": walls}, q, u, h, 60)
    assert sol.account.extra["contacts"].sum() > 10
    np.testing.assert_allclose(sol.v.reshape(v.shape), v, atol=1e-9)
