"""Bodies in space: drawn where they are, the nearer over the farther, from where the reader looks."""

import numpy as np
import pytest

from carom.reports.data import stage
from carom.reports.page import page
from carom.reports.shapes import Arrows, Circles, Drawing, Line, Solid, floor

from .browser import EMPTY, opened


@pytest.fixture(scope="module")
def bodies(tmp_path_factory):
    """A brick that turns about the vertical, a cylinder, two balls of which one hides the other, a force."""
    frames = 21
    half = np.linspace(0.0, np.pi, frames) / 2
    turning = np.stack([np.cos(half), 0 * half, 0 * half, np.sin(half)], 1)
    still = np.array([[1.0, 0.0, 0.0, 0.0]])
    shapes = [
        floor((-2.0, 2.0), (-2.0, 2.0), -1.0),
        Solid.brick(np.zeros((1, 3)), turning, (0.6, 0.3, 0.2)),
        Solid.cylinder([[1.3, 0.0, 0.0]], still, 0.2, 1.0, "green"),
        Circles([[-1.5, -1.0, 0.0]], 0.2, "orange"),
        Circles([[-1.5, 1.0, 0.0]], 0.2, "red"),
        Line(np.array([[0.0, 0.0, 0.0], [1.3, 0.0, 0.0]]), "ink"),
        Arrows(np.zeros((1, 1, 3)), np.array([[[0.0, 0.0, 1.0]]])),
    ]
    file = tmp_path_factory.mktemp("space") / "bodies.html"
    file.write_text(page(EMPTY | stage(Drawing(shapes), np.linspace(0.0, 1.0, frames))))
    with opened(file) as (view, troubles):
        yield view
        assert [text for text in troubles if "readback" not in text] == []


def seen(view, x, y, z):
    """Colour at the place of the screen where a point in space is seen."""
    return view.evaluate(
        """p => { const [x, y] = space.project(...p), r = devicePixelRatio;
             return Array.from(scene.canvas.getContext('2d').getImageData(x * r, y * r, 1, 1).data); }""",
        [x, y, z],
    )


def test_the_nearer_ball_hides_the_other_until_the_view_is_turned(bodies):
    is_orange = lambda c: c[0] > 150 and c[2] < 80 and c[1] > 60
    bodies.evaluate("Object.assign(eye, {turn: 0, lift: 0}); scene.draw()")
    assert is_orange(seen(bodies, -1.5, 1.0, 0.0))
    box = bodies.locator("#scene").bounding_box()
    middle = (box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    bodies.mouse.move(*middle)
    bodies.mouse.down()
    bodies.mouse.move(middle[0] - 150 * np.pi, middle[1], steps=3)
    bodies.mouse.up()
    assert bodies.evaluate("eye.turn") == pytest.approx(np.pi, abs=0.05)
    assert not is_orange(seen(bodies, -1.5, 1.0, 0.0))
    assert "view=" in bodies.url


def test_a_body_is_drawn_where_its_quaternion_turns_it(bodies):
    bodies.evaluate("Object.assign(eye, {turn: 0, lift: 1.5707963, x: 0, y: 0, zoom: 1})")
    background = lambda c: c[3] == 0
    for t, inside, outside in ((0.0, (0.55, 0.0), (0.0, 0.5)), (0.5, (0.0, 0.55), (0.5, 0.0))):
        bodies.evaluate(f"showAt({t})")
        assert not background(seen(bodies, *inside, 0.2)), t
        bodies.evaluate("data.drawing.filter((s) => s.kind !== 'solid').forEach((s) => { s.n = 0; })")
        bodies.evaluate("scene.draw()")
        assert background(seen(bodies, *outside, 0.2)), t
