"""A mass that slides on a table under a force that stops at a declared instant [Studer2008 sec. 10.2]."""

import numpy as np
import pytest


def test_velocity_when_the_force_stops(sliding):
    at_jump = np.flatnonzero(sliding.t == 3.0)
    np.testing.assert_allclose(sliding.v[at_jump[-1]], [-1.324693095, -0.132469340], atol=1e-8)


def test_place_where_the_mass_comes_to_rest(sliding):
    np.testing.assert_allclose(sliding.q[-1], [-1.711878974, -0.298770869], atol=1e-7)


def test_instant_at_which_it_sticks(sliding):
    events = sliding.events
    assert [(e.contact, e.kind) for e in events] == [(0, "sticks")]
    assert events.time[0] == pytest.approx(3.665650044, abs=2e-6)


def test_friction_stays_on_its_circle_while_sliding(sliding):
    slips = sliding.mode[1:, 0] == 1
    size = np.linalg.norm(sliding.force[1:], axis=1)
    assert slips.sum() > 10
    np.testing.assert_allclose(size[slips & (sliding.h[1:] < 1e-3)], 2.0, rtol=1e-6)
