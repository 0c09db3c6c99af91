"""Damping and driving at several rates and in compositions: exact balance, order, and what is refused."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.measures import observed_order

STEPS = [0.1, 0.05, 0.025]


def damping_and_driving(t, q, v, p):
    return -p * v * (1 + v**2) + jnp.sin(3 * t) * jnp.cos(q)


@pytest.fixture(scope="module")
def driven():
    chain, state = carom.models.slow_fast_chain(3)
    damping = np.array([1.0, 0.5, 1.5, 0.7, 1.2, 0.9])
    return carom.System(1.0, chain.potential, {"drag": damping_and_driving}, params=damping), state


@pytest.fixture(scope="module")
def exact(driven):
    return carom.simulate(*driven, carom.ExplicitRK(carom.explicit(4)), t1=2.0, h=1e-3, save_every=2000).q[-1]


METHODS = {
    "two rates": (carom.AsynchronousPseudoEnergy("stiff", 5, "gauss-2"), 2),
    "composed": (carom.Composed(carom.PseudoEnergy("gauss-2")), 4),
}


@pytest.mark.parametrize("name", [pytest.param("two rates", marks=pytest.mark.slow), "composed"])
def test_balance_closes_to_rounding_and_the_order_is_kept(driven, exact, name):
    method, order = METHODS[name]
    runs = carom.simulate_batch(*driven, method, t1=2.0, h=STEPS)
    for run in runs:
        extra = run.account.extra
        assert np.max(np.abs(extra["balance"])) < 1e-13 * extra["pseudo_energy"][0]
        assert abs(extra["pseudo_energy"][-1] / extra["pseudo_energy"][0] - 1) > 0.5
    errors = [np.max(np.abs(run.q[-1] - exact)) for run in runs]
    assert observed_order(STEPS, errors) == pytest.approx(order, abs=0.1)


def test_scattered_particles_take_forces_at_their_own_mid_flights(driven):
    system, state = driven
    method = carom.AsynchronousPseudoEnergy([0, 5], 3, "gauss-2")
    step = eqx.filter_jit(method.step)(system, state, method.init(system, state), jnp.asarray(0.1))
    after = step.state
    change = system.total_energy(after.t, after.q, after.v) - system.total_energy(state.t, state.q, state.v)
    work = float(step.memory.work)
    assert float(change - 0.125 * step.memory.w @ step.memory.w) == pytest.approx(work, rel=1e-12)
    assert abs(work) > 0.01


def test_composition_corrects_the_velocity_of_forces_three_times():
    assert carom.Composed(carom.PseudoEnergy()).base.corrections == 3
    assert carom.Composed(carom.AsynchronousPseudoEnergy("stiff", 2, corrections=5)).base.corrections == 5


@pytest.mark.parametrize(
    "between",
    [
        lambda t, q, v: 0.1 * (jnp.roll(v, 1) - v),
        lambda t, q, v: jnp.full(6, 0.01) * jnp.sum(q**2),
        lambda t, q, v: v * jnp.flip(v) * q,
    ],
)
def test_forces_between_particles_are_refused_by_name_at_several_rates(driven, between):
    system = carom.System(1.0, driven[0].potential, {"wind": lambda t, q, v: -v, "dashpots": between})
    with pytest.raises(ValueError, match="'dashpots' on one depends on others"):
        carom.simulate(system, driven[1], carom.AsynchronousPseudoEnergy("stiff", 2), t1=1.0, h=0.01)


def test_forces_that_jump_are_refused_in_a_composition(driven):
    system = carom.System(1.0, driven[0].potential, {"push": lambda t, q, v: jnp.where(t < 0.5, q, -q)}, jumps=[0.5])
    with pytest.raises(ValueError, match="forces must not jump"):
        carom.simulate(system, driven[1], carom.Composed(carom.PseudoEnergy()), t1=1.0, h=0.01)


def test_rate_damping_is_refused_at_several_rates(driven):
    system = carom.System(1.0, driven[0].potential, rate_damping={"soft": 0.1})
    base = carom.AsynchronousPseudoEnergy("stiff", 2)
    for method in (base, carom.Composed(base)):
        with pytest.raises(ValueError, match="does not handle '?rate damping"):
            carom.simulate(system, driven[1], method, t1=1.0, h=0.01)
