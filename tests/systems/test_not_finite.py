"""NaN is an error in the step that meets it, named by its function; what was computed before is kept."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom

UP = carom.State([0.0], [1.0])
FALLING = carom.State([1.0], [0.0])


def gap(q):
    return jnp.where(q[:1] < 0.2, jnp.nan, q[:1])


def brake(t, q, v):
    return jnp.where(t > 0.3, jnp.nan, 0.1) * jnp.ones_like(q) + 0.0 * v


def torn(q):
    return jnp.where(q[1] < -0.5, jnp.nan, q @ q - 1.0)


def slip(q, v):
    return jnp.where(q[0] > 0.3, jnp.nan, v[:1])


def bowl(q):
    return jnp.where(q[0] > 0.5, jnp.nan, 0.5 * q @ q)


def weight(q):
    return 9.81 * q[-1]


FLOOR = carom.System(1.0, weight, contacts=carom.Contacts(gap))
BRAKE = carom.System(1.0, friction=carom.FrictionElements(lambda q, v: v[:1], limit=brake))  # noqa: ARG005
TORN = carom.System(1.0, weight, constraints=torn)
ROUGH = carom.System(1.0, weight, contacts=carom.Contacts(lambda q: q[1:], slip_velocity=slip, friction=0.1))
SIDEWAYS = carom.State([1.0, 0.0], [0.0, 0.0])
SLIDING = carom.State([0.0, 0.0], [1.0, 0.0])
BOWL = carom.System(1.0, bowl)
HAMILTON = carom.System.from_hamiltonian(lambda q, p: 0.5 * p @ p + bowl(q))
MOREAU, THETA, CAPTURE = carom.MoreauMidpoint(), carom.MoreauTheta(), carom.EventCapturing(carom.radau_iia(2))


@pytest.mark.parametrize(
    ("system", "state", "method", "said"),
    [
        (FLOOR, FALLING, MOREAU, "gap 0 is NaN at t = 0.4"),
        pytest.param(FLOOR, FALLING, THETA, "gap 0 is NaN at t = 0.4", marks=pytest.mark.slow),
        pytest.param(FLOOR, FALLING, CAPTURE, "gap 0 is NaN at t = 0.4", marks=pytest.mark.slow),
        (BRAKE, UP, MOREAU, "limit 0 is NaN at t = 0.3"),
        pytest.param(BRAKE, UP, CAPTURE, "limit 0 is NaN at t = 0.3", marks=pytest.mark.slow),
        pytest.param(TORN, SIDEWAYS, MOREAU, "constraint 0 is NaN", marks=pytest.mark.slow),
        (TORN, SIDEWAYS, carom.Spark(2), "constraint 0 is NaN"),
        pytest.param(ROUGH, SLIDING, MOREAU, "slip velocity 0 is NaN", marks=pytest.mark.slow),
        (BOWL, UP, carom.StormerVerlet(), "potential is NaN at t = 0.5"),
        pytest.param(BOWL, UP, carom.IRK(carom.gauss(2)), "potential is NaN at t = 0.5", marks=pytest.mark.slow),
        pytest.param(HAMILTON, UP, carom.Spark(2), "Hamiltonian is NaN at t = 0.5", marks=pytest.mark.slow),
    ],
)
def test_what_is_nan_is_named_where_it_appears(system, state, method, said):
    with pytest.raises(carom.SimulationError, match=said) as caught:
        carom.simulate(system, state, method, t1=2.0, h=0.01)
    assert caught.value.status is carom.Status.NOT_FINITE
    assert 25 < len(caught.value.solution) < 120
    assert np.isfinite(caught.value.solution.q).all()


@pytest.mark.slow
def test_solve_ends_at_the_border_of_what_is_defined():
    with pytest.raises(carom.SimulationError, match="gap 0 is NaN") as caught:
        carom.solve(FLOOR, FALLING, 1.0)
    assert caught.value.solution.q[-1, 0] == pytest.approx(0.2, abs=1e-9)


def test_a_stop_that_becomes_nan_is_an_error_at_that_time():
    stop = lambda t, q, v: jnp.where(t > 0.234, jnp.nan, 1.0)  # noqa: ARG005, E731
    with pytest.raises(carom.SimulationError, match="stop is NaN at t = 0.234") as caught:
        carom.simulate(BOWL, UP, carom.StormerVerlet(), t1=0.4, h=0.1, stop=stop)
    assert caught.value.solution.t[-1] == pytest.approx(0.234)


@pytest.mark.slow
def test_an_infinite_limit_is_a_clutch_and_no_error():
    clutch = carom.System(1.0, friction=carom.FrictionElements(lambda q, v: v[:1], limit=[[0.0, np.inf]]))  # noqa: ARG005
    assert carom.simulate(clutch, UP, MOREAU, t1=0.1, h=0.01).v[-1, 0] == 1.0


@pytest.mark.parametrize("h", [0.1, 1.0])
@pytest.mark.parametrize(
    "dip",
    [
        lambda t: (t - 1.3) * (t - 1.328),
        pytest.param(lambda t: jnp.abs(t - 1.314) - 0.014, marks=pytest.mark.slow),
    ],
)
def test_a_dip_of_the_stop_condition_inside_a_step_is_found(h, dip):
    free = carom.System(1.0)
    sol = carom.simulate(free, UP, carom.ExplicitRK(carom.explicit(2)), t1=3.0, h=h, stop=lambda t, q, v: dip(t))  # noqa: ARG005
    assert sol.t[-1] == pytest.approx(1.3, abs=1e-12)


@pytest.mark.slow
def test_a_run_may_start_where_another_was_stopped():
    ball, start = carom.models.bouncing_ball()
    above = lambda t, q, v: q[0] - 0.05  # noqa: ARG005, E731
    first = carom.simulate(ball, start, MOREAU, t1=3.0, h=0.01, stop=above)
    thrown = carom.State(first.q[-1], -first.v[-1], first.t[-1])
    second = carom.simulate(ball, thrown, MOREAU, t1=3.0, h=0.01, stop=above)
    assert second.t[-1] > first.t[-1] + 0.5
