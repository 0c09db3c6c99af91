"""The last state of a run as a pure function: closed forms forward and in reverse, ends, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom

_CAPTURING = carom.EventCapturing(carom.explicit(4))


def _ball(p):
    return carom.models.bouncing_ball(height=p[0], velocity=p[1], restitution=p[2], gravity=p[3])


def _bounces(p, t1, count):
    """The height at t1 of a ball that has bounced so many times."""
    height, velocity, e, g = p
    w = jnp.sqrt(velocity**2 + 2 * g * height)
    t = (velocity + w) / g
    for _ in range(count - 1):
        w = e * w
        t = t + 2 * w / g
    s = t1 - t
    return e * w * s - 0.5 * g * s**2


@pytest.fixture(scope="module")
def ball():
    """Height at t1, its derivatives forward and in reverse, and the status, of a ball with given numbers."""

    def height(p, t1, h):
        end = carom.final_state(*_ball(p), _CAPTURING, t1=t1, h=h, max_steps=512)
        return end.state.q[0], end.status

    @jax.jit
    def program(p, t1, h):
        value, push, status = jax.linearize(lambda p: height(p, t1, h), p, has_aux=True)
        (reverse,) = jax.linear_transpose(push, p)(jnp.ones(()))
        return value, jax.vmap(push)(jnp.eye(4)), reverse, status

    return lambda p, t1, h: map(np.asarray, program(jnp.asarray(p), jnp.asarray(t1), jnp.asarray(h)))


_BALL = [1.0, 0.3, 0.8, 9.81]
_ON_GRID = [1.0, 0.0, 0.5, 2.0]  # hits at t = 1, 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "t1", "count"), [(_BALL, 0.9, 1), (_BALL, 2.1, 3), (_ON_GRID, 1.5, 1), (_ON_GRID, 2.25, 2)]
)
def test_the_derivatives_of_a_bouncing_ball_are_those_of_the_closed_form(ball, p, t1, count):
    truth, slopes = jax.value_and_grad(lambda p: _bounces(p, t1, count))(jnp.asarray(p))
    value, forward, reverse, status = ball(p, t1, 1 / 128)
    assert status == carom.Status.OK
    assert abs(value - truth) <= 1e-8
    assert np.max(np.abs(forward - slopes)) <= 1e-7 * np.max(np.abs(slopes))
    assert np.max(np.abs(reverse - forward)) <= 1e-12 * np.max(np.abs(slopes))


@pytest.mark.slow
@pytest.mark.parametrize("velocity", [-1.0, 0.0, 0.5])
def test_what_starts_under_the_surface_hits_as_soon_as_it_falls(ball, velocity):
    """Where it is: at once, or at the apex of its flight. No surface makes it late."""
    p = jnp.asarray([-0.1, velocity, 0.8, 9.81])
    truth, slopes = jax.value_and_grad(lambda p: p[0] + 0.5 * jnp.maximum(p[1], 0.0) ** 2 / p[3])(p)
    value, forward, reverse, status = ball(p, 0.9, 1 / 128)
    assert status == carom.Status.OK
    assert abs(value - truth) <= 1e-10
    assert np.max(np.abs(forward - slopes)) <= 1e-8
    assert np.max(np.abs(reverse - forward)) <= 1e-12


@pytest.mark.slow
def test_too_few_steps_give_nan_and_a_status(ball):
    value, forward, reverse, status = ball(_BALL, 0.9, 1e-3)
    assert status == carom.Status.MAX_STEPS_REACHED
    assert all(np.isnan(x).all() for x in (value, forward, reverse))


def _pendulum(p):
    return carom.System(1.0, lambda q, p: p[1] * (1 - jnp.cos(q[0])), params=p), carom.State([p[0]], [0.0])


@pytest.mark.slow
@pytest.mark.parametrize("method", [carom.ExplicitRK(carom.explicit(4)), carom.Theta(0.6)], ids=["explicit", "theta"])
def test_second_derivatives_of_a_run_are_those_of_its_steps(method):
    def angle(p):
        return carom.final_state(*_pendulum(p), method, t1=0.5, h=0.05, max_steps=16).state.q[0]

    p, d = jnp.asarray([1.0, 3.0]), 1e-3
    both = jax.jit(lambda p: (jax.grad(angle)(p), jax.hessian(angle)(p)))
    moved = np.stack([k * d * np.eye(2)[i] for i in range(2) for k in (2, 1, -1, -2)])
    g = np.stack([both(p + by)[0] for by in moved]).reshape(2, 4, 2)
    differences = (8 * (g[:, 1] - g[:, 2]) - (g[:, 0] - g[:, 3])) / (12 * d)
    assert np.allclose(both(p)[1], differences, rtol=1e-8, atol=1e-9)


def _oscillator(p):
    return carom.System(1.0, lambda q, p: 0.5 * p[1] * q[0] ** 2, params=p), carom.State([p[0]], [0.0])


@pytest.mark.slow
def test_a_section_ends_the_run_with_the_derivative_of_its_time():
    section = carom.Section(lambda q, v: v[0], "falling", 2)

    def top(p):
        method = carom.ExplicitRK(carom.explicit(5))
        end = carom.final_state(*_oscillator(p), method, t1=9.0, h=0.05, until=section, save_at=[0.7], max_steps=192)
        return jnp.stack([end.state.t, end.state.q[0], end.saved.q[0, 0]])

    p = jnp.asarray([0.8, 4.0])

    @jax.jit
    def program(p):
        value, push = jax.linearize(top, p)
        pull = jax.linear_transpose(push, p)
        return value, jax.vmap(push, out_axes=1)(jnp.eye(2)), jax.vmap(lambda w: pull(w)[0])(jnp.eye(3))

    value, forward, reverse = program(p)
    t = 2 * np.pi  # starts at the first top, which does not count
    assert np.allclose(value, [t, 0.8, 0.8 * np.cos(1.4)], atol=1e-7)
    slopes = [[0.0, -t / 8], [1.0, 0.0], [np.cos(1.4), -0.8 * 0.7 / 4 * np.sin(1.4)]]
    assert np.allclose(forward, slopes, atol=1e-6)
    assert np.allclose(reverse, forward, atol=1e-12)


def test_a_section_that_is_not_reached_says_so():
    method, section = carom.ExplicitRK(carom.explicit(5)), carom.Section(lambda q: q[0] - 2.0)
    end = carom.final_state(*_oscillator(jnp.asarray([0.8, 4.0])), method, t1=1.0, h=0.05, until=section, max_steps=64)
    assert end.status == carom.Status.NOT_REACHED
    assert np.isnan(end.state.q).all()


@pytest.mark.slow
def test_a_bounce_that_a_grid_point_cuts_ends_the_run_with_the_derivative_of_its_time():
    def bounce(p):
        end = carom.final_state(
            *_ball(p), _CAPTURING, t1=4.0, h=0.1 + 1e-10, until=carom.Event(0), save_at=[0.5, 1.5], max_steps=32
        )
        return jnp.stack([end.state.t, end.state.v[0]]), end.saved.q[:, 0]

    (t, v), (before, behind) = jax.jit(jax.jacfwd(bounce))(jnp.asarray(_ON_GRID))
    assert np.allclose(t, [0.5, 0.5, 0.0, -0.25], atol=1e-5)
    assert np.allclose(v, [0.5, 0.0, 2.0, 0.25], atol=1e-4)
    assert np.allclose(before, [1.0, 0.5, 0.0, -0.125], atol=1e-6)
    assert np.isnan(behind).all()


def test_slip_that_an_impact_turns_round_ends_the_run_behind_the_impact():
    wall, rubs = carom.Contacts(lambda q: 1.0 - q, restitution=0.5), carom.FrictionElements(lambda q, v: v, limit=0.1)
    sled, method = carom.System(1.0, contacts=wall, friction=rubs), carom.EventCapturing(carom.explicit(2))
    start, turned = carom.State([0.0], [2.0]), carom.Event(1, "reverses")
    end = carom.final_state(sled, start, method, t1=2.0, h=0.1, until=turned, save_at=[0.2, 1.0], max_steps=64)
    assert end.state.v == pytest.approx(-0.5 * np.sqrt(4.0 - 0.2), abs=1e-3)
    assert end.saved.q[0] == pytest.approx(0.4 - 0.05 * 0.04)
    assert np.isnan(end.saved.q[1])


STARTS = np.array([[1.0, 3.0], [0.5, 5.0], [0.5, 5.0]])


def late_angle(p):
    method = carom.ExplicitRK(carom.explicit(4))
    return carom.final_state(*_pendulum(p), method, t1=0.5, h=0.05, max_steps=16).state.q[0]


def test_many_runs_at_once_are_the_single_ones():
    assert np.allclose(jax.vmap(late_angle)(STARTS), [late_angle(p) for p in STARTS], rtol=1e-13)


@pytest.mark.slow
def test_derivatives_of_many_runs_at_once_are_the_single_ones():
    def both(starts):
        mapped = jax.grad(lambda p: jax.lax.map(late_angle, p).sum())(starts)
        return jax.grad(late_angle)(starts[1]), jax.vmap(jax.grad(late_angle))(starts), mapped

    single, together, mapped = jax.jit(both)(STARTS)
    assert np.allclose(together[1:], single, rtol=1e-13)
    assert np.allclose(mapped, together, rtol=1e-13)


def test_methods_that_step_over_impacts_are_refused_where_they_are_differentiated():
    def height(p, **more):
        return carom.final_state(*_ball(p), carom.MoreauMidpoint(), t1=0.9, h=0.1, max_steps=16, **more).state.q[0]

    p = jnp.asarray(_BALL)
    assert jax.eval_shape(height, p).shape == ()
    with pytest.raises(TypeError, match="MoreauMidpoint steps over impacts"):
        jax.eval_shape(jax.grad(height), p)
    assert jax.eval_shape(jax.grad(lambda p: height(p, allow_biased=True)), p).shape == (4,)


def test_numbers_read_from_around_a_function_are_refused():
    def angle(g):
        system = carom.System(1.0, lambda q: g * (1 - jnp.cos(q[0])))
        method = carom.ExplicitRK(carom.explicit(4))
        return carom.final_state(system, carom.State([1.0], [0.0]), method, t1=0.5, h=0.1).state.q[0]

    with pytest.raises(TypeError, match="reads 'g'.*params"):
        jax.eval_shape(jax.grad(angle), 3.0)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"t1": -1.0}, "not before the start"),
        ({"save_at": 0.5}, r"save_at must be a list of times, got shape \(\)"),
        ({"t1": [1.0, 2.0]}, "t1 must be one number"),
        ({"until": "falling"}, "until must be a carom.Section or a carom.Event"),
        ({"until": carom.Section(lambda q: q[:, None] * jnp.ones(2))}, "f must return one number"),
        ({"until": carom.Event(0)}, "contact 0 does not exist"),
        ({"max_steps": 0}, "max_steps must be a whole number"),
    ],
)
def test_ends_that_make_no_sense_are_refused(more, words):
    system, state = _oscillator(jnp.asarray([0.8, 4.0]))
    with pytest.raises((ValueError, TypeError), match=words):
        carom.final_state(system, state, carom.ExplicitRK(carom.explicit(4)), **({"t1": 1.0, "h": 0.1} | more))
