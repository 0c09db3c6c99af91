"""Everything shown is run: the Python of README and docs, the scenarios of the docs, the links between pages."""

import json
import re
from pathlib import Path

import pytest

from carom.files.scenario import read
from docs.making.runs import notebook

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)


def with_code(language):
    return [p for p in PAGES if blocks(p, language)]


def name(page):
    return page.relative_to(ROOT).as_posix()


def built(page):
    """Whether the documentation build runs the snippets of a page and shows what they make; a failure ends it."""
    return "<!-- made " in page.read_text(encoding="utf-8")


LONG = ("docs/gradients.md", "docs/mechanisms.md", "docs/orbits.md")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(p, id=name(p), marks=[pytest.mark.slow] if built(p) or name(p) in LONG else [])
        for p in with_code("python")
    ],
)
def test_the_snippets_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks(page, "python"))
    exec(compile(code, str(page), "exec"), {"__name__": "snippet"})


@pytest.mark.parametrize("page", with_code("toml"), ids=name)
def test_the_scenarios_of_a_page_are_valid(page, tmp_path):
    for i, text in enumerate(blocks(page, "toml")):
        file = tmp_path / f"{i}.toml"
        file.write_text(text)
        assert read(file, tmp_path).t1 > 0


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists()


@pytest.mark.parametrize("page", [p for p in PAGES if built(p)], ids=name)
def test_what_a_page_shows_is_written_by_its_snippets(page):
    code = "\n".join(blocks(page, "python"))
    assert all(f'"{made}"' in code for made in re.findall(r"<!-- made (\S+)", page.read_text(encoding="utf-8")))


@pytest.mark.slow
def test_the_tutorial_notebook_runs_and_shows_players_figures_and_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook((ROOT / "examples" / "tutorial.ipynb").read_text(encoding="utf-8"))
    shown = json.loads((tmp_path / "outputs.json").read_text(encoding="utf-8"))
    assert sum("<iframe" in output for output in shown) == 1
    assert sum("data:image/png" in output for output in shown) == 2
    assert sum("<table" in output for output in shown) == 3


def test_every_page_is_in_the_navigation():
    named = set(re.findall(r"[\w/]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    assert named == {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
