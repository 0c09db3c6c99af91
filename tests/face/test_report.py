"""The report: one file, no network, everything recorded is in it, and it plays in a browser."""

import json
import re

import numpy as np
import pytest

import carom
from carom.reports.curves import extremes, modes
from carom.reports.data import events, payload
from carom.reports.page import _asset, page

from .browser import opened


@pytest.fixture(scope="module")
def cradle():
    return carom.simulate(*carom.models.newtons_cradle(5, stiffness=13.115), carom.TailoredTheta(), t1=60.0, h=0.5)


@pytest.fixture(scope="module")
def file(cradle, tmp_path_factory):
    return carom.report(cradle, tmp_path_factory.mktemp("report") / "cradle.html")


def data_of(path):
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(), re.S)[1])


def test_the_file_is_small_and_names_nothing_on_the_network(file):
    text = file.read_text()
    assert len(text) < 1_000_000
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", text)
    assert "http" not in text.replace("http-equiv", "")
    assert list(file.parent.iterdir()) == [file]


def test_the_report_shows_coordinates_energies_steps_and_evidence(file):
    data = data_of(file)
    assert [p["title"] for p in data["plots"]][:3] == ["coordinates", "velocities", "energies"]
    assert {"step size", "residual"} <= {p["title"] for p in data["plots"]}
    assert {"method", "steps", "energy", "worst residual"} <= {row[0] for row in data["evidence"]}
    assert ["stiffness", "13.115"] in data["provenance"]


def test_a_stored_run_gives_the_same_report_as_the_solution(cradle, file, tmp_path):
    cradle.save(tmp_path / "run.nc")
    stored = data_of(carom.report(carom.load(tmp_path / "run.nc"), tmp_path / "run.html"))
    fresh = data_of(file)
    assert stored["plots"] == fresh["plots"]
    assert stored["drawing"] == fresh["drawing"]
    assert stored["arrays"] == fresh["arrays"]
    assert stored["evidence"] == fresh["evidence"]
    assert {"command", "created"} <= {row[0] for row in stored["provenance"]}


def test_a_run_of_user_functions_is_reported_without_its_system(tmp_path):
    system = carom.System(1.0, lambda q: 0.5 * q @ q, labels=("x",), units="m")
    carom.simulate(system, carom.State([1.0], [0.0]), carom.Theta(), t1=1.0, h=0.1).save(tmp_path / "run.nc")
    data = data_of(carom.report(carom.load(tmp_path / "run.nc"), tmp_path / "run.html"))
    titles = [p["title"] for p in data["plots"]]
    assert "energies" not in titles
    assert data["plots"][0]["unit"] == "m"
    assert data["plots"][0]["series"][0]["name"] == "x"


def test_thinning_keeps_every_peak():
    values = np.zeros(100_000)
    values[[1234, 77_777]] = 5.0, -3.0
    kept = extremes(values)
    assert len(kept) < 2000
    assert {0, 1234, 77_777, 99_999} <= set(kept.tolist())


def test_the_mode_diagram_has_a_strip_per_stretch_of_equal_mode():
    t = np.arange(6.0)
    strips = modes(t, np.array([[1, 0], [1, 0], [0, 0], [0, -1], [1, -1], [1, -1]]))["strips"]
    assert strips[0] == [[0.0, 2.0, 1], [2.0, 4.0, 0], [4.0, 5.0, 1]]
    assert strips[1] == [[0.0, 3.0, 0], [3.0, 5.0, -1]]


def recorded(cradle):
    """A run with contacts, as the contact methods record them."""
    n = len(cradle)
    mode = np.where(np.arange(n)[:, None] % 20 < 10, 1, [[0, -1]])
    columns = cradle.columns | {"impulse": np.ones((n, 2)), "mode": mode, "order": np.full(n, 4)}
    sol = carom.Solution(cradle.system, cradle.method, cradle.stepping, columns, cradle.carry, cradle.timing)
    kinds = [("time", float), ("contact", int), ("kind", "U8")]
    sol.events = np.rec.array([(0.25, 0, "closes"), (1.5, 1, "slips")], dtype=kinds)
    return sol


