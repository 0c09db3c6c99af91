import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from tests.lanes import one_by_one

from .problems import bent_system, orders

PENDULUMS = {
    "planar": lambda: carom.models.pendulum(),
    "spherical": lambda: carom.models.spherical_pendulum(angle=1.2, rate=0.4, spin=0.7),
    "double": lambda: carom.models.double_pendulum(angles=(1.0, 1.8), rates=(0.3, -0.4)),
}
STEPS = {2: (16, 32, 64, 128), 3: (8, 16, 32, 64), 4: (3, 6, 12, 24)}


CASES = [
    pytest.param(name, s, marks=() if (name, s) == ("planar", 3) else pytest.mark.slow)
    for name in PENDULUMS
    for s in STEPS
]


@pytest.mark.parametrize(("name", "s"), CASES)
def test_pendulums_converge_with_order_2s_minus_2_in_q_v_and_multiplier_on_the_manifold(name, s):
    system, state = PENDULUMS[name]()
    found, sols = orders(system, state, carom.Spark(s), 1.0, STEPS[s])
    assert np.allclose(found, 2 * s - 2, atol=0.3), found
    for level in carom.measures.constraint_residuals(system, sols[-1]):
        assert level.max() < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("s", [2, 3, 4])
def test_every_family_has_order_2s_minus_2_with_mass_of_q_and_velocity_dependent_forces(s):
    system, state = bent_system()
    families, steps = ("A", "B", "C", "C*", "D"), STEPS[s]
    methods = [carom.Spark(s, families={"magnet": letter}) for letter in families for _ in steps]
    h = [1.0 / n for _ in families for n in steps]
    sols = carom.simulate_batch(system, state, methods, t1=1.0, h=h)
    for i, letter in enumerate(families):
        lanes = sols[i * len(steps) : (i + 1) * len(steps)]
        for column in ("q", "v", "multiplier"):
            values = [getattr(sol, column)[-1] for sol in lanes]
            error = [np.linalg.norm(a - b) for a, b in zip(values, values[1:])]
            order = carom.measures.observed_order(1.0 / np.array(steps[:-1]), error, floor=2e-13)
            assert abs(order - (2 * s - 2)) < 0.35, (letter, column, order)
    for level in carom.measures.constraint_residuals(system, sols[-1]):
        assert level.max() < 1e-13
    coarsest = [sol.q[-1] for sol in sols[len(steps) :: len(steps)]]
    assert min(np.abs(a - b).max() for i, a in enumerate(coarsest) for b in coarsest[:i]) > 1e-9, "families coincide"


def test_planar_pendulum_has_the_known_errors():
    system, state = carom.models.pendulum()
    sol = one_by_one(system, state, carom.Spark(3), t1=2.0, h=[2 / 40, 2 / 640])
    differences = [
        sol[0].q[-1] - sol[1].q[-1],
        sol[0].v[-1] - sol[1].v[-1],
        sol[0].multiplier[-1] - sol[1].multiplier[-1],
    ]
    assert np.allclose([np.linalg.norm(d) for d in differences], [2.139e-7, 3.162e-7, 6.664e-7], rtol=0.01)


@pytest.mark.slow
def test_the_stage_multiplier_has_the_lower_order_s_minus_1_or_so():
    system, state = carom.models.pendulum()
    exact, _ = orders(system, state, carom.Spark(3), 1.0, STEPS[3])
    stage, _ = orders(system, state, carom.Spark(3, multiplier="stage"), 1.0, STEPS[3])
    assert exact[2] > 3.7
    assert 1.5 < stage[2] < 3.2
    assert stage[1] > 3.7


def test_a_lagrangian_gives_the_same_motion_as_mass_and_potential():
    _, state = carom.models.pendulum()
    lagrangian = carom.System.from_lagrangian(
        lambda q, v: 0.5 * v @ v - q[1], constraints=lambda q: 0.5 * (q @ q - 1.0)
    )
    a = carom.simulate(lagrangian, state, carom.Spark(3), t1=1.0, h=1 / 16)
    b = carom.simulate(*carom.models.pendulum(), carom.Spark(3), t1=1.0, h=1 / 16)
    assert np.abs(a.q - b.q).max() < 1e-13


