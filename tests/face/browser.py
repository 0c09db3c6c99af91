"""A headless Chromium driven by Playwright, or a reason to skip."""

import os
import shutil
from contextlib import contextmanager

import pytest

#: What a page needs where nothing is shown.
EMPTY = {"title": "", "subtitle": "", "caption": "", "box": [0, 0, 1, 1], "events": None, "in_space": False}
EMPTY |= {name: [] for name in ("drawing", "plots", "evidence", "provenance", "again")}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def opened(path, *, width=1280, height=900, dark=False):
    """The page of a report and the list of its console errors and requests."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: the report is not opened")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed: the report is not opened")
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")
        troubles = []
        page.on("console", lambda m: troubles.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: troubles.append(str(e)))
        page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else troubles.append(r.url))
        page.goto(path.resolve().as_uri())
        try:
            yield page, troubles
        finally:
            browser.close()
