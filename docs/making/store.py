"""Results of runs in folders, reused while nothing that they depend on has changed."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).parents[2]
STORE = Path(os.environ.get("CAROM_DOCS_STORE", ROOT / ".cache" / "docs"))
KEPT = {".png", ".svg", ".gif", ".html", ".json", ".txt"}


@dataclass(frozen=True)
class Job:
    """A function of `making.runs` and its arguments: it writes files into the folder where it is called."""

    make: str
    arguments: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where its files are."""
        text = "\0".join([library(), self.make, *self.arguments])
        return STORE / hashlib.sha256(text.encode()).hexdigest()[:24]

    def read(self, name: str) -> str:
        """The text of one of its files, empty if there is none."""
        path = self.folder / name
        return path.read_text(encoding="utf-8") if path.exists() else ""


@cache
def library() -> str:
    """A digest of what every result depends on: the library, what is done with it, and versions."""
    found = hashlib.sha256()
    sources = [p for p in sorted((ROOT / "src" / "carom").rglob("*")) if p.suffix in (".py", ".js", ".css", ".html")]
    for path in [*sources, Path(__file__).with_name("runs.py")]:
        found.update(path.read_bytes())
    for package in ("jax", "jaxlib", "numpy", "matplotlib"):
        found.update(metadata.version(package).encode())
    return found.hexdigest()


def fill(jobs: list[Job]) -> None:
    """Carry out what is not there yet, on two processors."""
    missing = [job for job in dict.fromkeys(jobs) if not job.folder.exists()]
    if not missing:
        return
    STORE.mkdir(parents=True, exist_ok=True)
    sys.path.append(str(Path(__file__).parents[1]))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        failures = [text for text in pool.map(carry_out, missing) if text]
    if failures:
        raise RuntimeError("\n".join(["what the documentation shows could not be made:", *failures]))


def carry_out(job: Job) -> str:
    """Call the function of a job in a folder of its own, which appears when it is done; returns what went wrong."""
    from making import runs

    with tempfile.TemporaryDirectory(dir=STORE) as folder:
        made = Path(folder) / "made"
        made.mkdir()
        os.chdir(made)
        began = time.process_time()
        try:
            getattr(runs, job.make)(*job.arguments)
        except Exception:  # noqa: BLE001
            return f"{job.make} of {job.arguments[0][:80]!r}:\n{traceback.format_exc()}"
        finally:
            os.chdir(ROOT)
        for path in made.rglob("*"):
            if path.is_file() and path.suffix not in KEPT:
                path.unlink()
        took = f"{time.process_time() - began:.1f} s: {job.make} {job.arguments[0][:40]!r} {job.arguments[-1][:40]!r}"
        (made / "seconds.txt").write_text(took, encoding="utf-8")
        made.replace(job.folder)
    return ""
