"""A paper's figures and tables, with verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from carom.cli.lists import first_line


def paper(key: str, item: str | None, out: Path) -> None:
    """Reproduce a paper's figures and tables, or those of all papers."""
    import carom

    if key == "all":
        if item is not None:
            msg = f"'carom paper all' takes no item, got '{item}'"
            raise ValueError(msg)
        table_of_papers({name: paper_claims(name, None, out) for name in carom.papers.papers})
    else:
        paper_claims(key, item, out)


def paper_claims(key: str, item: str | None, out: Path) -> dict[str, list[Any]]:
    """Run the items of a paper, print their claims, save their figures; returns the claims by item."""
    from rich.console import Console
    from rich.table import Table

    import carom

    items = carom.papers.paper(key).items
    if item is not None and item not in items:
        msg = f"{key} has no item '{item}'; it has {', '.join(items)}"
        raise ValueError(msg)
    found = {}
    for name in [item] if item else items:
        found[name], figure = items[name]()
        table = Table("quantity", "paper", "carom", "verdict", "note", title=f"{key} {name}: {first_line(items[name])}")
        for claim in found[name]:
            shown = [f"{x:.7g}" if isinstance(x, float) else str(x) for x in (claim.paper, claim.carom)]
            table.add_row(claim.what, *shown, claim.verdict, claim.note, style=None if claim.agrees else "yellow")
        Console().print(table)
        if figure is not None:
            out.mkdir(parents=True, exist_ok=True)
            figure.savefig(out / f"{key}_{name}.png", dpi=150)
            print(out / f"{key}_{name}.png")
    return found


def table_of_papers(found: dict[str, dict[str, list[Any]]]) -> None:
    """One row per paper: items, claims, and how many were reproduced, corrected or differ."""
    from rich.console import Console
    from rich.table import Table

    verdicts = ("agrees", "corrected", "differs")
    table = Table("paper", "items", "claims", "reproduced", "corrected", "differing", title="all papers")
    for key, items in found.items():
        claims = [claim for each in items.values() for claim in each]
        counts = [str(sum(c.verdict == verdict for c in claims)) for verdict in verdicts]
        table.add_row(key, str(len(items)), str(len(claims)), *counts)
    Console().print(table)
