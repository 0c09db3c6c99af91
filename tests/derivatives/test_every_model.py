"""Runs of every method on every ready-made model: reverse is forward, forward is the difference of runs; or refused."""

import warnings
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.derivatives.final import refusal
from carom.models import registry
from tests.built import built
from tests.test_every_method import SMALL_STEP, pairs

STEPS = 50
SIZES = (1e-4, 1e-6)  # of the differences, relative: the better ones count
OVERCONSTRAINED = ("bricard",)  # 30 rows of rank 29: with hinges elsewhere there is no motion at all
QUICK = ("nonlinear_string-StormerVerlet",)
EASIER = {
    "dominoes": {"n": 2},
    "cubic_crystal": {"side": 3},
    "disordered_packing": {"count": 16},
    "granular_layer": {"count": 4, "depth": 3},
    "hexagonal_crystal": {"columns": 4, "rows": 5},
    "inhomogeneous_wave": {"n": 20},
    "layered_string": {"n": 10},
    "nonlinear_string": {"n": 10},
    "square_crystal": {"columns": 4, "rows": 5},
    "stiff_spring_pendulum": {"stiffness": 1e4, "friction": 1e2},
}
STEP = SMALL_STEP | dict.fromkeys((name for name in EASIER if "crystal" in name or "packing" in name), 1e-7)
STEP |= {"granular_layer": 1e-7, "layered_string": 1e-4, "inhomogeneous_wave": 1e-3, "flyball_governor": 1e-4}
STEP |= {"andrews_squeezer": 1e-5}  # with 1e-6 multipliers carry noise of eps / h^2, a motion of 1e-11
STEP |= {"newtons_cradle": 0.1}  # damping .3: coefficients of tailored methods grow with (damping / h)^2


@cache
def small(model):
    """System and state of a model with few bodies, and springs that every method can follow."""
    return registry[model](**EASIER[model]) if model in EASIER else built(model)


def with_capturing():
    yield from pairs(small)
    for model in sorted(registry):
        system, state = small(model)
        method = carom.EventCapturing(carom.radau_iia(2), C=1e-6)
        if system.features <= method.handles and not method.objection(system):
            yield pytest.param(model, system, state, method, id=f"{model}-EventCapturing")


def marked():
    for one in with_capturing():
        yield pytest.param(*one.values, id=one.id, marks=[] if one.id in QUICK else [pytest.mark.slow])


def program_of(system, state, method, h):
    """The numbers of a run, and the function of them and a direction: the end, its derivative, the lack of reverse."""
    numbers, rest = eqx.partition((system, state), eqx.is_inexact_array)
    numbers = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)), numbers)

    def end(numbers):
        system, state = eqx.combine(numbers, rest)
        t1 = state.t + STEPS * h
        found = carom.final_state(system, state, method, t1=t1, h=h, max_steps=STEPS + 30)
        return jnp.concatenate([found.state.q, found.state.v]), found.status

    @jax.jit
    def program(numbers, direction):
        value, push, status = jax.linearize(end, numbers, has_aux=True)
        weights = jnp.cos(jnp.arange(value.size))
        (gradient,) = jax.linear_transpose(push, numbers)(weights)
        forward = push(direction)
        reverse = sum(jnp.vdot(*pair) for pair in zip(*map(jax.tree.leaves, (gradient, direction))))
        return value, forward, weights @ forward - reverse, status

    return numbers, program


def some_direction(model, numbers):
    """A random change of all numbers that leaves times, and mechanisms that exist with their own hinges only."""
    random = np.random.default_rng(1)
    direction = jax.tree.map(lambda x: random.normal(size=x.shape) * np.abs(x), numbers)
    if model in OVERCONSTRAINED:
        direction = eqx.tree_at(lambda d: d[0].constraints, direction, replace_fn=partial(jax.tree.map, jnp.zeros_like))
    return eqx.tree_at(lambda d: (d[0].epoch, d[1].t), direction, (jnp.zeros(()), jnp.zeros(())))


def begins_closed(system, state):
    """Whether a change of numbers opens a contact on one side and presses it on the other: two derivatives."""
    return system.contacts is not None and bool(np.any(np.abs(system.gaps(state.t, state.q)) <= 1e-12))


@pytest.mark.parametrize(("model", "system", "state", "method"), list(marked()))
def test_reverse_is_forward_and_forward_the_difference_of_runs(model, system, state, method):
    h = STEP.get(model, 1e-3)
    if system.has_lists or method.concrete_init:
        with pytest.raises(ValueError, match="final_state does not take"):
            carom.final_state(system, state, method, t1=1.0, h=h)
        return
    method = method.tuned(system, state, h)  # as `gradient` does where numbers are known
    numbers, program = program_of(system, state, method, h)
    direction = some_direction(model, numbers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if refusal(system, method):
            with pytest.raises(TypeError, match="steps over impacts"):
                program(numbers, direction)
            return

        def run(size):
            moved = jax.tree.map(lambda x, d: x + size * d, numbers, direction)
            return program(moved, direction)

        def difference(size):
            one, two = (np.asarray(run(k * size)[0] - run(-k * size)[0]) / (2 * k * size) for k in (1, 2))
            return (4 * one - two) / 3

        def on_one_side(size):
            one, two = (np.asarray(run(k * size)[0] - value) / (k * size) for k in (1, 2))
            return 2 * one - two

        value, forward, lack, status = run(0)
        found = [difference(size) for size in SIZES]
        if begins_closed(system, state):
            found += [on_one_side(side * size) for size in SIZES for side in (1, -1)]
        off = min(np.max(np.abs(forward - slope)) for slope in found)
    assert status == carom.Status.OK
    assert abs(lack) <= 1e-12 * max(float(jnp.sum(jnp.abs(forward))), 1e-300)
    assert off <= 1e-6 * np.max(np.abs(forward))
