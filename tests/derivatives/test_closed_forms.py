"""Derivatives through impacts, slip that ends, contacts that open and moving walls, against closed forms."""

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


_TIGHT = carom.Adaptive(1e-10, 1e-12)


def _zeno(p):
    """When a ball has come to rest."""
    ball, state = carom.models.bouncing_ball(height=p[0], velocity=p[1], restitution=p[2], gravity=p[3])
    method, closes = carom.EventCapturing(carom.explicit(4)), carom.Event(0, "closes")
    end = carom.final_state(ball, state, method, t1=9.0, stepping=_TIGHT, until=closes, max_steps=512)
    return jnp.stack([end.state.t]), end.status


def _zeno_time(p):
    w = jnp.sqrt(p[1] ** 2 + 2 * p[3] * p[0])
    return jnp.stack([(p[1] + w) / p[3] + 2 * p[2] * w / (p[3] * (1 - p[2]))])


def _table(t, q, p):
    return q - p[0] * jnp.sin(p[1] * t)


def _leaves(p):
    """The height of a mass that a table A sin(w t) has thrown off."""
    system = carom.System(1.0, lambda q, p: p[2] * q[0], params=p, contacts=carom.Contacts(_table, restitution=0.0))
    start = carom.State(jnp.zeros(1), jnp.stack([p[0] * p[1]]))
    method = carom.EventCapturing(carom.explicit(4))
    end = carom.final_state(system, start, method, t1=0.8, stepping=_TIGHT, max_steps=512)
    return end.state.q, end.status


def _thrown(p):
    A, w, g = p
    t = jnp.arcsin(g / (A * w * w)) / w
    s = 0.8 - t
    return jnp.stack([A * jnp.sin(w * t) + A * w * jnp.cos(w * t) * s - 0.5 * g * s * s])


def _sphere_slips(q, v):
    del q
    return jnp.stack([v[0] - v[4], v[1] + v[3]])[None]


def _sphere(p):
    """Where a sphere of radius one is that slid until it rolled, in the plane."""
    mass, weight = jnp.array([1.0, 1.0, 1.0, 0.4, 0.4]), lambda q, p: p[1] * q[2]
    floor = carom.Contacts(lambda q: q[2:3], slip_velocity=_sphere_slips, friction=p[0], restitution=0.0)
    start = carom.State(jnp.zeros(5), jnp.concatenate([p[2:], jnp.zeros(3)]))
    system, method = carom.System(mass, weight, params=p, contacts=floor), carom.EventCapturing(carom.radau_iia(3))
    end = carom.final_state(system, start, method, t1=1.0, stepping=_TIGHT, max_steps=512)
    return end.state.q[:2], end.status


def _rolled(p):
    speed = jnp.hypot(*p[2:])
    return (5 / 7 + 2 * speed / (49 * p[0] * p[1])) * p[2:]


@pytest.mark.parametrize(
    ("end", "truth", "p"),
    [
        pytest.param(_zeno, _zeno_time, [1.0, 0.3, 0.5, 9.81], id="zeno time"),
        pytest.param(_leaves, _thrown, [1.0, 4.0, 9.81], id="leaves a table"),
        pytest.param(_sphere, _rolled, [0.3, 9.81, 1.2, 0.5], id="sphere"),
    ],
)
def test_derivatives_are_those_of_the_closed_form_forward_and_in_reverse(end, truth, p):
    @jax.jit
    def program(p):
        value, push, status = jax.linearize(end, p, has_aux=True)
        pull = jax.linear_transpose(push, p)
        forward = jax.vmap(push, out_axes=1)(jnp.eye(p.size))
        return value, forward, jax.vmap(lambda w: pull(w)[0])(jnp.eye(value.size)), status

    p = jnp.asarray(p)
    value, forward, reverse, status = map(np.asarray, program(p))
    slopes = np.asarray(jax.jacfwd(truth)(p))
    scale = np.max(np.abs(slopes), axis=1, keepdims=True)
    assert status == carom.Status.OK
    assert np.max(np.abs(value - truth(p))) <= 1e-9
    assert np.max(np.abs(forward - slopes) / scale) <= 1e-8
    assert np.max(np.abs(reverse - forward) / scale) <= 1e-12


