"""Pages and parts of pages, written from the sources and from what runs have left."""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import carom
from carom.models.registry import registry, usual_runs
from making.store import ROOT, Job

#: Models with a live report of their usual run.
LIVE = (
    "woodpecker",
    "rocking_block",
    "slider_crank_clearance",
    "double_pendulum",
    "block_on_belt",
    "relief_valve",
    "chaplygin_sleigh",
    "four_bar",
    "nonlinear_string",
)
#: Items of papers that take minutes: named, not drawn.
LONG = {("studer2008", "fig2"), ("acary2012", "work_precision"), ("james2020", "fig2"), ("james2020", "fig6")}
LONG |= {("mechanisms", name) for name in carom.papers.paper("mechanisms").items}
#: Examples that take minutes: shown, not run.
LONG_EXAMPLES = ("13_identify_the_woodpecker", "14_granular_protector", "15_branch_of_a_shaken_ball")


def figure(place: str, caption: str) -> str:
    """A picture, or a report that can be played, with its caption."""
    said = escape(caption, quote=True)
    if place.endswith(".html"):
        link = f'<a href="{place}">{said}</a>: play it, drag over a plot, or open it alone.'
        frame = f'<iframe src="{place}" title="{said}" loading="lazy"></iframe>'
        return f'<figure class="live">{frame}<figcaption>{link}</figcaption></figure>\n'
    image = f'<img src="{place}" alt="{said}" loading="lazy">'
    return f"<figure>{image}<figcaption>{said}</figcaption></figure>\n"


# ---------------------------------------------------------------------------------------------------- snippets


