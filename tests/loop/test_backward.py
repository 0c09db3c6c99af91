"""Runs that go backward in time: t1 before the start."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom import keep
from carom.keep.keeps import Keeps
from carom.methods.base import Gives
from carom.reports.curves import at
from carom.running.evidence import created_energy
from carom.running.run import prepare
from carom.systems.backward import backward
from tests.methods.test_capabilities import instance, public_methods

START = carom.State([1.0], [0.5], 2.0)
GAUSS = carom.IRK(carom.gauss(3))
SPRING = carom.System(1.0, lambda q: 0.5 * q @ q)
DRIVEN = carom.System(
    1.0, lambda q: 0.5 * q @ q, {"drive": lambda t, q, v: jnp.cos(2 * t) - 0.1 * v, "drag": lambda t, q, v: -0.1 * v}
)


def exact(t):
    return np.cos(t - 2.0) + 0.5 * np.sin(t - 2.0), 0.5 * np.cos(t - 2.0) - np.sin(t - 2.0)


@pytest.fixture(scope="module")
def there():
    return carom.simulate(DRIVEN, START, GAUSS, t1=5.0, h=0.05)


@pytest.fixture(scope="module")
def back(there):
    return carom.simulate(DRIVEN, there.state, GAUSS, t1=2.0, h=0.05)


@pytest.mark.parametrize(
    ("method", "stepping", "error", "returns"),
    [
        pytest.param(GAUSS, carom.Constant(0.1), 1e-10, 1e-14, id="IRK", marks=pytest.mark.slow),
        pytest.param(carom.StormerVerlet(), carom.Constant(1e-3), 1e-6, 1e-13, id="StormerVerlet"),
        pytest.param(
            carom.Theta(0.5),
            carom.Prescribed([0.01, 0.02] * 100),
            1e-4,
            1e-2,
            id="Theta",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            carom.ExplicitRK(carom.explicit(5)),
            carom.Adaptive(1e-9, 1e-11),
            1e-9,
            1e-9,
            id="Adaptive",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_an_oscillator_swings_back_on_its_exact_motion(method, stepping, error, returns):
    sol = carom.simulate(SPRING, START, method, t1=-1.0, stepping=stepping)
    q, v = exact(sol.t)
    assert sol.t[0] == 2.0
    assert sol.t[-1] == -1.0
    assert np.all(np.diff(sol.t) < 0)
    np.testing.assert_allclose(sol.elapsed, sol.t - 2.0, atol=1e-15)
    np.testing.assert_allclose(sol.h[1:], -np.diff(sol.t), atol=1e-12)
    np.testing.assert_allclose(sol.q[:, 0], q, atol=error)
    np.testing.assert_allclose(sol.v[:, 0], v, atol=error)
    np.testing.assert_allclose(sol.at([1.95, -0.123])[1][:, 0], exact(np.array([1.95, -0.123]))[1], atol=error)
    again = carom.simulate(SPRING, sol.state, method, t1=2.0, stepping=stepping)
    np.testing.assert_allclose(again.q[-1], START.q, atol=returns)
    np.testing.assert_allclose(again.v[-1], START.v, atol=returns)


def test_a_driven_and_damped_motion_is_run_through_in_reverse(there, back):
    np.testing.assert_allclose(back.t[::-1], there.t, atol=1e-14)
    np.testing.assert_allclose(back.q[::-1], there.q, atol=1e-13)
    np.testing.assert_allclose(back.v[::-1], there.v, atol=1e-13)
    np.testing.assert_allclose(back.account.energy[::-1], there.account.energy, atol=1e-13)
    assert created_energy(back) < 1e-6


def test_values_at_given_times_and_a_stop_follow_the_run(there):
    options = {"t1": 2.0, "h": 0.05, "stop": lambda t, q, v: t - 2.5}
    sol = carom.simulate(DRIVEN, there.state, GAUSS, save_at=[4.5, 3.0, 2.1], **options)
    np.testing.assert_allclose(sol.t, [4.5, 3.0, 2.5], atol=1e-12)
    for found, known in zip((sol.q, sol.v), there.at([4.5, 3.0, 2.5])):
        np.testing.assert_allclose(found, known, atol=1e-9)
    with pytest.raises(ValueError, match="save_at must be times between 5 and 2"):
        carom.simulate(DRIVEN, there.state, GAUSS, t1=2.0, h=0.05, save_at=[1.0])
    with pytest.raises(ValueError, match="times must lie between 2.5 and 5"):
        carom.simulate(DRIVEN, there.state, GAUSS, **options).at([2.2])


KEPT = {
    "strobe": keep.strobe(0.7),
    "rising": keep.section(lambda t, q, v: q[0]),
    "falling": keep.section(lambda t, q, v: q[0], "falling"),
    "times": keep.times([2.1, 5.0, 3.3]),
    "final": keep.final(),
    "integral": keep.reduce(0.0, lambda value, t, q, v, h: value + h * t),
    "peak": keep.peak("v"),
}


@pytest.mark.slow
def test_keeps_find_the_same_places_on_the_way_back(there, back):
    found = carom.simulate(DRIVEN, there.state, GAUSS, t1=2.0, h=0.05, keep=KEPT)
    kept = found.kept
    np.testing.assert_allclose(kept["strobe"].t, [5.0, 4.3, 3.6, 2.9, 2.2], atol=1e-14)
    np.testing.assert_allclose(kept["strobe"].q, there.at(kept["strobe"].t)[0], atol=1e-9)
    assert (kept["rising"].t.size, kept["falling"].t.size) == (0, 1)
    crossing = there.at(kept["falling"].t)
    np.testing.assert_allclose(crossing[0], 0.0, atol=1e-9)
    np.testing.assert_allclose(kept["falling"].v, crossing[1], atol=1e-9)
    assert crossing[1] < 0
    np.testing.assert_allclose(kept["times"].t, [5.0, 3.3, 2.1])
    np.testing.assert_allclose(found.q, kept["times"].q)
    np.testing.assert_allclose(kept["times"].v, there.at([5.0, 3.3, 2.1])[1], atol=1e-9)
    assert kept["final"].t == 2.0
    np.testing.assert_allclose(kept["final"].v, START.v, atol=1e-13)
    np.testing.assert_allclose(kept["integral"], np.sum(back.h * back.t))
    assert kept["peak"].t == back.t[1 + np.argmax(np.abs(back.v[1:]))]


def test_forces_that_jump_act_on_their_side_of_the_jump():
    push = carom.System(
        1.0, forces={"push": lambda t, q, v: jnp.where(t < 0.55, 1.0, -2.0) * jnp.ones(1)}, jumps=[0.55]
    )
    sol = carom.simulate(push, carom.State([0.0], [0.0], 1.0), carom.ExplicitRK(carom.explicit(2)), t1=0.0, h=0.1)
    t = np.maximum(sol.t, 0.55)
    late, early = 1.0 - t, np.minimum(sol.t, 0.55) - 0.55
    assert 0.55 in sol.t
    np.testing.assert_allclose(sol.v[:, 0], 2.0 * late + early, atol=1e-14)
    np.testing.assert_allclose(sol.q[:, 0], -(late**2) + 0.9 * early + 0.5 * early**2, atol=1e-14)


def test_a_late_run_counts_from_its_start():
    start = carom.State([1.0], [0.5], 1e9)
    pulled = carom.System(1.0, forces={"pull": lambda t, q, v, elapsed: jnp.exp(elapsed) * jnp.ones(1)})
    with pytest.warns(UserWarning, match="functions of t see it in steps"):
        sol = carom.simulate(pulled, start, GAUSS, t1=1e9 - 1.0, h=0.1)
    assert sol.t[-1] == 1e9 - 1.0
    np.testing.assert_allclose(sol.elapsed, -0.1 * np.arange(11), atol=1e-15)
    np.testing.assert_allclose(sol.v[:, 0], np.exp(sol.elapsed) - 0.5, atol=1e-11)


@pytest.mark.slow
def test_a_pendulum_keeps_its_rod_and_its_multipliers():
    pendulum, state = carom.models.pendulum()
    there = carom.simulate(pendulum, state, carom.Spark(3), t1=0.5, h=0.02)
    back = carom.simulate(pendulum, there.state, carom.Spark(3), t1=0.0, h=0.02)
    np.testing.assert_allclose(back.q[::-1], there.q, atol=1e-10)
    np.testing.assert_allclose(back.v[::-1], there.v, atol=1e-10)
    np.testing.assert_allclose(back.multiplier[1:-1][::-1], there.multiplier[1:-1], atol=1e-9)
    assert back.account.worst["drift"] < 1e-12


def lagrangian(t, q, v):
    return 0.5 * (1 + 0.3 * jnp.sin(t) * q[1] ** 2) * v @ v - 0.5 * q @ q + jnp.cos(2 * t) * (q[0] * v[1] - q[1] * v[0])


def bowl(t, q):
    return (1 + 0.1 * jnp.sin(t)) * q @ q


DAMPED = carom.System([1.0, 2.0], bowl, rate_damping={"conservative": 0.1, "own": lambda q: 0.05 * q @ q})
ROD = carom.System(1.0, bowl, {"f": lambda t, q, v, lam: jnp.sin(t) * v * lam[0]}, constraints=lambda t, q: q @ q - t)
SYSTEMS = {
    "mass": carom.System(lambda t, q: jnp.eye(2) * (2 + jnp.sin(t) * q[0] ** 2), bowl),
    "forces": carom.System(1.0, None, {"f": lambda t, q, v: jnp.sin(t) * v + v**2}),
    "kinematics": carom.System(1.0, bowl, kinematics=lambda t, q, v: (1 + t * q**2) * v + t),
    "rate damping": DAMPED,
    "regularised": carom.regularise(DAMPED),
    "Lagrangian": carom.System.from_lagrangian(lagrangian),
    "Hamiltonian": carom.System.from_hamiltonian(lambda t, q, p: 0.5 * p @ p + t * q[0] * p[1] + q @ q),
    "constraints": ROD,
    "nonholonomic": carom.System(1.0, bowl, nonholonomic=lambda t, q, v: v[0] * jnp.sin(q[1]) - t * v[1]),
    "augmented": carom.augmented(ROD, carom.State([1.0, 0.5], [0.3, -0.2], 1.25))[0],
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "augmented" else []) for name in SYSTEMS]
)
def test_in_a_mirrored_system_rates_change_their_sign_and_accelerations_do_not(name):
    system = SYSTEMS[name].since(0.75)
    mirror = backward(system)
    n = 3 if name == "augmented" else 2
    t, q, v = jnp.asarray(0.5), jnp.array([1.0, 0.5, 0.1])[:n], jnp.array([0.3, -0.2, 0.4])[:n]

    @jax.jit
    def both():
        w, inner = mirror.inner_velocity(-t, q, v), system.inner_velocity(t, q, v)
        there = inner, v, system.rate(t, q, inner), system.acceleration(t, q, inner)
        return there, (-w, mirror.outer_velocity(-t, q, w), -mirror.rate(-t, q, w), mirror.acceleration(-t, q, w))

    for one, other in zip(*both()):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.slow
def test_a_batch_goes_back_as_its_single_runs(there, back):
    sols = carom.simulate_batch(DRIVEN, [there.state, carom.State([0.1], [0.2], 5.0)], GAUSS, t1=2.0, h=0.05)
    np.testing.assert_allclose(sols[0].q, back.q, rtol=1e-14)
    assert all(np.array_equal(sol.t, back.t) for sol in sols)
    with pytest.raises(ValueError, match="some lanes go forward in time and some backward"):
        carom.simulate_batch(DRIVEN, [START, there.state], GAUSS, t1=3.0, h=0.05)


def test_a_run_that_was_interrupted_goes_on_bit_for_bit(tmp_path, there, back):
    path = tmp_path / "back.nc"
    part = prepare(DRIVEN, there.state, GAUSS, 2.0, carom.Constant(0.05))
    part.attempts = 10
    part.chunk()
    assert part.reached == pytest.approx(4.5)
    part.solution().save(path)
    rest = carom.resume(path, system=DRIVEN)
    assert all(
        np.array_equal(getattr(rest, name), getattr(back, name)) for name in ("t", "q", "v", "h", "elapsed", "k")
    )
    loaded = carom.load(path, system=DRIVEN)
    assert np.array_equal(loaded.state.v, loaded.v[-1])
    assert np.array_equal(loaded.account.energy, back.account.energy[:11])
    with pytest.raises(ValueError, match="t1 = 6 lies after the end of the stored run, which goes backward, t = 4.5"):
        carom.resume(path, system=DRIVEN, t1=6.0)


@pytest.mark.slow
def test_kept_places_of_a_stored_run_are_gone_on_with(tmp_path, there):
    whole = carom.simulate(DRIVEN, there.state, GAUSS, t1=2.0, h=0.05, keep=KEPT)
    part = prepare(DRIVEN, there.state, GAUSS, 2.0, carom.Constant(0.05), keeps=Keeps.of(KEPT))
    part.attempts = 20
    part.chunk()
    part.solution().save(tmp_path / "kept.nc")
    rest = carom.resume(tmp_path / "kept.nc", system=DRIVEN, keep=KEPT)
    for name in ("strobe", "falling", "times"):
        assert all(np.array_equal(a, b) for a, b in zip(whole.kept[name], rest.kept[name]))


def test_runs_are_joined_in_one_direction_of_time(there, back):
    first = carom.simulate(DRIVEN, there.state, GAUSS, t1=4.0, h=0.05)
    second = carom.simulate(DRIVEN, first.state, GAUSS, t1=2.0, h=0.05)
    both = carom.join(first, second)
    np.testing.assert_allclose(both.t, back.t, atol=1e-14)
    np.testing.assert_allclose(both.elapsed, back.t - 4.0, atol=1e-14)
    np.testing.assert_allclose(both.at([4.33, 2.01])[1], there.at([4.33, 2.01])[1], atol=1e-9)
    with pytest.raises(ValueError, match="one of the runs goes forward in time, the other backward"):
        carom.join(there, back)


@pytest.mark.slow
def test_solve_goes_back_and_holds_it_against_a_second_opinion(there):
    sol = carom.solve(DRIVEN, there.state, t1=2.0, rtol=1e-8, verify=True)
    np.testing.assert_allclose(sol.q[-1], START.q, atol=1e-7)
    assert 0 < sol.choice.checks["difference to IRK(gauss(3))"] < 1e-7


def test_what_dissipates_or_strikes_by_design_refuses_by_name():
    ball = carom.System(1.0, lambda q: 9.81 * q[0], contacts=carom.Contacts(lambda q: q[:1], restitution=0.5))
    with pytest.raises(ValueError, match="EventCapturing runs forward in time only: t1 = -1 lies before the start, 0"):
        carom.solve(ball, carom.State([1.0], [0.0]), t1=-1.0)
    refusing = [name for name, kind in public_methods().items() if Gives.BACKWARD not in instance(kind).gives]
    assert {"EventCapturing", "MoreauMidpoint", "MoreauTheta", "TailoredIRK", "TailoredTheta"} <= set(refusing)
    able = ", ".join(f"`{name}`" for name in public_methods() if name not in refusing)
    assert f"{able} can" in (Path(__file__).parents[2] / "docs" / "choosing_a_method.md").read_text()
    for name in refusing:
        with pytest.raises(ValueError, match=f"{name} runs forward in time only"):
            carom.simulate(SPRING, START, instance(public_methods()[name]), t1=1.0, h=0.1)


def test_pictures_show_the_motion_at_any_times(there, back):
    times = np.linspace(2.0, 5.0, 7)
    np.testing.assert_allclose(at(back.t, back.q, times), at(there.t, there.q, times), atol=1e-12)
