"""Branches of systems with impacts, and the woodpecker's cycle: long compilations, hence not in the default run."""

import numpy as np
import pytest

import carom
from carom.orbits.grazing import touch
from carom.orbits.return_map import image
from tests.orbits.maps import FLIP, FOLD
from tests.orbits.systems import CAPTURING, TIGHT
from tests.orbits.test_orbits import apex

pytestmark = pytest.mark.slow


def test_the_branch_of_a_shaken_ball_folds_and_flips_where_theory_says():
    ball = carom.models.shaken_ball(shaking=0.8)[0]
    orbit = carom.periodic_orbit(ball, apex(0.8), period=1.0, method=CAPTURING, stepping=TIGHT)
    branch = orbit.follow("shaking", within=(0.3, 1.2))
    found = {special.kind: special.value for special in branch.specials}
    assert found == pytest.approx({"fold": FOLD, "flip": FLIP}, abs=1e-8)
    assert np.array_equal(branch.stable, np.abs(branch.multipliers).max(axis=1) < 1)
    flipped = next(special.orbit for special in branch.specials if special.kind == "flip")
    assert np.min(np.abs(flipped.multipliers + 1)) < 1e-7


def test_an_oscillator_beside_a_stop_grazes_where_its_response_reaches_the_stop():
    numbers = {"frequency": 1.3, "damping": 0.1, "stop": 1.0, "amplitude": 0.5}
    system, state = carom.models.driven_oscillator(**numbers)
    period = 2 * np.pi / 1.3
    orbit = carom.periodic_orbit(system, state, period=period, method=CAPTURING, stepping=TIGHT)
    branch = orbit.follow("amplitude", within=(0.4, 0.9), step=0.1)
    grazing = np.sqrt((1 - 1.3**2) ** 2 + (0.1 * 1.3) ** 2)
    assert branch.specials[0].kind == "grazing"
    assert branch.specials[0].value == pytest.approx(grazing, abs=1e-5)
    assert branch.values[0] == 0.4


def beside_a_stop(q, v, phase=0.0, **numbers):
    """An orbit of two periods of the drive from about (q, v), begun at a part of the first."""
    system, _ = carom.models.driven_oscillator(**numbers)
    given = {"method": CAPTURING, "stepping": TIGHT, "period": lambda frequency: 4 * np.pi / frequency}
    orbit = carom.periodic_orbit(system, carom.State([q], [v]), **given)
    if not phase:
        return orbit
    later = orbit.run(phase * orbit.period / 2).state
    return carom.periodic_orbit(system, carom.State(later.q, later.v, phase * orbit.period / 2), **given)


STOPPED = {"mass": 1.31, "damping": 0.23, "stiffness": 0.57, "amplitude": 0.78, "frequency": 1.2}
STOPPED |= {"stop": 0.31, "restitution": 0.84}


def test_a_branch_ends_where_an_impact_comes_to_the_time_of_the_guess_and_goes_on_from_another():
    stopped = beside_a_stop(-1.67, 1.81, 0.23, **STOPPED).follow("amplitude", (0.3, 1.5), step=0.1)
    assert stopped.ends[0] == "an impact came to the time of the guess: begin at another t"
    assert stopped.q[0, 0] == pytest.approx(STOPPED["stop"], abs=1e-3)
    assert not stopped.specials
    further = beside_a_stop(-1.67, 1.81, **STOPPED).follow("amplitude", (0.3, 1.5), step=0.1)
    assert [special.kind for special in further.specials] == ["grazing", "fold"]
    w = STOPPED["frequency"]
    grazing = STOPPED["stop"] * np.hypot(STOPPED["stiffness"] - STOPPED["mass"] * w**2, STOPPED["damping"] * w)
    assert further.specials[0].value == pytest.approx(grazing, abs=2e-4)
    multipliers = further.specials[1].orbit.multipliers
    assert np.min(np.abs(multipliers - 1)) < 1e-6


def test_a_branch_that_grazes_ends_there_and_does_not_leap_to_another():
    numbers = {"damping": 0.27, "stiffness": 3.14, "amplitude": 1.29, "frequency": 1.14, "stop": 0.44}
    orbit = beside_a_stop(0.06, -0.21, restitution=0.5, **numbers)
    branch = orbit.follow("amplitude", (0.5, 2.5), step=0.1)
    (special,) = branch.specials
    assert special.kind == "grazing"
    assert abs(touch(special.orbit).clearance) < 1e-5
    assert np.all(np.diff(branch.values) > 0)
    assert {touch(orbit).impacts for orbit in branch.orbits} == {2}


def test_the_woodpecker_comes_to_its_cycle_with_the_known_period_and_multiplier():
    toy, state = carom.models.woodpecker()
    beak = carom.Event(0, "bounces")
    orbit = carom.periodic_orbit(toy, state, section=beak, method=CAPTURING, stepping=TIGHT, ignore=["y"])
    assert orbit.iterations <= 6
    assert orbit.period == pytest.approx(0.1459760651, abs=1e-8)
    assert -orbit.shift[0] == pytest.approx(0.01944537928, abs=1e-9)
    assert orbit.multipliers[0] == pytest.approx(-0.83915565, abs=1e-7)
    np.testing.assert_allclose(orbit.multipliers[1:], 0.0, atol=1e-9)
    x, nowhere = np.asarray(orbit.way.unknowns(orbit.state)), orbit.way.family.nowhere
    sizes = 3e-6 * np.maximum(np.abs(x), 0.01 * np.abs(x).max())

    def end(y):
        return image(orbit.way, y, nowhere).end

    columns = [
        (8 * (end(x + d) - end(x - d)) - (end(x + 2 * d) - end(x - 2 * d))) / (12 * d.sum()) for d in np.diag(sizes)
    ]
    assert np.abs(np.array(columns).T - orbit.jacobian).max() < 1e-6 * np.abs(orbit.jacobian).max()
