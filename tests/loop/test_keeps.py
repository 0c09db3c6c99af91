"""Keeps: what a run writes is found step by step, whatever is rejected, taken back, stored or run in a batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom import keep
from carom.running.run import prepare

METHOD = carom.ExplicitRK(carom.explicit(5))
PERIOD = 2 * np.pi
STATE = carom.State([1.0], [0.0])


def spring(q):
    return 0.5 * q[0] ** 2


def system(level=0.0, until=np.inf):
    """An oscillator whose sections look at a level of q, until some time."""
    return carom.System(1.0, spring, params={"level": level, "until": until})


SYSTEM = system()


def over_level(t, q, v, p):
    return jnp.where(t > p["until"], jnp.nan, q[0] - p["level"])


def near_the_top(q, v):
    return q[0] - 0.99


def position_of(q):
    return q[0]


def moments(sums, t, q, v, h):
    return {"time": sums["time"] + h, "area": sums["area"] + h * q[0], "late": jnp.maximum(sums["late"], t)}


SUMS = {"time": 0.0, "area": 0.0, "late": 0}
MANY = {
    "zeros": keep.section(over_level, direction="both"),
    "top": keep.section(near_the_top, direction="both", last=4),
    "grid": keep.strobe(PERIOD / 4, last=7, after=PERIOD),
    "beat": keep.strobe(1.0),
    "fastest": keep.peak("v"),
    "sums": keep.reduce(SUMS, moments, lambda sums: sums["area"] / sums["time"]),
    "end": keep.final(),
}


def many(system=SYSTEM, **options):
    return carom.simulate(system, STATE, METHOD, **({"t1": 5 * PERIOD, "h": PERIOD / 40, "keep": MANY} | options))


def same(one, other):
    flat = [jax.tree.leaves(kept) for kept in (one, other)]
    return list(one) == list(other) and all(np.array_equal(a, b) for a, b in zip(*flat, strict=True))


@pytest.fixture(scope="module")
def rows():
    return carom.simulate(SYSTEM, STATE, METHOD, t1=5 * PERIOD, h=PERIOD / 40)


@pytest.fixture(scope="module")
def found():
    return many()


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_crossings_are_located_to_the_accuracy_of_the_run(count):
    stepping = carom.Adaptive(1e-12, 1e-12)
    sections = [keep.section(position_of, direction="both"), keep.section(lambda q, v: v[0], last=3)]
    sol = carom.simulate(SYSTEM, STATE, METHOD, t1=(count + 0.2) * np.pi, stepping=stepping, keep=sections)
    zeros, turns = sol.kept["section 0"], sol.kept["section 1"]
    assert zeros.t.shape == (count,)
    assert np.abs(zeros.t - (np.arange(count) + 0.5) * np.pi).max() < 1e-10
    assert np.abs(zeros.q).max() < 1e-10
    assert np.abs(turns.t - (count - np.array([5, 3, 1])) * np.pi).max() < 1e-10
    assert len(sol) == 2


def test_two_crossings_in_one_step_are_both_found():
    half, h = np.arccos(0.99), 0.41
    assert 2 * half < 0.7 * h
    top = many(t1=2.2 * PERIOD, h=h).kept["top"]
    assert np.abs(top.t - np.array([PERIOD - half, PERIOD + half, 2 * PERIOD - half, 2 * PERIOD + half])).max() < 1e-3
    assert np.abs(top.q - 0.99).max() < 1e-14


def test_where_steps_divide_the_period_a_strobe_is_every_nth_row(found, rows):
    grid = found.kept["grid"]
    assert np.array_equal(grid.t, rows.t[140::10])
    assert np.array_equal(grid.q, rows.q[140::10])
    assert np.array_equal(grid.v, rows.v[140::10])
    late = many(t1=2000.1 * PERIOD).kept
    assert np.array_equal(late["grid"].t, np.arange(7994, 8001) * 10 * (PERIOD / 40))
    assert np.array_equal(late["beat"].t, np.arange(12567.0))


def test_other_strobes_are_interpolated(found, rows):
    beat = found.kept["beat"]
    assert np.array_equal(beat.t, np.arange(32.0))
    q, v = rows.at(beat.t)
    assert np.abs(beat.q - q).max() < 1e-14
    assert np.abs(beat.v - v).max() < 1e-14


def test_reductions_equal_those_of_all_rows(found, rows):
    area = np.sum(rows.h * rows.q[:, 0]) / np.sum(rows.h)
    assert abs(found.kept["sums"] - area) < 1e-15
    fastest = found.kept["fastest"]
    assert fastest.value == np.abs(rows.v).max()
    assert fastest.t == rows.t[np.argmax(np.abs(rows.v))]
    assert np.array_equal(found.kept["end"].q, rows.q[-1])


def test_with_keeps_only_the_first_and_the_last_row_are_written(found, rows):
    assert np.array_equal(found.t, rows.t[[0, -1]])
    assert np.array_equal(found.q, rows.q[[0, -1]])
    assert found.account.worst["energy rise"] < 1e-6


def test_columns_and_times_decide_on_the_rows(rows):
    thin = many(keep=[keep.columns("t", "q", every=7)])
    assert list(thin.columns) == ["t", "k", "elapsed", "h", "q"]
    assert np.array_equal(thin.t, np.append(rows.t[::7], rows.t[-1]))
    assert np.array_equal(thin.q, np.append(rows.q[::7], rows.q[-1:], axis=0))
    times = [0.0, 3.3, 3.3, 5 * PERIOD]
    at, short = many(keep=[keep.times(times)]), many(keep=None, save_at=times)
    assert np.array_equal(at.t, short.t)
    assert np.abs(at.q - short.q).max() < 1e-15
    assert np.array_equal(at.q, at.kept["times 0"].q)


@pytest.mark.slow
def test_every_lane_of_a_batch_keeps_what_its_single_run_does(found):
    systems, ends = [SYSTEM, system(level=0.3), system(level=2.0)], [5 * PERIOD, 17.0, 11.0]
    with pytest.warns(UserWarning, match="^lane 2: zeros never changed its sign in this run: it stayed negative$"):
        lanes = carom.simulate_batch(systems, STATE, METHOD, t1=ends, h=PERIOD / 40, keep=MANY)
    for lane, alone in zip(lanes, (found, many(systems[1], t1=17.0))):
        for a, b in zip(jax.tree.leaves(lane.kept), jax.tree.leaves(alone.kept), strict=True):
            assert np.shape(a) == np.shape(b)
            assert np.abs(np.asarray(a) - b).max() < 1e-13


@pytest.mark.parametrize("steps", [12, 92])
def test_a_resumed_run_keeps_what_one_that_was_never_interrupted_keeps(found, steps, tmp_path):
    part = many(t1=steps * (PERIOD / 40))
    part.save(tmp_path / "run.nc")
    assert same(carom.load(tmp_path / "run.nc").kept, part.kept)
    assert same(carom.load(tmp_path / "run.nc", system=SYSTEM).kept, part.kept)
    whole = carom.resume(tmp_path / "run.nc", system=SYSTEM, keep=MANY, t1=5 * PERIOD)
    assert same(whole.kept, found.kept)


def shaken(t, q, p):
    return q[:1] - p["amplitude"] * jnp.sin(20.0 * t)


def weight(q):
    return 9.81 * q[0]


def ball(amplitude=0.0):
    contacts = carom.Contacts(shaken, restitution=0.7)
    return carom.System(1.0, weight, contacts=contacts, params={"amplitude": amplitude})


@pytest.mark.slow
def test_balls_on_a_shaken_table_are_strobed_in_a_batch_as_their_rows_say():
    table, start = PERIOD / 20, carom.State([0.3], [0.0])
    balls = [ball(a) for a in (0.01, 0.012, 0.02)]
    keeps = [keep.strobe(table, last=5), keep.count("closes"), keep.peak("impulse")]
    options = {"t1": 20 * table, "h": table / 100}
    lanes = carom.simulate_batch(balls, start, carom.MoreauMidpoint(), **options, keep=keeps)
    for one, lane in zip(balls, lanes):
        alone = carom.simulate(one, start, carom.MoreauMidpoint(), **options)
        assert np.abs(lane.kept["strobe 0"].q - alone.q[1600::100]).max() < 1e-13
        assert np.abs(lane.kept["strobe 0"].v - alone.v[1600::100]).max() < 1e-12
        assert lane.kept["count 0"] == np.sum(alone.events.kind == "closes") > 5
        assert lane.kept["peak 0"].value == pytest.approx(alone.impulse.max(), rel=1e-12)


@pytest.mark.slow
def test_steps_that_are_taken_back_are_not_counted_and_not_after_a_resumption(tmp_path):
    start, method, stepping = carom.State([0.1], [0.0]), carom.MoreauMidpoint(), carom.Switching(1e-4, 2e-2)
    steps = keep.reduce((0, 0.0), lambda s, t, q, v, h: (s[0] + 1, s[1] + h * q[0]))
    rises = keep.section(lambda q, v: q[0] - 0.01, last=3)
    keeps = [keep.columns(), steps, keep.strobe(0.01), keep.count("closes"), rises]
    sol = carom.simulate(ball(), start, method, t1=0.5, stepping=stepping, keep=keeps)
    kept = sol.kept
    assert sol.stats["accepted"] > len(sol)
    assert kept["reduce 0"][0] == len(sol) - 1
    assert kept["reduce 0"][1] == pytest.approx(np.sum(sol.h * sol.q[:, 0]), rel=1e-14)
    assert kept["count 0"] == np.sum(sol.events.kind == "closes") == 3
    assert np.abs(kept["strobe 0"].q - sol.at(np.linspace(0, 0.5, 51))[0]).max() < 1e-14
    assert np.abs(kept["section 0"].q - 0.01).max() < 1e-14
    assert kept["section 0"].t.size == 2
    run = prepare(ball(), start, method, 0.5, stepping, rows=20, keeps=keep.Keeps.of(keeps))
    run.chunk()
    run.chunk()
    run.solution().save(tmp_path / "run.nc")
    assert 0 < run.reached < 0.4
    assert same(carom.resume(tmp_path / "run.nc", system=ball(), keep=keeps).kept, kept)


def test_every_run_has_a_table_of_events(rows):
    assert len(rows.events) == 0
    assert rows.events.dtype.names == ("time", "contact", "kind")


def test_a_section_that_becomes_nan_ends_the_run_and_says_when():
    with pytest.raises(carom.SimulationError, match=r"^zeros is NaN at t = 3\.1\d*: the run ends there$") as error:
        many(system(until=3.1))
    assert 3.1 < error.value.solution.state.t < 3.3


def test_a_section_that_is_never_crossed_is_warned_about():
    with pytest.warns(UserWarning, match="^zeros never changed its sign in this run: it stayed negative$"):
        many(system(level=2.0))


def test_an_average_over_no_time_is_warned_about():
    with pytest.warns(UserWarning, match="^mean 0 is NaN: no step began after `after`$"):
        assert np.isnan(many(keep=[keep.mean(position_of, after=99.0)]).kept["mean 0"])


def test_a_stored_run_goes_on_only_with_what_it_kept(tmp_path):
    many(t1=PERIOD).save(tmp_path / "run.nc")
    for keeps, said in (
        (None, "pass what it keeps again as keep="),
        (MANY | {"beat": keep.strobe(1.5)}, "beat reads period = 1.5, stored was period = 1.0"),
        (MANY | {"zeros": keep.section(near_the_top, direction="both")}, "zeros differs"),
    ):
        with pytest.raises(ValueError, match=said):
            carom.resume(tmp_path / "run.nc", system=SYSTEM, keep=keeps, t1=2 * PERIOD)


WRONG = {
    "no period": (lambda: keep.strobe(0.0), "keep.strobe: period must be positive, got period = 0"),
    "no room": (lambda: keep.strobe(1.0, last=0), "keep.strobe: last must be a whole number of at least 1"),
    "no function": (lambda: keep.section(3.0), r"keep.section: f must be a function of \(t, q, v\) or \(q, v\)"),
    "up": (lambda: keep.section(position_of, "up"), "direction must be 'rising', 'falling' or 'both', got 'up'"),
    "ups": (lambda: keep.section(position_of, ["rising"]), "keep.section: direction must be.*got \\['rising'\\]"),
    "unknown event": (lambda: keep.count("jumps"), "event must be one of 'closes', 'opens'"),
    "twice": (lambda: keep.columns("q", "q"), "keep.columns: 'q' is named twice"),
    "no times": (lambda: keep.times([]), "keep.times: times must be a list of finite times"),
    "unknown column": (
        lambda: many(keep=[keep.columns("qq")]),
        "no column 'qq', ExplicitRK records 'k', 't', 'h', 'q'",
    ),
    "unknown peak": (lambda: many(keep=[keep.peak("impulse")]), "keep.peak: no column 'impulse'"),
    "no events": (lambda: many(keep=[keep.count("closes")]), "keep.count: no column 'event'"),
    "NaN at once": (lambda: many(keep=[keep.section(lambda q: jnp.nan * q[0])]), "section 0 is NaN at the start"),
    "true": (lambda: many(keep=[keep.section(lambda q: q[0] > 0)]), "section 0 must return a number"),
    "past the end": (lambda: many(keep=[keep.section(lambda q: q[1])]), "section 0: index 1 is out of range"),
    "other shape": (
        lambda: many(keep=[keep.reduce(0.0, lambda s, t, q, v, h: s + q)]),
        "update must return a value like",
    ),
    "too late": (lambda: many(keep=[keep.times([99.0])]), "times 0: times must lie between 0 and 31.4"),
    "two kinds of rows": (lambda: many(keep=[keep.columns("q"), keep.times([1.0])]), "give one of columns and times"),
    "and a stride": (lambda: many(save_every=2), r"give keep= or save_every=, not both.*columns\(every=...\)"),
    "and times": (lambda: many(save_at=[1.0]), "give keep= or save_at=, not both"),
    "no list": (lambda: many(keep=keep.final()), r"keep must be a list or a dict of keeps.*write keep=\[...\]"),
    "a class": (lambda: many(keep=[keep.final]), r"got the class Final; write final\(...\)"),
    "no name": (lambda: many(keep={1: keep.final()}), "keep: names must be texts, got 1"),
}


@pytest.mark.parametrize("what", WRONG)
def test_bad_input_is_refused_in_one_sentence(what):
    call, said = WRONG[what]
    with pytest.raises((TypeError, ValueError, IndexError), match=said) as error:
        call()
    assert "\n" not in str(error.value)
