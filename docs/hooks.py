"""Pages written at build time: gallery and models with their pictures, a paper's items, the modules of the API."""

import ast
import inspect
import re
import sys
import tempfile
from pathlib import Path

from mkdocs.structure.files import File

from carom.models.registry import registry, usual_runs
from carom.reports.film import still

ROOT = Path(__file__).parents[1]


def on_page_markdown(markdown, page, config, files):
    """Fill `<!-- gallery -->`, `<!-- models -->`, `<!-- pictures NAMES -->`, `<!-- items KEY -->`, modules."""
    del page, config, files
    markdown = markdown.replace("<!-- gallery -->", gallery())
    markdown = markdown.replace("<!-- models -->", models())
    markdown = re.sub(r"<!-- pictures ([\w ]+) -->", lambda found: pictures(found[1].split()), markdown)
    markdown = re.sub(r"<!-- modules (\w+) -->", lambda found: modules(found[1]), markdown)
    return re.sub(r"<!-- items (\w+) -->", lambda found: items(found[1]), markdown)


def on_files(files, config):
    """A picture of the start of every model."""
    with tempfile.TemporaryDirectory() as folder:
        for name, build in registry.items():
            path = still(*build(), Path(folder) / f"{name}.png")
            files.append(File.generated(config, picture(name), content=path.read_bytes()))
    return files


def picture(name: str) -> str:
    """Where the picture of a model stands."""
    return f"images/models/{name}.png"


def pictures(names: list[str]) -> str:
    """Models beside each other."""
    return " ".join(f"![The start of {name}]({picture(name)}){{ width=230 loading=lazy }}" for name in names)


def models() -> str:
    """Every model by its kind: what it is, a picture, its parameters and its usual run."""
    kinds: dict[str, list[str]] = {}
    for name, build in registry.items():
        about = (inspect.getdoc(sys.modules[build.__module__]) or "").split("\n")[0]
        kinds.setdefault(about, []).append(name)
    parts = []
    for about, names in kinds.items():
        parts.append(f"## {re.split(r': | [[]|; |[.]$| [(]', about)[0]}\n")
        parts += [model(name) for name in names]
    return "\n".join(parts)


def model(name: str) -> str:
    """One model of the catalogue."""
    build = registry[name]
    system, _ = build()
    about = (inspect.getdoc(build) or "").split("Args:")[0].split("Example:")[0].strip()
    rows = "\n".join(f"| `{p.name}` | `{p.default!r}` |" for p in inspect.signature(build).parameters.values())
    usual = ", ".join(f"{key} = `{value}`" for key, value in usual_runs[name].items())
    named = {"coordinates": system.labels, "units": system.units}
    told = [f"{what} {', '.join(words)}" for what, words in named.items() if words] + [f"usual run {usual}"]
    image = f"![The start of {name}]({picture(name)}){{ width=420 loading=lazy }}"
    table = f"| parameter | usual value |\n|---|---|\n{rows}\n" if rows else ""
    return f"### {name}\n\n{about}\n\n{image}\n\n{'; '.join(told)}.\n\n{table}"


def modules(folder: str) -> str:
    """The reference of every module of a folder of the package."""
    names = sorted(p.stem for p in (ROOT / "src" / "carom" / folder).glob("*.py") if p.stem != "__init__")
    return "\n".join(f"::: carom.{folder}.{name}" for name in names)


def gallery() -> str:
    """Every example and every scenario: its first line, then its text."""
    parts = []
    for path in sorted((ROOT / "examples").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        title = path.stem.split("_", 1)[1].replace("_", " ")
        parts.append(
            f"## {title}\n\n{ast.get_docstring(ast.parse(text))}\n\n```python title='{path.name}'\n{text}```\n"
        )
    for path in sorted((ROOT / "examples" / "scenarios").glob("*.toml")):
        first, _, text = path.read_text(encoding="utf-8").partition("\n")
        parts.append(f"## {path.stem.replace('_', ' ')} (scenario)\n\n{first.lstrip('# ')}\n\n```toml\n{text}```\n")
    return "\n".join(parts)


def items(key: str) -> str:
    """The items of a paper with the first line of their docstrings, read without importing anything."""
    folder = ROOT / "src" / "carom" / "papers"
    sources = sorted((folder / key).glob("*.py")) if (folder / key).is_dir() else [folder / f"{key}.py"]
    lines = {}
    names: list[str] = []
    for source in sources:
        for node in ast.parse(source.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                lines[node.name] = (ast.get_docstring(node) or "").split("\n")[0]
            if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "items":
                names = [n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)]
    rows = "\n".join(f"| `{name}` | {lines[name]} |" for name in names if name in lines)
    return f"| item | what it shows |\n|---|---|\n{rows}\n"
