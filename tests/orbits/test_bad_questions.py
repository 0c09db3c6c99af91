"""Orbits that cannot be looked for are refused in the words of the question."""

from dataclasses import replace

import numpy as np
import pytest

import carom
from carom.orbits.family import family
from tests.orbits.systems import CAPTURING, NUMBERS, SMOOTH, oscillator

SYSTEM, STATE = oscillator(**NUMBERS)


def asked(**more):
    return carom.periodic_orbit(**{"system": SYSTEM, "guess": STATE, "method": SMOOTH, "period": 1.0, "h": 0.05} | more)


@pytest.mark.parametrize(
    ("more", "kind", "said"),
    [
        ({"period": None}, ValueError, r"give section= .* or period="),
        ({"section": lambda q: q[0]}, ValueError, r"give section= .* or period="),
        ({"ignore": [0], "reset": lambda q, v: (q, v)}, ValueError, "give ignore= or reset=, not both"),
        ({"guess": [1.0, 2.0]}, TypeError, "guess must be a carom.State"),
        ({"ignore": ["y"]}, ValueError, "ignore: coordinates must be numbers from 0 to 0, got 'y'"),
        ({"ignore": [3]}, ValueError, "ignore: coordinates must be numbers from 0 to 0, got 3"),
        ({"reset": lambda q, v: q}, ValueError, r"reset must return \(q, v\) of the shapes"),
        ({"period": None, "section": 3.0}, TypeError, "section must be a carom.Section, a carom.Event or a function"),
        ({"period": -1.0}, ValueError, "period must be positive"),
        ({"period": lambda mass: mass}, TypeError, "period: a function of the parameters .* got an argument 'mass'"),
        ({"parameters": {"damping": 1.0}}, ValueError, "parameters= belongs to a function that builds the system"),
        ({"system": lambda damping: SYSTEM}, TypeError, "parameters must be a dict of numbers by name"),
        ({"system": 3}, TypeError, "system must be a carom.System, or a function of parameters"),
        ({"max_steps": 0}, ValueError, "max_steps must be a whole number of at least 1"),
        ({"longest": 0.0}, ValueError, "longest must be positive"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_by_name(more, kind, said):
    with pytest.raises(kind, match=said):
        asked(**more)


def test_a_method_that_steps_over_impacts_is_refused():
    ball, state = carom.models.shaken_ball()
    with pytest.raises(TypeError, match="MoreauMidpoint steps over impacts"):
        asked(system=ball, guess=state, method=carom.MoreauMidpoint())


def test_a_section_that_is_never_reached_and_too_few_steps_are_told():
    ball, state = carom.models.shaken_ball()
    with pytest.raises(ValueError, match="contact 5 does not exist"):
        asked(system=ball, guess=state, method=CAPTURING, period=None, section=carom.Event(5))
    with pytest.raises(carom.SimulationError, match="no return from the guess: the run took max_steps steps"):
        asked(max_steps=3)


def test_a_motion_that_returns_only_once_is_no_orbit():
    period = 2 * np.pi / 1.7
    with pytest.raises(carom.SimulationError, match="returns after 3, but its next round ends elsewhere"):
        asked(period=3.0)
    with pytest.raises(carom.SimulationError, match="its next round ends elsewhere"):
        asked(ignore=[0], period=period)
    orbit = asked(period=period)
    with pytest.raises(carom.SimulationError, match="returns at frequency = 1.5 after 3.69599136, but"):
        orbit.follow("frequency", (1.5, 1.75), step=0.5)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"parameter": "dampng"}, "parameter must be one of .* did you mean 'damping'"),
        ({"within": (2.0, 1.0)}, "within must be a pair of numbers, the smaller first"),
        ({"within": (2.0, 3.0)}, "within must contain the parameter's present value, damping = 0.3"),
        ({"within": 3.0}, "within must be a pair of numbers"),
        ({"within": "ab"}, "within must be a pair of numbers, the smaller first, got 'ab'"),
        ({"within": (0.1, np.nan)}, "within must be a pair of numbers"),
        ({"within": ((0.1, 0.5), (0.1, 0.5))}, "within must be a pair of numbers"),
        ({"parameter": ["damping"]}, r"parameter must be one of .*, got \['damping'\]"),
        ({"step": 0.0}, "step must be positive"),
        ({"most": 0}, "most must be a whole number of at least 1"),
    ],
)
def test_a_branch_that_makes_no_sense_is_refused_by_name(more, said):
    orbit = asked(period=2 * np.pi / 1.7, h=np.pi / 85)
    with pytest.raises((ValueError, TypeError), match=said):
        orbit.follow(**{"parameter": "damping", "within": (0.1, 0.5)} | more)


def test_a_whole_number_among_the_parameters_keeps_no_other_from_being_followed():
    system, _ = oscillator(**NUMBERS | {"amplitude": 1})
    known = family(system)
    assert set(known.parameters) == {"stiffness", "damping", "frequency"}
    stiffer = known.at("stiffness", 3.0)
    assert stiffer.member(stiffer.parameters).params == NUMBERS | {"amplitude": 1, "stiffness": 3.0}
    known.refuse_unknown("stiffness")
    with pytest.raises(
        ValueError, match="parameter 'amplitude' must be a real number, but is whole: write amplitude=1.0"
    ):
        known.refuse_unknown("amplitude")


def test_a_range_in_which_the_period_is_negative_is_refused():
    orbit = asked(period=2 * np.pi / 1.7, h=np.pi / 85)
    orbit = replace(orbit, way=orbit.way._replace(period=lambda frequency: 2 * np.pi / frequency))
    with pytest.raises(ValueError, match="period must be positive"):
        orbit.follow("frequency", (-1.0, 2.0))
