"""Batches: one loop around the vectorised attempt."""

import numpy as np
import pytest

import carom
from carom.running import loop

from .toys import Euler, GoesBack, Rejecting, oscillator

SYSTEM, STATE = oscillator()


def test_lanes_of_different_length_equal_single_runs():
    steps = [0.1, 0.04, 0.013]
    lanes = carom.simulate_batch(SYSTEM, STATE, Euler(), t1=2.0, h=steps)
    for h, lane in zip(steps, lanes):
        alone = carom.simulate(SYSTEM, STATE, Euler(), t1=2.0, h=h)
        assert np.array_equal(lane.t, alone.t)
        assert np.abs(lane.q - alone.q).max() < 1e-14


def test_lanes_may_differ_in_parameters_states_and_ends():
    systems, states = zip(*(oscillator(k) for k in (1.0, 4.0, 9.0)))
    lanes = carom.simulate_batch(systems, states, carom.IRK(carom.gauss(2)), t1=[1.0, 2.0, 3.0], h=0.01)
    for k, lane in zip((1.0, 4.0, 9.0), lanes):
        assert np.abs(lane.q[:, 0] - np.cos(np.sqrt(k) * lane.t)).max() < 1e-8
    assert [lane.t[-1] for lane in lanes] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("kind", [Rejecting, GoesBack])
def test_rejections_and_drop_backs_work_lane_by_lane(kind):
    make = (lambda h: Rejecting(h, 0.1)) if kind is Rejecting else GoesBack
    sizes = [0.05, 0.08]
    lanes = carom.simulate_batch(SYSTEM, STATE, Euler(), t1=2.0, stepping=[make(h) for h in sizes])
    for h, lane in zip(sizes, lanes):
        alone = carom.simulate(SYSTEM, STATE, Euler(), t1=2.0, stepping=make(h))
        assert np.array_equal(lane.k, alone.k)
        assert np.abs(lane.q - alone.q).max() < 1e-14


@pytest.mark.slow
def test_one_adaptive_stepping_serves_all_lanes_as_it_serves_single_runs():
    method, control = carom.ExplicitRK(carom.explicit(5)), carom.Adaptive(1e-8, 1e-10)
    states = [carom.State([x], [0.0], t=t0) for x, t0 in ((1.0, 0.0), (2.0, 1.7e9), (0.3, -2.0))]
    lanes = carom.simulate_batch(SYSTEM, states, method, t1=[3.0, 1.7e9 + 3, 1.0], stepping=control)
    for state, lane in zip(states, lanes):
        alone = carom.simulate(SYSTEM, state, method, t1=float(state.t) + 3.0, stepping=control)
        assert np.array_equal(lane.elapsed, alone.elapsed)
        assert np.array_equal(lane.q, alone.q)


@pytest.mark.slow
def test_a_lane_is_warned_about_as_a_single_run_is():
    hardening = carom.System(1.0, lambda q: 0.25 * q[0] ** 4)
    states = [carom.State([0.0], [v]) for v in (0.1, 40.0, 41.0)]
    with pytest.warns(carom.StabilityWarning) as told:
        carom.simulate_batch(hardening, states, carom.PseudoEnergy("gauss-2"), t1=0.8, h=0.2)
    fallen = [str(w.message) for w in told if "stability limit there" in str(w.message)]
    assert len(fallen) == 1
    assert fallen[0].startswith("lane 1: at t = ")
    with pytest.warns(UserWarning, match="lane 1: h = 2 is longer than the run"):
        carom.simulate_batch(SYSTEM, STATE, Euler(), t1=1.0, h=[0.1, 2.0])


def test_a_lane_that_fails_does_not_stop_the_others():
    chains = [carom.models.dimer_chain(6, 0.59, 0.06)] * 2
    few = carom.Newton(max_iter=6)
    lanes = carom.simulate_batch(*zip(*chains), carom.TailoredIRK(newton=few), t1=4.0, h=[4.0, 1e-2])
    assert lanes[0].status is carom.Status.NEWTON_DIVERGED
    assert lanes[1].status is carom.Status.OK
    assert lanes[1].t[-1] == 4.0


def test_a_batch_compiles_once_for_any_step_sizes():
    carom.simulate_batch(SYSTEM, STATE, Euler(), t1=1.0, h=[0.1, 0.2, 0.3])
    before = loop.traces
    carom.simulate_batch(SYSTEM, STATE, Euler(), t1=3.0, h=[0.01, 0.02, 0.03])
    assert loop.traces == before


def test_lists_of_unequal_length_are_refused():
    with pytest.raises(ValueError, match="common length"):
        carom.simulate_batch(SYSTEM, [STATE] * 3, Euler(), t1=1.0, h=[0.1, 0.2])


def test_systems_of_different_kind_are_refused():
    other = carom.System(1.0, lambda q: q[0] ** 4)
    with pytest.raises(ValueError, match=r"system\[1\] is of another kind"):
        carom.simulate_batch([SYSTEM, other], STATE, Euler(), t1=1.0, h=0.1)
