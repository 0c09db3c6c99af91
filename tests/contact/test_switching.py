"""The search for switching points, and what it must not disturb: chunks, batches, files."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.measures import search_history
from carom.running import run as loop

METHOD = carom.Extrapolated(carom.MoreauMidpoint(), max_order=4, atol=1e-8, rtol=0.0)
STEPPING = carom.Switching(1e-4, 0.05)


def same(a, b):
    assert set(a.columns) == set(b.columns)
    for name, values in a.columns.items():
        np.testing.assert_array_equal(values, b.columns[name], err_msg=name)


@pytest.fixture(scope="module")
def reference():
    return carom.simulate(*carom.models.falling_mass(), METHOD, t1=0.4, stepping=STEPPING)


@pytest.mark.parametrize("rows", [1, pytest.param(7, marks=pytest.mark.slow)])
def test_going_back_over_the_end_of_a_chunk_changes_nothing(reference, rows):
    run = loop.prepare(*carom.models.falling_mass(), METHOD, 0.4, STEPPING, rows=rows)
    same(loop.finish(run, None, False, None), reference)


def test_time_only_moves_forward_in_the_result(reference):
    assert (np.diff(reference.t) > 0).all()
    np.testing.assert_allclose(np.diff(reference.t), reference.h[1:], atol=1e-15)
    assert (np.diff(reference.k) == 1).all()
    assert reference.stats["rejected"] > 10


def test_search_history_goes_back_two_steps_and_halves():
    history = search_history(*carom.models.falling_mass(), METHOD, STEPPING, t1=0.13)
    outcomes = [a.outcome for a in history]
    first = outcomes.index("detected")
    assert history[first + 1].h == history[first].h / 2
    assert history[first + 1].begin == pytest.approx(history[first - 1].begin)
    resolved = [a for a in history if a.outcome == "resolved"]
    assert all(a.h == 1e-4 for a in resolved)
    impact = np.sqrt(2 * 0.07 / 9.81)
    assert min(abs(a.begin - impact) for a in resolved) <= 1e-4


def test_saved_and_resumed_run_equals_an_uninterrupted_one(tmp_path, reference):
    run = loop.prepare(*carom.models.falling_mass(), METHOD, 0.4, STEPPING)
    run.attempts = 50
    run.chunk()
    assert not run.finished
    run.solution().save(tmp_path / "run.nc")
    same(carom.resume(tmp_path / "run.nc"), reference)


@pytest.mark.slow
def test_lanes_with_other_restitution_equal_single_runs():
    systems, states = zip(*(carom.models.falling_mass(restitution=e) for e in (0.3, 0.7, 0.9)))
    batch = carom.simulate_batch(systems, states, METHOD, t1=0.3, stepping=STEPPING)
    single = carom.simulate(systems[2], states[2], METHOD, t1=0.3, stepping=STEPPING)
    np.testing.assert_allclose(batch[2].q, single.q, atol=1e-13)
    assert len(batch[2].events) == len(single.events)


def test_new_numbers_do_not_recompile():
    run = [
        carom.simulate(*carom.models.falling_mass(height=z), METHOD, t1=0.4, stepping=carom.Switching(h, 0.04))
        for z, h in ((0.07, 1e-4), (0.08, 2e-4))
    ]
    assert run[1].stats["traces"] == 0


@pytest.mark.slow
def test_inaccurate_steps_may_be_accepted():
    oscillator = carom.models.impact_oscillator()
    method = carom.Extrapolated(carom.MoreauMidpoint(), max_order=2, atol=1e-10, rtol=0.0)
    retry = carom.simulate(*oscillator, method, t1=0.1, stepping=carom.Switching(1e-5, 0.02))
    accept = carom.simulate(*oscillator, method, t1=0.1, stepping=carom.Switching(1e-5, 0.02, inaccurate="accept"))
    assert accept.h.max() > 3 * retry.h.max()
    assert (accept.error[1:] > 1).any()


@pytest.mark.slow
def test_gradient_of_a_bounce_by_forward_mode():
    """After one impact dv/de is the impact speed."""
    ball, state = carom.models.falling_mass(height=0.5)
    method = carom.MoreauMidpoint()

    def velocity(e):
        system = eqx.tree_at(lambda s: s.contacts.restitution, ball, e)

        def body(_, carry):
            step = method.step(system, *carry, jnp.asarray(1e-3))
            return step.state, step.memory

        return jax.lax.fori_loop(0, 400, body, (state, method.init(system, state)))[0].v[0]

    assert float(jax.jacfwd(velocity)(jnp.asarray(0.7))) == pytest.approx(np.sqrt(2 * 9.81 * 0.5), rel=5e-3)
