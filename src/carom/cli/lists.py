"""What there is: models, methods, steppings, papers, and the machine."""

from __future__ import annotations

import inspect
import json
import platform
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any


def first_line(thing: Any) -> str:
    """The first line of a docstring."""
    return (thing.__doc__ or "").strip().split("\n")[0]


def list_all(section: str | None, as_json: bool) -> None:
    """Models by kind, methods, steppings and papers, each with a line of what it is for."""
    import carom
    from carom.capabilities import public_methods, public_steppings

    kinds: dict[str, dict[str, str]] = {}
    for name, fn in carom.models.registry.items():
        kind = re.split(r": | \[|; |\.$| \(", first_line(sys.modules[fn.__module__]))[0]
        kinds.setdefault(f"models: {kind}", {})[name] = first_line(fn)
    sections = {
        **kinds,
        "methods": {name: first_line(c) for name, c in public_methods().items()},
        "steppings": {name: first_line(c) for name, c in public_steppings().items()},
        "papers": dict(carom.papers.papers),
    }
    names = list(dict.fromkeys(title.split(":")[0] for title in sections))
    if section is not None and section not in names:
        msg = f"there is no section '{section}'; there are {', '.join(names)}"
        raise ValueError(msg)
    shown = {title: x for title, x in sections.items() if section in (None, title.split(":")[0])}
    if as_json:
        print(json.dumps(shown, indent=1))
        return
    for title, entries in shown.items():
        tell(title, entries)


def tell(title: str, entries: dict[str, str]) -> None:
    """A table of names and lines on the terminal."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left", show_header=False, box=None, pad_edge=False)
    for name, line in entries.items():
        table.add_row(f"[bold]{escape(name)}[/]", escape(line))
    Console().print(table, "")


def show(name: str, as_json: bool, picture: Path | None) -> None:
    """What a model is: its parameters with their defaults, coordinates, laws, and its usual run."""
    import carom
    from carom.models.registry import refuse_unknown, usual_runs
    from carom.systems.features import Feature

    refuse_unknown(name)
    fn = carom.models.registry[name]
    system, state = fn()
    about = {
        "about": " ".join((inspect.getdoc(fn) or "").split("Example:")[0].split("Args:")[0].split()),
        "parameters": {p.name: repr(p.default) for p in inspect.signature(fn).parameters.values()},
        "coordinates": ", ".join(system.labels) or f"{state.q.size}, not named",
        "units": ", ".join(system.units) or "none",
        "it has": ", ".join(feature for feature in Feature if feature in system.features) or "a potential only",
        "usual run": {key: str(value) for key, value in usual_runs[name].items()},
    }
    if as_json:
        print(json.dumps(about, indent=1))
    else:
        tell(name, {key: value for key, value in about.items() if isinstance(value, str)})
        for key in ("parameters", "usual run"):
            tell(key, about[key])
        print(f"carom run {name}")
    if picture is not None:
        from carom.reports.film import still

        print(still(system, state, picture))


def doctor() -> None:
    """Versions, device, float64 and compilation cache."""
    import jax
    from rich.console import Console

    console = Console()
    for package in ("carom", "jax", "jaxlib", "equinox", "numpy", "xarray"):
        console.print(f"{package:10} {metadata.version(package)}")
    console.print(f"{'python':10} {platform.python_version()}")
    console.print(f"{'device':10} {', '.join(str(d) for d in jax.devices())}")
    console.print(f"{'float64':10} {'on' if jax.config.read('jax_enable_x64') else 'off: set CAROM_X64=1'}")
    console.print(f"{'cache':10} {getattr(jax.config, 'jax_compilation_cache_dir') or 'off'}")
