"""Pictures of the reports of all models on four sheets: light and dark, wide and phone.

Needs Chromium and Playwright; sheets are looked at, not stored in the repository:

    python tools/contact_sheets.py out/sheets [MODEL ...]
"""

import argparse
import inspect
import os
import shutil
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import Page, sync_playwright

import carom
from carom.files.scenario import from_options
from carom.models.registry import registry

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
SHEETS = {"wide_light": (1280, False), "wide_dark": (1280, True)}
SHEETS |= {"phone_light": (390, False), "phone_dark": (390, True)}
FEWER = {"count": 125}  # bodies, of models of many
TALL = 1500  # pixels of a report that are shown
THUMBNAIL = 420
COLUMNS = 6


def report_of(model: str, folder: Path) -> Path:
    """The report of the usual run of a model; a run stored in the folder is not run again."""
    stored = folder / f"{model}.nc"
    if not stored.exists():
        many = "count" in inspect.signature(registry[model]).parameters
        plan = from_options(model, {}, FEWER if many else {}, folder)
        options = {"stepping": plan.stepping, "save_every": plan.save_every}
        carom.simulate(plan.system, plan.state, plan.method, t1=plan.t1, **options).save(stored)
    return carom.report(carom.load(stored), folder / f"{model}.html")


def photograph(page: Page, file: Path, picture: Path) -> list[str]:
    """A picture of a report in the middle of its run; returns what the console said."""
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(file.resolve().as_uri())
    page.evaluate("showAt(0.4 * whole[1] + 0.6 * whole[0])")
    overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    said += [f"{overflow} px too wide"] if overflow > 0 else []
    height = min(TALL, page.evaluate("document.documentElement.scrollHeight"))
    clip = {"x": 0, "y": 0, "width": page.viewport_size["width"], "height": height}
    page.screenshot(path=picture, full_page=True, clip=clip)
    return said


def sheet(pictures: list[Path], target: Path) -> None:
    """All pictures in rows, each under its name."""
    shown = [Image.open(path) for path in pictures]
    width = THUMBNAIL if shown[0].width > 500 else THUMBNAIL // 2
    shown = [image.resize((width, image.height * width // image.width)) for image in shown]
    columns = COLUMNS * THUMBNAIL // width
    rows = [shown[i : i + columns] for i in range(0, len(shown), columns)]
    heights = [20 + max(image.height for image in row) for row in rows]
    whole = Image.new("RGB", (columns * (width + 8), sum(heights)), "#888")
    pen = ImageDraw.Draw(whole)
    names = iter(pictures)
    for i, row in enumerate(rows):
        for j, image in enumerate(row):
            place = (j * (width + 8), sum(heights[:i]))
            pen.text((place[0] + 4, place[1] + 4), next(names).stem, fill="white")
            whole.paste(image, (place[0], place[1] + 20))
    whole.save(target)


def main() -> None:
    """Write the sheets and tell what consoles said."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="*", default=sorted(registry))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    files = [report_of(model, given.out) for model in given.models]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"), args=FLAGS
        )
        for name, (width, dark) in SHEETS.items():
            (given.out / name).mkdir(exist_ok=True)
            pictures = [given.out / name / f"{file.stem}.png" for file in files]
            for file, picture in zip(files, pictures):
                page = browser.new_page(
                    viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
                )
                for text in photograph(page, file, picture):
                    print(f"{name} {file.stem}: {text}")
                page.close()
            sheet(pictures, given.out / f"{name}.png")
            print(given.out / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
