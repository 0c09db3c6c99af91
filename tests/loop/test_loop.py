"""The one loop, proved on toys: chunks, drop-backs, short steps, rejections, recompilation."""

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.running import loop
from carom.running import run as run_host

from .toys import Euler, GoesBack, Rejecting, StopsShort, Waits, oscillator

SYSTEM, STATE = oscillator()


def run(method=None, stepping=None, t1=2.0, rows=4096, save_every=1, stop=None):
    prepared = run_host.prepare(
        SYSTEM, STATE, method or Euler(), t1, stepping or carom.Constant(0.1), save_every, stop, rows
    )
    return run_host.finish(prepared, None, False, None)


@pytest.mark.parametrize(
    "stepping",
    [
        pytest.param(carom.Constant(0.013), id="Constant", marks=pytest.mark.slow),
        pytest.param(GoesBack(0.05), id="GoesBack"),
        pytest.param(Rejecting(0.4, 0.1), id="Rejecting", marks=pytest.mark.slow),
    ],
)
def test_results_do_not_depend_on_the_chunk_size(stepping):
    whole = run(stepping=stepping)
    for rows in (1, 7):
        chunked = run(stepping=stepping, rows=rows)
        assert all(np.array_equal(chunked.columns[name], whole.columns[name]) for name in whole.columns)


@pytest.mark.parametrize("rows", [1, 2, 5, 4096])
def test_a_drop_back_of_two_steps_leaves_no_trace_of_the_steps_taken_back(rows):
    sol = run(stepping=GoesBack(0.05), rows=rows)
    assert np.array_equal(sol.k, np.arange(len(sol)))
    assert np.all(np.diff(sol.t) > 0)
    assert np.allclose(sol.h[1:10], 0.05)
    assert np.allclose(sol.h[10:], 0.025)
    assert sol.t[10] == pytest.approx(9 * 0.05 + 0.025)
    assert sol.stats["rejected"] == 1


def test_a_drop_back_removes_thinned_rows_too():
    sol = run(stepping=GoesBack(0.05, at=12), save_every=11)
    assert sol.t[1] == pytest.approx(9 * 0.05 + 2 * 0.025), (
        "row 11 of the first try must give way to row 11 of the second"
    )


def test_a_step_that_stops_short_records_its_event_and_the_grid_goes_on():
    sol = run(method=StopsShort(0.37))
    event_row = int(np.flatnonzero(sol.event[:, 0])[0])
    assert sol.t[event_row] == 0.37
    assert np.allclose(sol.t[event_row + 1 :], np.arange(4, 21) * 0.1)
    assert sol.t[-1] == 2.0


def test_a_method_that_stops_short_against_its_word_is_named():
    class Unreliable(StopsShort):
        gives = Euler.gives

    with pytest.raises(carom.SimulationError, match="declares whole steps stopped short"):
        run(method=Unreliable(0.37))


@pytest.mark.parametrize(
    "stepping",
    [
        pytest.param(carom.Constant(0.03), id="Constant", marks=pytest.mark.slow),
        pytest.param(carom.Prescribed([0.07, 0.11, 0.05] * 5), id="Prescribed", marks=pytest.mark.slow),
        pytest.param(carom.Adaptive(1e-6, 1e-9, first=0.5), id="Adaptive"),
    ],
)
def test_attempts_that_leave_a_step_pending_leave_no_trace(stepping):
    method = carom.ExplicitRK(carom.explicit(5))
    how = {"stepping": stepping, "stop": lambda t, q, v: q[0] + 0.3, "save_every": 2}
    plain, waiting = (run(method=m, t1=1.0, **how) for m in (method, Waits(method)))
    assert plain.t[-1] < 1.0
    assert all(np.array_equal(plain.columns[name], waiting.columns[name]) for name in plain.columns)
    assert np.array_equal(plain.carry.counts.values, waiting.carry.counts.values)


def test_rows_with_an_event_are_kept_whatever_save_every():
    sol = run(method=StopsShort(0.37), save_every=10)
    assert 0.37 in sol.t


def test_rejected_steps_are_retried_smaller_and_counted():
    sol = run(stepping=Rejecting(0.4, 0.1))
    assert sol.stats["rejected"] > 0
    assert np.all(np.abs(np.diff(sol.v[:, 0])) <= 0.1)
    assert sol.stats["accepted"] == len(sol) - 1


def test_time_is_counted_not_accumulated():
    sol = carom.simulate(SYSTEM, STATE, Euler(), t1=200.0, h=1e-3, save_every=200_000)
    assert sol.stats["accepted"] == 200_000
    assert sol.t[-1] == 200.0


def test_the_last_step_is_shortened_to_end_on_t1():
    sol = run(t1=0.25)
    assert sol.t[-1] == 0.25
    assert sol.h[-1] == pytest.approx(0.05)


def test_a_run_of_length_zero_returns_the_start():
    sol = run(t1=0.0)
    assert len(sol) == 1
    assert sol.q[0, 0] == 1.0


def test_no_new_h_t1_tolerance_or_parameter_recompiles():
    chain, state = carom.models.dimer_chain(6, 0.59, 0.06)
    carom.simulate(chain, state, carom.TailoredIRK(), t1=1.0, h=0.1)
    run(stepping=Rejecting(0.4, 0.1))
    before = loop.traces
    for ratio, gamma, h, t1, tol in ((0.7, 0.05, 0.2, 2.0, 1e-9), (0.8, 0.01, 0.03, 0.5, 1e-12)):
        chain, state = carom.models.dimer_chain(6, ratio, gamma)
        carom.simulate(chain, state, carom.TailoredIRK(newton=carom.Newton(tol=tol)), t1=t1, h=h)
        run(stepping=Rejecting(h, 0.05), t1=t1)
        stiffer = carom.System(1.0, SYSTEM.potential["conservative"].fn, params={"k": 1.0 + h})
        carom.simulate(stiffer, STATE, Euler(), t1=t1, h=h)
    assert loop.traces - before <= 1, "one program for the oscillator under a constant step, none for anything else"


