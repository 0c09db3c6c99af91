"""Runs on disk: save, load, kill, resume, Ctrl-C."""

import _thread
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.stepping.grid import Constant

from .toys import SlowStep, oscillator


def same_rows(a, b):
    return all(np.array_equal(a.columns[name], b.columns[name]) for name in a.columns)


def test_a_saved_run_loads_with_the_same_rows(tmp_path):
    sol = carom.simulate(*carom.models.newtons_cradle(5), carom.TailoredTheta(), t1=10.0, h=0.5)
    sol.save(tmp_path / "run.nc")
    loaded = carom.load(tmp_path / "run.nc")
    assert same_rows(sol, loaded)
    assert loaded.stats["accepted"] == 20


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(carom.TailoredTheta(), id="TailoredTheta"),
        pytest.param(carom.AdditiveTailoredIRK(), id="AdditiveTailoredIRK", marks=pytest.mark.slow),
        pytest.param(carom.IRK(carom.gauss(2)), id="IRK", marks=pytest.mark.slow),
    ],
)
def test_a_resumed_run_equals_one_that_was_never_interrupted(method, tmp_path):
    cradle, state = carom.models.newtons_cradle(5)
    whole = carom.simulate(cradle, state, method, t1=30.0, h=0.5)
    carom.simulate(cradle, state, method, t1=11.0, h=0.5).save(tmp_path / "run.nc")
    assert same_rows(carom.resume(tmp_path / "run.nc", t1=30.0), whole)


def test_a_resumed_run_keeps_as_many_steps_as_before(tmp_path):
    cradle, state = carom.models.newtons_cradle(5)
    whole = carom.simulate(cradle, state, carom.TailoredTheta(), t1=30.0, h=0.5, save_every=7)
    carom.simulate(cradle, state, carom.TailoredTheta(), t1=7.0, h=0.5, save_every=7).save(tmp_path / "run.nc")
    assert same_rows(carom.resume(tmp_path / "run.nc", t1=30.0), whole)


def test_values_at_given_times_are_stored_with_the_events_between_them(tmp_path):
    ball, start = carom.models.bouncing_ball()
    times, path = [0.501, 0.502, 0.503, 1.201], tmp_path / "run.nc"
    at = [carom.simulate(ball, start, carom.MoreauMidpoint(), t1=t1, h=0.01, save_at=times) for t1 in (1.5, 2.0)]
    keep = [carom.keep.times(times)]
    carom.simulate(ball, start, carom.MoreauMidpoint(), t1=1.5, h=0.01, keep=keep).save(path)
    kept = carom.resume(path, system=ball, keep=keep, t1=2.0)
    assert same_rows(at[1], kept)
    at[0].save(path)
    loaded, resumed = carom.load(path, system=ball), carom.resume(path, system=ball, t1=2.0)
    assert same_rows(at[0], loaded)
    assert np.array_equal(resumed.t[:4], times)
    for one, other in ((loaded, at[0]), (resumed, at[1]), (kept, at[1])):
        assert len(one.events) == len(other.events) > 1
        assert np.array_equal(one.events, other.events)


def test_a_run_resumed_off_the_grid_lands_on_the_new_end(tmp_path):
    cradle, state = carom.models.newtons_cradle(5)
    carom.simulate(cradle, state, carom.TailoredTheta(), t1=10.3, h=0.5).save(tmp_path / "run.nc")
    sol = carom.resume(tmp_path / "run.nc", t1=20.0)
    assert sol.t[-1] == 20.0
    assert 10.3 in sol.t
    assert np.all(np.diff(sol.t) > 0)


def test_a_system_of_user_functions_must_be_passed_again_and_be_the_same(tmp_path):
    system, state = oscillator()
    carom.simulate(system, state, carom.Theta(), t1=1.0, h=0.1).save(tmp_path / "run.nc")
    with pytest.raises(ValueError, match="pass it again as system="):
        carom.resume(tmp_path / "run.nc", t1=2.0)
    with pytest.raises(ValueError, match="not the one that was stored"):
        carom.resume(tmp_path / "run.nc", system=oscillator(5.0)[0], t1=2.0)
    assert carom.resume(tmp_path / "run.nc", system=system, t1=2.0).t[-1] == 2.0


