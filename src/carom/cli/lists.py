"""What there is: models, methods, steppings, papers, and the machine."""

from __future__ import annotations

import inspect
import json
import platform
import re
import shutil
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
    """Versions, device, float64, compilation cache, helpers, disk, and a run with a known answer."""
    import jax
    from rich.console import Console

    from carom import __version__

    console = Console()
    console.print(f"{'carom':10} {__version__}")
    for package in ("jax", "jaxlib", "equinox", "numpy", "xarray"):
        console.print(f"{package:10} {metadata.version(package)}")
    console.print(f"{'python':10} {platform.python_version()}")
    console.print(f"{'device':10} {', '.join(str(d) for d in jax.devices())}")
    console.print(f"{'float64':10} {'on' if jax.config.read('jax_enable_x64') else 'off: set CAROM_X64=1'}")
    cache = getattr(jax.config, "jax_compilation_cache_dir")
    console.print(f"{'cache':10} {f'{cache}, {size_of(Path(cache)) / 1e6:.0f} MB' if cache else 'off'}")
    for helper, use in {"ffmpeg": ".mp4 films", "chromium": "tests of reports"}.items():
        console.print(f"{helper:10} {shutil.which(helper) or f'not found; only needed for {use}'}")
    console.print(f"{'disk':10} {shutil.disk_usage('.').free / 1e9:.1f} GB free here")
    if jax.default_backend() == "cpu":
        console.print(f"{'gpu':10} none in use; where there is one: pip install 'jax[cuda13]'", markup=False)
    console.print(f"{'self-test':10} {self_test()}")


def size_of(folder: Path) -> int:
    """Bytes of the files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def self_test() -> str:
    """An oscillator over one period, which must come back."""
    import numpy as np

    import carom

    spring = carom.System(1.0, lambda q: 0.5 * q @ q)
    sol = carom.simulate(spring, carom.State([1.0], [0.0]), carom.ExplicitRK(carom.explicit(4)), t1=2 * np.pi, h=0.01)
    error = float(np.hypot(sol.q[-1, 0] - 1.0, sol.v[-1, 0]))
    return f"{'passed' if error < 1e-8 else 'FAILED'}: an oscillator comes back to {error:.1e} after a period"
