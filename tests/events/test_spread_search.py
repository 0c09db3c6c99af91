"""A search for events spread over attempts, one trial each, as in batches: the same steps as with whole searches."""

from itertools import pairwise

import jax
import numpy as np
import pytest

import carom
from carom.running.run import prepare
from carom.stepping.grid import Constant

WHOLE = carom.EventCapturing(carom.explicit(4))
SPREAD = carom.EventCapturing(carom.explicit(4), spread=True)
BALL = carom.models.bouncing_ball()
CONTROL = carom.Adaptive(1e-6, 1e-9, first=0.5, h_max=0.7)  # too long: some steps are rejected
STEPS = {
    "events inside steps": {"t1": 4.0, "h": 0.07},
    "an event where a step ends": {"t1": 1.5, "h": 0.05},  # the ball falls for one second
    "several events in one step": {"t1": 4.0, "h": 0.8},
}


def same(a, b):
    """The same rows, counts of evaluations included."""
    assert np.array_equal(a.t, b.t)
    assert all(np.array_equal(a.columns[name], b.columns[name]) for name in ("q", "v", "event", "mode", "evaluations"))
    assert {name: a.stats[name] for name in a.carry.counts.names} == {n: b.stats[n] for n in b.carry.counts.names}


def attempts(run):
    """The carries of a run after each of its attempts, that before the first included."""
    yield run.carry
    while not run.finished:
        run.attempts = 1
        run.chunk()
        yield run.carry


def standing(carry):
    """Everything but the memory of the method."""
    return [getattr(carry, name) for name in ("state", "stepping", "counts", "k", "segment", "status", "work")]


def same_numbers(a, b):
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


@pytest.mark.parametrize("how", STEPS.values(), ids=STEPS)
def test_a_spread_search_finds_the_steps_of_a_whole_one(how):
    spread = carom.simulate(*BALL, SPREAD, **how)
    assert spread.event.any()
    same(spread, carom.simulate(*BALL, WHOLE, **how))


@pytest.mark.slow
def test_rejected_steps_begin_their_search_anew():
    oscillator = carom.models.oscillator_with_stop(preload=0.3)
    spread, whole = (carom.simulate(*oscillator, method, t1=4.0, stepping=CONTROL) for method in (SPREAD, WHOLE))
    assert whole.stats["rejected"] > 0
    assert whole.event.any()
    same(spread, whole)


def test_an_attempt_in_the_middle_of_a_search_leaves_the_run_where_it_is():
    run = prepare(*BALL, SPREAD, 1.2, Constant(0.07))
    carries = list(attempts(run))
    pending = [(old, new) for old, new in pairwise(carries) if new.memory.search.k > 0]
    assert len(pending) > 2
    for old, new in pending:
        assert same_numbers(standing(old), standing(new))
        assert new.memory.search.k == old.memory.search.k + 1
    assert len(run.solution().t) == 1 + run.solution().stats["accepted"] == len(carries) - len(pending)


def test_an_attempt_makes_one_trial():
    carries = attempts(prepare(*BALL, SPREAD, 1.2, Constant(0.07)))
    spent = [int(c.counts.values[2] + c.memory.search.evaluations * (c.memory.search.k > 0)) for c in carries]
    assert max(np.diff(spent)) == 1 + 4 + 1  # at the start, in the stages, at the end


def test_a_run_stored_in_the_middle_of_a_search_goes_on_as_if_it_never_stopped(tmp_path):
    run = prepare(*BALL, SPREAD, 4.0, Constant(0.07))
    next(carry for carry in attempts(run) if int(carry.memory.search.k) == 2)
    run.solution().save(tmp_path / "run.nc")
    same(carom.resume(tmp_path / "run.nc"), carom.simulate(*BALL, SPREAD, t1=4.0, h=0.07))


LANES = {
    "constant steps": ([carom.models.bouncing_ball(height=x) for x in (1.0, 0.3, 2.1, 1e-3)], {"h": 0.07}),
    "adaptive steps": (
        [carom.models.oscillator_with_stop(position=x, preload=0.3) for x in (1.0, 0.3, 2.1)],
        {"stepping": CONTROL},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("models", "how"), LANES.values(), ids=LANES)
def test_lanes_with_events_at_different_times_equal_single_runs(models, how):
    for (system, state), lane in zip(models, carom.simulate_batch(*zip(*models), WHOLE, t1=4.0, **how)):
        alone = carom.simulate(system, state, WHOLE, t1=4.0, **how)
        assert np.array_equal(lane.event, alone.event)
        assert np.abs(lane.t - alone.t).max() < 1e-13
        assert np.abs(lane.q - alone.q).max() < 1e-13
        assert np.array_equal(lane.evaluations, alone.evaluations)
        assert lane.carry.memory.search.h > 0 == alone.carry.memory.search.h  # one was spread, the other was not