KILLED = """
    import os, signal, sys
    import carom

    cradle, state = carom.models.newtons_cradle(5)

    def checkpoint(run):
        run.solution().save(sys.argv[1])
        if run.carry.state.t > 50:
            os.kill(os.getpid(), signal.SIGKILL)

    carom.simulate(cradle, state, carom.TailoredTheta(), t1=400.0, h=0.5, callback=checkpoint)
"""


def test_a_killed_run_resumes_to_the_same_data_bit_for_bit(tmp_path):
    path = tmp_path / "run.nc"
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    reached = carom.load(path).t[-1]
    assert 50 < reached < 400
    whole = carom.simulate(*carom.models.newtons_cradle(5), carom.TailoredTheta(), t1=400.0, h=0.5)
    assert same_rows(carom.resume(path), whole)


def test_ctrl_c_during_a_slow_step_returns_at_once_with_what_was_computed():
    system, state = oscillator()
    carom.simulate(system, state, SlowStep(jnp.asarray(1)), t1=0.5, h=0.1)
    threading.Timer(0.5, _thread.interrupt_main).start()
    started = time.perf_counter()
    with pytest.raises(carom.Interrupted, match="carom.resume goes on") as caught:
        carom.simulate(system, state, SlowStep(jnp.asarray(100_000)), t1=0.2, h=0.1)
    assert time.perf_counter() - started < 2.0
    assert len(caught.value.solution) >= 1


WIDE = """
    import carom

    chain, state = carom.models.dimer_chain(1_000_000, 0.59, 0.06)
    sol = carom.simulate(chain, state, carom.TailoredTheta(), t1=0.6, h=0.1, save_every=3)
    assert sol.q.shape == (3, 1_000_000)
    print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


@pytest.mark.slow
def test_a_chain_of_a_million_beads_runs_in_less_than_two_gigabytes():
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(WIDE)], check=True, capture_output=True, text=True)
    assert float(out.stdout.split()[-1]) < 2e6, "peak in kB; the ru_maxrss of a child would count its parent too"


def test_a_callback_sees_the_run_between_chunks():
    system, state = oscillator()
    seen = []
    carom.simulate(
        system,
        state,
        carom.Theta(),
        t1=100.0,
        stepping=Constant(1e-3),
        callback=lambda run: seen.append(float(run.carry.state.t)),
    )
    assert seen == sorted(seen)
    assert seen[-1] == 100.0


def test_saving_replaces_the_file_at_once(tmp_path):
    sol = carom.simulate(*oscillator(), carom.Theta(), t1=1.0, h=0.1)
    sol.save(tmp_path / "deep" / "run.nc")
    assert os.listdir(tmp_path / "deep") == ["run.nc"]


def test_a_tableau_of_ones_own_is_stored_with_its_numbers(tmp_path):
    heun = carom.Tableau([[0, 0], [1, 0]], [0.5, 0.5], [0, 1], order=2, name="own")
    ralston = carom.Tableau([[0, 0], [2 / 3, 0]], [0.25, 0.75], [0, 2 / 3], order=2, name="own")
    system, state = oscillator()
    assert repr(carom.EventCapturing(heun)) == "EventCapturing(own)"
    carom.simulate(system, state, carom.ExplicitRK(heun), t1=0.5, h=0.125).save(tmp_path / "run.nc")
    whole = carom.simulate(system, state, carom.ExplicitRK(heun), t1=1.0, h=0.125)
    assert same_rows(carom.resume(tmp_path / "run.nc", system=system, t1=1.0), whole)
    with pytest.raises(ValueError, match="the method is not the one that was stored"):
        carom.resume(tmp_path / "run.nc", system=system, method=carom.ExplicitRK(ralston), t1=1.0)
