"""A small fixed part of the campaign of random cases, and proof that the harness finds what it must find."""

import numpy as np
import pytest

import carom
from fuzz import oracles
from fuzz.campaign import ordered, tried
from fuzz.cases import families
from fuzz.motions import MOTIONS
from fuzz.verdicts import CRASH, FINDINGS, REFUSED, RIGHT, WRONG, of_error

CHEAP = ("spring", "pendulum", "argument", "damaged file", "scenario", "resumed")
LONG = ("pendulum", "damaged file", "resumed")


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else []) for name in CHEAP])
@pytest.mark.parametrize("indices", [range(2), pytest.param(range(2, 12), marks=pytest.mark.slow)], ids=["few", "many"])
def test_random_cases_agree_with_their_oracles(name, indices):
    for case in ordered(0, indices, (name,)):
        verdict = tried(0, case)
        assert verdict.kind not in FINDINGS, f"case {case.index}: {verdict.detail}"
        assert "harness" not in verdict.detail


def test_the_oracle_of_bounces_is_the_closed_form_of_the_bouncing_ball():
    ball, state = carom.models.bouncing_ball()
    n = {"k": 0.0, "c": 0.0, "a": 0.0, "b": 0.0, "w": 1.0, "floor": 0.0, "e": float(ball.contacts.restitution)}
    n["push"] = float(ball.acceleration(state.t, state.q, state.v)[0])
    times = np.linspace(0.0, 4.9, 40)
    q, _ = oracles.hitting(n, state.q, state.v, times)
    np.testing.assert_allclose(q[:, 0], carom.models.exact.bouncing_ball(times)[0], atol=1e-9)


def test_the_oracle_of_dry_friction_sticks_where_spring_and_drive_stay_below_the_limit():
    n = {"k": 4.0, "c": 0.0, "a": 1.5, "w": 1.3, "push": 0.0, "u0": 0.0, "b": 0.0, "limit": 1.0}
    q, v = oracles.dry_friction(n, [1.0], [0.0], np.array([2.5, 3.2, 9.0]))
    assert v[0, 0] == v[1, 0] == 0.0
    np.testing.assert_allclose([q[2, 0], v[2, 0]], [-0.15763, 0.7908], atol=1e-4)


def test_a_trajectory_that_is_off_by_more_than_its_tolerance_is_found():
    family, rng = MOTIONS["spring"], np.random.default_rng([0, 3])
    n = family.numbers(rng) | {"t0": 0.0, "save_at": None, "method": "carom.StormerVerlet()", "stepping": "constant"}
    assert family.run(n | {"order": 2}).kind == RIGHT
    assert family.run(n | {"order": 8}).kind == WRONG


def test_raw_errors_are_told_from_sentences():
    assert of_error(IndexError("index 1 is out of bounds for axis 0 with size 1"), due=True).kind == CRASH
    assert of_error(TypeError("jvp called with different primal and tangent shapes"), due=True).kind == CRASH
    assert of_error(ValueError("h must be positive and finite, got h = 0"), due=True).kind == REFUSED


def test_a_case_is_repeated_by_its_index_and_printed_as_a_script_that_runs():
    one, again = (ordered(5, [11], ("spring",))[0] for _ in range(2))
    assert one == again
    names = {}
    exec(families(5)["spring"].script(one.numbers), names)
    assert np.isfinite(names["sol"].q).all()
