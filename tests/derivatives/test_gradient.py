"""Gradients of long runs in chunks, what is gathered along the way, warnings, and bad input."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.derivatives import gradient, walk
from carom.methods.base import AbstractMethod, Derivative
from carom.names import kinds

_METHOD = carom.ExplicitRK(carom.explicit(4))


def _force(t, q, v, p):
    del t, q
    return -p["c"] * v


def _oscillator(x, k, c):
    """A damped spring with a mass of one."""
    system = carom.System(1.0, lambda q, p: 0.5 * p["k"] * q @ q, {"damping": _force}, params={"k": k, "c": c})
    return system, carom.State(jnp.stack([x]), [0.0])


def _exact(p, t):
    """Position of the damped oscillator."""
    a, w = 0.5 * p["c"], jnp.sqrt(p["k"] - 0.25 * p["c"] ** 2)
    return p["x"] * jnp.exp(-a * t) * (jnp.cos(w * t) + a / w * jnp.sin(w * t))


_P = {"x": 0.8, "k": 4.0, "c": 0.3}


def _loss(state, along):
    return state.q[0] + 0.5 * along["square"] + along["swing"]


def _at_a_corner(state):
    return jnp.sqrt(jnp.maximum(state.q[0] - 9.0, 0.0))


_ALONG = {"square": carom.Integral(lambda q: q[0] ** 2), "swing": carom.Peak(lambda q, v: -q[0] + 0.0 * v[0])}


def _truth(p):
    nodes, weights = np.polynomial.legendre.leggauss(60)
    t = 1.5 * (nodes + 1.0)
    swing = jnp.pi / jnp.sqrt(p["k"] - 0.25 * p["c"] ** 2)
    return _exact(p, 3.0) + 0.5 * 1.5 * (weights @ _exact(p, t) ** 2) - _exact(p, jax.lax.stop_gradient(swing))


@pytest.fixture
def short_chunks(monkeypatch):
    """Two chunks of 32 steps: the way back through one is kept, the other is made again."""
    monkeypatch.setattr(walk, "_BYTES", 1.0)
    monkeypatch.setattr(gradient, "_WAYS", 1)


def test_a_gradient_in_chunks_is_that_of_the_motion_and_of_what_is_gathered(short_chunks):
    found = carom.gradient(_loss, _oscillator, _P, _METHOD, t1=3.0, h=0.05, along=_ALONG)
    truth, slopes = jax.value_and_grad(_truth)(_P)
    assert found.steps == 60
    assert found.value == pytest.approx(float(truth), abs=1e-5)
    for name, slope in slopes.items():
        assert found.gradient[name] == pytest.approx(float(slope), abs=2e-5)
        assert abs(found.gradient[name] - float(slope)) <= 3 * found.error[name] + 1e-9
    assert not found.warnings


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"parameters": {}}, "parameters must hold"),
        ({"parameters": _P | {"k": 4}}, r"\['k'\] is a whole number, which has no derivative: write 4.0"),
        ({"parameters": _P | {"k": "4"}}, r"\['k'\] must be a float"),
        ({"parameters": _P | {"k": np.nan}}, r"\['k'\] must be finite"),
        ({"parameters": {"x": 0.8, "k": 4.0}}, "missing a required argument: 'c'"),
        ({"parameters": _P | {"mass": 1.0}}, "unexpected keyword argument 'mass'"),
        ({"loss": lambda state: state.q}, r"loss must return one float, got float64 of shape \(1,\)"),
        ({"loss": lambda state: state}, "loss must return one float, got State"),
        ({"loss": lambda state: None}, "loss must return one float, got NoneType"),
        ({"loss": lambda state: 1}, "loss must return one float, got int64"),
        ({"loss": lambda: 0.0}, r"loss must be a function of \(state\) here.*too many positional"),
        ({"loss": lambda s: s.q[0], "along": {"a": carom.Integral(lambda q: q[0])}}, r"a function of \(state, along\)"),
        ({"loss": lambda state: np.sin(state.q[0])}, "loss: use jax.numpy in place of numpy"),
        ({"build": lambda x, k, c: x}, "build must return"),
        ({"build": lambda x, k, c: _oscillator(x, float(k), c)}, "build: use jax.numpy in place of numpy"),
        ({"along": [carom.Integral(lambda q: q[0])]}, "along must hold carom.Integral or carom.Peak by name"),
        ({"along": {"a": lambda q: q[0]}}, "along must hold carom.Integral or carom.Peak by name"),
    ],
)
def test_bad_input_is_told_in_words(change, words):
    given = {"loss": lambda state: state.q[0], "build": _oscillator, "parameters": _P, "method": _METHOD} | change
    with pytest.raises((ValueError, TypeError), match=words):
        carom.gradient(**given, t1=3.0, h=0.05)  # pyright: ignore


def _rod_on_a_hinge(length, place, spin):
    """It swings as a pendulum, from where and as fast as it is brought to."""
    rod = carom.RigidBody.rod(1.0, length, position=(place, 0.0), name="rod", spin=spin)
    return tuple(carom.Mechanism([rod], [carom.joints.revolute("ground", "rod.left", at=(0, 0))], gravity=9.81))


def _swing(p):
    """Angle and rate of that pendulum, by small steps of a method of its own."""
    lever = 0.5 * p["length"]
    spin = p["spin"] / (1.0 + lever**2)  # next to it in the norm of unit masses
    k, h = 9.81 * lever / (p["length"] ** 2 / 3.0), 1e-3

    def rate(y):
        return jnp.stack([y[1], -k * jnp.cos(y[0])])

    def runge_kutta(y, _):
        a = rate(y)
        b = rate(y + 0.5 * h * a)
        c = rate(y + 0.5 * h * b)
        return y + h / 6 * (a + 2 * b + 2 * c + rate(y + h * c)), None

    return jax.lax.scan(runge_kutta, jnp.stack([0.0, spin]), None, length=500)[0]


@pytest.mark.slow
def test_a_mechanism_is_assembled_while_its_numbers_change():
    p = {"length": 1.2, "place": 0.5, "spin": 0.7}
    found = carom.sensitivity(_rod_on_a_hinge, p, carom.Spark(3), t1=0.5, h=0.01, check=False)
    truth = jax.jacfwd(_swing)(p)
    for name in p:
        got = np.array([found.jacobian.q[name][2], found.jacobian.v[name][2]])
        assert np.max(np.abs(got - truth[name])) <= 1e-7


def test_a_start_that_leaves_the_constraints_as_numbers_change_is_refused():
    def build(length):
        rod = carom.System(1.0, lambda q: 9.81 * q[1], constraints=lambda q, p: q @ q - p**2, params=length)
        return rod, carom.State([1.0, 0.0], [0.0, 0.0])

    with pytest.raises(ValueError, match="leaves them when they change: compute places and velocities that fit"):
        carom.sensitivity(build, {"length": 1.0}, carom.Spark(2), t1=0.1, h=0.01)


@pytest.mark.parametrize(
    ("integrand", "jumps"), [(jnp.sign, True), pytest.param(jnp.abs, False, marks=pytest.mark.slow)]
)
def test_an_integrand_that_jumps_inside_a_step_is_warned_of(integrand, jumps):
    """The oscillator passes zero once; the integral of its sign changes by twice the change of that time."""
    along = {"side": carom.Integral(lambda q: integrand(q[0]))}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = carom.gradient(
            lambda state, along: along["side"], _oscillator, _P, _METHOD, t1=1.0, h=0.05, along=along, check=False
        )
    texts = [str(one.message) for one in told]
    assert [("'side' jumps inside a step at t = 0.82" in text) for text in texts] == [True] * jumps
    assert len(found.warnings) == jumps


def test_a_run_that_fails_on_its_way_says_where_and_how_far_it_got():
    def build(a):
        return carom.System(1.0, lambda q, p: -p["a"] * q[0] ** 4, params={"a": a}), carom.State([1.0], [1.0])

    with pytest.raises(carom.SimulationError, match="NaN or infinite at t = ") as caught:
        carom.gradient(lambda state: state.q[0], build, {"a": 1.0}, _METHOD, t1=9.0, h=0.05)
    assert 0.1 < float(caught.value.state.t) < 9.0


def test_a_sensitivity_with_too_few_steps_says_so_and_how_far_the_run_got():
    with pytest.raises(carom.SimulationError, match="max_steps.*after 60 steps") as caught:
        carom.sensitivity(_oscillator, _P, _METHOD, t1=3.0, h=0.05, max_steps=59)
    assert caught.value.status is carom.Status.MAX_STEPS_REACHED
    assert caught.value.state.q[0] == pytest.approx(float(_exact(_P, 3.0)), abs=1e-5)


@pytest.mark.parametrize(
    ("loss", "words"),
    [(lambda s: jnp.log(s.t - 9.0), "the loss is nan at the end"), (_at_a_corner, r"\['x'\].*is not finite: loss or")],
)
def test_a_loss_without_value_or_derivative_is_told(loss, words):
    with pytest.warns(UserWarning, match=words):
        found = carom.gradient(loss, _oscillator, _P, _METHOD, t1=3.0, h=0.05, check=False)
    assert found.state.q[0] == pytest.approx(float(_exact(_P, 3.0)), abs=1e-5)


class _Unaided(carom.ExplicitRK):
    """A method whose steps need what it leaves out."""

    def step(self, system, state, memory, h):
        step = super().step(system, state, memory, h)
        return eqx.tree_at(lambda s: s.info.status, step, jnp.int32(carom.Status.NEEDS_RESCUE))


class _Careful(carom.ExplicitRK):
    """A method whose lean form never suffices."""

    def lean(self):
        return _Unaided(self.tableau)


def test_a_run_that_its_lean_method_cannot_make_is_made_by_the_method_itself():
    found = carom.gradient(
        lambda s: s.q[0], _oscillator, _P, _Careful(carom.explicit(4)), t1=1.0, h=0.01, check=False, progress=False
    )
    slopes = jax.grad(lambda p: _exact(p, 1.0))(_P)
    assert all(abs(found.gradient[name] - slopes[name]) <= 1e-8 for name in _P)


@pytest.mark.slow
def test_a_method_that_steps_over_impacts_is_refused_if_it_did():
    def fall(t1):
        parameters = {"height": 1.0, "gravity": 9.81}
        build, loss = carom.models.bouncing_ball, lambda state: state.q[0]
        return carom.gradient(loss, build, parameters, carom.MoreauMidpoint(), t1=t1, h=0.01, check=False)

    assert fall(0.2).gradient["height"] == pytest.approx(1.0)
    with pytest.raises(ValueError, match="MoreauMidpoint steps over impacts"):
        fall(0.9)


def test_every_method_declares_its_derivative():
    declared = {name: kind.derivative for name, kind in kinds(AbstractMethod).items()}
    biased = {name for name, kind in declared.items() if kind is Derivative.WITHOUT_SALTATION}
    assert biased == {"MoreauMidpoint", "MoreauTheta"}
    assert not [name for name, kind in declared.items() if kind is Derivative.NONE]
    assert carom.Extrapolated(carom.MoreauMidpoint()).derivative is Derivative.WITHOUT_SALTATION
    assert carom.EventCapturing(carom.explicit(4), spread=True).derivative is Derivative.NONE


_CAPTURING = carom.EventCapturing(carom.explicit(4))


def _stop(q, p):
    return p["d"] - q[:1]


def _spring(q):
    return 0.5 * q[0] ** 2


def _against_a_stop(A, d, e):
    contacts = carom.Contacts(_stop, restitution=e)
    return carom.System(1.0, _spring, params={"d": d}, contacts=contacts), carom.State(jnp.zeros(1), jnp.stack([A]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "e", "t1", "words"),
    [
        (0.5, 0.5, 2.5, None),
        (0.5, 0.0, 2.5, None),
        (1.0 - 1e-6, 0.5, 2.5, "grazing angle"),
        (1.0 + 1e-6, 0.5, 2.5, "is missed by"),
        (0.5, 0.5, float(np.arcsin(0.5)), "at the end of the run"),
    ],
)
def test_what_makes_a_derivative_doubtful_is_warned_of(d, e, t1, words):
    stepping, parameters = carom.Adaptive(1e-6, 1e-9), {"A": 1.0, "d": d, "e": e}
    options = {"t1": t1, "stepping": stepping, "check": False}
    if words is None:
        assert not carom.gradient(lambda s: s.q[0], _against_a_stop, parameters, _CAPTURING, **options).warnings
        return
    with pytest.warns(UserWarning, match=words):
        carom.gradient(lambda s: s.q[0], _against_a_stop, parameters, _CAPTURING, **options)


@pytest.mark.slow
def test_a_ball_that_bounces_until_it_rests_makes_no_derivative_doubtful():
    parameters, stepping = {"height": 1.0, "gravity": 9.81, "restitution": 0.6}, carom.Adaptive(1e-6, 1e-9)
    ball = carom.models.bouncing_ball
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = carom.gradient(lambda s: s.q[0], ball, parameters, _CAPTURING, t1=4.0, stepping=stepping)
    assert max(abs(slope) for slope in found.gradient.values()) <= 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(("mu", "warned"), [(0.0, True), (0.01, False)])
def test_a_derivative_by_friction_that_is_exactly_zero_is_warned_of(mu, warned):
    def build(mu):
        floor = carom.Contacts(lambda q: q[1:], slip_velocity=lambda q, v: v[:1], friction=mu)
        system = carom.System(1.0, lambda q: 0.5 * q[0] ** 2 + 9.81 * q[1], contacts=floor)
        return system, carom.State([1.0, 0.0], [0.0, 0.0])

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = carom.sensitivity(build, {"mu": mu}, _CAPTURING, t1=4.0, stepping=carom.Adaptive(1e-8), check=False)
    turned = 9.81 * (1 - np.cos(4.0) - 2 * (1 + np.cos(4.0)))  # mu g pulls back, and forth from t = pi on
    assert any("['mu'] makes friction that is exactly zero" in str(one.message) for one in told) is warned
    assert warned or found.jacobian.q["mu"][0] == pytest.approx(turned, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "moved"),
    [
        ({}, ["height"]),  # raised it falls and hits, lowered it is pressed into the floor
        ({"gravity": -1.0}, ["height", "velocity"]),  # thrown up it leaves, thrown down it bounces
        ({"velocity": 1.0}, []),
        ({"height": 0.1}, []),
    ],
)
def test_a_start_on_the_surface_has_a_derivative_on_either_side_of_it(change, moved):
    numbers = {"height": 0.0, "velocity": 0.0, "gravity": 9.81} | change
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = carom.EventCapturing(carom.explicit(4))
        found = carom.gradient(
            lambda s: s.q[0], carom.models.bouncing_ball, numbers, method, t1=0.25, h=0.01, check=False
        )
    assert [text.split("'")[1] for text in found.warnings if "touches at the start" in text] == moved


def _nearly_stopping(rest, speed):
    """Friction holds the push until `rest`; faster than rest^2 / 4 the block does not stop."""
    push = {"push": lambda t, q, v, p: jnp.stack([1.0 + 0.5 * (t - p)])}
    rubs = carom.FrictionElements(lambda q, v: v, limit=1.0)
    return carom.System(1.0, None, push, params=rest, friction=rubs), carom.State([0.0], jnp.stack([speed]))


@pytest.mark.slow
@pytest.mark.parametrize(("less", "warned"), [(1e-2, False), (1e-8, True), (-1e-8, True), (-1e-2, False)])
def test_slip_that_only_just_stops_or_does_not_is_warned_of(less, warned):
    numbers, method = {"rest": 2.0513, "speed": 0.25 * 2.0513**2 - less}, carom.EventCapturing(carom.explicit(5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stepping = carom.Adaptive(1e-9, 1e-11)
        found = carom.sensitivity(_nearly_stopping, numbers, method, t1=4.0, stepping=stepping, check=False)
    assert found.jacobian.v["speed"][0] == pytest.approx(1.0 if less < 0 else 0.0, abs=1e-9)
    assert any("slip stops for a moment only" in text for text in found.warnings) == warned


@pytest.mark.slow
@pytest.mark.parametrize(("times", "warned"), [([0.5, 1.0, 1.2], True), ([0.5, 0.9, 1.2], False)])
def test_an_event_at_a_time_of_save_at_is_warned_of(times, warned):
    """The ball hits at t = 1."""
    numbers, method = {"height": 1.0, "gravity": 2.0, "restitution": 0.5}, carom.EventCapturing(carom.explicit(4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = carom.sensitivity(
            carom.models.bouncing_ball, numbers, method, t1=1.3, h=0.01, save_at=times, check=False
        )
    assert any("an event lies at a time of save_at" in text for text in found.warnings) == warned


@pytest.mark.slow
def test_a_closing_that_a_restitution_of_zero_would_delay_is_warned_of():
    numbers, closes = {"height": 1.0, "restitution": 0.0}, carom.Event(0, "closes")
    with pytest.warns(UserWarning, match=r"\['restitution'\] makes a restitution that is exactly zero"):
        found = carom.sensitivity(
            carom.models.bouncing_ball, numbers, _CAPTURING, t1=4.0, h=0.05, until=closes, check=False
        )
    assert found.jacobian.t["height"] == pytest.approx(0.5 * float(found.state.t), abs=1e-6)


@pytest.mark.slow
def test_a_coarser_run_with_other_events_is_warned_of():
    parameters = {"A": 1.0, "d": 1.0 - 5e-5, "e": 0.5}  # an amplitude that only the finer steps keep
    with pytest.warns(UserWarning, match="a coarser run has other events"):
        carom.gradient(lambda s: s.q[0], _against_a_stop, parameters, _CAPTURING, t1=2.5, h=0.25)


def _between(v, later):
    """A ball that two others hit at the same time, or one of them a little later."""
    contacts = carom.Contacts(lambda q: jnp.diff(q) - 1.0, restitution=0.5)
    return carom.System(1.0, contacts=contacts), carom.State(
        jnp.stack([-1.5, 0.0, 1.5 + later]), jnp.stack([v, 0.0, -v])
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("later", "words"),
    [
        (0.0, "contacts that act on each other are hit at once at t = 0.5"),
        (1e-5, "hit one after the other, .*e-0. apart, at t = 0.5.*: in the other order the derivative is another one"),
        (0.1, None),
    ],
)
def test_contacts_that_act_on_each_other_and_are_hit_at_once_or_nearly_so_are_warned_of(later, words):
    def found():
        parameters = {"v": 1.0, "later": later}
        stepping = carom.Adaptive(1e-6, 1e-9)
        build, loss = _between, lambda s: s.q[0]
        return carom.gradient(loss, build, parameters, _CAPTURING, t1=0.7, stepping=stepping, check=False)

    if words is None:
        assert not found().warnings
        return
    with pytest.warns(UserWarning, match=words):
        found()


def test_the_first_size_of_steps_from_rest_has_no_derivative():
    def end(k):
        system = carom.System(1.0, lambda q, p: 0.5 * p * q @ q, params=k)
        stepping = carom.Adaptive(1e-4)
        return carom.final_state(system, carom.State([0.0], [0.0]), _METHOD, t1=1.0, stepping=stepping).state.q[0]

    assert jax.jit(jax.grad(end))(jnp.asarray(1.0)) == 0.0
