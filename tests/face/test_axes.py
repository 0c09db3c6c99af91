"""Axes: what a label says is what the curve has at that height."""

import numpy as np
import pytest

from carom.reports.curves import extremes, lines
from carom.reports.page import page

from .browser import EMPTY, opened

T = np.linspace(0.0, 1.0, 41)
CURVES = {
    "constant step": (np.full(41, 2e-5), "log"),
    "steps of all sizes": (np.geomspace(3e-9, 0.7, 41), "log"),
    "residuals below 1e-18, some exactly zero": (np.where(T < 0.3, 0.0, np.geomspace(4e-21, 3e-19, 41)), "log"),
    "a short log axis": (np.geomspace(2e-7, 2.5e-7, 41), "log"),
    "nothing but zeros": (np.zeros(41), "log"),
    "around zero": (np.sin(9 * T), "linear"),
    "far from zero": (1234.0 + 1e-3 * T, "linear"),
    "small numbers": (1.05e-4 + 3e-6 * T, "linear"),
    "rounding errors of a constant": (0.1 + 1e-17 * np.arange(41), "linear"),
    "with a gap": (np.where(abs(T - 0.5) < 0.1, np.nan, 5e7 * T), "linear"),
}
DRAWN = """i => {
  const proto = CanvasRenderingContext2D.prototype, kept = {}, texts = [], path = [];
  for (const name of ["fillText", "moveTo", "lineTo", "fillRect"]) {
    kept[name] = proto[name];
    proto[name] = function (...a) {
      if (name === "fillText" && this.textAlign === "right" && a[1] < plots[i].area.left) texts.push([a[0], a[2] - 4]);
      if (name !== "fillText" && this.lineWidth > 1.3) path.push(a);
      return kept[name].apply(this, a);
    };
  }
  plots[i].painted = "";
  plots[i].draw();
  Object.assign(proto, kept);
  return [texts, path.filter((a) => a.length === 2).map((a) => a[1]), plots[i].canvas.clientHeight];
}"""


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    plots = [lines(name, T, {name: y}, scale=scale) for name, (y, scale) in CURVES.items()]
    data = EMPTY | {"times": T, "plots": plots}
    file = tmp_path_factory.mktemp("axes") / "axes.html"
    file.write_text(page(data))
    with opened(file) as (view, troubles):
        yield view
        assert troubles == []


@pytest.mark.parametrize("name", CURVES)
def test_the_curve_stands_where_the_labels_say(view, name):
    y, scale = CURVES[name]
    texts, path, height = view.evaluate(DRAWN, list(CURVES).index(name))
    marks = np.array([[float(text), place] for text, place in texts])
    y, path = y[np.isfinite(y)], np.array(path)
    if scale == "log":
        assert (marks[marks[:, 0] == 0, 1] == path[: np.sum(y == 0)]).all()
        marks, path, y = marks[marks[:, 0] > 0], path[np.sum(y == 0) :], np.log10(y[y > 0])
        marks[:, 0] = np.log10(marks[:, 0])
    assert len(marks) >= 2
    assert len(path) == len(y)
    slope, start = np.polyfit(marks[:, 0] - marks[0, 0], marks[:, 1], 1)
    assert slope * (marks[:, 0] - marks[0, 0]) + start == pytest.approx(marks[:, 1], abs=0.3)
    assert slope * (y - marks[0, 0]) + start == pytest.approx(path, abs=0.3)
    assert ((path >= 0) & (path <= height)).all()


PIXELS = """i => {
  const plot = plots[i], {width, height} = plot.layer, area = plot.area, columns = {};
  plot.draw();
  const pen = document.createElement("canvas").getContext("2d");
  pen.fillStyle = plot.hueOf(0);
  pen.fillRect(0, 0, 1, 1);
  const ink = pen.getImageData(0, 0, 1, 1).data;
  const seen = plot.layer.getContext("2d").getImageData(0, 0, width, height).data;
  const far = (k) => [0, 1, 2].reduce((sum, j) => sum + Math.abs(seen[k + j] - ink[j]), 0);
  for (let x = Math.ceil(area.left); x < area.right; x++) {
    columns[x] = [];
    for (let y = 0; y < area.bottom; y++) {
      const k = 4 * (y * width + x);
      if (seen[k + 3] > 99 && far(k) < 120) columns[x].push(y + 0.5);
    }
  }
  return [plot.axis.marks.map((v) => [v, plot.y(v)]), columns, [area.left, area.right], devicePixelRatio];
}"""


@pytest.mark.parametrize("name", ["steps of all sizes", "a short log axis", "around zero", "small numbers"])
def test_the_pixels_of_the_curve_at_a_tick_lie_beside_its_label(view, name):
    y, _ = CURVES[name]
    texts, _, _ = view.evaluate(DRAWN, list(CURVES).index(name))
    labels = {float(text): place for text, place in texts}
    marks, columns, (left, right), ratio = view.evaluate(PIXELS, list(CURVES).index(name))
    assert ratio == 1
    rising = y if name != "around zero" else y[: np.argmax(y) + 1]
    looked = 0
    for value, place in marks:
        assert labels[value] == pytest.approx(place, abs=1e-9)
        if rising[0] <= value <= rising[-1]:
            log = name in ("steps of all sizes", "a short log axis")
            scale = np.log10 if log else np.asarray
            t = np.interp(scale(value), scale(rising), T[: len(rising)])
            column = int(np.clip(left + t * (right - left), np.ceil(left), right - 1))
            rows = np.array(columns[str(column)])
            assert np.min(np.abs(rows - place)) <= 1.0, (value, place, rows)
            looked += 1
    assert looked


def test_labels_spell_the_very_numbers_of_their_ticks_and_are_neither_few_nor_many(view):
    rng = np.random.default_rng(5)
    low = rng.normal(size=200) * 10.0 ** rng.uniform(-12, 12, 200)
    high = low + abs(low) * 10.0 ** rng.uniform(-6, 3, 200)
    p, q = np.sort(rng.uniform(-22, 9, (2, 200)), axis=0)
    spelt = "pairs => pairs.map(([a, b]) => FIND.map((v) => [v, label(v)]))"
    linear = view.evaluate(spelt.replace("FIND", "ticks(a, b, 4)"), np.stack([low, high], 1).tolist())
    powers = view.evaluate(spelt.replace("FIND", "logTicks(a, b)"), np.stack([p, np.maximum(q, p + 1.2)], 1).tolist())
    for a, b, found in zip(low, high, linear):
        assert 2 <= len(found) <= 11, (a, b)
        assert all(float(text) == value for value, text in found)
        assert all(a - 1e-6 * (b - a) <= value <= b + 1e-6 * (b - a) for value, _ in found)
    for found in powers:
        assert 2 <= len(found) <= 9
        assert all(float(text) == value for value, text in found)


def test_a_window_between_two_points_shows_the_line_between_them(view):
    i = list(CURVES).index("around zero")
    low, high = view.evaluate("i => { link.zoom(0.51, 0.01); return plots[i].heights(); }", i)
    left, right = view.evaluate("link.range")
    view.evaluate("link.zoom(0, Infinity)")
    seen = np.interp(np.linspace(left, right, 5), T, CURVES["around zero"][0])
    assert low <= seen.min() < seen.max() <= high
    assert high - low < 1.2 * np.ptp(seen)


def test_thinning_looks_past_what_is_not_finite():
    values = np.sin(np.arange(50_000.0))
    values[::7] = np.nan
    values[123] = 9.0
    kept = extremes(values)
    assert 123 in kept
    assert np.isfinite(values[kept[1:-1]]).all()
