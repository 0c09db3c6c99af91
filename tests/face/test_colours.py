"""Colours of lines: apart from each other and from the page, also for those who see fewer of them."""

import itertools
import re
from importlib import resources

import numpy as np
import pytest

from carom.plots.style import COLOURS, CYCLE

# What is left of linear red, green and blue without one kind of cones [Machado, Oliveira, Fernandes 2009].
SEEN = {
    "all cones": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
LINES = ("blue", "orange", "green", "purple", "red", "cyan", "ink")


def palettes():
    text = (resources.files("carom.reports") / "assets" / "page.css").read_text("utf-8")
    light, dark = text.split(":root.dark")
    return {"light": dict(re.findall(r"--(\w+): (#\w+)", light)), "dark": dict(re.findall(r"--(\w+): (#\w+)", dark))}


def linear(colour):
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    xyz = XYZ @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(a, b):
    low, high = sorted(float(XYZ[1] @ linear(c)) for c in (a, b))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_stay_apart_for_everybody_and_from_the_page(theme):
    colours = palettes()[theme]
    assert min(contrast(colours[name], colours["card"]) for name in LINES) > 3.0
    assert min(contrast(colours[name], colours["card"]) for name in ("text", "faint", "link")) > 4.5
    for kind, left in SEEN.items():
        seen = {name: lab(np.array(left) @ linear(colours[name])) for name in LINES}
        assert min(np.linalg.norm(seen[a] - seen[b]) for a, b in itertools.combinations(LINES, 2)) > 18.0, kind


def test_figures_and_films_have_the_colours_of_the_light_page():
    light = palettes()["light"]
    assert {name: light[name] for name in COLOURS} == COLOURS
    assert [COLOURS[name] for name in LINES] == CYCLE
