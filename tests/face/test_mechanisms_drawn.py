"""A mechanism is drawn by itself: where its bodies are, what they touch, and which way forces push."""

from types import SimpleNamespace

import numpy as np
import pytest

import carom
from carom.reports.curves import pictures, plots
from carom.reports.data import payload, picture_of, view_box
from carom.reports.drawings.assembled import assembled, corner_touches
from carom.reports.shapes import Arrows, Circles, Line, Solid, Spring, places

FRAMES = 5


def still(mechanism):
    return np.repeat(np.asarray(mechanism.state.q)[None], FRAMES, 0)


def test_rods_lead_from_centres_to_joints_and_springs_to_their_ends():
    rods = [carom.RigidBody.rod(1.0, 1.0, position=(0.5 + i, 0.0), name=f"rod {i}") for i in range(2)]
    hinges = [
        carom.joints.revolute("ground", "rod 0.left", at=(0, 0)),
        carom.joints.revolute("rod 0.right", "rod 1.left"),
    ]
    chain = carom.Mechanism(rods, hinges, springs=[carom.Spring("rod 1.right", (2.0, 1.0), stiffness=1.0)])
    picture = assembled(chain.system, still(chain))
    spring = next(s for s in picture.shapes if isinstance(s, Spring))
    np.testing.assert_allclose(spring.points[0], [[2.0, 0.0], [2.0, 1.0]], atol=1e-12)
    joints = next(s for s in picture.shapes if isinstance(s, Circles) and s.colour == "ink")
    np.testing.assert_allclose(joints.points[0], [[0.0, 0.0], [1.0, 0.0]], atol=1e-12)
    ends = np.concatenate([s.points[0, 1:] for s in picture.shapes if isinstance(s, Line)])
    assert sorted(ends[:, 0].tolist()) == pytest.approx([0.0, 1.0, 1.0, 2.0])


def test_a_box_is_a_solid_of_six_faces_seen_from_outside():
    box = carom.RigidBody.box(1.0, (0.6, 0.4, 0.2), position=(0.0, 0.0, 1.0), rotation=(0.3, 0.2, 0.1))
    falling = carom.Mechanism([box], planes=[carom.Plane((0, 0, 1))], gravity=9.81)
    solid = next(s for s in assembled(falling.system, still(falling)).shapes if isinstance(s, Solid))
    assert sorted(map(len, solid.faces)) == [4] * 6
    for face in solid.faces:
        a, b, c = (np.asarray(solid.corners)[k] for k in face[:3])
        assert np.cross(b - a, c - b) @ a > 0
    touches = corner_touches(falling.system, still(falling), 8)
    drawn = places(solid).reshape(FRAMES, 8, 3)
    assert np.sort(touches.points[..., 2], 1) == pytest.approx(np.sort(drawn[..., 2], 1))


@pytest.fixture(scope="module")
def landed():
    box = carom.RigidBody.box(1.0, (0.4, 0.2), position=(0.0, 0.2), rotation=0.3, name="box")
    falling = carom.Mechanism([box], planes=[carom.Plane((0, 1), friction=0.4, restitution=0.3)], gravity=9.81)
    return carom.simulate(*falling, carom.MoreauMidpoint(), t1=1.0, h=1e-2)


@pytest.mark.slow
def test_a_run_of_a_mechanism_shows_its_outline_its_floor_and_upward_forces(landed):
    picture = picture_of(landed, landed.t)
    low, high = np.reshape(view_box(picture), (2, 2))
    assert (low < high).all()
    outline = next(s for s in picture.shapes if isinstance(s, Line) and s.fill)
    assert np.ptp(outline.points[-1], axis=0) == pytest.approx([0.4, 0.2], abs=1e-3)
    plane = next(s for s in picture.shapes if isinstance(s, Line) and s.colour == "grey")
    assert plane.points[:, 1] == pytest.approx([0.0, 0.0])
    forces = next(s for s in picture.shapes if isinstance(s, Arrows))
    assert forces.vectors[..., 1].min() >= -1e-9
    assert (forces.vectors[-1, :, 1] > 0).sum() == 2
    assert "centres of mass" in payload(landed, 20)["caption"]


@pytest.mark.slow
def test_a_body_in_space_has_units_and_names_of_its_own_for_velocities():
    system, state = carom.models.bouncing_box()
    run = carom.simulate(system, state, carom.MoreauMidpoint(), t1=1e-3, h=5e-4)
    told = {(p["title"], p["unit"]): [s["name"] for s in p["series"]] for p in plots(run) if p["kind"] == "lines"}
    assert told["coordinates", "m"] == ["box.x", "box.y", "box.z"]
    assert told["velocities", "m/s"] == ["box.x", "box.y", "box.z"]
    assert told["velocities", "rad/s"] == ["box.spin x", "box.spin y", "box.spin z"]
    assert ("energies", "J") in told


def test_coordinates_of_bodies_are_no_places_in_a_row():
    system, state = carom.models.dominoes()
    q, v = (np.repeat(np.asarray(x)[None], 3, 0) for x in (state.q, state.v))
    columns = {"t": np.arange(3.0), "q": q, "v": v}
    assert pictures(SimpleNamespace(columns=columns, labels=system.labels, units=system.units), "dominoes") == []


def test_other_systems_are_not_taken_for_mechanisms():
    system, state = carom.models.trimer()
    assert assembled(system, np.asarray(state.q)[None]) is None