def test_contact_forces_modes_orders_and_events_are_shown(cradle, tmp_path):
    data = payload(recorded(cradle), 50)
    assert {"contact forces", "modes of the contact laws", "order"} <= {p["title"] for p in data["plots"]}
    assert events(recorded(cradle))["rows"] == [["0.25", "0", "closes"], ["1.5", "1", "slips"]]
    file = tmp_path / "contacts.html"
    file.write_text(page(data))
    with opened(file) as (view, troubles):
        assert view.locator("#events tr").count() == 3
        assert view.locator("#modes span").all_inner_texts() == ["law 0 open or slips", "law 1 open or slips"]
        view.evaluate("showAt(0.3 * whole[1])")
        assert view.locator("#modes span").all_inner_texts() == ["law 0 closed or sticks", "law 1 slips −"]
        assert view.locator(".plot").count() == len(data["plots"]) + 2, "and phase portrait and spectrum"
        assert troubles == []


def test_labels_cannot_break_out_of_the_page(tmp_path):
    nasty = "</script><b onclick=alert(1)>&"
    system = carom.System(1.0, lambda q: 0.5 * q @ q, labels=(nasty,))
    sol = carom.simulate(system, carom.State([1.0], [0.0]), carom.Theta(), t1=1.0, h=0.1)
    file = carom.report(sol, tmp_path / "run.html", title=nasty)
    assert data_of(file)["title"] == nasty
    assert file.read_text().count("</script>") == _asset("page.html").count("</script>")


def test_no_text_of_a_run_is_read_as_html_or_filled_in_again(tmp_path):
    nasty = "<!--<script> {{data}} {{plots.js}}"
    system = carom.System(1.0, lambda q: 0.5 * q @ q, labels=(nasty, nasty), units=nasty)
    sol = carom.simulate(system, carom.State([1.0, 2.0], [0.0, 0.0]), carom.Theta(), t1=1.0, h=0.1)
    file = carom.report(sol, tmp_path / "run.html", title=nasty)
    data = data_of(file)
    assert data["title"] == nasty
    assert [line["name"] for line in data["plots"][0]["series"]] == [f"{nasty} (1)", f"{nasty} (2)"]
    assert "<!--" not in file.read_text()


@pytest.mark.parametrize("frames", [1, 2.5, "many"])
def test_a_wrong_number_of_frames_is_refused(cradle, tmp_path, frames):
    with pytest.raises(ValueError, match="frames must be a whole number of at least 2"):
        carom.report(cradle, tmp_path / "run.html", frames=frames)
    assert not list(tmp_path.iterdir())


PIXELS = "document.getElementById('scene').toDataURL()"


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        pytest.param(1280, False, id="wide"),
        pytest.param(1280, True, id="dark", marks=pytest.mark.slow),
        pytest.param(390, False, id="phone", marks=pytest.mark.slow),
    ],
)
def test_the_report_plays_scrubs_and_fits_in_a_browser(file, width, dark):
    with opened(file, width=width, dark=dark) as (view, troubles):
        assert view.evaluate("document.documentElement.scrollWidth") <= width
        assert view.evaluate("document.documentElement.classList.contains('dark')") is dark
        first = view.evaluate(PIXELS)
        view.click("#play")
        view.wait_for_function("link.time > 0.5")
        view.click("#play")
        stopped = view.evaluate(PIXELS)
        assert stopped != first
        clock = view.inner_text("#clock")
        view.wait_for_timeout(120)
        assert view.inner_text("#clock") == clock
        view.evaluate("e => { e.value = 40; e.dispatchEvent(new Event('input')); }", view.query_selector("#scrub"))
        assert view.evaluate(PIXELS) not in (first, stopped)
        assert view.inner_text("#clock") != clock
        view.select_option("#speed", "4")
        view.locator("#again button").first.click()
        assert view.evaluate("getSelection().toString()").startswith("import carom")
        view.click("#theme")
        assert view.evaluate("document.documentElement.classList.contains('dark')") is not dark
        assert troubles == []


def test_plots_are_linked_to_the_animation(file):
    with opened(file) as (view, troubles):
        plot = view.locator(".plot canvas").nth(1)
        box = plot.bounding_box()
        before = view.inner_text("#clock")
        view.mouse.click(box["x"] + 0.7 * box["width"], box["y"] + 0.5 * box["height"])
        assert view.inner_text("#clock") != before
        view.mouse.wheel(0, -300)
        view.wait_for_function("link.range[1] - link.range[0] < 0.95 * (times[last] - times[0])")
        view.locator(".legend button").first.click()
        assert view.locator(".legend [aria-pressed=false]").count() == 1
        assert troubles == []
