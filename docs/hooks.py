"""Pages and pictures made at build time: runs are carried out first, then pages are filled with what they left."""

import re
from pathlib import Path

from making import pages
from making.store import ROOT, Job, fill
from mkdocs.structure.files import File

import carom
from carom.models.registry import registry

NOTEBOOK = r"<!-- notebook (\S+) -->"
WRITTEN = {"gallery": pages.gallery, "cards": pages.some_cards, "models": pages.models, "rest": pages.rest}


def on_files(files, config):
    """Carry out all runs; add pictures, reports, and the pages of the gallery."""
    texts = {path.relative_to(ROOT / "docs"): path.read_text(encoding="utf-8") for path in pages.site_pages()}
    made = {path: job for path, text in texts.items() if (job := pages.snippets(text))}
    starts = {name: Job("start", (name,)) for name in registry}
    papers = {key: pages.item_jobs(key) for key in carom.papers.papers}
    entries = [entry for found in pages.entries().values() for entry in found]
    of_papers = [job for jobs in papers.values() for job in jobs.values()]
    notebooks = [pages.notebook_job(path) for text in texts.values() for path in re.findall(NOTEBOOK, text)]
    fill([*notebooks, *(entry.job for entry in entries), *made.values(), *of_papers, *starts.values()])

    def add(place, source):
        files.append(File.generated(config, Path(place).as_posix(), content=source))

    for name, job in starts.items():
        add(f"images/models/{name}.png", (job.folder / "start.png").read_bytes())
    for page, job in made.items():
        for name in re.findall(r"<!-- made (\S+)", texts[page]):
            add(page.parent / "made" / page.stem / name, (job.folder / name).read_bytes())
    for key, jobs in papers.items():
        for name, job in jobs.items():
            if (job.folder / "figure.png").exists():
                add(f"papers/{key}/{name}.png", (job.folder / "figure.png").read_bytes())
    for entry in entries:
        add(f"gallery/{entry.name}.md", entry.page())
        for name in entry.files:
            add(f"gallery/{entry.name}/{name}", (entry.job.folder / name).read_bytes())
    return files


def on_page_markdown(markdown, page, config, files):
    """Fill in what was made, the gallery, the models, the items of a paper and parts of the reference."""
    del config, files
    markdown = pages.with_made(markdown, page.file.src_uri)
    for mark, write in WRITTEN.items():
        if f"<!-- {mark} -->" in markdown:
            markdown = markdown.replace(f"<!-- {mark} -->", write())
    markdown = re.sub(r"<!-- pictures ([\w ]+) -->", lambda found: pages.pictures(found[1].split()), markdown)
    markdown = re.sub(NOTEBOOK, lambda found: pages.notebook(found[1]), markdown)
    markdown = re.sub(r"<!-- names ([\w.]+) -->", lambda found: pages.names(found[1]), markdown)
    return re.sub(r"<!-- items (\w+) -->", lambda found: pages.paper(found[1]), markdown)


def on_page_content(html, page, config, files):
    """Fill in what the cells of a notebook show, which is HTML already."""
    del page, config, files
    return pages.outputs(html)
