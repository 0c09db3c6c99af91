import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom


def test_squeezer_starts_with_the_known_accelerations_and_multipliers():
    system, state = carom.models.andrews_squeezer()
    assert np.allclose(carom.multiplier(system, state)[:2], [98.5668703962410896, -6.12268834425566265], rtol=1e-12)
    a = jax.jit(lambda t, q, v: system.acceleration(t, q, v))(state.t, state.q, state.v)
    assert np.allclose(a[:2], [14222.4439199541138, -10666.8329399655854], rtol=1e-12)


def test_squeezer_mass_matrix_reproduces_the_printed_forces():
    system, state = carom.models.andrews_squeezer()
    v = jnp.array([1.0, -2.0, 0.5, 0.7, -0.3, 0.9, 0.4]) * 100
    be, th, de, om, ep = v[0], v[1], v[4], v[5], v[6]
    q = state.q + 0.1
    A, B = 0.02 - 0.01421, 0.02 - 0.01421
    f = system.force(state.t, q, v)
    assert np.allclose(f[0], 0.033 - 0.00365 * 0.0115 * 0.007 * th * (th + 2 * be) * jnp.sin(q[1]), rtol=1e-12)
    assert np.allclose(f[3], 0.00706 * 0.04 * A * de**2 * jnp.cos(q[3]), rtol=1e-12)
    assert np.allclose(f[6], 0.00706 * 0.04 * B * om * (om + 2 * ep) * jnp.cos(q[5]), rtol=1e-12)


@pytest.mark.slow
def test_squeezer_converges_to_the_known_beta_with_five_stages():
    system, state = carom.models.andrews_squeezer()
    sol = carom.simulate(system, state, carom.Spark(5), t1=0.03, h=5e-5, save_every=600)
    assert abs(sol.q[-1, 0] - 15.810771195154) < 1e-11
    reference = [15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948]
    assert np.allclose(sol.q[-1, :4], reference, atol=5e-9)
    assert np.allclose(sol.multiplier[-1, :2], [199.1753333731910, -29.75531228015052], rtol=2e-6)
