"""Impacts one after another instead of all at once, and impacts with many answers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.methods.capturing.active_set import survey
from carom.methods.capturing.modes import Modes
from carom.methods.capturing.transitions import closing
from carom.systems.contact_rows import stacked_velocities


def _balls(restitution):
    return carom.System(1.0, contacts=carom.Contacts(lambda q: jnp.diff(q) - 1.0, restitution=restitution))


@pytest.mark.slow
@pytest.mark.parametrize("restitution", [1.0, 0.5])
def test_one_impact_after_another_throws_the_last_ball(restitution):
    method = carom.EventCapturing(carom.explicit(4), impacts="sequential")
    start = carom.State([-0.5, 1.0, 2.0], [1.0, 0.0, 0.0])
    last = carom.simulate(_balls(restitution), start, method, t1=1.0, h=0.1).v[-1]
    expected = np.array([1.0, 0.0, 0.0])
    for _ in range(200):
        for i in (0, 1):
            approach = expected[i] - expected[i + 1]
            if approach > 0:
                expected[i : i + 2] += 0.5 * (1 + restitution) * approach * np.array([-1.0, 1.0])
    np.testing.assert_allclose(last, expected, atol=1e-10)


def test_an_unknown_law_of_impacts_is_refused():
    with pytest.raises(ValueError, match="impacts must be 'simultaneous' or 'sequential', got 'together'"):
        carom.EventCapturing(carom.explicit(4), impacts="together")


E, MU = 0.3, 0.3


def _landing():
    """A box that turns about an edge on the floor, slides and spins, at the instant at which a face lands."""
    box = carom.RigidBody.box(
        1.0, (0.4, 0.3, 0.2), position=(0, 0, 0.1), velocity=(-0.006, 0.039, -0.1368), spin=(0, -0.684, 0.2257)
    )
    return carom.Mechanism([box], planes=[carom.Plane((0, 0, 1), friction=MU, restitution=E)], gravity=9.81)


def _cut(W, P):
    """Rows of the four corners below, (4, 3): along the normal first."""
    closed = np.flatnonzero(np.abs(W[:8, 2]) * (np.arange(8) % 2 == 0))
    return np.stack([P[closed], P[8 + 2 * closed], P[9 + 2 * closed]], 1)


def _in_law(x):
    """The nearest impulses that push and lie in the cones of friction."""
    normal = np.maximum(x[:, :1], 0.0)
    slip = np.linalg.norm(x[:, 1:], axis=1, keepdims=True)
    return np.hstack([normal, x[:, 1:] * np.minimum(1.0, MU * normal / np.maximum(slip, 1e-300))])


def _left_open(D, before, after, P):
    """What impulses leave of Newton's law with friction, P = projection of (P - gamma+ - e gamma-) on its cones."""
    aim = D @ after + E * (D @ before) * np.array([1.0, 0.0, 0.0])
    return np.abs(P - _in_law(P - aim)).max()


def _swept(D, M, before, P, sweeps=3000):
    """An answer of the law by projected sweeps from P."""
    for _ in range(sweeps):
        for k in range(4):
            aim = D @ (before + np.einsum("kin,ki->n", D, P) / M) + E * (D @ before) * np.array([1.0, 0.0, 0.0])
            P[k] = _in_law(P - 0.1 * aim)[k]
    return P


@pytest.mark.slow
def test_a_landing_face_has_many_answers_and_both_methods_give_one_of_them():
    system, state = _landing()
    v, M = np.asarray(state.v), np.asarray(system.mass)
    W = np.asarray(jax.jacfwd(lambda u: stacked_velocities(system, 0.0, state.q, u))(state.v))
    D = _cut(W, W)
    assert np.linalg.matrix_rank(D[:, 0]) == 3
    energy = lambda u: 0.5 * np.sum(M * u * u)
    found = []
    for method, h in ((carom.MoreauMidpoint(), 1e-9), (carom.EventCapturing(carom.radau_iia(3)), 1e-9)):
        sol = carom.simulate(system, state, method, t1=h, h=h)
        P = _cut(W, np.asarray(sol.impulse).sum(0))
        np.testing.assert_allclose(M * (sol.v[-1] - v), np.einsum("kin,ki->n", D, P), atol=1e-7)
        assert _left_open(D, v, sol.v[-1], P) < 1e-7
        found.append(sol.v[-1])
    for k in range(4):
        P = _swept(D, M, v, np.eye(4)[k][:, None] * np.array([0.2, 0.0, 0.0]))
        after = v + np.einsum("kin,ki->n", D, P) / M
        assert _left_open(D, v, after, P) < 1e-10
        found.append(after)
    assert all(energy(after) < energy(v) for after in found)
    apart = np.ptp(np.array(found), axis=0)
    assert apart[2] < 1e-7
    assert apart[5] > 1e-2


def test_an_impulse_that_is_rounding_holds_no_contact_that_opens():
    """What an impact leaves of a stop: pushed off with 1 m/s it is open, whatever the last digit of its impulse."""
    system = carom.System([2.0, 3.0], contacts=carom.Contacts(lambda q: q))
    at = survey(system, jnp.asarray(0.0), jnp.zeros(2), jnp.array([1.0, 1e-18]))
    both = jnp.ones(2, bool)
    modes = Modes(both, jnp.zeros(0, bool), jnp.zeros(0), at.laws)
    for held in closing(at, modes, both, jnp.array([1e-31, 1e-14]), jnp.array([5.0]), 1e-9):
        assert held.closed.tolist() == [False, True]


@pytest.mark.slow
def test_a_wave_through_dominoes_is_the_same_at_all_tolerances_and_in_time_stepping():
    row = carom.models.dominoes(n=3)
    method = carom.EventCapturing(carom.explicit(5), projection=True)
    tolerances = np.logspace(-5, -8, 31)
    ends = [carom.simulate(*row, method, t1=0.25, stepping=carom.Adaptive(rtol, 1e-10)).v[-1] for rtol in tolerances]
    np.testing.assert_allclose(ends, ends[-1][None].repeat(31, 0), atol=1e-5)
    stepped = carom.simulate(*row, carom.MoreauMidpoint(), t1=0.25, h=1e-5, save_every=1000)
    np.testing.assert_allclose(ends[-1], stepped.v[-1], atol=2e-3)
