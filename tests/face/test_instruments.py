"""The report as an instrument: values, events, keys, zoom, portraits, spectra, addresses."""

import re
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest

from carom.reports.curves import lines, space_time
from carom.reports.data import stage
from carom.reports.page import page
from carom.reports.shapes import Circles, Drawing

from .browser import EMPTY, opened

T = np.linspace(0.0, 10.0, 100_001)
X, V = np.sin(6 * np.pi * T), np.cos(6 * np.pi * T)  # three turns per second
EVENTS = np.array([1.25, 2.5, 7.0])
ROWS = [[f"{t:g}", "floor", "closes"] for t in EVENTS]
WAVE = np.exp(-((np.arange(40) - 4 * T[::100, None]) ** 2))  # four places per second


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    """A page of a made-up run of ten seconds."""
    plots = [
        lines("coordinates", T, {"x": X}, unit="m"),
        lines("velocities", T, {"x": V}, unit="m/s"),
        space_time("velocities", T[::100], WAVE),
        lines("residual", T, {"residual": 1e-12 + 0 * T}, scale="log") | {"group": "course"},
    ]
    events = {"names": ["time", "contact", "kind"], "rows": ROWS, "times": EVENTS, "count": 3}
    picture = Drawing([Circles(np.stack([X[::1000], V[::1000]], 1)[:, None], 0.1)])
    data = EMPTY | stage(picture, T[::1000]) | {"plots": plots, "events": events, "time_unit": "s"}
    data |= {"title": "made up", "evidence": [["method", "none"]], "again": [["Python", "import carom"]]}
    file = tmp_path_factory.mktemp("instruments") / "run.html"
    file.write_text(page(data))
    with opened(file) as (view, troubles):
        view.file = file
        yield view
        assert troubles == []


@pytest.fixture(autouse=True)
def from_the_start(view):
    view.evaluate("() => { link.window(...whole); link.seek(0); document.activeElement.blur(); scrollTo(0, 0); }")


def place(view, plot, t, height=0.5):
    """Where a time is on the screen in a plot."""
    view.locator(".plot canvas").nth(plot).scroll_into_view_if_needed()
    box = view.locator(".plot canvas").nth(plot).bounding_box()
    return box["x"] + view.evaluate(f"plots[{plot}].x({t})"), box["y"] + height * box["height"]


def test_values_under_the_pointer_are_those_of_the_curves_at_that_time(view):
    x, y = place(view, 0, 3.3)
    view.mouse.move(x, y)
    hover = view.evaluate("link.hover")
    assert hover == pytest.approx(3.3, abs=0.02)
    told = [float(view.locator(".plot .value").nth(i).inner_text()) for i in (0, 1)]
    assert told == pytest.approx([np.sin(6 * np.pi * hover), np.cos(6 * np.pi * hover)], abs=2e-4)
    view.mouse.move(5, 5)
    assert view.evaluate("link.hover") is None


def test_an_event_is_gone_to_by_its_row_and_by_keys(view):
    view.locator("#events button").nth(1).click()
    assert view.evaluate("link.time") == 2.5
    view.locator("#title").click()
    view.keyboard.press("n")
    assert view.evaluate("link.time") == 7.0
    view.keyboard.press("p")
    view.keyboard.press("p")
    assert view.evaluate("link.time") == 1.25


def test_keys_move_through_time_and_zoom(view):
    for key, t in (("ArrowRight", 0.1), ("Shift+ArrowRight", 0.11), ("End", 10.0), ("Home", 0.0)):
        view.keyboard.press(key)
        assert view.evaluate("link.time") == pytest.approx(t)
    view.keyboard.press("+")
    assert view.evaluate("link.range") == pytest.approx([0.0, 8.0])
    view.keyboard.press(".")
    assert view.evaluate("link.range") == pytest.approx([0.8, 8.8])
    assert view.locator("#all").is_visible()
    view.keyboard.press("0")
    assert view.evaluate("link.range") == [0.0, 10.0]
    view.keyboard.press(" ")
    assert view.evaluate("playing")
    view.keyboard.press(" ")
    assert not view.evaluate("playing")


