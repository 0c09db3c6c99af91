"""A slider with play bounces, comes to rest on a corner, and hits again: against variational equations in SciPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import carom

pytestmark = pytest.mark.slow

_T, _TILT, _BRIEF = 0.0065, 0.017, 2e-12
_P = {"clearance": 0.001, "e": 0.4, "g": 9.81, "m": 0.076, "mu": 0.01, "w": 150.0}
_NAMES = sorted(_P)
_L1, _L2, _A, _B = 0.153, 0.306, 0.05, 0.025


def _mass_and_force(x, p):
    (a, b, _), (u, w, _) = x[:3], x[3:]
    k = (0.019 + p["m"]) * _L1 * _L2
    M11, M22 = 7.4e-5 + (0.0095 + 0.038 + p["m"]) * _L1**2, 5.9e-4 + (0.0095 + p["m"]) * _L2**2
    M12 = k * jnp.cos(b - a)
    M = jnp.stack([jnp.stack([M11, M12, 0.0]), jnp.stack([M12, M22, 0.0]), jnp.array([0.0, 0.0, 2.7e-6])])
    turn = k * jnp.sin(b - a)
    crank, rod = (0.019 + 0.038 + p["m"]) * p["g"] * _L1, (0.019 + p["m"]) * p["g"] * _L2
    return M, jnp.stack([turn * w**2 - crank * jnp.cos(a), -turn * u**2 - rod * jnp.cos(b), 0.0])


def _corner(q, side):
    """Place of an upper corner, left or right."""
    x, y = _L1 * jnp.cos(q[0]) + _L2 * jnp.cos(q[1]), _L1 * jnp.sin(q[0]) + _L2 * jnp.sin(q[1])
    s, c = jnp.sin(q[2]), jnp.cos(q[2])
    return jnp.stack([x + side * _A * c - _B * s, y + side * _A * s + _B * c])


def _gap(x, p, side):
    return _B + p["clearance"] - _corner(x[:3], side)[1]


def _sides(q, sides):
    """Directions of the normals and of slip."""
    J = jnp.stack([jax.jacfwd(_corner)(q, side) for side in sides])
    return -J[:, 1], J[:, 0]


def _rates(x, p, held):
    M, force = _mass_and_force(x, p)
    q, v = x[:3], x[3:]
    if not held:
        return jnp.concatenate([v, jnp.linalg.solve(M, force)])
    W, slip = _sides(q, held)
    kappa = jax.jvp(lambda q: _sides(q, held)[0] @ v, (q,), (v,))[1]
    pushed = jnp.linalg.solve(M, jnp.column_stack([force, (W + p["mu"] * slip).T]))
    lam = jnp.linalg.solve(W @ pushed[:, 1:], -W @ pushed[:, 0] - kappa)
    return jnp.concatenate([v, pushed[:, 0] + pushed[:, 1:] @ lam])


def _struck(x, p, sides, bounces):
    """After an impact of the last of these corners."""
    W, slip = _sides(x[:3], sides)
    columns = jnp.linalg.solve(_mass_and_force(x, p)[0], (W + p["mu"] * slip).T)
    e = jnp.zeros(len(sides)).at[-1].set(bounces * p["e"])
    P = jnp.linalg.solve(W @ columns, -(1 + e) * (W @ x[3:]))
    return x.at[3:].add(columns @ P)


def _flight_time(x, p, held, side):
    """How long a corner that has just bounced stays away, at constant acceleration."""

    def rate(x):
        return jax.jvp(lambda x: _gap(x, p, side), (x,), (_rates(x, p, held),))[1]

    now, bend = jax.jvp(rate, (x,), (_rates(x, p, held),))
    return 2 * now / jnp.abs(bend)


_rates = jax.jit(_rates, static_argnums=2)
_flight_time = jax.jit(_flight_time, static_argnums=(2, 3))
_struck = jax.jit(_struck, static_argnums=(2, 3))
_slopes = jax.jit(jax.jacfwd(_rates, (0, 1)), static_argnums=2)
_slopes_struck = jax.jit(jax.jacfwd(_struck, (0, 1)), static_argnums=(2, 3))
_slopes_gap = jax.jit(jax.jacfwd(_gap, (0, 1)), static_argnums=2)


def _columns(by_parameter):
    return np.stack([np.asarray(by_parameter[name]) for name in _NAMES], axis=-1)


def _reference():
    """Coordinates and velocities at the end, and their derivatives by all parameters."""

    def motion(t, y, held):
        x, Y = y[:6], y[6:].reshape(6, -1)
        by_x, by_p = _slopes(x, _P, held)
        return np.concatenate([_rates(x, _P, held), (np.asarray(by_x) @ Y + _columns(by_p)).ravel()])

    def followed(t, end, y, held, event=None):
        options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-16}
        return solve_ivp(lambda t, y: motion(t, y, held), (t, end), y, events=event, **options)

    def flight(t, y, held, side):
        def hits(t, y):
            return float(_gap(y[:6], _P, side))

        hits.terminal, hits.direction = True, -1
        if abs(hits(t, y)) < 1e-12:  # it has just left
            away = min(t + 0.3 * float(_flight_time(y[:6], _P, held, side)), _T)
            t, y = away, followed(t, away, y, held).y[:, -1]
        found = followed(t, _T, y, held, hits)
        return found.t[-1], found.y[:, -1], found.status == 1

    def impact(y, before, sides, after, bounces):
        x, Y = y[:6], y[6:].reshape(6, -1)
        (Rx, Rp), (gx, gp) = _slopes_struck(x, _P, sides, bounces), _slopes_gap(x, _P, sides[-1])
        f = np.asarray(_rates(x, _P, before))
        late = -(np.asarray(gx) @ Y + _columns(gp)) / (np.asarray(gx) @ f)
        new = np.asarray(_struck(x, _P, sides, bounces))
        jump = np.asarray(Rx) @ f - np.asarray(_rates(new, _P, after))
        return np.concatenate([new, (np.asarray(Rx) @ Y + _columns(Rp) + np.outer(jump, late)).ravel()])

    x, Y = np.array([0.0, 0.0, _TILT, _P["w"], -75.0, 0.0]), np.zeros((6, len(_NAMES)))
    Y[3, _NAMES.index("w")] = 1.0
    t, y, held, side, count = 0.0, np.concatenate([x, Y.ravel()]), (), 1.0, 0
    while True:
        t, y, hit = flight(t, y, held, side)
        if not hit:
            return y[:6], y[6:].reshape(6, -1), count
        bounced = impact(y, held, (*held, side), held, 1.0)
        if held or _flight_time(bounced[:6], _P, held, side) > _BRIEF:
            y, count = bounced, count + 1
        else:
            y, held, side = impact(y, held, (1.0,), (1.0,), 0.0), (1.0,), -1.0


def _build(p):
    rates, angles = jnp.stack([p["w"], -75.0, 0.0]), jnp.array([0.0, 0.0, _TILT])
    system, _ = carom.models.slider_crank_clearance(p["clearance"], p["mu"], p["e"])
    params = system.params | {"m_3": p["m"], "gravity": p["g"]}
    return eqx.tree_at(lambda s: s.params, system, params), carom.State(angles, rates)


def test_derivatives_through_accumulation_sliding_and_impacts_are_those_of_the_variational_equations():
    def end(p):
        method = carom.EventCapturing(carom.radau_iia(3))
        found = carom.final_state(*_build(p), method, t1=_T, stepping=carom.Adaptive(1e-10, 1e-12), max_steps=2048)
        return jnp.concatenate([found.state.q, found.state.v]), found.status

    @jax.jit
    def program(p):
        value, push, status = jax.linearize(end, p, has_aux=True)
        pull = jax.linear_transpose(push, p)
        flat, back = jax.flatten_util.ravel_pytree(p)
        forward = jax.vmap(lambda d: push(back(d)), out_axes=1)(jnp.eye(flat.size))
        reverse = jax.vmap(lambda w: jax.flatten_util.ravel_pytree(pull(w)[0])[0])(jnp.eye(6))
        return value, forward, reverse, status

    value, forward, reverse, status = map(np.asarray, program(jax.tree.map(jnp.asarray, _P)))
    truth, slopes, impacts = _reference()
    assert status == carom.Status.OK
    assert impacts == 19
    assert np.max(np.abs(value - truth) / (1e-3 + np.abs(truth))) <= 1e-8
    scale = np.max(np.abs(slopes), axis=1, keepdims=True)
    assert np.max(np.abs(forward - slopes) / scale) <= 1e-8
    assert np.max(np.abs(reverse - slopes) / scale) <= 1e-8
