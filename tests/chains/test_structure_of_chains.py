"""What granular chains keep: momentum, energy that never rises, and the area of an undamped attachment."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import carom
from carom.measures import momentum
from carom.models import granular_chain, newtons_cradle

N = 6
masses = st.lists(st.floats(0.2, 5.0), min_size=N, max_size=N)
stiffness = st.lists(st.floats(0.2, 5.0), min_size=N - 1, max_size=N - 1)
GAUSS = carom.IRK(carom.gauss(2))
METHODS = {
    "theta": (carom.TailoredTheta(), False),
    "tailored IRK": (carom.TailoredIRK(), False),
    "GL on (x, w)": (GAUSS, True),
}


def _run(name, chain, state, h):
    method, regularised = METHODS[name]
    return carom.simulate(carom.regularise(chain) if regularised else chain, state, method, t1=12.0, h=h)


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=10, deadline=None)
@given(m=masses, k=stiffness, damping=st.floats(0.0, 0.2))
def test_momentum_is_kept_to_rounding(name, m, k, damping):
    chain, state = granular_chain(m, k, damping=damping)
    sol = _run(name, chain, state, 0.2)
    p = momentum(chain, sol)
    assert np.abs(p - p[0]).max() < 1e-14 * sum(m) * max(1.0, np.abs(sol.v).max())


@settings(max_examples=15, deadline=None)
@given(m=masses, k=stiffness, damping=st.floats(1e-3, 0.2))
def test_energy_of_a_damped_chain_rises_by_no_more_than_the_error_of_a_step_in_which_a_contact_opens(m, k, damping):
    h = 0.02
    energy = _run("GL on (x, w)", *granular_chain(m, k, damping=damping), h).account.energy
    assert np.diff(energy).max() <= h**4 * energy[0]
    assert energy[-1] < energy[0]


@pytest.mark.parametrize("name", ["theta", "tailored IRK"])
def test_tailored_methods_lose_the_energy_the_damped_chain_loses(name):
    chain, state = granular_chain(np.linspace(0.5, 1.5, N), np.linspace(2.0, 1.0, N - 1), damping=0.05)
    exact = _run("GL on (x, w)", chain, state, 0.02).account.energy
    energy = _run(name, chain, state, 0.1).account.energy
    assert np.diff(energy).max() <= 1e-12
    assert energy[-1] == pytest.approx(exact[-1], rel=1e-2)


def _jacobian_of_step(method, chain):
    """Jacobian of (x1, x1') -> (x1, x1') as a function of h, for the first of two beads that do not touch."""

    def step(y, h):
        start = carom.State(jnp.zeros(2), jnp.zeros(2))
        state = start.moved(start.t, jnp.array([-5.0, 5.0]).at[0].add(y[0]), jnp.zeros(2).at[0].set(y[1]))
        out = method.step(chain, state, method.init(chain, state), h).state
        return jnp.stack([out.q[0], out.v[0]])

    jacobian = jax.jit(jax.jacfwd(step))
    return lambda h: np.asarray(jacobian(jnp.array([0.1, 0.2]), jnp.asarray(h)))


def test_theta_step_of_a_single_attachment_keeps_area_exactly():
    chain, _ = newtons_cradle(2, attachment=0.01, damping=0.3)
    jacobian = _jacobian_of_step(carom.TailoredTheta(), chain)
    for h in (0.05, 0.5, 5.0):
        assert np.linalg.det(jacobian(h)) == pytest.approx(1.0, abs=1e-14)
        assert np.abs(np.linalg.eigvals(jacobian(h))) == pytest.approx([1.0, 1.0], abs=1e-12)


@pytest.mark.slow
def test_theta_with_its_own_mu_damps_the_attachment_as_40_says():
    h, gamma_local = 0.01, 0.2
    chain, _ = newtons_cradle(2, attachment=1.0, damping=0.3)
    theta = 0.5 + 0.3 / (2 * h)
    J = _jacobian_of_step(carom.TailoredTheta(mu=theta - gamma_local / h), chain)(h)
    assert np.log(np.linalg.det(J)) / h == pytest.approx(-gamma_local, rel=0.05)  # x'' + K (gamma x' + x) = 0