def test_shift_drags_the_window_and_the_wheel_zooms_only_a_plot_that_was_clicked(view):
    x, y = place(view, 0, 5.0)
    view.mouse.move(x, y)
    view.mouse.wheel(0, -100)
    assert view.evaluate("link.range") == [0.0, 10.0]
    view.evaluate("scrollTo(0, 0)")
    x, y = place(view, 0, 5.0)
    view.mouse.click(x, y)
    for _ in range(5):
        view.mouse.wheel(0, -100)
    view.wait_for_function("link.range[1] - link.range[0] < 4")
    low, high = view.evaluate("link.range")
    view.keyboard.down("Shift")
    view.mouse.down()
    view.mouse.move(x - 100, y)
    view.mouse.up()
    view.keyboard.up("Shift")
    assert view.evaluate("link.range")[0] > low + 0.1
    assert np.diff(view.evaluate("link.range"))[0] == pytest.approx(high - low)


def test_the_labels_of_an_axis_stretch_it(view):
    x, y = place(view, 0, 5.0)
    view.mouse.click(x, y)
    view.mouse.move(view.locator(".plot canvas").first.bounding_box()["x"] + 10, y)
    view.mouse.wheel(0, -100)
    view.wait_for_function("plots[0].ends !== null")
    assert np.diff(view.evaluate("plots[0].ends"))[0] < 2.0
    view.mouse.dblclick(x, y)
    assert view.evaluate("plots[0].ends") is None


def test_every_row_is_drawn_in_a_window_of_few_and_every_extreme_in_a_window_of_many(view):
    view.evaluate("link.window(3.00005, 3.00305)")
    drawn = view.evaluate("toDraw(plots[0].series[0], link.range, 500)")
    assert drawn == list(range(30_000, 30_032))
    drawn = view.evaluate("toDraw(plots[0].series[0], whole, 500)")
    assert len(drawn) <= 2001
    assert np.ptp(X[drawn]) == np.ptp(X)


def test_an_address_holds_time_and_window(view):
    view.evaluate("link.window(2, 4)")
    view.evaluate("link.seek(3.25)")
    view.evaluate("remember()")
    assert view.url.split("#")[1] == "t=3.25&from=2&to=4"
    view.goto(view.file.as_uri() + "#t=7.5&from=6&to=9")
    view.reload()
    assert view.evaluate("[link.time, ...link.range]") == [7.5, 6, 9]
    assert view.inner_text("#clock") == "t = 7.5000 s"


def test_the_pace_is_told_and_playing_stays_in_the_window(view):
    assert view.inner_text("#pace") == "1 s shows 1 s"
    view.select_option("#speed", "0.1")
    assert view.inner_text("#pace") == "1 s shows 0.1 s"
    view.select_option("#speed", "4")
    view.evaluate("link.window(2, 2.05)")
    view.check("#loop")
    view.keyboard.press("Home")
    view.click("#play")
    view.wait_for_timeout(300)
    assert view.evaluate("playing && link.time >= 2 && link.time <= 2.05")
    view.click("#play")
    view.uncheck("#loop")
    view.select_option("#speed", "real")
    assert view.evaluate("pace()") == 1
    view.select_option("#speed", "1")


def test_a_spectrum_peaks_at_the_frequency_with_the_amplitude(view):
    f, amplitude = view.evaluate("(() => { const c = spectrum(plots[0].series[0], whole); return [c.x, c.y]; })()")
    assert f[np.argmax(amplitude)] == pytest.approx(3.0, abs=0.05)
    assert max(amplitude) == pytest.approx(1.0, rel=1e-3)


