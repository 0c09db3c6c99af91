"""Numbers, records and texts of another kind than meant are refused in one sentence that names the argument."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.files.text import record

SPRING = carom.System(1.0, lambda q: 0.5 * q @ q)
START = carom.State([1.0], [0.0])
VERLET = carom.StormerVerlet()
BALL = carom.models.bouncing_ball()


def run(**arguments):
    return carom.simulate(SPRING, START, VERLET, **({"t1": 1.0, "h": 0.1} | arguments))


def solve(system, state=START, **arguments):
    return carom.solve(system, state, **({"t1": 1.0} | arguments))


ODD = {
    "no end": (lambda: run(t1=None), "t1 must be a number, got None"),
    "a list of ends": (lambda: run(t1=[1.0]), r"t1 must be one number, got \[1.0\]"),
    "a vector of ends": (lambda: run(t1=np.ones(1)), "t1 must be one number"),
    "a complex end": (lambda: run(t1=1j), "t1 must be a number, got 1j"),
    "a huge end": (lambda: run(t1=10**400), "t1 must be finite"),
    "an end that is true": (lambda: run(t1=True), "t1 must be a number, got True"),
    "no times": (lambda: run(save_at=[]), "save_at must be times between 0 and 1"),
    "times in no order": (
        lambda: run(save_at=[1.0, 0.0]),
        "in the order of the run, from 0 to 1",
    ),
    "times past the end of a run that is checked": (
        lambda: solve(SPRING, save_at=[0.5, 1.5], verify=True),
        "save_at must be times between 0 and 1",
    ),
    "times in words": (lambda: run(save_at="x"), "save_at must be a list of times, got 'x'"),
    "complex times": (lambda: run(save_at=[1j]), "save_at must be a list of times"),
    "too rarely": (lambda: run(save_every=10**30), r"save_every must be less than 1e\+18"),
    "true rows": (lambda: run(save_every=True), "save_every must be a whole number"),
    "a setting in words": (
        lambda: carom.simulate(SPRING, START, carom.Theta(theta="x"), t1=1.0, h=0.1),
        "Theta: theta must be a number, got 'x'",
    ),
    "settings inside settings in words": (
        lambda: carom.simulate(SPRING, START, carom.Theta(newton=carom.Newton(tol="x")), t1=1.0, h=0.1),
        "Newton: tol must be a number, got 'x'",
    ),
    "no settings of Newton's method": (
        lambda: carom.simulate(SPRING, START, carom.Theta(newton=1e-9), t1=1.0, h=0.1),
        "Theta: newton must be a carom.Newton, got 1e-09",
    ),
    "a tolerance in words": (lambda: solve(SPRING, rtol="x"), "rtol must be a number, got 'x'"),
    "a tolerance per coordinate in words": (lambda: solve(SPRING, atol="x"), "atol must be a number, got 'x'"),
    "no coordinates": (lambda: carom.State(None, [0.0]), "State: q must be a list of numbers, got None"),
    "coordinates in words": (lambda: carom.State("a", [0.0]), "State: q must be a list of numbers, got 'a'"),
    "numbers in words": (lambda: carom.State(["1"], [0.0]), "State: q must be a list of numbers"),
    "complex coordinates": (lambda: carom.State([1j], [0.0]), "State: q must be a list of numbers"),
    "ragged": (lambda: carom.State([[1.0], [1.0, 2.0]], [0.0]), "State: q must be a list of numbers"),
    "several times": (lambda: carom.State([0.0], [0.0], [0.0]), "State: t must be one number"),
    "empty": (lambda: carom.State([], []), "State: q and v need at least one entry"),
    "solver": (
        lambda: carom.simulate(*BALL, carom.MoreauMidpoint(solver=None), t1=1.0, h=0.1),
        r"MoreauMidpoint: solver must be a contact solver such as carom.PSOR\(\), got None",
    ),
    "solver of the base": (
        lambda: carom.simulate(*BALL, carom.Extrapolated(carom.MoreauTheta(solver=0)), t1=1.0, h=0.1),
        "MoreauTheta: solver must be a contact solver",
    ),
    "base": (lambda: carom.Extrapolated(True), "Extrapolated: base must be a method"),  # pyright: ignore
    "half an order": (lambda: carom.Extrapolated(carom.MoreauMidpoint(), 2.5), "max_order must be a whole number"),  # pyright: ignore
    "no atol": (lambda: carom.Extrapolated(carom.MoreauMidpoint(), atol=None), "atol must be a number, got None"),  # pyright: ignore
    "no tolerance": (lambda: carom.Adaptive(atol=None), "Adaptive: atol must be a number, got None"),  # pyright: ignore
    "h_max in words": (lambda: carom.Adaptive(h_max="a"), "Adaptive: h_max must be positive, got a"),  # pyright: ignore
    "several dampings": (
        lambda: carom.simulate(*carom.models.trimer(), carom.TailoredIRK([0.1]), t1=1.0, h=0.1),  # pyright: ignore
        "TailoredIRK: damping must be one number",
    ),
    "mass in words": (lambda: carom.System("2"), "mass must be a number, .*got '2'"),
    "complex mass": (lambda: carom.System([1j]), "mass must be a number"),
    "complex parameters": (lambda: carom.System(params={"k": 1j}), r"params\['k'\] must be a real number"),
    "jumps in words": (lambda: carom.System(jumps="soon"), "jumps must be a list of times, got 'soon'"),
    "labels": (lambda: carom.System(labels=(1,)), "labels must be a list of names"),  # pyright: ignore
    "label with NUL": (lambda: carom.System(labels=("a\0b",)), r"labels\[0\] must be printable text"),
    "units": (lambda: carom.System(units=[None]), "units must be a text, or a list of texts"),  # pyright: ignore
    "solve with numpy": (lambda: solve(carom.System(1.0, lambda q: np.cos(q[0]))), "potential: use jax.numpy"),
    "solve with a wrong force": (
        lambda: solve(carom.System(forces={"f": lambda t, q, v: jnp.ones(3)})),  # noqa: ARG005
        r"force 'f' returned shape \(3,\), expected \(1,\)",
    ),
    "solve with two lengths": (lambda: solve(SPRING, carom.State([1.0], [0.0, 1.0])), "q has 1 entries but v has 2"),
    "solve without params": (lambda: solve(carom.System(1.0, lambda q, p: p * q[0])), "the system has no params="),
    "solve without end": (lambda: solve(SPRING, t1=None), "t1 must be a number, got None"),
    "solve of a model": (lambda: solve(carom.models.pendulum()), "a model is a pair"),
    "no tableau": (lambda: record("IRK()"), "IRK: missing a required argument: 'tableau'"),
    "unknown argument": (lambda: record("IRK(gauss(2), foo=1)"), "IRK: got an unexpected keyword argument 'foo'"),
    "too deep": (lambda: record("-" * 3000 + "1"), r"cannot read '-{57}\.\.\.' \(it is nested too deeply\)"),
    "a long path": (lambda: record("a" + ".a" * 3000), "cannot read 'a.a.a"),
    "minus a text": (lambda: record("IRK(-'a')"), "cannot read"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_argument_is_named(name):
    build, said = ODD[name]
    with pytest.raises((TypeError, ValueError), match=said):
        build()


def end_of(q):
    return carom.simulate(SPRING, carom.State(q, jnp.zeros(1)), VERLET, t1=1.0, h=0.1).q[-1, 0]


def end_of_solve(q):
    return carom.solve(SPRING, carom.State(q, jnp.zeros(1)), 1.0).q[-1, 0]


def end_of_batch(q):
    return carom.simulate_batch(SPRING, [carom.State(q, jnp.zeros(1))] * 2, VERLET, t1=1.0, h=0.1)[0].q[-1, 0]


@pytest.mark.parametrize("change", [jax.jit, jax.grad, lambda f: lambda q: jax.vmap(f)(q[None])])
@pytest.mark.parametrize("run", [end_of, end_of_solve, end_of_batch])
def test_a_run_inside_a_transformation_is_refused_with_what_to_do(run, change):
    with pytest.raises(TypeError, match=r"cannot be called inside jax.jit, .*call it from plain Python"):
        change(run)(jnp.ones(1))


def test_a_step_longer_than_the_run_is_told():
    with pytest.warns(UserWarning, match="h = 1.5 is longer than the run, t1 - t0 = 1, which becomes one step"):
        assert len(run(h=1.5)) == 2
