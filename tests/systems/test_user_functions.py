"""Mistakes in a user's functions are named, with their role, before anything is compiled."""

import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest

import carom

STATE = carom.State([1.0, 0.5], [0.0, 0.0])


def bowl(q):
    return 0.5 * q @ q


def contacts(gap, **more):
    return carom.System(1.0, bowl, contacts=carom.Contacts(gap, **more))


MISTAKES = {
    "index": (lambda: carom.System(1.0, lambda q: q[5] ** 2), "potential: index 5 is out of range for 2 coordinates"),
    "a condition": (lambda: contacts(lambda q: q > 0), "gap must return numbers, got True or False"),
    "index of a gap": (lambda: contacts(lambda q: q[3]), "gap: index 3 is out of range for 2 coordinates"),
    "index of a force": (
        lambda: carom.System(1.0, bowl, {"drag": lambda t, q, v: -v[2] * q}),
        "force 'drag': index 2 is out of range for 2",
    ),
    "empty slice": (lambda: contacts(lambda q: q[7:8]), "gap returned 0 contacts"),
    "short force": (
        lambda: carom.System(1.0, bowl, {"d": lambda t, q, v: -v[:1]}),
        r"force 'd' returned shape \(1,\), expected \(2,\)",
    ),
    "scalar force": (lambda: carom.System(1.0, bowl, {"d": lambda t, q, v: -1.0}), r"force 'd' returned shape \(\)"),
    "numpy": (lambda: carom.System(1.0, lambda q: np.sin(q[0])), "potential: use jax.numpy in place of numpy"),
    "math": (lambda: carom.System(1.0, lambda q: math.sin(q[0])), "potential: use jax.numpy in place of numpy"),
    "if": (lambda: carom.System(1.0, lambda q: q[0] if q[1] > 0 else 0.0), "jnp.where in place of if"),
    "vector energy": (lambda: carom.System(1.0, lambda q: q**2), r"potential must return one number, got shape \(2,\)"),
    "vector Lagrangian": (
        lambda: carom.System.from_lagrangian(lambda q, v: v**2),
        r"the Lagrangian must return one number, got shape \(2,\)",
    ),
    "mass": (
        lambda: carom.System(lambda q: jnp.ones(3), bowl),
        r"mass returned shape \(3,\), expected \(2,\) or \(2, 2\)",
    ),
    "no params": (
        lambda: carom.System(1.0, lambda q, p: p["k"] * q[0]),
        "potential takes p, but the system has no params=",
    ),
    "missing key": (
        lambda: carom.System(1.0, lambda q, p: p["g"] * q[0], params={"k": 1.0}),
        "potential: params has no 'g'; it has 'k'",
    ),
    "nothing": (lambda: carom.System(1.0, lambda q: None), "potential: returned nothing"),
    "units": (lambda: carom.System(1.0, bowl, units=("m", "m", "m")), "units has 3 entries, but the state has 2"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_function_that_cannot_be_used_is_named_by_its_role(mistake):
    build, words = MISTAKES[mistake]
    with pytest.raises((ValueError, TypeError, IndexError), match=words):
        carom.check(build(), STATE)


def test_a_friction_velocity_that_is_not_affine_is_refused():
    for slip in (lambda q, v: jnp.abs(v[1:]), lambda q, v: v[1:] ** 3):
        with pytest.raises(ValueError, match="slip_velocity must be affine in v"):
            carom.check(contacts(lambda q: q[:1], slip_velocity=slip, friction=0.3), STATE)


CONSTRUCTIONS = {
    "order": (lambda: carom.Contacts(lambda q, v: q[:1]), r"gap must be a function of \(q\) or \(t, q\).*got \(q, v\)"),
    "order of a force": (lambda: carom.System(1.0, forces={"f": lambda q, v, t: -v}), r"got \(q, v, t\)"),
    "params": (lambda: carom.System(1.0, lambda q, params: q[0]), "name the argument p, not params"),
    "text": (
        lambda: carom.System(1.0, bowl, params={"k": "stiff"}),
        r"params\['k'\] must be a real number",
    ),
    "labels": (lambda: carom.System(1.0, bowl, labels="xy"), "labels must be a list of names"),
    "list of contacts": (
        lambda: carom.System(1.0, contacts=[carom.Contacts(bowl), bowl]),
        "contacts must be a carom.Contacts or a list of them, got function",
    ),
    "function": (lambda: carom.Contacts(bowl, slip=bowl, friction=bowl), "friction must be a number.*got a function"),
    "h": (lambda: carom.Constant("0.1"), "h must be a number, got str"),
    "several h": (lambda: carom.Constant([0.1]), "h must be a number, got list"),
}


@pytest.mark.parametrize("mistake", CONSTRUCTIONS)
def test_what_can_be_seen_at_once_is_refused_at_once(mistake):
    build, words = CONSTRUCTIONS[mistake]
    with pytest.raises(TypeError, match=words):
        build()


CALLS = {
    "a pair": (lambda s, m: (carom.models.pendulum(), STATE, m), {"h": 0.1}, "a model is a pair: system, state ="),
    "swapped": (lambda s, m: (STATE, s, m), {"h": 0.1}, "system comes first, then state"),
    "tuple": (lambda s, m: (s, ([1.0], [0.0]), m), {"h": 0.1}, r"state must be a carom.State, got tuple; write"),
    "class": (lambda s, m: (s, STATE, carom.MoreauMidpoint), {"h": 0.1}, r"write MoreauMidpoint\(\)"),
    "text": (lambda s, m: (s, STATE, "IRK(gauss(2))"), {"h": 0.1}, r"write IRK\(gauss\(2\)\), without quotes"),
    "number": (lambda s, m: (s, STATE, m), {"stepping": 0.01}, "for constant steps use h=0.01"),
    "solver": (lambda s, m: (s, STATE, carom.MoreauMidpoint(solver="PSOR")), {"h": 0.1}, r"such as carom.PSOR\(\)"),
    "end": (lambda s, m: (s, STATE, m, "1"), {"h": 0.1}, "t1 must be a number, got '1'"),
    "yes or no": (
        lambda s, m: (s, STATE, m),
        {"h": 0.1, "stop": lambda t, q, v: q[0] < 0},
        "stop must return a number that turns negative",
    ),
}


@pytest.mark.parametrize("mistake", CALLS)
def test_an_argument_that_is_something_else_is_told_what_was_meant(mistake):
    arguments, options, words = CALLS[mistake]
    system, state, method, *t1 = arguments(carom.System(1.0, bowl), carom.StormerVerlet())
    with pytest.raises(TypeError, match=words):
        carom.simulate(system, state, method, t1=t1[0] if t1 else 1.0, **options)


def test_a_stop_condition_that_is_negative_at_the_start_is_refused():
    with pytest.raises(ValueError, match="stop is -1 at the start"):
        carom.simulate(
            carom.System(1.0, bowl), STATE, carom.StormerVerlet(), t1=1.0, h=0.1, stop=lambda t, q, v: q[0] - 2.0
        )


def test_a_force_that_becomes_nan_is_named():
    system = carom.System(1.0, bowl, {"pump": lambda t, q, v: -jnp.sqrt(0.45 - t) * v})
    with pytest.raises(carom.SimulationError, match="force 'pump' is NaN at t = 0.5"):
        carom.simulate(system, STATE, carom.PseudoEnergy(), t1=1.0, h=0.1)


def test_the_functions_of_a_system_are_looked_at_once_per_kind_and_size():
    calls = itertools.count()

    def counted(q, p):
        next(calls)
        return p["k"] * q @ q

    def check(k):
        carom.check(carom.System(1.0, counted, params={"k": k}), STATE)

    check(1.0)
    assert next(calls) > 0
    before = next(calls)
    check(2.0)
    assert next(calls) == before + 1


def test_a_state_prints_its_numbers():
    assert repr(STATE) == "State(t=0., q=[1. , 0.5], v=[0., 0.])"