def test_a_portrait_is_a_circle_and_its_section_a_point(view):
    name = "plots[plots.length - 2]"
    path = view.evaluate(f"(() => {{ const c = {name}.curves()[0]; return [Array.from(c.x), Array.from(c.y)]; }})()")
    assert np.hypot(*np.array(path)) == pytest.approx(1.0, abs=1e-6)
    view.get_by_label("which points").select_option(label="coordinate: x rises through")
    points = view.evaluate(f"(() => {{ const c = {name}.curves()[0]; return [c.x, c.y]; }})()")
    assert len(points[0]) == pytest.approx(30, abs=1)
    assert np.array(points[0]) == pytest.approx(0.0, abs=1e-6)
    assert np.array(points[1]) == pytest.approx(1.0, abs=1e-5)
    view.get_by_label("which points").select_option(label="events")
    assert view.evaluate(f"Array.from({name}.curves()[0].t)") == EVENTS.tolist()


def test_a_ruler_over_place_and_time_measures_a_speed(view):
    x, _ = place(view, 2, 2.0)
    there = view.evaluate("[plots[2].area.top, plots[2].area.bottom]")
    top = view.locator(".plot canvas").nth(2).bounding_box()["y"]
    up = lambda t: top + there[1] - (4 * t) / 39 * (there[1] - there[0])
    view.keyboard.down("Alt")
    view.mouse.move(x, up(2.0))
    view.mouse.down()
    view.mouse.move(place(view, 2, 8.0)[0], up(8.0))
    spoken = view.evaluate("""() => {
      const kept = CanvasRenderingContext2D.prototype.fillText, said = [];
      CanvasRenderingContext2D.prototype.fillText = (text) => said.push(text);
      plots[2].draw();
      CanvasRenderingContext2D.prototype.fillText = kept;
      return said;
    }""")
    view.mouse.up()
    view.keyboard.up("Alt")
    speed, *words = spoken[-1].split()
    assert (float(speed), words) == (pytest.approx(4.0, rel=0.02), ["places", "per", "s"])


def test_what_is_drawn_is_named_for_those_who_do_not_see_it(view):
    labels = view.eval_on_selector_all("canvas:not([aria-hidden])", "all => all.map((c) => [c.role, c.ariaLabel])")
    assert all(role == "img" and label for role, label in labels)
    assert ["img", "coordinates over time: x from -1 to 1"] in labels
    assert view.locator("table caption").count() == view.locator("table").count()
    assert view.locator("#course-card").get_attribute("open") is None


def test_pictures_and_numbers_of_a_plot_can_be_saved(view):
    view.locator(".plot").first.hover()
    with view.expect_download() as saved:
        view.get_by_label("numbers of coordinates").click()
    text = saved.value.path().read_text().splitlines()
    assert (text[0], len(text)) == ("series,t,value", len(T) + 1)
    with view.expect_download() as saved:
        view.get_by_label("picture of coordinates").click()
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")


def test_a_plot_is_saved_as_a_drawing_with_title_labels_curve_and_legend(view):
    view.locator(".plot").first.hover()
    with view.expect_download() as saved:
        view.get_by_label("drawing of coordinates").click()
    drawing = ElementTree.parse(saved.value.path()).getroot()
    texts = [text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0].startswith("coordinates")
    assert {"-1", "0", "1", "x"} <= set(texts)
    longest = max((path.get("d") for path in drawing.iter("{http://www.w3.org/2000/svg}path")), key=len)
    assert longest.count("L") > 100


def test_a_line_to_copy_shows_the_report_in_another_page(view):
    line = view.locator("#again pre").last.text_content()
    name = unquote(re.fullmatch(r'<iframe src="(.*?)" title="(.*?)" width="100%" height="700"></iframe>', line)[1])
    assert view.url.split("#")[0].endswith(f"/{name}")


def test_it_prints_light_and_without_controls(view):
    view.evaluate("theme(true)")
    view.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert not view.evaluate("isDark()")
    view.emulate_media(media="print")
    assert not view.locator("#play").is_visible()
    assert view.locator(".plot canvas").first.is_visible()
    view.emulate_media(media="screen")
    view.evaluate("dispatchEvent(new Event('afterprint'))")
    assert view.evaluate("isDark()")
    view.evaluate("theme(false)")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(view, dark):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    view.evaluate(f"theme({str(dark).lower()})")
    view.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    found = axe.Axe().run(view).response["violations"]
    view.evaluate("theme(false)")
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
