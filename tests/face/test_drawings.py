"""Drawings: every model's shapes are finite, move, and stand where the mechanics says."""

import numpy as np
import pytest

import carom
from carom.reports.data import view_box
from carom.reports.drawings import draw, register
from carom.reports.shapes import COLOURS, Circles, Line, Solid, Spring, framed

from .synthetic import COORDINATES, motion


def test_every_drawing_has_a_synthetic_motion_and_every_model_a_drawing():
    assert set(COORDINATES) == set(register)
    assert set(carom.models.registry) <= set(register)
    assert all(getattr(carom.models, name) is model for name, model in carom.models.registry.items())


@pytest.mark.parametrize("model", sorted(COORDINATES))
def test_a_drawing_moves_inside_a_finite_box(model):
    q = motion(model)
    picture = draw(model, q, {})
    low, high = np.array(view_box(picture)).reshape(2, 3 if picture.in_space else 2)
    assert np.isfinite([low, high]).all()
    assert (low < high).all()
    each = [s.position[:, None] if isinstance(s, Solid) else framed(s.points) for s in picture.shapes]
    moving = [points for points in each if len(points) > 1]
    assert all(len(points) == len(q) for points in moving)
    assert any(np.nanmax(np.abs(points - points[0])) > 0 for points in moving)
    assert all(s.colour in COLOURS for s in picture.shapes)


def test_touching_beads_touch_and_overlaps_are_shaded():
    q = np.array([[0.0, 0.0, 0.0], [0.5, 0.0, 0.0]])
    (beads,) = draw("trimer", q, {}).shapes
    assert isinstance(beads, Circles)
    distance = np.diff(beads.points[..., 0], axis=1)
    reach = beads.radius[:-1] + beads.radius[1:]
    assert distance[0] == pytest.approx(reach)
    assert distance[1, 0] == pytest.approx(reach[0] - 0.5)
    assert beads.shade[1].tolist() == [1.0, 1.0, 0.0]
    assert not beads.shade[0].any()


def test_the_bars_of_the_squeezer_have_their_lengths_at_the_start():
    angles = (-0.0617138900142764, 0.0, 0.4552798191630704, 0.2226683901658859)
    q = np.array([[*angles, 0.4873649795438426, -0.2226683901658859, 1.2305474445498212]] * 2)
    lines = [s.points for s in draw("andrews_squeezer", q, {}).shapes if isinstance(s, Line)]
    lengths = [np.linalg.norm(np.diff(points[0], axis=0), axis=1) for points in lines]
    assert lengths[0] == pytest.approx([0.007, 0.028])
    assert lengths[1][0] == pytest.approx(0.035)
    assert lengths[2] == pytest.approx([0.04, 0.02])
    assert lengths[3] == pytest.approx([0.04, 0.02])


def test_the_four_bar_closes_on_the_ground():
    cosine = (2.0**2 + 4.0**2 - 2.5**2) / (2 * 2.0 * 4.0)
    coupler = np.arccos(cosine)
    q = np.array([[0.0, coupler, np.arctan2(-4 * np.sin(coupler), 2 - 4 * cosine)]] * 2)
    bars = draw("four_bar", q, {}).shapes[1]
    assert bars.points[0, -1] == pytest.approx([3.0, 0.0], abs=1e-12)


def test_the_corners_of_a_rocking_block_match_its_gaps():
    a, b, phi = 0.0125, 0.05, -0.14
    q = np.array([[0.0, -a * np.sin(phi) * -1 + b * np.cos(phi), phi]] * 2)
    outline = draw("rocking_block", q, {}).shapes[1].points[0]
    lower_left = q[0, 1] - a * np.sin(phi) - b * np.cos(phi)
    lower_right = q[0, 1] + a * np.sin(phi) - b * np.cos(phi)
    assert outline[:2, 1] == pytest.approx([lower_left, lower_right])


def test_the_beak_touches_the_pole_where_its_gap_closes():
    beak_angle = (0.010 + 0.015 - 0.0201 - 0.0025) / 0.02
    q = np.array([[0.0, 0.0, beak_angle]] * 2)
    beak = draw("woodpecker", q, {}).shapes[6].points[0, -1]
    assert beak[0] == pytest.approx(0.0025, abs=1e-3)


def test_a_system_nobody_has_drawn_is_drawn_as_bars():
    q = np.linspace(0, 1, 30)[:, None] * np.arange(1000)
    picture = draw(None, q, {})
    assert picture.caption == "coordinates as bars"
    assert max(framed(s.points).shape[1] for s in picture.shapes) <= 600


def test_springs_and_fixed_shapes_keep_their_ends():
    shapes = draw("impact_oscillator", motion("impact_oscillator"), {}).shapes
    spring = next(s for s in shapes if isinstance(s, Spring))
    assert np.ptp(spring.points[:, 0], axis=0) == pytest.approx([0.0, 0.0])
    assert np.ptp(spring.points[:, 1, 0]) > 0


@pytest.mark.parametrize("model", ["newtons_cradle", "impact_oscillator", "super_ball"])
def test_films_paint_the_same_shapes(model):
    from matplotlib.figure import Figure

    from carom.reports.film import paint

    axes = Figure().subplots()
    for shape in draw(model, motion(model), {}).shapes:
        paint(axes, shape, 7)
    assert len(axes.lines) + len(axes.collections) >= 3


@pytest.mark.slow
def test_every_drawing_shows_and_moves_in_a_browser(tmp_path):
    from carom.reports.data import stage
    from carom.reports.page import page

    from .browser import EMPTY, opened

    texts = {}
    for model in register:
        q = motion(model, 9)
        picture = draw(model, q, {})
        texts[model] = page(EMPTY | {"title": model} | stage(picture, np.linspace(0, 1, 9)))
    file = tmp_path / "drawing.html"
    file.write_text(texts["trimer"])
    with opened(file, width=500, height=400) as (view, troubles):
        for model, text in texts.items():
            file.write_text(text)
            view.goto(file.as_uri())
            frames = {view.evaluate(f"showAt({t}), scene.canvas.toDataURL()") for t in (0, 0.375, 1)}
            assert len(frames) == 3, model
            assert troubles == [], model
