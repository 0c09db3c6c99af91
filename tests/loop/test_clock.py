"""Time is counted from the start: a late start costs no digits, and a step that cannot move time is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom import State

LATE = 1.7e9
OSCILLATOR = carom.System(1.0, lambda q: 0.5 * q @ q)
GAUSS = carom.IRK(carom.gauss(2))


def swing(t0=0.0, system=OSCILLATOR, span=1.0, h=0.07, **options):
    return carom.simulate(system, State([1.0], [0.0], t=t0), GAUSS, t1=t0 + span, h=h, **options)


@pytest.mark.parametrize("t0", [LATE, 1e12, 1e15, 1e16, -3.0])
def test_a_late_start_changes_no_digit_of_a_solution(t0):
    early, late = (carom.solve(OSCILLATOR, State([1.0], [0.0], t=t), t1=t + 10.0, rtol=1e-9) for t in (0.0, t0))
    assert abs(early.q[-1, 0] - np.cos(10.0)) < 1e-8
    assert np.array_equal(late.q, early.q)
    assert np.array_equal(late.elapsed, early.t)
    assert late.t[-1] == late.state.t == t0 + 10.0


@pytest.mark.parametrize(
    ("method", "options"),
    [
        pytest.param(carom.EventCapturing(carom.radau_iia(2)), {"h": 0.05}, marks=pytest.mark.slow),
        (carom.MoreauMidpoint(), {"h": 0.003}),
        pytest.param(
            carom.Extrapolated(carom.MoreauMidpoint()),
            {"stepping": carom.Switching(1e-4, 0.05)},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_ball_bounces_late_as_it_bounces_early(method, options):
    ball, state = carom.models.bouncing_ball()
    early = carom.simulate(ball, state, method, t1=2.0, **options)
    late = carom.simulate(ball, State(state.q, state.v, t=LATE), method, t1=LATE + 2.0, **options)
    assert len(early.events) > 0
    assert np.array_equal(late.q, early.q)
    assert np.array_equal(late.elapsed, early.t)


def test_functions_of_t_receive_the_user_s_time_and_elapsed_that_since_the_start():
    of_time = carom.System(1.0, None, {"f": lambda t, q, v: jnp.cos(t) * jnp.ones(1)})
    of_elapsed = carom.System(1.0, None, {"f": lambda t, q, v, elapsed: jnp.cos(3.0 + elapsed) * jnp.ones(1)})
    one, other = swing(3.0, of_time), swing(3.0, of_elapsed)
    assert one.v[-1, 0] == pytest.approx(np.sin(4.0) - np.sin(3.0), abs=1e-8)
    assert np.array_equal(one.q, other.q)


@pytest.mark.slow
def test_a_lagrangian_and_the_evidence_see_the_time_since_the_start():
    growing = carom.System(1.0, lambda q, elapsed: 0.5 * (1 + elapsed) * q @ q)
    derived = carom.System.from_lagrangian(lambda q, v, elapsed: 0.5 * v @ v - 0.5 * (1 + elapsed) * q @ q)
    early, late = swing(0.0, growing), swing(LATE, growing)
    assert np.array_equal(late.q, early.q)
    assert np.array_equal(late.account.energy, early.account.energy)
    assert "explicit time" in growing.features
    with pytest.warns(UserWarning, match="argument `elapsed`"):
        assert np.allclose(swing(LATE, derived).q, early.q, rtol=0, atol=1e-14)


@pytest.mark.slow
def test_interpolation_and_stop_count_from_the_start():
    times = np.array([0.125, 0.5, 1.0])
    early, late = swing(save_at=times), swing(LATE, save_at=LATE + times)
    assert np.array_equal(late.q, early.q)
    assert np.array_equal(late.elapsed, times)
    stopped = swing(LATE, span=3.0, stop=lambda t, q, v, elapsed: 0.4 - elapsed)
    assert stopped.elapsed[-1] == pytest.approx(0.4, abs=1e-14)


def test_a_run_ends_on_t1_and_its_times_find_its_rows():
    sol = carom.simulate(OSCILLATOR, State([1.0], [0.0], t=-1.0), GAUSS, t1=0.1, h=0.07)
    assert sol.t[-1] == sol.state.t == 0.1
    assert all(np.array_equal(a, b) for a, b in zip(sol.at(sol.t), (sol.q, sol.v)))


def kick(t, q, v, p):
    return jnp.where(t > p, 1.0, 0.0) * jnp.ones(1)


def kicked(at):
    return carom.System(1.0, None, {"f": kick}, params=at, jumps=[at])


@pytest.mark.filterwarnings("ignore:t0 =")
@pytest.mark.parametrize(("t0", "error"), [(0.0, 1e-14), (0.1, 1e-14), (-3.0, 1e-14), (LATE, 1e-6)])
def test_forces_are_seen_on_their_side_of_a_jump(t0, error):
    sol = swing(t0, kicked(t0 + 0.33))
    assert sol.v[-1, 0] == pytest.approx(0.67, abs=error)
    assert np.all(sol.v[sol.t <= t0 + 0.33] == 0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:t0 =")
def test_a_late_run_is_resumed_bit_for_bit_and_lands_on_jumps_behind_its_first_end(tmp_path):
    system = kicked(LATE + 1.33)
    swing(LATE, system).save(tmp_path / "run.nc")
    resumed = carom.resume(tmp_path / "run.nc", system=system, t1=LATE + 2.0)
    assert LATE + 1.33 in resumed.t
    assert resumed.v[-1, 0] == pytest.approx(0.67, abs=1e-6)
    swing(LATE, h=0.0625).save(tmp_path / "run.nc")
    loaded = carom.load(tmp_path / "run.nc", system=OSCILLATOR)
    resumed = carom.resume(tmp_path / "run.nc", system=OSCILLATOR, t1=LATE + 2.0)
    whole = swing(LATE, span=2.0, h=0.0625)
    assert np.array_equal(loaded.t, whole.t[:17])
    assert np.array_equal(loaded.elapsed, whole.elapsed[:17])
    assert np.array_equal(resumed.q, whole.q)
    assert np.array_equal(resumed.elapsed, whole.elapsed)


def test_functions_of_a_coarse_time_are_warned_about():
    with pytest.warns(UserWarning, match=r"t0 = 1.7e\+09: functions of t see it in steps of 2.4e-07; .*`elapsed`"):
        swing(LATE, carom.System(1.0, lambda t, q: 0.5 * q @ q))


def test_steps_too_small_to_move_the_time_end_the_run():
    state, sizes = State([1.0], [0.0], t=1.0), [1.0, *[1e-17] * 9, 1.0]
    with pytest.raises(carom.SimulationError, match="under its minimum .*Leave out steps") as failure:
        carom.simulate(OSCILLATOR, state, carom.StormerVerlet(), t1=3.0, stepping=carom.Prescribed(sizes))
    assert failure.value.solution.t.tolist() == [1.0, 2.0]
    sol = carom.simulate(
        OSCILLATOR, state, carom.StormerVerlet(), t1=1 + 2e-16, stepping=carom.Prescribed([1e-17] * 40)
    )
    assert sol.t[-1] == 1 + 2e-16
    assert len(sol) == 24


@pytest.mark.parametrize("h", [1e-17, 1e-320])
def test_constant_steps_beyond_counting_are_refused(h):
    with pytest.raises(ValueError, match="too small for a run of length 1"):
        carom.simulate(OSCILLATOR, State([1.0], [0.0], t=1.0), carom.StormerVerlet(), t1=2.0, h=h)


def test_a_step_longer_than_the_run_is_warned_about():
    with pytest.warns(UserWarning, match=r"h = 1e\+300 is longer than the run, t1 - t0 = 1"):
        sol = carom.simulate(OSCILLATOR, State([1.0], [0.0]), GAUSS, t1=1.0, h=1e300)
    assert sol.h.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("stepping", "argument"),
    [
        (carom.Adaptive(1e-6, 1e-9), "Loosen rtol or atol"),
        pytest.param(carom.StepHalving(1e-6), "Loosen atol or rtol", marks=pytest.mark.slow),
    ],
)
def test_a_motion_that_becomes_infinite_ends_where_time_stands_still(stepping, argument):
    falling = carom.System(1.0, lambda q: -(q[0] ** 4))
    with pytest.raises(carom.SimulationError, match=argument) as failure:
        carom.simulate(falling, State([1.0], [1.0]), carom.ExplicitRK(carom.explicit(5)), t1=5.0, stepping=stepping)
    sol = failure.value.solution
    assert failure.value.status is carom.Status.STEP_TOO_SMALL
    assert np.all(np.diff(sol.t) > 0)
    assert sol.t[-1] == pytest.approx(0.7530906, abs=1e-6)
