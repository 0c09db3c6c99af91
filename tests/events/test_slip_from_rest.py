"""A mass that friction holds, set free by a load that grows or jumps: event capturing and `solve`, closed forms."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom


def load(t, q, v, p):
    return jnp.array([p[0] * jnp.sin(t) + p[1] * (t >= 1.4)])


def velocity(q, v):
    return v[:1]


def held(growing, jumping):
    """A mass that friction holds with 0.5 N, under a load."""
    element = carom.FrictionElements(slip_velocity=velocity, limit=0.5)
    system = carom.System(1.0, forces={"load": load}, friction=element, params=[growing, jumping], jumps=[1.4])
    return system, carom.State([0.0], [0.0])


@pytest.mark.slow
@pytest.mark.parametrize("rtol", [1e-3, 1e-6, 1e-9])
def test_slip_from_rest_begins_when_the_load_reaches_the_limit(rtol):
    method = carom.EventCapturing(carom.explicit(5), projection=True)
    stepping = carom.Adaptive(rtol, 1e-3 * rtol)
    sol = carom.simulate(*held(1.0, 0.0), method, t1=1.5, stepping=stepping, save_at=[0.3, 1.5])
    begin, span = np.pi / 6, 1.5 - np.pi / 6
    moved = np.sin(begin) - np.sin(1.5) + np.cos(begin) * span - 0.25 * span**2
    assert sol.q[-1, 0] == pytest.approx(moved, abs=rtol)
    assert list(sol.events.kind) == ["slips"]
    assert sol.events.time[0] == pytest.approx(begin, abs=10 * rtol)


@pytest.mark.slow
def test_a_load_that_jumps_beyond_the_limit_moves_the_mass_at_once():
    sol = carom.solve(*held(0.0, 1.0), 10.0)
    assert sol.q[-1, 0] == pytest.approx(0.25 * 8.6**2, rel=1e-6)
