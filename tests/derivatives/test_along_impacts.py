"""Numbers gathered on the way of a falling ball, and ends of its run at sections and events, by closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom

_METHOD, _STEPPING = carom.EventCapturing(carom.explicit(4)), carom.Adaptive(1e-10, 1e-12)
_P = {"height": 1.0, "down": 0.4, "gravity": 2.0, "rebound": 0.7}
_T1 = 1.9  # between the second time at 0.2 and the second bounce
_OF_MOTION = {
    "square": (carom.Integral, lambda q, v: v**2),
    "corner": (carom.Integral, lambda q, v: jnp.abs(v - 0.3)),
    "corners": (carom.Integral, lambda q, v: jnp.abs(jnp.abs(v + 0.1) - 0.4)),
    "before": (carom.Peak, lambda q, v: v**2 + 0.1 * q),
    "behind": (carom.Peak, lambda q, v: v + 0.1 * q),
    "deepest": (carom.Peak, lambda q, v: -(q**2)),
    "slowest": (carom.Peak, lambda q, v: -(v**2) - 5.0 * q),
    "inside": (carom.Peak, lambda q, v: q + 0.5 * v),
}


def _ball(height, down, gravity, rebound, weights):
    floor = carom.Contacts(lambda q: q, restitution=rebound)
    system = carom.System(1.0, lambda q, p: p["g"] * q[0], params={"g": gravity, "w": weights}, contacts=floor)
    return system, carom.State(jnp.stack([height]), -jnp.stack([down]))


def _gathers(i, kind, f):
    return kind(lambda q, v, p: p["w"][i] * f(q[0], v[0]))


def _weighted(until, t1, names):
    """The gradient of the sum of all that is gathered, for weights of their own: one program for all of them."""
    along = {name: _gathers(i, *_OF_MOTION[name]) for i, name in enumerate(names)}

    def found(name):
        numbers = _P | {"weights": 1.0 * (np.array(names) == name)}
        return carom.gradient(
            lambda state, along: sum(along.values()),
            _ball,
            numbers,
            _METHOD,
            t1=t1,
            stepping=_STEPPING,
            until=until,
            along=along,
            check=False,
        )

    return found


def _flights(p):
    """Time and velocity of the first impact, and the flight before and behind it."""
    speed = jnp.sqrt(p["down"] ** 2 + 2 * p["gravity"] * p["height"])
    t, up = (speed - p["down"]) / p["gravity"], p["rebound"] * speed

    def fall(s):
        return p["height"] - p["down"] * s - 0.5 * p["gravity"] * s**2, -p["down"] - p["gravity"] * s

    def rise(s):
        return up * (s - t) - 0.5 * p["gravity"] * (s - t) ** 2, up - p["gravity"] * (s - t)

    return t, up, fall, rise


def _ends(p):
    t, up, _, _ = _flights(p)
    high = t + (up + jnp.sqrt(up**2 - 0.4 * p["gravity"])) / p["gravity"]
    return {"t1": _T1 + 0.0 * t, "crossing": high, "turned": t, "bounces": t}


def _truth(p, name, end):
    """By fine sums over both flights, whose ends move with the numbers."""
    kind, f = _OF_MOTION[name]
    t, _, fall, rise = _flights(p)
    last = _ends(p)[end]
    shares = np.linspace(0.0, 1.0, 200001)
    total, peaks = 0.0, []
    for a, b, motion in ((0.0, t, fall), (t, last, rise)):
        y = f(*motion(a + (b - a) * shares))
        total += (b - a) * jnp.trapezoid(y, shares)
        peaks.append(jnp.max(y))
    return total if kind is carom.Integral else jnp.maximum(*peaks)


_UNTIL = {
    "t1": None,
    "crossing": carom.Section(lambda q: q[0] - 0.2, "falling", 2),
    "turned": carom.Section(lambda q, v: v[0], "rising"),
    "bounces": carom.Event(0, "bounces"),
}


def _check(end, names):
    found = _weighted(_UNTIL[end], _T1 if end == "t1" else 5.0, names)
    for name in names:
        value, slopes = jax.value_and_grad(_truth)(_P, name, end)
        got = found(name)
        assert got.value == pytest.approx(float(value), abs=1e-8), name
        for number, slope in slopes.items():
            assert got.gradient[number] == pytest.approx(float(slope), abs=1e-5), (name, number)


def test_integrals_with_corners_and_peaks_at_an_impact_have_their_derivatives():
    _check("t1", ["corner", "slowest"])


@pytest.mark.slow
@pytest.mark.parametrize("end", _UNTIL)
def test_what_is_gathered_up_to_any_end_has_its_derivative(end):
    _check(end, list(_OF_MOTION))


def test_an_impact_across_a_section_ends_the_run_right_behind_it():
    """With the velocity behind it, not with one in the middle of the jump, whose derivative is rounding."""

    def end(state):
        return state.t + state.v[0] + state.q[0]

    until, numbers = carom.Section(lambda q, v: v[0] - 0.5, "rising"), _P | {"weights": np.zeros(1)}
    found = carom.gradient(end, _ball, numbers, _METHOD, t1=5.0, stepping=_STEPPING, until=until, check=False)
    value, slopes = jax.value_and_grad(lambda p: sum(_flights(p)[:2]))(_P)
    assert found.value == pytest.approx(float(value), abs=1e-9)
    assert [found.gradient[name] for name in _P] == pytest.approx([float(slopes[name]) for name in _P], abs=1e-8)
