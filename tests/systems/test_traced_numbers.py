"""Models and records can be built from numbers that JAX traces: inside jit, vmap and grad."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.models.registry import registry

# places of many bodies, and their lists, follow from sizes
PLACED = {
    "many_bodies": {"friction", "restitution", "gravity", "speed"},
    "crystals": {"young", "poisson", "density", "damping", "stiffness", "medium_density", "impact_velocity"},
}


def _numbers_of(build):
    """Arguments of a model that are numbers, and those that only choose its shape."""
    parameters = inspect.signature(build).parameters.values()
    given = {p.name: np.asarray(p.default) for p in parameters if not isinstance(p.default, (int, str, type))}
    wanted = PLACED.get(build.__module__.rpartition(".")[2], given.keys() - {"exponent"})
    return {name: value for name, value in given.items() if value.dtype.kind == "f" and name in wanted}


ASSEMBLED = ("bricard", "rolling_disk")  # take seconds to build


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in ASSEMBLED else []) for n in sorted(registry)]
)
def test_every_number_of_every_model_may_be_traced(name):
    build, numbers = registry[name], _numbers_of(registry[name])
    _, state = build()

    def arrays(numbers):
        return eqx.filter(build(**numbers), eqx.is_array)

    for argument, value in numbers.items():
        assert jax.eval_shape(arrays, {argument: value})[1].q.shape == state.q.shape, argument
    assert jax.eval_shape(arrays, numbers)[1].v.shape == state.v.shape


def _end(mass_ratio, damping):
    """Where the last bead of a chain is after one step, the whole chain built from two numbers."""
    chain, state = carom.models.dimer_chain(6, mass_ratio=mass_ratio, damping=damping, impact_velocity=1 + damping)
    method = carom.TailoredIRK()
    end = method.step(chain, state, method.init(chain, state), jnp.asarray(0.5)).state
    return end.q[1] + end.v[2]


def test_models_are_built_differentiated_and_stacked_inside_one_program():
    ratios, dampings, d = np.array([0.4, 0.6, 0.9]), np.array([0.02, 0.05, 0.1]), 1e-4
    one = jax.jit(jax.value_and_grad(_end, (0, 1)))
    many = jax.vmap(one)(ratios, dampings)
    for i, (ratio, damping) in enumerate(zip(ratios, dampings)):
        value, slopes = one(ratio, damping)
        moved = [[one(ratio + a, damping + b)[0] for a, b in ((s, 0), (0, s))] for s in (d, -d, 2 * d, -2 * d)]
        forward, back, forward_2, back_2 = np.array(moved)
        differences = (8 * (forward - back) - (forward_2 - back_2)) / (12 * d)
        np.testing.assert_allclose(slopes, differences, rtol=1e-6)
        np.testing.assert_allclose([many[0][i], *(s[i] for s in many[1])], [value, *slopes], rtol=1e-12)


def test_what_numbers_do_not_decide_is_still_checked():
    def rough(friction):
        return eqx.filter(carom.Contacts(lambda q: q, friction=friction), eqx.is_array)

    def heavy(mass):
        return eqx.filter(carom.System(mass), eqx.is_array)

    with pytest.raises(ValueError, match="needs slip directions"):
        jax.eval_shape(rough, 0.3)
    with pytest.raises(ValueError, match="square matrix, got shape"):
        jax.eval_shape(heavy, np.ones((2, 3)))
    with pytest.raises(TypeError, match="exponent chooses the law"):
        jax.eval_shape(lambda x: eqx.filter(carom.models.granular_chain(exponent=x), eqx.is_array), 1.5)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: carom.Constant(x),
        lambda x: carom.Adaptive(rtol=x, atol=x, h_max=x),
        lambda x: carom.Theta(x),
        lambda x: carom.MoreauTheta(x, solver=carom.PSOR(tol=x)),
        lambda x: carom.Spark(2, damping={"conservative": x}),
        lambda x: carom.Extrapolated(carom.MoreauMidpoint(), atol=x, rtol=x, fixed_order=x),
        lambda x: carom.FrictionElements(lambda q, v: v, [[-x, x]]),
        lambda x: carom.System(carom.Tridiagonal.symmetric(x * np.ones(2), np.zeros(1)), jumps=[x, 2.0]),
    ],
)
def test_settings_may_be_traced(build):
    assert jax.tree.leaves(jax.eval_shape(lambda x: eqx.filter(build(x), eqx.is_array), 0.5))
