"""Derivatives through impacts, slip that ends and moving walls, against closed forms: many small motions in one run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom

pytestmark = pytest.mark.slow

_T = 1.0
_NUMBERS = {
    "y0": 1.0, "w0": 0.3, "e": 0.8, "g": 9.81, "u": 0.4,  # a ball over a table that rises
    "x1": 0.0, "x2": 1.0, "v1": 2.0, "v2": 0.0,  # two equal balls, radius .1
    "slide": 1.5, "mu": 0.2, "J": 0.5,  # a disk that slides until it rolls
    "block": 1.2, "limit": 2.0,  # a block that comes to rest
    "a": 1.0, "b": 1.0, "e2": 0.75,  # two balls that hit their floors at the same instant
}  # fmt: skip


def _gaps(t, q, p):
    return jnp.stack([q[0] - p["u"] * t, q[2] - q[1] - 0.2, q[3], q[7], q[8]])


def _slips(q, v):
    del q
    return jnp.stack([0 * v[0], 0 * v[0], v[4] + v[5], 0 * v[0], 0 * v[0]])


def _energy(q, p):
    return p["g"] * (q[0] + q[3] + q[7] + q[8])


def _build(p):
    restitution = jnp.stack([p["e"], 1.0, 0.0, p["e2"], p["e2"]])
    friction = jnp.stack([0.0, 0.0, p["mu"], 0.0, 0.0])
    contacts = carom.Contacts(_gaps, slip_velocity=_slips, friction=friction, restitution=restitution)
    block = carom.FrictionElements(lambda q, v: v[6:7], limit=p["limit"])
    mass = jnp.ones(9).at[5].set(p["J"])
    system = carom.System(mass, _energy, params=p, contacts=contacts, friction=block)
    q = jnp.stack([p["y0"], p["x1"], p["x2"], 0.0, 0.0, 0.0, 0.0, p["a"], p["b"]])
    v = jnp.stack([p["w0"], p["v1"], p["v2"], 0.0, p["slide"], 0.0, p["block"], 0.0, 0.0])
    return system, carom.State(q, v)


def _bounced(y, v, e, g, t1):
    w = jnp.sqrt(v**2 + 2 * g * y)
    s = t1 - (v + w) / g
    return e * w * s - 0.5 * g * s**2


def _truth(p):
    """The coordinates at the end, but for the height and the angle of the disk."""
    table = _bounced(p["y0"], p["w0"] - p["u"], p["e"], p["g"], _T) + p["u"] * _T
    hit = (p["x2"] - p["x1"] - 0.2) / (p["v1"] - p["v2"])
    first = p["x1"] + p["v1"] * hit + p["v2"] * (_T - hit)
    second = p["x2"] + p["v2"] * hit + p["v1"] * (_T - hit)
    slows = p["mu"] * p["g"]
    rolls = p["slide"] / (slows * (1 + 1 / p["J"]))
    disk = p["slide"] * _T - slows * rolls * (_T - 0.5 * rolls)
    twins = [_bounced(p[name], 0.0, p["e2"], p["g"], _T) for name in ("a", "b")]
    return jnp.stack([table, first, second, disk, p["block"] ** 2 / (2 * p["limit"]), *twins])


@pytest.fixture(scope="module")
def run():
    def end(p, stepping):
        found = carom.final_state(*_build(p), carom.EventCapturing(carom.explicit(4)), t1=_T, stepping=stepping)
        return found.state.q[jnp.asarray([0, 1, 2, 4, 6, 7, 8])], found.status

    @jax.jit
    def program(p, stepping):
        value, push, status = jax.linearize(lambda p: end(p, stepping), p, has_aux=True)
        pull = jax.linear_transpose(push, p)
        reverse = jax.vmap(lambda w: pull(w)[0])(jnp.eye(7))
        flat, back = jax.flatten_util.ravel_pytree(p)
        forward = jax.vmap(lambda d: push(back(d)), out_axes=1)(jnp.eye(flat.size))
        return value, forward, jax.vmap(lambda r: jax.flatten_util.ravel_pytree(r)[0])(reverse), status

    return program


def test_every_derivative_is_that_of_the_closed_form(run):
    p = jax.tree.map(jnp.asarray, _NUMBERS)
    truth, slopes = _truth(p), jax.jacfwd(_truth)(p)
    slopes = np.stack([slopes[name] for name in sorted(slopes)], axis=1)
    value, forward, reverse, status = run(p, carom.Adaptive(1e-10, 1e-12))
    assert status == carom.Status.OK
    assert np.max(np.abs(value - truth)) <= 1e-8
    scale = np.max(np.abs(slopes), axis=1, keepdims=True)
    assert np.max(np.abs(forward - slopes) / scale) <= 1e-8
    assert np.max(np.abs(reverse - forward) / scale) <= 1e-12