def test_prescribed_steps_are_taken_one_by_one():
    steps = [0.1, 0.05, 0.2, 0.15]
    sol = run(stepping=carom.Prescribed(steps), t1=0.5)
    assert np.allclose(sol.h[1:], steps)
    cut = run(stepping=carom.Prescribed(steps), t1=0.4)
    assert np.allclose(cut.h[1:], [0.1, 0.05, 0.2, 0.05])


def test_save_every_keeps_every_nth_row_and_the_last():
    sol = run(t1=2.05, save_every=6)
    assert np.array_equal(sol.k, [0, 6, 12, 18, 21])


def test_save_at_interpolates_without_changing_the_steps():
    fine = carom.simulate(SYSTEM, STATE, carom.IRK(carom.gauss(2)), t1=2.0, h=0.05)
    times = [0.0, 0.111, 0.5, 1.2345, 2.0]
    thin = carom.simulate(SYSTEM, STATE, carom.IRK(carom.gauss(2)), t1=2.0, h=0.05, save_at=times)
    assert np.array_equal(thin.t, times)
    assert np.abs(thin.q[:, 0] - np.cos(2 * thin.t)).max() < 2e-6
    assert np.abs(thin.v[:, 0] + 2 * np.sin(2 * thin.t)).max() < 4e-6
    assert np.array_equal(thin.q[-1], fine.q[-1])


def test_save_at_keeps_few_rows_of_a_long_run():
    prepared = run_host.prepare(SYSTEM, STATE, Euler(), 100.0, carom.Constant(1e-3), rows=512)
    sol = run_host.finish(prepared, None, False, [3.0, 77.7])
    assert sum(len(chunk) for chunk in prepared.stores[0].chunks) < 20
    assert len(sol) == 2


def test_stop_ends_the_run_where_the_function_turns_negative():
    sol = carom.simulate(SYSTEM, STATE, carom.IRK(carom.gauss(2)), t1=9.0, h=0.05, stop=lambda t, q, v: q[0])
    assert sol.t[-1] == pytest.approx(np.pi / 4, abs=1e-6)
    assert sol.q[-1, 0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    "method",
    [
        carom.IRK(carom.lobatto_iiia(2)),
        pytest.param(carom.ExplicitRK(carom.explicit(4)), marks=pytest.mark.slow),
        pytest.param(carom.IRK(carom.radau_iia(2)), marks=pytest.mark.slow),
    ],
)
def test_a_force_that_jumps_in_time_is_integrated_exactly_when_the_jump_is_declared(method):
    pushed = carom.System(1.0, forces={"push": lambda t, q, v: jnp.where(t < 0.333, 1.0, -2.0)[None]}, jumps=[0.333])
    exact_v = 0.333 - 2 * (1 - 0.333)
    exact_q = 0.333**2 / 2 + 0.333 * 0.667 - 0.667**2
    start = carom.State([0.0], [0.0])
    sol = carom.simulate(pushed, start, method, t1=1.0, h=0.1)
    assert 0.333 in sol.t
    assert sol.v[-1, 0] == pytest.approx(exact_v, abs=1e-13)
    assert sol.q[-1, 0] == pytest.approx(exact_q, abs=1e-13)


@pytest.mark.parametrize(
    "force",
    [
        lambda t: jnp.where(t < 0.333, 1.0, -2.0),
        pytest.param(lambda t: jnp.where(t > 0.333, -2.0, 1.0), marks=pytest.mark.slow),
    ],
)
def test_between_steps_a_force_that_jumps_counts_on_its_own_side_of_the_jump(force):
    pushed = carom.System(1.0, forces={"push": lambda t, q, v: force(t)[None]}, jumps=[0.333])
    method = carom.ExplicitRK(carom.explicit(4))
    sol = carom.simulate(pushed, carom.State([0.0], [0.0]), method, t1=1.0, h=0.1)
    q, v = sol.at([0.3249, 0.3351])
    assert q[:, 0] == pytest.approx([0.3249**2 / 2, 0.333**2 / 2 + 0.333 * 0.0021 - 0.0021**2], abs=1e-14)
    assert v[:, 0] == pytest.approx([0.3249, 0.333 - 2 * 0.0021], abs=1e-14)
    stopped = carom.simulate(pushed, carom.State([0.0], [0.0]), method, t1=1.0, h=0.1, stop=lambda t, q, v: 0.32 - v[0])
    assert stopped.t[-1] == pytest.approx(0.32, abs=1e-14)


def test_a_failure_keeps_what_was_computed_and_names_the_time():
    blowing_up = carom.System(1.0, forces={"sink": lambda t, q, v: jnp.where(t < 0.5, 0.0, jnp.nan)[None]})
    with pytest.raises(carom.SimulationError, match=r"'sink' is NaN at t = 0.5.*\(step 6\)") as caught:
        carom.simulate(blowing_up, carom.State([0.0], [1.0]), Euler(), t1=1.0, h=0.1)
    assert len(caught.value.solution) == 6
    assert np.isfinite(caught.value.solution.q).all()
    assert float(caught.value.solution.state.t) == pytest.approx(0.5)