@pytest.mark.slow
def test_terms_of_a_lagrangian_linear_in_v_bend_the_path_like_a_magnetic_field():
    def L(q, v):
        return 0.5 * v @ v + 0.5 * 2.0 * (q[0] * v[1] - q[1] * v[0])

    system = carom.System.from_lagrangian(L)
    sol = carom.simulate(system, carom.State([1.0, 0.0], [0.0, -2.0]), carom.Spark(4), t1=np.pi, h=np.pi / 40)
    assert np.abs(sol.q[-1] - sol.q[0]).max() < 1e-6
    assert np.abs(np.linalg.norm(sol.q, axis=1) - 1.0).max() < 1e-6


@pytest.mark.parametrize("s", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_nonholonomic_knife_edge_converges_to_its_exact_path_with_order_2s_minus_2(s):
    system, state = carom.models.knife_edge(spin=1.5)
    h = np.array([1 / 4, 1 / 8, 1 / 16, 1 / 32])
    sols = one_by_one(system, state, carom.Spark(s), t1=2.0, h=list(h))
    w = 1.5
    exact = np.array([np.sin(2 * w) ** 2, 2 * w - 0.5 * np.sin(4 * w)]) / (2 * w * w)
    errors = [np.linalg.norm(sol.q[-1, :2] - exact) for sol in sols]
    assert abs(carom.measures.observed_order(h, errors, floor=1e-12) - (2 * s - 2)) < 0.3
    assert carom.measures.constraint_residuals(system, sols[0])[1].max() < 1e-13


@pytest.mark.slow
def test_chaplygin_sleigh_keeps_its_blade_and_turns_rotation_into_forward_motion():
    system, state = carom.models.chaplygin_sleigh()
    found, sols = orders(system, state, carom.Spark(3), 2.0, (8, 16, 32, 64))
    assert np.allclose(found, 4, atol=0.3), found
    assert carom.measures.constraint_residuals(system, sols[-1])[1].max() < 1e-13
    long = carom.simulate(system, state, carom.Spark(3), t1=40.0, h=0.05)
    assert abs(long.v[-1, 2]) < 1e-6
    assert carom.measures.energy_drift(long).bound < 1e-6


def massless_link():
    """A point mass hanging from a massless one that slides on a parabola: M is singular, (10) holds."""
    system = carom.System(
        np.diag([0.0, 0.0, 1.0, 1.0]),
        lambda q: q[3] + 0.5 * q[0] ** 2,
        {"magnet": lambda t, q, v: 0.5 * jnp.array([0.0, 0.0, v[3], -v[2]])},
        constraints=lambda q: jnp.array(
            [q[1] - 0.2 * q[0] ** 2, 0.5 * ((q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 1.0)]
        ),
    )
    return system, carom.State([0.3, 0.018, 0.3 + 0.6, 0.018 - 0.8], np.zeros(4))


@pytest.mark.slow
def test_the_augmented_form_solves_a_singular_mass_with_order_4():
    system, state = carom.augmented(*massless_link())
    found, sols = orders(system, state, carom.Spark(3), 0.5, (16, 32, 64, 128))
    assert np.allclose(found[:2], 4, atol=0.4), found
    assert np.abs(sols[-1].q[:, 4:]).max() < 1e-13
    for level in carom.measures.constraint_residuals(system, sols[-1]):
        assert level.max() < 1e-13


def twisted(q, p):
    """A charge on a sphere: H is not separable."""
    a = 0.5 * jnp.array([-q[1], q[0], 0.3 * q[0] * q[1]])
    return 0.5 * jnp.sum((p - a) ** 2) * (1.0 + 0.2 * q[2] ** 2) + q[2]


@pytest.mark.parametrize("s", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_a_nonseparable_hamiltonian_on_a_sphere_converges_with_order_2s_minus_2(s):
    system = carom.System.from_hamiltonian(twisted, constraints=lambda q: 0.5 * (q @ q - 1.0))
    state = carom.consistent(system, carom.State([0.6, 0.0, -0.8], [0.3, 0.9, 0.2]))
    found, sols = orders(system, state, carom.Spark(s), 1.0, STEPS[s])
    assert np.allclose(found, 2 * s - 2, atol=0.35), found
    energy = jax.vmap(twisted)(jnp.asarray(sols[-1].q), jnp.asarray(sols[-1].v))
    assert np.allclose(sols[-1].account.energy, energy, atol=1e-14)
