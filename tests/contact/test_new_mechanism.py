"""A mechanism that is in none of the papers, checked by a second method that knows nothing of contacts."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom

STOP = 0.1


def energy(q):
    """A pendulum (mass 1, length 1) on a cart that is tied to the wall by a spring."""
    return 9.81 * (1 - jnp.cos(q[1])) + 15.0 * q[0] ** 2


def mass(q):
    c = jnp.cos(q[1])
    return jnp.array([[3.0, c], [c, 1.0]])


def damping(t, q, v):
    return -0.2 * v


def wall(q):
    """Room between the bob and a wall."""
    return STOP - q[0] - jnp.sin(q[1])


def reflect(state, e):
    """Newton's impact law at the wall, by hand."""
    w = np.array([-1.0, -np.cos(state.q[1])])
    Mw = np.linalg.solve(np.asarray(mass(state.q)), w)
    return carom.State(state.q, np.asarray(state.v) - (1 + e) * (w @ np.asarray(state.v)) / (w @ Mw) * Mw, state.t)


@pytest.mark.slow
def test_pendulum_on_a_cart_hits_a_wall_as_with_a_runge_kutta_method_stopped_at_each_impact():
    e, t1, start = 0.6, 3.0, carom.State([0.0, -1.0], [0.0, 0.0])
    contacts = carom.Contacts(gap=lambda q: wall(q)[None], restitution=e)
    cart = carom.System(mass, energy, {"dissipative": damping}, contacts=contacts)
    method = carom.Extrapolated(carom.MoreauMidpoint(), max_order=6, atol=1e-9, rtol=0.0)
    sol = carom.simulate(cart, start, method, t1=t1, stepping=carom.Switching(1e-8, 0.02))

    free = carom.System(mass, energy, {"dissipative": damping})
    state, hits = start, []
    while state.t < t1:
        piece = carom.simulate(
            free, state, carom.ExplicitRK(carom.explicit(4)), t1=t1, h=1e-3, stop=lambda _t, q, _v: wall(q)
        )
        state = piece.state
        if state.t < t1:
            hits.append(float(state.t))
            state = reflect(state, e)
    assert len(hits) >= 2
    np.testing.assert_allclose(sol.events.time[sol.events.kind == "closes"], hits, atol=1e-6)
    np.testing.assert_allclose(sol.q[-1], state.q, atol=1e-6)
    np.testing.assert_allclose(sol.v[-1], state.v, atol=1e-5)
