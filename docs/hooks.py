"""Pages written at build time: the gallery from `examples/`, a paper's items, the modules of the API."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def on_page_markdown(markdown, page, config, files):
    """Fill `<!-- gallery -->`, `<!-- items KEY -->` and `<!-- modules FOLDER -->`."""
    del page, config, files
    markdown = markdown.replace("<!-- gallery -->", gallery())
    markdown = re.sub(r"<!-- modules (\w+) -->", lambda found: modules(found[1]), markdown)
    return re.sub(r"<!-- items (\w+) -->", lambda found: items(found[1]), markdown)


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
