"""Two runs one after the other are one run, in memory and on disk."""

import numpy as np
import pytest

import carom

SPRING = carom.System(1.0, lambda q: 0.5 * q @ q)
START = carom.State([1.0], [0.0], t=3.0)
VERLET = carom.StormerVerlet()
BALL = carom.models.bouncing_ball()


def run(state=START, t1=4.0, method=VERLET, h=0.125):
    return carom.simulate(SPRING, state, method, t1=t1, h=h)


@pytest.fixture(scope="module")
def halves():
    first = run()
    return first, run(first.state, t1=6.0)


def test_a_run_in_two_halves_is_the_run_in_one(halves):
    both, one = carom.join(*halves), run(t1=6.0)
    assert all(np.array_equal(getattr(both, name), getattr(one, name)) for name in ("t", "q", "v", "h", "k"))
    assert both.stats["accepted"] == one.stats["accepted"]
    assert both.account.worst["energy rise"] == one.account.worst["energy rise"]
    assert np.array_equal(both.at([3.3, 5.1])[0], one.at([3.3, 5.1])[0])


def test_it_does_not_matter_which_two_of_three_are_joined_first(halves):
    third = run(halves[1].state, t1=7.0)
    left, right = carom.join(carom.join(*halves), third), carom.join(halves[0], carom.join(halves[1], third))
    assert all(np.array_equal(left.columns[name], right.columns[name]) for name in left.columns)


def test_a_joined_run_is_stored_with_its_times_and_goes_on(halves, tmp_path):
    both = carom.join(*halves)
    both.save(tmp_path / "run.nc")
    loaded = carom.load(tmp_path / "run.nc", system=SPRING)
    assert np.array_equal(loaded.t, both.t)
    assert np.array_equal(loaded.account.energy, both.account.energy)
    resumed = carom.resume(tmp_path / "run.nc", system=SPRING, t1=7.0)
    assert np.array_equal(resumed.t, run(t1=7.0).t)
    assert np.array_equal(resumed.q, run(t1=7.0).q)


@pytest.mark.slow
def test_contact_work_and_events_of_both_methods_count(tmp_path):
    first = carom.simulate(*BALL, carom.EventCapturing(carom.explicit(4)), t1=0.8, h=0.05)
    second = carom.simulate(BALL[0], first.state, carom.MoreauMidpoint(), t1=1.0, h=0.01)
    both = carom.join(first, second)
    assert both.account.worst["contact work"] == pytest.approx(first.contact_work + second.contact_work, rel=1e-14)
    assert len(both.events) == len(first.events) + len(second.events)
    both.save(tmp_path / "run.nc")
    assert np.allclose(carom.load(tmp_path / "run.nc", system=BALL[0]).t, both.t, rtol=0, atol=1e-15)


def test_runs_that_do_not_follow_each_other_are_refused(halves):
    first, second = halves
    with pytest.raises(ValueError, match="begins elsewhere than the first ends: t differs by 2"):
        carom.join(second, second)
    moved = carom.simulate(SPRING, carom.State([2.0], [0.0], t=4.0), VERLET, t1=6.0, h=0.125)
    with pytest.raises(ValueError, match="q differs"):
        carom.join(first, moved)
    other = carom.simulate(carom.System(2.0, lambda q: 0.5 * q @ q), first.state, VERLET, t1=6.0, h=0.125)
    with pytest.raises(ValueError, match="different systems"):
        carom.join(first, other)
    kept = carom.simulate(SPRING, first.state, VERLET, t1=6.0, h=0.125, keep=[carom.keep.final()])
    with pytest.raises(ValueError, match="the second run has keeps in place of all rows"):
        carom.join(first, kept)
    with pytest.raises(TypeError, match="the second must be a Solution with its system, got str"):
        carom.join(first, "run.nc")
