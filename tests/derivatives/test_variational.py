"""A pendulum that hits a stop, an oscillator that sticks: derivatives against variational equations in SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import carom

pytestmark = pytest.mark.slow

_T, _W, _START = 6.0, 1.3, 1.0
_P = {"F": 1.0, "a": 1.5, "e": 0.7, "g": 9.81, "k": 4.0, "s": 0.5}
_NAMES = sorted(_P)
_TIGHT = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-14}


def _until(rates, event, t, y):
    event.terminal = True
    found = solve_ivp(rates, (t, _T), y, events=event, **_TIGHT)
    return found.t[-1], found.y[:, -1], found.status == 1


def _pendulum():
    """Angle, rate, and their derivatives by (g, e, s), with the saltation of every impact."""
    g, e, s = _P["g"], _P["e"], _P["s"]

    def rates(t, y):
        angle, rate, *slopes = y
        d, w = np.reshape(slopes, (2, 3))
        return [rate, -g * np.sin(angle), *w, *(-g * np.cos(angle) * d - np.sin(angle) * np.array([1.0, 0.0, 0.0]))]

    def hit(t, y):
        return np.sin(y[0]) + s

    hit.direction = -1
    t, y, going = 0.0, np.array([_START, 0.0, *np.zeros(6)]), True
    while going:
        t, y, going = _until(rates, hit, t, y)
        if going:
            angle, rate, (d, w) = y[0], y[1], y[2:].reshape(2, 3)
            late = -(np.cos(angle) * d + [0.0, 0.0, 1.0]) / (np.cos(angle) * rate)
            bend = -g * np.sin(angle)
            d1 = d + (rate + e * rate) * late
            w1 = -e * (w + bend * late) - rate * np.array([0.0, 1.0, 0.0]) - bend * late
            y = np.array([angle + 1e-15, -e * rate, *d1, *w1])
    return y[0], y[2:5]


def _coulomb():
    """Position and its derivatives by (F, a, k): slip, rest, slip."""
    F, a, k = _P["F"], _P["a"], _P["k"]
    t, q, v, d, w, side = 0.0, 1.0, 0.0, np.zeros(3), np.zeros(3), -1.0

    def push(t, q):
        return -k * q + a * np.cos(_W * t)

    while t < _T:

        def slides(t, y, side=side):
            along = np.array([-side, np.cos(_W * t), -y[0]])
            return [y[1], push(t, y[0]) - side * F, *y[5:8], *(-k * y[2:5] + along)]

        def stops(t, y):
            return y[1]

        stops.direction = -side
        t, y, stopped = _until(slides, stops, t, np.array([q, v, *d, *w]))
        q, v, d, w = y[0], 0.0 if stopped else y[1], y[2:5], y[5:8]
        if not stopped:
            break
        late, before = -w / (push(t, q) - side * F), push(t, q) - side * F
        if abs(push(t, q)) <= F:
            found = solve_ivp(
                lambda t, y: [0.0],
                (t, _T),
                [0.0],
                events=_tears(lambda t, q=q: abs(push(t, q)) - F),
                max_step=0.01,
                **_TIGHT,
            )
            t, w = found.t[-1], np.zeros(3)
            side = np.sign(push(t, q))
        else:
            side = -side
            w = w + (before - (push(t, q) - side * F)) * late
    return q, d


def _tears(reserve):
    def event(t, y):
        return reserve(t)

    event.terminal, event.direction = True, 1
    return event


def _energy(q, p):
    return p["g"] * q[1] + 0.5 * p["k"] * q[2] ** 2


def _drive(t, q, v, p):
    return jnp.stack([0.0, 0.0, p["a"] * jnp.cos(_W * t)])


def _build(p):
    contacts = carom.Contacts(lambda q, p: q[:1] + p["s"], restitution=p["e"])
    rubs = carom.FrictionElements(lambda q, v: v[2:], limit=p["F"])
    rod = lambda q: q[:2] @ q[:2] - 1.0  # noqa: E731
    system = carom.System(1.0, _energy, {"drive": _drive}, params=p, constraints=rod, contacts=contacts, friction=rubs)
    return system, carom.State([np.sin(_START), -np.cos(_START), 1.0], [0.0, 0.0, 0.0])


def test_derivatives_are_those_of_the_variational_equations():
    def end(p):
        method = carom.EventCapturing(carom.radau_iia(3), projection=True)
        found = carom.final_state(*_build(p), method, t1=_T, stepping=carom.Adaptive(1e-10, 1e-12), max_steps=8192)
        return found.state.q[jnp.asarray([0, 2])], found.status

    @jax.jit
    def program(p):
        value, push, status = jax.linearize(end, p, has_aux=True)
        pull = jax.linear_transpose(push, p)
        flat, back = jax.flatten_util.ravel_pytree(p)
        forward = jax.vmap(lambda d: push(back(d)), out_axes=1)(jnp.eye(flat.size))
        reverse = jax.vmap(lambda w: jax.flatten_util.ravel_pytree(pull(w)[0])[0])(jnp.eye(2))
        return value, forward, reverse, status

    value, forward, reverse, status = map(np.asarray, program(jax.tree.map(jnp.asarray, _P)))
    (angle, slopes), (q, others) = _pendulum(), _coulomb()
    truth = np.zeros((2, 6))
    truth[0, [_NAMES.index(n) for n in ("g", "e", "s")]] = np.cos(angle) * slopes
    truth[1, [_NAMES.index(n) for n in ("F", "a", "k")]] = others
    assert status == carom.Status.OK
    assert np.max(np.abs(value - [np.sin(angle), q])) <= 1e-8
    scale = np.max(np.abs(truth), axis=1, keepdims=True)
    assert np.max(np.abs(forward - truth) / scale) <= 1e-8
    assert np.max(np.abs(reverse - forward) / scale) <= 1e-12
