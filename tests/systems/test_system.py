"""Systems: what is derived from what the user writes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import carom
from carom.solvers.structure import tridiagonal_jacobian
from carom.systems.laws import positive_power

ZERO = jnp.zeros(())


def quartic(a, b, k):
    return k * (b - a) ** 4 / 4


def test_interactions_along_a_stencil_equal_an_index_array_and_a_plain_function():
    q, k = jnp.asarray([0.1, -0.4, 0.3, 1.2]), jnp.asarray([1.0, 2.0, 3.0])
    stencil = carom.System(potential=carom.Interactions(quartic, stencil=(0, 1), data=k))
    indexed = carom.System(potential=carom.Interactions(quartic, indices=[[0, 1], [1, 2], [2, 3]], data=k))
    plain = carom.System(potential=lambda q: jnp.sum(k * (q[1:] - q[:-1]) ** 4) / 4)
    forces = [s.conservative_force(ZERO, q) for s in (stencil, indexed, plain)]
    assert np.allclose(forces[0], forces[1], rtol=1e-14)
    assert np.allclose(forces[0], forces[2], rtol=1e-14)


def test_the_stiffness_of_neighbour_interactions_equals_the_hessian():
    cradle, _ = carom.models.newtons_cradle(6, stiffness=[1.0, 2.0, 3.0, 4.0, 5.0], attachment=0.7)
    q = jnp.asarray([0.5, 0.1, 0.3, 0.2, -0.4, -0.5])
    diagonal, beside = jax.jit(lambda x: cradle.neighbour_stiffness(x))(q)
    hessian = jax.jit(jax.hessian(lambda x: cradle.potential_energy(ZERO, x)))(q)
    assert np.allclose(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1), hessian, atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_three_directional_derivatives_reveal_a_tridiagonal_jacobian(n):
    def field(x):
        padded = jnp.pad(x, 1)
        return jnp.sin(padded[:-2]) * x + x**2 + 3 * jnp.cos(padded[2:])

    x = jnp.linspace(0.3, 1.7, n)
    b = jnp.arange(1.0, n + 1)

    @jax.jit
    def derived(x):
        J = tridiagonal_jacobian(field, x)
        return J, J.solve(b), J @ b, jax.jacfwd(field)(x)

    J, solved, times, jacobian = derived(x)
    dense = np.diag(J.diagonal) + np.diag(J.lower[1:], -1) + np.diag(J.upper[:-1], 1)
    assert np.allclose(dense, jacobian, atol=1e-14)
    assert np.allclose(solved, np.linalg.solve(dense, b), rtol=1e-9)
    assert np.allclose(times, dense @ b, rtol=1e-13)


@given(st.floats(-2, -1e-9) | st.just(0.0) | st.floats(1e-9, 2), st.sampled_from([1.0, 1.5, 2.0, 2.5, 3.5]))
@settings(deadline=None, max_examples=60)
def test_powers_of_the_positive_part_have_derivatives_without_nan(x, exponent):
    f = lambda y: positive_power(y, exponent)  # noqa: E731
    value, slope, curvature = f(x), jax.grad(f)(x), jax.grad(jax.grad(f))(x)
    assert np.isfinite(slope)
    if x <= 0:
        assert value == slope == curvature == 0
    else:
        assert value == pytest.approx(x**exponent, rel=1e-13)
        assert slope == pytest.approx(exponent * x ** (exponent - 1), rel=1e-13)
        assert curvature == pytest.approx(exponent * (exponent - 1) * x ** (exponent - 2), rel=1e-12)


def test_rate_damping_is_the_time_derivative_of_the_force():
    q, v = jnp.asarray([0.4, 0.1, 0.2]), jnp.asarray([0.3, -0.2, 0.5])
    damped, _ = carom.models.granular_chain([1.0, 2.0, 1.5], [1.0, 3.0], damping=[0.1, 0.2])
    plain = carom.models.granular_chain([1.0, 2.0, 1.5], [1.0, 3.0])[0]
    extra = damped.force(ZERO, q, v) - plain.force(ZERO, q, v)
    d, dv = 0.3, 0.5  # only the first contact is closed
    by_hand = 1.5 * 0.1 * np.sqrt(d) * dv
    assert np.allclose(extra, [-by_hand, by_hand, 0.0], atol=1e-15)


def test_a_mass_that_depends_on_q_brings_its_inertia_forces():
    """A double pendulum: the derived equations conserve energy, which they do only with the Coriolis terms."""

    def mass(q):
        c = jnp.cos(q[1] - q[0])
        return jnp.asarray([[2.0, c], [c, 1.0]])

    system = carom.System(mass, lambda q: -2 * jnp.cos(q[0]) - jnp.cos(q[1]))
    sol = carom.simulate(system, carom.State([1.0, -0.5], [0.0, 0.3]), carom.IRK(carom.gauss(3)), t1=5.0, h=0.02)
    energy = sol.account.energy
    assert np.ptp(energy) < 1e-9 * np.abs(energy).max()
    assert np.ptp(sol.account.kinetic) > 0.5


def test_general_kinematics_carry_a_rotation():
    """A rigid body's quaternion q' = E(q) w / 2 with four coordinates and three velocities keeps its length."""
    inertia = np.array([5.0, 10.0, 1.0])

    def rate(t, q, v):
        s, x, y, z = q
        return (
            0.5 * jnp.stack([-x, s, z, -y]) * v[0]
            + 0.5 * jnp.stack([-y, -z, s, x]) * v[1]
            + 0.5 * jnp.stack([-z, y, -x, s]) * v[2]
        )

    euler = {"gyroscopic": lambda t, q, v: -jnp.cross(v, inertia * v)}
    body = carom.System(inertia, forces=euler, kinematics=rate)
    sol = carom.simulate(
        body, carom.State([1.0, 0, 0, 0], [10.0, 0.01, 0.01]), carom.IRK(carom.gauss(2)), t1=2.0, h=0.01
    )
    assert np.abs(np.linalg.norm(sol.q, axis=1) - 1).max() < 1e-12, "Gauss methods conserve quadratic invariants"
    assert np.ptp(sol.account.kinetic) < 1e-10 * sol.account.kinetic[0]
    assert sol.v[:, 0].min() < -9, "the body tumbles about its middle axis (Dzhanibekov)"


def test_params_reach_every_function_that_asks_for_p():
    system = carom.System(
        lambda q, p: p["m"] * jnp.eye(1),
        potential=lambda t, q, p: p["k"] * q[0] ** 2 / 2 * (1 + 0 * t),
        forces={"drag": lambda t, q, v, p: -p["c"] * v},
        params={"m": 2.0, "k": 8.0, "c": 0.4},
    )
    assert float(system.acceleration(ZERO, jnp.asarray([0.5]), jnp.asarray([1.0]))[0]) == pytest.approx(-2.2)


@pytest.mark.slow
def test_a_regularised_chain_moves_like_the_chain_itself():
    chain, state = carom.models.trimer(damping=0.2)
    direct = carom.simulate(chain, state, carom.ExplicitRK(carom.explicit(4)), t1=2.0, h=1e-3, save_every=100)
    smooth = carom.simulate(
        carom.regularise(chain), state, carom.ExplicitRK(carom.explicit(4)), t1=2.0, h=1e-3, save_every=100
    )
    assert np.array_equal(smooth.v[0], state.v)
    assert np.abs(direct.q - smooth.q).max() < 1e-5
    assert np.abs(direct.v - smooth.v).max() < 1e-4
    assert np.abs(np.asarray(smooth.state.v) - smooth.v[-1]).max() < 1e-15


@pytest.mark.slow
def test_forces_on_a_regularised_system_see_the_velocity_of_the_coordinates():
    drag = {"drag": lambda t, q, v: -0.5 * v}
    system = carom.System(1.0, lambda q: 0.5 * q @ q, drag, rate_damping={"conservative": 0.3})
    ends = [
        carom.simulate(one, carom.State([1.0], [0.2]), carom.IRK(carom.gauss(3)), t1=2.0, h=0.05).state
        for one in (system, carom.regularise(system))
    ]
    np.testing.assert_allclose(ends[1].q, ends[0].q, rtol=1e-9)
    np.testing.assert_allclose(ends[1].v, ends[0].v, rtol=1e-9)