def code_of(markdown: str) -> str:
    """The Python of a page, as its tests run it."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", markdown, re.S | re.M))


def snippets(markdown: str) -> Job | None:
    """The run of the snippets of a page, if it shows anything that they make."""
    return Job("script", (code_of(markdown),)) if "<!-- made " in markdown else None


def with_made(markdown: str, page: str) -> str:
    """Put in what was made.

    `<!-- made FILE caption -->` is what the snippets of the page have written, `<!-- item PAPER NAME caption -->` the
    figure of an item.
    """
    stem, up = Path(page).stem, "../" * page.count("/")
    markdown = re.sub(r"<!-- made (\S+) (.*?) -->", lambda m: figure(f"made/{stem}/{m[1]}", m[2]), markdown)
    return re.sub(r"<!-- item (\S+) (\S+) (.*?) -->", lambda m: figure(f"{up}papers/{m[1]}/{m[2]}.png", m[3]), markdown)


# ---------------------------------------------------------------------------------------------------- gallery


class Entry:
    """One entry of the gallery: an example, a scenario or a model, with its run."""

    def __init__(self, name: str, title: str, about: str, job: Job, code: str):
        self.name, self.title, self.about, self.job, self.code = name, title, about, job, code

    @property
    def files(self) -> list[str]:
        """Pictures first, then reports."""
        named = [p.name for p in self.job.folder.iterdir() if p.suffix in (".png", ".html") and p.name != "start.png"]
        return sorted(named, key=lambda name: (name.endswith(".html"), name))

    def page(self) -> str:
        """Its page: report, pictures, text, and what was printed."""
        reports = [name for name in self.files if name.endswith(".html")]
        pictures = [name for name in self.files if name.endswith(".png")]
        shown = [figure(f"{self.name}/{name}", f"{self.title}, the report") for name in reports]
        shown += [figure(f"{self.name}/{name}", self.title) for name in pictures]
        printed = self.job.read("output.txt")
        told = f"It prints\n\n```text\n{printed}```\n" if printed and self.job.make == "script" else ""
        return f"# {self.title}\n\n{self.about}\n\n{self.code}\n\n{told}\n" + "\n".join(shown)

    def card(self) -> str:
        """Its picture and title, linked."""
        pictures = [f"gallery/{self.name}/{name}" for name in self.files if name.endswith(".png")]
        if self.job.make == "usual":
            pictures = [f"images/models/{self.job.arguments[0]}.png"]
        image = f'<img src="{pictures[0]}" alt="" loading="lazy">' if pictures else ""
        return f'<a class="card" href="gallery/{self.name}.html">{image}<span>{escape(self.title)}</span></a>'


def examples() -> list[Entry]:
    """The scripts of `examples/`."""
    found = []
    for path in sorted((ROOT / "examples").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        title = path.stem.split("_", 1)[1].replace("_", " ")
        code = f"```python title='examples/{path.name}'\n{text}```\n"
        about = ast.get_docstring(ast.parse(text)) or ""
        make = "unrun" if path.stem in LONG_EXAMPLES else "script"
        found.append(Entry(path.stem, title, about, Job(make, (text,)), code))
    return found


def scenarios() -> list[Entry]:
    """The scenario files of `examples/scenarios`."""
    found = []
    for path in sorted((ROOT / "examples" / "scenarios").glob("*.toml")):
        whole = path.read_text(encoding="utf-8")
        first, _, text = whole.partition("\n")
        code = f"```\ncarom run examples/scenarios/{path.name}\n```\n\n```toml title='{path.name}'\n{text}```\n"
        title = path.stem.replace("_", " ")
        found.append(Entry(f"scenario_{path.stem}", title, first.lstrip("# "), scenario_job(path.stem, whole), code))
    return found


def scenario_job(name: str, text: str) -> Job:
    """The run of a scenario."""
    return Job("scenario", (name, text))


def live_models() -> list[Entry]:
    """Usual runs of models."""
    found = []
    for name in LIVE:
        code = f"```\ncarom run {name}\n```\n"
        about = f"{about_model(name)}\n\nIts [parameters](../models.md#{name})."
        found.append(Entry(f"model_{name}", name.replace("_", " "), about, Job("usual", (name,)), code))
    return found


def entries() -> dict[str, list[Entry]]:
    """The gallery by kinds."""
    return {"Models": live_models(), "Examples": examples(), "Scenario files": scenarios()}


def some_cards() -> str:
    """A row of cards."""
    return f'<div class="cards">{"".join(entry.card() for entry in live_models()[:4])}</div>\n'


def gallery() -> str:
    """All cards."""
    parts = []
    for kind, found in entries().items():
        parts.append(f'## {kind}\n\n<div class="cards">{"".join(entry.card() for entry in found)}</div>\n')
    return "\n".join(parts)


# ---------------------------------------------------------------------------------------------------- models


def about_model(name: str) -> str:
    """What a model is, from its docstring."""
    return (inspect.getdoc(registry[name]) or "").split("Args:")[0].split("Example:")[0].strip()


def models() -> str:
    """Every model by its kind: what it is, a picture, its parameters and its usual run."""
    kinds: dict[str, list[str]] = {}
    for name, build in registry.items():
        about = first_line(sys.modules[build.__module__])
        kinds.setdefault(about, []).append(name)
    parts = []
    for about, names in kinds.items():
        parts.append("## " + re.split(r": | \[|; |[.]$| \(", about)[0] + "\n")
        parts += [model(name) for name in names]
    return "\n".join(parts)


def pictures(names: list[str]) -> str:
    """Models beside each other."""
    return " ".join(f"![The start of {name}](images/models/{name}.png){{ width=230 loading=lazy }}" for name in names)


def model(name: str) -> str:
    """One model of the catalogue."""
    build = registry[name]
    system, _ = build()
    rows = "\n".join(f"| `{p.name}` | `{p.default!r}` |" for p in inspect.signature(build).parameters.values())
    usual = ", ".join(f"{key} = `{value}`" for key, value in usual_runs[name].items())
    named = {"coordinates": system.labels, "units": system.units}
    told = [f"{what} {', '.join(words)}" for what, words in named.items() if words] + [f"usual run {usual}"]
    image = f"![The start of {name}](images/models/{name}.png){{ width=420 loading=lazy }}"
    live = f"[Its usual run, alive](gallery/model_{name}.md)\n\n" if name in LIVE else ""
    table = f"| parameter | usual value |\n|---|---|\n{rows}\n" if rows else ""
    return f"### {name}\n\n{about_model(name)}\n\n{image}\n\n{'; '.join(told)}.\n\n{live}{table}"


# ---------------------------------------------------------------------------------------------------- papers


def item_jobs(key: str) -> dict[str, Job]:
    """The runs of the items of a paper."""
    return {name: Job("item", (key, name)) for name in carom.papers.paper(key).items if (key, name) not in LONG}


def paper(key: str) -> str:
    """Every item of a paper: what it shows, the table of verdicts, and carom's figure."""
    items, jobs = carom.papers.paper(key).items, item_jobs(key)
    claims = [claim for job in jobs.values() for claim in json.loads(job.read("claims.json"))]
    counts = ", ".join(
        f"{sum(c[3] == v for c in claims)} {what}"
        for v, what in (("agrees", "agree"), ("corrected", "agree once a misprint is put right"), ("differs", "differ"))
    )
    parts = [f"Of {len(claims)} printed statements {counts}.\n"] if claims else []
    for name, fn in items.items():
        about = first_line(fn)
        parts.append(f"## {name}\n\n{about}\n")
        parts.append(item(key, name, jobs[name], about) if name in jobs else f"`carom paper {key} {name}` runs it.\n")
    return "\n".join(parts)


