"""Friction with memory under random motions of several grains, against a reference that shares no code."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from tests.bodies.grains_reference import Grains

H, STEPS, G = 5e-4, 1000, 5.0
LAW = {"k": 2e3, "mu": 0.5, "k_t": 700.0, "c_t": 2.0, "c_n": 1.0, "mu_r": 0.1, "k_r": 30.0}
ROUGH = carom.laws.CundallStrack(*(LAW[name] for name in ("mu", "k_t", "c_t", "c_n", "mu_r", "k_r")))
SIDE, TUBE = 2.3, 1.4


def apart(rng, r, d, box):
    """Random places of grains that do not overlap."""
    x = []
    while len(x) < len(r):
        new = rng.uniform(0.5, SIDE - 0.5, d)
        across = [new - old - (box * np.round((new - old) / box) if box else 0.0) for old in x]
        if all(np.linalg.norm(a) > r[len(x)] + r[k] for k, a in enumerate(across)):
            x.append(new)
    return np.array(x)


def inward(q):
    """The normal of a tube along the first axis."""
    return jnp.concatenate([jnp.zeros(1), -q[1:3] / jnp.sqrt(jnp.sum(q[1:3] ** 2))])


def tube_slip(q, v, r):
    """Slip velocities of a sphere in a tube."""
    return carom.shapes.tangents(inward(q)) @ (v[:3] - jnp.cross(r * v[3:], inward(q)))


def walls_of(kind, d):
    """Those of carom and of the reference."""
    eye = np.eye(d)
    if kind == "box of walls":
        low = [(lambda x, i=i: x[i], lambda x, i=i: eye[i]) for i in range(d)]
        high = [(lambda x, i=i: SIDE - x[i], lambda x, i=i: -eye[i]) for i in range(d)]
        return carom.shapes.box([0.0] * d, [SIDE] * d), low + high
    if d == 2:
        norm = np.linalg.norm
        return carom.shapes.drum(TUBE), [(lambda x: TUBE - norm(x), lambda x: -x / norm(x))]
    return carom.Wall(lambda q, r: TUBE - jnp.sqrt(q[1] ** 2 + q[2] ** 2) - r, tube_slip), [
        (lambda x: TUBE - np.hypot(*x[1:]), lambda x: np.array([0.0, *-x[1:]]) / np.hypot(*x[1:]))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("kind", ["few cells", "box of walls", "tube"])
def test_grains_with_memory_move_like_those_of_the_reference(kind, d):
    rng, count, dof = np.random.default_rng(d), 4, {2: 3, 3: 6}[d]
    r, m, box = rng.uniform(0.3, 0.35, count), rng.uniform(0.5, 2.0, count), SIDE if kind == "few cells" else None
    x = apart(rng, r, d, box) - (SIDE / 2 if kind == "tube" else 0.0)
    v, w, J = 2 * rng.normal(size=(count, d)), 5 * rng.normal(size=(count, dof - d)), 0.4 * m * r**2
    bodies, law, data = carom.Bodies(count, dof=dof), carom.laws.power_pair(1.0), (r, LAW["k"])
    search = carom.CellList(0.71, 0.1, *([carom.Periodic([SIDE] * d)] if box else []))
    parts = {"pairs": carom.Interactions.between(bodies, law, data=data, search=search, dimension=d, friction=ROUGH)}
    parts["weight"], walls = bodies.each(lambda q, m: G * m * q[d - 1], data=jnp.asarray(m)), []
    if not box:
        wall, walls = walls_of(kind, d)
        parts["walls"] = carom.Interactions.against(bodies, wall, law, data=data, friction=ROUGH)
    system = carom.System(bodies.mass(*[m] * d, *[J] * (dof - d)), parts)
    start = carom.State(np.concatenate([x, 0 * w], axis=1).ravel(), np.concatenate([v, w], axis=1).ravel())
    sol = carom.simulate(system, start, carom.StormerVerlet(), t1=H * STEPS, h=H, save_every=10)
    expected = Grains(r, m, J, LAW, box, walls, G).moved(x, v, w, H, STEPS)
    found = np.concatenate([sol.q[-1].reshape(count, -1), sol.v[-1].reshape(count, -1)], axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert np.count_nonzero(sol.account.extra["spring"]) > 3
