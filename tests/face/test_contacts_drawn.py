"""Contacts in the drawing: points, forces and impacts where the columns of the run say."""

import numpy as np
import pytest

import carom
from carom.reports.drawings import draw
from carom.reports.drawings.contacts import with_contacts
from carom.reports.shapes import Arrows, Circles, Drawing, Line, Touches
from carom.systems.contact_rows import Event


class Run:
    """A made-up run of a point (x, y): free, hits the floor, slides to the right, sticks under a wall on its left."""

    floor = carom.Contacts(lambda q: q[1:], slip=lambda q: q[:1], friction=0.5)
    wall = carom.Contacts(lambda q: 2.0 + q[:1])
    system = carom.System(1.0, contacts=[floor, wall], labels=("x", "y"))
    columns = {
        "t": np.array([0.0, 1.0, 1.1, 2.0, 3.0]),
        "h": np.array([0.0, 1.0, 0.1, 0.9, 1.0]),
        "q": np.array([[0.0, 2.0], [1.0, 0.0], [1.0, 0.0], [2.0, 0.0], [2.0, 0.0]]),
        "v": np.zeros((5, 2)),
        "impulse": np.array([[0, 0, 0], [0, 0, 0], [5.0, 0, -1.0], [9.0, 0, -4.5], [10.0, 3.0, 1.0]], float),
        "mode": np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1], [0, 1, 1], [0, 0, 0]]),
        "event": np.array([[0, 0, 0], [0, 0, 0], [Event.CLOSES, 0, 0], [0, 0, 0], [0, 0, 0]]),
    }


@pytest.fixture(scope="module")
def picture():
    times = np.array([0.5, 1.05, 1.5, 2.5])
    q = np.array([[0.5, 1.0], [1.0, 0.0], [1.5, 0.0], [2.0, 0.0]])
    return with_contacts(Run, draw(None, q, {}, ("x", "y")), times, q)


def shapes(picture, kind, colour=None):
    return [s for s in picture.shapes if isinstance(s, kind) and colour in (None, s.colour)]


def test_forces_act_along_the_directions_of_the_contacts_and_impacts_are_no_forces(picture):
    (arrows,) = shapes(picture, Arrows)
    floor, wall = np.moveaxis(np.asarray(arrows.vectors), 1, 0)
    assert not floor[:2].any()
    assert floor[2, 0] / floor[2, 1] == pytest.approx(-0.5)
    assert floor[3, 1] > 0
    assert wall[3, 0] / floor[3, 1] == pytest.approx(0.3)
    assert not wall[:3].any()


def test_closed_contacts_are_dots_by_what_they_do(picture):
    (sticks,), (slips,) = shapes(picture, Circles, "green"), shapes(picture, Circles, "orange")
    assert slips.alpha[:, 0].tolist() == [0, 1, 1, 0]
    assert sticks.alpha.tolist() == [[0, 0], [0, 0], [0, 0], [1, 1]]


def test_an_impact_glows_and_fades(picture):
    (rings,) = shapes(picture, Circles, "purple")
    glow = rings.alpha[:, 0]
    assert glow[0] == glow[3] == 0
    assert glow[1] > 0.3


def test_floor_and_walls_are_drawn_where_gaps_are_zero(picture):
    walls = [np.asarray(line.points) for line in shapes(picture, Line, "grey") if line.width == 2.0]
    assert len(walls) == 1, "the wall at x = -2 is outside the picture"
    assert walls[0][:, 1] == pytest.approx(0.0, abs=1e-12)
    assert np.ptp(walls[0][:, 0]) > 1.5


def test_in_space_normal_and_both_frictions_add_up():
    floor = carom.Contacts(lambda q: q[2:], slip=lambda q: q[None, :2], friction=0.5)
    zero, up = np.zeros((2, 1, 3)), np.array([[0.0, 0.0, 1.0]])

    class Resting:
        system = carom.System(1.0, contacts=[floor])
        columns = {
            "t": np.array([0.0, 1.0]),
            "h": np.array([0.0, 1.0]),
            "q": np.zeros((2, 3)),
            "v": np.zeros((2, 3)),
            "impulse": np.array([[0.0, 0.0, 0.0], [4.0, 2.0, -1.0]]),
            "mode": np.array([[0, 0], [0, 0]]),
        }

    touches = Touches(zero, up, (np.array([[1.0, 0.0, 0.0]]), np.array([[0.0, 1.0, 0.0]])))
    ball = Drawing([Circles(zero, 0.5), Circles(zero + [1.0, 0.0, 0.0], 0.5)], touches=touches)
    (arrows,) = shapes(with_contacts(Resting, ball, np.array([0.5, 1.0]), np.zeros((2, 3))), Arrows)
    assert arrows.vectors[0, 0] / arrows.vectors[0, 0, 2] == pytest.approx([0.5, -0.25, 1.0])