def item(key: str, name: str, job: Job, about: str) -> str:
    """The verdicts and the figure of an item."""
    rows = ["| quantity | paper | carom | verdict | note |", "|---|---|---|---|---|"]
    for claim in json.loads(job.read("claims.json")):
        rows.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in claim)} |")
    drawn = figure(f"{key}/{name}.png", about) if (job.folder / "figure.png").exists() else ""
    return "\n".join(rows) + f"\n\n{drawn}"


# ---------------------------------------------------------------------------------------------------- notebook


def notebook_job(path: str) -> Job:
    """The run of a notebook."""
    return Job("notebook", ((ROOT / path).read_text(encoding="utf-8"),))


def notebook(path: str) -> str:
    """The cells of a notebook; `outputs` fills in what they show."""
    parts, count = [], 0
    for cell in json.loads((ROOT / path).read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
        else:
            parts.append(f"```python\n{text}\n```\n\n<!-- output {path} {count} -->")
            count += 1
    return "\n\n".join(parts)


def outputs(html: str) -> str:
    """Fill in what the cells of a notebook show."""

    def output(found: re.Match[str]) -> str:
        shown = json.loads(notebook_job(found[1]).read("outputs.json"))[int(found[2])]
        return f'<div class="output">{shown}</div>'

    return re.sub(r"<!-- output (\S+) (\d+) -->", output, html)


# ---------------------------------------------------------------------------------------------------- reference


def names(module: str) -> str:
    """The reference of what a module offers."""
    there = import_module(module)
    objects = {name: getattr(there, name) for name in getattr(there, "__all__", dir(there)) if name[0] != "_"}
    own = [name for name, x in objects.items() if of_carom(x, name) and x is not getattr(carom, name, None)]
    return "\n".join(f"::: {module}.{name}" for name in own)


def of_carom(thing: Any, name: str) -> bool:
    """Whether this is a function or class of carom under its own name."""
    return getattr(thing, "__name__", "") == name and str(getattr(thing, "__module__", "")).startswith("carom.")


def rest() -> str:
    """Public names that no other page of the reference has."""
    pages = [p.read_text(encoding="utf-8") for p in (ROOT / "docs" / "api").glob("*.md")]
    told = {name for page in pages for name in re.findall(r"^::: carom\.(\w+)$", page, re.M)}
    others = {name: getattr(carom, name) for name in carom.__all__ if name not in told and name[0] != "_"}
    listed = [f"- `carom.{name}`: {first_line(x)}" for name, x in others.items() if not callable(x)]
    return "\n".join([*listed, "", *(f"::: carom.{name}" for name, x in others.items() if callable(x))])


def first_line(thing: Any) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(thing) or "").split("\n")[0]


def site_pages() -> list[Path]:
    """The pages that are written by hand."""
    return sorted((ROOT / "docs").rglob("*.md"))