@pytest.mark.parametrize(
    ("tableau", "order"), [(carom.explicit(4), 4), (carom.gauss(2), 4), (carom.radau_iia(2), 3)], ids=str
)
def test_derivatives_converge_with_the_order_of_the_method(tableau, order):
    def end(p, h):
        wall = carom.Contacts(lambda q, p: p[1] - q[:1], restitution=p[2])
        system = carom.System(1.0, lambda q: 0.5 * q[0] ** 2, params=p, contacts=wall)
        start, method = carom.State(jnp.zeros(1), p[:1]), carom.EventCapturing(tableau)
        return carom.final_state(system, start, method, t1=1.5, h=h, max_steps=96).state.q[0]

    def truth(p):
        t = jnp.arcsin(p[1] / p[0])
        return p[1] * jnp.cos(1.5 - t) - p[2] * p[0] * jnp.cos(t) * jnp.sin(1.5 - t)

    program, sizes = jax.jit(jax.grad(end)), 1.5 / np.array([8, 16, 32, 64])
    for stop in (0.7, np.sin(0.75)):  # hit between grid points, and on one
        p = jnp.asarray([1.0, stop, 0.6])
        errors = [np.max(np.abs(program(p, h) - jax.grad(truth)(p))) for h in sizes]
        assert np.polyfit(np.log(sizes), np.log(errors), 1)[0] >= order - 0.3


def _swings_and_lands(p):
    """A mass on a spring that meets a stop, which it leaves at once, and a block that lands sliding and stays."""
    contacts = carom.Contacts(
        lambda q, p: jnp.stack([p["stop"] - q[0], q[1]]),
        slip_velocity=lambda q, v: jnp.stack([0 * v[0], v[2]]),
        friction=jnp.stack([0.0, p["mu"]]),
        restitution=jnp.stack([p["e"], p["e2"]]),
    )
    system = carom.System(1.0, lambda q, p: 0.5 * q[0] ** 2 + p["g"] * q[1], params=p, contacts=contacts)
    return system, carom.State(jnp.stack([0.0, p["y"], 0.0]), jnp.stack([p["u"], 0.0, p["slide"]]))


def _swung_and_landed(p):
    hit, fall = jnp.arcsin(p["stop"] / p["u"]), jnp.sqrt(2 * p["y"] / p["g"])
    after = 1.5 - hit
    swings = p["stop"] * jnp.cos(after) - p["e"] * p["u"] * jnp.cos(hit) * jnp.sin(after)
    slows = p["mu"] * p["g"]
    return jnp.stack([swings, p["slide"] * 1.5 - slows * fall * (1.5 - fall) - 0.5 * slows * (1.5 - fall) ** 2])


def test_derivatives_by_a_restitution_of_zero_are_those_of_its_growth():
    def end(p):
        method = carom.EventCapturing(carom.explicit(5))
        found = carom.final_state(*_swings_and_lands(p), method, t1=1.5, stepping=carom.Adaptive(1e-9, 1e-11))
        return found.state.q[jnp.asarray([0, 2])]

    program, numbers = jax.jit(jax.jacrev(end)), {"u": 1.0, "e": 0.0, "e2": 0.0, "y": 0.4, "g": 9.81, "mu": 0.2}
    for stop in (0.3, 0.5, 0.62, 0.9):
        p = jax.tree.map(jnp.asarray, numbers | {"stop": stop, "slide": 4.0})
        slopes, truth = program(p), jax.jacfwd(_swung_and_landed)(p)
        assert all(np.max(np.abs(slopes[name] - truth[name])) <= 1e-7 for name in p)
