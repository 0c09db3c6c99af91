"""Derivatives through events: a ball that bounces, and beside it a block that a moving spring tears off its ground."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.state import Info, Step
from tests.methods.test_derivatives import assert_program, derivative_program, numbers_of_step

_G, _E, _K, _PULL, _LIMIT, _H, _STEPS = 9.81, 0.6, 30.0, 0.6, 4.0, 0.05, 8
_T = _STEPS * _H
_STARTS = {
    "no event": ([3.0, 0.12], [0.5, 0.0]),
    "an impact, slip that ends and begins again": ([0.4, 0.1], [0.0, 0.2]),
    "slip that begins": ([3.0, 0.02], [0.5, 0.0]),
    "an impact and slip that begins": ([0.4, 0.02], [0.0, 0.0]),
}


class _Run(eqx.Module):
    """Some steps as one: all events of the way included."""

    method: carom.EventCapturing

    def init(self, system, state):
        return None

    def step(self, system, state, memory, h):
        end = state.t + _STEPS * h

        def once(at, _):
            state, memory, work = at
            left = end - state.t
            goes_on = left > 1e-9 * h
            step = self.method.step(system, state, memory, jnp.where(goes_on, jnp.minimum(h, left), h))
            new = (step.state, step.memory, work + step.info.work)
            kinds = jnp.where(goes_on, step.info.event, 0)
            return jax.tree.map(lambda a, b: jnp.where(goes_on, a, b), new, at), kinds

        start = (state, self.method.init(system, state), jnp.zeros(2))
        (state, _, work), events = jax.lax.scan(once, start, None, length=_STEPS + 6)
        return Step(state, None, Info(work=work, mode=events))


def _energy(t, q, p):
    return p["g"] * q[0] + 0.5 * p["k"] * (q[1] - p["pull"] * t) ** 2


@pytest.fixture(scope="module")
def run():
    params = {"g": _G, "k": _K, "pull": _PULL}
    contacts = carom.Contacts(lambda q: q[:1], restitution=_E)
    ground = carom.FrictionElements(lambda q, v: v[1:], limit=_LIMIT)
    system = carom.System([1.0, 1.0], _energy, params=params, contacts=contacts, friction=ground)
    method = _Run(carom.EventCapturing(carom.explicit(4), C=1e-6, solver=carom.PSOR(1e-15)))
    numbers, end = numbers_of_step(method, system, carom.State(*_STARTS["no event"]), _H)
    program = derivative_program(end)

    def starting(name):
        return eqx.tree_at(lambda n: (n[2].q, n[2].v), numbers, tuple(map(jnp.asarray, _STARTS[name])))

    return program, starting


_EVENTS = {
    "no event": [],
    "an impact, slip that ends and begins again": ["bounces", "slips", "sticks"],
    "slip that begins": ["slips"],
    "an impact and slip that begins": ["bounces", "slips"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", _STARTS)
def test_a_run_through_events_has_the_derivative_of_its_steps(run, name):
    program, starting = run
    *_, events = assert_program(program, starting(name))
    seen = [carom.systems.contact_rows.Event(int(code)).name.lower() for code in np.asarray(events)[events != 0]]
    assert sorted(seen) == _EVENTS[name]


@pytest.mark.slow
def test_the_derivatives_of_a_bounce_and_of_slip_include_those_of_their_times(run):
    program, starting = run
    numbers = starting("an impact and slip that begins")
    nothing = jax.tree.map(jnp.zeros_like, numbers)
    along = eqx.tree_at(lambda n: n[2].q, nothing, jnp.ones(2))
    value, slope, _, _ = program(numbers, along)
    y0, x0 = _STARTS["an impact and slip that begins"][0]
    fall = np.sqrt(2 * y0 / _G)
    rises = _T - fall
    w, torn = np.sqrt(_K), (_LIMIT / _K + x0) / _PULL
    assert value[0] == pytest.approx(_E * _G * fall * rises - 0.5 * _G * rises**2, rel=1e-9)
    assert value[1] == pytest.approx(_PULL * _T - _LIMIT / _K - _PULL / w * np.sin(w * (_T - torn)), abs=1e-5)
    assert slope[0] == pytest.approx((_E * (rises - fall) + rises) / fall, rel=1e-5)
    assert slope[1] == pytest.approx(np.cos(w * (_T - torn)), abs=1e-4)
